import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import optimize
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from countveil.data.observations import PrivatizedCounts
from countveil.engines import blocks
from countveil.engines.threads import ThreadEngine
from countveil.inference.facts import facts_of
from countveil.inference.starts import alternating
from countveil.inference.starts.alternating import (
    fit_reports,
    least_squares,
    least_squares_start,
    project,
)
from countveil.kernels.tiles import is_dense
from tests.inference.test_facts import dense_target, some_observations
from tests.joint import SERIAL, assert_same_bits, planted


def test_a_wholly_masked_row_and_column_are_filled_without_complaint():
    mask = np.zeros((5, 6), dtype=bool)
    mask[2] = mask[:, 3] = True
    observations = PrivatizedCounts(np.random.default_rng(5).integers(0, 5, (5, 6)), 0.4, mask)
    theta, phi = least_squares_start(observations, 2, np.random.default_rng(6), SERIAL)
    assert np.isfinite(theta).all()
    assert np.isfinite(phi).all()


def objective(matrix, theta, phi):
    return ((matrix - theta @ phi.T) ** 2).sum()


def test_the_least_squares_objective_never_increases():
    _, _, observations, _ = planted(60, 50, 4, 0.5, seed=7)
    target = dense_target(observations)
    path = [
        objective(target, *fit_reports(observations, 4, np.random.default_rng(8), SERIAL, iterations))
        for iterations in range(1, 21)
    ]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in itertools.pairwise(path))
    assert path[-1] < 0.98 * path[0]


@pytest.mark.parametrize("iterations", [1, 5])
def test_the_column_updated_last_is_at_its_exact_minimum(iterations):
    matrix = np.random.default_rng(14).gamma(0.5, 1.0, (30, 20))
    theta, phi = least_squares(matrix, np.zeros(30), 3, np.random.default_rng(15), iterations)
    gradient = (theta @ phi.T - matrix).T @ theta[:, -1]
    held = phi[:, -1] == 0.0
    assert held.any()
    assert (gradient[held] >= 0.0).all()
    np.testing.assert_allclose(gradient[~held], 0.0, atol=1e-9)


@pytest.mark.parametrize("stored", ["dense", "sparse"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", ["scalar", "row", "cell"])
def test_least_squares_of_reports_are_those_of_their_dense_matrix(kind, masked, stored):
    observations = some_observations(kind, masked, 0.5 if stored == "dense" else 0.03)
    assert is_dense(observations.block(slice(0, 300)), 17) == (stored == "dense" or kind == "cell")
    dense = dense_target(observations)
    one = fit_reports(observations, 4, np.random.default_rng(9), SERIAL, 15)
    whole, sparse = dense, sp.csr_array(dense + 2.0)
    for matrix, bias_d in ((whole, np.zeros(300)), (sparse, np.full(300, 2.0))):
        other = least_squares(matrix, bias_d, 4, np.random.default_rng(9), 15, alternating.SWEEPS)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["row", "cell"])
def test_projected_rows_are_the_best_there_are(kind):
    observations, rng = some_observations(kind, True, 0.5), np.random.default_rng(21)
    phi = rng.gamma(0.5, 1.0, (17, 3))
    theta = np.zeros((300, 3))
    for _ in range(20):
        theta = project(observations, phi, theta, SERIAL)
    exact = np.array([optimize.nnls(phi, row)[0] for row in dense_target(observations)])
    assert (exact == 0.0).any()
    np.testing.assert_allclose(theta, exact, atol=1e-9)


@pytest.mark.parametrize("masked", [False, True])
def test_no_bit_hangs_on_the_number_of_threads(masked, monkeypatch):
    monkeypatch.setattr(alternating, "COLUMNS_AT_ONCE", 5)
    monkeypatch.setattr(blocks, "MIN_CELLS_PER_BLOCK", 1)
    found = []
    for threads in (1, 3):
        observations = some_observations("row", masked, 0.5)  # anew: its facts are kept
        assert len(blocks.row_blocks(300, None, 17)) > 3
        with ThreadEngine(threads) as engine:
            fitted = least_squares_start(observations, 3, np.random.default_rng(22), engine)
            found.append(
                (*facts_of(observations), *fitted, project(observations, fitted[1], fitted[0], engine))
            )
    assert_same_bits(*found)


def test_of_very_many_rows_some_find_the_components_and_all_are_fitted_to_them(monkeypatch):
    mu, _, observations, _ = planted(600, 100, 3, 0.5, seed=13)
    monkeypatch.setattr(alternating, "START_ENTRIES", int(observations.indptr[-1]) // 4)
    sizes = []
    real = alternating.fit_reports
    monkeypatch.setattr(alternating, "fit_reports", lambda o, *rest: sizes.append(o.shape) or real(o, *rest))
    theta, phi = least_squares_start(observations, 3, np.random.default_rng(1), SERIAL)
    assert sizes == [(150, 100)] * 2  # twice as many components, then those that are left
    assert theta.shape == (600, 3)
    assert min(theta.min(), phi.min()) > 0.0
    assert np.corrcoef((theta @ phi.T).ravel(), mu.ravel())[0, 1] > 0.9


def test_large_data_get_fewer_iterations(monkeypatch):
    observations, asked = some_observations("row", False, 0.5), []
    for visits in (0, 30 * observations.reports.size, 10**9):
        monkeypatch.setattr(alternating, "VISITS", visits)
        asked.append(alternating.affordable(observations))
    assert asked == [15, 30, 60]


def test_least_squares_is_as_good_as_that_of_scikit_learn():
    counts = np.random.default_rng(10).poisson(planted(60, 50, 4, 0.5, seed=7)[0]).astype(float)
    theirs = NMF(4, init="random", random_state=0, max_iter=30, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weights = theirs.fit_transform(counts)
    reference = objective(counts, weights, theirs.components_.T)
    ours = min(
        objective(counts, *least_squares(counts, np.zeros(60), 4, np.random.default_rng(seed), 30))
        for seed in range(3)
    )
    assert ours < 1.02 * reference


def test_least_squares_finds_factors_that_are_there():
    rng = np.random.default_rng(11)
    matrix = rng.gamma(0.5, 1.0, (40, 3)) @ rng.gamma(0.5, 1.0, (30, 3)).T
    theta, phi = least_squares(matrix, np.zeros(40), 3, rng, 300)
    assert objective(matrix, theta, phi) < 1e-3 * (matrix**2).sum()


@pytest.mark.parametrize("n_components", [1, 4, 12])
@pytest.mark.parametrize("reports", [np.zeros((5, 4), dtype=int), np.diag([5, 3, 0, 9])])
def test_starts_are_positive_and_finite_even_without_data_for_them(reports, n_components):
    observations = PrivatizedCounts(reports, 0.5)
    theta, phi = least_squares_start(observations, n_components, np.random.default_rng(12), SERIAL)
    assert theta.shape == (len(reports), n_components)
    assert phi.shape == (4, n_components)
    for factor in (theta, phi):
        assert np.isfinite(factor).all()
        assert factor.min() > 0.0
        assert factor.flags.c_contiguous


def test_chains_start_apart_and_near_the_data():
    mu, _, observations, _ = planted(200, 100, 3, 0.5, seed=13)
    starts = [least_squares_start(observations, 3, np.random.default_rng(seed), SERIAL) for seed in (1, 2)]
    assert not np.allclose(starts[0][0], starts[1][0])
    for theta, phi in starts:
        assert np.corrcoef((theta @ phi.T).ravel(), mu.ravel())[0, 1] > 0.9
        np.testing.assert_allclose(theta.mean(axis=0), phi.mean(axis=0), rtol=0.2)
