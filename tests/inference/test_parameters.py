"""Dispersions moved uphill, by em and by cavi, for every kind of dispersion, noise levels, masks and models."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import expit, logit

import countveil as cv
from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import cavi, dispersion, em, parameters, scoring
from countveil.inference.dispersion import unseen_rates
from countveil.inference.facts import facts_of
from countveil.inference.starts import automatic
from countveil.inference.streams import START, Streams
from countveil.kernels.general import GeneralLaw
from countveil.laws.counts import NegativeBinomial
from countveil.laws.counts.laws import counts_of
from countveil.laws.counts.negative_binomial import log_density
from countveil.laws.counts.protocol import parameters_at
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.inference.test_cavi import largest_fall
from tests.joint import (
    SERIAL,
    assert_same_bits,
    draw_factors,
    fit_settings,
    matrix_model,
    two_sided_geometric,
)

STREAMS = Streams.of_chain(1, 0)
KINDS = ("global", "column", "row")
SIZE = (24, 15)
LEVELS = {
    "one": np.full(SIZE, 0.5),
    "by row": np.broadcast_to(np.linspace(0.0, 0.9, SIZE[0])[:, None], SIZE),
    "by cell": np.random.default_rng(2).choice([0.0, 0.3, 0.8], SIZE),
}
OF_COUNTS = {"likelihood": "negative-binomial"}


def bursty_counts(rate, p, rng):
    """Counts with these rates of bursts."""
    return rng.negative_binomial(np.maximum(rate, 1e-12) / -np.log1p(-p), 1.0 - p)


def problem(kind, levels="one", seed=1, truncated=False):
    """(observations, model) of small bursty counts; a tenth of the cells is masked."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.5, 2.0, (SIZE[0], 3)) @ rng.gamma(0.5, 1.0, (3, SIZE[1]))
    p = rng.beta(4.0, 2.0, {"row": (SIZE[0], 1), "column": SIZE[1]}.get(kind, 1))
    alpha = LEVELS[levels]
    reports = bursty_counts(rate, p, rng) + two_sided_geometric(alpha, rng)
    reports = np.where(alpha == 0.0, np.maximum(reports, 0), np.maximum(reports, 0) if truncated else reports)
    given = {"one": 0.5, "by row": alpha[:, 0], "by cell": alpha}[levels]
    observations = PrivatizedCounts(reports, given, rng.random(SIZE) < 0.1)
    return observations, bursty(matrix_model(SIZE, 3, 0.3, None, float(rate.mean())), kind)


def bursty(model, kind):
    """The model with negative binomial counts."""
    return model._replace(likelihood=NegativeBinomial(kind))


def climb(algorithm, observations, model, steps, **options):
    state, objectives = algorithm.init(observations, model, STREAMS, SERIAL), []
    for _ in range(steps):
        state, info = algorithm.step(state, observations, model, STREAMS, SERIAL, **options)
        objectives.append(info.objective)
    return state, np.array(objectives)


def somewhere(model, seed=3):
    """Factors and p away from any optimum."""
    rng = np.random.default_rng(seed)
    factors = draw_factors(model, rng)[0]
    return factors, tuple(np.asarray(rng.uniform(0.2, 0.8, x.shape)) for x in model.initial_parameters())


def tally_of(observations, model, factors, values):
    """(expected counts, expected bursts) of what shares a p."""
    law = observations.law(model.likelihood, values)
    theta, phi = model.matrices(factors)
    size = model.likelihood.tally_size(observations.shape)
    _, (tally,) = SERIAL.over_rows(parameters.tally_block, observations, (law, phi, size), (theta,))
    return tally.reshape(2, -1)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_tally_is_of_expected_counts_and_bursts(kind, levels):
    observations, model = problem(kind, levels)
    factors, values = somewhere(model)
    theta, phi = model.matrices(factors)
    rows, columns = np.indices(SIZE)
    reports = observations.cells(rows.ravel(), columns.ravel())[0].reshape(SIZE)
    (p,) = parameters_at(model.likelihood, values, rows, columns)[:1]
    given = np.maximum(reports, 0), theta @ phi.T, LEVELS[levels]
    counts = cv.expected_true_counts(*given, dispersion=p, **OF_COUNTS)
    bursts = cv.expected_bursts(*given, p)
    summed = {"global": None, "column": 0, "row": 1}[kind]
    expected = [np.where(reports > 0, x, 0.0).sum(axis=summed) for x in (counts, bursts)]
    found = tally_of(observations, model, factors, values)
    np.testing.assert_allclose(found, np.reshape(expected, (2, -1)), rtol=1e-9, atol=1e-12)


def test_the_general_law_expects_the_same():
    observations, model = problem("column", "by row")
    factors, values = somewhere(model)
    closed = observations.law(model.likelihood, values)
    general = GeneralLaw(TWO_SIDED_GEOMETRIC.kernel, counts_of(closed))
    theta, phi = model.matrices(factors)
    sums = [
        SERIAL.over_rows(parameters.tally_block, observations, (law, phi, 2 * SIZE[1]), (theta,))[1][0]
        for law in (closed, general)
    ]
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-9)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_maximised_has_the_gradient_of_the_log_likelihood(kind, levels):
    """Where the expectations were taken, its slope in every logit p is that of the log-likelihood of all reports."""
    observations, model = problem(kind, levels)
    factors, values = somewhere(model)
    counts, bursts = tally_of(observations, model, factors, values)
    unseen, logits, h = unseen_rates(model, list(factors), observations, SERIAL), logit(values[0]), 1e-5

    def expected(x):
        return log_density(x, counts, bursts, unseen, 0.0, 0.0)

    def score(x):
        return scoring.log_likelihood(factors, observations, model, SERIAL, (expit(x), *values[1:]))

    slopes = (expected(logits + h) - expected(logits - h)) / (2.0 * h)
    for i in range(logits.size):
        step = h * np.eye(logits.size)[i]
        slope = (score(logits + step) - score(logits - step)) / (2.0 * h)
        assert slopes[i] == pytest.approx(slope, rel=1e-4, abs=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("kind", [*KINDS, 0.7])
def test_the_likelihood_and_the_bound_never_decrease(kind, levels):
    observations, model = problem(kind, levels)
    runs = [climb(em, observations, model, 40)[1]]
    runs += [
        climb(cavi, observations, model, 40, expectation=expectation)[1] for expectation in cavi.EXPECTATIONS
    ]
    for objectives in runs:
        assert largest_fall(objectives) < 1e-9
        assert objectives[-1] > objectives[0]


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if not (case.loops and "shared" in case.options)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_they_never_decrease_for_any_factorization(name, kind):
    case, rng = CASES[name], np.random.default_rng(4)
    model = bursty(model_of(case), kind)
    counts = bursty_counts(rates_of(model, draw_factors(model, rng)[0]), 0.6, rng)
    reports = counts + two_sided_geometric(alpha_of(case), rng)
    reports = np.where(alpha_of(case) == 0.0, counts, reports)
    observations = observe(model, case, reports, mask_of(case))
    for algorithm in (em, cavi):
        assert largest_fall(climb(algorithm, observations, model, 15)[1]) < 1e-9


def test_a_wrong_move_makes_the_likelihood_fall(monkeypatch):
    observations, model = problem("column")
    right = NegativeBinomial.maximised

    def wrong(self, values, tally, unseen, penalised):
        return right(self, values, tally * np.repeat([1.0, 1.2], tally.size // 2), unseen, penalised)

    state, _ = climb(em, observations, model, 100)
    monkeypatch.setattr(NegativeBinomial, "maximised", wrong)
    objectives = []
    for _ in range(3):
        state, info = em.step(state, observations, model, STREAMS, SERIAL)
        objectives.append(info.objective)
    assert largest_fall(np.array(objectives)) > 1e-6


@pytest.mark.parametrize("kind", [*KINDS, 0.7])
def test_the_objective_of_em_is_the_log_likelihood(kind):
    observations, model = problem(kind, "by row")
    state, _ = climb(em, observations, model, 3)
    after = em.step(state, observations, model, STREAMS, SERIAL)[1].objective
    expected = scoring.log_likelihood(state.factors, observations, model, SERIAL, state.parameters)
    assert after == pytest.approx(expected, rel=1e-12)
    assert len(state.parameters) == len(model.initial_parameters())


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("algorithm", [em, cavi], ids=["em", "cavi"])
@pytest.mark.parametrize("kind", [*KINDS, 0.7])
def test_signed_and_truncated_reports_are_one(kind, algorithm, levels):
    states = [
        climb(algorithm, *problem(kind, levels, truncated=truncated), 3)[0] for truncated in (False, True)
    ]
    assert_same_bits(*states)


def test_threads_do_not_change_the_answer():
    observations, model = problem("row")
    state, _ = climb(em, observations, model, 2)
    with ThreadEngine(2) as engine:
        found = em.step(state, observations, model, STREAMS, engine)[0]
    assert_same_bits(found, em.step(state, observations, model, STREAMS, SERIAL)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_at_a_fixed_penalty_the_penalised_likelihood_never_decreases(kind):
    observations, model = problem(kind)
    state, objectives = em.init(observations, model, STREAMS, SERIAL)._replace(penalty=0.2), []
    for _ in range(40):
        new, info = em.step(state, observations, model, STREAMS, SERIAL)
        objectives.append(info.objective - 0.2 * scoring.total_rate(model, state.factors, state.parameters))
        state = new
    assert largest_fall(np.array(objectives)) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_expected_counts_add_up_to_the_estimate_of_the_total(kind):
    rng = np.random.default_rng(5)
    rate = np.full((60, 50), 0.2)
    mask = rng.random(rate.shape) < 0.2
    reports = bursty_counts(rate, 0.6, rng) + two_sided_geometric(np.full(rate.shape, 0.7), rng)
    observations = PrivatizedCounts(reports, 0.7, mask)
    model = bursty(matrix_model(rate.shape, 6, 0.3, None, 0.4), kind)
    algorithm = em.HeldTotal(observations, model)
    state, _ = climb(algorithm, observations, model, 60)
    theta, phi = scoring.in_counts(model.likelihood, *state.factors, state.parameters)
    seen = (theta @ phi.T)[~mask].sum()
    assert state.penalty > 0.0
    assert seen == pytest.approx(facts_of(observations).total_count, rel=0.02)


@pytest.mark.long
def test_one_p_is_found():
    rng = np.random.default_rng(6)
    theta, phi, p = rng.gamma(1.0, 1.0, (150, 2)), rng.dirichlet(np.full(60, 0.5), 2), 0.75
    reports = bursty_counts(60.0 * theta @ phi, p, rng) + two_sided_geometric(np.full((150, 60), 0.4), rng)
    observations = PrivatizedCounts(reports, 0.4)
    model = bursty(matrix_model((150, 60), 2, 0.3, None, 1.0), "global")
    for method in (em, cavi):
        found = method.METHOD.fit(method.METHOD, observations, model, fit_settings(draws=3)).draws.parameters[
            0
        ]
        assert np.ptp(found) == 0.0
        assert found.flat[0] == pytest.approx(p, abs=0.06)


def test_parameters_of_a_start_stay_as_they_begin():
    """Its iterations move factors alone, from the p under which the reports are likeliest."""
    observations, model = problem("column")
    factors = automatic(observations, model, STREAMS.generator(0, START), SERIAL)
    state = em.from_point(factors, observations, model, SERIAL, 3)
    assert_same_bits(state.parameters, dispersion.started(factors, observations, model, SERIAL)[1])
    assert state.parameters[0].std() > 0.0


def test_without_parameters_nothing_moves():
    observations, model = problem(0.7)
    assert parameters.moved((), observations, model, (), (), SERIAL) == ()
    for method, kind in itertools.product((em, cavi), (0.7, "column")):
        assert len(climb(method, *problem(kind), 1)[0].parameters) == (3 if kind == "column" else 0)


def test_sums_of_rates_are_those_of_what_shares_a_p():
    factors, axes = somewhere(problem("row")[1])[0], {"global": (0, 1), "column": 0, "row": 1}
    for kind, axis in axes.items():
        model = problem(kind)[1]
        theta, phi = model.matrices(factors)
        expected = np.reshape((theta @ phi.T).sum(axis=axis), -1)
        np.testing.assert_allclose(parameters.summed_rates(model, factors), expected)
        assert math.isclose(expected.sum(), (theta @ phi.T).sum())
