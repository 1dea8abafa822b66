from dataclasses import replace

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import augmented_gibbs, checkpoint, gibbs, moves, run, tokens
from countveil.inference.algorithm import Checkpoint
from countveil.inference.draws import Schedule
from countveil.inference.em import refined
from countveil.inference.moves import SWEEPS, Moving, movable
from countveil.inference.plan import Plan
from countveil.inference.starts import alternating, automatic, least_squares
from countveil.inference.streams import Streams
from countveil.laws.counts import NegativeBinomial
from countveil.models.priors import LearnedShapePrior, SeededPrior
from tests.factorizations import CASES, model_of
from tests.joint import SERIAL, DrawsItself, assert_same_bits, planted, small_model, two_sided_geometric, with_priors

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
