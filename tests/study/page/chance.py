"""What is asked of a million draws of noise, and the faults that are planted to see which question finds them.

Most statistics are the audit's. ``deep`` is of draws from words whose first 43 bits are zero, so that the last 20 bits
and the thresholds below 2^-43 decide everything. ``reuse`` is of draws from two pages whose Math.random starts alike.
"""

import base64
import itertools
import math
import os
from typing import NamedTuple

import numpy as np
from scipy import stats

from countveil.privacy.mechanisms import TwoSidedGeometric
from countveil.privacy.noise import Sampler
from countveil.study.audit import statistics
from countveil.study.page import tables
from tests.study.page.scripts import TWINS

SIZE = 1_000_000
FEW = 200_000
"""Draws that show a fault that is in every one of them; at the others it would be missed now and then."""
DEPTH = 43
"""Leading bits that are zero in the words of a deep draw."""

SYSTEM = "crypto.getRandomValues(bytes)"
CHANCE_BYTES = "bytes.forEach((_, i) => { bytes[i] = 256 * Math.random(); })"
CHANCE_WORDS = """for (let i = 0; i < bytes.length; i += 8)
  new DataView(bytes.buffer).setBigUint64(8 * (i / 8), BigInt(Math.floor(Math.random() * 2 ** 53)) << 11n, true)"""
EXACT = "value - large"
FLOATS = "BigInt(Number(large) + Number(value - large)) - large"
NO_SIGN = "value < large ? large - value : value - large"


class Fault(NamedTuple):
    """Where the page's bytes come from, what becomes of a sum, its table, what should see that, in how many draws."""

    source: str = SYSTEM
    value: str = EXACT
    table: str = "own"
    seen: frozenset[str] = frozenset()
    size: int = FEW


FAULTS = {
    "none": Fault(),
    "Math.random, byte by byte": Fault(CHANCE_BYTES, seen=frozenset({"reuse"})),
    "Math.random, 53 bits a word": Fault(CHANCE_WORDS, seen=frozenset({"deep", "reuse"})),
    "sums in floats": Fault(value=FLOATS, seen=frozenset({"law", "tail", "large", "deep", "reuse"})),
    "the table of another level": Fault(table="other", seen=frozenset({"law", "tail", "large", "deep"}), size=SIZE),
    "a table in floats": Fault(table="floats", seen=frozenset({"deep"}), size=SIZE),
    "no sign": Fault(value=NO_SIGN, seen=frozenset({"law", "large", "sides"})),
}

DRAWS = """(() => {
  %s
  const piece = (bytes) => { %s; };
  const entropy = (size) => {
    const all = new Uint8Array(size);
    for (let start = 0; start < size; start += 65536) {
      const bytes = new Uint8Array(Math.min(65536, size - start));
      piece(bytes);
      all.set(bytes, start);
    }
    if (%s && size > 4096) for (let i = 0; i < size; i += 8) {
      all[i + 2] &= 15;
      all.fill(0, i + 3, i + 7);
      all[i + 7] &= 128;
    }
    return all;
  };
  const sampler = new Sampler({ num: %dn, den: %dn }, thresholds("%s"));
  const large = 1n << 60n, counts = new Array(%d).fill(large);
  const noisy = privatized(counts, sampler, false, entropy);
  return noisy.map((value) => String(%s)).join(" ");
})()"""


def code(rate, fault=FAULTS["none"], size=SIZE, deep=False):
    """JavaScript that adds the page's noise to counts of 2^60, and returns what was added, as text."""
    ratio, table = (rate.numerator, rate.denominator), told(rate, fault.table)
    return DRAWS % (TWINS, fault.source, "true" if deep else "false", *ratio, table, size, fault.value)


def told(rate, kind="own"):
    """The thresholds that are written into the page: its own, those of a 2% larger rate, or ones from floats."""
    own = Sampler(rate).head.ascending
    if kind == "own":
        return tables.thresholds(rate)
    alpha = math.exp(-float(rate))
    if kind == "other":
        alpha **= 1.02
        words = [int(2 * alpha**k / (1 + alpha) * 2**63) for k in range(len(own), 0, -1)]
    else:
        upto = [1 - 2 * alpha**k / (1 + alpha) for k in range(len(own), 0, -1)]
        words = [int((1 - p) * 2**63) for p in upto]
    return base64.b64encode(b"".join(word.to_bytes(8, "little") for word in words)).decode()


def system_bytes(size):
    return os.urandom(size)


def deep_bytes(size):
    """The system's bytes, with the same bits of the words set to zero as in the browser."""
    words = np.frombuffer(os.urandom(size), dtype="<u8")
    if size > 4096:
        words = words & np.uint64(1 << 63 | (1 << (63 - DEPTH)) - 1)
    return words.tobytes()


def deep_parts():
    """The same for draws in bulk, which ask for the first 16 bits of many words and then for the other 48."""
    masks = itertools.cycle([np.uint16(1 << 15), np.uint64((1 << (63 - DEPTH)) - 1)])

    def entropy(size):
        if size <= 4096:
            return os.urandom(size)
        mask = next(masks)
        return (np.frombuffer(os.urandom(size), dtype=mask.dtype) & mask).tobytes()

    return entropy


def verdict(draws, rate):
    """p-values: the whole law, the mean size of noise, its last bits on counts of 2^60, and its two sides."""
    law = TwoSidedGeometric.keeping(rate, 1)
    seen = statistics.histogram([draws], law, len(draws))
    return {
        "law": statistics.chi_square(seen, law),
        "tail": statistics.magnitude(seen, law),
        "large": statistics.last_bits(seen, law),
        "sides": statistics.one_sidedness(seen),
    }


def reuse(draws):
    """The probability, at most, of as many repeated runs of draws as there are."""
    return 1e-9 if statistics.repeated_windows(draws) else 1.0


def deep(draws, rate):
    """p-value of deep draws: P(|tau| >= k | U < 2^-43) = 2^43 2 alpha^k/(1 + alpha), where that is below 1."""
    rate, size = float(rate), len(draws)
    first = math.floor((DEPTH * math.log(2) + math.log(2 / (1 + math.exp(-rate)))) / rate) + 1
    beyond = [1.0]  # that |tau| is at least first - 1, first, ...
    while beyond[-1] * size * -math.expm1(-rate) >= 2 * statistics.MIN_EXPECTED:
        place = first + len(beyond) - 1
        beyond.append(math.exp(DEPTH * math.log(2) + math.log(2) - place * rate - math.log1p(math.exp(-rate))))
    cells = np.clip(np.abs(draws) - (first - 1), -1, len(beyond) - 1)
    if (cells < 0).any():
        return 0.0
    expected = size * np.append(-np.diff(beyond), beyond[-1])
    kept = expected >= 5
    seen = np.bincount(cells, minlength=len(beyond))
    value = float(stats.chi2.sf(((seen - expected)[kept] ** 2 / expected[kept]).sum(), int(kept.sum()) - 1))
    return value if kept.all() else min(1.0, 2 * min(value, _rare(seen[~kept].sum(), expected[~kept].sum())))


def _rare(hits, expected):
    return float(stats.poisson.sf(hits - 1, expected))


def caught(values):
    """The questions whose answer is no."""
    return frozenset(name for name, value in values.items() if value < statistics.CRITICAL)
