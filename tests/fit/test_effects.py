"""Effects, contrasts and expected prevalence: against plain loops over draws, and with the signs of the truth."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit import effects
from countveil.fit.effects import MOST_ROWS, evenly_weighted, pairs_of, takes_as_levels
from countveil.inference.matching import keep_weights
from tests.effects import FRAME, SHORT, counts, model, the_fit


@pytest.fixture(scope="module")
def fit():
    return the_fit()


def topic_of(fit, word):
    """The topic with the largest share of a word."""
    return int(np.argmax(fit.components_[:, list(fit.feature_names_in_).index(word)]))


def test_effects_have_the_signs_of_the_truth(fit):
    table = fit.effects.table(0.8).set_index(["topic", "term"])
    assert list(table.columns) == ["support", "estimate", "lower", "upper"]
    assert table.loc[(topic_of(fit, "w0"), "party[T.R]"), "lower"] > 0.0
    assert 0.01 < table.loc[(topic_of(fit, "w8"), "age"), "estimate"] < 0.1  # per year, not per standard deviation
    assert (table.support == 1.0).all()


def slow_shares(fit, chain, frame, topic):
    """(S,) expected shares of a topic by draws of gammas, averaged over the rows of a frame."""
    draws, rng = fit.posterior["posterior"].dataset.isel(chain=chain), np.random.default_rng(1)
    ends = "shape", "rate", "effect", "shape_effect"
    shape, rate, effect, of_shape = (draws[f"theta_{end}"].to_numpy() for end in ends)
    found, rows = [], fit.covariates_.rows(frame)
    for s in range(len(shape)):
        own, mean = shape[s] * np.exp(rows @ of_shape[s]), shape[s] / rate[s] * np.exp(rows @ effect[s])
        theta = rng.gamma(own, mean / own, (60, *own.shape))
        found.append((theta / theta.sum(axis=2, keepdims=True)).mean(axis=(0, 1))[topic])
    return np.array(found)


def test_a_contrast_is_a_difference_of_shares_averaged_over_the_other_covariates(fit):
    table, matches = (fit.effects.contrast({"party": "R"}, {"party": "D"}, 0.8), dict(fit._reader.numbered("k")))
    for k in range(2):
        parts = [
            slow_shares(fit, c, FRAME.assign(party="R"), own) - slow_shares(fit, c, FRAME.assign(party="D"), own)
            for c, own in zip(matches[k].chains, matches[k].components, strict=True)
        ]
        slow, row = np.concatenate(parts), table.iloc[k]
        assert row.estimate == pytest.approx(slow.mean(), abs=0.01)
        np.testing.assert_allclose([row.lower, row.upper], np.quantile(slow, [0.1, 0.9]), atol=0.02)
    assert table.estimate.sum() == pytest.approx(0.0, abs=1e-9)
    back = fit.effects.contrast({"party": "D"}, {"party": "R"}, 0.8)
    np.testing.assert_allclose(back[["estimate", "lower", "upper"]], -table[["estimate", "upper", "lower"]])


def test_expected_prevalence_adds_up_and_follows_covariates(fit):
    frame = pd.DataFrame({"party": ["D", "R", "R"], "age": [30.0, 30.0, 55.0]}, index=["a", "b", "c"])
    table = fit.effects.prevalence(frame)
    assert list(table.columns) == ["topic", "support", "row", "estimate", "lower", "upper"]
    np.testing.assert_allclose(table.groupby("row").estimate.sum(), 1.0, atol=1e-9)
    by = table.set_index(["topic", "row"]).estimate
    assert by[topic_of(fit, "w0"), "b"] > by[topic_of(fit, "w0"), "a"]
    assert by[topic_of(fit, "w8"), "c"] > by[topic_of(fit, "w8"), "b"]
    one = fit.effects.prevalence(pd.DataFrame({"party": ["R"]})).estimate.to_numpy()
    other = fit.effects.prevalence(pd.DataFrame({"party": ["D"]})).estimate.to_numpy()
    np.testing.assert_allclose(one - other, fit.effects.contrast({"party": "R"}, {"party": "D"}).estimate, atol=1e-9)
    assert set(fit.effects.prevalence().row) == {"all"}


def test_rows_of_expected_prevalence_are_called_by_what_was_asked_for(fit):
    ages = fit.effects.prevalence(pd.DataFrame({"age": [30.0, 55.0, 40.0]}))
    assert ages.row.unique().tolist() == [30.0, 55.0, 40.0]
    both = fit.effects.prevalence(pd.DataFrame({"party": ["D", "R"], "age": [30.0, 55.5]}))
    assert both.row.unique().tolist() == ["party = D, age = 30.0", "party = R, age = 55.5"]
    named = fit.effects.prevalence(pd.DataFrame({"party": ["D", "R"]}, index=[7, 0]))
    assert named.row.unique().tolist() == [7, 0]


def test_contrasts_are_those_that_covariates_suggest(fit):
    table = fit.effects.contrasts(0.8)
    assert table.columns.tolist() == [
        *("topic", "support", "covariate", "value", "other", "estimate", "lower", "upper")
    ]
    low, high = np.sort(FRAME.age)[[15, 44]]
    for name, value, other in (("party", "R", "D"), ("age", high, low)):
        own = table[table["covariate"] == name].drop(columns=["covariate", "value", "other"])
        wanted = fit.effects.contrast({name: value}, {name: other}, 0.8)
        pd.testing.assert_frame_equal(own.reset_index(drop=True), wanted, rtol=1e-12)
        assert (table.loc[own.index, ["value", "other"]] == [value, other]).all(axis=None)
    assert len(table) == 2 * table["topic"].nunique()


@pytest.mark.parametrize(
    ("values", "pairs"),
    [
        ([0.0, 0.0, 0.0, 0.0, 1.0], [(1.0, 0.0)]),
        ([1.0, 2.0, 3.0, 4.0, 9.0], [(4.0, 2.0)]),
        (["b", "a", "c"], [("b", "a"), ("c", "a")]),
        ([f"{i:02}" for i in range(10)], [(f"{i:02}", "00") for i in range(1, 10)]),
        ([f"{i:02}" for i in range(11)], []),
    ],
)
def test_pairs_are_levels_with_the_first_and_quartiles(values, pairs):
    column = pd.Series(values) if isinstance(values[0], float) else pd.Series(pd.Categorical(values))
    assert pairs_of(column) == pairs


@pytest.mark.parametrize(
    ("formula", "levels"),
    [("~ C(year)", True), ("~ x + C( year , Sum)", True), ("~ year", False), ("~ C(years) + year", False)],
)
def test_numbers_are_compared_as_levels_where_the_formula_makes_levels_of_them(formula, levels):
    assert takes_as_levels(formula, "year") is levels
    column = pd.Series([3.0, 1.0, 2.0, 1.0])
    pairs = [(2.0, 1.0), (3.0, 1.0)] if levels else [(2.0, 1.0)]
    assert pairs_of(column, as_levels=takes_as_levels(formula, "year")) == pairs


def test_a_contrast_of_levels_of_numbers_is_made():
    frame = FRAME.assign(year=np.arange(len(FRAME)) % 3 + 2001)
    found = model(prevalence="~ C(year)", draws=4, tune=2).fit(counts(), covariates=frame).effects.contrasts()
    assert set(zip(found["value"], found["other"], strict=True)) == {(2002.0, 2001.0), (2003.0, 2001.0)}


def test_covariates_that_suggest_no_contrast_have_an_empty_table(fit, monkeypatch):
    monkeypatch.setattr(effects, "MOST_LEVELS", 1)
    text_alone = fit.effects.contrasts()
    assert text_alone["covariate"].unique().tolist() == ["age"]
    monkeypatch.setattr(effects, "pairs_of", lambda column, **_: [])
    empty = fit.effects.contrasts()
    assert empty.empty
    assert empty.columns.tolist() == text_alone.columns.tolist()


def test_draws_taken_at_once_change_no_contrast(fit, monkeypatch):
    table = fit.effects.contrast({"party": "R"}, {"party": "D"})
    monkeypatch.setattr(effects, "ENTRIES_AT_ONCE", 7 * len(FRAME))
    pd.testing.assert_frame_equal(fit.effects.contrast({"party": "R"}, {"party": "D"}), table, rtol=1e-12)


def test_a_chain_without_weight_says_nothing(fit):
    before = fit.effects.table()
    keep_weights(fit.posterior, np.array([1.0, 0.0]))
    fit._matched = {}
    weighted = fit.effects.table().estimate.to_numpy().reshape(3, 2)
    del fit.posterior["chains"]
    fit._matched = {}
    draws = fit.posterior["posterior"]["theta_effect"].to_numpy()[0].mean(axis=0) / fit.covariates_.scale[:, None]
    np.testing.assert_allclose(weighted, draws.T, rtol=1e-9)
    pd.testing.assert_frame_equal(fit.effects.table(), before)


def test_naive_fits_have_effects_without_intervals():
    naive = model(draws=4, tune=4, chains=1).fit(
        cv.NaiveCounts(np.maximum(np.asarray(counts().reports), 0)), covariates=FRAME
    )
    table = naive.effects.contrast({"party": "R"}, {"party": "D"})
    assert list(table.columns) == ["topic", "support", "estimate"]
    assert table.support.isna().all()
    assert "uncalibrated_lower" in naive.effects.table(uncalibrated=True)


def test_effects_need_covariates_and_an_interval_in_range(fit):
    plain = cv.TopicModel(2, **(SHORT | {"draws": 2, "tune": 2})).fit(counts())
    for call in (plain.effects.table, plain.effects.prevalence, lambda: plain.effects.contrast({}, {})):
        with pytest.raises(ValueError, match="effects need a fit with prevalence and covariates"):
            call()
    with pytest.raises(TypeError, match="a must map covariates to values, got str"):
        fit.effects.contrast("R", "D")
    with pytest.raises(TypeError, match="b must map covariates to values, got str"):
        fit.effects.contrast({"party": "R"}, "D")
    with pytest.raises(TypeError, match="frame must be a DataFrame of covariates, got dict"):
        fit.effects.prevalence({"party": ["R"]})
    with pytest.raises(ValueError, match="frame must have at least one row, got 0 rows"):
        fit.effects.prevalence(FRAME.head(0))
    with pytest.raises(ValueError, match="interval must be between 0 and 1"):
        fit.effects.table(1.0)
    with pytest.raises(ValueError, match=r"among \['party', 'age'\], got 'year'"):
        fit.effects.contrast({"year": 3}, {"party": "D"})


def test_many_designs_are_averaged_over_documents_and_not_over_designs():
    x = np.sort(np.concatenate([np.full(800, 0.5), np.linspace(0.0, 1.0, 300)]))
    rows, times = np.unique(x[:, None], axis=0, return_counts=True)
    kept, weight = evenly_weighted(rows, times)
    assert len(kept) <= MOST_ROWS
    np.testing.assert_allclose(weight.sum(), 1.0)
    for function in (np.square, np.exp, lambda v: v == 0.5):
        np.testing.assert_allclose(weight @ function(kept[:, 0]), function(x).mean(), atol=0.01)
    few, each = evenly_weighted(rows[:5], times[:5])
    np.testing.assert_array_equal(few, rows[:5])
    np.testing.assert_allclose(each, times[:5] / times[:5].sum())
