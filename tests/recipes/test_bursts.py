"""A likelihood with a parameter of its own, added by its recipe: all that follows the parameter as it changes."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, logsumexp

import countveil as cv
from countveil.fit.predictive_checks import check
from countveil.inference import gibbs
from countveil.inference.dispersion import unseen_rates
from countveil.inference.factors import column_exposures, make_links, row_exposures
from countveil.inference.methods import METHODS
from countveil.inference.plan import Plan
from countveil.inference.scoring import log_likelihood, report_scores
from countveil.inference.streams import Streams
from countveil.laws.counts import LIKELIHOODS, Unseen
from countveil.laws.counts.laws import law_of, positive_beyond_noise
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior
from countveil.report.baselines import noise_alone
from tests.count_laws import laws_by_draws
from tests.joint import FALSE_ALARM, SERIAL, batch_error, bound, fitted, two_sided_geometric
from tests.recipes.bursts import PRIOR, Bursts

pytestmark = pytest.mark.long

SHORT = {"draws": 60, "tune": 60, "chains": 2, "seed": 1, "threads": 1, "progress": False}
SIZE = (60, 30)
P = [0.2, 0.9]
FIRST = np.zeros(1, dtype=np.int64)
ROWS = np.array([0.8, 0.7, 0.8, 0.9])
LEVELS = {
    "by row": np.array([0.3, 0.5, 0.3, 0.7]),
    "by column": np.array([[0.3, 0.5, 0.4, 0.6]]),
    "by cell": np.linspace(0.1, 0.8, 16).reshape(4, 4),
}


class InBursts:
    """A model of counts that come in bursts. Estimators do not take a likelihood, so that it overrides ``_model``."""

    def _model(self, spec, sizes, mean_count):
        priors = self._priors(spec, sizes, mean_count)
        return factorization(spec, sizes, priors, likelihood=LIKELIHOODS["bursts"])


class TopicsInBursts(InBursts, cv.TopicModel):
    """Topics of words in bursts."""


class BlocksInBursts(InBursts, cv.BlockModel):
    """Communities of actors who write in bursts."""


@pytest.fixture(autouse=True)
def bursts(monkeypatch):
    likelihood = Bursts()
    monkeypatch.setitem(LIKELIHOODS, likelihood.name, likelihood)
    monkeypatch.setitem(METHODS, "gibbs", type("Bursts", (cv.Gibbs,), {"likelihoods": ("poisson", "bursts")}))
    return likelihood


def parameters(p):
    return (np.array([p]),)


def kernel(report, counts, alpha):
    """P(max(report, 0) | count) of two-sided geometric noise."""
    if report > 0:
        return (1.0 - alpha) / (1.0 + alpha) * alpha ** np.abs(report - counts)
    return alpha**counts / (1.0 + alpha)


def mass(rate, p):
    """P(count | rate) of 3000 counts, by SciPy."""
    return stats.nbinom.pmf(np.arange(3000), rate / -np.log1p(-p), 1.0 - p)


def score(report, rate, alpha, p):
    """log P(max(report, 0) | rate) by adding up."""
    return np.log(mass(rate, p) @ kernel(report, np.arange(3000), alpha))


def small_data(levels, seed=3):
    """4 x 4 reports with a masked cell, and factors."""
    rng = np.random.default_rng(seed)
    mask = np.zeros((4, 4), dtype=bool)
    mask[1, 2] = True
    level = LEVELS[levels] if levels != "by row" else LEVELS[levels][:, None]
    reports = rng.negative_binomial(1.0, 0.3, (4, 4)) + two_sided_geometric(np.broadcast_to(level, (4, 4)), rng)
    data = cv.PrivatizedCounts(reports, LEVELS[levels], mask)
    return data, mask, np.maximum(reports, 0), np.broadcast_to(level, (4, 4)), rng


SPECS = {
    "topics": (parse_spec("dk,vk->dv", names=("theta", "phi")), {"k": 2}),
    "blocks": (
        parse_spec("ic,jd,cd->ij", names=("theta", "again", "middle"), shared={"again": "theta"}),
        {"c": 2, "d": 2},
    ),
}


def small_model(kind):
    spec, ranks = SPECS[kind]
    priors = dict.fromkeys(spec.names, GammaPrior(1.5, 1.5, False))
    return factorization(spec, axis_sizes(spec, (4, 4), ranks), priors, likelihood=LIKELIHOODS["bursts"])


@pytest.fixture(scope="module")
def topics():
    """A fit of topics, and what it was fitted to."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        patch.setitem(LIKELIHOODS, "bursts", Bursts())
        patch.setitem(METHODS, "gibbs", type("Bursts", (cv.Gibbs,), {"likelihoods": ("poisson", "bursts")}))
        rng = np.random.default_rng(3)
        theta, phi = rng.gamma(0.5, 2.0, (SIZE[0], 2)), rng.dirichlet(np.full(SIZE[1], 0.3), 2)
        counts = Bursts().sample(12.0 * theta @ phi + 1e-3, rng, parameters(0.8))
        data = cv.PrivatizedCounts(counts + two_sided_geometric(np.full(SIZE, 0.5), rng), 0.5)
        return TopicsInBursts(2, start="em", prior_shape=0.1, **SHORT).fit(data), data


@pytest.mark.parametrize("p", P)
def test_scores_and_expectations_follow_the_parameter(bursts, p):
    law = law_of(TWO_SIDED_GEOMETRIC, bursts, parameters(p))
    for report, rate, alpha in [(0, 0.7, 0.5), (1, 0.3, 0.1), (3, 2.0, 0.9), (20, 6.0, 0.5)]:
        found = report_scores(law, FIRST, FIRST, np.array([report]), np.array(alpha), np.array([rate]))[0]
        assert found == pytest.approx(score(report, rate, alpha, p), abs=1e-9)
    rates = np.array([0.1, 2.0])
    beyond = 1.0 / 1.5 - np.exp([score(0, rate, 0.5, p) for rate in rates])
    found = positive_beyond_noise(TWO_SIDED_GEOMETRIC, bursts, rates, 0.5, parameters(p))
    np.testing.assert_allclose(found, beyond, rtol=1e-9)


@pytest.mark.parametrize("levels", list(LEVELS))
def test_exposures_of_all_cells_follow_the_parameter(bursts, levels):
    data, mask, reports, level, rng = small_data(levels)
    theta, phi = rng.gamma(1.0, 1.0, (2, 4, 2))
    for p in P:
        law = law_of(data.noise, bursts, parameters(p))
        exposure = np.where(reports > 0, 1.0, bursts.exposure(level, parameters(p)))
        exposure[mask] = 0.0
        np.testing.assert_allclose(row_exposures(data, law, phi, SERIAL), exposure @ phi, rtol=1e-10)
        np.testing.assert_allclose(column_exposures(data, law, theta, SERIAL), exposure.T @ theta, rtol=1e-10)
        links = make_links(data, law, 1)
        dense = np.repeat(links.baseline.exposure_i[:, None], 4, axis=1)
        indptr, actors, _, excess = links.out
        dense[np.repeat(np.arange(4), np.diff(indptr)), actors] += excess
        away = ~np.eye(4, dtype=bool)
        np.testing.assert_allclose(dense[away], exposure[away], rtol=1e-10, atol=1e-15)
        np.testing.assert_allclose(links.loops[:, 0], np.diag(exposure), rtol=1e-10)


@pytest.mark.parametrize("levels", list(LEVELS))
def test_the_log_likelihood_follows_the_parameter(levels):
    data, mask, reports, level, rng = small_data(levels)
    model, factors = small_model("topics"), tuple(rng.gamma(1.0, 1.0, (2, 4, 2)))
    rates = factors[0] @ factors[1].T
    for p in P:
        brute = [score(reports[i], rates[i], level[i], p) for i in np.ndindex(4, 4) if not mask[i]]
        found = log_likelihood(factors, data, model, SERIAL, parameters(p))
        assert found == pytest.approx(sum(brute), abs=1e-8)


def test_the_parameter_is_drawn_from_its_conditional(bursts):
    tally, rng = np.array([40.0, 11.0]), np.random.default_rng(5)
    unseen = Unseen(np.array([0.3, 0.6]), np.array([[9.0], [4.0]]))
    found, value = [], parameters(0.5)
    for _ in range(4000):
        value = bursts.update(value, tally, unseen, rng)
        found.append(value[0][0])
    grid = np.linspace(-6.0, 6.0, 4001)
    log_density = np.array([bursts.log_density(x, tally, unseen) for x in grid])
    cdf = np.cumsum(np.exp(log_density - logsumexp(log_density)))
    logits = np.log(found) - np.log1p(-np.array(found))
    thinned = logits[::4]
    assert stats.kstest(thinned, lambda x: np.interp(x, grid, cdf)).pvalue > FALSE_ALARM
    assert stats.kstest(thinned, lambda x: np.interp(x - 0.2, grid, cdf)).pvalue < FALSE_ALARM


class IgnoresUnseen(Bursts):
    """A fault: the parameter is drawn as if there were no cells without a positive report."""

    def update(self, parameters, tally, unseen, rng):
        return super().update(parameters, tally, Unseen(unseen.ratio, 0.0 * unseen.rate), rng)


def joint_scores(likelihood, kind, level, sweeps=2000):
    """z of means over sweeps, with data drawn anew after each, against the prior's means."""
    model, rng = small_model(kind)._replace(likelihood=likelihood), np.random.default_rng(7)
    mask = np.eye(4, dtype=bool) if kind == "blocks" else None
    factors = tuple(rng.gamma(1.5, 1 / 1.5, factor.shape) for factor in model.factors)
    state = gibbs.State(factors, model.initial_hypers(), 0, (rng.beta(*PRIOR, 1),))
    streams, found = Streams.of_chain(1, 0), []
    for _ in range(sweeps):
        theta, phi = model.matrices(state.factors)
        counts = likelihood.sample(theta @ phi.T, rng, state.parameters)
        noise = two_sided_geometric(np.broadcast_to(level, (4, 4)), rng)
        data = cv.PrivatizedCounts(counts + noise, level, mask)
        state, _ = gibbs.step(state, Plan(data, model), model, streams, SERIAL)
        p, first = state.parameters[0][0], state.factors[0]
        found.append([p, p**2, first.mean(), np.log(first).mean(), state.factors[-1].mean()])
    prior, log_mean = stats.beta(*PRIOR), digamma(1.5) - np.log(1.5)
    expected = [prior.mean(), prior.moment(2), 1.0, log_mean, 1.0]
    return np.abs((np.mean(found, axis=0) - expected) / batch_error(np.array(found)))


@pytest.mark.parametrize(
    ("kind", "level"),
    [("topics", ROWS[None]), ("blocks", ROWS[:, None])],
    ids=["topics, levels by column", "blocks, levels by row"],
)
def test_sweeps_leave_the_joint_law_as_it_is(bursts, kind, level):
    assert joint_scores(bursts, kind, level).max() < bound(5)


def test_a_parameter_that_ignores_unseen_cells_does_not():
    assert joint_scores(IgnoresUnseen(), "topics", ROWS[:, None]).max() > bound(5)


class Remembers(Bursts):
    """Keeps what it was given last."""

    def update(self, parameters, tally, unseen, rng):
        self.unseen = unseen
        return super().update(parameters, tally, unseen, rng)


def test_the_parameter_is_drawn_given_the_new_factors():
    likelihood, (data, _, _, _, rng) = Remembers(), small_data("by row")
    model = small_model("topics")._replace(likelihood=likelihood)
    state = gibbs.State(tuple(rng.gamma(1.0, 1.0, (2, 4, 2))), model.initial_hypers(), 0, parameters(0.5))
    after, _ = gibbs.step(state, Plan(data, model), model, Streams.of_chain(1, 0), SERIAL)
    expected = unseen_rates(model, list(after.factors), data, SERIAL)
    np.testing.assert_array_equal(likelihood.unseen.rate, expected.rate)
    assert after.parameters != state.parameters


def test_a_fit_finds_the_parameter_and_keeps_its_draws(topics, tmp_path):
    fit, data = topics
    draws = fit.posterior["posterior"]["p"]
    assert draws.dims == ("chain", "draw")
    assert draws.quantile(0.005) < 0.8 < draws.quantile(0.995)
    assert 0.005 < float(draws.std()) < 0.1
    assert "p" in fit.diagnostics().table.index
    fit.save(tmp_path / "fit.nc")
    again = TopicsInBursts.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(again.posterior["posterior"]["p"], draws)
    for (_, one), (_, other) in zip(again._reader.draws(), fit._reader.draws(), strict=True):
        np.testing.assert_array_equal(one[0], other[0])
    cells = np.zeros(SIZE, dtype=bool)
    cells[0] = True
    np.testing.assert_array_equal(again.log_predictive(data, cells), fit.log_predictive(data, cells))
    new = data.take(np.arange(4))
    np.testing.assert_array_equal(again.transform(new), fit.transform(new))


def test_scores_of_a_fit_are_each_draws_own(topics):
    fit, data = topics
    cells = np.zeros(SIZE, dtype=bool)
    cells[:2, :5] = True
    found = fit.log_likelihood(data, cells).to_numpy().reshape(-1, 10)
    reports, _ = data.cells(*np.nonzero(cells))
    draws = list(fit._reader.draws())
    for s in (0, 17, 119):
        (theta, phi), ((p,),) = draws[s]
        rates = (theta @ phi.T)[cells]
        brute = [score(r, rate, 0.5, p) for r, rate in zip(reports, rates, strict=True)]
        np.testing.assert_allclose(found[s], brute, atol=1e-8)


def test_simulated_reports_are_of_each_draws_own_law(topics):
    fit, data = topics
    simulated = fit.predict_reports(400, np.random.default_rng(1))
    means = [fit.model_.likelihood.mean(theta @ phi.T, own).sum() for (theta, phi), own in fit._reader.draws()]
    by_noise = data.noise.mean_at_zero(0.5) * np.prod(SIZE)
    total = simulated.sum(("doc", "word")).to_numpy()
    assert np.mean(means) < total.mean() < np.mean(means) + 1.2 * by_noise
    assert total.std() > 1.5 * np.sqrt(total.mean())  # far more than that of Poisson counts
    seen = noise_alone(fit, data)
    assert seen.sum_of_rates == pytest.approx(np.mean(means), rel=0.1)
    assert all(each.verdict for each in check(fit, data).statistics)


def test_laws_of_true_counts_are_averages_over_the_parameter(topics):
    likelihood, rates = Bursts(), np.array([[0.5, 3.0], [1.0, 2.0]])
    reports, level = np.array([2, 0]), np.array([0.5, 0.9])
    found = laws_by_draws(reports, rates, TWO_SIDED_GEOMETRIC, level, likelihood, [parameters(p) for p in P])
    for i, (report, law) in enumerate(zip(reports, found, strict=True)):
        weights = [
            mass(rate[i], p) * kernel(report, np.arange(3000), level[i]) for rate, p in zip(rates, P, strict=True)
        ]
        expected = np.mean([each / each.sum() for each in weights], axis=0)
        np.testing.assert_allclose(law, expected[: law.size], rtol=1e-8, atol=1e-14)


def test_new_rows_are_projected_with_each_draws_parameter(topics):
    """Rows without a positive report have prior shape and exposures, whatever else: a mean that is known."""
    fit, _ = topics
    empty = cv.PrivatizedCounts(np.zeros((40, SIZE[1]), dtype=int), 0.5)
    draws = fit.posterior["posterior"]
    rates = draws["theta_rate"].to_numpy().reshape(-1, 2)
    means = []
    for rate, ((_, phi), own) in zip(rates, fit._reader.draws(), strict=False):
        exposure = fit.model_.likelihood.exposure(0.5, own) * phi.sum(axis=0)
        means.append(fit.model_.likelihood.mean(1.0, own) * fit.prior_shape / (rate + exposure))
    found, expected = fit.transform(empty).mean(axis=0), np.mean(means, axis=0)
    error = np.sqrt(np.square(means).mean(axis=0) / fit.prior_shape / (40 * 5 * len(means)))
    assert np.abs((found - expected) / error).max() < stats.norm.isf(FALSE_ALARM / 4)


def test_a_factor_cannot_have_the_name_of_a_parameter(bursts):
    spec = parse_spec("dk,vk->dv", names=("theta", "p"))
    priors = dict.fromkeys(spec.names, GammaPrior(1.5, 1.5, False))
    with pytest.raises(ValueError, match=r"names of factors must differ .* \['p'\], got \['theta', 'p'\]"):
        factorization(spec, axis_sizes(spec, (4, 4), {"k": 2}), priors, likelihood=bursts)


@pytest.mark.parametrize("model", [TopicsInBursts, BlocksInBursts])
def test_a_checkpoint_keeps_the_parameter(model, tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    data = cv.PrivatizedCounts(rng.negative_binomial(0.5, 0.2, (9, 9)), 0.4)
    options = SHORT | {"draws": 6, "tune": 4, "start": "em"}
    whole = fitted(model(2, **options), data)
    monkeypatch.setattr("countveil.inference.checkpoint.fingerprint", lambda *_: "the same")
    path = tmp_path / "chains.npz"
    fitted(model(2, **options | {"draws": 2}), data, checkpoint=path)
    with np.load(path) as stored:
        content = dict(stored)
    for name, values in content.items():
        if "_draws" in name:
            assert len(values) == 2
    resumed = fitted(model(2, **options), data, checkpoint=path, resume=True)
    for name in ("p", "theta"):
        one, other = (each.posterior["posterior"][name].to_numpy() for each in (whole, resumed))
        np.testing.assert_array_equal(one, other)
