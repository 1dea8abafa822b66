"""P(report | count) of every mechanism, written out term by term, with reports to try."""

import math

import numpy as np
from scipy import stats
from scipy.special import digamma, gammaln, logsumexp

import countveil as cv

m = cv.mechanisms
NAN = math.nan


def discrete_gaussian(tau, sigma):
    k = np.arange(-math.ceil(45 * sigma) - 1, math.ceil(45 * sigma) + 2)
    return -0.5 * (tau / sigma) ** 2 - logsumexp(-0.5 * (k / sigma) ** 2)


def geometric(tau, alpha):
    return math.log((1 - alpha) / (1 + alpha)) + np.abs(tau) * math.log(alpha)


def laplace(tau, scale):
    return -np.abs(tau) / scale - math.log(2 * scale)


def laplace_tail(t, scale):
    return np.where(t < 0, t / scale - math.log(2), np.log1p(-0.5 * np.exp(-np.abs(t) / scale)))


def skellam(tau, l1, l2, terms=60):
    n = np.arange(terms)[:, None]
    first = n + np.maximum(tau, 0)
    second = first - tau
    both = first * math.log(l1) - gammaln(first + 1.0) + second * math.log(l2) - gammaln(second + 1.0)
    return logsumexp(both, axis=0) - l1 - l2


def tail(log_mass, t, reach):
    """log P(tau <= t), t whole, summed from -reach up to t."""
    k = np.arange(-reach, int(t.max()) + 1)
    sums = np.logaddexp.accumulate(log_mass(k.astype(float)))
    return np.minimum(sums[(t + reach).astype(int)], 0.0)


def inside(y, least, most):
    return np.where((y >= least) & (y <= most), 0.0, -np.inf)


def suppressed(r, y, below, least):
    return inside(y, least, below - 1) if math.isnan(r) else inside(y, r, r)


def thresholded(r, y, above, log_mass, reach=40_000):
    return tail(log_mass, above - y, reach) if math.isnan(r) else log_mass(r - y)


def triangle(r, y, base):
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(base - np.abs(r - y), 0) / base)


def column(r, y, table):
    with np.errstate(divide="ignore"):
        return np.where(y < len(table), np.log(np.asarray(table)[np.minimum(y, len(table) - 1), int(r)]), -np.inf)


KEYS = np.array([stats.binom.pmf(np.arange(21), 20, (y + 0.5) / 21) for y in range(21)])
KEYS[:, 3] = 0.0
KEYS /= KEYS.sum(axis=1, keepdims=True)

CASES = {
    "geometric": (m.TwoSidedGeometric(0.7), lambda r, y: geometric(r - y, 0.7), [-4, 0, 3, 9_990]),
    "discrete": (m.DiscreteGaussian(3), lambda r, y: discrete_gaussian(r - y, 3.0), [-6, 0, 2, 47, 10_020]),
    "discrete, narrow": (m.DiscreteGaussian("0.3"), lambda r, y: discrete_gaussian(r - y, 0.3), [0, 1, 60]),
    "Gaussian": (m.Gaussian(5), lambda r, y: stats.norm.logpdf(r - y, scale=5), [-7.25, 0.4, 55.5, 9_987.3]),
    "Laplace": (m.Laplace(2), lambda r, y: laplace(r - y, 2), [-3.5, 1.5, 60.7, 1e4]),
    "Skellam": (m.Skellam(4, 2.5), lambda r, y: skellam(r - y, 4.0, 2.5), [-3, 0, 5, 51]),
    "random rounding": (m.RandomRounding(3), lambda r, y: triangle(r, y, 3), [0, 3, 51, 9_999]),
    "rounding": (m.Rounding(10), lambda r, y: inside(y, r - 5, r + 4), [0, 10, 50, 10_000]),
    "suppression": (m.Suppression(10), lambda r, y: suppressed(r, y, 10, 1), [NAN, 0, 12]),
    "suppression of zeros": (m.Suppression(6, False), lambda r, y: suppressed(r, y, 6, 0), [NAN, 6]),
    "interval": (
        m.Interval(30, 45),
        lambda r, y: inside(y, 30, 45) if math.isnan(r) else inside(y, r, r),
        [NAN, 0, 20, 46],
    ),
    "interval without end": (
        m.Interval(50), lambda r, y: inside(y, 50, math.inf) if math.isnan(r) else inside(y, r, r), [NAN, 0, 49],
    ),
    "rounding to even": (
        m.Rounding(10, "even"), lambda r, y: inside(y, r - 5 + (r // 10) % 2, r + 5 - (r // 10) % 2), [0, 10, 20, 9_990]
    ),
    "rounding down": (m.Rounding(10, "down"), lambda r, y: inside(y, r, r + 9), [0, 10, 9_990]),
    "rounding up": (m.Rounding(10, "up"), lambda r, y: inside(y, r - 9 if r else 0, r), [0, 10, 9_990]),
    "midpoints": (
        m.Rounding(6, "midpoint"), lambda r, y: inside(y, r - 2 if r else 0, r + 3 if r else 0), [0, 3, 9, 51],
    ),
    "hidden, then rounded": (
        m.Composed(m.Suppression(8), m.Rounding(5)),
        lambda r, y: inside(y, 1, 7) if math.isnan(r) else inside(y, max(r - 2, 8), r + 2) if r else inside(y, 0, 0),
        [NAN, 0, 10, 35],
    ),
    "rounded, then hidden": (
        m.Composed(m.Rounding(5), m.Suppression(10)),
        lambda r, y: inside(y, 3, 7) if math.isnan(r) else inside(y, r - 2, r + 2),
        [NAN, 0, 10, 35],
    ),
    "rounded at random, then hidden": (
        m.Composed(m.RandomRounding(3), m.Suppression(9)),
        lambda r, y: np.logaddexp(triangle(3, y, 3), triangle(6, y, 3)) if math.isnan(r) else triangle(r, y, 3),
        [NAN, 0, 9, 51],
    ),
    "hidden, then rounded coarsely": (
        m.Composed(m.Suppression(3), m.Rounding(20)),
        lambda r, y: inside(y, 1, 2) if math.isnan(r)
        else np.where((y == 1) | (y == 2), -np.inf, inside(y, r - 10, r + 9)),
        [NAN, 0, 20],
    ),
    "rounded at random, then cut off": (
        m.Composed(m.RandomRounding(5), m.TopCoding(40)),
        lambda r, y: triangle(r, np.minimum(y, 40) if r == 40 else y, 5),
        [0, 5, 40],
    ),
    "top-coding": (m.TopCoding(40), lambda r, y: inside(y, r, r if r < 40 else math.inf), [0, 7, 40]),
    "cut geometric": (
        m.Thresholded(m.TwoSidedGeometric(0.9), 45), lambda r, y: thresholded(r, y, 45, lambda t: geometric(t, 0.9)),
        [NAN, 46, 80],
    ),
    "cut discrete": (
        m.Thresholded(m.DiscreteGaussian(10), 90),
        lambda r, y: thresholded(r, y, 90, lambda t: discrete_gaussian(t, 10.0)),
        [NAN, 91, 10_050],
    ),
    "cut Gaussian": (
        m.Thresholded(m.Gaussian(10), 30.5),
        lambda r, y: stats.norm.logcdf(30.5 - y, scale=10) if math.isnan(r) else stats.norm.logpdf(r - y, scale=10),
        [NAN, 30.75, 70],
    ),
    "cut Laplace": (
        m.Thresholded(m.Laplace(4), -2),
        lambda r, y: laplace_tail(-2.0 - y, 4) if math.isnan(r) else laplace(r - y, 4),
        [NAN, -1, 61.5],
    ),
    "cut Skellam": (
        m.Thresholded(m.Skellam(3, 3), 4), lambda r, y: thresholded(r, y, 4, lambda t: skellam(t, 3.0, 3.0), 21_000),
        [NAN, 5, 40],
    ),
    "flips": (
        m.RandomisedResponse(0.2),
        lambda r, y: np.where(y > 63, -np.inf, np.log(np.where((y > 0) == r, 0.8, 0.2))),
        [0, 1],
    ),
    "table": (m.Table(KEYS), lambda r, y: column(r, y, KEYS), [0, 7, 20]),
}  # fmt: skip
"""{name: (mechanism, log P(report | counts), reports)}."""


def log_mass(y, rate, p):
    """log P(y | rate) of Poisson counts, or with p of negative binomial ones, and its derivative in the rate."""
    if p is None:
        return y * math.log(rate) - rate - gammaln(y + 1.0), y / rate - 1.0
    q = -math.log1p(-p)
    s = rate / q
    rising = gammaln(s + y) - gammaln(s) if s < 1e3 else np.concatenate([[0.0], np.cumsum(np.log(s + y[:-1]))])
    found = rising - gammaln(y + 1.0) - s * q + y * math.log(p)
    return found, (digamma(s + y) - digamma(s)) / q - 1.0
