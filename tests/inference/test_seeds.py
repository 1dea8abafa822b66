"""Topics with seeds: a step leaves the joint law as it is, with noise on, and draws keep seeded topics in place."""

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.inference import augmented_gibbs, gibbs, tokens
from countveil.inference.draws import Draws
from countveil.inference.identify import identify
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts import NegativeBinomial, Poisson
from countveil.models.einsum import axis_sizes
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior, LearnedShapePrior, SeededPrior
from tests.joint import (
    SERIAL,
    SPEC,
    bound,
    draw_factors,
    draw_noise_rates,
    draw_reports,
    moderate_shapes,
    mu_of,
    two_sided_geometric,
)

pytestmark = pytest.mark.long

SIZE = (5, 6)
ALPHA = np.array([0.1, 0.3, 0.6, 0.8, 0.5])[:, None]
ADDED = np.zeros((6, 3))
ADDED[[0, 3, 3, 4], [0, 0, 1, 1]] = 0.6, 2.0, 3.0, 1.0
P_BURST = 0.4
SWEEPS = 6
KNOWN, LEARNED = GammaPrior(1.2, 0.8, learned=True), LearnedShapePrior(0.9, None)
BURSTY = NegativeBinomial(P_BURST)


def model_with(usual=LEARNED, likelihood=None):
    """theta (5, 3), phi (6, 3) with seeds in its first two topics."""
    priors = {"theta": GammaPrior(1.5, 1.5, learned=False), "phi": SeededPrior(usual, ADDED)}
    sizes = axis_sizes(SPEC, SIZE, {"k": 3})
    return factorization(SPEC, sizes, priors, likelihood=likelihood or Poisson())


def reports_of(model, factors, rng):
    """Noisy reports of counts with these factors."""
    mu = mu_of(factors)
    if isinstance(model.likelihood, Poisson):
        return draw_reports(mu, ALPHA, rng)
    counts = rng.negative_binomial(np.maximum(mu / -np.log1p(-P_BURST), 1e-300), 1.0 - P_BURST)
    return counts + two_sided_geometric(np.broadcast_to(ALPHA, SIZE), rng)


def statistics(state, reports):
    """Functions of parameters and reports; topics with seeds have numbers."""
    mu, (theta, phi) = mu_of(state.factors), state.factors
    log_phi, log_mu, log_seen = np.log(phi), np.log(mu), np.log1p(np.maximum(reports, 0))
    hypers, seeded = np.log(state.hypers[1]), ADDED > 0.0
    found = [hypers.flat[0], hypers.flat[0] ** 2, hypers.flat[-1], hypers.mean(), (hypers**2).mean()]
    found += [log_phi[:, k].mean() for k in range(3)] + [log_phi[seeded].mean(), (log_phi**2).mean()]
    found += [log_phi[3, 0], log_phi[3, 1], log_mu.mean(), log_mu[:, 3].mean(), log_seen[:, 3].mean()]
    return [*found, (log_seen * log_mu).mean(), (np.log(theta[:, 0]) * log_seen[:, 3]).mean()]


def joint_z(model, algorithm=gibbs, restarts=60, seed=5):
    """(z-scores of the statistics, the bound they must keep), of restarts in the joint law itself."""
    rng, streams, differences, sweep = np.random.default_rng(seed), Streams.of_chain(seed, 0), [], 0
    for _ in range(restarts):
        factors, hypers = draw_factors(model, rng)
        reports = reports_of(model, factors, rng)
        state = gibbs.State(factors, hypers, sweep, model.initial_parameters())
        if algorithm is augmented_gibbs:
            noise = draw_noise_rates(reports, mu_of(factors), ALPHA, rng)
            state = augmented_gibbs.State(factors, hypers, sweep, noise)
        before, after = statistics(state, reports), []
        for _ in range(SWEEPS):
            state, _ = algorithm.step(
                state, Plan(PrivatizedCounts(reports, ALPHA[:, 0]), model), model, streams, SERIAL
            )
            after.append(statistics(state, reports))
            if algorithm is gibbs:
                reports = reports_of(model, state.factors, rng)
        sweep = state.sweep
        differences.append(np.mean(after, axis=0) - before)
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 0.0]
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts)), bound(d.shape[1], restarts)


@pytest.mark.parametrize(
    ("model", "algorithm", "by_tokens"),
    [
        (model_with(), gibbs, True), (model_with(KNOWN), gibbs, False),
        (model_with(likelihood=BURSTY), gibbs, False), (model_with(), augmented_gibbs, False),
    ],
    ids=["tokens", "known", "bursts", "augmented"],
)  # fmt: skip
def test_a_step_leaves_the_joint_law_as_it_is(model, algorithm, by_tokens, monkeypatch):
    moderate_shapes(monkeypatch)
    monkeypatch.setattr(tokens, "pays", lambda *_: by_tokens)
    z, most = joint_z(model, algorithm, 40 if algorithm is augmented_gibbs else 60)
    assert len(z) >= 14
    assert np.abs(z).max() < most


def as_without_seeds(self, log_a, evidence, value):
    """The density of the shape without the seeded entries' own terms."""
    return self.usual.log_density(log_a, evidence)


@pytest.mark.parametrize("off", ["draw_hypers", "draw_hypers_given_counts"])
def test_either_draw_of_the_shape_leaves_the_joint_law_alone(off, monkeypatch):
    moderate_shapes(monkeypatch)
    monkeypatch.setattr(SeededPrior, off, lambda self, factor, hypers, *rest: hypers)
    z, most = joint_z(model_with())
    assert np.abs(z).max() < most
    if off == "draw_hypers_given_counts":
        monkeypatch.setattr(SeededPrior, "log_density", as_without_seeds)
        z, most = joint_z(model_with())
        assert np.abs(z).max() > most


def draws_of(theta, phi, model):
    """(1 chain) draws of factors, as samplers give them."""
    chains, draws = theta.shape[:2]
    hypers = tuple(np.broadcast_to(h, (chains, draws, *h.shape)).copy() for h in model.initial_hypers())
    stats = np.zeros((chains, draws))
    return Draws((theta.astype(np.float32), phi.astype(np.float32)), hypers, (), stats, stats)


def test_topics_with_seeds_keep_their_numbers_and_all_others_are_matched():
    rng, sizes = np.random.default_rng(1), axis_sizes(SPEC, (7, 20), {"k": 5})
    added = np.zeros((20, 5))
    added[[1, 2], [0, 1]] = 5.0
    priors = {"theta": LEARNED, "phi": SeededPrior(LEARNED, added)}
    model = factorization(SPEC, sizes, priors)
    topics = rng.dirichlet(np.full(20, 0.1), 5)
    topics[1] = 0.9 * topics[0] + 0.1 * topics[1]  # two that could be taken for each other, and the last is largest
    size = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    theta, phi = np.empty((2, 6, 7, 5)), np.empty((2, 6, 20, 5))
    for at in np.ndindex(2, 6):
        order = np.concatenate([[0, 1], 2 + rng.permutation(3)])
        words = topics[[1, 0, 2, 3, 4]] if at == (1, 3) else topics  # one draw has the first two the other way round
        theta[at], phi[at] = size[order] * np.ones((7, 1)), words[order].T
    factors, _, _ = identify(draws_of(theta, phi, model), model)
    np.testing.assert_allclose(
        factors["theta"][:, :, 0], np.broadcast_to([1.0, 2.0, 5.0, 4.0, 3.0], (2, 6, 5)), rtol=1e-5
    )
    np.testing.assert_allclose(factors["phi"][1, 3, :, 0], topics[1], atol=1e-5)
    np.testing.assert_allclose(factors["phi"][0, 0], topics[[0, 1, 4, 3, 2]].T, atol=1e-5)
