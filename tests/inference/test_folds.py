"""Which cells are held out together, and which are never held out."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.special import logsumexp

import countveil as cv
from countveil.evaluation import predictive_log_score
from countveil.inference import folds
from countveil.inference.folds import (
    Cells,
    cells_to_score,
    folds_of,
    is_mirrored,
    log_mean_extrapolated,
    scores_left_out,
    stacking_weights,
)
from countveil.inference.matching import keep_weights, members_of
from countveil.laws.counts import POISSON
from tests.joint import planted


def reports(shape, seed=1):
    return np.random.default_rng(seed).integers(-2, 4, shape)


def keys(found, n_columns):
    return [cells.rows * n_columns + cells.columns for cells in found]


def test_every_cell_that_all_have_seen_is_in_one_fold():
    mask = np.random.default_rng(2).random((9, 7)) < 0.2
    one = cv.PrivatizedCounts(reports((9, 7)), 0.5, mask)
    other = one.hide(np.array([0, 8]), np.array([0, 6]))
    mask[[0, 8], [0, 6]] = True
    found = folds_of([one, other], 4, np.random.default_rng(3))
    assert [cells.size for cells in found] == [len(x) for x in np.array_split(np.arange((~mask).sum()), 4)]
    assert sorted(np.concatenate(keys(found, 7))) == np.flatnonzero(~mask).tolist()
    assert all(np.unique(cells.rows).size > 2 for cells in found)  # at random, not by rows


def test_large_data_are_sampled_without_being_made_dense(monkeypatch):
    monkeypatch.setattr(folds, "MAX_CELLS", 50)
    huge = sp.csr_array(([3], ([5], [7])), shape=(10**6, 10**6))
    observations = cv.PrivatizedCounts(huge, 0.5).hide(np.array([1]), np.array([1]))
    found = folds_of([observations], 3, np.random.default_rng(1))
    assert [cells.size for cells in found] == [50, 50, 50]
    assert np.unique(np.concatenate(keys(found, 10**6))).size == 150
    # So are small ones where a fold holds no more.
    small = cv.PrivatizedCounts(reports((20, 20)), 0.5)
    assert [cells.size for cells in folds_of([small], 2, np.random.default_rng(1))] == [50, 50]


def test_of_a_mask_that_leaves_little_enough_cells_are_found(monkeypatch):
    monkeypatch.setattr(folds, "MAX_CELLS", 20)
    mask = np.ones((40, 40), dtype=bool)
    mask[:, :3] = False
    seen = cv.PrivatizedCounts(reports((40, 40)), 0.5, mask)
    found = folds_of([seen], 2, np.random.default_rng(1))
    assert [cells.size for cells in found] == [20, 20]
    assert max(cells.columns.max() for cells in found) < 3


def test_a_pair_of_actors_is_one_cell_above_the_diagonal():
    found = folds_of([cv.PrivatizedCounts(reports((6, 6)), 0.5)], 3, np.random.default_rng(1), pairs=True)
    assert sorted(np.concatenate(keys(found, 6))) == [6 * i + j for i in range(6) for j in range(i, 6)]
    rows, columns = found[0].both_directions()
    assert set(zip(rows, columns, strict=True)) == set(zip(columns, rows, strict=True))


def test_fewer_cells_than_folds_are_refused():
    mask = np.ones((3, 3), dtype=bool)
    mask[0, :2] = False
    with pytest.raises(ValueError, match="folds must be at most the number of observed cells, 2, got 3"):
        folds_of([cv.PrivatizedCounts(reports((3, 3)), 0.5, mask)], 3, np.random.default_rng(1))


def test_a_mirrored_matrix_is_known():
    values = reports((8, 8))
    assert not is_mirrored(cv.PrivatizedCounts(values, 0.5))
    upper = np.triu(values)
    assert not is_mirrored(cv.PrivatizedCounts(upper, 0.5))
    assert is_mirrored(cv.PrivatizedCounts(upper + np.triu(values, 1).T, 0.5))
    assert not is_mirrored(cv.PrivatizedCounts(np.zeros((8, 8), dtype=int), 0.5))
    assert not is_mirrored(cv.PrivatizedCounts(reports((8, 7)), 0.5))


ONE, TWO = np.zeros(4, dtype=int), np.array([0, 0, 1, 1])


def many(scores):
    """The log mean over many draws from those of halves (2, n, cells) of one chain, in the obvious way."""
    halves = logsumexp(scores, axis=1) - np.log(scores.shape[1])
    return 2.0 * (logsumexp(halves, axis=0) - np.log(2.0)) - halves.mean(axis=0)


def test_what_is_extrapolated_stays_a_probability():
    """A chain that has not arrived: its halves differ by far more than chance."""
    drifting, later = np.log([[1e-3], [1e-2], [0.4], [0.5]]), np.array([False, False, True, True])
    np.testing.assert_allclose(log_mean_extrapolated(iter(drifting), ONE, later, 1), np.log([0.5]))
    apart = np.log([[0.5], [0.5], [0.01], [0.01]])  # two chains, of which eight would gain more than there is
    later = np.array([False, True, False, True])
    np.testing.assert_allclose(log_mean_extrapolated(iter(apart), TWO, later, 8), np.log([0.5]))
    assert log_mean_extrapolated(iter(apart), TWO, later, 4) < np.log(0.5)


def test_chains_that_have_not_arrived_pull_nothing_far_down():
    """The halves of either chain differ by far more than chance: by (15.4) alone it would be above its largest draw."""
    later = np.array([False, True, False, True])
    for draws in ([0.5, 1e-6, 1e-6, 0.5], [0.001, 0.5, 0.5, 0.5]):
        for n_chains in (4, 8):
            found = log_mean_extrapolated(iter(np.log(draws)[:, None]), TWO, later, n_chains)
            assert np.log(np.mean(draws)) - 0.7 < found < np.log(0.5) + 1e-12  # by log 2 at most


def test_a_mean_over_few_draws_is_extrapolated_to_many():
    """Where the mean over 20 is clearly too low: two chains, of draws that are alike."""
    rng = np.random.default_rng(1)
    cells, n_draws = 40_000, 10
    noise = rng.normal(size=(2, n_draws, cells))
    chains = np.empty_like(noise)
    chains[:, 0] = noise[:, 0]
    for s in range(1, n_draws):
        chains[:, s] = 0.3 * chains[:, s - 1] + np.sqrt(1 - 0.09) * noise[:, s]
    scores = 0.6 * chains.reshape(20, cells) - 2.0
    plain = (logsumexp(scores, axis=0) - np.log(20)).mean()
    numbers, later = np.repeat([0, 1], 10), np.tile(np.arange(10) >= 5, 2)
    found = log_mean_extrapolated(iter(scores), numbers, later, 2).mean()
    right = 0.18 - 2.0  # log of a lognormal mean
    assert plain - right < -0.01
    assert abs(found - right) < 0.25 * abs(plain - right)
    halves = scores.reshape(2, 2, 5, cells).transpose(1, 0, 2, 3).reshape(2, 10, cells)
    wanted = np.minimum(many(halves), scores.max(axis=0))
    np.testing.assert_allclose(log_mean_extrapolated(iter(scores), numbers, later, 2), wanted)


def test_what_cannot_be_extrapolated_is_the_plain_mean():
    scores = np.random.default_rng(1).normal(size=(4, 3))
    for late in (False, True):
        half = np.full(4, late)
        one = log_mean_extrapolated(iter(scores[:1]), ONE[:1], half[:1], 4)
        np.testing.assert_array_equal(one, scores[0])
        wanted = logsumexp(scores, axis=0) - np.log(4)
        np.testing.assert_allclose(log_mean_extrapolated(iter(scores), ONE, half, 4), wanted)
    impossible = np.array([[-np.inf, -np.inf], [-np.inf, -1.0]])  # in a half, or in all draws
    later, wanted = np.array([False, True]), [-np.inf, -1.0 - np.log(2)]
    for half in (later, ~later):
        found = log_mean_extrapolated(iter(impossible), ONE[:2], half, 1)
        np.testing.assert_allclose(found, wanted)
    for chains in ([0, 1], [1, 0]):  # in a chain
        found = log_mean_extrapolated(iter(impossible), np.array(chains), later, 4)
        np.testing.assert_allclose(found, wanted)


def test_few_chains_are_extrapolated_to_more():
    """Chains in modes of their own, which draws do not leave."""
    rng = np.random.default_rng(2)
    cells, n_chains, n_draws = 40_000, 4, 20
    modes = 0.5 * rng.normal(size=(n_chains, 1, cells))
    scores = modes + 0.2 * rng.normal(size=(n_chains, n_draws, cells)) - 2.0
    later = np.tile(np.arange(n_draws) >= n_draws // 2, n_chains)
    numbers = np.repeat(np.arange(n_chains), n_draws)

    def found(n, wanted):
        some = slice(n * n_draws)
        return log_mean_extrapolated(iter(scores[:n].reshape(-1, cells)), numbers[some], later[some], wanted)

    two, four = (found(n, n).mean() for n in (2, 4))
    assert four - two > 0.02
    assert abs(found(2, 4).mean() - four) < 0.1 * (four - two)
    largest = scores[:2].max(axis=1)
    alone = [many(own.reshape(2, 10, cells)) for own in scores[:2]]
    alone = np.minimum(alone, largest).mean(axis=0)
    both = many(scores[:2].reshape(2, 2, 10, cells).transpose(1, 0, 2, 3).reshape(2, 20, cells))
    both = np.minimum(both, largest.max(axis=0))
    np.testing.assert_allclose(found(2, 2), both)
    np.testing.assert_allclose(found(2, 1), alone)
    wanted = both + 0.5 * (both - alone)
    np.testing.assert_allclose(found(2, 4), np.minimum(wanted, largest.max(axis=0)))
    np.testing.assert_array_equal(found(1, 4), found(1, 1))  # nothing to tell from


def test_a_chain_counts_as_it_weighs():
    """Three draws of one chain, and one of another, as stacked weights have it."""
    scores, later = np.log([[0.1], [0.1], [0.1], [0.5]]), np.array([False, True, True, False])
    found = log_mean_extrapolated(iter(scores), np.array([0, 0, 0, 1]), later, 4)
    first, second = np.log([(0.1 + 0.5) / 2, 0.1])
    whole = 2.0 * np.log(0.2) - 0.5 * (first + second)
    alone = 0.75 * np.log(0.1) + 0.25 * np.log(0.5)
    np.testing.assert_allclose(found, min(whole + 0.5 * (whole - alone), np.log(0.5)))


RNG = np.random.default_rng(1)
SCORES = np.log(RNG.dirichlet(np.full(5, 0.5), 300)[:, :4])


def objective(weights):
    return logsumexp(SCORES, axis=1, b=weights).mean()


def test_no_other_weights_are_better():
    found = stacking_weights(SCORES)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()
    best = objective(found)
    for near in (0.5, 0.1, 0.01):
        for other in RNG.dirichlet(np.ones(4), 50):
            assert objective((1.0 - near) * found + near * other) <= best + 1e-8


def test_scores_of_any_size_and_of_one_chain_have_weights():
    shifts = RNG.normal(scale=2000.0, size=(300, 1))
    np.testing.assert_allclose(stacking_weights(SCORES + shifts), stacking_weights(SCORES), atol=1e-9)
    assert stacking_weights(SCORES[:, :1]).tolist() == [1.0]
    alike = np.repeat(SCORES[:, :1], 3, axis=1)
    np.testing.assert_allclose(stacking_weights(alike), 1 / 3)
    worse = np.stack([SCORES[:, 0], SCORES[:, 0] - 1.0], axis=1)
    np.testing.assert_allclose(stacking_weights(worse), [1.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("bad", [np.empty((0, 2)), np.array([[0.0, -np.inf]]), np.array([[np.nan, 0.0]])])
def test_scores_that_are_no_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="scores must be finite numbers of at least one cell"):
        stacking_weights(bad)


def data(mask=None):
    reports = np.random.default_rng(2).integers(-2, 5, (6, 6))
    return cv.PrivatizedCounts(reports, 0.4, mask)


def draws(n=7):
    rng = np.random.default_rng(4)
    return [((rng.gamma(1.0, 1.0, (6, 2)), rng.gamma(1.0, 1.0, (6, 2))), ()) for _ in range(n)]


def probability(observed, factors, row, column):
    """P(max(report, 0) | rate), from the slow law."""
    report = int(observed.cells(np.array([row]), np.array([column]))[0][0])
    rate = float(factors[0][row] @ factors[1][column])
    counts = stats.poisson.pmf(np.arange(80), rate)
    noise = 0.6 / 1.4 * 0.4 ** np.abs(np.arange(-80, 81)[:, None] - np.arange(80))  # by report and count
    reports = noise @ counts
    return reports[80 + report] if report > 0 else reports[:81].sum() + noise[0] @ counts * 0.4 / 0.6


def test_a_cell_is_left_out_by_the_harmonic_mean_of_its_probabilities():
    observed, cells = data(), Cells(np.array([5, 0, 2]), np.array([1, 3, 2]))
    found = scores_left_out(draws(), observed, POISSON, cells)
    for score, row, column in zip(found, cells.rows, cells.columns, strict=True):
        each = [probability(observed, factors, row, column) for factors, _ in draws()]
        assert np.exp(score) == pytest.approx(1.0 / np.mean(1.0 / np.array(each)), rel=1e-9)


def test_a_pair_is_left_out_as_a_whole_except_what_is_masked():
    mask = np.zeros((6, 6), dtype=bool)
    mask[3, 0] = True
    observed, cells = data(mask), Cells(np.array([0, 0, 2]), np.array([1, 3, 2]))
    found = scores_left_out(draws(), observed, POISSON, cells, pairs=True)
    both = [
        np.mean([1.0 / np.prod([probability(observed, f, *cell) for cell in pair]) for f, _ in draws()])
        for pair in ([(0, 1), (1, 0)], [(0, 3)], [(2, 2)])
    ]
    np.testing.assert_allclose(np.exp(-found), both, rtol=1e-9)


def test_cells_are_those_that_were_seen_by_the_seed():
    mask = np.zeros((6, 6), dtype=bool)
    mask[1] = True
    one, same, other = (cells_to_score(data(mask), seed, False) for seed in (1, 1, 2))
    assert sorted(one.rows * 6 + one.columns) == np.flatnonzero(~mask).tolist()
    np.testing.assert_array_equal(one.columns, same.columns)
    assert (one.columns != other.columns).any()
    pairs = cells_to_score(data(mask), 1, True)
    assert (pairs.rows <= pairs.columns).all()
    assert pairs.size == 16


QUICK = {"chains": 3, "draws": 24, "tune": 10, "seed": 1, "threads": 1, "progress": False}
REPORTS = planted(30, 20, 3, 0.5, seed=1)[3]
DATA = cv.PrivatizedCounts(REPORTS, 0.5)


STACKED = cv.Gibbs(weights="stacked")


def fitted(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cv.TopicModel(3, likelihood="poisson", **QUICK | options).fit(DATA)


@pytest.fixture(scope="module")
def stacked():
    """A fit whose third chain knows nothing of the data."""
    fit = fitted(method=STACKED)
    draws = fit.posterior["posterior"]
    draws["theta"][2] = draws["theta"].to_numpy()[2].mean(axis=1, keepdims=True)
    draws["phi"][2] = 1 / 20
    folds.weigh(*fit._fitted(), fit._reader.data_matrix(fit._observed(DATA)), fit.seed_)
    return fit


def test_a_chain_that_predicts_badly_has_no_weight(stacked):
    assert stacked.weights_.sum() == pytest.approx(1.0)
    assert stacked.weights_[2] < 0.05
    assert (stacked.weights_[:2] > 0.0).all()


def test_whatever_is_said_of_all_draws_is_of_the_mixture(stacked):
    draws, numbers = stacked.posterior["posterior"], members_of(stacked.posterior)
    theta, phi = (draws[name].to_numpy().reshape(72, *draws[name].shape[2:])[numbers] for name in ("theta", "phi"))
    rates = np.einsum("sdk,skv->sdv", theta.astype(float), phi.astype(float))
    np.testing.assert_allclose(stacked.rate(), rates.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(stacked.components_.sum(axis=1), 1.0)
    np.testing.assert_allclose(stacked.count_intervals()["mean"], rates.mean(axis=0), rtol=1e-4)
    one = stacked.predict_counts(400, np.random.default_rng(1)).mean("table")
    assert abs(one.sum() / rates.mean(axis=0).sum() - 1.0) < 0.05
    counts = np.maximum(REPORTS, 0)
    mass = np.log(rates) * counts - rates - np.vectorize(lambda y: np.log(np.arange(1, y + 1)).sum())(counts)
    score = (logsumexp(mass, axis=0) - np.log(72)).sum() / counts.sum()
    assert predictive_log_score(counts, stacked) == pytest.approx(score, rel=1e-6)


def test_components_are_of_the_mixture_of_the_chains_that_have_them(stacked):
    stacked._adopt(stacked.posterior)
    draws, numbers = stacked.posterior["posterior"], members_of(stacked.posterior)
    sizes = draws["theta"].sum("doc").to_numpy()
    sizes = sizes / sizes.sum(axis=2, keepdims=True)
    table, shares = stacked.top_words(3), stacked.parts.prevalences()
    for k, found in stacked._reader.numbered("k"):
        own = dict(zip(found.chains.tolist(), found.components.tolist(), strict=True))
        places = [(s // 24, s % 24, own[s // 24]) for s in numbers if s // 24 in own]
        words = np.array([draws["phi"].to_numpy()[place] for place in places])
        best = table[table["topic"] == k].iloc[0]
        values = words[:, int(best["word"])]
        np.testing.assert_allclose(best["probability"], values.mean(), rtol=1e-5)
        ends = [best["lower"], best["upper"]]
        np.testing.assert_allclose(ends, np.quantile(values, [0.05, 0.95]), rtol=1e-5)
        np.testing.assert_allclose(stacked._reader.member_means("word")[k], words.mean(axis=0), rtol=1e-5)
        size = np.mean([sizes[place] for place in places])
        np.testing.assert_allclose(shares["prevalence"][k], size, rtol=1e-5)


def test_scores_of_reports_are_weighted_and_those_of_chains_are_not(stacked):
    every = stacked.log_likelihood(DATA)
    assert every.sizes["chain"] == 3
    by_chain = logsumexp(every, axis=1) - np.log(24)
    found = logsumexp(by_chain, axis=0, b=stacked.weights_[:, None])
    np.testing.assert_allclose(stacked.log_predictive(DATA), found, rtol=1e-9)
    assert np.ptp(every.to_numpy()[2], axis=0).max() < np.ptp(every.to_numpy()[0], axis=0).max()


def test_support_is_the_weight_of_the_chains(stacked):
    table = stacked.topics(2)
    assert set(table.groupby("topic")["support"].first().round(9)) <= {
        round(sum(stacked.weights_[list(some)]), 9) for some in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    }
    alone = fitted()
    keep_weights(alone.posterior, np.array([0.0, 1.0, 0.0]))
    own = alone.topics(3)
    assert (own["support"] == 1.0).all()
    phi = alone.posterior["posterior"]["phi"].to_numpy()[1]
    np.testing.assert_allclose(
        sorted(own.groupby("topic")["probability"].first()), sorted(phi.mean(axis=0).max(axis=1)), rtol=1e-5
    )


def test_weights_are_saved_and_come_from_the_seed(stacked, tmp_path):
    stacked.save(tmp_path / "fit.nc")
    again = cv.TopicModel.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(again.weights_, stacked.weights_)
    assert again.rate().equals(stacked.rate())
    one, other = fitted(method=STACKED), fitted(method=STACKED, threads=2)
    np.testing.assert_array_equal(one.weights_, other.weights_)
    plain = fitted()
    assert plain.weights_.tolist() == [1 / 3] * 3
    np.testing.assert_array_equal(plain.posterior["posterior"]["theta"], one.posterior["posterior"]["theta"])
    assert fitted(method=STACKED, chains=1).weights_.tolist() == [1.0]
    with pytest.raises(ValueError, match="weights must be one of"):
        fitted(method=cv.Gibbs(weights="best"))


def test_every_model_has_weights_and_mirrored_pairs_count_once():
    counts = np.random.default_rng(3).poisson(3.0, (8, 8))
    network = cv.PrivatizedCounts(np.triu(counts, 1) + np.triu(counts, 1).T, 0.4)
    quick = QUICK | {"method": STACKED, "draws": 6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fits = [cv.BlockModel(2, **quick).fit(network)]
        fits.append(cv.TensorModel(2, **quick).fit(cv.PrivatizedCounts(counts.reshape(4, 2, 8), 0.4)))
        fits.append(
            cv.TopicModel(2, **quick | {"method": cv.AugmentedGibbs(weights="stacked")}).fit(
                cv.PrivatizedCounts(counts, 0.4)
            )
        )
    for fit in fits:
        assert fit.weights_.shape == (3,)
        assert fit.weights_.sum() == pytest.approx(1.0)
        assert not np.allclose(fit.weights_, 1 / 3)


def test_methods_without_chains_have_no_weights():
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        cv.EM(weights="stacked")


def test_an_interrupt_while_cells_are_scored_leaves_equal_weights_and_the_fit(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(folds, "scores_left_out", interrupted)
    with pytest.warns(UserWarning, match="chains have equal weights: scoring them was interrupted"):
        fit = cv.TopicModel(3, method=STACKED, **QUICK).fit(DATA)
    assert fit.weights_.tolist() == [1 / 3] * 3
    assert fit.posterior["posterior"].sizes["draw"] == 24
