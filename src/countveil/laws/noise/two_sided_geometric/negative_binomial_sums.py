"""Sums of the weights NB(y; s, p) alpha^|k - y| on one side of k: reports' tails, and expected counts and bursts.

Up to k the ratio of neighbouring weights is p / alpha (s + y - 1) / y, and above k it is p alpha (s + y - 1) / y
(mathematics, equation 13.3). Each side is one or two runs in which weights fall: away from its mode if s >= 1. If
s < 1, weights fall from 0 on, and up to k they may rise again, so that they fall from k downwards too. A run ends where
a bound on all that is left of it is negligible. With alpha = 1 the sums are those of the counts themselves.

``Sums`` are relative to e^log_scale. Those of a run are relative to its first weight.
"""

import math
from typing import NamedTuple

from countveil.kernels.compiled import subroutine
from countveil.kernels.negative_binomial import expected_bursts, negative_binomial_logpmf
from countveil.laws.noise.two_sided_geometric.formulas import log_normaliser

NEGLIGIBLE = 1e-18  # share of a sum
LARGEST_COUNT = 2.0**62


class Sums(NamedTuple):
    """Sums of weights, of weights times counts, and of weights times expected bursts."""

    log_scale: float
    total: float
    counts: float
    bursts: float


@subroutine
def nothing():
    """An empty sum."""
    return Sums(-math.inf, 0.0, 0.0, 0.0)


@subroutine
def together(a, b):
    """The sum of both, relative to the greater scale."""
    scale = max(a.log_scale, b.log_scale)
    if scale == -math.inf:
        return a
    first, second = math.exp(a.log_scale - scale), math.exp(b.log_scale - scale)
    return Sums(
        scale,
        first * a.total + second * b.total,
        first * a.counts + second * b.counts,
        first * a.bursts + second * b.bursts,
    )


@subroutine
def log_weight(y, k, s, p, tilt):
    """log of NB(y; s, p) e^((y - k) tilt)."""
    return negative_binomial_logpmf(y, s, p) + (y - k) * tilt


@subroutine
def is_negligible(weight, ratio, left, total, bursts):
    """Whether a run may end: ``left`` more weights, whose ratios are at most ``ratio``, add nothing to its sums."""
    rest = weight * left
    if ratio < 1.0:
        rest = min(rest, weight * ratio / (1.0 - ratio))
    return rest <= NEGLIGIBLE * min(total, bursts)


@subroutine
def run_up(first, last, s, x, log_scale):
    """``Sums`` of the weights from ``first`` to ``last``, with ratios x (s + y - 1) / y; they fall."""
    y, weight, burst = first, 1.0, expected_bursts(first, s)
    total, counts, bursts = 1.0, float(y), burst
    while y < last:
        burst += s / (s + y)
        y += 1
        ratio = x * (s + (y - 1)) / y
        weight *= ratio
        total += weight
        counts += weight * y
        bursts += weight * burst
        if is_negligible(weight, max(ratio, x) if s < 1.0 else ratio, float(last - y), total, bursts):
            break
    return Sums(log_scale, total, counts, bursts)


@subroutine
def run_down(first, last, s, x, log_scale):
    """The same from ``first`` down to ``last``."""
    y, weight, burst = first, 1.0, expected_bursts(first, s)
    total, counts, bursts = 1.0, float(y), burst
    while y > last:
        ratio = y / (x * (s + (y - 1)))
        y -= 1
        burst = max(burst - s / (s + y), 0.0)
        weight *= ratio
        total += weight
        counts += weight * y
        bursts += weight * burst
        if is_negligible(weight, 1.0 if s < 1.0 else ratio, float(y - last), total, bursts):
            break
    return Sums(log_scale, total, counts, bursts)


@subroutine
def mode_of(s, x):
    """The mode, s >= 1, where the ratio is x (s + y - 1) / y; without one the largest number."""
    if x >= 1.0:
        return LARGEST_COUNT
    return min(x * (s - 1.0) / (1.0 - x), LARGEST_COUNT)


@subroutine
def sums_up_to(k, s, p, alpha):
    """``Sums`` over the counts 0, ..., k."""
    x, tilt = p / alpha, -math.log(alpha)
    if s >= 1.0:
        split = min(k, int(mode_of(s, x)))
        below = run_down(split, 0, s, x, log_weight(split, k, s, p, tilt))
        if split == k:
            return below
        above = run_up(split + 1, k, s, x, log_weight(split + 1, k, s, p, tilt))
        return together(below, above)
    split = k
    if x > 1.0:
        split = int(min(x * (1.0 - s) / (x - 1.0), float(k)))
    low = run_up(0, split, s, x, log_weight(0, k, s, p, tilt))
    if split == k:
        return low
    return together(low, run_down(k, split + 1, s, x, log_weight(k, k, s, p, tilt)))


@subroutine
def sums_above(k, s, p, alpha):
    """``Sums`` over the counts k + 1, k + 2, ..."""
    x, tilt, last = p * alpha, math.log(alpha), int(LARGEST_COUNT)
    split = k + 1 if s < 1.0 else max(k + 1, int(mode_of(s, x)))
    above = run_up(split, last, s, x, log_weight(split, k, s, p, tilt))
    if split == k + 1:
        return above
    return together(above, run_down(split - 1, k + 1, s, x, log_weight(split - 1, k, s, p, tilt)))


@subroutine
def expectations(r, s, p, alpha):
    """(log P(r), E[count | r], E[bursts | r]) of a positive report."""
    if alpha <= 0.0:
        return negative_binomial_logpmf(r, s, p), float(r), expected_bursts(r, s)
    found = together(sums_up_to(r, s, p, alpha), sums_above(r, s, p, alpha))
    score = log_normaliser(alpha) + found.log_scale + math.log(found.total)
    return score, found.counts / found.total, found.bursts / found.total


@subroutine
def rises(r, s, p, alpha):
    """Whether P(r) >= P(r - 1), 0 < alpha: the counts from r on weigh more than those below."""
    if r <= 0:
        return True
    below, above = sums_up_to(r - 1, s, p, alpha), sums_above(r - 1, s, p, alpha)
    return above.log_scale + math.log(above.total) - math.log(alpha) >= below.log_scale + math.log(below.total)


# Tails are the count's, corrected for the noise as those of Poisson counts are (see ``poisson``).


@subroutine
def corrected(count, below, above, excess):
    """log of the sums ``count`` plus the first excess times those below plus the second times those above."""
    scale = max(count.log_scale, below.log_scale, above.log_scale)
    low, high = (below.total * math.exp(below.log_scale - scale), above.total * math.exp(above.log_scale - scale))
    total = count.total * math.exp(count.log_scale - scale) + excess[0] * low + excess[1] * high
    return scale + math.log(total)


@subroutine
def lower_tail(k, s, p, alpha):
    """log P(r <= k), k >= 0."""
    count = sums_up_to(k, s, p, 1.0)
    if alpha <= 0.0:
        return count.log_scale + math.log(count.total)
    below, above = sums_up_to(k, s, p, alpha), sums_above(k, s, p, alpha)
    return corrected(count, below, above, (-alpha / (1.0 + alpha), 1.0 / (1.0 + alpha)))


@subroutine
def upper_tail(k, s, p, alpha):
    """log P(r > k), k >= 0."""
    count = sums_above(k, s, p, 1.0)
    if alpha <= 0.0:
        return count.log_scale + math.log(count.total)
    below, above = sums_up_to(k, s, p, alpha), sums_above(k, s, p, alpha)
    return corrected(count, below, above, (alpha / (1.0 + alpha), -1.0 / (1.0 + alpha)))
