"""Scalar laws of one report of one count that comes in bursts, compiled; any report, any noise level.

The count is NB(s, p) with s = rate / q, q = -log(1 - p): ``rate`` is that of bursts, ``p`` the dispersion
(mathematics, section 13). Positive reports need the sums of ``negative_binomial_sums``. Given a report that is not
positive, the count is NB(s, p alpha).
"""

import math

from countveil.kernels.compiled import subroutine
from countveil.kernels.negative_binomial import negative_binomial_logpmf
from countveil.laws.noise.two_sided_geometric import formulas, negative_binomial
from countveil.laws.noise.two_sided_geometric import negative_binomial_sums as sums
from countveil.laws.noise.two_sided_geometric.formulas import log_normaliser

LEAST_RATE = 1e-300  # as which a rate of zero is treated


@subroutine
def shape_of(rate, p):
    """s."""
    return max(rate, LEAST_RATE) / -math.log1p(-p)


@subroutine
def exposure(p, alpha):
    """1 - log(1 - p alpha) / log(1 - p) (13.2)."""
    return math.log1p(-p * (1.0 - alpha) / (1.0 - p * alpha)) / math.log1p(-p)


@subroutine
def report_logpmf(r, rate, p, alpha):
    """log P(r | rate) (13.2, 13.3)."""
    if alpha <= 0.0:
        return negative_binomial_logpmf(r, shape_of(rate, p), p) if r >= 0 else -math.inf
    if r <= 0:
        return log_normaliser(alpha) - r * math.log(alpha) - exposure(p, alpha) * rate
    return sums.expectations(r, shape_of(rate, p), p, alpha)[0]


@subroutine
def censored_logpmf(rate, p, alpha):
    """log P(r <= 0 | rate)."""
    return -exposure(p, alpha) * rate - math.log1p(alpha)


@subroutine
def expected_parts(r, rate, p, alpha):
    """(E[count | r], E[bursts | r])."""
    s = shape_of(rate, p)
    if r <= 0 and alpha > 0.0:
        return s * p * alpha / (1.0 - p * alpha), -s * math.log1p(-p * alpha)
    _, count, bursts = sums.expectations(r, s, p, alpha)
    return count, bursts


@subroutine
def sample_count(r, rate, p, alpha, rng):
    """A draw of the count."""
    s = shape_of(rate, p)
    if r > 0 or alpha <= 0.0:
        return negative_binomial.draw_count(r, s, p, alpha, rng)
    return rng.poisson(rng.standard_gamma(s) * (p * alpha / (1.0 - p * alpha)))


@subroutine
def lower_tail(k, rate, p, alpha):
    """log P(r <= k)."""
    if alpha > 0.0 and k <= 0:
        return censored_logpmf(rate, p, alpha) - k * math.log(alpha)
    return sums.lower_tail(k, shape_of(rate, p), p, alpha) if k >= 0 else -math.inf


@subroutine
def upper_tail(k, rate, p, alpha):
    """log P(r > k)."""
    if k < 0:
        return math.log1p(-math.exp(lower_tail(k, rate, p, alpha)))
    if k == 0 and alpha > 0.0:
        return math.log(alpha - math.expm1(-exposure(p, alpha) * rate)) - math.log1p(alpha)
    return sums.upper_tail(k, shape_of(rate, p), p, alpha)


@subroutine
def mode(rate, p, alpha):
    """The most probable report, the greater one of two: a unimodal count plus log-concave noise has one peak."""
    s = shape_of(rate, p)
    if alpha <= 0.0:
        return int(p * (s - 1.0) / (1.0 - p)) if s > 1.0 else 0
    low, high = 0, 1
    while sums.rises(high, s, p, alpha):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if sums.rises(middle, s, p, alpha):
            low = middle
        else:
            high = middle
    return low


# Given the count's mean and concentration s, as regressions have it, where p = mean / (mean + s):
#
#     d log P(r) / d mean = s / (mean + s) (E[count] / mean - 1)
#     d log P(r) / d s = E[bursts] / s - log(1 + mean / s) - (E[count] - mean) / (mean + s)

LEAST, GREATEST = 1e-300, 1e15  # of a concentration; at the greatest the count is Poisson
LEAST_REST = 2.0**-53  # of 1 - p


@subroutine
def within(mean, concentration):
    """(mean, concentration, p) away from where their logarithms are infinite."""
    mean, s = max(mean, LEAST), min(max(concentration, LEAST), GREATEST)
    return mean, s, min(mean / (mean + s), 1.0 - LEAST_REST)


@subroutine
def score(r, mean, concentration, alpha):
    """log P(r)."""
    mean, s, p = within(mean, concentration)
    if r <= 0:
        if alpha <= 0.0 and r < 0:
            return -math.inf
        noise = log_normaliser(alpha) + (abs(r) * math.log(alpha) if r < 0 else 0.0)
        return noise - s * math.log1p(formulas.exposure(alpha) * mean / s)
    return sums.expectations(r, s, p, alpha)[0]


@subroutine
def slopes(r, mean, concentration, alpha):
    """(d log P(r) / d mean, d log P(r) / d concentration)."""
    mean, s, p = within(mean, concentration)
    if r <= 0:
        unseen = formulas.exposure(alpha) * mean / s
        return -formulas.exposure(alpha) / (1.0 + unseen), unseen / (1.0 + unseen) - math.log1p(unseen)
    _, count, bursts = sums.expectations(r, s, p, alpha)
    in_mean = s / (mean + s) * (count / mean - 1.0)
    return in_mean, bursts / s - math.log1p(mean / s) - (count - mean) / (mean + s)
