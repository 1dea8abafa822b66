"""The Gibbs step leaves the joint law of model and data as it is (Geweke 2004), and tells when it would not.

Two ways to simulate parameters and reports together: parameters from the prior, then reports; or one Gibbs
step given the reports, then new reports given the parameters, over and over. Any statistic has the same mean
both ways if the step is right in every part: the law of the count, allocation, gamma updates, exposures.
"""

from typing import ClassVar

import numpy as np
import pytest

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.engines.blocks import row_blocks
from countveil.engines.threads import ThreadEngine
from countveil.inference import augmented_gibbs, factors, gibbs, scoring
from countveil.inference.plan import Plan
from countveil.inference.streams import COLUMNS, HYPERS, PARAMETERS, ROWS, SPLITS, START, Streams
from countveil.laws.counts import Poisson
from countveil.models.priors import LearnedShapePrior
from tests.joint import (
    SERIAL,
    DrawsItself,
    OneEntryFewer,
    arrays_of,
    assert_same_bits,
    bound,
    draw_factors,
    draw_noise_rates,
    draw_reports,
    moderate_shapes,
    mu_of,
    planted,
    run_chain,
    shaped_model,
    small_model,
    with_priors,
)

SIZE = (6, 5)
ALPHA = np.array([0.0, 0.2, 0.5, 0.5, 0.7, 0.9])
MASK = np.zeros(SIZE, dtype=bool)
MASK[[0, 1, 3, 5], [2, 0, 4, 1]] = True
SWEEPS = 24


def statistics(state, observations, model, reports, mask):
    """Functions of parameters and seen reports that do not depend on the order of components."""
    mu, (log_theta, log_phi) = mu_of(state.factors), map(np.log, state.factors)
    log_mu = np.log(mu)
    seen = np.where(mask, 0, np.maximum(reports, 0))
    return [
        log_theta.mean(),
        log_phi.mean(),
        (log_theta**2).mean(),
        (log_phi**2).mean(),
        log_mu.mean(),
        (log_mu**2).mean(),
        log_mu[0].mean(),
        log_mu[5].mean(),
        np.log1p(seen).mean(),
        (seen > 0).mean(),
        (np.log1p(seen) * log_mu).mean(),
        ((seen > 0) * log_mu)[5].mean(),
        np.log1p(mu).mean(),
        np.log(state.hypers[0]).mean(),
        np.log(state.hypers[1]).mean(),
        np.log1p(np.abs(scoring.log_likelihood(state.factors, observations, model, SERIAL))),
    ]


def prior_then_reports(model, mask, rng):
    state = gibbs.State(*draw_factors(model, rng), 0)
    reports = draw_reports(mu_of(state.factors), ALPHA[:, None], rng)
    return state, reports, PrivatizedCounts(reports, ALPHA, mask)


def joint_z(model, mask, restarts=60, step=gibbs.step, seed=11):
    """(z-scores of the statistics, the bound they must keep).

    Every restart begins in the joint law itself, and compares the mean of its sweeps with its beginning:
    independent differences of mean zero, however slowly the chain moves.
    """
    rng, streams = np.random.default_rng(seed), Streams.of_chain(seed, 0)
    differences, sweep = [], 0
    for _ in range(restarts):
        state, reports, observations = prior_then_reports(model, mask, rng)
        before, after = statistics(state, observations, model, reports, mask), []
        state = state._replace(sweep=sweep)
        for _ in range(SWEEPS):
            state, _ = step(state, Plan(observations, model), model, streams, SERIAL)
            reports = draw_reports(mu_of(state.factors), ALPHA[:, None], rng)
            observations = PrivatizedCounts(reports, ALPHA, mask)
            if state.sweep % 4 == 0:
                after.append(statistics(state, observations, model, reports, mask))
        sweep = state.sweep
        differences.append(np.mean(after, axis=0) - before)
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 0.0]
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts)), bound(d.shape[1], restarts)


@pytest.mark.long
@pytest.mark.parametrize(
    ("learned", "masked"), [(False, False), (True, False), (True, True)], ids=["fixed", "learned", "masked"]
)
def test_a_step_leaves_the_joint_law_as_it_is(learned, masked):
    z, most = joint_z(small_model(SIZE, learned=learned), MASK if masked else np.zeros(SIZE, dtype=bool))
    assert len(z) == (16 if learned else 14)
    assert np.abs(z).max() < most


@pytest.mark.long
def test_a_step_with_learned_shapes_leaves_it_too(monkeypatch):
    moderate_shapes(monkeypatch)
    z, most = joint_z(shaped_model(SIZE), MASK, restarts=40)
    assert np.abs(z).max() < most


@pytest.mark.long
def test_the_joint_law_shows_shapes_drawn_without_exposures(monkeypatch):
    right = LearnedShapePrior.given_counts

    def wrong(self, factor, hypers, scale, count, exposure):
        return right(self, factor, hypers, scale, count, np.zeros_like(exposure))

    moderate_shapes(monkeypatch)
    monkeypatch.setattr(LearnedShapePrior, "given_counts", wrong)
    z, most = joint_z(shaped_model(SIZE), MASK, restarts=40)
    assert np.abs(z).max() > most


@pytest.mark.long
@pytest.mark.parametrize("algorithm", [gibbs, augmented_gibbs], ids=["gibbs", "augmented-gibbs"])
def test_priors_that_draw_their_factor_themselves_leave_it_too(algorithm):
    model = with_priors(small_model(SIZE, learned=True), lambda prior: DrawsItself(**vars(prior)))
    assert model.row_factor == 0
    assert model.fused_factor is None
    z, most = joint_z(model, MASK, restarts=40, step=stepping(algorithm))
    assert np.abs(z).max() < most


def stepping(algorithm):
    """A step of the collapsed state; the augmented one draws its noise rates from their law first."""
    if algorithm is gibbs:
        return gibbs.step

    def step(state, plan, *rest):
        observations, reports = plan.data, np.zeros(SIZE, dtype=int)
        reports[observations.row_numbers, observations.columns] = observations.reports
        rng = np.random.default_rng(state.sweep)
        noise = draw_noise_rates(reports, mu_of(state.factors), ALPHA[:, None], rng)
        full = augmented_gibbs.State(state.factors, state.hypers, state.sweep, noise)
        new, info = augmented_gibbs.step(full, plan, *rest)
        return gibbs.State(new.factors, new.hypers, new.sweep), info

    return step


class ExposuresTooSmall(DrawsItself):
    """A fault to be found."""

    def draw(self, factor, hypers, given, rng):
        """Gamma(shape + count, rate + 0.7 exposure)."""
        return super().draw(factor, hypers, given._replace(exposures=0.7 * given.exposures), rng)


def drawn_with_small_exposures(state, plan, model, *rest):
    wrong = with_priors(model, lambda prior: ExposuresTooSmall(**vars(prior)))
    return gibbs.step(state, plan, wrong, *rest)


def exposure_as_if_without_noise(state, plan, *rest):
    plan.data.exposure_d = np.ones_like(plan.data.exposure_d)
    return gibbs.step(state, plan, *rest)


def no_exposure_where_not_positive(state, plan, *rest):
    plan.data.exposure_d = np.zeros_like(plan.data.exposure_d)
    return gibbs.step(state, plan, *rest)


def counts_drawn_as_if_with_less_noise(state, plan, *rest):
    plan.data.level_d = plan.data.level_d**1.5
    return gibbs.step(state, plan, *rest)


def gamma_shape_too_large(state, plan, model, *rest):
    return gibbs.step(state, plan, small_model(SIZE, shape=1.8), *rest)


def gamma_rate_too_large(state, *rest):
    theta_rate, phi_rate = state.hypers
    new, info = gibbs.step(state._replace(hypers=(theta_rate, 1.5 * phi_rate)), *rest)
    return new._replace(hypers=state.hypers), info


def rates_drawn_for_one_entry_fewer(state, plan, model, *rest):
    wrong = with_priors(model, lambda prior: OneEntryFewer(**vars(prior)))
    return gibbs.step(state, plan, wrong, *rest)


@pytest.mark.long
@pytest.mark.parametrize(
    ("learned", "step", "restarts"),
    [
        (False, exposure_as_if_without_noise, 30),
        (False, no_exposure_where_not_positive, 40),
        (False, counts_drawn_as_if_with_less_noise, 60),
        (False, gamma_shape_too_large, 60),
        (False, gamma_rate_too_large, 60),
        (True, rates_drawn_for_one_entry_fewer, 60),
        (False, drawn_with_small_exposures, 20),
    ],
)
def test_the_joint_law_shows_a_planted_fault(learned, step, restarts):
    z, most = joint_z(small_model(SIZE, learned=learned), np.zeros(SIZE, dtype=bool), restarts, step)
    assert np.abs(z).max() > most


def test_a_step_leaves_the_old_state_alone():
    _, _, observations, _ = planted(30, 20, 2, 0.5, seed=3)
    streams, model = Streams.of_chain(1, 0), small_model((30, 20), learned=True)
    plan = Plan(observations, model)
    state = gibbs.init(plan, model, streams, SERIAL)
    before = tuple(arrays_of(state))
    after, info = gibbs.step(state, plan, model, streams, SERIAL)
    assert_same_bits(before, state)
    assert (state.sweep, after.sweep) == (0, 1)
    assert info.total_rate == pytest.approx(mu_of(after.factors).sum(), rel=1e-12)


def test_fixed_rates_stay_fixed():
    _, _, observations, _ = planted(30, 20, 2, 0.5, seed=3)
    for state in run_chain(observations, small_model((30, 20), rate=0.7), 3, seed=1):
        assert [rate.tolist() for rate in state.hypers] == [0.7, 0.7]


@pytest.mark.long
@pytest.mark.parametrize("threads", [2, 5])
def test_the_engine_does_not_change_a_bit(threads, monkeypatch):
    monkeypatch.setattr(factors, "ENTRIES_PER_BLOCK", 2500)
    _, _, observations, _ = planted(600, 2100, 3, 0.5, seed=4, tokens=2000.0)
    assert len(row_blocks(600, None, 2100)) == 4
    streams, model = Streams.of_chain(5, 0), small_model((600, 2100), 3, learned=True)
    plan = Plan(observations, model)
    start = gibbs.init(plan, model, streams, SERIAL)
    finals = []
    for engine in (SERIAL, ThreadEngine(threads)):
        state = start
        with engine if engine is not SERIAL else ThreadEngine(1):
            for _ in range(3):
                state, info = gibbs.step(state, plan, model, streams, engine)
            score = scoring.log_likelihood(state.factors, observations, model, engine)
            finals.append((*state, info.total_rate, score))
    assert_same_bits(*finals)


class RecordedStreams:
    """Streams that write down what was asked of them."""

    def __init__(self):
        self.asked = []

    def generator(self, *arguments):
        self.asked.append(arguments)
        return Streams.of_chain(1, 0).generator(*arguments)


def test_every_sweep_purpose_and_block_has_a_stream_of_its_own(monkeypatch):
    monkeypatch.setattr(factors, "ENTRIES_PER_BLOCK", 2500)
    _, _, observations, _ = planted(600, 2100, 2, 0.5, seed=4)
    streams, model = RecordedStreams(), small_model((600, 2100), learned=True)
    plan = Plan(observations, model)
    state = gibbs.init(plan, model, streams, SERIAL)
    for _ in range(2):
        state, _ = gibbs.step(state, plan, model, streams, SERIAL)
    phi = 1 << 32
    work = [(ROWS, 0), (ROWS, 1), (ROWS, 2), (ROWS, 3), (COLUMNS, phi), (COLUMNS, phi | 1)]
    expected = [(0, START)]
    for sweep in (1, 2):
        expected += [(sweep, SPLITS), *((sweep, *part) for part in work), (sweep, HYPERS)]
    assert streams.asked == expected


class CountsSweeps(Poisson):
    """A likelihood with a parameter, to which every sweep adds what it tallied and a draw."""

    parameter_axes: ClassVar = {"seen": "column"}

    def start(self, shape):
        return (np.zeros(shape[1]),)

    def tally_size(self, shape):
        return 3 * shape[0]

    def update(self, parameters, tally, unseen, rng):
        return (parameters[0] + tally.sum() + rng.random(parameters[0].size),)


@pytest.mark.parametrize("fused", [True, False])
def test_parameters_of_the_likelihood_are_updated_by_the_tally_of_each_sweep(fused, monkeypatch):
    laws, sizes = [], []

    def drawn(plan, model, law, theta, phi, *rest):
        laws.append(law)
        sizes.append(model.likelihood.tally_size(plan.data.shape))
        counts = np.ones(phi.shape)
        return gibbs.Drawn(theta, np.ones(theta.shape), counts, counts, np.array([1.0, 2.0]))

    monkeypatch.setattr(gibbs, "sweep_rows", drawn)
    monkeypatch.setattr(gibbs, "update_after_allocation", lambda *given: None)
    model = small_model(SIZE)._replace(likelihood=CountsSweeps())
    if not fused:
        model = with_priors(model, lambda prior: DrawsItself(**vars(prior)))
    observations, streams = ExactCounts(np.ones(SIZE, dtype=int)), Streams.of_chain(1, 0)
    state = gibbs.State((np.ones((6, 2)), np.ones((5, 2))), model.initial_hypers(), 0, model.initial_parameters())
    expected = np.zeros(5)
    for sweep in (1, 2):
        state, _ = gibbs.step(state, Plan(observations, model), model, streams, SERIAL)
        np.testing.assert_array_equal(laws[-1].likelihood.parameters[0], expected)
        expected = expected + 3.0 + streams.generator(sweep, PARAMETERS).random(5)
        np.testing.assert_array_equal(state.parameters[0], expected)
    assert sizes == [18, 18]


def test_blocks_of_rows_draw_apart():
    observations = ExactCounts(np.ones((512, 3), dtype=int))
    model = small_model((512, 3))
    state = gibbs.State((np.ones((512, 2)), np.ones((3, 2))), model.initial_hypers(), 0)
    state, _ = gibbs.step(state, Plan(observations, model), model, Streams.of_chain(1, 0), SERIAL)
    assert np.unique(state.factors[0]).size == state.factors[0].size


def test_blocks_of_a_long_factor_draw_apart(monkeypatch):
    monkeypatch.setattr(factors, "ENTRIES_PER_BLOCK", 300)
    observations = ExactCounts(np.ones((3, 512), dtype=int))
    model = small_model((3, 512))
    state = gibbs.State((np.ones((3, 2)), np.ones((512, 2))), model.initial_hypers(), 0)
    state, _ = gibbs.step(state, Plan(observations, model), model, Streams.of_chain(1, 0), SERIAL)
    assert np.unique(state.factors[1]).size == state.factors[1].size


def test_log_likelihood_leaves_masked_cells_out():
    reports = np.abs(np.random.default_rng(6).integers(-2, 6, SIZE))
    streams, model = Streams.of_chain(1, 0), small_model(SIZE)
    observations = PrivatizedCounts(reports, ALPHA, MASK)
    state = gibbs.init(Plan(observations, model), model, streams, SERIAL)
    found = [
        scoring.log_likelihood(state.factors, seen, model, SERIAL)
        for seen in (
            observations,
            PrivatizedCounts(np.where(MASK, 9, reports), ALPHA, MASK),
            PrivatizedCounts(reports, ALPHA),
        )
    ]
    assert found[0] == found[1] != found[2]
