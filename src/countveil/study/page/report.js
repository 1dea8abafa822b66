// SHA-256, and the report file's bytes: the twin of countveil/privacy/report.py.
// Synchronous, because a report must be made inside one transaction of the ledger.
const PRIMES = [];
for (let n = 2; PRIMES.length < 64; n++) if (PRIMES.every((p) => n % p)) PRIMES.push(n);

// floor(frac(p^(1/root)) 2^32), in integers
function fractionOfRoot(p, root) {
  const target = BigInt(p) << (32n * BigInt(root));
  let low = 0n, high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(root) <= target) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn);
}

const ROUND = PRIMES.map((p) => fractionOfRoot(p, 3));
const START = PRIMES.slice(0, 8).map((p) => fractionOfRoot(p, 2));

function sha256(bytes) {
  const padded = new Uint8Array(((bytes.length + 72) >> 6) << 6);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  const state = Uint32Array.from(START), w = new Uint32Array(64);
  const turn = (x, n) => (x >>> n) | (x << (32 - n));
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[i] + w[i]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => { state[i] += value; });
  }
  const digest = new Uint8Array(32);
  state.forEach((value, i) => new DataView(digest.buffer).setUint32(4 * i, value));
  return digest;
}

function hmac(key, message) {
  const block = new Uint8Array(64);
  block.set(key);
  const joined = (mask, rest) => {
    const whole = new Uint8Array(64 + rest.length);
    whole.set(block.map((byte) => byte ^ mask));
    whole.set(rest, 64);
    return whole;
  };
  return sha256(joined(0x5c, sha256(joined(0x36, message))));
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// JSON with sorted keys, no spaces, and ASCII alone; BigInts are numbers.
function canonical(value) {
  if (typeof value === "string") {
    return JSON.stringify(value).replace(/[\x7f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  }
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.keys(value).sort().map((key) => `${canonical(key)}:${canonical(value[key])}`).join(",")}}`;
  }
  return String(value);
}

// `fixed`: what every report of the study says; `level`: its numbers as the study writes them; `stated`: a person's
// covariates as [name, value].
function encodeReport(fixed, level, participant, reports, stated = []) {
  const beside = stated.length ? { covariates: Object.fromEntries(stated) } : {};
  const head = canonical({ ...fixed, level, participant, reports, ...beside });
  const body = head.slice(0, -1);
  return `${body},"sha256":"${hex(sha256(new TextEncoder().encode(body)))}"}\n`;
}

function privatized(counts, sampler, truncated, entropy) {
  const noise = sampler.draw(counts.length, entropy);
  return counts.map((count, i) => {
    const noisy = count + noise[i];
    return truncated && noisy < 0n ? 0n : noisy;
  });
}
