"""Tables of components against loops over draws."""

import numpy as np
import pytest

from countveil.fit.component_tables import (
    Chain,
    by_support,
    entries_table,
    mixture,
    shares_of,
    sizes_of,
    sizes_table,
    tails,
)
from countveil.inference.matching import Matched

RNG = np.random.default_rng(1)
SHARES = RNG.dirichlet(np.ones(5), (3, 7, 2))
SIZES = RNG.dirichlet(np.ones(2), (3, 7))
NAMES = np.array([f"w{v}" for v in range(5)])
CHAINS = [Chain(*own, 1.0 / 3.0) for own in zip(SHARES, SIZES, strict=True)]
FOUND = [(0, Matched(np.array([0, 2]), np.array([1, 0]), 0.75)), (4, Matched(np.array([1]), np.array([1]), 0.25))]


def draws_of(values, found):
    pairs = zip(found.chains, found.components, strict=True)
    return np.array([values[c, s, k] for c, k in pairs for s in range(7)])


def test_draws_of_a_component_are_those_of_the_chains_that_have_it():
    for _, found in FOUND:
        np.testing.assert_array_equal(shares_of(CHAINS, found), draws_of(SHARES, found))
        np.testing.assert_array_equal(sizes_of(CHAINS, found), draws_of(SIZES, found))


def test_entries_against_a_loop():
    table = entries_table(CHAINS, NAMES, FOUND, 3, 0.8)
    assert table["component"].tolist() == [0, 0, 0, 4, 4, 4]
    for number, found in FOUND:
        own, rows = draws_of(SHARES, found), table[table["component"] == number]
        best = sorted(range(5), key=lambda v, own=own: -own[:, v].mean())[:3]
        assert rows["member"].tolist() == [f"w{v}" for v in best]
        assert rows["rank"].tolist() == [1, 2, 3]
        np.testing.assert_allclose(rows["probability"], own[:, best].mean(axis=0))
        np.testing.assert_allclose(rows["lower"], np.quantile(own[:, best], 0.1, axis=0))
        np.testing.assert_allclose(rows["upper"], np.quantile(own[:, best], 0.9, axis=0))
        assert (rows["support"] == found.support).all()
        np.testing.assert_allclose(rows["prevalence"], draws_of(SIZES, found).mean())
    assert len(entries_table(CHAINS, NAMES, FOUND, 100, 0.8)) == 10


def test_sizes_against_a_loop():
    table = sizes_table(CHAINS, FOUND, 0.6)
    for row, (number, found) in zip(table.itertuples(), FOUND, strict=True):
        own = draws_of(SIZES, found)
        assert (row.component, row.support) == (number, found.support)
        expected = [own.mean(), *np.quantile(own, [0.2, 0.8])]
        np.testing.assert_allclose([row.prevalence, row.lower, row.upper], expected)


def test_a_mixture_has_as_many_draws_of_each_chain_as_its_weight_says():
    weights = [4.0 / 21.0, 0.0, 17.0 / 21.0]
    found = mixture([each._replace(weight=w) for each, w in zip(CHAINS, weights, strict=True)])
    assert [len(each.sizes) for each in found] == [4, 0, 17]
    assert {tuple(row) for row in found[2].sizes} == {tuple(row) for row in SIZES[2]}
    assert mixture(CHAINS)[1].shares is CHAINS[1].shares
    assert [number for number, _ in by_support(found, [one for _, one in FOUND])] == [0]


def test_components_go_by_support_and_then_by_size():
    one, other = (Matched(np.array([c]), np.array([k]), 0.4) for c, k in ((0, 0), (0, 1)))
    best = Matched(np.array([1]), np.array([0]), 0.6)
    larger = int(SIZES[0, :, 1].mean() > SIZES[0, :, 0].mean())
    order = [number for number, _ in by_support(CHAINS, [one, other, best])]
    assert order == [2, larger, 1 - larger]


def test_tails_are_equal():
    assert tails(0.9) == pytest.approx([0.05, 0.95])
