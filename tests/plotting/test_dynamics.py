"""Components over time, as tables have them."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.patches import Circle, FancyArrowPatch

import countveil as cv
from countveil import plotting
from countveil.plotting.dynamics import beside, circle_order, clear, largest
from countveil.plotting.factors import chosen
from tests.dates import TIME, YEARS, counts, model, the_fit
from tests.plotting.conftest import QUICK

COUNTS = np.random.default_rng(7).poisson(3.0, (20, 4))


@pytest.fixture(scope="module")
def fit():
    return cv.DynamicModel(3, **QUICK).fit(cv.PrivatizedCounts(COUNTS, 0.3))


def bands(ax):
    return [each for each in ax.collections if isinstance(each, PolyCollection)]


def test_lines_and_bands_are_those_of_the_table(fit):
    ax = plotting.activity(fit, which=[2, 0], interval=0.8)
    table = fit.activity(0.8)
    for k, line, band in zip([2, 0], ax.get_lines(), bands(ax), strict=True):
        rows = table[table["component"] == k]
        np.testing.assert_allclose(line.get_ydata(), rows["rate"])
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.min() == pytest.approx(rows["lower"].min())
        assert heights.max() == pytest.approx(rows["upper"].max())
        assert line.get_label() == f"component {k}"
    assert "80% intervals" in ax.get_ylabel()
    assert len(ax.get_xticks()) <= 12
    assert len(plotting.activity(fit).get_lines()) == 3


def test_seasons_are_those_of_the_table():
    data = cv.PrivatizedCounts(COUNTS, 0.3)
    fit = cv.DynamicModel(2, season=4, **QUICK).fit(data)
    ax, table = plotting.seasons(fit, which=[1]), fit.seasons()
    rows = table[table["component"] == 1]
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), rows["factor"])
    assert [each.get_text() for each in ax.get_xticklabels()] == ["1", "2", "3", "4"]
    assert "factor of the season" in ax.get_ylabel()
    assert len(bands(ax)) == 1


def test_a_naive_fit_has_no_bands():
    ax = plotting.activity(cv.DynamicModel(2, **QUICK).fit(cv.NaiveCounts(COUNTS)))
    assert not bands(ax)
    assert "no intervals" in ax.get_ylabel()


def test_what_has_no_time_or_is_unknown_is_refused(fit, tensor_fit):
    with pytest.raises(TypeError, match="fit must be a DynamicModel, got TensorModel"):
        plotting.activity(tensor_fit)
    with pytest.raises(TypeError, match="fit must be a DynamicModel, got TensorModel"):
        plotting.seasons(tensor_fit)
    with pytest.raises(ValueError, match="season must be given"):
        plotting.seasons(fit)
    with pytest.raises(ValueError, match="which must be numbers from 0 to 2, got"):
        plotting.activity(fit, which=[7])
    with pytest.raises(ValueError, match="interval"):
        plotting.activity(fit, interval=2.0)


def test_every_topic_has_a_panel_with_its_curve_and_band():
    fit = the_fit()
    table, axes = fit.effects.over_time(0.8), plotting.prevalence_over(fit, interval=0.8)
    assert axes.shape == (1, 3)
    for k, ax in zip(table["topic"].unique(), axes.flat, strict=True):
        rows = table[table["topic"] == k]
        (line,) = ax.get_lines()
        np.testing.assert_allclose(line.get_ydata(), rows["estimate"])
        (band,) = (each for each in ax.collections if isinstance(each, PolyCollection))
        corners = band.get_paths()[0].vertices[:, 1]
        assert (corners.min(), corners.max()) == pytest.approx((rows["lower"].min(), rows["upper"].max()))
        assert f"topic {k}" in ax.get_title()
        assert ax.get_title().endswith(f"{100 * rows['estimate'].iloc[-1]:.0f}%")
        assert ax.get_xlim() == (0, YEARS - 1)
    assert sum(" rises: " in ax.get_title() for ax in axes.flat) == 1
    assert sum(" falls: " in ax.get_title() for ax in axes.flat) == 1
    assert [each.get_text() for each in axes[0, 0].get_xticklabels()][::5] == ["1990", "1997"]


def test_chosen_topics_and_panels_that_stay_empty():
    axes = plotting.prevalence_over(the_fit(), [2, 0])
    assert [ax.get_title().split(":")[0].split(" ")[1] for ax in axes.flat] == ["2", "0"]
    fit = model(n_topics=4, draws=4, tune=4).fit(counts(), time=TIME)
    assert [ax.get_visible() for ax in plotting.prevalence_over(fit, [0, 1, 2, 3]).flat] == [True] * 4 + [False] * 2


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_what_has_no_intervals_is_drawn_without():
    naive = model(draws=4, tune=4).fit(
        cv.NaiveCounts(np.maximum(np.asarray(counts().reports), 0)), time=TIME.to_numpy()
    )
    axes = plotting.prevalence_over(naive)
    assert "no intervals: those of a naive fit" in " ".join(axes[0, 0].figure.get_supylabel().split())
    assert not any(ax.collections for ax in axes.flat)
    assert not any("rises" in ax.get_title() or "falls" in ax.get_title() for ax in axes.flat)


def test_others_are_refused():
    with pytest.raises(TypeError, match="fit must be a TopicModel, got str"):
        plotting.prevalence_over("fit")
    with pytest.raises(ValueError, match=r"which must be numbers from 0 to 2, got \[9\]"):
        plotting.prevalence_over(the_fit(), [9])


SERIES = np.random.default_rng(7).poisson([3.0, 1.0, 9.0], (3, 12, 3))


@pytest.fixture(scope="module")
def forecast_fit():
    modes = {"modes": ["place", "time", "item"]}
    return cv.DynamicModel(2, **modes, **QUICK).fit(cv.PrivatizedCounts(SERIES, 0.3))


def test_lines_bands_and_dots_are_those_of_tables_forecasts_and_reports(forecast_fit):
    ahead, reports = forecast_fit.forecast(4), SERIES.sum((0, 2))
    ax = plotting.forecast(forecast_fit, ahead, 1, along="place", reports=reports)
    past, to_come, dots = ax.get_lines()
    trend = forecast_fit.trend("place").query("place == 1")
    draws = ahead.counts.sum("item").sel(place=1).to_numpy()
    np.testing.assert_allclose(past.get_ydata(), trend["rate"])
    np.testing.assert_allclose(to_come.get_ydata(), np.median(draws, axis=0))
    np.testing.assert_array_equal(to_come.get_xdata(), [12, 13, 14, 15])
    np.testing.assert_array_equal(dots.get_ydata(), reports)
    assert ax.get_title() == "place 1"
    assert "90% intervals" in ax.get_ylabel()
    until_now, wide, narrow = (each.get_paths()[0].vertices[:, 1] for each in bands(ax))
    assert (until_now.min(), until_now.max()) == pytest.approx((trend["lower"].min(), trend["upper"].max()))
    for heights, (low, high) in ((wide, (0.05, 0.95)), (narrow, (0.25, 0.75))):
        ends = np.quantile(draws, [low, high], axis=0)
        assert (heights.min(), heights.max()) == pytest.approx((ends[0].min(), ends[1].max()))


def test_the_largest_of_the_last_axis_is_drawn_unless_another_is_named(forecast_fit):
    assert plotting.forecast(forecast_fit, forecast_fit.forecast(2)).get_title() == "item 2"


def test_forecasts_of_a_naive_fit_have_no_bands():
    forecast_fit = cv.DynamicModel(2, **QUICK).fit(cv.NaiveCounts(SERIES[0]))
    ax = plotting.forecast(forecast_fit, forecast_fit.forecast(2))
    assert not bands(ax)
    assert "no intervals" in ax.get_ylabel()


def test_what_is_unknown_is_refused_by_name(forecast_fit, tensor_fit):
    ahead = forecast_fit.forecast(2)
    with pytest.raises(TypeError, match="fit must be a DynamicModel, got TensorModel"):
        plotting.forecast(tensor_fit, ahead)
    with pytest.raises(ValueError, match="along must be one of"):
        plotting.forecast(forecast_fit, ahead, along="time")
    with pytest.raises(ValueError, match="label must be one of the item axis, got 7"):
        plotting.forecast(forecast_fit, ahead, 7)
    with pytest.raises(ValueError, match="reports must be 12 to 14 numbers, one per step"):
        plotting.forecast(forecast_fit, ahead, reports=SERIES[0])


def test_only_the_last_steps_are_drawn_if_asked(forecast_fit):
    ahead, reports = forecast_fit.forecast(2), SERIES.sum((0, 2))
    lines = plotting.forecast(forecast_fit, ahead, 1, along="place", reports=reports, last=5).get_lines()
    whole = plotting.forecast(forecast_fit, ahead, 1, along="place", reports=reports).get_lines()
    for short, long, start in zip(lines, whole, (7, 0, 7), strict=True):
        np.testing.assert_allclose(short.get_ydata(), long.get_ydata()[start:])
    assert lines[1].get_xdata().tolist() == [5, 6]
    with pytest.raises(ValueError, match="last must be 1 or more, got 0"):
        plotting.forecast(forecast_fit, ahead, last=0)


MOVING = np.random.default_rng(7).poisson([3.0, 1.0, 9.0, 4.0], (20, 4))
ITEMS = ["ant", "bee", "$x_1$", "cow"]


@pytest.fixture(scope="module")
def moving_fit():
    return cv.DynamicModel(3, **QUICK).fit(cv.PrivatizedCounts(MOVING, 0.3, labels=[None, ITEMS]))


def drawn(ax, kind):
    return [each for each in ax.patches if isinstance(each, kind)]


def texts(ax):
    return [each.get_text() for each in ax.texts]


def test_arrows_are_as_wide_as_the_shares_of_the_table(moving_fit):
    ax = plotting.transitions(moving_fit, least=0.0)
    table = moving_fit.transitions()
    table = table[table["component"] != table["previous_component"]]
    widths = sorted(arrow.get_linewidth() for arrow in drawn(ax, FancyArrowPatch))
    np.testing.assert_allclose(np.array(widths) / widths[-1], np.sort(table["share"]) / table["share"].max())
    for share in table["share"]:
        assert f"{share:.0%}" in texts(ax)


def test_an_arrow_goes_from_a_component_to_where_its_activity_goes(moving_fit):
    table = moving_fit.transitions()
    most = table[table["component"] != table["previous_component"]].nlargest(1, "share").iloc[0]
    ax = plotting.transitions(moving_fit, least=float(most["share"]))
    (arrow,) = drawn(ax, FancyArrowPatch)
    places = {
        int(text): place
        for text, place in ((each.get_text(), each.get_position()) for each in ax.texts)
        if text.isdigit()
    }
    ends = arrow._posA_posB
    np.testing.assert_allclose(ends[0], places[most["previous_component"]])
    np.testing.assert_allclose(ends[1], places[most["component"]])


def test_circles_grow_with_shares_and_have_names_and_what_stays(moving_fit):
    ax = plotting.transitions(moving_fit)
    known, stays = (
        moving_fit.parts.support(axis="item").set_index("component")["prevalence"],
        moving_fit.transitions(),
    )
    radii = dict(zip(order_of(ax), [circle.get_radius() for circle in drawn(ax, Circle)], strict=True))
    assert sorted(radii, key=radii.get) == known.sort_values().index.tolist()
    for k in known.index:
        (said,) = [text for text in texts(ax) if text.startswith(f"component {k}")]
        own = stays[(stays["component"] == k) & (stays["previous_component"] == k)]["share"].iloc[0]
        assert said.endswith(f"{own:.0%} stays")
        best = moving_fit.parts.supported("item", 3).query("component == @k")["member"]
        assert ", ".join(best).replace("$", r"\$") in said


def order_of(ax):
    return [int(text) for text in texts(ax) if text.isdigit()]


def test_the_same_fit_has_the_same_picture(moving_fit):
    first, again = (plotting.transitions(moving_fit, which=which) for which in ([2, 0], [2, 0]))
    assert [each.get_position() for each in first.texts] == [each.get_position() for each in again.texts]
    assert sorted(order_of(first)) == [0, 2]
    assert drawn(plotting.transitions(moving_fit, which=[1]), FancyArrowPatch) == []


def test_neighbours_on_the_circle_exchange_most():
    shares = np.full((4, 4), 0.01)
    for a, b in ((0, 2), (2, 1), (1, 3)):
        shares[a, b] = 0.5
    shares[3, 0] = np.nan  # no chain has both
    assert circle_order(shares) == [0, 2, 1, 3]


def test_two_arrows_between_the_same_components_are_told_apart():
    a, b = np.array([0.0, 0.0]), np.array([1.0, 0.0])
    assert (beside(a, b)[:, 1] < 0.0).all()
    assert (beside(b, a)[:, 1] > 0.0).all()


def test_numbers_do_not_lie_on_each_other():
    places = np.array([[0.0, 0.0], [0.3, 0.0], [0.6, 0.0]])
    np.testing.assert_array_equal(clear(places, []), places[0])
    np.testing.assert_array_equal(clear(places, [places[0]]), places[1])
    np.testing.assert_array_equal(clear(places, [places[0], places[1] + 0.01]), places[2])


def test_components_that_few_chains_have_are_left_out_unless_asked_for():
    known = pd.DataFrame({"support": [1.0, 0.5, 0.75], "prevalence": [0.2, 0.6, 0.3]})
    assert largest(known) == [2, 0]
    assert chosen(known.index.tolist(), [1, 1]) == [1]
    with pytest.raises(ValueError, match="that more than half of its chains have, got none"):
        largest(known[known["support"] == 0.5])


def test_a_tensor_is_labelled_along_all_its_axes_or_one():
    counts = np.random.default_rng(3).poisson(2.0, (3, 8, 2))
    data = cv.PrivatizedCounts(counts, 0.3, labels=[list("abc"), None, ["x", "y"]])
    moving_fit = cv.DynamicModel(2, modes=["who", "time", "what"], **QUICK).fit(data)
    for mode, n in ((None, 2), ("who", 3)):
        (said,) = [
            text for text in texts(plotting.transitions(moving_fit, mode=mode)) if text.startswith("component 0")
        ]
        assert len(said.split("\n")[1].split(", ")) == n
    with pytest.raises(ValueError, match=r"mode must be one of \['who', 'what'\], got 'time'"):
        plotting.transitions(moving_fit, mode="time")


def test_what_has_no_transitions_or_is_unknown_is_refused(moving_fit, tensor_fit):
    with pytest.raises(TypeError, match="fit must be a DynamicModel, got TensorModel"):
        plotting.transitions(tensor_fit)
    with pytest.raises(ValueError, match="which must be numbers from 0 to 2, got"):
        plotting.transitions(moving_fit, which=[7])
    with pytest.raises(ValueError, match="least must be between 0 and 1, got"):
        plotting.transitions(moving_fit, least=2.0)
