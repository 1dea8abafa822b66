"""Before a study in waves: is a trend seen in the totals, and how many people or waves does it take?"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from countveil.privacy import PrivacyLevel
from countveil.privacy.exact import rounded_up
from countveil.privacy.level import Level
from countveil.privacy.mechanisms import DiscreteGaussian, TwoSidedGeometric

MOST_WAVES = 1000
"""As many as a study file can name."""
MOST_PEOPLE = 10**10


class Trend(NamedTuple):
    """A trend of totals, which is to be planned for.

    The same ``people`` report in each of the ``waves``. ``mean`` is what is expected of one person in the first wave,
    in sum over this many ``counts``, each of which is privatized at this ``level``. ``change`` is relative to the
    first wave, 0.1 for 10% more: in equal steps until the last wave or, with ``per_wave``, in every step.

    People's expectations differ by factors that last, with standard deviation ``spread`` around 1, and change in
    proportion. Around it, a person's sum in one wave has variance ``variance_over_mean`` times its expectation (1:
    Poisson; the number in ``fit.dispersion()`` if it comes in bursts), anew in every wave.
    """

    level: Level
    people: int
    waves: int
    mean: float
    change: float
    per_wave: bool = False
    counts: int = 1
    variance_over_mean: float = 1.0
    spread: float = 0.0

    @property
    def means(self) -> np.ndarray:
        """(W,) what is expected of one person in each wave."""
        steps = np.arange(self.waves) / (1 if self.per_wave else self.waves - 1)
        return self.mean * (1.0 + self.change * steps)


class TrendPlan(NamedTuple):
    """What ``plan_trend`` found; None where no number and no level is enough.

    ``probability`` is that of seeing the change. Enough to see it with the probability that was asked for: ``people``,
    ``people_without_noise``, ``waves`` or another ``level`` of the same kind, each with the rest of ``trend`` as it is.
    """

    trend: Trend
    power: float
    probability: float
    people: int | None
    people_without_noise: int | None
    waves: int | None
    level: Level | None

    def __str__(self) -> str:
        trend, means = self.trend, self.trend.means
        people = _up_to(self.people, "people", MOST_PEOPLE)
        waves = _up_to(self.waves, "waves", MOST_WAVES)
        level = "no level" if self.level is None else f"the level {self.level.spelt()}"
        if self.level is not None and self.level.hides():
            level += f" (which hides {self.level.hides()})"
        return (
            f"{trend.level.spelt()}: with {trend.people:,} people in {trend.waves} waves the change from "
            f"{means[0]:.3g} to {means[-1]:.3g} is seen with probability {self.probability:.0%}.\n"
            f"  Enough for {self.power:.0%}: {people}, or {waves}, or {level}; without noise, "
            f"{_up_to(self.people_without_noise, 'people', MOST_PEOPLE)}.\n"
            f"  One person's reports of all {trend.waves} waves add up to "
            f"{trend.level.repeated(trend.waves).in_numbers()}."
        )


def plan_trend(trend: Trend, interval: float = 0.9, power: float = 0.8) -> TrendPlan:
    """With which probability the totals show a trend, and what it takes to show it with probability ``power``.

        total_w = sum over people of their reports;   change = sum_w c_w total_w   (least squares line, first to last)
        E[change] = P (m_W - m_1),   Var[change] = P u
        u = sum_w c_w^2 (phi m_w + D v) + spread^2 (m_W - m_1)^2
        probability = Phi(|E| / sqrt(Var) - z)

    for P people, D counts with noise of variance v, phi the variance over the mean, z the normal quantile of the
    interval. A change is seen if its interval excludes zero on the side of the change. Totals are taken to be normal.
    Reports may have been cut at zero: those of zero then count as the mean of what was cut.

    Raises:
        TypeError: people, waves or counts are not whole numbers, or the level is none.
        ValueError: an argument outside its range, which the message names; a change after which less than nothing is
            expected; a level whose noise is not drawn.
    """
    _check(trend)
    for name, value in (("interval", interval), ("power", power)):
        if not 0.5 <= value <= 0.999:
            raise ValueError(f"{name} must be at least 0.5 and at most 0.999, got {value}")
    z, z_power = NormalDist().inv_cdf((1 + interval) / 2), NormalDist().inv_cdf(power)
    return TrendPlan(
        trend,
        power,
        NormalDist().cdf(_errors(trend) - z),
        _people(trend, z + z_power, sum(_variances(trend))),
        _people(trend, z + z_power, _variances(trend)[0]),
        _waves(trend, z + z_power),
        _level(trend, z + z_power),
    )


def _contrast(waves: int) -> np.ndarray:
    """(W,) weights of the totals in the change, from first to last wave, of the least squares line through them."""
    steps = np.arange(waves) - (waves - 1) / 2
    return (waves - 1) * steps / (steps @ steps)


def _variances(trend: Trend) -> tuple[float, float]:
    """Of one person's part in the change: the variance of the counts, and that of the noise."""
    c = _contrast(trend.waves)
    counts = trend.variance_over_mean * float(c**2 @ trend.means) + (trend.spread * _effect(trend)) ** 2
    return counts, float(trend.counts * _noise(trend.level) * (c @ c))


def _noise(level: Level) -> float:
    """The variance of the noise of one count."""
    mechanism = level.mechanism
    assert isinstance(mechanism, TwoSidedGeometric | DiscreteGaussian)
    return mechanism.standard_deviation**2


def _effect(trend: Trend) -> float:
    """The size of one person's expected change."""
    return float(abs(trend.means[-1] - trend.means[0]))


def _errors(trend: Trend) -> float:
    """The expected change in standard errors."""
    return _effect(trend) * math.sqrt(trend.people / sum(_variances(trend)))


def _people(trend: Trend, errors: float, variance: float) -> int | None:
    """How many make the change as large as this many standard errors."""
    root, effect = errors * math.sqrt(variance), _effect(trend)
    if root > effect * math.sqrt(MOST_PEOPLE):
        return None
    return max(1, math.ceil((root / effect) ** 2))


def _waves(trend: Trend, errors: float) -> int | None:
    """The same of waves; a decrease per wave goes on as long as something is left."""
    for waves in range(2, MOST_WAVES + 1):
        longer = trend._replace(waves=waves)
        if longer.means[-1] < 0.0:
            return None
        if _errors(longer) >= errors:
            return waves
    return None


def _level(trend: Trend, errors: float) -> Level | None:
    """The level, of the same kind and N, at which the change is as large as this many standard errors."""
    c = _contrast(trend.waves)
    left = trend.people * (_effect(trend) / errors) ** 2 - _variances(trend)[0]
    variance = left / (trend.counts * float(c @ c))
    if variance <= 0.0:
        return None
    if isinstance(trend.level, PrivacyLevel):  # the variance is 1/(2 sinh(rate/2)^2)
        rate = 2.0 * math.asinh(1.0 / math.sqrt(2.0 * variance))
        return PrivacyLevel(rounded_up(rate * float(trend.level.precision)), trend.level.precision)
    return PrivacyLevel.zcdp(rounded_up(0.5 / variance))


def _up_to(number: int | None, what: str, most: int) -> str:
    """Such as "400 people", or that there is no such number."""
    return f"no number of {what} up to {most:,}" if number is None else f"{number:,} {what}"


def _check(trend: Trend) -> None:
    if not isinstance(trend.level, Level):
        raise TypeError(f"level must be a PrivacyLevel, got {type(trend.level).__name__}")
    trend.level.check_drawn()
    for name, least, most in (("people", 2, MOST_PEOPLE), ("waves", 2, MOST_WAVES), ("counts", 1, 10**6)):
        number = getattr(trend, name)
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TypeError(f"{name} must be a whole number, got {number!r}")
        if not least <= number <= most:
            raise ValueError(f"{name} must be from {least} to {most}, got {number}")
    for name in ("mean", "variance_over_mean"):
        value = getattr(trend, name)
        if not 0.0 < value <= 1e9:
            raise ValueError(f"{name} must be above 0 and at most 1e9, got {value}")
    if not 0.0 <= trend.spread <= 1e3:
        raise ValueError(f"spread must be at least 0 and at most 1000, got {trend.spread}")
    if not (trend.change and abs(trend.change) <= 1e6):
        raise ValueError(f"change must be a number other than 0, at most 1e6, got {trend.change}")
    if trend.means[-1] < 0.0:
        raise ValueError(
            f"change must leave at least 0 in the last wave, got {trend.means[-1]:.3g} after {trend.change}"
        )
