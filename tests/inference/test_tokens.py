"""Sweeps by tokens leave the joint law as it is, are calibrated, and are chosen by the data alone."""

import numpy as np
import pytest

import countveil as cv
from countveil.data.observations import ExactCounts, NaiveCounts, Observations, PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs, scoring, tokens
from countveil.inference.plan import Plan
from countveil.inference.streams import ROWS, Streams
from countveil.kernels import tokens as kernels
from countveil.kernels.entries import MASKED
from countveil.laws.counts import POISSON, NegativeBinomial, Unseen
from countveil.laws.counts.laws import general_law, law_of
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.laws.noise.two_sided_geometric.tokens import fill_masses
from tests.inference import test_calibration as calibration
from tests.inference import test_gibbs as joint
from tests.inference.test_any_mechanism import ROWS as MECHANISMS
from tests.inference.test_any_mechanism import by_row, reported
from tests.joint import (
    FALSE_ALARM,
    GENERAL_LAW,
    LAW,
    SERIAL,
    assert_same_bits,
    bound,
    draw_reports,
    moderate_shapes,
    planted,
    rank_p_values,
    shaped_model,
    small_model,
)
from tests.laws.counts.test_negative_binomial import joint_scores, private

pytestmark = pytest.mark.long

m = cv.mechanisms
ALPHA = np.array([0.1, 0.2, 0.5, 0.5, 0.7, 0.9])
LEVEL = np.array([0.3, 0.3, 0.5, 0.7])[:, None]
NOTHING = np.zeros(joint.SIZE, dtype=bool)
SWEEPS, BATCHES = 250, 20
MORE_SWEEPS, MORE_BATCHES = 750, 30  # dispersions change slowly
CUT = m.Thresholded(m.Gaussian("0.1"), 3)
EACH = m.RandomRounding(3), m.DiscreteGaussian(1), m.Suppression(4, False)
NOISE_AND_COARSE = MECHANISMS["noise"][:2] + MECHANISMS["coarse"][::2]
ABSENT = m.Thresholded(m.TwoSidedGeometric(0.5), 1)
ABSENT_LATER = m.Thresholded(m.Gaussian(1), 3)


@pytest.fixture
def always(monkeypatch):
    """Tokens are proposed wherever they can be."""
    monkeypatch.setattr(tokens, "pays", lambda *_: True)
    monkeypatch.setattr(tokens, "MIN_CELLS", 1)
    monkeypatch.setattr(tokens, "MIN_SHARE", 0.0)
    monkeypatch.setattr(tokens, "FEW_TOKENS", np.inf)


@pytest.fixture(params=[True, False], ids=["proposed", "one by one"])
def beside(request, always, monkeypatch):
    """Cells with positive reports are proposed, or visited."""
    monkeypatch.setattr(tokens, "proposes_beside_reports", lambda *_: request.param)
    monkeypatch.setattr(joint, "ALPHA", ALPHA)


@pytest.mark.parametrize("learned", [False, True])
def test_a_step_leaves_the_joint_law_as_it_is(beside, learned, monkeypatch):
    moderate_shapes(monkeypatch)
    model = shaped_model(joint.SIZE) if learned else small_model(joint.SIZE)
    z, most = joint.joint_z(model, NOTHING, restarts=20)
    assert np.abs(z).max() < most


def test_the_joint_law_shows_cells_that_always_keep_their_tokens_or_never_have_any(beside, monkeypatch):
    units, others = tokens.beside_reports, tokens.beside_others
    monkeypatch.setattr(tokens, "FEW_TOKENS", 4.0)  # or their numbers grow without end
    monkeypatch.setattr(tokens, "beside_reports", lambda levels: (*units(levels)[:-1], 0.0 * levels))
    monkeypatch.setattr(tokens, "beside_others", lambda given: others(given)._replace(scale_g=0.0 * given.scale_g))
    z, most = joint.joint_z(small_model(joint.SIZE), NOTHING, restarts=20)
    assert np.abs(z).max() > most


@pytest.mark.parametrize("beside", [True], indirect=True)
def test_true_values_rank_uniformly_among_posterior_draws(beside, monkeypatch):
    monkeypatch.setattr(calibration, "ALPHA", np.array([0.1, 0.3, 0.3, 0.6, 0.6, 0.8, 0.8]))
    monkeypatch.setattr(calibration, "MASK", np.zeros(calibration.SIZE, dtype=bool))
    model = small_model(calibration.SIZE, shape=1.0, rate=0.6)
    p = rank_p_values(calibration.ranks("private", model, 40, seed=300), calibration.DRAWS)
    assert p.min() > FALSE_ALARM / p.size


def by_column(counts, mask, rng):
    """Two backgrounds, by column."""
    n = counts.shape[1]
    mechanisms = [ABSENT if v < n // 2 else ABSENT_LATER for v in range(n)]
    values = reported(counts.T, mechanisms, rng).T
    return cv.Reports(values, np.array(mechanisms, dtype=object)[None, :], mask)


CASES = [
    (NegativeBinomial("global"), "topics", private(LEVEL), True),
    (NegativeBinomial("column"), "topics", private(LEVEL), True),
    (NegativeBinomial("column"), "topics", private(LEVEL), False),
    (POISSON, "topics", by_row([CUT] * 4), True),
    (NegativeBinomial("row"), "topics", by_row(NOISE_AND_COARSE), True),
    (NegativeBinomial("column"), "topics", by_column, True),
    (POISSON, "blocks", by_row(MECHANISMS["cut"]), True),
]


def scores(likelihood, kind, read, more=False, **options):
    """(largest z of the joint law, its bound)."""
    sweeps, batches = (MORE_SWEEPS, MORE_BATCHES) if likelihood is not POISSON or more else (SWEEPS, BATCHES)
    z = joint_scores(likelihood, kind, read, sweeps, batches=batches, **options)
    return z.max(), bound(len(z), batches)


@pytest.mark.parametrize(("likelihood", "kind", "read", "proposed"), CASES)
def test_sweeps_leave_the_joint_law_as_it_is(likelihood, kind, read, proposed, always, monkeypatch):
    monkeypatch.setattr(tokens, "proposes_beside_reports", lambda *_: proposed)
    monkeypatch.setattr(tokens, "MOST_REPORT", 2)
    if isinstance(likelihood, NegativeBinomial) and read.__name__ == private(LEVEL).__name__:
        monkeypatch.setattr(tokens, "most_proposed", lambda *_: 2)
    z, most = scores(likelihood, kind, read, masked=read.__name__ != private(LEVEL).__name__)
    assert z < most


@pytest.mark.parametrize("likelihood", [POISSON, NegativeBinomial("column")])
def test_rows_of_many_tokens_may_be_visited(likelihood, always, monkeypatch):
    monkeypatch.setattr(tokens, "FEW_TOKENS", 0.5)
    monkeypatch.setattr(tokens, "MANY_TOKENS", 2.0)
    z, most = scores(likelihood, "topics", by_row([CUT] * 4))
    assert z < most


@pytest.mark.parametrize(
    ("fault", "read"),
    [
        ("no gain", private(LEVEL)),
        ("unseen cells count twice", private(LEVEL)),
        ("always kept", by_row([CUT] * 4)),
        ("masked cells count", by_row([CUT] * 4)),
    ],
)
def test_the_joint_law_shows_a_planted_fault(fault, read, always, monkeypatch):
    propose, fill = kernels.propose_rows, tokens.fill_gains
    of_bursts = fault in ("no gain", "unseen cells count twice")

    def no_report(law, pair, entries, *rest):
        propose(law, pair, entries._replace(reports=np.ones_like(entries.reports)), *rest)

    def keep_all(noise, code_c, gain_cy):
        fill(noise, code_c, gain_cy)
        gain_cy[:] = gain_cy[:, 1:2] * np.arange(gain_cy.shape[1])

    if of_bursts:
        monkeypatch.setattr(tokens, "most_proposed", lambda *_: 2)
    if fault == "no gain":
        monkeypatch.setattr(kernels, "propose_rows", no_report)
    elif fault == "unseen cells count twice":
        monkeypatch.setattr(tokens, "NONE_UNSEEN", Unseen(np.array([0.3]), np.array([[10.0]])))
    elif fault == "always kept":
        monkeypatch.setattr(tokens, "fill_gains", keep_all)
    else:
        monkeypatch.setattr(kernels, "subtract_masked", lambda *_: None)
    likelihood = NegativeBinomial("global") if of_bursts else POISSON
    z, most = scores(likelihood, "topics", read, fault == "masked cells count", masked=not of_bursts)
    assert z > most


@pytest.mark.parametrize("n_topics", [1, 5, 13])
def test_every_topic_has_its_own_table(n_topics):
    phi = np.random.default_rng(2).gamma(0.5, 1.0, (40, n_topics))
    whole = np.zeros((n_topics, 40), dtype=np.uint64)
    kernels.fill_aliases(np.ascontiguousarray(phi.T), whole)
    with ThreadEngine(2) as engine:
        for many in (map, engine.map):
            np.testing.assert_array_equal(tokens.aliases_of(many, np.ascontiguousarray(phi.T)), whole)


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


def law_at(dispersion, n=0):
    """The law of reports with p = 1/2."""
    likelihood = NegativeBinomial(dispersion)
    return law_of(TWO_SIDED_GEOMETRIC, likelihood, likelihood.start((n, n)))


def test_which_laws_are_swept_by_tokens(small_too):
    assert tokens.pays(sparse(0.6), law_at("global"))
    assert tokens.pays(sparse(0.6), law_at("column", 60))
    assert tokens.pays(sparse(0.6), law_at(0.3))
    assert not tokens.pays(sparse(0.6), law_at("row", 40))
    levels = np.linspace(0.5, 0.6, tokens.MAX_LEVELS)
    for many, pays in ((levels, True), (np.append(levels, 0.61), False)):
        assert tokens.pays(sparse(np.resize(many, 40)[:, None]), law_at("global")) == pays


def test_the_choice_is_made_once_for_a_plan(small_too, monkeypatch):
    observations = sparse(0.6)
    model = small_model(observations.shape)
    plan = Plan(observations, model)
    assert plan.by_tokens
    monkeypatch.setattr(tokens, "pays", lambda *_: False)
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
    gibbs.step(gibbs.init(plan, model, streams, ThreadEngine(1)), plan, model, streams, ThreadEngine(1))
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


@pytest.mark.parametrize(
    "likelihood", [POISSON, NegativeBinomial(0.6), NegativeBinomial("global"), NegativeBinomial("column")]
)
@pytest.mark.parametrize("rows", [300, 8 * tokens.ROWS_PER_BLOCK, "rounded"])
def test_threads_change_nothing(always, likelihood, rows):
    if rows == "rounded":
        mask = np.zeros((300, 50), dtype=bool)
        mask[::7, 3] = True
        data = rounded(size=(300, 50), mask=mask)
    else:
        data = planted(rows, 30, 3, 0.6, seed=6, tokens=1.0)[2]
    model, found = small_model(data.shape, 3)._replace(likelihood=likelihood), []
    plan = Plan(data, model)
    assert plan.tokens is not None
    for threads in (1, 3):
        streams = Streams.of_chain(7, 0)
        state = gibbs.init(plan, model, streams, SERIAL)
        with ThreadEngine(threads) as engine:
            for _ in range(2):
                state, _ = gibbs.step(state, plan, model, streams, engine)
        found.append((*state.factors, *state.parameters))
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


def test_there_is_room_whatever_the_rates(small_too, monkeypatch):
    observations: Observations = sparse(0.6)
    asked, right = [], tokens.beside_others
    monkeypatch.setattr(tokens, "beside_others", lambda given: asked.append(given) or right(given))
    model, streams = small_model(observations.shape), Streams.of_chain(8, 0)
    state = gibbs.init(Plan(observations, model), model, streams, ThreadEngine(1))
    for factor in (100.0, 1e5):
        far = state._replace(factors=tuple(factor * x for x in state.factors))
        with ThreadEngine(1) as engine:
            new, _ = gibbs.step(far, Plan(observations, model), model, streams, engine)
        assert all(np.isfinite(x).all() for x in new.factors)
    assert asked


def planned(data, likelihood=POISSON):
    """How sweeps of data go, with the noise and the likelihood."""
    law = law_of(data.noise, likelihood, likelihood.start(data.shape))
    return tokens.planned(data, law, True), general_law(data.noise, likelihood, likelihood.start(data.shape))


def test_bursts_are_proposed_where_that_is_cheapest(small_too):
    """One by one where counts are large, and tokens beside reports as large as noise makes them where they are few."""
    data, theta, phi = sparse(0.3), np.ones((40, 1)), np.ones((60, 1))
    given = planned(data, NegativeBinomial("global"))
    large, few = (tokens.most_proposed(*given, scale * theta, phi) for scale in (1e3, 1e-6))
    assert (large, few) == (0, data.reports.max())
    between = [tokens.most_proposed(*given, s * theta, phi) for s in np.geomspace(1e-2, 1e2, 80)]
    assert between == sorted(between, reverse=True)
    assert len(set(between)) > 3


def test_reports_above_each_bound():
    reports = np.array([[0, 1, 2, 2, 8, 9, 300, 70_000, -4]])
    above = tokens.reports_above(PrivatizedCounts(reports, 0.5))
    assert above.tolist() == [(reports > most).sum() for most in range(tokens.MOST_REPORT + 1)]


@pytest.mark.parametrize("dispersion", ["global", "column"])
def test_how_bursts_are_proposed(dispersion):
    """The rate of what is kept beside a report is that of its mass, at every level and in every column."""
    rng, levels, most = np.random.default_rng(3), np.array([0.2, 0.5, 0.9]), 4
    likelihood = NegativeBinomial(dispersion)
    first, *rest = likelihood.start((7, 7))
    parameters = (rng.uniform(0.1, 0.9, first.shape), *rest)
    pair = general_law(TWO_SIDED_GEOMETRIC, likelihood, parameters)
    weight, limit, scale, chance, unit = tokens.burst_rates(pair, levels, most)
    assert chance.max() <= 1.0 + 1e-15
    assert not chance[:, 0].any()
    mass = np.empty((3, most + 1, first.size))
    fill_masses(levels, parameters[0], mass)
    np.testing.assert_allclose(scale[:, None, None] * limit * chance[:, 1:], mass, rtol=1e-12)
    np.testing.assert_allclose(weight, limit / -np.log1p(-parameters[0]))
    np.testing.assert_allclose(np.exp(-unit), levels)


def test_only_cells_without_a_positive_report_are_proposed_if_there_are_too_many():
    levels = np.array([0.2, 0.5])
    _, limit, scale, chance, unit = tokens.beside_reports(levels)
    every = kernels.Proposals(None, None, limit, scale, chance, unit, tokens.NO_CODES, 4.0, 1000.0)
    found = tokens.beside_others(every)
    np.testing.assert_allclose(found.scale_g, levels)
    np.testing.assert_allclose(found.chance_gcn[:, :, 0], [[0.0, 1.0]] * 2)


def test_weak_noise_leaves_masses_numbers(small_too, monkeypatch):
    """A column without rate may not hide how dear the others are."""
    monkeypatch.setattr(tokens, "pays", lambda *_: True)
    phi = np.ones((60, 1))
    phi[3] = 0.0
    found, pair = planned(PrivatizedCounts(np.full((1, 60), 20), 1e-60), NegativeBinomial("global"))
    masses = tokens.masses(pair, found.levels, tokens.MOST_REPORT)
    assert masses.max() == tokens.LARGEST_MASS
    assert masses[0, 0, 0] == pytest.approx(0.5e-60)
    assert tokens.most_proposed(found, pair, np.ones((1, 1)), phi) == 0


def rounded(mechanism=EACH[0], size=(60, 50), rate=0.1, mask=None, **options):
    """Few counts under another mechanism."""
    rng = np.random.default_rng(4)
    counts = rng.poisson(rate * rng.gamma(0.5, 2.0, size))
    return cv.Reports(cv.simulate_reports(counts, mechanism, rng), mechanism, mask, **options)


def cells_of(found, shape):
    """The code that each cell has."""
    entries, codes = found.entries, found.codes
    code_c = np.append(0, codes.code_c)
    place = codes.place_v[None, :] if codes.place_v.size else found.unstored_d[:, None]
    cells, stored = code_c[np.broadcast_to(place, shape)].copy(), entries.reports.copy()
    looked_up = stored < MASKED
    stored[looked_up] = code_c[-1 - stored[looked_up]]
    cells[entries.row_numbers, entries.columns] = stored
    return cells


@pytest.mark.parametrize("likelihood", [POISSON, NegativeBinomial()])
@pytest.mark.parametrize("mechanism", [*EACH, "by column", "by row"])
def test_every_cell_keeps_its_code(mechanism, likelihood, always):
    rng, mask = np.random.default_rng(1), np.zeros((40, 30), dtype=bool)
    mask[3, 4:9] = True
    counts = rng.poisson(0.3, (40, 30))
    if mechanism == "by column":
        data = by_column(counts, mask, rng)
    elif mechanism == "by row":
        data = by_row([ABSENT, ABSENT_LATER] * 20)(counts, mask, rng)
    else:
        data = cv.Reports(cv.simulate_reports(counts, mechanism, rng), mechanism, mask)
    found = planned(data, likelihood)[0]
    codes = np.zeros(data.shape, dtype=np.int64)
    codes[data.row_numbers, data.columns] = data.reports
    np.testing.assert_array_equal(cells_of(found, data.shape), codes)
    assert (found.entries.reports == MASKED).sum() == 5
    assert np.isin(found.codes.code_c, codes).all()
    if likelihood is not POISSON:
        assert (found.codes.ratio_c <= 1.0).all()


def test_the_data_decide(monkeypatch):
    few = rounded()
    assert planned(few)[0] is None  # too few cells
    monkeypatch.setattr(tokens, "MIN_CELLS", 1000)
    few = rounded()
    assert planned(few)[0] is not None
    for other in (rounded(m.Suppression(10)), rounded(m.Gaussian(2)), rounded(m.Rounding(3), rate=40.0)):
        assert planned(other)[0] is None  # most are zero, or differ, or are large


def test_large_ratios_are_visited_where_tokens_are_many(always):
    """Reports of 1 with a noise of 1 have c = e^0.5: worth it where counts are few."""
    few, many = (rounded(m.DiscreteGaussian(1), rate=rate) for rate in (0.1, 30.0))
    few, many = (planned(data)[0].codes.ratio_c.max() for data in (few, many))
    assert few > 1.0
    assert many < 1.0


@pytest.mark.parametrize("likelihood", [POISSON, NegativeBinomial("row")])
def test_the_log_likelihood_is_that_of_visits(likelihood, always):
    rng, mask = np.random.default_rng(1), np.zeros((40, 30), dtype=bool)
    mask[3, 4:9] = True
    data = by_column(rng.poisson(0.3, (40, 30)), mask, rng)
    theta, phi = np.exp(rng.uniform(-20, 6, (40, 1))), rng.gamma(1.0, 1.0, (30, 1))
    parameters, model = (likelihood.start(data.shape), small_model(data.shape, 1)._replace(likelihood=likelihood))
    by_tables = Plan(data, model).tokens
    found = scoring.log_likelihood((theta, phi), data, model, SERIAL, parameters, by_tables)
    with ThreadEngine(3) as engine:
        assert scoring.log_likelihood((theta, phi), data, model, engine, parameters, by_tables) == found
    assert found == pytest.approx(scoring.log_likelihood((theta, phi), data, model, SERIAL, parameters), rel=1e-9)


def test_counts_have_the_law_of_visits(always):
    """Means of all sums, given factors and parameters: sharper than the joint law, where p moves slowly."""
    likelihood, n = NegativeBinomial("column"), 2500
    rng, mask = np.random.default_rng(2), np.zeros((4, 5), dtype=bool)
    mask[0, 1] = True
    theta, phi = rng.gamma(1.5, 1 / 1.5, (4, 2)), rng.gamma(1.5, 1 / 1.5, (5, 2))
    parameters = tuple(rng.beta(2.0, 1.0, each.shape) for each in likelihood.start((4, 5)))
    data = by_column(rng.poisson(3.0 * theta @ phi.T), mask, rng)
    model = small_model((4, 5), 2)._replace(likelihood=likelihood)
    law = law_of(data.noise, likelihood, parameters)
    found, plan = [], Plan(data, model)
    assert plan.tokens is not None
    for seed in (1, 2):
        drawn = []
        for i in range(n):
            sums = gibbs.sweep_rows(plan, model, law, theta, phi, None, Streams.of_chain(seed, 0), i, SERIAL)
            drawn.append(np.concatenate([sums.row_counts.ravel(), sums.counts.ravel(), sums.tally]))
        found.append(np.array(drawn))
        plan.tokens = None  # the second time
    errors = np.sqrt(sum(each.var(axis=0) for each in found) / n)
    gaps = np.abs(found[0].mean(axis=0) - found[1].mean(axis=0))[errors > 0]
    assert (gaps < bound(gaps.size) * errors[errors > 0]).all()
