"""The coordinate-ascent pass over rows against dense arrays and brute force."""

import numpy as np
import pytest
from scipy import special

from countveil.data.observations import PrivatizedCounts
from countveil.kernels import variational as kernels
from tests.joint import LAW, LAWS, count_moments, dense_exposures, draw_reports, exposures_of, truncated_logpmf
from tests.plain import PLAIN

ROWS, COLUMNS, K = 7, 6, 5
PRIOR_RATE = np.array([0.8, 1.3, 0.5, 1.0, 2.0]) * np.array([1.0, 0.5, 3.0, 1.0, 0.2, 1.0, 1.0])[:, None]
PRIOR_SHAPE = np.random.default_rng(8).uniform(0.2, 0.9, (ROWS, K))


def scene(kind):
    """Factors with different geometric and arithmetic means, and reports at levels of every sort."""
    rng = np.random.default_rng(3)
    theta_m, phi_m = rng.gamma(1.0, 1.0, (ROWS, K)), rng.gamma(1.0, 1.0, (COLUMNS, K))
    theta_g, phi_g = (theta_m * rng.uniform(0.5, 1.0, theta_m.shape), phi_m * rng.uniform(0.5, 1.0, phi_m.shape))
    per_row = np.array([0.5, 0.3, 0.0, 0.8, 0.5, 0.6, 0.1])
    alpha = rng.uniform(0.0, 0.9, (ROWS, COLUMNS)) if kind == "cell" else np.repeat(per_row[:, None], COLUMNS, 1)
    reports = draw_reports(theta_m @ phi_m.T, alpha, rng)
    mask = rng.random((ROWS, COLUMNS)) < 0.2
    observations = PrivatizedCounts(reports, alpha if kind == "cell" else per_row, mask)
    return (theta_g, theta_m, phi_g, phi_m), reports, alpha, mask, observations


@pytest.mark.long
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("kind", ["row", "cell"])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_pass_is_the_dense_update_of_theta_and_the_sums_for_phi(law, kind, dense):
    (theta_g, theta_m, phi_g, phi_m), reports, alpha, mask, observations = scene(kind)
    sums = np.zeros((COLUMNS, K)), np.zeros((COLUMNS, K)), np.zeros((2, K))
    shape, rate = theta_g.copy(), theta_m.copy()
    bound = kernels.update_rows(
        law,
        observations.block(slice(0, ROWS)),
        shape,
        rate,
        phi_g,
        phi_m,
        phi_m.sum(axis=0),
        PRIOR_SHAPE,
        PRIOR_RATE,
        sums,
        dense,
    )

    mu = theta_g @ phi_g.T
    counted = (reports > 0) & ~mask
    ratio = np.where(counted, count_moments(np.maximum(reports, 1), mu, alpha)[0] / mu, 0.0)
    exposures = dense_exposures(reports, alpha, mask)
    np.testing.assert_allclose(shape, PRIOR_SHAPE + theta_g * (ratio @ phi_g), rtol=1e-10)
    np.testing.assert_allclose(rate, PRIOR_RATE + exposures @ phi_m, rtol=1e-12)

    mean = shape / rate
    np.testing.assert_allclose(sums[0] * phi_g, phi_g * (ratio.T @ theta_g), rtol=1e-10)
    np.testing.assert_allclose(sums[1] + sums[2][0], exposures.T @ mean, rtol=1e-12)
    np.testing.assert_allclose(exposures_of(observations), exposures)
    np.testing.assert_allclose(sums[2][1], mean.sum(axis=0), rtol=1e-12)

    scores = truncated_logpmf(reports, mu, alpha) + np.where(reports > 0, mu, (1.0 - alpha) * mu)
    expected = scores[~mask].sum() - (exposures * (theta_m @ phi_m.T)).sum()
    np.testing.assert_allclose(bound, expected, rtol=1e-10)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("kind", ["row", "cell"])
def test_counts_expected_without_an_update_are_the_dense_ones(kind, dense):
    (theta_g, theta_m, phi_g, phi_m), reports, alpha, mask, observations = scene(kind)
    by_row, by_column = np.zeros((ROWS, K)), np.zeros((COLUMNS, K))
    block = observations.block(slice(0, ROWS))
    bound = kernels.expect_rows(LAW, block, theta_g, phi_g, by_row, by_column, dense)

    mu = theta_g @ phi_g.T
    counted = (reports > 0) & ~mask
    ratio = np.where(counted, count_moments(np.maximum(reports, 1), mu, alpha)[0] / mu, 0.0)
    np.testing.assert_allclose(by_row, ratio @ phi_g, rtol=1e-10)
    np.testing.assert_allclose(by_column, ratio.T @ theta_g, rtol=1e-10)
    scores = truncated_logpmf(reports, mu, alpha) + np.where(reports > 0, mu, (1.0 - alpha) * mu)
    np.testing.assert_allclose(bound, scores[~mask].sum(), rtol=1e-10)

    shape, rate, sums = (
        theta_g.copy(),
        theta_m.copy(),
        (np.zeros((COLUMNS, K)), np.zeros((COLUMNS, K)), np.zeros((2, K))),
    )
    fused = kernels.update_rows(
        LAW, block, shape, rate, phi_g, phi_m, phi_m.sum(axis=0), PRIOR_SHAPE, PRIOR_RATE, sums, dense
    )
    np.testing.assert_allclose(by_column, sums[0], rtol=1e-12)
    np.testing.assert_allclose(PRIOR_SHAPE + theta_g * by_row, shape, rtol=1e-12)
    exposures = dense_exposures(reports, alpha, mask)
    np.testing.assert_allclose(bound - (exposures * (theta_m @ phi_m.T)).sum(), fused, rtol=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(40, 700), (3, 300)])
def test_matrix_products_change_nothing_but_rounding(rows, columns):
    rng = np.random.default_rng(4)
    theta, phi = rng.gamma(0.3, 1.0, (rows, 6)), rng.gamma(0.3, 1.0, (columns, 6))
    reports = draw_reports(theta @ phi.T, np.full((rows, columns), 0.4), rng)
    block = PrivatizedCounts(reports, 0.4, rng.random((rows, columns)) < 0.1).block(slice(0, rows))
    found = []
    for dense in (False, True):
        sums = np.zeros_like(theta), np.zeros_like(phi)
        found.append((kernels.expect_rows(LAW, block, theta, phi, *sums, dense), *sums))
    for by_entry, by_product in zip(*found, strict=True):
        np.testing.assert_allclose(by_product, by_entry, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", ["row", "cell"])
@pytest.mark.parametrize(("geometric", "cut"), [(True, 0.0), (False, 0.0), (False, 0.5)])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_settled_rows_are_where_the_update_stays(law, kind, geometric, cut):
    (theta_g, theta_m, phi_g, phi_m), _, _, _, observations = scene(kind)
    block, total = observations.block(slice(0, ROWS)), phi_m.sum(axis=0)
    g, m = theta_g.copy(), theta_m.copy()
    rules = geometric, 1e-9 if PLAIN else 1e-13, 100_000, cut
    kernels.settle_rows(law, block, g, m, phi_g, phi_m, total, PRIOR_SHAPE, PRIOR_RATE, *rules)
    shape, rate = g.copy(), m.copy()
    sums = np.zeros((COLUMNS, K)), np.zeros((COLUMNS, K)), np.zeros((2, K))
    kernels.update_rows(law, block, shape, rate, phi_g, phi_m, total, PRIOR_SHAPE, PRIOR_RATE, sums, False)
    np.testing.assert_allclose(shape / rate, m, rtol=1e-6)
    expected = (np.exp(special.digamma(shape)) if geometric else shape - cut * PRIOR_SHAPE) / rate
    np.testing.assert_allclose(expected, g, rtol=1e-6, atol=1e-12)
