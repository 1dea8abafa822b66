"""Loops with exposures by cell against plain sums over counts, for both likelihoods and two kinds of law."""

import numpy as np
import pytest
from scipy import stats

import countveil as cv
from countveil.inference.ascent import expect_counts, maximise
from countveil.inference.dispersion import unseen_rates
from countveil.inference.factors import column_exposures, make_links, row_exposures
from countveil.inference.plan import Plan
from countveil.inference.scoring import log_likelihood, total_rate
from countveil.kernels.random import digamma
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.protocol import in_counts
from countveil.models.einsum import axis_sizes
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior
from countveil.privacy.mechanisms import Suppression
from tests.joint import SERIAL, two_sided_geometric
from tests.laws.counts.test_negative_binomial import SIZE, SPECS, p_of_cells, parameters

pytestmark = pytest.mark.long

Y = np.arange(3000)
CASES = [("poisson", "by cell"), ("poisson", "hidden"), ("column", "by row"), ("row", "hidden")]


def scene(noise, seed=3):
    """(observations with exposures by cell, exposures, mask, (D, V, Y) P(report | count), factors)."""
    rng, mask = np.random.default_rng(seed), np.zeros(SIZE, dtype=bool)
    mask[1, 2] = mask[3, 3] = True
    exposure = np.exp(rng.normal(0.0, 1.5, SIZE))
    factors = tuple(rng.gamma(1.0, 1.0, (n, 2)) for n in SIZE)
    counts = rng.negative_binomial(0.1 + 0.4 * exposure * (factors[0] @ factors[1].T), 0.3)
    if noise == "hidden":
        hidden = (counts > 0) & (counts < 5)
        assert hidden.any()
        data = cv.Reports(np.where(hidden, np.nan, counts), Suppression(5), mask, exposure=exposure)
        kernel = np.where(hidden[..., None], (Y > 0) & (Y < 5), counts[..., None] == Y).astype(float)
        return data, exposure, mask, kernel, factors
    level = np.linspace(0.1, 0.8, 20).reshape(SIZE) if noise == "by cell" else np.full(SIZE, 0.6)
    reports = counts + two_sided_geometric(level, rng)
    data = cv.PrivatizedCounts(reports, level if noise == "by cell" else 0.6, mask, exposure=exposure)
    level, reports = level[..., None], reports[..., None]
    kernel = (1.0 - level) * level ** np.abs(np.maximum(reports, 0) - Y) / (1.0 + level)
    return data, exposure, mask, np.where(reports > 0, kernel, level**Y / (1.0 + level)), factors


def model_of(kind, dispersion):
    spec, ranks, _ = SPECS[kind]
    likelihood = POISSON if dispersion == "poisson" else NegativeBinomial(dispersion)
    priors = dict.fromkeys(spec.names, GammaPrior(1.5, 1.5, False))
    return factorization(spec, axis_sizes(spec, SIZE, ranks), priors, likelihood=likelihood)


def own_of(dispersion):
    return () if dispersion == "poisson" else parameters(dispersion)


def laws(mu, dispersion, own, kernel):
    """((D, V) P(report), E[parts | report], E[count | report]) at rates mu that have their exposures."""
    if dispersion == "poisson":
        mass, parts = (stats.poisson.pmf(Y, mu[..., None]), np.broadcast_to(Y, (*mu.shape, Y.size)).astype(float))
    else:
        p = p_of_cells(dispersion, own)
        s = (mu / -np.log1p(-p))[..., None]
        mass = stats.nbinom.pmf(Y, s, 1.0 - p[..., None])
        parts = s * (np.vectorize(digamma)(s + Y) - np.vectorize(digamma)(s))
    joint = mass * kernel
    total = joint.sum(axis=-1)
    return total, (joint * parts).sum(axis=-1) / total, (joint * Y).sum(axis=-1) / total


@pytest.mark.parametrize(("dispersion", "noise"), CASES)
def test_scores_expectations_and_exposures_are_those_of_each_cell(noise, dispersion):
    data, exposure, mask, kernel, factors = scene(noise)
    model, own = model_of("topics", dispersion), own_of(dispersion)
    theta, phi = factors
    mu, law = theta @ phi.T, data.law(model.likelihood, own)
    chance, parts, _ = laws(exposure * mu, dispersion, own, kernel)
    assert log_likelihood(factors, data, model, SERIAL, own) == pytest.approx(np.log(chance[~mask]).sum(), abs=1e-7)
    # exposures are the slopes of parts less those of the score, and parts go where their rates are
    step = 1e-5
    higher, lower = (laws(exposure * mu * (1.0 + x), dispersion, own, kernel)[0] for x in (step, -step))
    slope = np.log(higher / lower) / (2.0 * step * mu)
    seen = np.zeros(SIZE, dtype=bool)
    seen[data.row_numbers, data.columns] = data.reports > 0
    dense = np.where(mask, 0.0, np.where(seen, parts / mu, 0.0) - slope)
    np.testing.assert_allclose(dense[seen], exposure[seen], rtol=1e-5)
    np.testing.assert_allclose(row_exposures(data, law, phi, SERIAL), dense @ phi, rtol=1e-5)
    np.testing.assert_allclose(column_exposures(data, law, theta, SERIAL), dense.T @ theta, rtol=1e-5)
    by_row, by_column, _ = expect_counts(data, law, theta, phi, SERIAL)
    ratio = np.where(seen & ~mask, parts / mu, 0.0)
    np.testing.assert_allclose(by_row, ratio @ phi, rtol=1e-6)
    np.testing.assert_allclose(by_column, ratio.T @ theta, rtol=1e-6)


@pytest.mark.parametrize("dispersion", ["poisson", "row"])
def test_expectation_maximisation_never_lowers_the_likelihood(dispersion):
    data, _, _, _, factors = scene("hidden")
    model, own, last = model_of("topics", dispersion), own_of(dispersion), -np.inf
    plan = Plan(data, model)
    for _ in range(8):
        before = factors
        factors, score = maximise(plan, model, data.law(model.likelihood, own), tuple(factors), SERIAL)
        assert score == pytest.approx(log_likelihood(before, data, model, SERIAL, own), abs=1e-8)
        assert score > last
        last = score


@pytest.mark.parametrize("dispersion", ["global", "column", "row"])
def test_rates_of_unseen_cells_and_of_all_have_their_exposures(dispersion):
    data, exposure, _, _, factors = scene("by cell")
    model, own = model_of("topics", dispersion), own_of(dispersion)
    mu, found = exposure * (factors[0] @ factors[1].T), unseen_rates(model, list(factors), data, SERIAL)
    reports, _ = data.cells(*np.indices(SIZE).reshape(2, -1))
    unseen = np.where(reports.reshape(SIZE) == 0, mu, 0.0)
    axis = {"global": None, "column": 0, "row": 1}[dispersion]
    np.testing.assert_allclose(found.rate.sum(axis=0), np.atleast_1d(unseen.sum(axis=axis)), rtol=1e-12)
    theta, phi = in_counts(model.likelihood, *factors, own)
    assert total_rate(model, factors, own, exposure) == pytest.approx((exposure * (theta @ phi.T)).sum())


def test_links_between_actors_have_the_exposures_of_their_cells():
    rng = np.random.default_rng(5)
    exposure, noise = rng.gamma(2.0, 1.0, (4, 4)), two_sided_geometric(np.full((4, 4), 0.6), rng)
    reports = rng.poisson(1.0, (4, 4)) + noise
    data = cv.PrivatizedCounts(reports, 0.6, exposure=exposure)
    links = make_links(data, data.law(POISSON), 1)
    dense = exposure * np.where(reports > 0, 1.0, 0.4)
    np.testing.assert_allclose(links.loops[:, 0], np.diag(dense))
    indptr, actor, _, excess = links.out
    found = np.zeros((4, 4))
    found[np.repeat(np.arange(4), np.diff(indptr)), actor] = excess
    np.testing.assert_allclose(found, dense * (1.0 - np.eye(4)))
