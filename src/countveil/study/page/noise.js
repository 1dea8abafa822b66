// Exact two-sided geometric noise by table inversion: the twin of countveil/privacy/noise.py, bit for bit.
// Integers alone. `entropy(n)` gives n random bytes; the caller provides it.
const WORD_BITS = 63n;
const WORD_MASK = (1n << WORD_BITS) - 1n;
const CHUNK = 65536;
const ENTRIES = 8192;
const BASE = 4096;
const MAX_NOISE = 1n << 62n;

function wordOf(bytes, at) {
  return new DataView(bytes.buffer, bytes.byteOffset + at, 8).getBigUint64(0, true);
}

// How many of the ascending thresholds are at most `word`.
function bisectRight(ascending, word) {
  let low = 0, high = ascending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (word < ascending[middle]) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Counts the survival probabilities above a uniform number; `floors(bits)` gives them at any number of bits.
class Table {
  constructor(floors, ascending) {
    this.floors = floors;
    this.ascending = ascending ?? BigUint64Array.from(floors(WORD_BITS).reverse());
    this.size = this.ascending.length;
  }

  lookUp(word, entropy) {
    const place = bisectRight(this.ascending, word);
    if (place && this.ascending[place - 1] === word) return this.settle(word, entropy);
    return this.size - place;
  }

  settle(word, entropy) {
    for (let bits = WORD_BITS + 64n; ; bits += 64n) {
      word = (word << 64n) | wordOf(entropy(8), 0);
      const ascending = this.floors(bits).reverse();
      const place = bisectRight(ascending, word);
      if (!(place && ascending[place - 1] === word)) return this.size - place;
    }
  }
}

// Entries until the survival probability is below 2^-63, at most `entries`.
function needed(rate, entries) {
  const whole = ceilDivide(45n * rate.den, rate.num) + 1n;
  return whole < BigInt(entries) ? Number(whole) : entries;
}

class Sampler {
  // `ascending`: the thresholds of the head, as they were written into the page; computed here if there are none
  constructor(rate, ascending, entries = ENTRIES, base = BASE) {
    Object.assign(this, { rate, entries, base, tables: null });
    const count = needed(rate, entries);
    this.head = new Table((bits) => magnitudeFloors(rate, count, bits), ascending);
    if (this.head.size !== count) throw new RangeError("the noise table must be whole");
  }

  tail() {
    if (this.tables) return this.tables;
    const digits = [];
    let rate = this.rate;
    while (needed(rate, this.entries + 1) > this.entries) {
      const here = rate;
      digits.push(new Table((bits) => digitFloors(here, this.base, bits)));
      rate = { num: rate.num * BigInt(this.base), den: rate.den };
    }
    const count = needed(rate, this.entries);
    this.tables = [digits, new Table((bits) => geometricFloors(rate, count, bits))];
    return this.tables;
  }

  // `size` draws as BigInts
  draw(size, entropy) {
    const noise = [];
    for (let start = 0; start < size; start += CHUNK) {
      const count = Math.min(CHUNK, size - start), bytes = entropy(8 * count);
      for (let i = 0; i < count; i++) {
        const word = wordOf(bytes, 8 * i);
        let magnitude = BigInt(this.head.lookUp(word & WORD_MASK, entropy));
        if (magnitude === BigInt(this.head.size)) magnitude += this.drawGeometric(entropy);
        noise.push(word >> WORD_BITS ? -magnitude : magnitude);
      }
    }
    return noise;
  }

  drawGeometric(entropy) {
    const [digits, last] = this.tail();
    let total = 0n, weight = 1n;
    for (const table of digits) {
      total += weight * BigInt(table.lookUp(wordOf(entropy(8), 0) & WORD_MASK, entropy));
      weight *= BigInt(this.base);
    }
    for (;;) {
      const count = last.lookUp(wordOf(entropy(8), 0) & WORD_MASK, entropy);
      total += weight * BigInt(count);
      if (total + BigInt(this.head.size) >= MAX_NOISE) throw new RangeError("noise must stay below 2^62");
      if (count < last.size) return total;
    }
  }
}

// The thresholds from the page: base64 of 64-bit words, lowest byte first, ascending.
function thresholds(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return BigUint64Array.from({ length: bytes.length / 8 }, (_, i) => wordOf(bytes, 8 * i));
}
