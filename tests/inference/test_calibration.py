"""Simulation-based calibration (Talts et al. 2018): a truth drawn from the prior has a uniform rank."""

import numpy as np

from countveil.inference import gibbs
from countveil.observations import NaiveCounts, PrivatizedCounts
from tests.joint import FALSE_ALARM, SERIAL, draw_factors, draw_reports, rank_p_values, run_chain, small_model

SIZE = (7, 5)
ALPHA = np.array([0.0, 0.3, 0.3, 0.6, 0.6, 0.8, 0.8])
MASK = np.zeros(SIZE, dtype=bool)
MASK[[2, 5], [3, 0]] = True
RUNS, TUNE, DRAWS, THIN = 200, 80, 31, 8


def quantities(state, observations):
    """Functions of the parameters that do not depend on the order of components; two are of unseen cells."""
    mu = state.theta @ state.phi.T
    log_likelihood = gibbs.log_likelihood(state, observations, SERIAL)
    return [mu[0, 0], mu[3, 2], mu[6, 4], mu[2, 3], mu[5, 0], mu.sum(), mu.max(), log_likelihood]


def ranks(kind, model, runs, seed):
    """(runs, quantities) how many of a chain's draws lie below the truth."""
    rng, found = np.random.default_rng(seed), []
    for run in range(runs):
        truth = gibbs.State(*draw_factors(model, SIZE, rng), 0)
        reports = draw_reports(truth.theta @ truth.phi.T, ALPHA[:, None], rng)
        observations = (
            PrivatizedCounts(reports, ALPHA, MASK) if kind == "private" else NaiveCounts(reports, MASK)
        )
        true = quantities(truth, observations)
        chain = run_chain(observations, model, TUNE + DRAWS * THIN, seed=seed + run)
        kept = [
            quantities(state, observations)
            for state in chain
            if state.sweep > TUNE and state.sweep % THIN == 0
        ]
        assert len(kept) == DRAWS
        found.append((np.array(kept) < true).sum(axis=0))
    return np.array(found)


def test_true_values_rank_uniformly_among_posterior_draws():
    p = rank_p_values(ranks("private", small_model(shape=1.0, rate=0.6), RUNS, seed=100), DRAWS)
    assert p.min() > FALSE_ALARM / p.size


def test_calibration_shows_that_the_naive_treatment_is_wrong():
    p = rank_p_values(ranks("naive", small_model(shape=1.0, rate=0.6), 60, seed=100), DRAWS)
    noisiest_rate, total, log_likelihood = p[2], p[5], p[7]
    assert max(noisiest_rate, total, log_likelihood) < FALSE_ALARM / p.size
