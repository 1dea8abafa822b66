"""DynamicModel: components over time, from reports of matrices and tensors, to a file and back."""

import re

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit import forecasts
from countveil.fit.component_tables import component_counts
from countveil.fit.forecasts import over_cells
from countveil.fit.results import check_file
from countveil.inference.posterior import factor_draws, parameter_draws
from countveil.inference.starts.given import Given
from countveil.models.priors import GammaChainPrior
from tests.joint import draw_reports, short_choices

QUICK = {"draws": 40, "tune": 60, "chains": 2, "seed": 1, "threads": 1, "progress": False}
BRIEF = QUICK | {"draws": 4, "tune": 4}
MONTHS = [str(month) for month in pd.period_range("2001-11", periods=30, freq="M")]
ITEMS = list("abcdefgh")
TRANSITION = np.array([[0.97, 0.05], [0.03, 0.95]])
pytestmark = [pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"), pytest.mark.long]


@pytest.fixture(scope="module")
def planted():
    """(activity (30, 2), components (2, 8), rates, reports with a month masked, mask)."""
    rng = np.random.default_rng(3)
    theta = np.empty((30, 2))
    theta[0] = 30.0, 12.0
    for t in range(1, 30):
        theta[t] = rng.gamma(TRANSITION @ theta[t - 1])
    phi = np.array([[0.4, 0.3, 0.2, 0.1, 0, 0, 0, 0], [0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4]])
    rates = 4.0 * theta @ phi
    mask = np.zeros(rates.shape, dtype=bool)
    mask[14] = True
    return 4.0 * theta, phi, rates, draw_reports(rates, np.asarray(0.3), rng), mask


@pytest.fixture(scope="module")
def fit(planted):
    reports, mask = planted[3:]
    data = cv.PrivatizedCounts(pd.DataFrame(reports, index=MONTHS, columns=ITEMS), 0.3, mask=mask)
    return cv.DynamicModel(3, **QUICK).fit(data)


def test_rates_and_activity_are_found(fit, planted):
    activity, _, rates, _, mask = planted
    found = fit.rate().to_numpy()
    assert np.abs(found - rates)[~mask].sum() < 0.25 * rates[~mask].sum()
    assert np.abs(found[14] - rates[14]).sum() < 0.5 * rates[14].sum()  # a masked month is smoothed over
    table = fit.activity()
    assert list(table.columns) == ["component", "time", "rate", "lower", "upper"]
    assert list(table["time"][:30]) == MONTHS
    np.testing.assert_allclose(table.groupby("time")["rate"].sum().sum(), activity.sum(), rtol=0.1)
    assert ((table["lower"] <= table["rate"]) & (table["rate"] <= table["upper"])).all()


def test_components_sum_to_one_and_transitions_too(fit):
    draws = fit.posterior["posterior"]
    np.testing.assert_allclose(draws["factor_item"].sum("item"), 1.0, rtol=1e-5)
    np.testing.assert_allclose(draws["transition"].sum("component"), 1.0)
    assert draws["transition"].dims == ("chain", "draw", "component", "previous_component")
    assert draws["activity"].dims == ("chain", "draw", "time", "component")
    assert fit.time_axis == "time"


def test_transitions_are_between_the_components_of_other_tables(fit):
    table = fit.transitions()
    assert list(table.columns) == ["previous_component", "component", "share", "lower", "upper"]
    totals = table.groupby("previous_component")["share"].sum()
    assert (totals < 1.05).all()
    kept = table[(table["previous_component"] == 0) & (table["component"] == 0)]["share"].item()
    assert kept > 0.5  # the largest component mostly stays what it is
    top = fit.parts.members("item", 2)
    assert set(top[top["component"] == 0]["member"]) <= set("abc")


def test_hyperparameters_move_with_their_components(fit):
    """The order of components is the same in all variables of a draw: activity goes on by its own transitions."""
    draws = fit.posterior["posterior"].isel(draw=-1)
    for chain in draws["chain"].to_numpy():
        x = draws["activity"].sel(chain=chain).to_numpy().astype(float)
        expected = x[:-1] @ draws["transition"].sel(chain=chain).to_numpy().T
        own = np.abs(expected - x[1:]).sum()
        turned = np.abs(expected[:, [1, 2, 0]] - x[1:]).sum()
        assert own < turned


def test_a_fit_comes_back_from_its_file(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    found = cv.DynamicModel.load(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(found.activity(), fit.activity())
    pd.testing.assert_frame_equal(found.transitions(), fit.transitions())
    pd.testing.assert_frame_equal(found.forecast(2).table(), fit.forecast(2).table())


def test_a_fit_goes_on_from_its_checkpoint(planted, tmp_path):
    data = cv.PrivatizedCounts(planted[3], 0.3)
    whole = cv.DynamicModel(2, **BRIEF).fit(data)
    model = cv.DynamicModel(2, **BRIEF)
    path = tmp_path / "chains.npz"
    model.fit(data, checkpoint=path)
    again = cv.DynamicModel(2, **BRIEF).fit(data, checkpoint=path, resume=True)
    np.testing.assert_array_equal(whole.rate(), again.rate())
    with_threads = cv.DynamicModel(2, **BRIEF | {"threads": 2}).fit(data)
    np.testing.assert_array_equal(whole.rate(), with_threads.rate())


def test_a_fit_starts_at_another_one_and_chains_are_stacked(fit, planted):
    data = cv.PrivatizedCounts(planted[3], 0.3)
    found = cv.DynamicModel(3, start=fit, method=cv.Gibbs(weights="stacked"), **BRIEF).fit(data)
    assert found.weights_.sum() == pytest.approx(1.0)
    assert len(found.activity()) == 90
    assert len(found.forecast(1).table()) == 8


@pytest.mark.parametrize(
    ("options", "dims"),
    [
        ({}, ["time", "mode1", "mode2"]),
        ({"time": 2}, ["mode0", "mode1", "time"]),
        ({"modes": ["source", "target", "time"]}, ["source", "target", "time"]),
        ({"modes": ["source", "target", "year"], "time": "year"}, ["source", "target", "year"]),
        ({"modes": ["source", "target", "year"], "time": 2}, ["source", "target", "year"]),
        ({"modes": ["year", "source", "target"]}, ["year", "source", "target"]),
    ],
)
def test_time_is_the_first_axis_or_the_one_that_is_named(planted, options, dims):
    reports = planted[3].reshape(30, 2, 4)
    place = 0 if not options or dims[0] == "year" else 2
    data = cv.PrivatizedCounts(np.moveaxis(reports, 0, place), 0.3)
    found = cv.DynamicModel(2, **options, **BRIEF).fit(data)
    assert list(found._reader.axes) == dims
    assert found.time_axis == dims[place]
    assert found.posterior["posterior"]["activity"].sizes[dims[place]] == 30
    assert len(found.activity()) == 60


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"time": "year"}, "time must be one of modes, or a number, got 'year' without modes"),
        ({"time": "year", "modes": ["day", "item"]}, r"time must be one of \['day', 'item'\], or a number, got 'year'"),
        ({"time": 2}, "time must be an axis of the data from 0 to 1, got 2"),
        ({"modes": ["time"]}, "modes must name each of the 2 axes of the data once"),
        ({"modes": ["time", "activity"]}, r"own arrays, got \['activity'\]"),
        ({"prior_rate": 1.0}, "prior_rate must be None"),
        ({"method": "em"}, r"method must be one of \('gibbs', 'augmented-gibbs'\) for a chain in time, got 'em'"),
        ({"steady": "yes"}, "steady must be"),
        ({"day_first": "yes"}, "day_first must be True or False, got 'yes'"),
        ({"background": True, "n_components": 1}, "background must be False for one component"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(planted, options, said):
    with pytest.raises(ValueError, match=said):
        cv.DynamicModel(**{"n_components": 2} | BRIEF | options).fit(cv.PrivatizedCounts(planted[3], 0.3))


SPELT = [
    ["2001-11", "2001-12", "2002-01", "2002-02", "2002-03", "2002-04"],
    ["01.11.2001", "01.12.2001", "01.01.2002", "01.02.2002", "01.03.2002", "01.04.2002"],
    ["11/1/2001", "12/1/2001", "1/1/2002", "2/1/2002", "3/1/2002", "4/1/2002"],
    ["Nov 2001", "Dec 2001", "Jan 2002", "Feb 2002", "Mar 2002", "Apr 2002"],
    ["2001-W48", "2001-W49", "2001-W50", "2001-W51", "2001-W52", "2002-W1"],
]
ORDER = [3, 0, 4, 1, 5]  # of the rows of a file; the third step has none


def in_order_and_as_in_the_file(labels, **options):
    """The same reports with their third step masked, as rows in order, and without it in the order of a file."""
    reports = draw_reports(np.full((6, 3), 4.0), np.asarray(0.3), np.random.default_rng(5))
    mask = np.zeros(reports.shape, dtype=bool)
    mask[2] = True
    frame = pd.DataFrame(reports, index=labels, columns=list("abc"))
    whole = cv.PrivatizedCounts(frame, 0.3, mask=mask)
    return whole, cv.PrivatizedCounts(frame.iloc[ORDER], 0.3)


@pytest.mark.parametrize("labels", SPELT)
def test_dates_are_put_in_order_whatever_their_spelling_and_gaps_are_masked(labels):
    whole, given = in_order_and_as_in_the_file(labels)
    found, note = cv.DynamicModel(2, day_first=False).in_time(given)
    assert found.row_labels == labels
    for name in ("indptr", "columns", "reports", "level_d", "exposure_d"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    assert note.startswith(f"Time steps are put in order, from {labels[0]} to {labels[5]}. 1 of 6 ")
    assert note.endswith(f"has no data: {labels[2]} is treated as missing.")


def test_a_fit_of_dates_in_any_order_is_that_of_the_series(tmp_path):
    whole, given = in_order_and_as_in_the_file(SPELT[3])
    wanted = cv.DynamicModel(2, **BRIEF).fit(whole)
    with pytest.warns(UserWarning, match="in order.* 1 of 6 months has no data: Jan 2002 is treated as missing"):
        found = cv.DynamicModel(2, **BRIEF).fit(given)
    assert found._reader.axes["time"].tolist() == SPELT[3]
    np.testing.assert_array_equal(found.rate(), wanted.rate())
    np.testing.assert_array_equal(found.count_intervals(given)["mean"], wanted.count_intervals(whole)["mean"])
    assert found.forecast(2).table()["time"].unique().tolist() == ["May 2002", "Jun 2002"]
    found.save(tmp_path / "fit.nc")
    assert cv.DynamicModel.load(tmp_path / "fit.nc")._observed(given).row_labels == SPELT[3]


def test_years_across_columns_are_time_if_stated():
    counts = pd.DataFrame(np.arange(8).reshape(2, 4), index=["a", "b"], columns=["2001", "2002", "2005", "2003"])
    data = cv.ExactCounts(counts)
    said = r"labels of axis 1 are dates \(2001, ...\), got None: time=1 \(--time 1\), or time=0 \(--time 0\)"
    with pytest.raises(ValueError, match=said):
        cv.DynamicModel(1, **BRIEF).fit(data)
    found, note = cv.DynamicModel(1, time=1).in_time(data)
    assert note.endswith("1 of 5 years has no data: 2004 is treated as missing.")
    assert found.column_labels == ["2001", "2002", "2003", "2004", "2005"]
    assert found.reports.reshape(-1).tolist() == [1, 3, -1, 2, 4, 5, 7, -1, 6]  # 0 is not stored
    assert cv.DynamicModel(1, time=0).in_time(data)[0] is data


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (["2007", "2007", "2008"], "one label each, got '2007' and '2007'"),
        (["1/2/2001", "1/3/2001", "1/4/2001"], "got '1/2/2001': state day_first=True or day_first=False"),
        (["2001-01", "2001-02", "March"], "one form, .* got '2001-01' and 'March'"),
    ],
)
def test_steps_that_cannot_be_put_in_order_are_refused_in_words(steps, said):
    data = cv.PrivatizedCounts(np.ones((2, 3), dtype=int), 0.3, labels=[["a", "b"], steps])
    with pytest.raises(ValueError, match=said):
        cv.DynamicModel(1, time=1, **BRIEF).fit(data)


def test_steps_that_do_not_say_when_they_are_may_be_in_any_order_which_is_said():
    for steps, words in [
        (["spring", "summer", "autumn"], "in the order of the data, .*: spring, summer, autumn"),
        (["11", "12", "1"], "in the order of the data"),
        (["w2", "w1", "w3"], "in the order of the data"),
        (["w1", "w3", "w10"], "^$"),
    ]:
        data = cv.PrivatizedCounts(np.ones((3, 2), dtype=int), 0.3, row_labels=steps)
        found, note = cv.DynamicModel(1).in_time(data)
        assert found is data
        assert re.search(words, note), steps
    months = cv.PrivatizedCounts(np.ones((3, 2), dtype=int), 0.3, row_labels=["Apr", "Feb", "Mar"])
    assert cv.DynamicModel(1).in_time(months)[0].row_labels == ["Feb", "Mar", "Apr"]


def test_steps_are_put_in_order_with_their_exposures():
    exposure = np.array([[3.0, 30.0], [1.0, 10.0], [4.0, 40.0]])
    data = cv.ExactCounts(np.ones((3, 2), int), row_labels=["2003", "2001", "2004"], exposure=exposure)
    found, _ = cv.DynamicModel(1).in_time(data)
    assert found.row_labels == ["2001", "2002", "2003", "2004"]
    np.testing.assert_array_equal(found.exposure[[0, 2, 3]], exposure[[1, 0, 2]])


def test_offsets_are_refused_in_words(planted):
    data = cv.PrivatizedCounts(planted[3], 0.3, row_offset=np.full(30, 2.0))
    with pytest.raises(ValueError, match="row_offset and column_offset must be left out for DynamicModel"):
        cv.DynamicModel(2, **BRIEF).fit(data)


def test_volumes_of_steps_of_their_own(planted):
    rates = planted[2] * np.where(np.arange(30) % 3 == 0, 4.0, 1.0)[:, None]
    data = cv.ExactCounts(np.random.default_rng(1).poisson(rates))
    found = cv.DynamicModel(2, steady=False, **QUICK | {"tune": 150}).fit(data)
    volume = found.posterior["posterior"]["volume"].mean(("chain", "draw")).to_numpy()
    assert volume.shape == (30,)
    assert volume[::3].mean() > 2.0 * np.delete(volume, np.s_[::3]).mean()


def test_naive_fits_have_no_intervals(planted):
    naive = cv.DynamicModel(2, **BRIEF).fit(cv.NaiveCounts(planted[3]))
    assert list(naive.activity().columns) == ["component", "time", "rate"]
    assert list(naive.transitions().columns) == ["previous_component", "component", "share"]
    assert "uncalibrated_lower" in naive.activity(uncalibrated=True)
    assert "lower" not in naive.forecast(1).table()


def test_a_trend_is_the_sum_of_expected_counts_along_an_axis(fit):
    table, rates = fit.trend(), fit.rate()
    assert list(table.columns) == ["time", "item", "rate", "lower", "upper"]
    np.testing.assert_allclose(table["rate"], rates.to_numpy().ravel(), rtol=1e-5)
    assert ((table["lower"] <= table["rate"]) & (table["rate"] <= table["upper"])).all()
    with pytest.raises(ValueError, match=r"along must be one of \['item'\], got 'month'"):
        fit.trend("month")
    counts = np.random.default_rng(1).poisson(3.0, (3, 4, 2))
    tensor = cv.DynamicModel(2, modes=["who", "wave", "what"], time="wave", **BRIEF).fit(
        cv.PrivatizedCounts(counts, 0.3)
    )
    sums = tensor.rate().to_numpy().sum(axis=0)
    np.testing.assert_allclose(tensor.trend()["rate"], sums.ravel(), rtol=1e-5)
    assert list(tensor.trend("who").columns[:2]) == ["wave", "who"]


@pytest.mark.parametrize("background", [True, False])
def test_a_background_is_spread_over_all_things(planted, tmp_path, background):
    options = BRIEF | {"background": background, "prior_shape": 0.001, "tune": 60}
    fit = cv.DynamicModel(3, **options).fit(cv.PrivatizedCounts(planted[3], 0.3, mask=planted[4]))
    fit.save(tmp_path / "fit.nc")
    again = cv.DynamicModel.load(tmp_path / "fit.nc")
    assert again.background is background
    least = again.posterior["posterior"]["factor_item"].min("item")
    assert (least > 1e-5).any("component").all() == background


def test_the_background_stays_the_first_component_in_draws_tables_and_starts(monkeypatch):
    options = BRIEF | {"background": True, "prior_shape": 0.001}
    # Under wide noise the priors decide, and of these the background's alone keeps every item above zero.
    noisy = draw_reports(np.ones((30, 8)), np.asarray(0.9), np.random.default_rng(5))
    data = cv.PrivatizedCounts(noisy, 0.9)
    fit = cv.DynamicModel(3, **options).fit(data)
    items = fit.posterior["posterior"]["factor_item"]
    empty = items.max("item") - items.min("item") < 1e-9  # a component that is all zeros has equal shares
    bare = (items.min("item") < 1e-5) | empty
    assert not bare.isel(component=0).any()
    assert bare.isel(component=[1, 2]).all()
    members = fit.parts.members("item", len(ITEMS))
    assert members.groupby("component")["probability"].min().idxmax() == 0
    begun, right = [], Given.__call__
    monkeypatch.setattr(Given, "__call__", lambda *given: begun.append(right(*given)) or begun[-1])
    cv.DynamicModel(3, start=fit, **options).fit(data)
    assert all(int(phi.min(axis=0).argmax()) == 0 for _, phi in begun)


@pytest.mark.parametrize(("background", "least"), [(False, 1), (True, 2)])
def test_a_number_that_is_chosen_leaves_a_component_beside_the_background(monkeypatch, background, least):
    short_choices(monkeypatch)
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(4.0, (12, 8)), 0.3)
    fit = cv.DynamicModel("auto", background=background, **BRIEF).fit(data)
    tried = getattr(fit, "selection_", None)  # a single number is not compared
    assert fit.n_components_ >= least
    assert (tried is None) == background


@pytest.fixture(scope="module")
def seasonal():
    """A fit of 45 months with a strong season, between which three are missing."""
    rng = np.random.default_rng(5)
    season = np.exp(np.sin(2.0 * np.pi * (np.arange(48) % 12) / 12.0))  # highest in April, lowest in October
    counts = rng.poisson(np.outer(20.0 * season, np.full(6, 1.0)))
    index = [str(month) for month in pd.period_range("2001-01", periods=48, freq="M")]
    table = pd.DataFrame(counts, index=index).drop(index=["2001-12", "2002-01", "2003-05"])
    longer = QUICK | {"draws": 100, "tune": 200}
    with pytest.warns(UserWarning, match="3 of 48 months have no data"):
        return cv.DynamicModel(1, season="auto", **longer).fit(cv.ExactCounts(table)), season


def test_a_season_is_found_and_keeps_its_place_across_gaps(seasonal, tmp_path):
    fit, season = seasonal
    assert fit.season_ == 12
    table = fit.seasons()
    assert list(table.columns) == ["component", "season", "factor", "lower", "upper"]
    assert list(table["season"][:2]) == ["Jan", "Feb"]
    assert table["factor"].mean() == pytest.approx(1.0)
    wanted = season[:12] / season[:12].mean()
    assert np.corrcoef(table["factor"], wanted)[0, 1] > 0.99  # a month late: 0.84
    ahead = fit.forecast(12)
    assert list(ahead.counts["time"].to_numpy()[[0, -1]]) == ["2005-01", "2005-12"]
    medians = np.median(ahead.counts.sum("item"), axis=0)
    assert np.corrcoef(medians, season[:12])[0, 1] > 0.95  # a month late: 0.91
    fit.save(tmp_path / "fit.nc")
    again = cv.DynamicModel.load(tmp_path / "fit.nc")
    assert (again.season, again.season_) == ("auto", 12)
    pd.testing.assert_frame_equal(again.seasons(), table)
    np.testing.assert_array_equal(again.forecast(12).counts, ahead.counts)
    with pytest.raises(ValueError, match="prior of activity that its parameters give, with season 6, got 12"):
        check_file(again.set_params(season=6), again.posterior_)


@pytest.mark.parametrize("method", ["gibbs", "augmented-gibbs"])
@pytest.mark.parametrize(("shape", "time"), [((24, 6), 0), ((6, 24), 1), ((2, 24, 3), 1), ((2, 3, 24), 2)])
def test_a_season_begins_from_the_steps_that_have_data(monkeypatch, shape, time, method):
    seen, begun, drawn, right, draw = [], [], [], GammaChainPrior.begin, GammaChainPrior.draw
    monkeypatch.setattr(
        GammaChainPrior, "begin", lambda *given: seen.append(given[-1]) or begun.append(right(*given)) or begun[-1]
    )
    monkeypatch.setattr(GammaChainPrior, "draw", lambda *given: drawn.append(given[2]) or draw(*given))
    mask = np.zeros((24, 6), dtype=bool)
    mask[[5, 17, 23]], mask[3, :5] = True, True
    others = [n for n in shape if n != 24]
    mask = np.moveaxis(mask.reshape(24, *others), 0, time)
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(9.0, shape), 0.3, mask=mask)
    cv.DynamicModel(2, season=12, time=time, method=method, **BRIEF | {"chains": 1}).fit(data)
    assert [np.flatnonzero(~each).tolist() for each in seen] == [[5, 17, 23]]
    np.testing.assert_array_equal(drawn[0], begun[0][1])  # the first sweep goes on from there


def test_tables_over_time_are_exported(seasonal, fit, tmp_path):
    tables = seasonal[0].tables
    assert {"activity", "transitions", "trend_by_item", "seasons"} <= set(tables)
    pd.testing.assert_frame_equal(tables["seasons"], seasonal[0].seasons())
    pd.testing.assert_frame_equal(tables["trend_by_item"], seasonal[0].trend())
    pd.testing.assert_frame_equal(tables["transitions"], seasonal[0].transitions())
    assert "seasons" not in fit.tables
    fit.tables.to_csv(tmp_path)
    read = pd.read_csv(tmp_path / "activity.csv")
    pd.testing.assert_frame_equal(read, fit.activity(), check_dtype=False, check_exact=False)


def test_items_whose_seasons_differ_are_forecast_a_year_ahead():
    """Chains that begin rough explain them by activity that moves on around the year, with 1.6 times the error."""
    rng = np.random.default_rng(5)
    season = np.exp(0.8 * np.cos(2.0 * np.pi * (np.arange(72)[:, None] / 12.0 + rng.random(8))))
    counts = rng.poisson(rng.gamma(2.0, 10.0, 8) * season)
    model = cv.DynamicModel(4, season=12, likelihood="poisson", **QUICK | {"tune": 100, "chains": 1})
    ahead = model.fit(cv.ExactCounts(counts[:60])).forecast(12)
    error = abs(np.median(ahead.counts.to_numpy(), axis=0) - counts[60:]).mean()
    assert error < 1.3 * abs(counts[48:60] - counts[60:]).mean()


def test_without_a_season_there_is_no_table_of_seasons(fit):
    assert fit.season_ is None
    with pytest.raises(ValueError, match="season must be given to the model for a table of seasons, got None"):
        fit.seasons()


@pytest.fixture(scope="module", params=["matrix", "tensor, time last"])
def with_levels(request, planted):
    """A fit with levels and a background, and its data."""
    reports, mask = planted[3:]
    if request.param == "matrix":
        data = cv.PrivatizedCounts(pd.DataFrame(reports, index=MONTHS, columns=ITEMS), 0.3, mask=mask)
        return cv.DynamicModel(3, levels=True, background=True, season=12, **QUICK).fit(data), data
    folded = [np.moveaxis(each.reshape(30, 2, 4), 0, 2) for each in (reports, mask)]
    data = cv.PrivatizedCounts(folded[0], 0.3, mask=folded[1])
    return cv.DynamicModel(3, levels=True, time=2, dispersion="row", **QUICK).fit(data), data


def test_rates_are_multiplied_by_levels(with_levels, tmp_path):
    fit, data = with_levels
    tree, model, layout = fit._fitted()
    draws, axes = tree["posterior"], model.spec.output
    assert draws["level"].dims[2:] == layout.dims_of(axes)
    assert draws["level_smoothness"].dims[2:] == tuple(d for d in layout.dims_of(axes) if d != fit.time_axis)
    pairs = zip(factor_draws(tree, model, layout), parameter_draws(tree, model), strict=False)
    rates = [
        model.likelihood.mean(np.einsum(model.spec.text, *factors), over_cells(model, own)) for factors, own in pairs
    ]
    np.testing.assert_allclose(fit.rate(), np.mean(rates, axis=0), rtol=1e-6)
    own = component_counts(tree, model, layout, axes + model.spec.latent)
    np.testing.assert_allclose(own.sum(axis=-1), rates, rtol=1e-5)
    other = next(d for d in layout.dims_of(axes) if d != fit.time_axis)
    np.testing.assert_allclose(fit.trend(other)["rate"].sum(), fit.rate().sum(), rtol=1e-5)
    assert len(fit.parts.members(other, 2))
    assert len(fit.activity()) % 30 == 0
    fit.save(tmp_path / "fit.nc")
    found = cv.DynamicModel.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(found.rate(), fit.rate())
    pd.testing.assert_frame_equal(found.forecast(2).table(), fit.forecast(2).table())
    assert np.isfinite(np.asarray(fit.log_likelihood(data))).all()
    assert fit.count_intervals(data).sizes
    assert fit.diagnostics().verdict


def test_levels_seasons_and_volumes_go_together(planted, tmp_path):
    data = cv.PrivatizedCounts(planted[3], 0.3)
    fit = cv.DynamicModel(2, levels=True, season=12, steady=False, **BRIEF).fit(data, checkpoint=tmp_path / "c.npz")
    tree, model, layout = fit._fitted()
    draws = tree["posterior"]
    pairs = zip(factor_draws(tree, model, layout), parameter_draws(tree, model), strict=False)
    rates = [model.likelihood.mean(np.einsum(model.spec.text, *each), over_cells(model, own)) for each, own in pairs]
    np.testing.assert_allclose(fit.rate(), np.mean(rates, axis=0), rtol=1e-6)
    assert draws["season"].shape == (2, 4, 30, 2)  # of the step and component; a season has 12
    np.testing.assert_array_equal(draws["season"][:, :, :12], draws["season"][:, :, 12:24])
    assert draws["volume"].shape == (2, 4, 30)
    assert (draws["volume"].std("time") > 0).all()
    assert len(fit.seasons()) == 24
    fit.save(tmp_path / "fit.nc")
    found = cv.DynamicModel.load(tmp_path / "fit.nc").forecast(13)
    pd.testing.assert_frame_equal(found.table(), fit.forecast(13).table())
    again = cv.DynamicModel(2, levels=True, season=12, steady=False, **BRIEF)
    again.fit(data, checkpoint=tmp_path / "c.npz", resume=True)
    np.testing.assert_array_equal(again.rate(), fit.rate())


def test_forecasts_go_on_from_the_last_levels(with_levels, monkeypatch):
    fit, _ = with_levels
    monkeypatch.setattr(forecasts, "run_on", lambda last, chain, steps, rng: np.tile(last, (steps, 1)))
    monkeypatch.setattr(forecasts, "levels_on", lambda last, rho, s, steps, rng: np.stack([last] * steps))
    one = fit.forecast(2).rates.to_numpy()
    place = 1 + fit.model_.spec.output.index(fit.model_.factors[fit.model_.spec.names.index("activity")].axes[0])
    np.testing.assert_allclose(one.take(0, place), one.take(1, place))
    last = fit.posterior["posterior"]["level"].to_numpy().reshape(80, *fit.rate().shape).take(-1, place)
    monkeypatch.setattr(forecasts, "levels_on", lambda last, rho, s, steps, rng: np.ones((steps, *last.shape)))
    np.testing.assert_allclose(one.take(0, place), fit.forecast(2).rates.to_numpy().take(0, place) * last, rtol=1e-5)


def test_levels_forget_their_last_value_as_fast_as_the_persistence_says():
    last, rng = np.full((20_000, 2), 3.0), np.random.default_rng(1)
    found = forecasts.levels_on(last, 0.5, np.array([50.0, 10.0]), 3, rng)
    np.testing.assert_allclose(found.mean(axis=1), np.array([2.0, 1.5, 1.25])[:, None] * [1.0, 1.0], rtol=0.02)
    np.testing.assert_allclose(found[0].var(axis=0), [2.0 / 50.0, 2.0 / 10.0], rtol=0.05)


def test_levels_go_on_from_a_checkpoint_and_at_another_fit(planted, tmp_path):
    data, path = cv.PrivatizedCounts(planted[3], 0.3), tmp_path / "chains.npz"
    whole = cv.DynamicModel(2, levels=True, **BRIEF).fit(data, checkpoint=path)
    again = cv.DynamicModel(2, levels=True, **BRIEF).fit(data, checkpoint=path, resume=True)
    np.testing.assert_array_equal(whole.rate(), again.rate())
    with_threads = cv.DynamicModel(2, levels=True, **BRIEF | {"threads": 2}).fit(data)
    np.testing.assert_array_equal(whole.rate(), with_threads.rate())
    for start in (whole, cv.DynamicModel(2, **BRIEF).fit(data), "em", "least-squares"):
        assert len(cv.DynamicModel(2, levels=True, start=start, **BRIEF).fit(data).activity()) == 60


@pytest.mark.parametrize(
    ("protected", "mechanism"),
    [
        (lambda counts: 5 * (counts // 5), cv.mechanisms.Rounding(5)),
        (lambda counts: np.where((counts > 0) & (counts < 5), np.nan, counts), cv.mechanisms.Suppression(5)),
    ],
    ids=["rounding", "suppression"],
)
def test_levels_of_tables_that_others_protected(planted, protected, mechanism):
    counts = np.random.default_rng(1).poisson(planted[2] * np.linspace(0.5, 2.0, 8))
    data = cv.Reports(protected(counts), mechanism)
    found = cv.DynamicModel(2, levels=True, **BRIEF | {"tune": 40}).fit(data)
    assert np.abs(found.rate() - counts).sum() < 0.4 * counts.sum()
    assert found.count_intervals(data).sizes


def test_levels_begin_at_one_also_after_a_fit_with_levels(planted):
    data = cv.PrivatizedCounts(planted[3], 0.3)
    first = cv.DynamicModel(2, levels=True, **BRIEF).fit(data)
    assert "level" in first.posterior["posterior"]
    for levels in (True, False):
        assert cv.DynamicModel(2, levels=levels, start=first, **BRIEF).fit(data).posterior
    start = {"level": np.ones(data.shape)}
    with pytest.raises(ValueError, match=r"^start's factors must be called .*, got 'level'$"):
        cv.DynamicModel(2, levels=True, start=start, **BRIEF).fit(data)


def test_levels_are_refused_where_they_cannot_be(planted):
    with pytest.raises(ValueError, match=r"method must be one of \('gibbs',\) with levels, got 'augmented-gibbs'"):
        cv.DynamicModel(2, levels=True, method="augmented-gibbs", **BRIEF).fit(cv.PrivatizedCounts(planted[3], 0.3))
    with pytest.raises(ValueError, match=r'levels must be False with Dask, .*, got True: use engine="threads"$'):
        cv.DynamicModel(2, levels=True, engine="dask", **BRIEF).fit(cv.PrivatizedCounts(planted[3], 0.3))
    with pytest.raises(ValueError, match=r"levels must be False with Dask, .*, got True: leave out client$"):
        cv.DynamicModel(2, levels=True, **BRIEF).fit(cv.PrivatizedCounts(planted[3], 0.3), client=object())
    for name in ("level", "level_persistence", "level_smoothness", "rate", "lower"):
        with pytest.raises(ValueError, match=f"posterior's own arrays, got .'{name}'.: choose other names"):
            cv.DynamicModel(2, levels=True, modes=["time", name], **BRIEF).fit(cv.ExactCounts(abs(planted[3])))
    rounded = 5 * (planted[3].clip(0) // 5)
    known = cv.Reports(rounded, cv.mechanisms.Rounding(5), totals=[(0, rounded.sum(axis=0))])
    with pytest.raises(ValueError, match="levels must be False for data with known totals, got True with 8"):
        cv.DynamicModel(2, levels=True, **BRIEF).fit(known)
