"""Tables of components against loops over draws."""

import numpy as np
import pytest

from countveil.estimators.component_tables import Drawn, entries_table, pooled, sizes_table, tails
from countveil.inference.matching import Matched

RNG = np.random.default_rng(1)
SHARES = RNG.dirichlet(np.ones(5), (3, 7, 2))
SIZES = RNG.dirichlet(np.ones(2), (3, 7))
NAMES = np.array([f"w{v}" for v in range(5)])
FOUND = [
    (0, Matched(np.array([0, 2]), np.array([1, 0]), 0.75)),
    (4, Matched(np.array([1]), np.array([1]), 0.25)),
]


def draws_of(values, found):
    return np.array(
        [values[c, s, k] for c, k in zip(found.chains, found.components, strict=True) for s in range(7)]
    )


def test_pooled_draws_are_those_of_the_chains_that_have_the_component():
    for _, found in FOUND:
        np.testing.assert_array_equal(pooled(SHARES, found), draws_of(SHARES, found))


def test_entries_against_a_loop():
    table = entries_table(Drawn(SHARES, SIZES, NAMES), FOUND, 3, 0.8)
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
    assert len(entries_table(Drawn(SHARES, SIZES, NAMES), FOUND, 100, 0.8)) == 10


def test_sizes_against_a_loop():
    table = sizes_table(SIZES, FOUND, 0.6)
    for row, (number, found) in zip(table.itertuples(), FOUND, strict=True):
        own = draws_of(SIZES, found)
        assert (row.component, row.support) == (number, found.support)
        np.testing.assert_allclose(
            [row.prevalence, row.lower, row.upper], [own.mean(), *np.quantile(own, [0.2, 0.8])]
        )


def test_tails_are_equal():
    assert tails(0.9) == pytest.approx([0.05, 0.95])
