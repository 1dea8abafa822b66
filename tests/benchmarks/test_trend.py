"""Planned probabilities against simulated studies, whose interval comes from how people's changes differ."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from countveil.planning import Trend, plan_trend
from countveil.privacy import PrivacyLevel

SPEC = importlib.util.spec_from_file_location("trend", Path(__file__).parents[2] / "benchmarks" / "trend.py")
trends = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(trends)


@pytest.mark.parametrize("name", ["400 people", "a decrease", "10 waves", "in bursts", "people differ"])
def test_the_plan_holds(name):
    trend = trends.CASES[name]._replace(people=150)
    each = trends.changes(trend, 2000, False, np.random.default_rng(1))
    assert trends.seen(each, math.copysign(1.0, trend.change), 0.9) == pytest.approx(
        plan_trend(trend).probability, abs=0.04
    )
    wide = trends.seen(each, math.copysign(1.0, trend.change), 0.95)
    assert wide == pytest.approx(plan_trend(trend, 0.95).probability, abs=0.04)


def test_reports_that_were_cut_at_zero_are_as_good():
    trend = Trend(PrivacyLevel(1, 1), 400, 2, 0.05, 3.0)
    signed, cut = (
        trends.changes(trend, 500, truncate, np.random.default_rng(1)).sum(axis=1) for truncate in (False, True)
    )
    for each in (signed, cut):
        assert each.mean() == pytest.approx(400 * 0.15, abs=5 * each.std() / math.sqrt(500))
    assert cut.std() < 0.9 * signed.std()
