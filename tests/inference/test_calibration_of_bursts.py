"""Simulation-based calibration where counts come in bursts: the dispersions' ranks, too, are uniform."""

import numpy as np
import pytest

from countveil.inference import gibbs, scoring
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts import NegativeBinomial
from countveil.laws.counts.protocol import parameters_of_rows
from tests.joint import FALSE_ALARM, SERIAL, rank_p_values
from tests.laws.counts.test_negative_binomial import ROWS, SPECS, Faulty, prior_draw, private, small_model

pytestmark = pytest.mark.long

RUNS, TUNE, DRAWS, THIN = 24, 30, 7, 9


def quantities(state, observations, model):
    """Functions that do not depend on the order of components: p, rates, one of them masked, and the score."""
    theta, phi = model.matrices(state.factors)
    rates, p = theta @ phi.T, state.parameters[0]
    score = scoring.log_likelihood(state.factors, observations, model, SERIAL, state.parameters)
    return [p[0], p[-1], p.mean(), rates[0, 1], rates.sum(), rates.max(), score]


def ranks(likelihood, read, runs, seed=1):
    """(runs, quantities) how many of a chain's draws lie below the truth."""
    model, size, found = small_model("topics", likelihood), SPECS["topics"][2], []
    mask = np.zeros(size, dtype=bool)
    mask[0, 1] = True
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        factors = tuple(rng.gamma(1.5, 1 / 1.5, factor.shape) for factor in model.factors)
        truth = gibbs.State(factors, model.initial_hypers(), 0, prior_draw(likelihood, size, rng))
        theta, phi = model.matrices(factors)
        own = parameters_of_rows(likelihood, truth.parameters, np.arange(size[0]))
        counts = np.minimum(likelihood.sample(theta @ phi.T, rng, own), 10**6)
        data = read(counts, mask, rng)
        streams, plan, kept = Streams.of_chain(seed + run, 0), Plan(data, model), []
        state = gibbs.init(plan, model, streams, SERIAL)
        for sweep in range(1, TUNE + DRAWS * THIN + 1):
            state, _ = gibbs.step(state, plan, model, streams, SERIAL)
            if sweep > TUNE and sweep % THIN == 0:
                kept.append(quantities(state, data, model))
        found.append((np.array(kept) < quantities(truth, data, model)).sum(axis=0))
    return np.array(found)


def test_true_values_rank_uniformly_among_posterior_draws():
    """One p for all is in test_any_mechanism.py."""
    p = rank_p_values(ranks(NegativeBinomial("column"), private(ROWS[:, None]), RUNS), DRAWS)
    assert p.min() > FALSE_ALARM / p.size


def test_calibration_shows_that_bursts_are_no_counts():
    likelihood = Faulty("global")
    likelihood.fault = "counts bursts as units"
    p = rank_p_values(ranks(likelihood, private(ROWS[:, None]), RUNS), DRAWS)
    assert p[0] < FALSE_ALARM / p.size
