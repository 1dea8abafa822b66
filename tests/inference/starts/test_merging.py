import numpy as np
import pytest

from countveil.inference.starts.merging import (
    leading_pair,
    losses,
    merged,
    merged_products,
    nearest_products,
)


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
        for found, expected in zip(
            merged(theta, phi, n_left), slowly_merged(theta, phi, n_left), strict=True
        ):
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
