// Exact discrete Gaussian noise: the twin of `sample` in countveil/privacy/gaussian_noise.py, bit for bit.
//   P(tau) = exp(-tau^2 / (2 sigma^2)) / sum_k exp(-k^2 / (2 sigma^2)),   tau whole, sigma^2 rational
// Uniform whole numbers and comparisons of them, nothing else. Source: Canonne, Kamath, Steinke (2020), Algorithms 1 to 3.

// Random bytes a few at a time, from a source that is asked for many: each byte is given once, in order.
function few(entropy) {
  let bytes = new Uint8Array(0), at = 0;
  return (size) => {
    if (at + size > bytes.length) {
      const rest = bytes.subarray(at), more = entropy(Math.max(size, 4096));
      bytes = new Uint8Array(rest.length + more.length);
      bytes.set(rest);
      bytes.set(more, rest.length);
      at = 0;
    }
    return bytes.subarray(at, (at += size));
  };
}

// A whole number from 0 to `below` - 1, each equally likely: bits are drawn until they are one of them.
function uniform(below, bytes) {
  const bits = bitLength(below - 1n), size = (bits + 7) >> 3, spare = BigInt(8 * size - bits);
  for (;;) {
    let found = 0n;
    for (const byte of bytes(size)) found = (found << 8n) | BigInt(byte);
    found >>= spare;
    if (found < below) return found;
  }
}

// Whether a run of successes at rate/1, rate/2, ... has even length: true with probability exp(-rate), rate <= 1.
function bernoulliExpOfPart({ num, den }, bytes) {
  let tries = 1n;
  while (uniform(den * tries, bytes) < num) tries += 1n;
  return tries % 2n === 1n;
}

const ONE = { num: 1n, den: 1n };

// True with probability exp(-rate) (Algorithm 1).
function bernoulliExp({ num, den }, bytes) {
  for (; num > den; num -= den) if (!bernoulliExpOfPart(ONE, bytes)) return false;
  return bernoulliExpOfPart({ num, den }, bytes);
}

// P(x) proportional to exp(-|x|/scale), `scale` a whole number from 1 (Algorithm 2).
function discreteLaplace(scale, bytes) {
  for (;;) {
    const rest = uniform(scale, bytes);
    if (!bernoulliExp(reduced(rest, scale), bytes)) continue;
    let magnitude = rest;
    while (bernoulliExp(ONE, bytes)) magnitude += scale;
    const negative = uniform(2n, bytes);
    if (magnitude || !negative) return negative ? -magnitude : magnitude;  // zero has one sign, not two
  }
}

// The largest whole number whose square is at most `value`.
function rootOf(value) {
  if (!value) return 0n;
  let root = 1n << BigInt((bitLength(value) + 1) >> 1);
  for (;;) {
    const next = (root + value / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

class GaussianSampler {
  constructor(variance) {
    this.variance = variance;
    this.scale = rootOf(variance.num / variance.den) + 1n;
  }

  // One draw, by rejection of discrete Laplace noise (Algorithm 3): (|x| - sigma^2/t)^2 / (2 sigma^2), t the scale.
  sample(bytes) {
    const { num, den } = this.variance, scaled = den * this.scale;
    for (;;) {
      const found = discreteLaplace(this.scale, bytes), magnitude = found < 0n ? -found : found;
      const distance = magnitude * scaled - num;
      if (!bernoulliExp(reduced(distance * distance, 2n * num * scaled * this.scale), bytes)) continue;
      if (magnitude >= MAX_NOISE) throw new RangeError("noise must stay below 2^62");
      return found;
    }
  }

  // `size` draws as BigInts
  draw(size, entropy) {
    const bytes = few(entropy);
    return Array.from({ length: size }, () => this.sample(bytes));
  }
}
