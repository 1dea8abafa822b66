// Exact survival probabilities as integers, floor(P(X >= k) 2^bits): the twin of countveil/privacy/_survival.py.
// A floor is unique, so that any correct computation gives the same integers; intervals decide when it is certain.
const GUARD = 64n;

function ceilDivide(a, b) {
  return -(-a / b - (-a % b < 0n ? 1n : 0n));
}

// Integers with low <= exp(-num/den) 2^bits <= high: an alternating series at num/den 2^-halvings <= 1, squared.
function alphaBounds(num, den, bits) {
  if (num > den * bits) return [0n, 1n];
  let halvings = 0n;
  while (num > den << halvings) halvings += 1n;
  const working = bits + 2n * halvings + 32n;
  const step = den << halvings;
  let low = 1n << working, high = low, termLow = low, termHigh = low;
  for (let k = 1n; termHigh > 1n; k += 1n) {
    termLow = (termLow * num) / (step * k);
    termHigh = ceilDivide(termHigh * num, step * k);
    if (k % 2n) [low, high] = [low - termHigh, high - termLow];
    else [low, high] = [low + termLow, high + termHigh];
  }
  low = low > 2n ? low - 2n : 0n;
  high += 2n;
  for (let i = 0n; i < halvings; i += 1n) {
    low = (low * low) >> working;
    high = ((high * high) >> working) + 1n;
  }
  const shift = working - bits, one = 1n << bits;
  low >>= shift;
  high = (high >> shift) + 1n;
  return [low, high < one ? high : one];
}

// Integers with low_k <= alpha^k 2^bits <= high_k, for k = 0..count.
function powers(rate, count, bits) {
  const [low, high] = alphaBounds(rate.num, rate.den, bits);
  const lows = [1n << bits], highs = [1n << bits], ceiling = (1n << bits) - 1n;
  for (let k = 0; k < count; k++) {
    lows.push((lows[k] * low) >> bits);
    highs.push((highs[k] * high + ceiling) >> bits);
  }
  return [lows, highs];
}

function certain(bounds, bits) {
  for (let working = bits + GUARD; ; working *= 2n) {
    const found = bounds(working);
    if (found.every(([low, high]) => low === high)) return found.map(([low]) => low);
  }
}

// P(|tau| >= k) = 2 alpha^k/(1 + alpha), k = 1..count
function magnitudeFloors(rate, count, bits) {
  return certain((working) => {
    const [lows, highs] = powers(rate, count, working), one = 1n << working;
    return lows.slice(1).map((low, i) => [
      ((2n * low) << bits) / (one + highs[1]),
      ((2n * highs[i + 1]) << bits) / (one + lows[1]),
    ]);
  }, bits);
}

// P(G >= k) = alpha^k, k = 1..count
function geometricFloors(rate, count, bits) {
  return certain((working) => {
    const [lows, highs] = powers(rate, count, working), shift = working - bits;
    return lows.slice(1).map((low, i) => [low >> shift, highs[i + 1] >> shift]);
  }, bits);
}

// P(G mod B >= k) = (alpha^k - alpha^B)/(1 - alpha^B), k = 1..B-1
function digitFloors(rate, base, bits) {
  return certain((working) => {
    const [lows, highs] = powers(rate, base, working), one = 1n << working;
    if (highs[base] === one) return [[0n, 1n]];
    return lows.slice(1, base).map((low, i) => [
      ((low > highs[base] ? low - highs[base] : 0n) << bits) / (one - lows[base]),
      ((highs[i + 1] - lows[base]) << bits) / (one - highs[base]),
    ]);
  }, bits);
}
