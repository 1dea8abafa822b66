"""Simulation-based calibration (Talts et al. 2018): a truth drawn from the prior has a uniform rank."""

import numpy as np
import pytest

from countveil.data.observations import NaiveCounts, PrivatizedCounts
from countveil.inference import augmented_gibbs, gibbs, scoring
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.models.priors import GammaPrior, LearnedShapePrior
from tests.joint import (
    FALSE_ALARM,
    SERIAL,
    draw_factors,
    draw_reports,
    moderate_shapes,
    mu_of,
    rank_p_values,
    shaped_model,
    small_model,
)  # fmt: skip

pytestmark = pytest.mark.long

SIZE = (7, 5)
ALPHA = np.array([0.0, 0.3, 0.3, 0.6, 0.6, 0.8, 0.8])
MASK = np.zeros(SIZE, dtype=bool)
MASK[[2, 5], [3, 0]] = True
RUNS, TUNE, DRAWS, THIN = 60, 40, 15, 8
RUNS_OF_LEARNED = 30
LEARNED = small_model(SIZE, shape=1.5, rate=4.0, learned=True)


def quantities(state, observations, model):
    """Functions of the parameters that do not depend on the order of components; two are of unseen cells."""
    mu = mu_of(state.factors)
    log_likelihood = scoring.log_likelihood(state.factors, observations, model, SERIAL)
    return [mu[0, 0], mu[3, 2], mu[6, 4], mu[2, 3], mu[5, 0], mu.sum(), mu.max(), log_likelihood]


def quantities_with_rates(state, observations, model):
    """Those, and what the data say of learned rates: theta's times phi's (each alone changes too slowly).

    Learned shapes come first.
    """
    priors = [factor.prior for factor in model.factors]
    laws = [prior.gamma(own, 1.0) for prior, own in zip(priors, state.hypers, strict=True)]
    learned = [isinstance(prior, LearnedShapePrior) for prior in priors]
    shapes = [law[0].flat[0] for law, own in zip(laws, learned, strict=True) if own]
    log_rates = np.log(laws[0][1] * laws[1][1])
    found = [log_rates.sum(), log_rates.min(), log_rates.max()]
    return [*shapes, *quantities(state, observations, model), *found]


def ranks(kind, model, runs, seed, algorithm=gibbs, of=quantities):
    """(runs, quantities) how many of a chain's draws lie below the truth."""
    rng, found = np.random.default_rng(seed), []
    for run in range(runs):
        truth = gibbs.State(*draw_factors(model, rng), 0)
        reports = draw_reports(mu_of(truth.factors), ALPHA[:, None], rng)
        observations = PrivatizedCounts(reports, ALPHA, MASK) if kind == "private" else NaiveCounts(reports, MASK)
        streams, plan, kept = Streams.of_chain(seed + run, 0), Plan(observations, model), []
        state = algorithm.init(plan, model, streams, SERIAL)
        for sweep in range(1, TUNE + DRAWS * THIN + 1):
            state, _ = algorithm.step(state, plan, model, streams, SERIAL)
            if sweep > TUNE and sweep % THIN == 0:
                kept.append(of(state, observations, model))
        assert len(kept) == DRAWS
        found.append((np.array(kept) < of(truth, observations, model)).sum(axis=0))
    return np.array(found)


def test_true_values_rank_uniformly_among_posterior_draws():
    p = rank_p_values(ranks("private", small_model(SIZE, shape=1.0, rate=0.6), RUNS, seed=100), DRAWS)
    assert p.min() > FALSE_ALARM / p.size


def test_calibration_shows_that_the_naive_treatment_is_wrong():
    p = rank_p_values(ranks("naive", small_model(SIZE, shape=1.0, rate=0.6), RUNS, seed=100), DRAWS)
    noisiest_rate, total, log_likelihood = p[2], p[5], p[7]
    assert max(noisiest_rate, total, log_likelihood) < FALSE_ALARM / p.size


@pytest.mark.parametrize(
    ("algorithm", "model"), [(gibbs, shaped_model(SIZE)), (augmented_gibbs, LEARNED)], ids=["gibbs", "augmented-gibbs"]
)
def test_learned_rates_and_shapes_rank_uniformly_too(algorithm, model, monkeypatch):
    moderate_shapes(monkeypatch)
    p = rank_p_values(ranks("private", model, RUNS_OF_LEARNED, 100, algorithm, quantities_with_rates), DRAWS)
    assert p.min() > FALSE_ALARM / p.size


def test_calibration_shows_that_a_wrong_update_of_the_rates_is_wrong(monkeypatch):
    def without_their_prior_shape(self, factor, hypers, scale, value, rng):
        size, total = factor.component_sums(self.shape), factor.component_sums(scale * value)
        return rng.standard_gamma(size) / (1.0 / self.rate + total)

    monkeypatch.setattr(GammaPrior, "draw_hypers", without_their_prior_shape)
    p = rank_p_values(ranks("private", LEARNED, RUNS_OF_LEARNED, 100, gibbs, quantities_with_rates), DRAWS)
    log_rates, largest = p[-3], p[-1]
    assert max(log_rates, largest) < FALSE_ALARM / p.size
