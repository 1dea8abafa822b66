import itertools
import math

import numpy as np
import pytest
from scipy import stats

from countveil.engines.threads import ThreadEngine
from countveil.inference import tokens
from countveil.inference.ascent import expect_counts
from countveil.inference.moves import merging
from countveil.inference.moves.merging import (
    LEAST_CANDIDATES,
    Counts,
    gains,
    likeliest,
    log_probability,
    merge,
    overlap,
    overlap_with,
    put_together,
    roots_of,
)
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts import NegativeBinomial
from countveil.laws.counts.laws import law_of
from tests.joint import FALSE_ALARM, LAW, SERIAL, planted, small_model

SHAPES = 0.3, 0.7


def whole_counts():
    rng = np.random.default_rng(1)
    cells = rng.poisson(rng.gamma(0.5, 1.0, (4, 5, 6)))
    return Counts(cells.sum(axis=2).astype(float), cells.sum(axis=1).astype(float))


def urn(counts, shape):
    """Log-probability of tokens drawn one after another from Polya's urn."""
    seen, found = np.zeros(len(counts)), 0.0
    for v in np.repeat(np.arange(len(counts)), counts.astype(int)):
        found += math.log((shape + seen[v]) / (shape * len(counts) + seen.sum()))
        seen[v] += 1.0
    return found


def test_probabilities_are_those_of_urns():
    counts = whole_counts()
    for k, found in enumerate(log_probability(counts, SHAPES)):
        urns = urn(counts.rows[k], SHAPES[0]) + urn(counts.columns[k], SHAPES[1])
        assert found == pytest.approx(math.lgamma(1.0 + counts.rows[k].sum()) + urns, rel=1e-12)


def test_overlaps_are_sums_over_cells():
    counts = whole_counts()
    size = counts.rows.sum(axis=1)
    rates = np.einsum("kd,kv,k->kdv", *counts, 1.0 / size)
    for i, j in itertools.product(range(4), repeat=2):
        assert overlap(counts)[i, j] == pytest.approx(np.sqrt(rates[i] * rates[j]).sum(), rel=1e-12)


def test_overlaps_with_one_are_a_row_of_all():
    counts = whole_counts()
    np.testing.assert_allclose(overlap_with(counts, roots_of(counts), 2), overlap(counts)[2], rtol=1e-12)


@pytest.mark.parametrize("n_left", [3, 6, 14, 15, 20])
def test_what_is_known_of_pairs_is_what_would_be_found_anew(n_left):
    rng = np.random.default_rng(5)
    counts = Counts(*(rng.gamma(0.3, 3.0, (15, n)) for n in (40, 30)))
    groups, left = [[k] for k in range(15)], counts
    while len(groups) > n_left:
        shared, own = overlap(left), log_probability(left, SHAPES)
        pairs = likeliest(left, shared)
        best = int(np.argmax(gains(left, own, shared, *pairs, SHAPES)))
        i, j = int(pairs[0][best]), int(pairs[1][best])
        left, groups[i] = left.merge(i, j), groups[i] + groups[j]
        del groups[j]
    assert merge(counts, n_left, SHAPES) == groups


def test_a_gain_is_the_difference_that_merging_makes():
    counts = whole_counts()
    own = log_probability(counts, SHAPES)
    found = gains(counts, own, overlap(counts), np.array([0]), np.array([2]), SHAPES)[0]
    merged = log_probability(counts.merge(0, 2), SHAPES)
    assert found == pytest.approx(merged.sum() - own.sum() - 2.0 * math.log(2.0) * overlap(counts)[0, 2])


def test_copies_are_merged():
    rng = np.random.default_rng(2)
    theta, phi = rng.gamma(0.1, 1.0, (60, 5)) + 1e-6, rng.gamma(0.1, 1.0, (50, 5)) + 1e-6
    cells = 400.0 * theta / theta.sum(axis=0), phi / phi.sum(axis=0)
    rows, columns = cells[0].T, 400.0 * cells[1].T
    counts = Counts(np.vstack([rows, rows[[1, 3]] / 3.0]), np.vstack([columns, columns[[1, 3]] / 3.0]))
    groups = merge(counts, 5, (0.1, 0.1))
    assert sorted(map(sorted, groups)) == [[0], [1, 5], [2], [3, 6], [4]]


def test_the_best_pair_is_among_those_that_are_tried():
    rng = np.random.default_rng(3)
    theta, phi = rng.gamma(0.1, 1.0, (60, 8)) + 1e-6, rng.gamma(0.1, 1.0, (50, 8)) + 1e-6
    size = rng.uniform(20.0, 500.0, 8)
    theta[:, 4:6], phi[:, 4:6] = theta[:, 1:3], phi[:, 1:3]
    counts = Counts(*((size * factor / factor.sum(axis=0)).T for factor in (theta, phi)))
    own, tried = log_probability(counts, SHAPES), likeliest(counts, overlap(counts))
    every = np.triu_indices(8, 1)
    assert len(tried[0]) == LEAST_CANDIDATES < len(every[0])
    best = int(np.argmax(gains(counts, own, overlap(counts), *every, SHAPES)))
    assert (every[0][best], every[1][best]) in set(zip(*tried, strict=True))


def test_merged_components_keep_the_sums_of_their_rates():
    rng = np.random.default_rng(4)
    theta, phi = rng.random((6, 4)), rng.random((5, 4))
    new_theta, new_phi = put_together(theta, phi, [[0], [1, 3], [2]])
    for k, group in enumerate([[0], [1, 3], [2]]):
        old, new = theta[:, group] @ phi[:, group].T, np.outer(new_theta[:, k], new_phi[:, k])
        np.testing.assert_allclose(new.sum(axis=0), old.sum(axis=0))
        np.testing.assert_allclose(new.sum(axis=1), old.sum(axis=1))
    np.testing.assert_allclose(np.outer(new_theta[:, 0], new_phi[:, 0]), np.outer(theta[:, 0], phi[:, 0]))


STREAMS = Streams.of_chain(2, 0)


@pytest.fixture
def by_tokens(monkeypatch):
    """Sweeps go by tokens whatever the data."""
    monkeypatch.setattr(tokens, "pays", lambda *_: True)


def test_means_of_draws_are_the_expected_counts(by_tokens, monkeypatch):
    observations = planted(40, 30, 3, 0.5, seed=1, tokens=60.0)[2]
    rng = np.random.default_rng(2)
    theta, phi = rng.gamma(1.0, 1.0, (40, 3)), rng.gamma(1.0, 1.0, (30, 3))
    monkeypatch.setattr(merging, "DRAWS", 400)
    plan = Plan(observations, small_model(observations.shape))
    found = merging.drawn_counts(plan, LAW, theta, phi, STREAMS, 10, SERIAL)
    row_ratio, ratio, _ = expect_counts(observations, LAW, theta, phi, SERIAL)
    absent = np.ones((40, 30))
    for d in range(40):
        absent[d, observations.columns[observations.indptr[d] : observations.indptr[d + 1]]] = 0.0
    expected = theta * (row_ratio + 0.5 * absent @ phi), phi * (ratio + 0.5 * absent.T @ theta)
    for ours, exact in zip(found, expected, strict=True):
        z = (ours.T - exact) / np.sqrt(exact / 400)  # sums of counts have at most a Poisson variance
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / exact.size)


def test_bursts_are_drawn_by_their_own_sweeps(by_tokens):
    observations, likelihood = planted(40, 30, 3, 0.5, seed=1, tokens=60.0)[2], NegativeBinomial(0.5)
    law = law_of(observations.noise, likelihood, likelihood.start((40, 30)))
    rng = np.random.default_rng(3)
    theta, phi = rng.gamma(1.0, 1.0, (40, 3)), rng.gamma(1.0, 1.0, (30, 3))
    plan = Plan(observations, small_model((40, 30))._replace(likelihood=likelihood))
    found = merging.drawn_counts(plan, law, theta, phi, STREAMS, 10, SERIAL)
    assert [counts.shape for counts in found] == [(3, 40), (3, 30)]
    np.testing.assert_allclose(found.rows.sum(axis=1), found.columns.sum(axis=1))


def test_draws_are_those_of_no_sweep_and_the_same_for_every_number_of_threads(by_tokens):
    observations = planted(300, 30, 3, 0.5, seed=1, tokens=60.0)[2]
    theta, phi = np.ones((300, 3)), np.ones((30, 3))
    plan = Plan(observations, small_model(observations.shape))
    found = merging.drawn_counts(plan, LAW, theta, phi, STREAMS, 10, SERIAL)
    with ThreadEngine(2) as engine:
        again = merging.drawn_counts(plan, LAW, theta, phi, STREAMS, 10, engine)
    np.testing.assert_array_equal(found.rows, again.rows)
    later = merging.drawn_counts(plan, LAW, theta, phi, STREAMS, 20, SERIAL)
    assert (later.rows != found.rows).any()
