from itertools import permutations

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.inference.starts import begin, least_squares
from countveil.inference.starts.given import (
    LEAST_SHARE,
    SHARE,
    Given,
    brought_to_seeds,
    order_by_seeds,
    raised,
    seeded_factor,
    shared_out,
    split,
    without_seeds,
)
from countveil.models.priors import LearnedShapePrior, SeededPrior
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.joint import SERIAL, draw_reports, planted, small_model


def scene(name, seed=3, **sizes):
    """(model, true factors, observations) of a case."""
    case, rng = CASES[name], np.random.default_rng(seed)
    model = model_of(case, **sizes)
    factors = [rng.gamma(2.0, 1.0, f.shape) if f.fixed is None else f.fixed for f in model.factors]
    factors = [v + v.T if f.symmetric else v for f, v in zip(model.factors, factors, strict=True)]
    reports = draw_reports(rates_of(model, factors), alpha_of(case), rng)
    return model, factors, observe(model, case, reports, mask_of(case))


@pytest.mark.parametrize("name", ["topics", "directed", "undirected", "CP 3", "Tucker", "shapes and known"])
def test_a_start_has_the_rates_that_it_was_given(name):
    model, factors, observations = scene(name)
    given = Given((tuple(None if f.fixed is not None else v for f, v in zip(model.factors, factors, strict=True)),))
    found = given(observations, model, np.random.default_rng(1), SERIAL)
    np.testing.assert_allclose(rates_of(model, found), rates_of(model, factors), rtol=1e-9)


@pytest.mark.parametrize("name", ["topics", "directed", "undirected", "CP 3"])
def test_more_components_have_the_same_rates_and_differ(name):
    small, factors, _ = scene(name)
    latent = dict.fromkeys(small.spec.latent, 5)
    model, _, observations = scene(name, **latent)
    found = Given((tuple(factors),))(observations, model, np.random.default_rng(1), SERIAL)
    assert [value.shape for value in found] == [factor.shape for factor in model.factors]
    np.testing.assert_allclose(rates_of(model, found), rates_of(small, factors), rtol=1e-9)
    row = model.shared if model.shared is not None else 0
    components = (found[row] / found[row].sum(axis=0)).T
    assert np.abs(components[:, None] - components)[~np.eye(5, dtype=bool)].max(axis=-1).min() > 1e-3


def test_a_factor_that_is_missing_fits_the_others():
    model, factors, observations = scene("topics")
    found = Given(((None, factors[1]),))(observations, model, np.random.default_rng(1), SERIAL)
    ratio = found[1] / factors[1]
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-9)
    assert np.corrcoef(rates_of(model, found).ravel(), rates_of(model, factors).ravel())[0, 1] > 0.7


def test_rows_that_are_not_known_are_found():
    mu, topics, observations, _ = planted(40, 30, 3, 0.3, seed=4)
    model, rng = small_model((40, 30), 3), np.random.default_rng(1)
    theta, phi = Given(((np.ones((7, 3)), topics.T),))(observations, model, rng, SERIAL)
    assert np.corrcoef((theta @ phi.T).ravel(), mu.ravel())[0, 1] > 0.9


def test_one_of_several_sets_is_taken_at_random():
    model, factors, observations = scene("topics")
    given = Given(tuple((factors[0] * size, factors[1]) for size in (1.0, 2.0, 4.0)))
    sizes = [
        rates_of(model, given(observations, model, np.random.default_rng(seed), SERIAL)).sum() for seed in range(20)
    ]
    assert len(np.unique(np.round(sizes, 6))) == 3


def test_zeros_are_left_behind():
    model, factors, observations = scene("topics")
    factors[0][:, 0] = 0.0
    for value in Given((tuple(factors),))(observations, model, np.random.default_rng(1), SERIAL):
        assert value.min() > 0.0


def test_shares_of_a_component_add_up_to_it():
    value, index = np.random.default_rng(1).random((4, 2)), np.array([0, 1, 1])
    found = shared_out(value[:, index], 1, index, np.random.default_rng(2))
    np.testing.assert_array_equal(found[:, 0], value[:, 0])
    np.testing.assert_allclose(found[:, 1] + found[:, 2], value[:, 1])
    assert (found[:, 1] >= 0.2 * value[:, 1]).all()


def test_either_half_of_a_component_gets_a_random_share_that_is_not_small():
    value, index = np.ones((2000, 3)), np.array([0, 1, 1])
    found = shared_out(value[:, [0, 1, 1]], 1, index, np.random.default_rng(2))[:, 1:]
    assert found.min() >= LEAST_SHARE
    assert found.max() <= 1.0 - LEAST_SHARE
    assert found.std() > 0.05
    assert found.min() < LEAST_SHARE + 0.05


def test_the_largest_components_are_split_first():
    """Sizes are sums in all factors together: by either alone the order would be another one."""
    theta, phi = np.full((30, 3), [1.0, 10.0, 6.0]), np.full((20, 3), [10.0, 2.0, 5.0])
    for n_wanted, sources in ((4, [2]), (5, [2, 1]), (6, [2, 1, 0]), (8, [2, 1, 0, 2, 1])):
        model = small_model((30, 20), n_wanted)
        found = split(model, [theta.copy(), phi.copy()], np.random.default_rng(1))
        np.testing.assert_array_equal(found[1][:, 3:], phi[:, sources])
        for k in range(3):
            halves = [k, *(3 + i for i, source in enumerate(sources) if source == k)]
            np.testing.assert_allclose(found[0][:, halves].sum(axis=1), theta[:, k])


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
