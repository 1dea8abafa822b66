"""The same posterior from other samplers: a slow chain in plain NumPy, and integrals on a grid."""

import numpy as np
import pytest
from scipy import stats

from countveil.data.observations import PrivatizedCounts
from tests.joint import batch_error, bound, count_weights, draw_reports, mu_of, run_chain, small_model, truncated_logpmf

pytestmark = pytest.mark.long

CHAINS, TUNE, SWEEPS = 2, 100, 1000


def slow_chain(reports, alpha, mask, model, sweeps, rng):
    """Rates mu of a chain that keeps every count, drawn by enumeration, and knows no exposures.

    Its conditional laws are those of counts without noise, given true counts of all cells: masked cells have
    a count of their own from the model, as any cell without a report.
    """
    n_topics = model.n_components
    (a, b), (c, e) = ((factor.prior.shape, factor.prior.rate) for factor in model.factors)
    theta, phi = np.ones((len(reports), n_topics)), np.ones((reports.shape[1], n_topics))
    theta += rng.random(theta.shape)
    y = np.arange(80)
    noise = count_weights(reports, np.ones_like(reports, dtype=float), alpha)[..., :80]  # alpha^|r - y| / y!
    for _ in range(sweeps):
        mu = theta @ phi.T
        cumulated = (noise * np.exp(y * np.log(mu)[..., None])).cumsum(axis=-1)
        passed = rng.random(mu.shape)[..., None] * cumulated[..., -1:] >= cumulated
        counts = np.where(mask, rng.poisson(mu), passed.sum(axis=-1))
        shares = theta[:, None, :] * phi[None] / mu[..., None]
        allocated = rng.multinomial(counts, shares)
        theta = rng.gamma(a + allocated.sum(axis=1), 1.0 / (b + phi.sum(axis=0)))
        phi = rng.gamma(c + allocated.sum(axis=0), 1.0 / (e + theta.sum(axis=0)))
        yield theta @ phi.T


def test_a_slow_and_obvious_chain_agrees_on_every_rate():
    rng, model = np.random.default_rng(21), small_model((12, 8), shape=0.8, rate=0.7)
    theta = np.kron(np.eye(2), np.full((6, 1), 3.0)) + 0.1
    phi = np.kron(np.eye(2), np.full((4, 1), 1.5)) + 0.1
    alpha = np.linspace(0.0, 0.8, 12)[:, None]
    reports = draw_reports(theta @ phi.T, alpha, rng)
    mask = rng.random(reports.shape) < 0.05
    assert mask.any()
    observations = PrivatizedCounts(reports, alpha, mask)

    ours = [
        [mu_of(s.factors) for s in run_chain(observations, model, SWEEPS, seed=22, chain=c)][TUNE:]
        for c in range(CHAINS)
    ]
    slow = [list(slow_chain(reports, alpha, mask, model, SWEEPS, rng))[TUNE:] for _ in range(CHAINS)]
    ours, slow = np.array(ours), np.array(slow)
    centre, worst = slow.mean(axis=(0, 1)), bound(2 * reports.size, 40 * CHAINS)
    for function in (lambda mu: mu, lambda mu: (mu - centre) ** 2):
        means, errors = zip(*(pooled(function(mu)) for mu in (ours, slow)), strict=True)
        assert np.abs((means[0] - means[1]) / np.hypot(*errors)).max() < worst


def pooled(traces):
    """Mean and standard error over chains."""
    errors = [batch_error(trace) for trace in traces]
    return traces.mean(axis=(0, 1)), np.sqrt(np.square(errors).sum(axis=0)) / len(traces)


def column_posterior(reports, alpha, mask, shape, rate, learned):
    """(mean, variance) of the rates mu_d = theta_d phi of one column and one component, by sums on a grid."""
    grid = np.exp(np.linspace(np.log(1e-5), np.log(3e3), 700))
    step = np.log(grid[1] / grid[0])
    if learned:  # a Gamma(shape, b) with b exponential of mean ``rate``, b integrated out
        rates = np.exp(np.linspace(-9, 6, 400))
        weights = stats.expon.pdf(rates, scale=rate) * rates
        prior = (stats.gamma.pdf(grid[:, None], shape, scale=1.0 / rates) * weights).sum(axis=1) / weights.sum()
    else:
        prior = stats.gamma.pdf(grid, shape, scale=1.0 / rate)
    prior = prior * grid * step  # of phi, and of every theta_d (with learned rates, of one row only)
    mu = grid[:, None] * grid[None]
    moments, total = [], []
    for r, a, hidden in zip(reports, alpha, mask, strict=True):
        fine = np.exp(np.linspace(np.log(1e-10), np.log(9e6), 4000))
        score = np.where(fine < 150.0, truncated_logpmf(np.array(r), np.minimum(fine, 150.0), np.array(a)), -1e3)
        likelihood = np.ones_like(mu) if hidden else np.exp(np.interp(np.log(mu), np.log(fine), score))
        given_phi = prior[:, None] * likelihood
        total.append(given_phi.sum(axis=0))
        moments.append([(given_phi * mu**p).sum(axis=0) for p in (1, 2)])
    everything = prior * np.prod(total, axis=0)
    means = np.array([[(everything * m / t).sum() for m in row] for row, t in zip(moments, total, strict=True)])
    means /= everything.sum()
    return means[:, 0], means[:, 1] - means[:, 0] ** 2


@pytest.mark.parametrize(
    ("reports", "alpha", "hidden", "learned"),
    [([2, -3, 5, 1], [0.0, 0.5, 0.8, 0.3], [False, False, False, True], False), ([6], [0.5], [False], True)],
    ids=["column", "learned"],
)
def test_integrals_on_a_grid_agree(reports, alpha, hidden, learned):
    model = small_model((len(reports), 1), 1, shape=1.2, rate=0.8, learned=learned)
    mean, variance = column_posterior(reports, alpha, hidden, 1.2, 0.8, learned)
    observations = PrivatizedCounts(np.array(reports)[:, None], alpha, np.array(hidden)[:, None])
    chain = run_chain(observations, model, 3_000, seed=31)
    trace = np.array([mu_of(s.factors)[:, 0] for s in chain])[300:]
    for values, expected in ((trace, mean), ((trace - mean) ** 2, variance)):
        z = (values.mean(axis=0) - expected) / batch_error(values)
        assert np.abs(z).max() < bound(2 * len(reports))
