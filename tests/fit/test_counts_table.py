"""Tables of the counts behind reports, against the laws and the tables of counts that they summarise."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit import counts_table
from tests.joint import two_sided_geometric

pytestmark = pytest.mark.long

m = cv.mechanisms
SHORT = {"draws": 10, "tune": 10, "chains": 2, "seed": 1, "threads": 1, "progress": False}
COUNTIES, AGES = [f"county {d}" for d in range(7)], [f"age {v}" for v in range(5)]
COUNTS = np.random.default_rng(2).poisson(np.outer(np.arange(1, 8), [1, 1, 2, 3, 6]))
COUNTS[6, :4] = 12, 11, 20, 3  # a row with one hidden count
IS_HIDDEN = (COUNTS > 0) & (COUNTS < 10)
PUBLISHED = pd.DataFrame(
    np.where(IS_HIDDEN, np.nan, COUNTS), pd.Index(COUNTIES, name="county"), pd.Index(AGES, name="age")
)
MASK = np.zeros(COUNTS.shape, dtype=bool)
MASK[6, 4] = MASK[0, 0] = True
SUMMARY = ["mean", "median", "lower", "upper"]


def fitted(data, model=None, **more):
    model = model or cv.PoissonFactorization("dk,vk->dv", {"k": 2}, **SHORT | more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(data)


@pytest.fixture(scope="module")
def suppressed():
    data = cv.Reports(PUBLISHED, m.Suppression(10), MASK)
    return fitted(data), data


@pytest.fixture(scope="module")
def with_totals():
    data = cv.Reports(PUBLISHED, m.Suppression(10), totals=[(1, COUNTS.sum(axis=1))])
    return fitted(data), data


def at_cells(dataset, mask):
    """(cells, 4) what ``count_intervals`` has in some cells, in their order."""
    return np.stack([dataset[name].to_numpy()[mask] for name in SUMMARY], axis=1)


def test_hidden_counts_are_listed_with_the_numbers_of_count_intervals(suppressed):
    fit, data = suppressed
    table = fit.counts_table(data)
    listed = IS_HIDDEN | MASK
    assert list(table) == ["county", "age", "report", "kind", *SUMMARY]
    rows, columns = np.nonzero(listed)
    assert table["county"].tolist() == [COUNTIES[d] for d in rows]
    assert table["age"].tolist() == [AGES[v] for v in columns]
    assert table["kind"].tolist() == ["masked" if MASK[d, v] else "hidden" for d, v in zip(rows, columns, strict=True)]
    assert table["report"].isna().all()
    np.testing.assert_allclose(table[SUMMARY], at_cells(fit.count_intervals(data), listed))
    wide, narrow = (fit.counts_table(data, interval=each) for each in (0.9, 0.5))
    assert (narrow["lower"] >= wide["lower"]).all()
    assert (narrow["upper"] - narrow["lower"]).sum() < (wide["upper"] - wide["lower"]).sum()


def test_all_cells_are_listed_with_exact_counts_as_they_are(suppressed):
    fit, data = suppressed
    table = fit.counts_table(data, cells="all")
    exact = (table["kind"] == "exact").to_numpy()
    np.testing.assert_array_equal(exact, ~(IS_HIDDEN | MASK).ravel())
    for name in ("report", *SUMMARY):
        np.testing.assert_array_equal(table[name][exact], COUNTS.ravel()[exact])
    pd.testing.assert_frame_equal(table[~exact].reset_index(drop=True), fit.counts_table(data))


def test_kinds_say_how_a_count_is_hidden():
    mechanisms = [m.Suppression(10), m.RandomRounding(5), m.Rounding(5), m.TopCoding(12), m.DiscreteGaussian(2)]
    reports = np.array([[np.nan, 10, 10, 12, 11], [11, 0, 0, 3, -2], [0, 5, 5, 12, 4]])
    data = cv.Reports(reports, np.array(mechanisms, dtype=object).reshape(1, -1))
    fit = fitted(data)
    table = fit.counts_table(data, cells="all")
    kinds = np.array(table["kind"]).reshape(reports.shape)
    assert kinds.tolist() == [
        ["hidden", "rounded", "rounded", "top-coded", "noisy"],
        ["exact", "rounded", "rounded", "exact", "noisy"],
        ["exact", "rounded", "rounded", "top-coded", "noisy"],
    ]
    np.testing.assert_array_equal(table["report"], reports.ravel())
    some = table[table["kind"] != "exact"].reset_index(drop=True)
    pd.testing.assert_frame_equal(fit.counts_table(data), some)
    assert table["d"].tolist() == [1] * 5 + [2] * 5 + [3] * 5  # no labels


def test_counts_with_several_reports_have_a_column_for_each():
    rounded = cv.simulate_reports(COUNTS, m.RandomRounding(5), np.random.default_rng(1))
    data = cv.Reports(PUBLISHED, m.Suppression(10), MASK).also(rounded, m.RandomRounding(5))
    table = fitted(data).counts_table(data, cells="all")
    assert list(table)[2:5] == ["report_1", "report_2", "kind"]
    np.testing.assert_array_equal(table["report_1"], np.where(MASK, np.nan, PUBLISHED).ravel())
    np.testing.assert_array_equal(table["report_2"], rounded.ravel())
    kind = np.where(MASK, "rounded", np.where(IS_HIDDEN, "hidden", "exact"))
    only = (COUNTS > 0) & (COUNTS < 10) & ~MASK
    known = only & (table["lower"] == table["upper"]).to_numpy().reshape(only.shape)
    np.testing.assert_array_equal(table["kind"].to_numpy()[~known.ravel()], kind.ravel()[~known.ravel()])


def test_known_totals_are_met_by_counts_and_by_sums(with_totals):
    fit, data = with_totals
    alone = IS_HIDDEN.sum(axis=1) == 1
    assert alone.any()  # rows whose one hidden count is given away by the total
    table = fit.counts_table(data, draws=100)
    given_away = table["county"].isin(np.array(COUNTIES)[alone])
    for name in SUMMARY:
        np.testing.assert_array_equal(table[name][given_away], COUNTS[IS_HIDDEN & alone[:, None]])
    sums = fit.counts_table(data, by="county", draws=30)
    assert list(sums) == ["county", "hidden", *SUMMARY]
    assert sums["county"].tolist() == COUNTIES
    np.testing.assert_array_equal(sums["hidden"], IS_HIDDEN.sum(axis=1))
    for name in SUMMARY:
        np.testing.assert_array_equal(sums[name], COUNTS.sum(axis=1))
    pd.testing.assert_frame_equal(table, fit.counts_table(data, draws=100))  # the same again
    tables = fit.predict_counts(100, np.random.default_rng(3), data).to_numpy()
    hidden = tables[:, IS_HIDDEN]
    error = np.abs(table["mean"] - hidden.mean(axis=0)) / np.maximum(hidden.std(axis=0), 1e-9) / np.sqrt(2 / 100)
    assert error[~given_away].max() < 5.0
    assert (np.abs(table["upper"] - np.quantile(hidden, 0.95, axis=0)) <= 2).all()


def test_sums_are_those_of_tables_drawn_together(suppressed):
    fit, data = suppressed
    sums, cells = fit.counts_table(data, by=["age"]), fit.counts_table(data, cells="all")
    together = cells.groupby("age", sort=False)[SUMMARY].sum()
    assert sums["age"].tolist() == AGES
    np.testing.assert_array_equal(sums["hidden"], (IS_HIDDEN | MASK).sum(axis=0))
    deviation = np.sqrt(fit.predict_counts(400, np.random.default_rng(1), data).sum("d").to_numpy().var(axis=0))
    assert (np.abs(sums["mean"] - together["mean"].to_numpy()) < 4.5 * deviation / 20 + 1e-9).all()
    several = sums["hidden"].to_numpy() > 1
    widths = (sums["upper"] - sums["lower"]).to_numpy(), (together["upper"] - together["lower"]).to_numpy()
    assert (widths[0] < widths[1])[several].all()  # ends are never added up
    whole = fit.counts_table(data, by=[])
    assert list(whole) == ["hidden", *SUMMARY]
    assert whole["mean"].item() == pytest.approx(sums["mean"].sum())
    assert whole["lower"].item() > sums["lower"].sum()
    both = fit.counts_table(data, by=["age", "county"])
    assert both["county"].tolist() == COUNTIES * len(AGES)
    np.testing.assert_array_equal(both["hidden"], (IS_HIDDEN | MASK).T.ravel())


def test_fewer_draws_than_asked_for_are_used_again(suppressed):
    fit, data = suppressed
    assert fit.posterior["posterior"].sizes["draw"] * 2 == 20
    few = fit.counts_table(data, by="county", draws=30)
    assert not few.equals(fit.counts_table(data, by="county", draws=20))
    np.testing.assert_allclose(few["mean"] * 30, np.round(few["mean"] * 30), atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_private_counts_are_noisy_everywhere_but_in_rows_without_noise(sparse):
    import scipy.sparse as sp

    alpha = np.array([0.5] * 6 + [0.0])
    reports = COUNTS + two_sided_geometric(np.full(COUNTS.shape, 0.5), np.random.default_rng(0)) * (alpha[:, None] > 0)
    assert (reports < 0).any()
    given = sp.csr_array(reports) if sparse else pd.DataFrame(reports, columns=AGES)
    data = cv.PrivatizedCounts(given, alpha, MASK)
    fit = fitted(data, cv.TopicModel(2, **SHORT))
    table = fit.counts_table(data)
    listed = MASK | (alpha[:, None] > 0)
    assert table["kind"].tolist() == np.where(MASK, "masked", "noisy")[listed].tolist()
    np.testing.assert_array_equal(table["report"], np.where(MASK, np.nan, reports)[listed])
    np.testing.assert_allclose(table[SUMMARY], at_cells(fit.count_intervals(data), listed), rtol=1e-6)
    sums = fit.counts_table(data, by="doc")
    assert sums["hidden"].tolist() == [5] * 6 + [1]
    assert sums["lower"][6] >= COUNTS[6, :4].sum()


def test_axes_of_a_tensor_are_in_the_order_of_the_data():
    counts = np.random.default_rng(5).poisson(6.0, (3, 4, 2))
    published = np.where((counts > 0) & (counts < 7), np.nan, counts)
    frame = pd.DataFrame(
        [(f"s{a}", f"a{b}", f"y{c}", published[a, b, c]) for a, b, c in np.ndindex(counts.shape)],
        columns=["state", "age", "year", "deaths"],
    )
    data = cv.Reports.from_frame(frame, ["state", "age", "year"], "deaths", m.Suppression(7))
    fit = fitted(data, cv.PoissonFactorization("ak,bk,ck->abc", {"k": 2}, **SHORT))
    table, intervals = fit.counts_table(data), fit.count_intervals(data)
    cells = list(zip(*np.nonzero(np.isnan(published)), strict=True))
    assert list(zip(*(table[name] for name in ("state", "age", "year")), strict=True)) == [
        (f"s{a}", f"a{b}", f"y{c}") for a, b, c in cells
    ]
    np.testing.assert_allclose(table[SUMMARY], at_cells(intervals, np.isnan(published)))
    sums = fit.counts_table(data, by=["year", "state"])
    assert sums[["year", "state"]].to_numpy().tolist() == [[f"y{c}", f"s{a}"] for c in range(2) for a in range(3)]
    np.testing.assert_array_equal(sums["hidden"], np.isnan(published).sum(axis=1).T.ravel())
    known = np.nansum(published, axis=1).T.ravel()
    assert (sums["lower"] >= known + sums["hidden"]).all()
    assert (sums["upper"] <= known + 6 * sums["hidden"]).all()


def test_a_pair_is_listed_once_and_counts_for_both_actors():
    pairs = np.random.default_rng(6).poisson(4.0, (6, 6))
    pairs = np.triu(pairs, 1) + np.triu(pairs, 1).T
    data = cv.ExactCounts(pairs, (np.arange(36) == 1).reshape(6, 6) | (np.arange(36) == 6).reshape(6, 6))
    fit = fitted(data, cv.BlockModel(2, directed=False, **SHORT))
    table = fit.counts_table(data)
    assert table[["sender", "receiver", "kind"]].to_numpy().tolist() == [[1, 2, "masked"]]
    assert len(fit.counts_table(data, cells="all")) == 15
    sums = fit.counts_table(data, by="sender")
    assert sums["hidden"].tolist() == [1, 1, 0, 0, 0, 0]
    np.testing.assert_array_equal(sums["mean"][2:], pairs.sum(axis=1)[2:])
    assert (sums["lower"][:2] >= pairs.sum(axis=1)[:2] - pairs[0, 1]).all()
    whole = fit.counts_table(data, by=[])
    assert whole["lower"].item() >= np.triu(pairs).sum() - pairs[0, 1]
    assert whole["upper"].item() < pairs.sum()


def test_counts_with_exposure_have_rates():
    people, share = np.arange(1.0, 8.0), np.array([1.0, 1.0, 2.0, 3.0, 6.0])
    data = cv.Reports(PUBLISHED, m.Suppression(10), row_offset=people, column_offset=share)
    fit = fitted(data)
    table = fit.counts_table(data)
    assert list(table)[-4:] == ["exposure", "rate", "rate_lower", "rate_upper"]
    np.testing.assert_allclose(table["exposure"], np.outer(people, share)[IS_HIDDEN])
    for rate, count in (("rate", "mean"), ("rate_lower", "lower"), ("rate_upper", "upper")):
        np.testing.assert_allclose(table[rate], table[count] / table["exposure"])
    sums = fit.counts_table(data, by="age")
    np.testing.assert_allclose(sums["exposure"], people.sum() * share)
    np.testing.assert_allclose(sums["rate_upper"], sums["upper"] / sums["exposure"])
    assert fit.counts_table(data, by=[])["exposure"].item() == pytest.approx(people.sum() * share.sum())


def test_a_method_that_is_not_calibrated_has_no_intervals():
    data = cv.Reports(PUBLISHED, m.Suppression(10), row_offset=np.arange(1.0, 8.0))
    fit = fitted(data, method="em")
    table, named = fit.counts_table(data), fit.counts_table(data, uncalibrated=True)
    assert list(table)[4:] == ["mean", "median", "exposure", "rate"]
    assert [name for name in named if "lower" in name] == ["uncalibrated_lower", "rate_uncalibrated_lower"]
    assert list(fit.counts_table(data, by="age"))[2:] == ["mean", "median", "exposure", "rate"]


def test_what_cannot_be_listed_is_refused(suppressed, monkeypatch):
    fit, data = suppressed
    with pytest.raises(ValueError, match=r"axes among county \(rows\), age \(columns\), got 'state'"):
        fit.counts_table(data, by=["state"])
    with pytest.raises(ValueError, match="by must name each axis once"):
        fit.counts_table(data, by=["county", "d"])
    with pytest.raises(ValueError, match="cells must be left out with by"):
        fit.counts_table(data, cells="all", by="age")
    with pytest.raises(ValueError, match="cells must be one of"):
        fit.counts_table(data, cells="some")
    with pytest.raises(ValueError, match="interval must be between 0 and 1"):
        fit.counts_table(data, interval=90)
    with pytest.raises(ValueError, match="draws must be"):
        fit.counts_table(data, draws=0)
    with pytest.raises(ValueError, match="X must hold the cells of the fit"):
        fit.counts_table(cv.Reports(PUBLISHED.iloc[:3], m.Suppression(10)))
    monkeypatch.setattr(counts_table, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="cells must fit in memory: they need"):
        fit.counts_table(data, cells="all")


def test_names_that_other_columns_have_are_not_taken(suppressed):
    fit, _ = suppressed
    data = cv.Reports(PUBLISHED.rename_axis(index="mean"), m.Suppression(10), MASK)
    assert list(fit.counts_table(data))[:3] == ["d", "v", "report"]


@pytest.mark.parametrize("totals", [False, True])
def test_intervals_cover_planted_counts(totals):
    """About as many as their laws promise: at least 90%, since counts of 1 to 19 are few."""
    rng = np.random.default_rng(7)
    rate = rng.gamma(2.0, 5.0, (50, 2)) @ rng.dirichlet(np.ones(8), 2)
    counts = rng.poisson(rate)
    published = np.where((counts > 0) & (counts < 20), np.nan, counts)
    known = [(1, counts.sum(axis=1))] if totals else None
    data = cv.Reports(published, m.Suppression(20), totals=known)
    options = SHORT | {"draws": 50, "tune": 50, "chains": 2, "likelihood": "poisson"}
    fit = fitted(data, **options)
    hidden = np.isnan(published)
    table, true = fit.counts_table(data, draws=100), counts[hidden]
    covered = ((table["lower"] <= true) & (true <= table["upper"])).to_numpy()
    drawn = fit.predict_counts(100, rng, data).to_numpy()[:, hidden]
    promised = ((table["lower"].to_numpy() <= drawn) & (drawn <= table["upper"].to_numpy())).mean()
    assert 0.9 <= promised < 0.98
    assert abs(covered.mean() - promised) < 4 * np.sqrt(promised * (1 - promised) / hidden.sum())
    sums = fit.counts_table(data, by="v", draws=100)
    assert ((sums["lower"] <= counts.sum(axis=0)) & (counts.sum(axis=0) <= sums["upper"])).sum() >= 5


def test_a_count_by_several_rules_is_called_by_the_last_that_changes_it():
    both = m.Composed(m.Suppression(8), m.Rounding(5))
    assert [counts_table.kind_by(each) for each in (both, m.TopCoding(9), m.Laplace(1))] == [
        "rounded",
        "top-coded",
        "noisy",
    ]


@pytest.mark.parametrize("gaussian", [False, True])
def test_sums_that_a_fit_has_slightly_off_are_added_up_from_the_reports_alone(gaussian):
    """Of 300 rows of a fit with 2/5 of the rates, the intervals by reports cover, and those by the fit do not."""
    rng = np.random.default_rng(5)
    counts = rng.poisson(6.0, (300, 40))
    masked = np.broadcast_to(np.arange(40) == 0, counts.shape)
    if gaussian:
        data = cv.Reports(counts + rng.normal(0.0, 2.0, counts.shape), m.Gaussian(2), masked)
    else:
        data = cv.PrivatizedCounts(counts + two_sided_geometric(np.full(counts.shape, 0.5), rng), 0.5, masked)
    fit = fitted(data, cv.PoissonFactorization("dk,vk->dv", {"k": 1}, likelihood="poisson", **SHORT))
    draws = fit.posterior["posterior"]
    draws["dk"].data[...], draws["vk"].data[...] = 2.4, 1.0
    said = json.loads(fit.posterior.attrs["mechanism_check"]) | {"sums": ["slightly off"]}
    by_fit = fit.counts_table(data, by="d", draws=100)
    fit.posterior.attrs["mechanism_check"] = json.dumps(said)
    by_reports = fit.counts_table(data, by="d", draws=100)
    true = counts.sum(axis=1)
    held = [((each["lower"] <= true) & (true <= each["upper"])).mean() for each in (by_fit, by_reports)]
    assert held[0] < 0.7
    assert 0.82 < held[1] < 0.97
    assert (by_reports["hidden"] == 40).all()
    off = by_reports["mean"] - by_fit["mean"]
    assert off.mean() > 5.0
    draws["dk"].data[...] = 2400.0  # what is masked rests on the fit, with its spread
    spread = fit.counts_table(data, by="d", draws=100)
    wider = (spread["upper"] - spread["lower"]) / (by_reports["upper"] - by_reports["lower"])
    assert wider.min() > 2.0
    assert abs((spread["mean"] - by_reports["mean"]).mean() - 2397.6) < 10.0
