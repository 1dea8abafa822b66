"""Sweeps by tokens of reports of any mechanism leave the joint law as it is; the data alone decide about them."""

import numpy as np
import pytest

import countveil as cv
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs, report_tokens, scoring
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.kernels.entries import MASKED
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.laws import law_of
from countveil.laws.noise import report_tokens as kernels
from tests.inference.test_any_mechanism import ROWS, by_row, reported
from tests.joint import SERIAL, assert_same_bits, bound, small_model
from tests.laws.counts.test_negative_binomial import joint_scores

pytestmark = pytest.mark.long

m = cv.mechanisms
SWEEPS = 500
CUT = m.Thresholded(m.Gaussian("0.1"), 3)
EACH = m.RandomRounding(3), m.DiscreteGaussian(1), m.Suppression(4, False)
ABSENT = m.Thresholded(m.TwoSidedGeometric(0.5), 1)
ABSENT_LATER = m.Thresholded(m.Gaussian(1), 3)


def by_column(counts, mask, rng):
    """Two backgrounds, by column."""
    n = counts.shape[1]
    mechanisms = [ABSENT if v < n // 2 else ABSENT_LATER for v in range(n)]
    values = reported(counts.T, mechanisms, rng).T
    return cv.Reports(values, np.array(mechanisms, dtype=object)[None, :], mask)


@pytest.fixture
def always(monkeypatch):
    """Tokens are proposed wherever they can be."""
    monkeypatch.setattr(report_tokens, "MIN_CELLS", 1)
    monkeypatch.setattr(report_tokens, "MIN_SHARE", 0.0)
    monkeypatch.setattr(report_tokens, "FEW_TOKENS", np.inf)


CASES = [
    ("topics", POISSON, by_row(ROWS["noise"])),
    ("topics", POISSON, by_row([CUT] * 4)),
    ("topics", NegativeBinomial("row"), by_row(ROWS["coarse"])),
    ("topics", NegativeBinomial("column"), by_column),
    ("blocks", POISSON, by_row(ROWS["cut"])),
]


def sweeps_of(likelihood):
    """Twice as many where dispersions, which change slowly, are drawn too."""
    return SWEEPS if likelihood is POISSON else 2 * SWEEPS


@pytest.mark.parametrize(("kind", "likelihood", "read"), CASES)
def test_sweeps_leave_the_joint_law_as_it_is(kind, likelihood, read, always):
    z = joint_scores(likelihood, kind, read, sweeps=sweeps_of(likelihood))
    assert z.max() < bound(len(z))


@pytest.mark.parametrize("likelihood", [POISSON, NegativeBinomial("row")])
def test_rows_of_many_tokens_may_be_visited(likelihood, always, monkeypatch):
    monkeypatch.setattr(report_tokens, "FEW_TOKENS", 0.5)
    monkeypatch.setattr(report_tokens, "MANY_TOKENS", 2.0)
    z = joint_scores(likelihood, "topics", by_row([CUT] * 4), sweeps=sweeps_of(likelihood))
    assert z.max() < bound(len(z))


@pytest.mark.parametrize(("fault", "sweeps"), [("always kept", SWEEPS), ("masked cells count", 2000)])
def test_the_joint_law_shows_a_planted_fault(fault, sweeps, always, monkeypatch):
    right = kernels.fill_keeping

    def keep_all(noise, code, ratio, keep):
        right(noise, code, ratio, keep)
        keep[:] = 1.0

    if fault == "always kept":
        monkeypatch.setattr(kernels, "fill_keeping", keep_all)
    else:
        monkeypatch.setattr(kernels, "subtract_masked", lambda *_: None)
    z = joint_scores(POISSON, "topics", by_row([CUT] * 4), sweeps=sweeps)
    assert z.max() > bound(len(z))


def sparse(mechanism=EACH[0], size=(60, 50), rate=0.1, mask=None, **options):
    rng = np.random.default_rng(4)
    counts = rng.poisson(rate * rng.gamma(0.5, 2.0, size))
    return cv.Reports(cv.simulate_reports(counts, mechanism, rng), mechanism, mask, **options)


def law_at(data, likelihood=POISSON):
    return law_of(data.noise, likelihood, likelihood.start(data.shape))


def cells_of(parted, shape):
    """The code that each cell has by a split."""
    visited, codes = parted.visited, parted.codes
    place = codes.place_v[None, :] if codes.place_v.size else parted.unstored_d[:, None]
    cells = np.append(codes.code_c, 0)[np.broadcast_to(place, shape)].copy()
    stored = visited.reports.copy()
    looked_up = stored <= kernels.LOOKED_UP
    stored[looked_up] = codes.code_c[kernels.LOOKED_UP - stored[looked_up]]
    cells[visited.row_numbers, visited.columns] = stored
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
    parted = report_tokens.split(data, law_at(data, likelihood))
    codes = np.zeros(data.shape, dtype=np.int64)
    codes[data.row_numbers, data.columns] = data.reports
    np.testing.assert_array_equal(cells_of(parted, data.shape), codes)
    assert (parted.visited.reports == MASKED).sum() == 5
    assert np.isin(parted.codes.code_c, codes).all()
    if likelihood is not POISSON:
        assert (parted.codes.ratio_c <= 1.0).all()


def test_the_data_decide(monkeypatch):
    few = sparse()
    assert report_tokens.split(few, law_at(few)) is None  # too few cells
    monkeypatch.setattr(report_tokens, "MIN_CELLS", 1000)
    few = sparse()
    assert report_tokens.split(few, law_at(few)) is not None
    for other in (sparse(m.Suppression(10)), sparse(m.Gaussian(2)), sparse(m.Rounding(3), rate=40.0)):
        assert report_tokens.split(other, law_at(other)) is None  # most are zero, or differ, or are large
    plain = cv.PrivatizedCounts(np.zeros((60, 50), dtype=int), 0.5)
    assert report_tokens.split(plain, law_of(plain.noise, POISSON)) is None


def test_large_ratios_are_visited_where_tokens_are_many(always):
    """Reports of 1 with a noise of 1 have c = e^0.5: worth it where counts are few."""
    few, many = (sparse(m.DiscreteGaussian(1), rate=rate) for rate in (0.1, 30.0))
    few, many = (report_tokens.split(data, law_at(data)).codes.ratio_c.max() for data in (few, many))
    assert few > 1.0
    assert many < 1.0


@pytest.mark.parametrize("likelihood", [POISSON, NegativeBinomial("column")])
def test_threads_change_nothing(likelihood, always):
    mask = np.zeros((300, 50), dtype=bool)
    mask[::7, 3] = True
    data = sparse(size=(300, 50), mask=mask)
    model = small_model(data.shape, 3)._replace(likelihood=likelihood)
    assert report_tokens.split(data, law_at(data, likelihood)) is not None
    found = []
    plan = Plan(data, model)
    for threads in (1, 3):
        streams = Streams.of_chain(7, 0)
        state = gibbs.init(plan, model, streams, SERIAL)
        with ThreadEngine(threads) as engine:
            for _ in range(2):
                state, _ = gibbs.step(state, plan, model, streams, engine)
        found.append((*state.factors, *state.parameters))
    assert_same_bits(*found)


@pytest.mark.parametrize("likelihood", [POISSON, NegativeBinomial("row")])
def test_the_log_likelihood_is_that_of_visits(likelihood, always):
    rng, mask = np.random.default_rng(1), np.zeros((40, 30), dtype=bool)
    mask[3, 4:9] = True
    data = by_column(rng.poisson(0.3, (40, 30)), mask, rng)
    theta, phi = np.exp(rng.uniform(-20, 6, (40, 1))), rng.gamma(1.0, 1.0, (30, 1))
    parameters, model = (
        likelihood.start(data.shape),
        small_model(data.shape, 1)._replace(likelihood=likelihood),
    )
    split = Plan(data, model).split
    found = scoring.log_likelihood((theta, phi), data, model, SERIAL, parameters, split)
    with ThreadEngine(3) as engine:
        assert scoring.log_likelihood((theta, phi), data, model, engine, parameters, split) == found
    assert found == pytest.approx(
        scoring.log_likelihood((theta, phi), data, model, SERIAL, parameters), rel=1e-9
    )


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
    assert report_tokens.split(data, law) is not None
    found, plan = [], Plan(data, model)
    for seed in (1, 2):
        drawn = []
        for i in range(n):
            sums = gibbs.allocate(plan, model, law, theta, phi, Streams.of_chain(seed, 0), i, SERIAL)
            drawn.append(np.concatenate([sums.row_counts.ravel(), sums.counts.ravel(), sums.tally]))
        found.append(np.array(drawn))
        plan.split = None  # the second time
    errors = np.sqrt(sum(each.var(axis=0) for each in found) / n)
    gaps = np.abs(found[0].mean(axis=0) - found[1].mean(axis=0))[errors > 0]
    assert (gaps < bound(gaps.size) * errors[errors > 0]).all()
