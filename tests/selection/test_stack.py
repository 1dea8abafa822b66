"""Several fits as one: their weights, their predictions, and topics with support."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError

import countveil as cv
from countveil import evaluation
from countveil.evaluation.errors import randomised
from countveil.fit.predicting import count_intervals_together
from countveil.inference.folds import stacking_weights
from countveil.selection import Stack
from countveil.selection.stack import hold_out, seen_cells
from tests.joint import fitted

QUICK = {"chains": 2, "draws": 20, "tune": 20, "seed": 1, "threads": 1, "progress": False}
WORDS = [f"w{v}" for v in range(14)]


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(1)
    topics = np.kron(np.eye(2), np.full(7, 1 / 7))
    counts = rng.poisson(40.0 * rng.dirichlet(np.full(2, 0.2), 24) @ topics)
    data = cv.PrivatizedCounts(
        counts + rng.geometric(0.6, counts.shape) - rng.geometric(0.6, counts.shape), 0.4, column_labels=WORDS
    )
    return cv.hold_out(data, 0.2, seed=1)


@pytest.fixture(scope="module")
def stacked(parts):
    training, held_out = parts
    fits = {
        "one": fitted(cv.TopicModel(1, **QUICK), training),
        "two": fitted(cv.TopicModel(2, likelihood="poisson", **QUICK), training),
        "three": fitted(cv.TopicModel(3, **QUICK | {"chains": 3, "draws": 10}), training),
    }
    return cv.stack(fits, held_out)


@pytest.mark.long
def test_weights_are_those_of_the_reports_that_were_held_out(stacked, parts):
    each = np.stack([fit.log_predictive(parts[1]) for fit in stacked.fits], axis=1)
    np.testing.assert_allclose(stacked.scores, each, rtol=1e-8)
    np.testing.assert_allclose(stacked.weights_, stacking_weights(each), atol=1e-6)
    assert stacked.weights_[0] < 0.1  # one topic for two
    assert stacked.table["fit"].tolist() == ["one", "two", "three"]
    assert "Stack of 3 fits" in repr(stacked)
    together = stacked.log_predictive(parts[1])
    np.testing.assert_allclose(together, logsumexp(each, axis=1, b=stacked.weights_), rtol=1e-8)
    assert together.mean() >= each.mean(axis=0).max() - 1e-6


@pytest.mark.long
def test_fits_that_were_saved_are_stacked_as_before(stacked, parts, tmp_path):
    fits = {}
    for name, fit in zip(stacked.names, stacked.fits, strict=True):
        fit.save(tmp_path / f"{name}.nc")
        fits[name] = cv.TopicModel.load(tmp_path / f"{name}.nc")
    again = cv.stack(fits, parts[1])
    np.testing.assert_array_equal(again.scores, stacked.scores)
    np.testing.assert_array_equal(again.weights_, stacked.weights_)


@pytest.mark.long
def test_rates_are_the_weighted_mean_and_counts_come_from_fits_by_weight(stacked, parts):
    rates = np.stack([fit.rate() for fit in stacked.fits])
    np.testing.assert_allclose(stacked.rate(), np.tensordot(stacked.weights_, rates, 1))
    assert stacked.rate().dims == ("doc", "word")
    tables = stacked.predict_counts(60, np.random.default_rng(1))
    assert tables.dims == ("table", "doc", "word")
    assert tables["word"].to_numpy().tolist() == WORDS
    assert abs(float(tables.sum() / 60 / stacked.rate().sum()) - 1.0) < 0.1
    again = stacked.predict_counts(60, np.random.default_rng(1))
    assert (tables == again).all()
    alone = Stack(stacked.fits, stacked.names, np.array([0.0, 1.0, 0.0]), stacked.scores)
    rng = np.random.default_rng(3)
    rng.choice(3, size=5, p=alone.weights_)
    found = alone.predict_counts(5, np.random.default_rng(3), parts[0])
    np.testing.assert_array_equal(found, stacked.fits[1].predict_counts(5, rng, parts[0]))


@pytest.mark.long
def test_probabilities_are_weighted_means_and_scores_take_a_stack(stacked, parts):
    counts = np.random.default_rng(4).poisson(3.0, (24, 14))
    cells, rng = np.random.default_rng(5).random(counts.shape) < 0.4, np.random.default_rng(6)
    each, true = zip(*(fit._log_probabilities(counts, cells) for fit in stacked.fits), strict=True)
    together = logsumexp(each, axis=0, b=stacked.weights_[:, None])
    found = evaluation.predictive_log_score(counts, stacked, cells)
    assert found == pytest.approx(together.sum() / counts[cells].sum())
    np.testing.assert_array_equal(true[0], counts[cells])
    for ask in (
        lambda fit: fit._count_probabilities(counts, parts[0], cells),
        lambda fit: fit._report_probabilities(parts[1]),
    ):
        expected = np.tensordot(stacked.weights_, np.array([ask(fit) for fit in stacked.fits]), 1)
        np.testing.assert_allclose(ask(stacked), expected)
    pit = randomised(stacked._count_probabilities(counts, parts[0], cells), np.random.default_rng(6))
    found = evaluation.coverage(counts, stacked, rng, parts[0], cells=cells)
    assert found == (np.abs(pit - 0.5) <= 0.45).mean()
    pit = randomised(stacked._report_probabilities(parts[1]), np.random.default_rng(7))
    found = evaluation.coverage_of_reports(parts[1], stacked, np.random.default_rng(7))
    assert found == (np.abs(pit - 0.5) <= 0.45).mean()


@pytest.mark.long
def test_fits_that_see_other_cells_have_no_probabilities_together():
    counts = np.random.default_rng(8).poisson(3.0, (6, 6))
    data = cv.PrivatizedCounts(counts, 0.3)
    fits = (cv.BlockModel(1, **QUICK), cv.PoissonFactorization("dk,vk->dv", ranks={"k": 1}, **QUICK))
    both = Stack(tuple(fitted(fit, data) for fit in fits), ("a", "b"), np.full(2, 0.5), np.zeros((1, 2)))
    for ask in (both._log_probabilities, both._count_probabilities):
        with pytest.raises(ValueError, match="cells must select cells that every fit covers"):
            ask(counts)


def passed(stack, shape, X, cells=None):
    """(counts, cells) P(count <= y) in each of these cells, by default all, of all counts in turn."""
    return np.stack([np.add(*stack._count_probabilities(np.full(shape, y), X, cells)) for y in range(25)])


@pytest.mark.long
@pytest.mark.parametrize("given", [True, False])
def test_count_intervals_are_those_of_the_weighted_laws(stacked, parts, given):
    X = parts[0] if given else None
    mixed = Stack(stacked.fits, stacked.names, np.array([0.3, 0.5, 0.2]), stacked.scores)
    table = mixed.count_intervals(X, 0.8)
    assert list(table) == ["mean", "median", "lower", "upper"]
    assert table["median"].dims == ("doc", "word")
    assert table["word"].to_numpy().tolist() == WORDS
    some = np.arange(24 * 14).reshape(24, 14) % 5 == 0
    reached = passed(mixed, some.shape, X, some)
    for name, level in {"median": 0.5, "lower": 0.1, "upper": 0.9}.items():
        least = np.argmax(reached >= level - 1e-12, axis=0)
        np.testing.assert_array_equal(table[name].to_numpy()[some], least)
        assert table[name].dtype == np.int64
    each = [fit.count_intervals(X, 0.8) for fit in mixed.fits]
    assert any((table["upper"] != own["upper"]).any() for own in each)
    np.testing.assert_allclose(table["mean"], np.tensordot(mixed.weights_, [own["mean"] for own in each], 1))
    alone = Stack(stacked.fits, stacked.names, np.array([0.0, 1.0, 0.0]), stacked.scores)
    assert alone.count_intervals(X, 0.8).equals(each[1])
    with pytest.raises(ValueError, match="interval must be"):
        mixed.count_intervals(X, 1.5)


@pytest.mark.long
def test_count_intervals_of_pairs_are_the_same_on_both_sides():
    upper = np.triu(np.random.default_rng(3).poisson(3.0, (8, 8)), 1)
    data = cv.PrivatizedCounts(upper + upper.T, 0.5)
    fits = tuple(fitted(cv.BlockModel(k, directed=False, **QUICK), data) for k in (1, 3))
    both = Stack(fits, ("a", "b"), np.array([0.4, 0.6]), np.zeros((1, 2)))
    for X in (None, data):
        table, reached = both.count_intervals(X), passed(both, (8, 8), X)
        for name, level in {"median": 0.5, "lower": 0.05, "upper": 0.95}.items():
            found = table[name].to_numpy()
            assert (found == found.T).all()
            assert (np.diag(found) == 0).all()
            np.testing.assert_array_equal(found[np.triu_indices(8, 1)], np.argmax(reached >= level - 1e-12, axis=0))
    directed = fitted(cv.BlockModel(1, **QUICK), data)
    other = Stack((fits[0], directed), ("a", "b"), np.full(2, 0.5), np.zeros((1, 2)))
    for ask in (other.count_intervals, lambda: other.totals(data)):
        with pytest.raises(
            ValueError, match="fits must leave out the same cells, got a and b, whose models leave out different cells"
        ):
            ask()


@pytest.mark.long
def test_count_intervals_go_by_cells_whatever_fits_call_them():
    counts = np.random.default_rng(5).poisson(2.0, (6, 5))
    labelled = cv.PrivatizedCounts(counts, 0.4, column_labels=WORDS[:5])
    fits = (
        fitted(cv.TopicModel(1, **QUICK), labelled),
        fitted(cv.TopicModel(2, **QUICK), cv.PrivatizedCounts(counts, 0.4)),
        fitted(cv.TensorModel(1, modes=("row", "column"), **QUICK), labelled),
    )
    found = Stack(fits, ("a", "b", "c"), np.array([0.2, 0.5, 0.3]), np.zeros((1, 3))).count_intervals()
    means = [fit.count_intervals()["mean"].to_numpy() for fit in fits]
    np.testing.assert_allclose(found["mean"].to_numpy(), np.tensordot([0.2, 0.5, 0.3], means, 1))
    assert found["mean"].dims == ("doc", "word")
    assert found["word"].to_numpy().tolist() == WORDS[:5]


class Known:
    """A fit of one cell, with a law of its count; without anything else that a mixture's intervals do not ask for."""

    _in_pairs, _reader = False, SimpleNamespace(why_no_intervals="")

    def __init__(self, *law):
        self.reached = np.cumsum(law)

    def count_intervals(self, X, interval, uncalibrated):
        levels = {"median": 0.5, "lower": (1 - interval) / 2, "upper": (1 + interval) / 2}
        found = {name: int(np.argmax(self.reached >= level)) for name, level in levels.items()}
        return xr.Dataset({name: ("cell", [value]) for name, value in {"mean": 0.0, **found}.items()})

    def _count_probabilities(self, counts, X, cells):
        below = np.concatenate([[0.0], self.reached])[counts[cells]]
        return below, self.reached[counts[cells]] - below


@pytest.mark.long
@pytest.mark.parametrize(("rounding", "median"), [(0.0, 1), (1e-15, 1), (1e-9, 2)])
def test_a_level_that_the_mixed_law_just_reaches_is_reached(rounding, median):
    fits = Known(0.3, 0.4, 0.3), Known(0.1, 0.2 - 2 * rounding, 0.1 + 2 * rounding, 0.6)
    found = count_intervals_together(fits, np.full(2, 0.5), None, 0.9, False)
    assert found["median"].item() == median


@pytest.mark.long
def test_totals_are_those_of_the_weighted_draws(stacked, parts, monkeypatch):
    training, _ = parts
    alone = Stack(stacked.fits, stacked.names, np.array([0.0, 1.0, 0.0]), stacked.scores)
    found, own = alone.totals(training), stacked.fits[1].totals()
    np.testing.assert_allclose([found.reported, found.error, found.fitted], [own.reported, own.error, own.fitted])
    np.testing.assert_allclose([found.lower, found.upper], [own.lower, own.upper], rtol=0.02)
    mixed = Stack(stacked.fits, stacked.names, np.array([0.5, 0.0, 0.5]), stacked.scores)
    first, last = stacked.fits[0].totals(), stacked.fits[2].totals()
    together = mixed.totals(training)
    assert together.fitted == pytest.approx((first.fitted + last.fitted) / 2)
    for one, other, both in zip(first[3:], last[3:], together[3:], strict=True):  # ends of intervals
        assert 0.98 * min(one, other) <= both <= 1.02 * max(one, other)
    assert together.reported == own.reported
    half = training.hide(*np.nonzero(np.arange(24 * 14).reshape(24, 14) % 2))
    assert 0.3 < mixed.totals(half).fitted / together.fitted < 0.7
    with pytest.raises(ValueError, match="X must hold the cells of the fit"):
        mixed.totals(training.take(np.arange(5)))
    known = dict(zip(stacked.fits, (1.0, 2.0, 3.0), strict=True))
    monkeypatch.setattr("countveil.fit.totals.expected_totals", lambda fit, _: np.full(30, known[fit]))
    assert alone.totals(training)[2:5] == (2.0, 2.0, 2.0)
    assert mixed.totals(training)[2:5] == (2.0, 1.0, 3.0)


@pytest.mark.long
def test_simulated_releases_come_from_fits_by_weight(stacked):
    found = stacked.predict_reports(40, np.random.default_rng(1))
    assert found.dims == ("release", "doc", "word")
    assert found["word"].to_numpy().tolist() == WORDS
    assert found.dtype == np.int64
    alone = Stack(stacked.fits, stacked.names, np.array([0.0, 1.0, 0.0]), stacked.scores)
    rng = np.random.default_rng(3)
    rng.choice(3, size=5, p=alone.weights_)
    assert (alone.predict_reports(5, np.random.default_rng(3)) == stacked.fits[1].predict_reports(5, rng)).all()


@pytest.mark.long
def test_topics_have_the_weight_of_the_chains_that_have_them(stacked):
    table = stacked.topics(4)
    assert table.columns[:2].tolist() == ["topic", "support"]
    first = table[table["topic"] == 0]
    assert set(first["word"]) <= set(WORDS[:7]) or set(first["word"]) <= set(WORDS[7:])
    assert first["support"].iloc[0] == pytest.approx(1.0 - stacked.weights_[0], abs=0.15)
    assert stacked.top_words(2).equals(stacked.topics(2))
    alone = Stack(stacked.fits, stacked.names, np.array([0.0, 1.0, 0.0]), stacked.scores)
    np.testing.assert_allclose(alone.topics(3)["probability"], stacked.fits[1].topics(3)["probability"], rtol=0.05)
    np.testing.assert_allclose(alone.topics(1)["support"], stacked.fits[1].topics(1)["support"])


@pytest.mark.long
def test_methods_without_calibrated_intervals_have_weights_and_no_intervals(parts):
    point = fitted(cv.TopicModel(2, method=cv.EM(max_iter=5), seed=1, threads=1, progress=False), parts[0])
    sampled = fitted(cv.TopicModel(2, **QUICK), parts[0])
    found = cv.stack([sampled, point], parts[1])
    assert found.names == ("fit 1", "fit 2")
    assert "lower" not in found.topics()
    assert "uncalibrated_lower" in found.topics(uncalibrated=True)
    assert list(found.count_intervals()) == ["mean", "median"]
    assert list(found.count_intervals(uncalibrated=True))[2:] == ["uncalibrated_lower", "uncalibrated_upper"]
    assert found.totals(parts[0]).fitted_upper is None


@pytest.mark.long
def test_what_cannot_be_stacked_is_refused(stacked, parts):
    (training, held_out), one, two = parts, stacked.fits[0], stacked.fits[1]
    rows, columns = np.nonzero(np.ones(held_out.shape, dtype=bool))
    with pytest.raises(ValueError, match="fits must be at least two, got 1"):
        cv.stack([one], held_out)
    with pytest.raises(TypeError, match="fits must be a list of fits or a dict"):
        cv.stack(one, held_out)
    with pytest.raises(TypeError, match="fits must be fitted models of countveil, got int"):
        cv.stack([one, 3], held_out)
    with pytest.raises(NotFittedError):
        cv.stack([one, cv.TopicModel(2)], held_out)
    with pytest.raises(ValueError, match="held_out must have cells that are not masked, got none"):
        cv.stack([one, two], held_out.hide(rows, columns))
    with pytest.raises(ValueError, match="held_out must hold the cells of the fit"):
        cv.stack([one, two], held_out.take(np.arange(5)))
    other = fitted(cv.TopicModel(1, **QUICK), training.take(np.arange(9)))
    with pytest.raises(ValueError, match=r"fits must cover the same cells, got \(24, 14\) for fit 1 and \(9, 14\)"):
        cv.stack([one, other], held_out)
    tensor = fitted(cv.TensorModel(1, **QUICK), training)
    with pytest.raises(ValueError, match="axis must be one along which all fits list components"):
        cv.stack([one, tensor], held_out).topics()
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        stacked.predict_counts(1, 7)


@pytest.mark.long
def test_fits_with_other_labels_or_another_noise_are_refused(stacked, parts):
    training, _ = parts
    counts = np.random.default_rng(2).poisson(2.0, training.shape)
    turned = fitted(cv.TopicModel(2, **QUICK), cv.PrivatizedCounts(counts, 0.4, column_labels=WORDS[::-1]))
    unlabelled = cv.PrivatizedCounts(counts, 0.4)
    with pytest.raises(ValueError, match=r"got label '.*' of fit 1 and '.*' of fit 2 in entry . of 'word'"):
        cv.stack([stacked.fits[1], turned], unlabelled)
    without = fitted(cv.TopicModel(2, **QUICK), unlabelled)
    assert cv.stack([stacked.fits[1], without], unlabelled).weights_.sum() == pytest.approx(1.0)
    weaker = fitted(cv.TopicModel(2, alpha=0.1, **QUICK), np.maximum(counts, 0))
    other = fitted(cv.TopicModel(1, alpha=0.5, **QUICK), np.maximum(counts, 0))
    with pytest.raises(ValueError, match="held_out must have the same noise for every fit"):
        cv.stack([weaker, other], counts)


@pytest.mark.long
def test_families_that_list_other_axes_or_see_other_cells_are_refused_by_name():
    counts = np.random.default_rng(3).poisson(2.0, (6, 6))
    data = cv.PrivatizedCounts(np.triu(counts, 1), 0.4)
    topics = fitted(cv.TopicModel(2, **QUICK), data)
    components = fitted(cv.TensorModel(2, modes=("doc", "word"), **QUICK), data)
    found = cv.stack([topics, components], data)
    with pytest.raises(
        ValueError, match=r"along the same axes, got \{'fit 1': \('word',\), 'fit 2': \('doc', 'word'\)"
    ):
        found.topics()
    pairs = fitted(cv.BlockModel(2, directed=False, **QUICK), data)
    with pytest.raises(ValueError, match="cells must select cells that every fit covers, got numbers"):
        cv.stack([topics, pairs], data).log_predictive(data)


REPORTS = np.random.default_rng(1).integers(-2, 4, (9, 7))
MASK = np.random.default_rng(2).random((9, 7)) < 0.2


def seen(observed):
    rows, columns = seen_cells(observed)
    found = np.zeros(observed.shape, dtype=bool)
    found[rows, columns] = True
    return found


def test_every_cell_that_was_seen_is_in_one_part():
    data = cv.PrivatizedCounts(REPORTS, 0.5, MASK)
    training, held_out = hold_out(data, 0.25, seed=3)
    np.testing.assert_array_equal(seen(training) ^ seen(held_out), ~MASK)
    assert not (seen(training) & seen(held_out)).any()
    assert seen(held_out).sum() == round(0.25 * (~MASK).sum())
    rows, columns = np.nonzero(seen(held_out))
    np.testing.assert_array_equal(held_out.cells(rows, columns)[0], np.maximum(REPORTS, 0)[rows, columns])
    again = hold_out(data, 0.25, seed=3)[1]
    np.testing.assert_array_equal(seen(again), seen(held_out))
    assert (seen(hold_out(data, 0.25, seed=4)[1]) != seen(held_out)).any()


def test_pairs_of_actors_stay_together():
    counts = np.triu(np.random.default_rng(4).integers(0, 5, (8, 8)), 1)
    training, held_out = hold_out(cv.PrivatizedCounts(counts + counts.T, 0.5), 0.3, seed=1)
    for part in (training, held_out):
        np.testing.assert_array_equal(seen(part), seen(part).T)
    release = cv.privatize(counts, cv.PrivacyLevel(1, 1), directed=False)
    training, held_out = hold_out(release, 0.3, seed=1)
    assert not np.tril(seen(training) | seen(held_out), -1).any()
    assert seen(held_out).any()


@pytest.mark.parametrize("share", [0.0, 1.0, True, "half", 0.001, 0.999])
def test_a_share_that_leaves_a_part_empty_is_refused(share):
    with pytest.raises(ValueError, match=r"share must"):
        hold_out(cv.PrivatizedCounts(REPORTS, 0.5), share, seed=1)


def test_other_data_are_refused(monkeypatch):
    with pytest.raises(TypeError, match="must carry its noise level"):
        hold_out(REPORTS)
    with pytest.raises(ValueError, match="seed must be a whole number"):
        hold_out(cv.PrivatizedCounts(REPORTS, 0.5), seed=-1)
    monkeypatch.setattr(sys.modules[hold_out.__module__], "MAX_CELLS", 60)
    with pytest.raises(ValueError, match="at most 60 cells, got 9 x 7"):
        hold_out(cv.PrivatizedCounts(REPORTS, 0.5))
