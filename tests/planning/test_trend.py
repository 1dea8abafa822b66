import math
from statistics import NormalDist

import numpy as np
import pytest

from countveil.planning import Trend, plan_trend
from countveil.planning.trend import MOST_PEOPLE
from countveil.privacy import PrivacyLevel

LEVEL = PrivacyLevel(1, 1)
TREND = Trend(LEVEL, 400, 3, 2.0, 0.2)
CASES = [
    TREND,
    TREND._replace(people=90, waves=2, change=-0.4),
    Trend(PrivacyLevel(1, 10), 3000, 6, 12.0, 0.03, per_wave=True, counts=5, variance_over_mean=2.0, spread=0.8),
    Trend(PrivacyLevel.zcdp("0.125"), 200, 4, 3.0, 0.4, variance_over_mean=0.7),
]


def slow_probability(trend, interval):
    """By the covariances of the totals, written out, and a line fitted to each of them alone."""
    means = [
        trend.mean * (1 + trend.change * (w if trend.per_wave else w / (trend.waves - 1))) for w in range(trend.waves)
    ]
    sigma = np.arange(-400, 401)
    if isinstance(trend.level, PrivacyLevel):
        weight = np.exp(-abs(sigma) * float(trend.level.rate))
    else:
        weight = np.exp(-float(trend.level.rho) * sigma**2)
    noise = (weight * sigma**2).sum() / weight.sum()
    covariance = np.empty((trend.waves, trend.waves))
    for a in range(trend.waves):
        for b in range(trend.waves):
            covariance[a, b] = trend.spread**2 * means[a] * means[b]
            if a == b:
                covariance[a, b] += trend.variance_over_mean * means[a] + trend.counts * noise
    line = [np.polyfit(range(trend.waves), each, 1)[0] * (trend.waves - 1) for each in np.eye(trend.waves)]
    change = trend.people * (np.array(line) @ means)
    error = math.sqrt(trend.people * (np.array(line) @ covariance @ line))
    return 1 - NormalDist().cdf(NormalDist().inv_cdf((1 + interval) / 2) - abs(change) / error)


@pytest.mark.parametrize("trend", CASES)
@pytest.mark.parametrize("interval", [0.9, 0.95])
def test_the_probability_is_that_of_a_line_through_totals(trend, interval):
    assert plan_trend(trend, interval).probability == pytest.approx(slow_probability(trend, interval), abs=1e-9)


@pytest.mark.parametrize("trend", CASES)
@pytest.mark.parametrize("power", [0.5, 0.8])
def test_what_is_enough_is_enough_and_little_less_is_not(trend, power):
    plan = plan_trend(trend, power=power)

    def probability(**changed):
        return plan_trend(trend._replace(**changed)).probability

    assert probability(people=plan.people - 1) < power <= probability(people=plan.people)
    assert power <= probability(waves=plan.waves)
    assert plan.waves == 2 or probability(waves=plan.waves - 1) < power
    assert power <= probability(level=plan.level) < power + 0.01
    assert type(plan.level) is type(trend.level)
    silent = trend._replace(level=PrivacyLevel(60, 1), people=plan.people_without_noise)
    assert power <= plan_trend(silent).probability
    assert plan_trend(silent._replace(people=silent.people - 1)).probability < power


def test_people_who_differ_in_every_wave_alike_cost_little():
    """Exactly the variance of what changes: the square of the spread, times that of the change."""
    alike, differ = (plan_trend(TREND._replace(spread=spread)).probability for spread in (0.0, 1.0))
    assert alike - 0.02 < differ < alike
    anew = plan_trend(TREND._replace(variance_over_mean=3.0)).probability  # as if they differed in each wave anew
    assert anew < differ - 0.2


def test_nothing_may_be_enough():
    plan = plan_trend(TREND._replace(change=1e-9))
    assert plan.people is plan.people_without_noise is plan.waves is plan.level is None
    assert f"no number of people up to {MOST_PEOPLE:,}, or no number of waves up to 1,000, or no level" in str(plan)
    assert plan_trend(TREND._replace(change=-0.1, per_wave=True, people=2)).waves is None


def test_it_is_said_in_words():
    assert str(plan_trend(TREND)).splitlines() == [
        "1:1: with 400 people in 3 waves the change from 2 to 2.4 is seen with probability 88%.",
        "  Enough for 80%: 313 people, or 2 waves, or the level 1:0.799; without noise, 171 people.",
        "  One person's reports of all 3 waves add up to epsilon 3 at N = 1.",
    ]
    assert "the level 10:7.99 (which hides practically nothing)" in str(
        plan_trend(TREND._replace(level=PrivacyLevel(1, 10)))
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"people": 1}, "people must be from 2 to 10000000000, got 1"),
     ({"waves": 1}, "waves must be from 2 to 1000, got 1"),
     ({"counts": 0}, "counts must be from 1 to 1000000, got 0"),
     ({"mean": 0.0}, "mean must be above 0 and at most 1e9, got 0.0"),
     ({"variance_over_mean": math.nan}, "variance_over_mean must be above 0 and at most 1e9, got nan"),
     ({"spread": -1.0}, "spread must be at least 0 and at most 1000, got -1.0"),
     ({"change": 0.0}, "change must be a number other than 0, at most 1e6, got 0.0"),
     ({"change": math.nan}, "change must be a number other than 0, at most 1e6, got nan"),
     ({"change": -1.5}, "change must leave at least 0 in the last wave, got -1 after -1.5"),
     ({"level": PrivacyLevel(1, 2**50)}, "level must have a rate of at least"),
     ({"interval": 1.0}, "interval must be at least 0.5 and at most 0.999, got 1.0"),
     ({"power": 0.05}, "power must be at least 0.5 and at most 0.999, got 0.05")],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(changed, message):
    asked = {name: changed.pop(name) for name in ("interval", "power") if name in changed}
    with pytest.raises(ValueError, match=message):
        plan_trend(TREND._replace(**changed), **asked)


def test_what_is_no_number_or_level_is_refused():
    with pytest.raises(TypeError, match=r"people must be a whole number, got 400\.5"):
        plan_trend(TREND._replace(people=400.5))
    with pytest.raises(TypeError, match="level must be a PrivacyLevel, got float"):
        plan_trend(TREND._replace(level=1.0))
