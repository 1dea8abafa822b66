"""Components over time on the page."""

import numpy as np
import pytest

import countveil as cv
from countveil.report import render
from countveil.report.dynamics import FANS, STABLE, dynamics_of
from countveil.report.sections import percent
from tests.report.conftest import NASTY, QUICK
from tests.report.test_page import read

COUNTS = np.random.default_rng(7).poisson([3.0, 1.0, 9.0, 4.0, 2.0], (12, 5))
ITEMS = ["a", "b", NASTY, "c", "d"]


@pytest.fixture(scope="module")
def fit():
    labels = [[f"{2000 + t}" for t in range(12)], ITEMS]
    return cv.DynamicModel(3, **QUICK).fit(cv.PrivatizedCounts(COUNTS, 0.3, labels=labels))


@pytest.fixture(scope="module")
def ahead(fit):
    return fit.forecast(2, draws=20)


@pytest.fixture(scope="module")
def page(fit, ahead):
    return render(fit, forecast=ahead)


def test_transitions_are_said_with_their_intervals(fit, page):
    text, table, known = read(page).text, fit.transitions(), fit.parts.support(axis="time")
    stable = known.loc[known["support"] > STABLE, "component"]
    assert "Over time" in text
    assert len(stable)
    assert [row[0] for row in dynamics_of(fit, None).rows] == [
        f"Component {k}" for k in known.loc[stable.index, "component"]
    ]
    for row in table[table["component"].isin(stable) & table["previous_component"].isin(stable)].itertuples():
        said = f"{percent(row.share)} ({percent(row.lower)} to {percent(row.upper)})"
        if row.component == row.previous_component:
            assert f"Component {row.component} {said}" in text
        elif row.share >= 0.02:
            assert f"{row.component}: {said}" in text


def test_pictures_are_of_activity_transitions_and_the_largest_forecasts(fit, ahead, page):
    alts = [each["alt"] for each in read(page).named("img")]
    assert sum(alt.startswith("Expected counts in each time step from 2000 to 2011") for alt in alts) == 1
    assert sum(alt.startswith("Components as circles") for alt in alts) == 1
    fans = [alt for alt in alts if "a fan chart of the forecast" in alt]
    means = ahead.rates.sum(["draw", "time"]).to_numpy()
    assert [alt.split(":")[0] for alt in fans] == [f"item {ITEMS[i]}" for i in np.argsort(-means)[:FANS]]
    draws = ahead.counts.isel(item=int(np.argmax(means)))
    assert f"2012: {np.median(draws[:, 0]):,.0f}, 2013: {np.median(draws[:, 1]):,.0f}" in fans[0]
    assert NASTY not in page
    assert "<script" not in page


def test_without_a_forecast_there_are_no_fans(fit):
    assert dynamics_of(fit, None).fans == []


def test_a_naive_fit_has_no_intervals():
    fit = cv.DynamicModel(2, **QUICK).fit(cv.NaiveCounts(COUNTS))
    assert not any("(" in stays + goes for _, stays, goes in dynamics_of(fit, None).rows)


def test_a_forecast_of_something_else_is_refused(fit, ahead, topic_fit):
    assert dynamics_of(topic_fit, None) is None
    with pytest.raises(ValueError, match="forecast must be None for a TopicModel"):
        dynamics_of(topic_fit, ahead)
    other = ahead._replace(counts=ahead.counts.assign_coords(item=list("vwxyz")))
    with pytest.raises(ValueError, match=r"the labels of the fit along 'item', got \['v', .* and not \["):
        dynamics_of(fit, other)
