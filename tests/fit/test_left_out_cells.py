"""Cells that a model leaves out are never predicted or scored, and a pair of an undirected network is one count."""

import numpy as np
import pytest
from scipy import stats

import countveil as cv
from countveil import evaluation
from tests.joint import two_sided_geometric

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SHORT = {"draws": 8, "tune": 8, "chains": 2, "seed": 1, "threads": 1, "progress": False}
ACTORS, ALPHA = 7, 0.3
TRUE = np.random.default_rng(1).poisson(4.0, (ACTORS, ACTORS)) * ~np.eye(ACTORS, dtype=bool)
PAIRS = np.triu(TRUE, 1) + np.triu(TRUE, 1).T
NOISE = two_sided_geometric(np.full(TRUE.shape, ALPHA), np.random.default_rng(2))


def network(directed, self_loops=False):
    """(fit, true counts, reports, mask of the cells that are counts)."""
    true = TRUE if directed else PAIRS
    if self_loops:
        true = true + 2 * np.eye(ACTORS, dtype=int)
    cells = np.ones(true.shape, dtype=bool) if directed else np.triu(np.ones(true.shape, dtype=bool))
    cells &= self_loops | ~np.eye(ACTORS, dtype=bool)
    reports = cv.PrivatizedCounts(np.where(cells, true + NOISE, 0), ALPHA)
    model = cv.BlockModel(2, directed=directed, self_loops=self_loops, **SHORT)
    return model.fit(reports), true, reports, cells


@pytest.mark.parametrize(("directed", "self_loops"), [(True, False), (True, True), (False, False), (False, True)])
def test_predictions_are_tables_that_the_network_could_have(directed, self_loops):
    fit, _, reports, cells = network(directed, self_loops)
    rng, whole = np.random.default_rng(3), cells | cells.T
    intervals = fit.count_intervals(reports, uncalibrated=True)
    tables = [*fit.predict_counts(3, rng, reports).to_numpy(), *fit.predict_counts(3, rng).to_numpy()]
    tables += [*fit.predict_reports(3, rng).to_numpy(), *(each.to_numpy() for each in intervals.values())]
    for table in tables:
        assert not table[~whole].any()
        assert table[whole].any()
        assert directed or (table == table.T).all()
    again = cv.PrivatizedCounts(fit.predict_counts(1, rng).to_numpy()[0], ALPHA)
    assert fit._observed(again).n_masked == fit._observed(reports).n_masked


@pytest.mark.parametrize(("directed", "self_loops"), [(True, False), (False, False), (False, True)])
def test_scores_are_of_each_count_once(directed, self_loops):
    fit, true, reports, cells = network(directed, self_loops)
    rows, columns = np.nonzero(cells)
    below, at = fit._count_probabilities(true, reports)
    assert below.shape == at.shape == rows.shape
    means = np.zeros(rows.size)
    for (theta, phi), parameters in fit._reader.draws():
        bursts, p = (theta @ phi.T)[rows, columns], np.broadcast_to(parameters[0], ACTORS)[columns]
        means += stats.nbinom.pmf(true[rows, columns], bursts / -np.log1p(-p), 1.0 - p)
    score = evaluation.predictive_log_score(true, fit)
    assert score == pytest.approx(np.log(means / 16).sum() / true[cells].sum())
    assert score == evaluation.predictive_log_score(true, fit, np.ones(true.shape, dtype=bool))
    if not directed:
        assert score == evaluation.predictive_log_score(np.triu(true), fit)
        some = np.random.default_rng(4).random(true.shape) < 0.3
        expected = evaluation.predictive_log_score(true, fit, (some | some.T) & cells)
        for mask in (some, some.T, some | some.T):
            assert evaluation.predictive_log_score(true, fit, mask) == expected


def test_both_sides_of_an_undirected_network_must_say_the_same():
    fit, true, _, _ = network(directed=False)
    wrong = true.copy()
    wrong[4, 1] += 1
    with pytest.raises(ValueError, match="counts of an undirected network must be the same on both sides"):
        fit._count_probabilities(wrong)


def test_entries_with_themselves_are_left_out_of_every_slice():
    counts = np.random.default_rng(5).poisson(3.0, (ACTORS, ACTORS, 3))
    names = {"names": ("actor", "to", "kind"), "shared": {"to": "actor"}}
    model = cv.PoissonFactorization("ic,jc,kc->ijk", ranks={"c": 2}, **names, **SHORT)
    fit = model.fit(cv.PrivatizedCounts(counts, ALPHA))
    drawn = fit.predict_counts(2, np.random.default_rng(6)).to_numpy()
    assert not np.einsum("niik->nik", drawn).any()
    assert fit._count_probabilities(counts)[0].size == 3 * ACTORS * (ACTORS - 1)
