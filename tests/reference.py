"""The slow, obvious versions of the compiled laws: sums of the weights, term by term, in many digits.

``plain`` functions add up from y = 0 and are for small cases. ``window`` walks outwards from the mode by the
ratio of neighbouring weights in whole-number arithmetic of some hundreds of bits, and stops where what is
left changes neither the sum nor the mean in its thirtieth digit; it is for cases of any size.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mp, mpf
from scipy import stats

mp.dps = 50
GUARD_BITS = 110


class Window(NamedTuple):
    """A law on y = first, first + 1, ..., relative to its greatest weight."""

    first: int
    mode: int
    total: mpf  # sum of the weights over the weight at the mode
    mean: mpf
    variance: mpf
    probabilities: np.ndarray  # (values,)


def window(mode: int, up: Callable[[int], Fraction], least: int | None, smallest_ratio: float) -> Window:
    """Every weight that matters; up(y) is w(y) / w(y - 1), at least about smallest_ratio near the mode."""
    bits = 2 * GUARD_BITS + 2 * max(0, int(-np.log2(max(smallest_ratio, 1e-320))))
    middle = 1 << bits
    above = list(_walk(middle, mode, bits, lambda y: (y + 1, up(y + 1)), None))
    below = list(_walk(middle, mode, bits, lambda y: (y - 1, 1 / up(y)), least))
    weights = [*below[::-1], middle, *above]
    first = mode - len(below)
    total = sum(weights)
    mean = Fraction(sum((first + i) * w for i, w in enumerate(weights)), total)
    centre = round(mean)
    second = Fraction(sum((first + i - centre) ** 2 * w for i, w in enumerate(weights)), total)
    exact = [Fraction(total, middle), mean, second - (mean - centre) ** 2]
    total_mp, mean_mp, variance_mp = (mpf(f.numerator) / f.denominator for f in exact)
    return Window(first, mode, total_mp, mean_mp, variance_mp, np.array([w / total for w in weights]))


def _walk(
    weight: int, y: int, bits: int, step: Callable[[int], tuple[int, Fraction]], least: int | None
) -> Iterable[int]:
    total, moment, start = weight, 0, y
    while least is None or y > least:
        y, ratio = step(y)
        weight = weight * ratio.numerator // ratio.denominator
        if weight == 0:
            return
        yield weight
        total += weight
        moment += abs(y - start) * weight
        if weight << GUARD_BITS < total and (abs(y - start) * weight) << GUARD_BITS < moment:
            return


def fixed(value: Fraction, bits: int = 2 * GUARD_BITS) -> Fraction:
    """The value to this many significant bits, with a power of two below: cheap to multiply by."""
    shift = bits + value.denominator.bit_length() - value.numerator.bit_length()
    return Fraction((value.numerator << max(0, shift)) // value.denominator, 1 << max(0, shift))


@cache
def count_law(r: int, rate: float, alpha: float) -> Window:
    """The law of the true count: weights rate^y / y! alpha^|r - y|."""
    if r < 0:
        return count_law(0, rate, alpha)  # all weights change by the one factor alpha^-r
    lower = Fraction(rate) / Fraction(alpha)
    upper = Fraction(rate) * Fraction(alpha)
    mode = int(lower) if lower < r else max(r, int(upper))
    return window(mode, two_pieces(r, lower, upper), 0, float(min(upper, 1)))


class _Ratio(NamedTuple):
    numerator: int
    denominator: int

    def __rtruediv__(self, one: int) -> "_Ratio":
        return _Ratio(self.denominator, self.numerator)


def two_pieces(r: int, lower: Fraction, upper: Fraction) -> Callable[[int], _Ratio]:
    """w(y) / w(y - 1): lower / y up to r, upper / y above."""
    lower, upper = fixed(lower), fixed(upper)

    def up(y: int) -> _Ratio:
        piece = lower if y <= r else upper
        return _Ratio(piece.numerator, piece.denominator * y)

    return up


def log_weight(y: int, r: int, rate: float, alpha: float) -> mpf:
    """log of e^-rate rate^y / y! alpha^|r - y|."""
    return y * mp.log(rate) - mp.loggamma(y + 1) - mpf(rate) + abs(r - y) * mp.log(alpha)


def log_noise_constant(alpha: float) -> mpf:
    """log (1 - alpha) / (1 + alpha)."""
    return mp.log((1 - mpf(alpha)) / (1 + mpf(alpha)))


def report_logpmf(r: int, rate: float, alpha: float) -> mpf:
    """log P(r | rate, alpha), from the window."""
    law = count_law(r, rate, alpha)
    return log_noise_constant(alpha) + log_weight(law.mode, r, rate, alpha) + mp.log(law.total)


def expected_count(r: int, rate: float, alpha: float) -> mpf:
    """E[y | r], from the window."""
    return count_law(r, rate, alpha).mean


def plain_weights(r: int, rate: float, alpha: float, terms: int = 400) -> list[mpf]:
    """e^-rate rate^y / y! alpha^|r - y| for y = 0, 1, ..."""
    mass, weights = mp.exp(-mpf(rate)), []
    power = [mpf(alpha) ** n for n in range(2)]
    while len(power) < max(abs(r), abs(r - terms)) + 1:
        power.append(power[-1] * power[1])
    for y in range(terms):
        weights.append(mass * power[abs(r - y)])
        mass = mass * rate / (y + 1)
    return weights


def plain_report_pmf(r: int, rate: float, alpha: float) -> mpf:
    """P(r | rate, alpha), from all weights."""
    return (1 - mpf(alpha)) / (1 + mpf(alpha)) * mpmath.fsum(plain_weights(r, rate, alpha))


def plain_expected_count(r: int, rate: float, alpha: float) -> mpf:
    """E[y | r], from all weights."""
    weights = plain_weights(r, rate, alpha)
    return mpmath.fsum(y * w for y, w in enumerate(weights)) / mpmath.fsum(weights)


def plain_count_pmf(r: int, rate: float, alpha: float) -> list[mpf]:
    """P(y | r) for y = 0, 1, ..., from all weights."""
    weights = plain_weights(r, rate, alpha)
    total = mpmath.fsum(weights)
    return [w / total for w in weights]


def poisson_logpmf(n: int, rate: float) -> mpf:
    """log of rate^n e^-rate / n!."""
    return (n * mp.log(rate) if n else mpf(0)) - mpf(rate) - mp.loggamma(n + 1)


def stirling_error(n: int) -> mpf:
    """log n! less Stirling's first approximation."""
    return mp.loggamma(n + 1) - (n + mpf(0.5)) * mp.log(n) + n - mp.log(2 * mp.pi) / 2


def poisson_deviance(n: float, rate: float) -> mpf:
    """n log(n / rate) + rate - n."""
    return mpf(n) * mp.log(mpf(n) / mpf(rate)) + mpf(rate) - mpf(n)


def sum_below(r: int, x: float) -> mpf:
    """Poisson(x) mass below r over its mass at r."""
    return mpmath.fsum(mp.exp(poisson_logpmf(y, x) - poisson_logpmf(r, x)) for y in range(r))


def sum_above(r: int, x: float, terms: int = 400) -> mpf:
    """Poisson(x) mass above r over its mass at r."""
    weights = [mp.exp(poisson_logpmf(y, x) - poisson_logpmf(r, x)) for y in range(r + 1, r + terms)]
    return mpmath.fsum(weights)


@cache
def bessel_law(order: int, argument: float) -> Window:
    """The Bessel law: weights (argument/2)^(2n) / (n! (n + order)!)."""
    square = Fraction(argument) ** 2 / 4
    mode = int(mp.floor((mp.hypot(argument, order) - order) / 2))
    short = fixed(square)

    def up(n: int) -> _Ratio:
        return _Ratio(short.numerator, short.denominator * n * (n + order))

    return window(mode, up, 0, float(min(square / (order + 1), 1)))


def log_bessel_i(order: int, argument: float) -> mpf:
    """log I_order(argument), by its series."""
    law = bessel_law(order, argument)
    half = mpf(argument) / 2
    at_mode = (2 * law.mode + order) * mp.log(half) - mp.loggamma(law.mode + 1)
    return at_mode - mp.loggamma(law.mode + order + 1) + mp.log(law.total)


def skellam_logpmf(k: int, rate1: float, rate2: float) -> mpf:
    """log P(N1 - N2 = k), by the sum over the smaller count."""
    order, high, low = (k, mpf(rate1), mpf(rate2)) if k >= 0 else (-k, mpf(rate2), mpf(rate1))
    mode = int(mp.floor((mp.sqrt(4 * high * low + order**2) - order) / 2))
    total = term = mpf(1)
    n = mode
    while term > total * mpf(10) ** -35:
        n += 1
        term *= high * low / (n * (n + order))
        total += term
    term = mpf(1)
    for n in range(mode, 0, -1):
        term *= n * (n + order) / (high * low)
        total += term
        if term < total * mpf(10) ** -35:
            break
    logs = [mode * mp.log(low), (mode + order) * mp.log(high), -low - high, mp.log(total)]
    return mpmath.fsum(logs) - mp.loggamma(mode + 1) - mp.loggamma(mode + order + 1)


def log_sum_downhill(logpmf: Callable[[int], mpf], start: int, step: int) -> mpf:
    """log of the sum of a pmf from start on in the direction of step, where it falls all the way."""
    first = logpmf(start)
    total = term = mpf(1)
    k = start
    while term > total * mpf(10) ** -25:
        k += step
        term = mp.exp(logpmf(k) - first)
        total += term
    return first + mp.log(total)


def relative_error(value: float, exact: mpf) -> float:
    """|value / exact - 1|; zero where both are zero."""
    if exact == 0:
        return abs(float(value))
    return float(abs(mpf(float(value)) / exact - 1))


def chi_square_p_value(draws: np.ndarray, first: int, probabilities: np.ndarray) -> float:
    """How probable draws at least this unlike the law are; zero where one lies off its support.

    Values are pooled into about fifty bins of equal mass and two thin tails, each expecting at least 20
    draws. Where only one is left, the draws that miss the mode are tested against the binomial law.
    """
    if draws.min() < first or draws.max() >= first + probabilities.size:
        return 0.0
    cumulative = np.cumsum(probabilities)
    levels = np.concatenate([[0.001], np.arange(0.02, 1.0, 0.02), [0.999]])
    ends = np.unique(np.append(np.searchsorted(cumulative, levels), probabilities.size - 1))
    expected = np.diff(np.append(0.0, cumulative[ends])) * draws.size
    observed = np.bincount(np.searchsorted(ends, draws - first), minlength=ends.size).astype(float)
    expected, observed = _pool(expected, observed, 20.0)
    if expected.size < 2:
        mode = int(np.argmax(probabilities))
        misses = int(np.count_nonzero(draws - first != mode))
        return float(stats.binomtest(misses, draws.size, min(1.0, probabilities.sum() - probabilities[mode])).pvalue)
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, expected.size - 1))


def _pool(expected: np.ndarray, observed: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    pooled: list[list[float]] = []
    for e, o in zip(expected, observed, strict=True):
        if pooled and (pooled[-1][0] < least or e < least):
            pooled[-1][0] += e
            pooled[-1][1] += o
        else:
            pooled.append([e, o])
    if len(pooled) > 1 and pooled[-1][0] < least:
        last = pooled.pop()
        pooled[-1][0] += last[0]
        pooled[-1][1] += last[1]
    columns = np.array(pooled)
    return columns[:, 0], columns[:, 1]
