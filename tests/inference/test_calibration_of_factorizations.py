"""Simulation-based calibration, as in ``test_calibration``, of factorizations other than topics."""

import numpy as np
import pytest

from countveil.inference import gibbs, scoring
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.joint import FALSE_ALARM, SERIAL, draw_factors, draw_reports, rank_p_values

pytestmark = pytest.mark.long

RUNS, TUNE, DRAWS, THIN = 24, 20, 7, 6


def quantities(state, observations, model, mask):
    """Functions of the parameters that do not depend on the order of components; some are of unseen cells."""
    mu = rates_of(model, state.factors)
    flat, hidden = mu.ravel(), mu[mask]
    log_likelihood = scoring.log_likelihood(state.factors, observations, model, SERIAL)
    return [flat[1], flat[-1], mu[-1].sum(), hidden[0], hidden[-1], mu.sum(), mu.max(), log_likelihood]


def ranks(case, seen_as=None, runs=RUNS, seed=100):
    """(runs, quantities) how many of a chain's draws lie below the truth; chains begin at another draw of the prior."""
    rng, model, mask, found = np.random.default_rng(seed), model_of(case), mask_of(case), []
    for run in range(runs):
        truth = gibbs.State(*draw_factors(model, rng), 0)
        reports = draw_reports(rates_of(model, truth.factors), alpha_of(case), rng)
        observations = observe(model, seen_as or case, reports, mask)
        streams, kept = Streams.of_chain(seed + run, 0), []
        state = gibbs.State(*draw_factors(model, rng), 0)
        plan = Plan(observations, model)
        for sweep in range(1, TUNE + DRAWS * THIN + 1):
            state, _ = gibbs.step(state, plan, model, streams, SERIAL)
            if sweep > TUNE and (sweep - TUNE) % THIN == 0:
                kept.append(quantities(state, observations, model, mask))
        assert len(kept) == DRAWS
        found.append((np.array(kept) < quantities(truth, observations, model, mask)).sum(axis=0))
    return np.array(found)


@pytest.mark.parametrize("name", ["undirected", "Tucker"])
def test_true_values_rank_uniformly_among_posterior_draws(name):
    p = rank_p_values(ranks(CASES[name]), DRAWS)
    assert p.min() > FALSE_ALARM / p.size
