"""Negative binomial counts: their law, how p is drawn, and the joint law that sweeps leave as it is."""

import json

import numpy as np
import pytest
from numba import njit
from scipy import stats
from scipy.special import betaln, digamma, expit, logit, logsumexp

import countveil as cv
from countveil.inference import dispersion as moves
from countveil.inference import gibbs, totals
from countveil.inference.factors import column_exposures, make_links, row_exposures
from countveil.inference.plan import Plan
from countveil.inference.scoring import log_likelihood, report_scores
from countveil.inference.streams import Streams
from countveil.kernels.general import likelihood_at
from countveil.kernels.shared import update_actors
from countveil.laws.counts import LIKELIHOODS, NegativeBinomial, Unseen, likelihood_called
from countveil.laws.counts import negative_binomial as module
from countveil.laws.counts.laws import law_of
from countveil.laws.counts.protocol import in_counts, parameters_of_rows
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior
from tests.joint import FALSE_ALARM, SERIAL, batch_error, bound, two_sided_geometric

DISPERSIONS = ["global", "column", "row", 0.7]
SIZE = (4, 5)
ROWS = np.array([0.8, 0.7, 0.8, 0.9])
LEVELS = {"by row": ROWS[:, None], "by cell": np.linspace(0.1, 0.8, 20).reshape(SIZE), "none": np.zeros((4, 1))}


@njit
def p_and_q(likelihood, row, column):
    cell = likelihood_at(likelihood, row, column)
    return cell.p, cell.q


def parameters(dispersion, rng=None):
    """Parameters for data of SIZE, each p another one."""
    likelihood = NegativeBinomial(dispersion)
    start, rng = likelihood.start(SIZE), rng or np.random.default_rng(1)
    return (rng.uniform(0.2, 0.9, start[0].shape), *start[1:]) if start else ()


def p_of_cells(dispersion, own):
    """(D, V) p of every cell."""
    if not own:
        return np.full(SIZE, dispersion)
    return np.broadcast_to(own[0][:, None] if dispersion == "row" else own[0], SIZE)


def mass(rate, p, most=3000):
    """P(count | rate) of many counts, by SciPy."""
    return stats.nbinom.pmf(np.arange(most), rate / -np.log1p(-p), 1.0 - p)


def score(report, rate, alpha, p):
    """log P(max(report, 0) | rate) by adding up."""
    counts = np.arange(3000)
    if alpha == 0.0:
        kernel = (counts == report).astype(float)
    elif report > 0:
        kernel = (1.0 - alpha) / (1.0 + alpha) * alpha ** np.abs(report - counts)
    else:
        kernel = alpha**counts / (1.0 + alpha)
    return np.log(mass(rate, p) @ kernel)


def small_data(levels, seed=3):
    """(observations with two masked cells, mask, max(report, 0), level of each cell, rng)."""
    rng, mask = np.random.default_rng(seed), np.zeros(SIZE, dtype=bool)
    mask[1, 2] = mask[3, 3] = True
    level = np.broadcast_to(LEVELS[levels], SIZE)
    counts = rng.negative_binomial(0.7, 0.3, SIZE)
    noise = two_sided_geometric(level, rng) if levels != "none" else 0
    given = level if levels == "by cell" else level[:, 0]
    return cv.PrivatizedCounts(counts + noise, given, mask), mask, np.maximum(counts + noise, 0), level, rng


SPECS = {
    "topics": (parse_spec("dk,vk->dv", names=("theta", "phi")), {"k": 2}, SIZE),
    "blocks": (
        parse_spec("ic,jd,cd->ij", names=("theta", "again", "pi"), shared={"again": "theta"}),
        {"c": 2, "d": 2},
        (4, 4),
    ),
}


def small_model(kind, likelihood):
    spec, ranks, size = SPECS[kind]
    priors = dict.fromkeys(spec.names, GammaPrior(1.5, 1.5, False))
    return factorization(spec, axis_sizes(spec, size, ranks), priors, likelihood=likelihood)


@pytest.mark.parametrize("p", [1e-6, 0.05, 0.5, 0.9, 0.999])
def test_the_law_of_counts(p):
    likelihood, counts = NegativeBinomial(p), np.arange(400)
    for s in (1e-12, 0.01, 1.0, 50.0, 1e5):
        rate = s * -np.log1p(-p)
        expected = stats.nbinom.logpmf(counts, s, 1.0 - p)
        np.testing.assert_allclose(likelihood.log_mass(counts, rate), expected, rtol=1e-9, atol=1e-9)
        assert likelihood.mean(rate) == pytest.approx(s * p / (1.0 - p))
        for ratio in (0.0, 0.3, 0.95, 1.0):
            exact = stats.nbinom.pmf(np.arange(40_000), s, 1.0 - p) @ ratio ** np.arange(40_000.0)
            if s * p / (1.0 - p) < 500.0:
                assert np.exp(-likelihood.exposure(ratio) * rate) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("dispersion", DISPERSIONS)
def test_compiled_loops_get_the_p_and_q_of_each_cell(dispersion):
    likelihood, own = NegativeBinomial(dispersion), parameters(dispersion)
    law, p = law_of(TWO_SIDED_GEOMETRIC, likelihood, own), p_of_cells(dispersion, own)
    for d, v in np.ndindex(SIZE):
        assert p_and_q(law.likelihood, d, v) == (p[d, v], -np.log1p(-p[d, v]))


def test_counts_are_drawn_from_their_law():
    for dispersion in DISPERSIONS:
        likelihood, own = NegativeBinomial(dispersion), parameters(dispersion)
        cells = parameters_of_rows(likelihood, own, np.arange(4))
        rates = np.random.default_rng(2).gamma(1.0, 2.0, SIZE)
        found = np.stack([likelihood.sample(rates, np.random.default_rng(s), cells) for s in range(4000)])
        p = p_of_cells(dispersion, own)
        mean = rates / -np.log1p(-p) * p / (1.0 - p)
        z = (found.mean(axis=0) - mean) / np.sqrt(mean / (1.0 - p) / 4000)
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 40)
        theta, phi = in_counts(likelihood, rates[:, :1], np.ones((5, 1)), own)
        expected = rates[:, :1] / -np.log1p(-p) * p / (1.0 - p)
        np.testing.assert_allclose(theta @ phi.T, expected, rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("levels", list(LEVELS))
@pytest.mark.parametrize("dispersion", DISPERSIONS)
def test_scores_and_exposures_are_those_of_each_cell(levels, dispersion):
    likelihood, own = NegativeBinomial(dispersion), parameters(dispersion)
    data, mask, reports, level, rng = small_data(levels)
    model, p = small_model("topics", likelihood), p_of_cells(dispersion, own)
    factors = tuple(rng.gamma(1.0, 1.0, (n, 2)) for n in SIZE)
    rates, law = factors[0] @ factors[1].T, law_of(data.noise, likelihood, own)
    brute = {i: score(reports[i], rates[i], level[i], p[i]) for i in np.ndindex(SIZE) if not mask[i]}
    found = log_likelihood(factors, data, model, SERIAL, own)
    assert found == pytest.approx(sum(brute.values()), abs=1e-8)
    rows, columns = np.array(list(brute)).T
    at = reports[rows, columns], level[rows, columns], rates[rows, columns]
    np.testing.assert_allclose(report_scores(law, rows, columns, *at), list(brute.values()), atol=1e-9)
    unseen = np.log1p(-p * (1 - level) / (1 - p * level)) / np.log1p(-p)
    exposure = np.where(mask, 0.0, np.where(reports > 0, 1.0, unseen))
    by_row, by_column = (row_exposures(data, law, factors[1], SERIAL), column_exposures(data, law, factors[0], SERIAL))
    np.testing.assert_allclose(by_row, exposure @ factors[1], rtol=1e-10)
    np.testing.assert_allclose(by_column, exposure.T @ factors[0], rtol=1e-10)


@pytest.mark.parametrize("dispersion", DISPERSIONS)
@pytest.mark.parametrize("levels", [np.full(4, 0.6), ROWS, np.linspace(0.1, 0.8, 16).reshape(4, 4)], ids=str)
def test_links_between_actors_have_the_exposures_of_their_cells(dispersion, levels):
    likelihood, rng = NegativeBinomial(dispersion), np.random.default_rng(5)
    own = parameters(dispersion)
    own = (own[0][:4], *own[1:]) if own else ()
    level = np.broadcast_to(levels if levels.ndim == 2 else levels[:, None], (4, 4))
    reports = rng.negative_binomial(0.5, 0.3, (4, 4)) + two_sided_geometric(level, rng)
    data = cv.PrivatizedCounts(reports, levels)
    law, theta = law_of(data.noise, likelihood, own), rng.gamma(1.0, 1.0, (4, 2))
    middle = rng.gamma(1.0, 1.0, (1, 2, 2))
    p = np.full((4, 4), dispersion) if not own else own[0][:, None] if dispersion == "row" else own[0]
    p = np.broadcast_to(p, (4, 4))
    exposure = np.where(reports > 0, 1.0, np.log1p(-p * (1 - level) / (1 - p * level)) / np.log1p(-p))
    links = make_links(data, law, 1)
    np.testing.assert_allclose(links.loops[:, 0], np.diag(exposure), rtol=1e-10)
    shape, rate = np.ones((4, 2)), np.full((4, 2), 0.5)
    found, counts, rates = theta.copy(), np.ones((4, 2)), rate.copy()
    update_actors(found, counts, shape, rates, middle, links, False, rng)
    slow, away = theta.copy(), exposure * (1.0 - np.eye(4))
    for i in range(4):
        sent = away[i] @ slow @ middle[0].T
        received = away[:, i] @ slow @ middle[0]
        np.testing.assert_allclose(rates[i], 0.5 + sent + received, rtol=1e-9)
        slow[i] = 2.0 / rates[i]
    np.testing.assert_allclose(found, slow, rtol=1e-9)


def test_p_has_its_conditional():
    """Slices of logit p against (13.6) on a grid, each p with a tally of its own."""
    counts, bursts = np.array([40.0, 3.0, 0.0]), np.array([11.0, 3.0, 0.0])
    unseen = Unseen(np.array([0.3, 0.6]), np.array([[9.0, 1.0, 5.0], [4.0, 0.0, 2.0]]))
    rng, mean, concentration = np.random.default_rng(5), np.array([0.4]), np.array([5.0])
    found, now = [], np.zeros(3)
    a, b = mean * concentration, (1.0 - mean) * concentration
    for _ in range(6000):
        now = module.draw_on_slices(
            lambda x: module.log_density(x, counts, bursts, unseen, a, b), now, module.LOGITS, rng
        )
        found.append(now)
    grid = np.linspace(-20.0, 20.0, 40_001)
    p = expit(grid)
    for i in range(3):
        q = -np.log1p(-p)
        exposed = sum(
            (1.0 - np.log1p(-p * ratio) / np.log1p(-p)) * rate[i]
            for ratio, rate in zip(unseen.ratio, unseen.rate, strict=True)
        )
        log_law = counts[i] * np.log(p) - bursts[i] * np.log(q) - exposed + stats.beta(a, b).logpdf(p)
        log_law += np.log(p) + np.log1p(-p)
        cdf = np.cumsum(np.exp(log_law - logsumexp(log_law)))
        thinned = np.array(found)[::5, i]
        assert stats.kstest(thinned, lambda x, cdf=cdf: np.interp(x, grid, cdf)).pvalue > FALSE_ALARM
        assert stats.kstest(thinned, lambda x, cdf=cdf: np.interp(x - 0.3, grid, cdf)).pvalue < FALSE_ALARM


@pytest.mark.long
def test_the_shared_prior_has_its_conditional():
    """Means of its mean and concentration against sums over a grid."""
    logits, rng = np.array([-1.0, 0.5, 2.0, 0.3, 1.0]), np.random.default_rng(6)
    mean, concentration, found = np.array([0.5]), np.array([5.0]), []
    for _ in range(8000):
        mean, concentration = module.draw_prior(logits, mean, concentration, rng)
        found.append([mean[0], np.log(concentration[0])])
    p, m = expit(logits), np.linspace(0.001, 0.999, 400)[:, None]
    size = np.exp(np.linspace(-5.0, 6.0, 500))
    shape, rate = module.CONCENTRATION
    log_law = sum((m * size - 1) * np.log(x) + ((1 - m) * size - 1) * np.log1p(-x) for x in p)
    log_law = log_law - 5 * betaln(m * size, (1 - m) * size) + shape * np.log(size) - rate * size
    law = np.exp(log_law - logsumexp(log_law))
    expected = np.array([(law * m).sum(), (law * np.log(size)).sum()])
    z = (np.mean(found, axis=0) - expected) / batch_error(np.array(found))
    assert np.abs(z).max() < bound(2)


class Faulty(NegativeBinomial):
    """Draws of p with a fault."""

    fault = ""

    def update(self, parameters, tally, unseen, rng):
        if self.fault == "ignores unseen cells":
            unseen = Unseen(unseen.ratio, 0.0 * unseen.rate)
        if self.fault == "counts bursts as units":
            tally = np.concatenate([tally[tally.size // 2 :]] * 2)
        return super().update(parameters, tally, unseen, rng)


def prior_draw(likelihood, size, rng):
    """Parameters from their prior."""
    start = likelihood.start(size)
    if len(start) < 2:
        return (rng.uniform(size=1),)[: len(start)]
    mean, concentration = rng.uniform(size=1), rng.gamma(2.0, 1.0 / 0.2, 1)
    p = rng.beta(mean * concentration, (1.0 - mean) * concentration, start[0].shape)
    return np.clip(p, *expit(module.LOGITS)), mean, concentration


def private(level):
    """How counts are reported and read: with two-sided geometric noise."""

    def read(counts, mask, rng):
        noise = two_sided_geometric(np.broadcast_to(level, counts.shape), rng)
        return cv.PrivatizedCounts(counts + noise, level, mask)

    return read


def joint_scores(likelihood, kind, read, sweeps=1000, seed=7, masked=True, batches=40, exposure=1.0):
    """z of means over sweeps, with data drawn anew after each, against the prior's means.

    Rates are multiplied by the exposure of cells, which ``read`` has to know.
    """
    model, rng = small_model(kind, likelihood), np.random.default_rng(seed)
    size = SPECS[kind][2]
    mask = np.eye(4, dtype=bool) if kind == "blocks" else np.zeros(size, dtype=bool)
    mask[:3, 1] = masked
    factors = tuple(rng.gamma(1.5, 1 / 1.5, factor.shape) for factor in model.factors)
    state = gibbs.State(factors, model.initial_hypers(), 0, prior_draw(likelihood, size, rng))
    streams, found = Streams.of_chain(1, 0), []
    for _ in range(sweeps):
        theta, phi = model.matrices(state.factors)
        own = parameters_of_rows(likelihood, state.parameters, np.arange(size[0]))
        counts = np.minimum(likelihood.sample(exposure * (theta @ phi.T), rng, own), 10**6)
        data = read(counts, mask, rng)
        if data.totals is not None:
            state = state._replace(counts=totals.given(totals.open_cells(data), counts))
        state, _ = gibbs.step(state, Plan(data, model), model, streams, SERIAL)
        first, last = state.factors[0], state.factors[-1]
        values = [first.mean(), np.log(first).mean(), last.mean(), np.log(last).mean()]
        p = state.parameters[0] if state.parameters else np.array([0.5])
        found.append([*values, p.mean(), np.square(p).mean(), p[0], p[-1]])
    log_mean = digamma(1.5) - np.log(1.5)
    expected = [1.0, log_mean, 1.0, log_mean, 0.5, second_moment(likelihood), 0.5, 0.5]
    found = np.array(found)
    kept = found.std(axis=0) > 0.0
    z = (found.mean(axis=0) - expected)[kept] / batch_error(found, batches)[kept]
    return np.abs(z)


def second_moment(likelihood):
    """E[p^2] under the prior: of a beta law with random mean and concentration."""
    if len(likelihood.start(SIZE)) < 2:
        return 1.0 / 3.0
    size = np.random.default_rng(3).gamma(2.0, 1.0 / 0.2, 1_000_000)
    return float(np.mean(1.0 / 3.0 + (1.0 / 6.0) / (size + 1.0)))  # E[m^2] + E[m (1 - m)] / (n + 1)


CASES = [  # one p for all is in test_any_mechanism.py and, under this noise, in test_tokens.py
    ("topics", "row", ROWS[:, None]),
    ("topics", "column", np.linspace(0.5, 0.9, 20).reshape(SIZE)),
    ("blocks", "column", ROWS[:, None]),
]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "dispersion", "level"), CASES)
def test_sweeps_leave_the_joint_law_as_it_is(kind, dispersion, level):
    z = joint_scores(NegativeBinomial(dispersion), kind, private(level))
    assert z.max() < bound(len(z))


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "dispersion"), [("ignores unseen cells", "column"), ("counts bursts as units", "column")]
)
def test_faults_do_not(fault, dispersion, monkeypatch):
    monkeypatch.setattr(moves, "learns_p", lambda model: False)  # moves of p would make up for a fault of draws
    likelihood = Faulty(dispersion)
    likelihood.fault = fault
    z = joint_scores(likelihood, "topics", private(ROWS[:, None]))
    assert z.max() > bound(len(z))


def test_settings_make_it_again():
    for dispersion in DISPERSIONS:
        likelihood = NegativeBinomial(dispersion)
        again = likelihood_called("negative-binomial", dict(likelihood.settings))
        assert again.dispersion == dispersion
        assert repr(again) == repr(likelihood) == f"negative-binomial, dispersion {dispersion}"
    assert LIKELIHOODS["negative-binomial"].dispersion == "global"


@pytest.mark.parametrize("dispersion", ["rows", 0.0, 1.0, -0.5, float("nan"), None, [0.5]])
def test_another_dispersion_is_refused_in_words(dispersion):
    with pytest.raises(ValueError, match=r"dispersion must be one of \['global', 'column', 'row'\] or a number"):
        NegativeBinomial(dispersion)


def test_ranges_hold_what_is_drawn():
    likelihood = NegativeBinomial("column")
    for name in likelihood.parameter_axes:
        least, most = likelihood.range_of(name)
        assert 0.0 < least < most
        assert most <= 1.0 or name == "p_concentration"
    assert logit(likelihood.range_of("p")[1]) >= module.LOGITS[1]
    assert law_of(TWO_SIDED_GEOMETRIC, NegativeBinomial(0.5)).likelihood.parameters[0] == [0.5]


def test_a_known_dispersion_may_be_any_number_but_no_truth_value():
    assert json.dumps(NegativeBinomial(np.float32(0.25)).settings) == json.dumps({"dispersion": 0.25})
    with pytest.raises(ValueError, match=r"or a number from 2\.061e-09 to 1 - 2\.061e-09, got True"):
        NegativeBinomial(True)
