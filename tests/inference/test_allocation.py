"""Counts carried down a contraction have the law of a multinomial over every term at once."""

import numpy as np
import pytest
from scipy import special, stats

from countveil.data.observations import ExactCounts
from countveil.inference import gibbs
from countveil.inference.allocation import sampled_counts
from countveil.inference.streams import Streams
from tests.factorizations import CASES, as_matrix, model_of
from tests.joint import FALSE_ALARM, LAW, SERIAL, draw_factors

NAMES = ["topics", "directed", "undirected", "CP 3", "CP 4", "Tucker", "dynamic network"]


def scene(name, count, seed=9):
    """(model, factors, cell, observations): one cell holds the count, all others none."""
    model = model_of(CASES[name])
    found = draw_factors(model, np.random.default_rng(seed))[0]
    counts = np.zeros(CASES[name].shape, dtype=int)
    cell = tuple(n - 1 for n in counts.shape)
    cell = (0, *cell[1:]) if model.shared is not None else cell
    counts[cell] = count
    return model, found, cell, ExactCounts(as_matrix(model, counts))


def allocations(model, found, observations, repeats, seed=1):
    """Counts of each use of a factor, rows' uses first, over and over."""
    values, streams = [side.forward(found) for side in (model.rows, model.columns)], Streams.of_chain(seed, 0)
    theta, phi = model.matrices(found)
    rng = np.random.default_rng(seed)
    for sweep in range(repeats):
        drawn = gibbs.allocate(observations, model, LAW, theta, phi, streams, sweep, SERIAL)
        yield [
            count
            for side, value, matrix in zip(
                (model.rows, model.columns), values, (drawn.row_counts, drawn.counts), strict=True
            )
            for count in sampled_counts(side, value, matrix, rng)
        ]


def shares_of(model, found, cell):
    """(one axis for each latent axis) the chance of each term of a cell."""
    spec = model.spec
    terms = np.einsum(
        spec.text.split("->")[0] + "->" + spec.output + spec.latent, *[found[f] for f in spec.factor_of_term]
    )[cell]
    return terms / terms.sum()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_token_goes_to_one_term_with_its_chance(name):
    repeats = 2500
    model, found, cell, observations = scene(name, 1)
    uses = model.rows.uses + model.columns.uses
    share = shares_of(model, found, cell)
    tally = np.zeros(share.shape)
    for counts in allocations(model, found, observations, repeats):
        index = dict(zip(model.spec.output, cell, strict=True))
        for use, count in zip(uses, counts, strict=True):
            assert count.sum() == 1
            where = np.argwhere(count)[0]
            for axis, place in zip(use.axes, where, strict=True):
                assert index.setdefault(axis, place) == place
        tally[tuple(index[a] for a in model.spec.latent)] += 1.0
    expected = repeats * share
    common = expected >= 5.0
    pairs = [(tally[common], expected[common])]
    if not common.all():
        pairs.append(
            (tally[~common].sum(keepdims=True).ravel()[:1], expected[~common].sum(keepdims=True).ravel()[:1])
        )
    got, wanted = (np.concatenate(part) for part in zip(*pairs, strict=True))
    assert special.chdtrc(got.size - 1, ((got - wanted) ** 2 / wanted).sum()) > FALSE_ALARM
    moved = np.roll(expected.ravel(), 1).reshape(expected.shape)[common]
    assert special.chdtrc(common.sum() - 1, ((tally[common] - moved) ** 2 / moved).sum()) < 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_many_tokens_spread_as_a_multinomial(name):
    repeats, count = 600, 150
    model, found, cell, observations = scene(name, count)
    uses, share = model.rows.uses + model.columns.uses, shares_of(model, found, cell)
    drawn = [[] for _ in uses]
    for counts in allocations(model, found, observations, repeats, seed=2):
        for kept, use, each in zip(drawn, uses, counts, strict=True):
            assert each.sum() == count
            kept.append(
                each[
                    tuple(
                        cell[model.spec.output.index(a)] if a in model.spec.output else slice(None)
                        for a in use.axes
                    )
                ].ravel()
            )
    for use, kept in zip(uses, drawn, strict=True):
        mine = "".join(a for a in use.axes if a not in model.spec.output)
        chance = np.einsum(f"{model.spec.latent}->{mine}", share).ravel()
        n = np.array(kept)
        z = (n.mean(axis=0) - count * chance) / np.sqrt(count * chance * (1.0 - chance) / repeats)
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)
        spread = ((n - count * chance) ** 2 / (count * chance)).sum(axis=1)
        error = spread.std(ddof=1) / np.sqrt(repeats)
        assert abs(spread.mean() - (chance.size - 1)) < stats.norm.isf(FALSE_ALARM / 2) * error
