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
    leading_pair,
    least_squares,
    least_squares_start,
    losses,
    merged,
    merged_products,
    nearest_products,
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
            found.append((*facts_of(observations), *fitted, project(observations, fitted[1], fitted[0], engine)))
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
        objective(counts, *least_squares(counts, np.zeros(60), 4, np.random.default_rng(seed), 30)) for seed in range(3)
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


def test_losses_are_second_singular_values_of_pairs():
    rng = np.random.default_rng(1)
    theta, phi = rng.random((9, 4)), rng.random((7, 4))
    found = losses(theta.T @ theta, phi.T @ phi)
    for i in range(4):
        assert found[i, i] == np.inf
        for j in set(range(4)) - {i}:
            values = np.linalg.svd(theta[:, [i, j]] @ phi[:, [i, j]].T, compute_uv=False)
            assert found[i, j] == pytest.approx(values[1] ** 2, rel=1e-9)


def test_a_pair_becomes_its_leading_singular_vectors():
    rng = np.random.default_rng(2)
    theta, phi = rng.random((9, 2)), rng.random((7, 2))
    u, v = leading_pair(theta, phi)
    left, values, right = np.linalg.svd(theta @ phi.T)
    np.testing.assert_allclose(np.outer(u, v), values[0] * np.outer(left[:, 0], right[0]), rtol=1e-6)
    assert min(u.min(), v.min()) >= 0.0


def test_copies_are_merged_and_nothing_is_lost():
    rng = np.random.default_rng(3)
    theta, phi = rng.gamma(0.3, 1.0, (30, 4)), rng.gamma(0.3, 1.0, (20, 4))
    shares = rng.random(4)
    doubled = np.hstack([theta * shares, theta * (1.0 - shares)]), np.hstack([phi, phi])
    found = merged(*doubled, 4)
    assert [factor.shape for factor in found] == [(30, 4), (20, 4)]
    np.testing.assert_allclose(found[0] @ found[1].T, theta @ phi.T, rtol=1e-6, atol=1e-9)


def slowly_merged(theta, phi, n_left):
    """Pairs merged one by one, with all losses found anew from the factors."""
    while theta.shape[1] > n_left:
        theta, phi = theta.copy(), phi.copy()
        lost = losses(theta.T @ theta, phi.T @ phi)
        i, j = np.unravel_index(int(np.argmin(lost)), lost.shape)
        theta[:, i], phi[:, i] = leading_pair(theta[:, [i, j]], phi[:, [i, j]])
        theta, phi = np.delete(theta, j, axis=1), np.delete(phi, j, axis=1)
    return theta, phi


@pytest.mark.parametrize("seed", range(3))
def test_the_pair_that_loses_least_goes_next(seed):
    rng = np.random.default_rng(seed)
    theta, phi = rng.gamma(0.5, 1.0, (9, 8)), rng.gamma(0.5, 1.0, (7, 8))
    for n_left in range(1, 8):
        for found, expected in zip(merged(theta, phi, n_left), slowly_merged(theta, phi, n_left), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("n_left", [1, 3, 6])
def test_components_without_anything_go_first(n_left):
    rng = np.random.default_rng(4)
    theta, phi = rng.random((8, 6)), rng.random((5, 6))
    theta[:, [0, 4]] = 0.0
    found = merged(theta, phi, n_left)
    assert found[0].shape == (8, n_left)
    assert np.isfinite(found[0]).all()
    if n_left == 3:
        assert (found[0].sum(axis=0) > 0.0).all()


def test_what_is_given_stays():
    theta, phi = np.random.default_rng(5).random((2, 6, 4))
    before = theta.copy(), phi.copy()
    merged(theta, phi, 2)
    np.testing.assert_array_equal(theta, before[0])
    np.testing.assert_array_equal(phi, before[1])


def whole(factors):
    """The sum of products of three vectors each."""
    return np.einsum("ak,bk,ck->abc", *factors)


def test_with_two_vectors_the_nearest_products_are_those_of_singular_vectors():
    rng = np.random.default_rng(6)
    theta, phi = rng.gamma(0.3, 1.0, (9, 6)), rng.gamma(0.3, 1.0, (7, 6))
    units = [factor / np.sqrt((factor**2).sum(axis=0)) for factor in (theta, phi)]
    size = np.sqrt((theta**2).sum(axis=0) * (phi**2).sum(axis=0))
    i, j = np.triu_indices(6, 1)
    lost, _, _ = nearest_products(size[[i, j]], np.array([(u.T @ u)[i, j] for u in units]))
    np.testing.assert_allclose(lost, losses(theta.T @ theta, phi.T @ phi)[i, j], rtol=1e-3)


@pytest.mark.parametrize("equal", [False, True])
def test_a_pair_becomes_a_product_that_no_change_of_one_vector_brings_nearer(equal):
    rng = np.random.default_rng(7)
    factors = [rng.gamma(0.3, 1.0, (n, 2)) for n in (6, 5, 4)]
    if equal:  # two of the same size without anything in common
        factors = [np.eye(n)[:, :2] for n in (6, 5, 4)]
    found = merged_products(factors, 1)
    lost, size, _ = nearest_products(
        np.prod([np.sqrt((f**2).sum(axis=0)) for f in factors], axis=0)[:, None],
        np.array([[f[:, 0] @ f[:, 1] / np.sqrt((f**2).sum(axis=0).prod())] for f in factors]),
    )
    target = whole(factors)
    assert lost[0] == pytest.approx(((target - whole(found)) ** 2).sum(), rel=1e-9)
    assert size[0] == pytest.approx(np.sqrt((whole(found) ** 2).sum()), rel=1e-9)
    sums = "abc,b,c->a", "abc,a,c->b", "abc,a,b->c"
    for m, spec in enumerate(sums):
        others = [found[n][:, 0] for n in range(3) if n != m]
        best = np.einsum(spec, target, *others) / np.prod([other @ other for other in others])
        np.testing.assert_allclose(found[m][:, 0], best, rtol=1e-2, atol=1e-6)
    assert lost[0] <= (target**2).sum() - max(np.prod([(f**2).sum(axis=0) for f in factors], axis=0)) + 1e-9


def test_copies_of_products_are_merged_and_nothing_is_lost():
    rng = np.random.default_rng(8)
    factors, shares = [rng.gamma(0.3, 1.0, (n, 4)) for n in (12, 9, 5)], rng.random(4)
    doubled = [np.hstack([factor, factor]) for factor in factors]
    doubled[1] = np.hstack([factors[1] * shares, factors[1] * (1.0 - shares)])
    before = [factor.copy() for factor in doubled]
    found = merged_products(doubled, 4)
    assert [factor.shape for factor in found] == [(12, 4), (9, 4), (5, 4)]
    np.testing.assert_allclose(whole(found), whole(factors), rtol=1e-6, atol=1e-9)
    for factor, old in zip(doubled, before, strict=True):
        np.testing.assert_array_equal(factor, old)


@pytest.mark.parametrize("seed", range(3))
def test_the_pair_of_products_that_loses_least_goes_next(seed):
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(0.5, 1.0, (n, 6)) for n in (9, 7, 4)]
    stepwise = factors
    for n_left in range(5, 0, -1):
        stepwise = merged_products(stepwise, n_left)
        np.testing.assert_allclose(whole(merged_products(factors, n_left)), whole(stepwise), rtol=1e-9)


@pytest.mark.parametrize("n_left", [1, 3, 6])
def test_products_without_anything_go_first(n_left):
    factors = [np.random.default_rng(9).random((n, 6)) for n in (8, 5, 4)]
    factors[1][:, [0, 4]] = 0.0
    found = merged_products(factors, n_left)
    assert all(np.isfinite(factor).all() for factor in found)
    if n_left == 3:
        assert (found[0].sum(axis=0) > 0.0).all()
