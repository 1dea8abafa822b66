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
    assert not any(alt.startswith("Seasonal factors") for alt in alts)
    assert NASTY not in page
    assert "<script" not in page


def test_forecast_counts_are_those_of_the_forecast_s_own_table(ahead, fit, page):
    spread = ahead._replace(counts=1000 * ahead.counts + 7 * ahead.counts["draw"])  # no ties
    table = spread.table().set_index(["time", "item"])
    found = dynamics_of(fit, spread)
    assert [step for step, _ in found.numbers] == ["2012", "2013"]
    for step, counts in found.numbers:
        for label, said in zip(found.fanned, counts, strict=True):
            row = table.loc[(step, label)]
            assert said == f"{row['median']:,.0f} ({row['lower']:,.0f} to {row['upper']:,.0f})"
    assert " ".join(["2012", *dynamics_of(fit, ahead).numbers[0][1]]) in read(page).text


def test_a_season_is_drawn_with_its_peak():
    yearly = np.random.default_rng(3).poisson(np.tile([20.0, 20.0, 90.0, 20.0], 6)[:, None] * [1.0, 2.0, 3.0])
    fit = cv.DynamicModel(1, season=4, **QUICK).fit(cv.ExactCounts(yearly))
    alts = [each["alt"] for each in read(render(fit)).named("img")]
    [said] = [alt for alt in alts if alt.startswith("Seasonal factors")]
    factors = fit.seasons().set_index("season")["factor"]
    assert f"component 0 is highest in 3 ({factors.max():.2f}), lowest in {factors.idxmin()}." in said


def test_without_a_forecast_there_are_no_fans(fit):
    found = dynamics_of(fit, None)
    assert found.fans == found.fanned == found.numbers == []


def test_a_naive_fit_has_no_intervals():
    fit = cv.DynamicModel(2, **QUICK).fit(cv.NaiveCounts(COUNTS))
    found = dynamics_of(fit, fit.forecast(1))
    assert not any("(" in stays + goes for _, stays, goes in found.rows)
    assert all(count.isdigit() for _, counts in found.numbers for count in counts)


def test_a_forecast_of_something_else_is_refused(fit, ahead, topic_fit):
    assert dynamics_of(topic_fit, None) is None
    with pytest.raises(ValueError, match="forecast must be None for a TopicModel"):
        dynamics_of(topic_fit, ahead)
    other = ahead._replace(counts=ahead.counts.assign_coords(item=list("vwxyz")))
    with pytest.raises(ValueError, match=r"the labels of the fit along 'item', got \['v', .* and not \["):
        dynamics_of(fit, other)
