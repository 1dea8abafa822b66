// Fractions of BigInts, always reduced, with a positive denominator.
function fraction(text) {
  const [num, den = "1"] = text.split("/");
  return { num: BigInt(num), den: BigInt(den) };
}

function reduced(num, den) {
  let a = num, b = den;
  while (b) [a, b] = [b, a % b];
  return a ? { num: num / a, den: den / a } : { num: 0n, den: 1n };
}

const plus = (x, y) => reduced(x.num * y.den + y.num * x.den, x.den * y.den);
const times = (x, y) => reduced(x.num * y.num, x.den * y.den);
const over = (x, y) => reduced(x.num * y.den, x.den * y.num);

function bitLength(value) {
  if (!value) return 0;
  const digits = value.toString(16);
  return 4 * digits.length - Math.clz32(parseInt(digits[0], 16)) + 28;
}

// A fraction for reading: exact where that is short.
function shown({ num, den }) {
  for (let digits = 0n; digits <= 6n; digits += 1n) {
    const scaled = num * 10n ** digits;
    if (scaled % den) continue;
    const whole = (scaled / den).toString().padStart(Number(digits) + 1, "0");
    return digits ? `${whole.slice(0, -Number(digits))}.${whole.slice(-Number(digits))}` : whole;
  }
  if (num <= 9999n && den <= 9999n) return `${num}/${den}`;
  const spare = BigInt(Math.max(0, bitLength(num > den ? num : den) - 1000));
  return (Number(num >> spare) / Number(den >> spare)).toPrecision(6);
}

// A positive decimal as the fraction that the ledger keeps, or null.
function decimal(text) {
  const found = /^([0-9]{1,9})(?:\.([0-9]{1,9}))?$/.exec(text.trim());
  if (!found) return null;
  const digits = found[2] ?? "";
  const { num, den } = reduced(BigInt(found[1] + digits), 10n ** BigInt(digits.length));
  return num ? (den === 1n ? `${num}` : `${num}/${den}`) : null;
}
