"""Moves of p with the true counts summed out leave the joint law as it is, and chains leave a start at a small p."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

import countveil as cv
from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import cavi, dispersion, em, scoring
from countveil.inference.dispersion import unseen_rates
from countveil.inference.facts import facts_of
from countveil.inference.plan import Plan
from countveil.inference.starts import automatic
from countveil.inference.streams import START, Streams
from countveil.kernels.general import GeneralLaw
from countveil.laws.counts import NegativeBinomial, Poisson
from countveil.laws.counts.negative_binomial import log_density
from countveil.laws.counts.protocol import parameters_at
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior
from countveil.models.priors.gamma_chain import GammaChainPrior
from countveil.models.priors.learned_shape import LearnedShapePrior
from tests.factorizations import CASES, alpha_of, mask_of, observe, rates_of
from tests.factorizations import model_of as factorization_of
from tests.inference.test_cavi import largest_fall
from tests.joint import (
    FALSE_ALARM,
    SERIAL,
    assert_same_bits,
    draw_factors,
    fit_settings,
    matrix_model,
    moderate_shapes,
    small_model,
    two_sided_geometric,
)

SHAPE, ALPHA = (3, 2), 0.6
STATES, ROUNDS = 400, 8
MIXED = 3.0, 2.0  # beta prior of every p; (1, 1) where there is only one


def model_of(axis, learned=True):
    """A product of two with one component and moderate priors."""
    spec = parse_spec("dk,vk->dv", names=("theta", "phi"))
    priors = {"theta": GammaPrior(2.0, 1.5, learned), "phi": GammaPrior(3.0, 2.0, False)}
    return factorization(spec, axis_sizes(spec, SHAPE, {"k": 1}), priors, likelihood=NegativeBinomial(axis))


def parameters_of(model, rng):
    own = model.initial_parameters()
    if len(own) == 1:
        return (rng.random(1),)
    a, b = MIXED
    return rng.beta(a, b, own[0].shape), np.array([a / (a + b)]), np.array([a + b])


def statistics(factors, hypers, parameters):
    rates = np.log(factors[0] @ factors[1].T)
    return [parameters[0].mean(), parameters[0][0], np.mean(np.log(hypers[0])), rates.mean(), rates[0, 0]]


def p_values(axis, learned=True, states=STATES):
    """Kolmogorov-Smirnov p-values of states after the moves against states from the prior."""
    rng, model, before, after = np.random.default_rng(5), model_of(axis, learned), [], []
    for _ in range(states):
        before.append(statistics(*draw_factors(model, rng), parameters_of(model, rng)))
        (factors, hypers), parameters = draw_factors(model, rng), parameters_of(model, rng)
        for number in range(ROUNDS):
            p = np.broadcast_to(parameters[0][:, None] if axis == "row" else parameters[0], SHAPE)
            s = np.maximum(factors[0] @ factors[1].T / -np.log1p(-p), 1e-12)
            counts = rng.negative_binomial(s, 1.0 - p)
            data = cv.PrivatizedCounts(counts + two_sided_geometric(np.full(SHAPE, ALPHA), rng), ALPHA)
            factors, hypers, parameters = dispersion.moved(
                factors, hypers, parameters, Plan(data, model), model, SERIAL, rng, number
            )
        after.append(statistics(factors, hypers, parameters))
    a, b = np.array(before), np.array(after)
    varies = a.std(axis=0) > 0.0
    return np.array([stats.ks_2samp(x, y).pvalue for x, y in zip(a.T[varies], b.T[varies], strict=True)])


@pytest.mark.long
@pytest.mark.parametrize(("axis", "states"), [("column", STATES), ("row", 160)])
def test_moves_leave_the_joint_law_as_it_is(axis, states):
    assert p_values(axis, states=states).min() > FALSE_ALARM


@pytest.mark.long
def test_moves_at_known_rates_of_the_factor_leave_it_too():
    assert p_values("global", learned=False, states=240).min() > FALSE_ALARM


@pytest.mark.long
def test_a_missing_jacobian_is_seen(monkeypatch):
    right = GammaPrior.resized

    def wrong(self, factor, hypers, times):
        found = right(self, factor, hypers, times)
        return found and (found[0], found[1] + np.log(times) * np.size(hypers))

    monkeypatch.setattr(GammaPrior, "resized", wrong)
    assert p_values("global").min() < FALSE_ALARM


@pytest.mark.long
def test_missing_shapes_of_entries_are_seen(monkeypatch):
    right = dispersion.prior_sums

    def wrong(*given):
        shapes, products = right(*given)
        return 0.0 * shapes, products

    monkeypatch.setattr(dispersion, "prior_sums", wrong)
    assert p_values("column", states=160).min() < FALSE_ALARM


class Steps:
    """The grid of a chain of four steps of two components."""

    shape, component_shape, symmetric, shared = (4, 2), (1, 2), False, False


@pytest.mark.long
@pytest.mark.parametrize("times", [0.3, 1.7])
def test_priors_of_learned_size_know_how_their_density_changes(times, monkeypatch):
    moderate_shapes(monkeypatch)
    model = model_of("global")
    factor, rng = model.factors[0], np.random.default_rng(2)
    value = rng.gamma(2.0, 1.0, factor.shape)

    def log_density(prior, hypers, x):
        shape, rate = prior.gamma(hypers, 1.0)
        own = hypers if isinstance(prior, GammaPrior) else hypers[1]
        mean = prior.rate if isinstance(prior, GammaPrior) else hypers[0] / prior.mean
        entries = stats.gamma.logpdf(x, shape, scale=1.0 / rate).sum()
        return entries + stats.expon.logpdf(own, scale=mean).sum()

    for prior in (GammaPrior(2.0, 1.5, True), LearnedShapePrior(0.7, None)):
        hypers = prior.start(factor) * 1.3
        new, change = prior.resized(factor, hypers, times)
        jacobian = (value.size - 1) * np.log(times)  # one rate is divided, every entry multiplied
        moved = log_density(prior, new, times * value) - log_density(prior, hypers, value)
        assert change == pytest.approx(moved + jacobian)
    chain = GammaChainPrior(3.0, True)
    hypers = chain.start(Steps())
    new, change = chain.resized(Steps(), hypers, times)
    scale = [chain.chain_of(each, Steps.shape).scale for each in (hypers, new)]
    assert scale[1] == pytest.approx(times * scale[0])
    density = stats.gamma(0.1, scale=3.0 / 0.1)
    assert change == pytest.approx(density.logpdf(scale[1]) - density.logpdf(scale[0]) + np.log(times))


def planted(rng, by_column):
    p = expit(np.log(99.0) + by_column * rng.normal(0.0, 0.7, 30))
    mean = 500.0 * rng.gamma(2.0, 0.5, (20, 1)) * rng.gamma(2.0, 0.5, 30)
    return rng.negative_binomial(mean * (1.0 - p) / p, 1.0 - p), p


@pytest.mark.long
@pytest.mark.parametrize("by_column", [False, True])
def test_intervals_under_wide_noise_cover(by_column):
    rng = np.random.default_rng(8)
    counts, p = planted(rng, by_column)
    alpha = np.exp(-1.0 / 30.0)
    data = cv.PrivatizedCounts(counts + two_sided_geometric(np.full(counts.shape, alpha), rng), alpha)
    axis = "column" if by_column else "global"
    fit = cv.TopicModel(1, dispersion=axis, chains=2, tune=20, draws=20, seed=1).fit(data)
    assert fit.posterior["posterior"]["p"].to_numpy().mean() == pytest.approx(p.mean(), abs=0.03)
    intervals = fit.count_intervals(data, 0.9)
    covered = (intervals.lower <= counts) & (counts <= intervals.upper)
    assert 0.86 < covered.mean() < 0.95  # three standard errors; 0.3 where p sticks


@pytest.mark.long
def test_a_start_finds_p_by_column_from_the_reports():
    rng = np.random.default_rng(3)
    counts = rng.negative_binomial(5.0, [0.2, 0.9], (300, 2))
    spec, prior = parse_spec("dk,vk->dv", names=("theta", "phi")), GammaPrior(2.0, 1.5, True)
    sizes, priors = axis_sizes(spec, counts.shape, {"k": 1}), {"theta": prior, "phi": prior}
    model = factorization(spec, sizes, priors, likelihood=NegativeBinomial("column"))
    data = cv.ExactCounts(counts)
    factors = np.ones((300, 1)), counts.mean(axis=0)[:, None]
    (theta, phi), parameters = dispersion.started(factors, Plan(data, model), model, SERIAL)
    np.testing.assert_allclose(parameters[0], [0.8, 0.1], atol=0.1)
    burst = model.likelihood.mean(1.0, parameters)
    np.testing.assert_allclose((theta @ phi.T * burst)[0], counts.mean(axis=0))


@pytest.mark.long
@pytest.mark.parametrize(("shape", "sweeps"), [((20, 30), 4), ((64, 64), 5), ((300, 100), 10)])
def test_moves_are_rarer_where_cells_are_many(shape, sweeps):
    data = cv.ExactCounts(np.ones(shape, dtype=int))
    assert dispersion.interval(data) == sweeps


SIZE = (150, 7)
ROWS = np.where(np.arange(150) % 3 == 0, 0.2, 0.6)
LEVELS = {
    "one": 0.4,
    "by row": ROWS,
    "by column": np.linspace(0.1, 0.5, 7)[None],
    "by cell": ROWS[:, None] * np.ones(7),
}


class Shares(Poisson):
    """Parameters that are the same for all cells, the cells of a row, or those of a column."""

    def __init__(self, along):
        self.parameter_axes = {"one": "all", "other": along}


@pytest.mark.parametrize("levels", list(LEVELS))
@pytest.mark.parametrize("along", ["all", "row", "column"])
def test_rates_are_added_up_by_level_and_by_what_shares_parameters(levels, along):
    rng = np.random.default_rng(4)
    reports, mask = rng.integers(-2, 4, SIZE), rng.random(SIZE) < 0.2
    factors = [rng.gamma(1.0, 1.0, (n, 2)) for n in SIZE]
    data = PrivatizedCounts(reports, LEVELS[levels], mask)
    model = small_model(SIZE)._replace(likelihood=Shares(along))
    found = dispersion.unseen_rates(model, factors, data, SERIAL)
    level = LEVELS[levels][:, None] if levels == "by row" else LEVELS[levels]
    level, rates = np.broadcast_to(level, SIZE), factors[0] @ factors[1].T
    cells = (reports <= 0) & ~mask
    ratios = np.unique(level)
    np.testing.assert_allclose(found.ratio, data.noise.ratio(ratios))
    kept = np.stack([np.where(cells & (level == ratio), rates, 0.0) for ratio in ratios])
    summed = {"all": (1, 2), "row": 2, "column": 1}[along]
    expected = kept.sum(axis=summed).reshape(ratios.size, -1)
    np.testing.assert_allclose(found.rate, expected, rtol=1e-11, atol=1e-13)
    with ThreadEngine(2) as engine:
        other = dispersion.unseen_rates(model, factors, data, engine)
    np.testing.assert_array_equal(found.rate, other.rate)


def test_a_stored_report_of_zero_is_not_seen():
    data = PrivatizedCounts(np.array([[0, 2, 1]]), 0.4)
    factors = [np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])]
    assert dispersion.unseen_rates(small_model((1, 3)), factors, data, SERIAL).rate == [1.0]
    data.reports = np.array([0, 1], dtype=np.int16)
    assert dispersion.unseen_rates(small_model((1, 3)), factors, data, SERIAL).rate == [3.0]


STREAMS = Streams.of_chain(1, 0)
KINDS = ("global", "column", "row")
TABLE_SHAPE = (24, 15)
NOISE_LEVELS = {
    "one": np.full(TABLE_SHAPE, 0.5),
    "by row": np.broadcast_to(np.linspace(0.0, 0.9, TABLE_SHAPE[0])[:, None], TABLE_SHAPE),
    "by cell": np.random.default_rng(2).choice([0.0, 0.3, 0.8], TABLE_SHAPE),
}
OF_COUNTS = {"likelihood": "negative-binomial"}


def bursty_counts(rate, p, rng):
    """Counts with these rates of bursts."""
    return rng.negative_binomial(np.maximum(rate, 1e-12) / -np.log1p(-p), 1.0 - p)


def problem(kind, levels="one", seed=1):
    """(observations, model) of small bursty counts; a tenth of the cells is masked."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.5, 2.0, (TABLE_SHAPE[0], 3)) @ rng.gamma(0.5, 1.0, (3, TABLE_SHAPE[1]))
    p = rng.beta(4.0, 2.0, {"row": (TABLE_SHAPE[0], 1), "column": TABLE_SHAPE[1]}.get(kind, 1))
    alpha = NOISE_LEVELS[levels]
    reports = bursty_counts(rate, p, rng) + two_sided_geometric(alpha, rng)
    reports = np.where(alpha == 0.0, np.maximum(reports, 0), reports)
    given = {"one": 0.5, "by row": alpha[:, 0], "by cell": alpha}[levels]
    observations = PrivatizedCounts(reports, given, rng.random(TABLE_SHAPE) < 0.1)
    return observations, bursty(matrix_model(TABLE_SHAPE, 3, 0.3, None, float(rate.mean())), kind)


def bursty(model, kind):
    """The model with negative binomial counts."""
    return model._replace(likelihood=NegativeBinomial(kind))


def climb(algorithm, observations, model, steps, **options):
    plan = Plan(observations, model)
    state, objectives = algorithm.init(plan, model, STREAMS, SERIAL), []
    for _ in range(steps):
        state, info = algorithm.step(state, plan, model, STREAMS, SERIAL, **options)
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
    _, (tally,) = SERIAL.over_rows(dispersion.tally_block, observations, (law, phi, size), (theta,))
    return tally.reshape(2, -1)


@pytest.mark.parametrize("levels", NOISE_LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_tally_is_of_expected_counts_and_bursts(kind, levels):
    observations, model = problem(kind, levels)
    factors, values = somewhere(model)
    theta, phi = model.matrices(factors)
    rows, columns = np.indices(TABLE_SHAPE)
    reports = observations.cells(rows.ravel(), columns.ravel())[0].reshape(TABLE_SHAPE)
    (p,) = parameters_at(model.likelihood, values, rows, columns)[:1]
    given = np.maximum(reports, 0), theta @ phi.T, NOISE_LEVELS[levels]
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
    general = GeneralLaw(TWO_SIDED_GEOMETRIC.kernel, closed.likelihood)
    theta, phi = model.matrices(factors)
    sums = [
        SERIAL.over_rows(dispersion.tally_block, observations, (law, phi, 2 * TABLE_SHAPE[1]), (theta,))[1][0]
        for law in (closed, general)
    ]
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-9)


@pytest.mark.parametrize("levels", NOISE_LEVELS)
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
@pytest.mark.parametrize(
    ("kind", "levels"), [("global", "by cell"), ("column", "by row"), ("row", "by cell"), (0.7, "one")]
)
def test_the_likelihood_and_the_bound_never_decrease(kind, levels):
    observations, model = problem(kind, levels)
    runs = [climb(em, observations, model, 40)[1]]
    runs += [climb(cavi, observations, model, 40, expectation=expectation)[1] for expectation in cavi.EXPECTATIONS]
    for objectives in runs:
        assert largest_fall(objectives) < 1e-9
        assert objectives[-1] > objectives[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "kind"),
    list(
        zip(
            [name for name, case in CASES.items() if not (case.loops and "shared" in case.options)],
            itertools.cycle(KINDS),
            strict=False,
        )
    ),
)
def test_they_never_decrease_for_any_factorization(name, kind):
    """Every factorization with one kind: what a kind adds up over is of the cells, whatever the factors."""
    case, rng = CASES[name], np.random.default_rng(4)
    model = bursty(factorization_of(case), kind)
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
    plan = Plan(observations, model)
    for _ in range(3):
        state, info = em.step(state, plan, model, STREAMS, SERIAL)
        objectives.append(info.objective)
    assert largest_fall(np.array(objectives)) > 1e-6


@pytest.mark.parametrize("kind", [*KINDS, 0.7])
def test_the_objective_of_em_is_the_log_likelihood(kind):
    observations, model = problem(kind, "by row")
    state, _ = climb(em, observations, model, 3)
    after = em.step(state, Plan(observations, model), model, STREAMS, SERIAL)[1].objective
    expected = scoring.log_likelihood(state.factors, observations, model, SERIAL, state.parameters)
    assert after == pytest.approx(expected, rel=1e-12)
    assert len(state.parameters) == len(model.initial_parameters())


def test_threads_do_not_change_the_answer():
    observations, model = problem("row")
    state, _ = climb(em, observations, model, 2)
    plan = Plan(observations, model)
    with ThreadEngine(2) as engine:
        found = em.step(state, plan, model, STREAMS, engine)[0]
    assert_same_bits(found, em.step(state, plan, model, STREAMS, SERIAL)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_at_a_fixed_penalty_the_penalised_likelihood_never_decreases(kind):
    observations, model = problem(kind)
    plan = Plan(observations, model)
    state, objectives = em.init(plan, model, STREAMS, SERIAL)._replace(penalty=0.2), []
    for _ in range(40):
        new, info = em.step(state, plan, model, STREAMS, SERIAL)
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
    for method in (em.EM(max_iter=200), cavi.CAVI(max_iter=200, tolerance=1e-5)):
        found = method.run(observations, model, fit_settings(draws=3)).draws.parameters[0]
        assert np.ptp(found) == 0.0
        assert found.flat[0] == pytest.approx(p, abs=0.06)


def test_parameters_of_a_start_stay_as_they_begin():
    """Its iterations move factors alone, from the p under which the reports are likeliest."""
    observations, model = problem("column")
    factors = automatic(observations, model, STREAMS.generator(0, START), SERIAL)
    plan = Plan(observations, model)
    state = em.from_point(factors, plan, model, SERIAL, 3)
    assert_same_bits(state.parameters, dispersion.started(factors, plan, model, SERIAL)[1])
    assert state.parameters[0].std() > 0.0


def test_without_parameters_nothing_moves():
    observations, model = problem(0.7)
    assert dispersion.maximised_parameters((), observations, model, (), (), SERIAL) == ()
    for method, kind in itertools.product((em, cavi), (0.7, "column")):
        assert len(climb(method, *problem(kind), 1)[0].parameters) == (3 if kind == "column" else 0)


def test_sums_of_rates_are_those_of_what_shares_a_p():
    factors, axes = somewhere(problem("row")[1])[0], {"global": (0, 1), "column": 0, "row": 1}
    for kind, axis in axes.items():
        model = problem(kind)[1]
        theta, phi = model.matrices(factors)
        expected = np.reshape((theta @ phi.T).sum(axis=axis), -1)
        np.testing.assert_allclose(dispersion.summed_rates(model, factors), expected)
        assert math.isclose(expected.sum(), (theta @ phi.T).sum())
