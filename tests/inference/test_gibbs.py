"""The Gibbs step leaves the joint law of model and data as it is (Geweke 2004), and tells when it would not.

Two ways to simulate parameters and reports together: parameters from the prior, then reports; or one Gibbs
step given the reports, then new reports given the parameters, over and over. Any statistic has the same mean
both ways if the step is right in every part: the law of the count, allocation, gamma updates, exposures.
"""

import numpy as np
import pytest

from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs
from countveil.inference.streams import COLUMNS, RATES, ROWS, START, Streams
from countveil.models.matrix import GammaPrior
from countveil.observations import ExactCounts, PrivatizedCounts
from tests.joint import (
    SERIAL,
    bound,
    draw_factors,
    draw_reports,
    planted,
    run_chain,
    small_model,
)

SIZE = (6, 5)
ALPHA = np.array([0.0, 0.2, 0.5, 0.5, 0.7, 0.9])
MASK = np.zeros(SIZE, dtype=bool)
MASK[[0, 1, 3, 5], [2, 0, 4, 1]] = True
SWEEPS = 24


def statistics(state, observations, reports, mask):
    """Functions of parameters and seen reports that do not depend on the order of components."""
    mu = state.theta @ state.phi.T
    log_mu, log_theta, log_phi = np.log(mu), np.log(state.theta), np.log(state.phi)
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
        np.log(state.theta_rate).mean(),
        np.log(state.phi_rate).mean(),
        np.log1p(np.abs(gibbs.log_likelihood(state, observations, SERIAL))),
    ]


def prior_then_reports(model, mask, rng):
    state = gibbs.State(*draw_factors(model, SIZE, rng), 0)
    reports = draw_reports(state.theta @ state.phi.T, ALPHA[:, None], rng)
    return state, reports, PrivatizedCounts(reports, ALPHA, mask)


def joint_z(model, mask, restarts=600, step=gibbs.step, seed=11):
    """(z-scores of the statistics, the bound they must keep).

    Every restart begins in the joint law itself, and compares the mean of its sweeps with its beginning:
    independent differences of mean zero, however slowly the chain moves.
    """
    rng, streams = np.random.default_rng(seed), Streams.of_chain(seed, 0)
    differences, sweep = [], 0
    for _ in range(restarts):
        state, reports, observations = prior_then_reports(model, mask, rng)
        before, after = statistics(state, observations, reports, mask), []
        state = state._replace(sweep=sweep)
        for _ in range(SWEEPS):
            state, _ = step(state, observations, model, streams, SERIAL)
            reports = draw_reports(state.theta @ state.phi.T, ALPHA[:, None], rng)
            observations = PrivatizedCounts(reports, ALPHA, mask)
            if state.sweep % 4 == 0:
                after.append(statistics(state, observations, reports, mask))
        sweep = state.sweep
        differences.append(np.mean(after, axis=0) - before)
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 0.0]
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts)), bound(d.shape[1], restarts)


@pytest.mark.parametrize(
    ("learned", "masked"), [(False, False), (True, False), (True, True)], ids=["fixed", "learned", "masked"]
)
def test_a_step_leaves_the_joint_law_as_it_is(learned, masked):
    z, most = joint_z(small_model(learned=learned), MASK if masked else np.zeros(SIZE, dtype=bool))
    assert len(z) == (16 if learned else 14)
    assert np.abs(z).max() < most


def exposure_as_if_without_noise(state, observations, *rest):
    observations.exposure_d = np.ones_like(observations.exposure_d)
    return gibbs.step(state, observations, *rest)


def no_exposure_where_not_positive(state, observations, *rest):
    observations.exposure_d = np.zeros_like(observations.exposure_d)
    return gibbs.step(state, observations, *rest)


def counts_drawn_as_if_with_less_noise(state, observations, *rest):
    observations.alpha_d = observations.alpha_d**1.5
    return gibbs.step(state, observations, *rest)


def gamma_shape_too_large(state, observations, model, *rest):
    return gibbs.step(state, observations, small_model(shape=1.8), *rest)


def gamma_rate_too_large(state, *rest):
    new, info = gibbs.step(state._replace(phi_rate=1.5 * state.phi_rate), *rest)
    return new._replace(phi_rate=state.phi_rate), info


class OneEntryFewer(GammaPrior):
    def draw_rates(self, rate_k, size, total_k, rng):
        return super().draw_rates(rate_k, size - 1, total_k, rng)


def rates_drawn_for_one_entry_fewer(state, observations, model, *rest):
    prior = OneEntryFewer(*model.row_prior)
    return gibbs.step(state, observations, model._replace(row_prior=prior, column_prior=prior), *rest)


@pytest.mark.parametrize(
    ("learned", "step"),
    [
        (False, exposure_as_if_without_noise),
        (False, no_exposure_where_not_positive),
        (False, counts_drawn_as_if_with_less_noise),
        (False, gamma_shape_too_large),
        (False, gamma_rate_too_large),
        (True, rates_drawn_for_one_entry_fewer),
    ],
)
def test_the_joint_law_shows_a_planted_fault(learned, step):
    z, most = joint_z(small_model(learned=learned), np.zeros(SIZE, dtype=bool), restarts=200, step=step)
    assert np.abs(z).max() > most


def test_a_step_leaves_the_old_state_alone():
    _, _, observations, _ = planted(30, 20, 2, 0.5, seed=3)
    streams = Streams.of_chain(1, 0)
    state = gibbs.init(observations, small_model(learned=True), streams)
    before = [np.copy(part) for part in state[:4]]
    after, info = gibbs.step(state, observations, small_model(learned=True), streams, SERIAL)
    for old, now in zip(before, state[:4], strict=True):
        np.testing.assert_array_equal(old, now)
    assert (state.sweep, after.sweep) == (0, 1)
    assert info.total_rate == pytest.approx((after.theta @ after.phi.T).sum(), rel=1e-12)


def test_fixed_rates_stay_fixed():
    _, _, observations, _ = planted(30, 20, 2, 0.5, seed=3)
    for state in run_chain(observations, small_model(rate=0.7), 3, seed=1):
        assert state.theta_rate.tolist() == state.phi_rate.tolist() == [0.7, 0.7]


def test_row_blocks_cover_every_row_once_whatever_the_size():
    for n_rows in (1, 255, 256, 257, 1000):
        blocks = gibbs.row_blocks(n_rows)
        assert np.concatenate([np.arange(n_rows)[rows] for rows in blocks]).tolist() == list(range(n_rows))
        assert all(rows.stop - rows.start <= gibbs.ROWS_PER_BLOCK for rows in blocks)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_engine_does_not_change_a_bit(threads):
    _, _, observations, _ = planted(600, 2100, 3, 0.5, seed=4, tokens=2000.0)
    assert len(gibbs.row_blocks(600)) == 3
    streams, model = Streams.of_chain(5, 0), small_model(3, learned=True)
    start = gibbs.init(observations, model, streams)
    finals = []
    for engine in (SERIAL, ThreadEngine(threads)):
        state = start
        with engine if engine is not SERIAL else ThreadEngine(1):
            for _ in range(3):
                state, info = gibbs.step(state, observations, model, streams, engine)
            finals.append((*state[:4], info.total_rate, gibbs.log_likelihood(state, observations, engine)))
    for one, other in zip(*finals, strict=True):
        np.testing.assert_array_equal(one, other)


class RecordedStreams:
    """Streams that write down what was asked of them."""

    def __init__(self):
        self.asked = []

    def generator(self, *arguments):
        self.asked.append(arguments)
        return Streams.of_chain(1, 0).generator(*arguments)


def test_every_sweep_purpose_and_block_has_a_stream_of_its_own():
    _, _, observations, _ = planted(600, 2100, 2, 0.5, seed=4)
    streams, model = RecordedStreams(), small_model(learned=True)
    state = gibbs.init(observations, model, streams)
    for _ in range(2):
        state, _ = gibbs.step(state, observations, model, streams, SERIAL)
    work = [(ROWS, 0), (ROWS, 1), (ROWS, 2), (COLUMNS, 0), (COLUMNS, 1)]
    expected = [(0, START)]
    for sweep in (1, 2):
        expected += [(sweep, *part) for part in work] + [(sweep, RATES)]
    assert streams.asked == expected


def test_blocks_of_rows_draw_apart():
    observations = ExactCounts(np.ones((512, 3), dtype=int))
    model = small_model()
    state = gibbs.State(np.ones((512, 2)), np.ones((3, 2)), np.ones(2), np.ones(2), 0)
    state, _ = gibbs.step(state, observations, model, Streams.of_chain(1, 0), SERIAL)
    assert np.unique(state.theta).size == state.theta.size


def test_log_likelihood_leaves_masked_cells_out():
    reports = np.abs(np.random.default_rng(6).integers(-2, 6, SIZE))
    streams = Streams.of_chain(1, 0)
    observations = PrivatizedCounts(reports, ALPHA, MASK)
    state = gibbs.init(observations, small_model(), streams)
    found = [
        gibbs.log_likelihood(state, seen, SERIAL)
        for seen in (
            observations,
            PrivatizedCounts(np.where(MASK, 9, reports), ALPHA, MASK),
            PrivatizedCounts(reports, ALPHA),
        )
    ]
    assert found[0] == found[1] != found[2]
