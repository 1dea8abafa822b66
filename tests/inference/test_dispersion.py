"""Moves of p with the true counts summed out leave the joint law as it is, and chains leave a start at a small p."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import countveil as cv
from countveil.inference import dispersion
from countveil.laws.counts import NegativeBinomial
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior
from countveil.models.priors.gamma_chain import GammaChainPrior
from countveil.models.priors.learned_shape import LearnedShapePrior
from countveil.models.spec import axis_sizes, parse_spec
from tests.joint import FALSE_ALARM, SERIAL, draw_factors, moderate_shapes, two_sided_geometric

pytestmark = pytest.mark.long

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


def p_values(axis, learned=True, move=dispersion.moved):
    """Kolmogorov-Smirnov p-values of states after the moves against states from the prior."""
    rng, model, before, after = np.random.default_rng(5), model_of(axis, learned), [], []
    for _ in range(STATES):
        before.append(statistics(*draw_factors(model, rng), parameters_of(model, rng)))
        (factors, hypers), parameters = draw_factors(model, rng), parameters_of(model, rng)
        for number in range(ROUNDS):
            p = np.broadcast_to(parameters[0][:, None] if axis == "row" else parameters[0], SHAPE)
            s = np.maximum(factors[0] @ factors[1].T / -np.log1p(-p), 1e-12)
            counts = rng.negative_binomial(s, 1.0 - p)
            data = cv.PrivatizedCounts(counts + two_sided_geometric(np.full(SHAPE, ALPHA), rng), ALPHA)
            factors, hypers, parameters = move(factors, hypers, parameters, data, model, SERIAL, rng, number)
        after.append(statistics(factors, hypers, parameters))
    a, b = np.array(before), np.array(after)
    varies = a.std(axis=0) > 0.0
    return np.array([stats.ks_2samp(x, y).pvalue for x, y in zip(a.T[varies], b.T[varies], strict=True)])


@pytest.mark.parametrize("axis", ["column", "row"])
def test_moves_leave_the_joint_law_as_it_is(axis):
    assert p_values(axis).min() > FALSE_ALARM


def test_moves_at_known_rates_of_the_factor_leave_it_too():
    assert p_values("global", learned=False).min() > FALSE_ALARM


def test_a_missing_jacobian_is_seen(monkeypatch):
    right = GammaPrior.resized

    def wrong(self, factor, hypers, times):
        found = right(self, factor, hypers, times)
        return found and (found[0], found[1] + np.log(times) * np.size(hypers))

    monkeypatch.setattr(GammaPrior, "resized", wrong)
    assert p_values("global").min() < FALSE_ALARM


def test_missing_shapes_of_entries_are_seen(monkeypatch):
    right = dispersion.prior_sums

    def wrong(*given):
        shapes, products = right(*given)
        return 0.0 * shapes, products

    monkeypatch.setattr(dispersion, "prior_sums", wrong)
    assert p_values("column").min() < FALSE_ALARM


class Steps:
    """The grid of a chain of four steps of two components."""

    shape, component_shape, symmetric, shared = (4, 2), (1, 2), False, False


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


def test_a_start_finds_p_by_column_from_the_reports():
    rng = np.random.default_rng(3)
    counts = rng.negative_binomial(5.0, [0.2, 0.9], (300, 2))
    spec, prior = parse_spec("dk,vk->dv", names=("theta", "phi")), GammaPrior(2.0, 1.5, True)
    sizes, priors = axis_sizes(spec, counts.shape, {"k": 1}), {"theta": prior, "phi": prior}
    model = factorization(spec, sizes, priors, likelihood=NegativeBinomial("column"))
    data = cv.ExactCounts(counts)
    factors = np.ones((300, 1)), counts.mean(axis=0)[:, None]
    (theta, phi), parameters = dispersion.started(factors, data, model, SERIAL)
    np.testing.assert_allclose(parameters[0], [0.8, 0.1], atol=0.1)
    burst = model.likelihood.mean(1.0, parameters)
    np.testing.assert_allclose((theta @ phi.T * burst)[0], counts.mean(axis=0))


@pytest.mark.parametrize(("shape", "sweeps"), [((20, 30), 4), ((64, 64), 5), ((300, 100), 10)])
def test_moves_are_rarer_where_cells_are_many(shape, sweeps):
    data = cv.ExactCounts(np.ones(shape, dtype=int))
    assert dispersion.interval(data) == sweeps
