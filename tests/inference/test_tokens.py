"""Sweeps by tokens leave the joint law as it is, are calibrated, and are chosen by the data alone."""

import numpy as np
import pytest

from countveil.data.observations import ExactCounts, NaiveCounts, Observations, PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs, tokens
from countveil.inference.plan import Plan
from countveil.inference.streams import ROWS, Streams
from countveil.laws.noise.two_sided_geometric import tokens as proposals
from tests.inference import test_calibration as calibration
from tests.inference import test_gibbs as joint
from tests.joint import (
    FALSE_ALARM,
    GENERAL_LAW,
    LAW,
    assert_same_bits,
    draw_reports,
    moderate_shapes,
    planted,
    rank_p_values,
    shaped_model,
    small_model,
)

pytestmark = pytest.mark.long

ALPHA = np.array([0.1, 0.2, 0.5, 0.5, 0.7, 0.9])
NOTHING = np.zeros(joint.SIZE, dtype=bool)
WAYS = {"proposed": 0.0, "one by one": np.inf}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def by_tokens(request, monkeypatch):
    """All sweeps draw all counts, in one of the two ways."""
    monkeypatch.setattr(tokens, "pays", lambda *_: True)
    monkeypatch.setattr(tokens, "expected_proposals", lambda *_: request.param)
    monkeypatch.setattr(joint, "ALPHA", ALPHA)


@pytest.mark.parametrize("learned", [False, True])
def test_a_step_leaves_the_joint_law_as_it_is(by_tokens, learned, monkeypatch):
    moderate_shapes(monkeypatch)
    model = shaped_model(joint.SIZE) if learned else small_model(joint.SIZE)
    z, most = joint.joint_z(model, NOTHING, restarts=40)
    assert np.abs(z).max() < most


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_joint_law_shows_a_planted_fault(way, monkeypatch):
    right = proposals.propose_rows

    def every_proposal_kept(entries, *rest):
        right(entries._replace(reports=np.full_like(entries.reports, 1000)), *rest)

    monkeypatch.setattr(tokens, "pays", lambda *_: True)
    monkeypatch.setattr(tokens, "expected_proposals", lambda *_: way)
    monkeypatch.setattr(joint, "ALPHA", ALPHA)
    monkeypatch.setattr(proposals, "propose_rows", every_proposal_kept)
    monkeypatch.setattr(proposals, "propose_rest", lambda *_: None)
    z, most = joint.joint_z(small_model(joint.SIZE), NOTHING, restarts=40)
    assert np.abs(z).max() > most


@pytest.mark.parametrize("by_tokens", [WAYS["proposed"]], indirect=True)
def test_true_values_rank_uniformly_among_posterior_draws(by_tokens, monkeypatch):
    monkeypatch.setattr(calibration, "ALPHA", np.array([0.1, 0.3, 0.3, 0.6, 0.6, 0.8, 0.8]))
    monkeypatch.setattr(calibration, "MASK", np.zeros(calibration.SIZE, dtype=bool))
    model = small_model(calibration.SIZE, shape=1.0, rate=0.6)
    p = rank_p_values(calibration.ranks("private", model, 40, seed=300), calibration.DRAWS)
    assert p.min() > FALSE_ALARM / p.size


@pytest.mark.parametrize("n_topics", [1, 5, 13])
def test_every_topic_has_its_own_table(n_topics):
    phi = np.random.default_rng(2).gamma(0.5, 1.0, (40, n_topics))
    whole = np.zeros((n_topics, 40), dtype=np.uint64)
    proposals.fill_aliases(np.ascontiguousarray(phi.T), whole)
    with ThreadEngine(2) as engine:
        for many in (map, engine.map):
            same, total, tables, *rest = tokens.with_tables(many, phi, Streams.of_chain(1, 0), 3)
            assert_same_bits((same, total, tables), (phi, phi.sum(axis=0), whole))
            assert rest == [Streams.of_chain(1, 0), 3]


def pays(observations):
    """Whether sweeps by tokens are worth it, for Poisson counts under two-sided geometric noise."""
    return tokens.pays(observations, LAW)


@pytest.fixture
def small_too(monkeypatch):
    """Small data are swept by tokens like large ones."""
    monkeypatch.setattr(tokens, "MIN_REPORTS", 0)


def sparse(alpha, **options):
    """Few counts under noise."""
    rng = np.random.default_rng(4)
    return PrivatizedCounts(draw_reports(np.full((40, 60), 0.02), np.asarray(alpha), rng), alpha, **options)


def test_few_counts_under_strong_noise_are_swept_by_tokens(small_too):
    assert pays(sparse(0.6))
    assert pays(sparse(np.linspace(0.3, 0.8, 40)[:, None]))


def test_few_reports_are_swept_by_tokens_as_weak_as_the_noise_may_be(small_too):
    observations = sparse(0.01)
    assert observations.reports.size < 0.05 * 40 * 60
    assert pays(observations)


def test_few_reports_of_large_counts_are_not(small_too):
    """The cells beside the reports alone would get a share alpha of all tokens proposed, each sweep."""
    rng = np.random.default_rng(6)
    mu = np.where(rng.random((40, 60)) < 0.03, 1e4, 0.0)
    observations = PrivatizedCounts(draw_reports(mu, np.asarray(0.03), rng), 0.03)
    assert observations.reports.size < tokens.DENSE_SHARE * 40 * 60
    assert not pays(observations)


def test_small_data_are_not():
    assert not pays(sparse(0.6))


def test_other_laws_are_not(small_too):
    assert not tokens.pays(sparse(0.6), GENERAL_LAW)
    assert pays(sparse(0.6))


def test_other_data_are_not(small_too):
    rng = np.random.default_rng(5)
    counts = rng.poisson(5.0, (40, 60))
    noisy = draw_reports(np.full((40, 60), 5.0), np.asarray(0.6), rng)
    mask = rng.random((40, 60)) < 0.1
    assert not pays(PrivatizedCounts(noisy, 0.6))
    assert not pays(ExactCounts(counts))
    assert not pays(NaiveCounts(noisy))
    assert not pays(sparse(0.6, mask=mask))
    assert not pays(sparse(rng.choice([0.6, 0.7], (40, 60))))
    assert not pays(sparse(np.where(np.arange(40) == 3, 0.0, 0.6)[:, None]))


def test_the_choice_is_made_once_for_a_plan(small_too, monkeypatch):
    observations = sparse(0.6)
    model = small_model(observations.shape)
    plan = Plan(observations, model)
    assert plan.by_tokens
    monkeypatch.setattr(tokens, "_estimate", lambda observations: False)
    assert plan.by_tokens
    assert not Plan(observations, model).by_tokens


def test_blocks_are_of_equal_work_where_a_few_rows_hold_most_tokens(small_too, monkeypatch):
    monkeypatch.setattr(tokens, "WORK_PER_ROW", 1)
    rng, rate = np.random.default_rng(4), np.full((8 * tokens.ROWS_PER_BLOCK, 40), 0.02)
    rate[5000:5400] = 8.0
    noise = rng.geometric(0.4, rate.shape) - rng.geometric(0.4, rate.shape)
    observations = PrivatizedCounts(rng.poisson(rate) + noise, 0.6)
    blocks = tokens.blocks_of(observations)
    assert [block.start for block in blocks] == [0, *(block.stop for block in blocks[:-1])]
    assert blocks[-1].stop == len(rate)
    assert len(blocks) == 8
    work = np.array([tokens.work_of_rows(observations)[block].sum() for block in blocks])
    assert work.max() < 1.1 * work.mean()
    rows = [block.stop - block.start for block in blocks]
    assert max(rows) > 5 * min(rows)


@pytest.mark.parametrize(("alpha", "rate", "which"), [(0.6, 0.3, "proposed"), (0.3, 0.9, "visited")])
def test_the_work_of_rows_is_what_is_proposed_or_visited(small_too, monkeypatch, alpha, rate, which):
    monkeypatch.setattr(tokens, "WORK_PER_ROW", 0)
    rng, shape = np.random.default_rng(5), (400, 1000)
    counts = rng.random(shape) < rate  # of zeros and ones the estimate is unbiased
    noise = rng.geometric(1 - alpha, shape) - rng.geometric(1 - alpha, shape)
    observations = PrivatizedCounts(counts + noise, alpha)
    entries = observations.reports.size / 400
    work = {
        "proposed": 1000 * rate / alpha + entries / tokens.ENTRIES_PER_TOKEN,
        "visited": entries + 1000 * alpha * rate,
    }
    assert min(work, key=work.get) == which
    assert tokens.work_of_rows(observations).mean() == pytest.approx(work[which], rel=0.02)


def test_sweeps_go_by_blocks_of_equal_work(small_too, monkeypatch):
    monkeypatch.setattr(tokens, "WORK_PER_ROW", 1)
    monkeypatch.setattr(tokens, "pays", lambda *_: True)
    rng, rate = np.random.default_rng(4), np.full((300, 40), 0.02)
    rate[200:220] = 8.0
    noise = rng.geometric(0.4, rate.shape) - rng.geometric(0.4, rate.shape)
    observations = PrivatizedCounts(rng.poisson(rate) + noise, 0.6)
    seen, sweep_block = [], tokens.sweep_block

    def watched(block, *given):
        seen.append(block.n_rows)
        return sweep_block(block, *given)

    monkeypatch.setattr(tokens, "sweep_block", watched)
    model, streams = small_model(rate.shape, 3), Streams.of_chain(7, 0)
    plan = Plan(observations, model)
    gibbs.step(
        gibbs.init(plan, model, streams, ThreadEngine(1)),
        plan,
        model,
        streams,
        ThreadEngine(1),
    )
    assert seen == [block.stop - block.start for block in tokens.blocks_of(observations)]
    assert len(seen) > 1
    assert max(seen) > 2 * min(seen)


@pytest.mark.parametrize(
    ("work", "n", "ends"),
    [
        ([1, 1, 1, 1], 2, [2, 4]),
        ([1, 1, 1, 9], 4, [3, 4]),
        ([9, 1, 1, 1], 4, [1, 4]),
        ([5], 3, [1]),
        ([1, 1, 1], 8, [1, 2, 3]),
    ],
)
def test_no_run_of_rows_is_empty(work, n, ends):
    found = tokens.cut(np.array(work, dtype=float), n)
    assert [block.stop for block in found] == ends
    assert [block.start for block in found] == [0, *ends[:-1]]


@pytest.mark.parametrize("rows", [300, 8 * tokens.ROWS_PER_BLOCK])
def test_threads_change_nothing(small_too, rows):
    _, _, observations, _ = planted(rows, 30, 3, 0.6, seed=6, tokens=1.0)
    assert pays(observations)
    model, found = small_model(observations.shape, 3), []
    plan = Plan(observations, model)
    for threads in (1, 3):
        streams = Streams.of_chain(7, 0)
        state = gibbs.init(plan, model, streams, ThreadEngine(1))
        with ThreadEngine(threads) as engine:
            for _ in range(2):
                state, _ = gibbs.step(state, plan, model, streams, engine)
        found.append(state)
    assert_same_bits(*found)


@pytest.mark.parametrize(("rows", "blocks"), [(300, 2), (8 * tokens.ROWS_PER_BLOCK, 8)])
def test_every_sweep_and_block_has_a_stream_of_its_own(small_too, rows, blocks):
    _, _, observations, _ = planted(rows, 30, 3, 0.6, seed=6, tokens=1.0)
    assert pays(observations)
    streams, model = joint.RecordedStreams(), small_model(observations.shape, 3)
    plan = Plan(observations, model)
    state = gibbs.init(plan, model, streams, ThreadEngine(1))
    for _ in range(2):
        state, _ = gibbs.step(state, plan, model, streams, ThreadEngine(1))
    asked = [each for each in streams.asked if each[1] == ROWS]
    assert asked == [(sweep, ROWS, block) for sweep in (1, 2) for block in range(blocks)]


def test_both_ways_have_room_whatever_the_rates(small_too, monkeypatch):
    observations: Observations = sparse(0.6)
    monkeypatch.setattr(proposals, "propose_rows", None)
    model, streams = small_model(observations.shape), Streams.of_chain(8, 0)
    state = gibbs.init(Plan(observations, model), model, streams, ThreadEngine(1))
    far = state._replace(factors=tuple(100.0 * x for x in state.factors))
    with ThreadEngine(1) as engine:
        new, _ = gibbs.step(far, Plan(observations, model), model, streams, engine)
    assert all(np.isfinite(x).all() for x in new.factors)
