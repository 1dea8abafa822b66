"""Scores of reports of negative binomial counts given their mean and concentration, and the derivatives in both.

The count is NB(s, p) with s the concentration and p = mean / (mean + s), as regressions have it. With the counts and
bursts that are expected given the report (mathematics, section 13),

    d log P(r) / d mean = s / (mean + s) (E[count] / mean - 1)
    d log P(r) / d s = E[bursts] / s - log(1 + mean / s) - (E[count] - mean) / (mean + s)
"""

import math

from countveil.kernels.compiled import subroutine
from countveil.laws.noise.two_sided_geometric import negative_binomial_sums as sums
from countveil.laws.noise.two_sided_geometric.formulas import exposure, log_normaliser

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
        return noise - s * math.log1p(exposure(alpha) * mean / s)
    return sums.expectations(r, s, p, alpha)[0]


@subroutine
def slopes(r, mean, concentration, alpha):
    """(d log P(r) / d mean, d log P(r) / d concentration)."""
    mean, s, p = within(mean, concentration)
    if r <= 0:
        unseen = exposure(alpha) * mean / s
        return -exposure(alpha) / (1.0 + unseen), unseen / (1.0 + unseen) - math.log1p(unseen)
    _, count, bursts = sums.expectations(r, s, p, alpha)
    in_mean = s / (mean + s) * (count / mean - 1.0)
    return in_mean, bursts / s - math.log1p(mean / s) - (count - mean) / (mean + s)
