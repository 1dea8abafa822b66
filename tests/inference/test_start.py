import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.inference import start
from countveil.inference.start import Debiased, least_squares, least_squares_start, mean_count, start_factors
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.joint import FALSE_ALARM, SERIAL, draw_reports, planted


def dense_target(observations):
    matrix = Debiased(observations)
    return matrix @ np.eye(observations.shape[1]) - matrix.bias_d[:, None]


@pytest.mark.parametrize("kind", ["scalar", "row", "cell"])
def test_debiased_reports_of_empty_cells_have_mean_zero(kind):
    rng = np.random.default_rng(1)
    shape = (40, 5000)
    alpha = {
        "scalar": np.full(shape, 0.6),
        "row": np.repeat(np.linspace(0.1, 0.9, 40)[:, None], 5000, axis=1),
        "cell": rng.uniform(0.1, 0.9, shape),
    }[kind]
    given = {"scalar": 0.6, "row": alpha[:, 0], "cell": alpha}[kind]
    reports = draw_reports(np.zeros(shape), alpha, rng)
    target = dense_target(PrivatizedCounts(reports, given))
    np.testing.assert_allclose(
        target, (1 + alpha) * (np.maximum(reports, 0) - alpha / (1 - alpha**2)), atol=1e-12
    )
    z = target.mean(axis=1) / (target.std(axis=1) / np.sqrt(5000))
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / 40)


def test_debiased_reports_of_exact_counts_are_the_counts():
    counts = np.random.default_rng(2).poisson(1.0, (6, 7))
    np.testing.assert_array_equal(dense_target(ExactCounts(counts)), counts)
    assert mean_count(ExactCounts(counts)) == pytest.approx(counts.mean())


def test_mean_count_of_empty_cells_is_near_zero_and_positive():
    reports = draw_reports(np.zeros((300, 300)), np.array(0.5), np.random.default_rng(3))
    target = dense_target(PrivatizedCounts(reports, 0.5))
    assert 0.0 < mean_count(PrivatizedCounts(reports, 0.5)) < 5 * target.std() / 300
    assert mean_count(PrivatizedCounts(np.full((4, 5), -3), 0.5)) > 0.0


@pytest.mark.parametrize("cells", [False, True])
def test_masked_cells_are_filled_from_their_row_and_column(cells):
    rng = np.random.default_rng(4)
    mu = np.outer(rng.uniform(1, 3, 60), rng.uniform(1, 3, 80))
    alpha = np.full((60, 80), 0.3) if not cells else rng.uniform(0.2, 0.4, (60, 80))
    reports = draw_reports(mu, alpha, rng)
    mask = rng.random(mu.shape) < 0.3
    given = alpha if cells else 0.3
    observations = PrivatizedCounts(reports, given, mask)
    other = PrivatizedCounts(np.where(mask, 1000, reports), given, mask)
    target = dense_target(observations)
    np.testing.assert_array_equal(target, dense_target(other))
    full = dense_target(PrivatizedCounts(reports, given))
    np.testing.assert_allclose(target[~mask], full[~mask], atol=1e-12)
    assert np.corrcoef(target[mask], mu[mask])[0, 1] > 0.9
    assert target[mask].mean() == pytest.approx(mu[mask].mean(), rel=0.25)


def test_a_wholly_masked_row_and_column_are_filled_without_complaint():
    mask = np.zeros((5, 6), dtype=bool)
    mask[2] = mask[:, 3] = True
    observations = PrivatizedCounts(np.random.default_rng(5).integers(0, 5, (5, 6)), 0.4, mask)
    theta, phi = least_squares_start(observations, 2, np.random.default_rng(6))
    assert np.isfinite(theta).all()
    assert np.isfinite(phi).all()


def objective(matrix, theta, phi):
    return ((matrix - theta @ phi.T) ** 2).sum()


def test_the_least_squares_objective_never_increases():
    _, _, observations, _ = planted(60, 50, 4, 0.5, seed=7)
    target = dense_target(observations)
    path = [
        objective(target, *least_squares(target, np.zeros(60), 4, np.random.default_rng(8), iterations))
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


def slow_target(observations):
    """T cell by cell."""
    o, (n_rows, n_columns) = observations, observations.shape
    every = np.arange(n_rows * n_columns)
    reports, alpha = (x.reshape(o.shape) for x in o.cells(every // n_columns, every % n_columns))
    seen = reports >= 0
    target = np.where(seen, (1 + alpha) * np.maximum(reports, 0) - alpha / (1 - alpha), 0.0)
    rows, columns = (np.maximum(target.sum(axis=a) / np.maximum(seen.sum(axis=a), 1), 0.0) for a in (1, 0))
    return np.where(seen, target, np.outer(rows, columns) / max(rows.mean(), 1e-12))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", ["scalar", "row", "cell"])
def test_the_debiased_matrix_is_that_of_its_cells(kind, masked):
    rng = np.random.default_rng(16)
    alpha = {"scalar": 0.4, "row": rng.uniform(0, 0.9, 300), "cell": rng.uniform(0, 0.9, (300, 7))}[kind]
    mask = rng.random((300, 7)) < 0.2 if masked else np.zeros((300, 7), dtype=bool)
    observations = PrivatizedCounts(rng.integers(0, 6, (300, 7)), alpha, mask)
    target, matrix = slow_target(observations), Debiased(observations)
    np.testing.assert_allclose(dense_target(observations), target, atol=1e-12)
    theta, phi = rng.random((300, 3)), np.asfortranarray(rng.random((7, 3)))
    np.testing.assert_allclose(matrix @ phi - np.outer(matrix.bias_d, phi.sum(axis=0)), target @ phi)
    np.testing.assert_allclose(matrix.T @ theta - matrix.bias_d @ theta, target.T @ theta)
    np.testing.assert_allclose(matrix.row_sums - 7 * matrix.bias_d, target.sum(axis=1))
    assert mean_count(observations) == pytest.approx(target.mean())


def test_least_squares_of_a_matrix_and_of_what_multiplies_like_it_are_the_same():
    _, _, observations, _ = planted(60, 50, 4, 0.5, seed=7)
    matrix = Debiased(observations)
    one = least_squares(matrix, matrix.bias_d, 4, np.random.default_rng(9))
    dense = dense_target(observations)
    whole = least_squares(dense, np.zeros(60), 4, np.random.default_rng(9))
    sparse = sp.csr_array(dense + matrix.bias_d[:, None])
    for other in (whole, least_squares(sparse, matrix.bias_d, 4, np.random.default_rng(9))):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_of_very_many_rows_some_find_the_components_and_all_are_fitted_to_them(monkeypatch):
    mu, _, observations, _ = planted(600, 100, 3, 0.5, seed=13)
    monkeypatch.setattr(start, "START_ENTRIES", int(observations.indptr[-1]) // 4)
    sizes = []
    real = start.least_squares
    monkeypatch.setattr(start, "least_squares", lambda m, *rest: sizes.append(m.shape) or real(m, *rest))
    theta, phi = least_squares_start(observations, 3, np.random.default_rng(1))
    assert sizes == [(150, 100)]
    assert theta.shape == (600, 3)
    assert min(theta.min(), phi.min()) > 0.0
    assert np.corrcoef((theta @ phi.T).ravel(), mu.ravel())[0, 1] > 0.9


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
    theta, phi = least_squares_start(observations, n_components, np.random.default_rng(12))
    assert theta.shape == (len(reports), n_components)
    assert phi.shape == (4, n_components)
    for factor in (theta, phi):
        assert np.isfinite(factor).all()
        assert factor.min() > 0.0
        assert factor.flags.c_contiguous


def test_chains_start_apart_and_near_the_data():
    mu, _, observations, _ = planted(200, 100, 3, 0.5, seed=13)
    starts = [least_squares_start(observations, 3, np.random.default_rng(seed)) for seed in (1, 2)]
    assert not np.allclose(starts[0][0], starts[1][0])
    for theta, phi in starts:
        assert np.corrcoef((theta @ phi.T).ravel(), mu.ravel())[0, 1] > 0.9
        np.testing.assert_allclose(theta.mean(axis=0), phi.mean(axis=0), rtol=0.2)


@pytest.mark.parametrize(("name", "shift"), [("directed", 0), ("directed", 1), ("undirected", 0)])
def test_networks_do_not_start_with_one_community_for_all(name, shift):
    """Messages stay within communities (shift 0) or go to the next one."""
    case, group = CASES[name]._replace(shape=(45, 45), priors={}), np.arange(45) % 3
    blocks = np.full((3, 3), 0.5) + 5.5 * np.roll(np.eye(3), shift, axis=1)
    model, seen = model_of(case, c=3, d=3), ~mask_of(case)
    mu = blocks[group][:, group]
    reports = draw_reports(mu, alpha_of(case), np.random.default_rng(5))
    observations = observe(model, case, reports, ~seen)
    flat = np.abs(mu - mu[seen].mean())[seen].mean()
    for seed in range(6):
        rates = rates_of(model, start_factors(observations, model, np.random.default_rng(seed), SERIAL))
        assert np.abs(rates - mu)[seen].mean() < 0.5 * flat
