import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from countveil.data.observations import PrivatizedCounts
from countveil.engines import blocks
from countveil.engines.threads import ThreadEngine
from countveil.inference import augmented_gibbs, checkpoint, gibbs, moves, run, tokens
from countveil.inference.algorithm import Checkpoint
from countveil.inference.ascent import expect_counts
from countveil.inference.draws import Schedule
from countveil.inference.em import refined
from countveil.inference.moves import (
    LEAST_CANDIDATES,
    SWEEPS,
    Counts,
    Moving,
    directions,
    gains,
    likeliest,
    log_probability,
    merge,
    movable,
    overlap,
    overlap_with,
    parts_of,
    put_together,
    roots_of,
    split,
    times,
    times_transposed,
)
from countveil.inference.plan import Plan
from countveil.inference.scoring import report_scores
from countveil.inference.starts import alternating, automatic, least_squares
from countveil.inference.streams import Streams
from countveil.laws.counts import NegativeBinomial
from countveil.laws.counts.laws import law_of
from countveil.models.priors import LearnedShapePrior, SeededPrior
from tests.factorizations import CASES, model_of
from tests.joint import (
    FALSE_ALARM,
    LAW,
    LAWS,
    SERIAL,
    DrawsItself,
    assert_same_bits,
    planted,
    small_model,
    truncated_logpmf,
    two_sided_geometric,
    with_priors,
)

STREAMS = Streams.of_chain(1, 0)


def sweeps(algorithm, state, observations, model, n, engine=SERIAL):
    plan = Plan(observations, model)
    for _ in range(n):
        state, _ = algorithm.step(state, plan, model, STREAMS, engine)
    return state


@pytest.mark.parametrize("algorithm", [gibbs, augmented_gibbs], ids=["gibbs", "augmented-gibbs"])
def test_a_move_has_more_components_until_it_ends(algorithm):
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    moving = Moving(algorithm, 2)
    plan = Plan(observations, model)
    state, sizes = moving.init(plan, model, STREAMS, SERIAL), []
    for _ in range(2 * SWEEPS + 2):
        state, _ = moving.step(state, plan, model, STREAMS, SERIAL)
        sizes.append(state.factors[1].shape[1])
        assert [hypers.shape[1] for hypers in state.hypers] == [sizes[-1]] * 2
    move = [4] * (SWEEPS - 1) + [3]
    assert sizes == move * 2 + [3, 3]
    assert state.sweep == 2 * SWEEPS + 2


@pytest.mark.parametrize(
    ("start", "alpha", "asked"),
    [
        (automatic, 0.01, [(5, 5)]),
        (least_squares, 0.01, [(5, 5)]),
        (refined, 0.01, [(6, 20), (3, 20)]),
        (automatic, 0.6, [(5, 20)]),
    ],
)
def test_a_start_before_moves_has_more_components_and_fewer_iterations_if_few_cells_are_stored(
    start, alpha, asked, monkeypatch
):
    observations, model = planted(40, 30, 3, alpha, 1, tokens=3.0)[2], small_model((40, 30), 3, learned=True)
    found, real = [], alternating.fit_reports

    def fit_reports(*arguments):
        found.append((arguments[1], arguments[4]))
        return real(*arguments)

    monkeypatch.setattr(alternating, "fit_reports", fit_reports)
    plan = Plan(observations, model)
    begun = Moving(gibbs, 1).init(plan, model, STREAMS, SERIAL, start)
    assert found == asked
    n_begun = 3 if start is refined else 4
    assert [factor.shape for factor in begun.factors] == [(40, n_begun), (30, n_begun)]
    assert [hypers.shape[1] for hypers in begun.hypers] == [n_begun] * 2
    assert all(factor.min() > 0.0 for factor in begun.factors)
    found.clear()
    gibbs.init(plan, model, STREAMS, SERIAL, start)
    assert found == [(6, 20), (3, 20)]


@pytest.mark.parametrize(("k", "shape", "expected"), [(2, (40, 30), 3), (30, (40, 60), 40), (30, (9, 60), 30)])
def test_a_chain_begins_with_half_more_components_as_far_as_data_allow(k, shape, expected):
    assert moves.n_begun(small_model(shape, k), shape) == expected


def test_the_components_of_a_start_are_merged_in_two_moves():
    observations, model = planted(40, 30, 12, 0.5, seed=1)[2], small_model((40, 30), 12, learned=True)
    plan = Plan(observations, model)
    for n_moves, expected in ((1, [18, 12]), (2, [18, 14, 12]), (3, [18, 14, 12, 12])):
        moving = Moving(gibbs, n_moves)
        state, sizes = moving.init(plan, model, STREAMS, SERIAL), []
        for sweep in range(n_moves * SWEEPS + 1):
            if sweep % SWEEPS == 0:
                sizes.append(state.factors[1].shape[1])
            state, _ = moving.step(state, plan, model, STREAMS, SERIAL)
        assert sizes == expected


def test_the_first_move_splits_only_where_the_start_has_no_more_components(monkeypatch):
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    numbers, real = [], moves.split

    def split(*arguments):
        numbers.append(arguments[5])
        return real(*arguments)

    monkeypatch.setattr(moves, "split", split)
    plan = Plan(observations, model)
    for start, expected in ((automatic, [1]), (refined, [0, 1])):
        begun = Moving(gibbs, 2).init(plan, model, STREAMS, SERIAL, start)
        sweeps(Moving(gibbs, 2), begun, observations, model, 2 * SWEEPS)
        assert numbers == expected
        numbers.clear()


def test_sweeps_after_the_moves_are_the_sampler_s_own():
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    moving = Moving(gibbs, 1)
    state = sweeps(moving, moving.init(Plan(observations, model), model, STREAMS, SERIAL), observations, model, SWEEPS)
    assert_same_bits(sweeps(moving, state, observations, model, 3), sweeps(gibbs, state, observations, model, 3))


def poor(seed=8, p=0.0):
    """(observations, model, factors of a poor mode, true topics): a component stands for two, and one for nothing.

    Counts have p as their dispersion: a number, or one per row or column.
    """
    rng = np.random.default_rng(seed)
    theta, phi = rng.dirichlet(np.full(4, 0.1), 120) * 60.0, rng.dirichlet(np.full(60, 0.1), 4).T
    mean, p = theta @ phi.T, np.asarray(p)
    counts = rng.negative_binomial(mean * (1.0 - p) / p, 1.0 - p) if p.any() else rng.poisson(mean)
    reports = counts + two_sided_geometric(np.full((120, 60), 0.1), rng)
    ours = np.column_stack([theta[:, 0] + theta[:, 1], theta[:, 2], theta[:, 3], np.full(120, 0.05)])
    topics = np.column_stack([phi[:, :2].mean(axis=1), phi[:, 2], phi[:, 3], np.full(60, 1.0 / 60.0)])
    model = small_model((120, 60), 4, shape=0.1, learned=True)
    return PrivatizedCounts(reports, 0.1), model, (np.maximum(ours, 1e-4), np.maximum(topics, 1e-6)), phi


def missing(state, topics):
    """How many true topics no component has."""
    found = state.factors[1] / state.factors[1].sum(axis=0)
    apart = 0.5 * np.abs(topics[:, :, None] - found[:, None]).sum(axis=0)
    return int((apart.min(axis=1) > 0.3).sum())


def test_moves_find_a_topic_that_sweeps_alone_do_not():
    observations, model, factors, topics = poor()
    begun = gibbs.State(factors, model.initial_hypers(), 0)
    assert missing(begun, topics) == 2
    assert missing(sweeps(gibbs, begun, observations, model, 60), topics) == 2
    assert missing(sweeps(Moving(gibbs, 2), begun, observations, model, 2 * SWEEPS), topics) == 0


@pytest.mark.parametrize(("dispersion", "by_tokens"), [("column", False), ("row", False), ("column", True)])
def test_moves_find_a_topic_of_bursty_counts(dispersion, by_tokens, monkeypatch):
    monkeypatch.setattr(tokens, "pays", lambda *_: by_tokens)
    size = (60,) if dispersion == "column" else (120, 1)
    p = np.random.default_rng(3).uniform(0.05, 0.5, size)
    observations, model, factors, topics = poor(p=p)
    model = model._replace(likelihood=NegativeBinomial(dispersion))
    begun = gibbs.State(factors, model.initial_hypers(), 0, model.initial_parameters())
    assert missing(begun, topics) == 2
    assert missing(sweeps(gibbs, begun, observations, model, 60), topics) == 2
    moved = sweeps(Moving(gibbs, 2), begun, observations, model, 2 * SWEEPS)
    assert missing(moved, topics) == 0
    assert [x.shape for x in moved.parameters] == [x.shape for x in begun.parameters]


def test_moves_keep_topics_that_are_there():
    observations, model, factors, topics = poor()
    begun = sweeps(Moving(gibbs, 2), gibbs.State(factors, model.initial_hypers(), 0), observations, model, 20)
    again = begun._replace(sweep=0)
    assert missing(sweeps(Moving(gibbs, 4), again, observations, model, 4 * SWEEPS), topics) == 0


def test_the_number_of_threads_changes_no_bit():
    observations, model = planted(300, 30, 3, 0.5, seed=2)[2], small_model((300, 30), 3, learned=True)
    found = []
    plan = Plan(observations, model)
    for threads in (1, 3):
        with ThreadEngine(threads) as engine:
            moving = Moving(gibbs, 1)
            begun = moving.init(plan, model, STREAMS, engine)
            found.append(sweeps(moving, begun, observations, model, SWEEPS + 1, engine))
    assert_same_bits(*found)


def test_a_chain_goes_on_from_the_middle_of_a_move(tmp_path, monkeypatch):
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    plan, path = Schedule(2, 2 * SWEEPS, 1, 1), tmp_path / "chain.npz"

    def sample(saving):
        return run.sample(
            observations, model, plan, seed=4, threads=1, progress=False, algorithm=Moving(gibbs, 1),
            saving=saving,
        ).draws  # fmt: skip

    whole, step = sample(None), Moving.step

    def broken(self, state, *arguments):
        if state.sweep == SWEEPS // 2:
            raise RuntimeError("stopped here")
        return step(self, state, *arguments)

    monkeypatch.setattr(Moving, "step", broken)
    with pytest.raises(RuntimeError, match="stopped here"):
        sample(Checkpoint(path, 60.0, False))
    monkeypatch.undo()
    with np.load(path) as stored:
        assert stored["chain0_state.0.1"].shape == (30, 4)
    assert_same_bits(tuple(sample(Checkpoint(path, 60.0, True))), tuple(whole))


def test_a_chain_that_is_watched_is_scored_between_moves_too(capsys):
    observations, model = planted(40, 30, 12, 0.5, seed=1)[2], small_model((40, 30), 12, learned=True)
    found = [
        run.sample(
            observations,
            model,
            Schedule(1, 2 * SWEEPS, 1, 1),
            seed=4,
            threads=1,
            progress=progress,
            algorithm=Moving(gibbs, 2),
        ).draws
        for progress in (True, False)
    ]
    assert_same_bits(*found)
    assert "log-likelihood" in capsys.readouterr().err


def test_checkpoints_of_other_moves_are_refused(tmp_path):
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    path = tmp_path / "chain.npz"

    def sample(n, resume):
        return run.sample(
            observations, model, Schedule(1, SWEEPS, 1, 1), seed=4, threads=1, progress=False,
            algorithm=Moving(gibbs, n), saving=Checkpoint(path, 60.0, resume),
        )  # fmt: skip

    sample(1, False)
    with pytest.raises(ValueError, match="must come from the same data and settings"):
        sample(0, True)
    assert checkpoint.FORMAT == 7


def test_models_that_moves_know():
    model = small_model((6, 5), 3)
    assert movable(model)
    assert not movable(small_model((6, 5), 1))
    for dispersion in ("global", 0.5, "column", "row"):
        assert movable(model._replace(likelihood=NegativeBinomial(dispersion)))
    assert not movable(with_priors(model, lambda prior: replace(prior, shape=np.ones((1, 3)))))
    known = {name for name, case in CASES.items() if movable(model_of(case))}
    assert all(len(model_of(CASES[name]).factors) == 2 for name in known)
    assert "directed" not in known


def test_a_prior_that_draws_its_factor_itself_moves_too():
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    coupled = with_priors(model, lambda prior: DrawsItself(**vars(prior)))
    state = Moving(gibbs, 1).init(Plan(observations, coupled), coupled, STREAMS, SERIAL)
    state = sweeps(Moving(gibbs, 1), state, observations, coupled, SWEEPS)
    assert [factor.shape for factor in state.factors] == [(40, 3), (30, 3)]


def test_one_in_six_components_is_split_and_at_least_one():
    assert [moves.n_wide(small_model((9, 9), k)) - k for k in (2, 6, 11, 12, 30)] == [1, 1, 1, 2, 5]


def test_moves_go_without_seeds_and_topics_are_brought_to_them_afterwards():
    _, topics, observations, _ = planted(60, 30, 4, 0.3, seed=1, tokens=60.0)
    model = small_model((60, 30), 4, learned=True)
    added = np.zeros((30, 4))
    for k, topic in enumerate((2, 0)):
        added[np.argsort(-topics[topic] * (topics[topic] > 0.8 * topics.sum(axis=0)))[:2], k] = 10.0
    prior = SeededPrior(LearnedShapePrior(1.0, None), added)
    seeded = model._replace(factors=(model.factors[0], model.factors[1]._replace(prior=prior)))
    assert movable(seeded)
    bare = model._replace(factors=(model.factors[0], model.factors[1]._replace(prior=LearnedShapePrior(1.0, None))))
    moving = Moving(gibbs, 1)
    one, other = (moving.init(Plan(observations, each), each, STREAMS, SERIAL) for each in (seeded, bare))
    one, other = (
        sweeps(moving, state, observations, each, SWEEPS - 1) for state, each in ((one, seeded), (other, bare))
    )
    assert_same_bits(one.factors, other.factors)
    plan = Plan(observations, seeded)
    for _ in range(30):
        one, _ = moving.step(one, plan, seeded, STREAMS, SERIAL)
        shares = one.factors[1] / one.factors[1].sum(axis=0)
        for k, topic in enumerate((2, 0)):
            close = [np.minimum(shares[:, k], own).sum() for own in topics]
            assert np.argmax(close) == topic


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


MERGING = Streams.of_chain(2, 0)


@pytest.fixture
def by_tokens(monkeypatch):
    """Sweeps go by tokens whatever the data."""
    monkeypatch.setattr(tokens, "pays", lambda *_: True)


def test_means_of_draws_are_the_expected_counts(by_tokens, monkeypatch):
    observations = planted(40, 30, 3, 0.5, seed=1, tokens=60.0)[2]
    rng = np.random.default_rng(2)
    theta, phi = rng.gamma(1.0, 1.0, (40, 3)), rng.gamma(1.0, 1.0, (30, 3))
    monkeypatch.setattr(moves, "DRAWS", 400)
    plan = Plan(observations, small_model(observations.shape))
    found = moves.drawn_counts(plan, LAW, theta, phi, MERGING, 10, SERIAL)
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
    found = moves.drawn_counts(plan, law, theta, phi, MERGING, 10, SERIAL)
    assert [counts.shape for counts in found] == [(3, 40), (3, 30)]
    np.testing.assert_allclose(found.rows.sum(axis=1), found.columns.sum(axis=1))


def test_draws_are_those_of_no_sweep_and_the_same_for_every_number_of_threads(by_tokens):
    observations = planted(300, 30, 3, 0.5, seed=1, tokens=60.0)[2]
    theta, phi = np.ones((300, 3)), np.ones((30, 3))
    plan = Plan(observations, small_model(observations.shape))
    found = moves.drawn_counts(plan, LAW, theta, phi, MERGING, 10, SERIAL)
    with ThreadEngine(2) as engine:
        again = moves.drawn_counts(plan, LAW, theta, phi, MERGING, 10, engine)
    np.testing.assert_array_equal(found.rows, again.rows)
    later = moves.drawn_counts(plan, LAW, theta, phi, MERGING, 20, SERIAL)
    assert (later.rows != found.rows).any()


def scene(levels):
    """(observations, theta, phi, dense derivative of the log-likelihood in the rates)."""
    rng = np.random.default_rng(1)
    theta, phi = rng.gamma(0.5, 1.0, (30, 3)), rng.gamma(0.5, 1.0, (20, 3))
    mu = theta @ phi.T
    sizes = {"one": (1, 1), "rows": (30, 1), "cells": mu.shape}
    alpha = np.broadcast_to(rng.uniform(0.1, 0.8, sizes[levels]), mu.shape)
    reports = rng.poisson(mu) + two_sided_geometric(alpha, rng)
    mask = rng.random(mu.shape) < 0.1
    step = 1e-5
    up, down = (truncated_logpmf(np.maximum(reports, 0), mu * (1 + h), alpha) for h in (step, -step))
    slope = np.where(mask, 0.0, (up - down) / (2.0 * step * mu))
    return PrivatizedCounts(reports, alpha, mask), theta, phi, slope


@pytest.mark.parametrize("levels", ["one", "rows", "cells"])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_products_are_those_of_the_derivative(levels, law):
    observations, theta, phi, slope = scene(levels)
    parts = parts_of(observations, law, theta, phi, SERIAL)
    x, y = np.random.default_rng(2).standard_normal((2, 30, 4))
    np.testing.assert_allclose(times(parts, x[:20], SERIAL), slope @ x[:20], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(times_transposed(parts, y, SERIAL), slope.T @ y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("levels", ["one", "rows", "cells"])
@pytest.mark.parametrize("dispersion", ["global", "column", "row"])
def test_products_are_those_of_the_derivative_where_dispersion_varies(dispersion, levels, monkeypatch):
    monkeypatch.setattr(blocks, "MIN_CELLS_PER_BLOCK", 1)
    monkeypatch.setattr(blocks, "MIN_ROWS_PER_BLOCK", 8)
    observations, theta, phi, _ = scene(levels)
    likelihood = NegativeBinomial(dispersion)
    n_p = {"global": 1, "column": 20, "row": 30}[dispersion]
    parameters = np.random.default_rng(7).uniform(0.1, 0.9, n_p), *likelihood.start((30, 20))[1:]
    law = law_of(observations.noise, likelihood, parameters)
    rows, columns = (places.ravel() for places in np.indices((30, 20)))
    reports, level = observations.cells(rows, columns)
    mu, step = (theta @ phi.T).ravel(), 1e-5
    up, down = (report_scores(law, rows, columns, reports, level, mu * (1.0 + h)) for h in (step, -step))
    slope = ((up - down) / (2.0 * step * mu)).reshape(30, 20)
    slope[reports.reshape(30, 20) < 0] = 0.0
    parts = parts_of(observations, law, theta, phi, SERIAL)
    assert len(parts) > 1
    x, y = np.random.default_rng(2).standard_normal((2, 30, 4))
    np.testing.assert_allclose(times(parts, x[:20], SERIAL), slope @ x[:20], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(times_transposed(parts, y, SERIAL), slope.T @ y, rtol=1e-5, atol=1e-6)


def test_directions_are_leading_singular_vectors():
    observations, theta, phi, slope = scene("one")
    parts = parts_of(observations, LAW, theta, phi, SERIAL)
    begun = np.random.default_rng(3).standard_normal(phi.shape)
    x, y, values = directions(parts, theta, phi, begun, 300, SERIAL)
    for k in range(3):
        a, b = np.sqrt(theta[:, k] / theta[:, k].sum()), np.sqrt(phi[:, k] / phi[:, k].sum())
        matrix = a[:, None] * slope * b
        matrix = (np.eye(30) - np.outer(a, a)) @ matrix @ (np.eye(20) - np.outer(b, b))
        left, found, right = np.linalg.svd(matrix)
        size = theta[:, k].sum() * phi[:, k].sum()
        assert values[k] == pytest.approx(found[0] * np.sqrt(size), rel=1e-4)
        np.testing.assert_allclose(np.outer(a * x[:, k], b * y[:, k]), np.outer(left[:, 0], right[0]), atol=1e-3)


def test_halves_add_up_to_the_component_they_were():
    observations, theta, phi, _ = scene("one")
    new_theta, new_phi = split(observations, LAW, theta, phi, 2, 0, np.random.default_rng(4), SERIAL)
    assert new_theta.shape == (30, 5)
    assert new_phi.shape == (20, 5)
    assert min(new_theta.min(), new_phi.min()) > 0.0
    left = [k for k in range(3) if (new_theta[:, k] == theta[:, k]).all()]
    assert len(left) == 1
    np.testing.assert_allclose(new_theta.sum(axis=1), theta.sum(axis=1))
    np.testing.assert_array_equal(new_phi[:, left], phi[:, left])
    for k in {0, 1, 2} - set(left):
        sums = [new_theta[:, k] + new_theta[:, other] for other in (3, 4)]
        assert any(np.allclose(both, theta[:, k]) for both in sums)


def blob():
    """Three planted topics, of which one component holds two: (observations, theta, phi, the true topics)."""
    rng = np.random.default_rng(5)
    true_theta, true_phi = rng.dirichlet(np.full(3, 0.1), 80) * 40.0, rng.dirichlet(np.full(40, 0.1), 3).T
    reports = rng.poisson(true_theta @ true_phi.T) + two_sided_geometric(np.full((80, 40), 0.2), rng)
    theta = np.maximum(np.stack([true_theta[:, 0], true_theta[:, 1] + true_theta[:, 2]], axis=1), 1e-3)
    phi = np.maximum(np.stack([true_phi[:, 0], true_phi[:, 1:].mean(axis=1)], axis=1), 1e-6)
    return PrivatizedCounts(reports, 0.2), theta, phi, true_phi


def test_a_component_that_stands_for_two_is_split_into_them():
    observations, theta, phi, true_phi = blob()
    new_theta, new_phi = split(observations, LAW, theta, phi, 1, 0, np.random.default_rng(6), SERIAL)
    np.testing.assert_array_equal(new_theta[:, 0], theta[:, 0])
    halves = new_phi[:, 1:] / new_phi[:, 1:].sum(axis=0)
    apart = 0.5 * np.abs(true_phi[:, 1:, None] - halves[:, None]).sum(axis=0)
    before = 0.5 * np.abs(true_phi[:, 1] - phi[:, 1] / phi[:, 1].sum()).sum()
    assert min(np.trace(apart), np.trace(apart[::-1])) / 2.0 < 0.6 * before


def test_splits_take_turns():
    observations, theta, phi, _ = scene("one")
    halved = []
    for number in range(4):
        new, _ = split(observations, LAW, theta, phi, 1, number, np.random.default_rng(4), SERIAL)
        halved.append(int(np.flatnonzero((new[:, :3] != theta).any(axis=0))[0]))
    assert halved[0] != halved[1]
    assert halved[:2] == halved[2:]
    parts = parts_of(observations, LAW, theta, phi, SERIAL)
    begun = np.random.default_rng(5).standard_normal(phi.shape)
    gain = directions(parts, theta, phi, begun, 300, SERIAL)[2]
    assert halved[:2] == np.argsort(-gain)[:2].tolist()


def test_what_is_given_stays():
    observations, theta, phi, _ = scene("one")
    before = theta.copy(), phi.copy()
    split(observations, LAW, theta, phi, 2, 0, np.random.default_rng(4), SERIAL)
    np.testing.assert_array_equal(theta, before[0])
    np.testing.assert_array_equal(phi, before[1])
