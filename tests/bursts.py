"""Negative binomial counts and reports of them, by plain sums over all counts that matter."""

import math

import mpmath
import numpy as np
from mpmath import mpf

PS = (1e-6, 0.05, 0.5, 0.9, 0.999)
SHAPES = (1e-12, 0.01, 1.0, 50.0, 1e5)


def rate_of(s, p):
    """The rate of bursts of NB(s, p)."""
    return -s * math.log1p(-p)


def masses(s, p, most=None):
    """(counts, log P(count), E[bursts | count]) from 0 on; up to where what is left is far below 1e-20."""
    mean = s * p / (1.0 - p)
    mode = int((s - 1.0) * p / (1.0 - p)) if s > 1.0 else 0
    if most is None:
        most = mean + 30.0 * math.sqrt(mean / (1.0 - p)) + 60.0 / (1.0 - p) + 4000
    counts = np.arange(int(most))
    y = counts[1:]
    steps = np.log(p * (s + (y - 1)) / y)
    with mpmath.workdps(50):
        shape = mpf(s)
        top = mpmath.loggamma(shape + mode) - mpmath.loggamma(shape) - mpmath.loggamma(mode + 1)
        top = float(top + shape * mpmath.log1p(-mpf(p)) + mode * mpmath.log(mpf(p)))
    found = np.full(counts.size, top)
    found[mode + 1 :] += np.cumsum(steps[mode:])
    found[:mode] -= np.cumsum(steps[:mode][::-1])[::-1]
    bursts = np.concatenate([[0.0], np.cumsum(s / (s + (y - 1)))])
    return counts, found, bursts
