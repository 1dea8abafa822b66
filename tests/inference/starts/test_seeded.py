"""Starts brought to seeds: order, shares of seeded words, and the model without them."""

from itertools import permutations

import numpy as np

from countveil.data.observations import PrivatizedCounts
from countveil.inference.starts import begin, least_squares
from countveil.inference.starts.given import Given
from countveil.inference.starts.seeded import (
    SHARE,
    brought_to_seeds,
    order_by_seeds,
    raised,
    seeded_factor,
    without_seeds,
)
from countveil.models.priors import LearnedShapePrior, SeededPrior
from tests.joint import SERIAL, small_model

ADDED = np.zeros((12, 4))
ADDED[[0, 1, 5, 6, 6], [0, 0, 1, 1, 2]] = 4.0


def seeded_model(n_rows=9):
    """(9, 4) by (12, 4) with seeds in three of four topics."""
    model = small_model((n_rows, 12), 4)
    prior = SeededPrior(LearnedShapePrior(1.0, None), ADDED)
    return model._replace(factors=(model.factors[0], model.factors[1]._replace(prior=prior)))


def factors_of(seed=1):
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, 1.0, (9, 4)), rng.gamma(0.3, 1.0, (12, 4))


def shares_of(theta, phi):
    """(V, K) of each word's expected count, by loops."""
    found = np.zeros(phi.shape)
    for v, k in np.ndindex(*phi.shape):
        found[v, k] = sum(theta[d, k] * phi[v, k] for d in range(len(theta)))
    return found / found.sum(axis=1, keepdims=True)


def test_topics_go_to_the_seeds_that_they_explain_best_together():
    for seed in range(5):
        theta, phi = factors_of(seed)
        shares = shares_of(theta, phi)

        def explained(order, shares=shares):
            words = [np.flatnonzero(ADDED[:, k]) for k in range(3)]
            return sum(shares[own, k].mean() for own, k in zip(words, order, strict=False))

        order = order_by_seeds(ADDED, theta, phi)
        assert sorted(order) == [0, 1, 2, 3]
        assert np.isclose(explained(order), max(explained(p) for p in permutations(range(4))))


def test_seeded_words_have_their_share_and_all_else_stays():
    theta, phi = factors_of()
    _, found = raised(ADDED, theta, phi)
    assert (found >= phi).all()
    np.testing.assert_array_equal(found[ADDED == 0.0], phi[ADDED == 0.0])
    for v, k in zip(*np.nonzero(ADDED), strict=True):
        alone = phi.copy()
        alone[v, k] = found[v, k]
        share = shares_of(theta, alone)[v, k]
        assert share >= SHARE - 1e-9 or np.isclose(found[v, k], phi[v, k])


def test_every_start_begins_with_topics_at_their_seeds():
    theta, phi = np.full((9, 4), 1.0), np.full((12, 4), 0.1)
    for k, words in enumerate([[8, 9], [5, 6], [6, 7], [0, 1, 2]]):  # topic 3 is that of the first seeds
        phi[words, k] = 3.0
    model = seeded_model()
    reports = np.random.default_rng(2).poisson(theta @ phi.T)
    observations = PrivatizedCounts(reports, 0.3)
    for start in (Given(((theta, phi),)), least_squares):
        _, found = begin(start, observations, model, np.random.default_rng(1), SERIAL)
        for v, k in zip(*np.nonzero(ADDED), strict=True):
            assert found[v, k] >= found[v, 3]
    _, found = begin(Given(((theta, phi),)), observations, model, np.random.default_rng(1), SERIAL)
    assert found[2].argmax() == 0
    assert found[7].argmax() == 2


def test_a_model_without_seeds_stays_as_it_is():
    model, factors = small_model((9, 12), 4), factors_of()
    assert seeded_factor(model) is None
    assert without_seeds(model) is model
    assert brought_to_seeds(model, factors) is factors
    bare = without_seeds(seeded_model())
    assert bare.factors[1].prior == LearnedShapePrior(1.0, None)
    assert seeded_factor(seeded_model()) == 1
