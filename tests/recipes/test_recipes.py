"""The recipes of CONTRIBUTING hold: a toy of each kind, one file and one line in a table, fits as the others do."""

from fractions import Fraction

import numpy as np
import pytest
from numba import njit
from scipy import stats

import countveil as cv
from countveil.data.observations import Observations
from countveil.inference.methods import METHODS
from countveil.inference.plan import Plan
from countveil.inference.scoring import report_scores
from countveil.kernels.law import expected_ratio
from countveil.laws.counts import LIKELIHOODS, POISSON
from countveil.laws.counts.laws import law_of
from countveil.laws.noise import NOISES, TWO_SIDED_GEOMETRIC
from countveil.models.factorization import factorization
from countveil.models.priors import PRIORS, Conditional
from countveil.privacy.mechanisms import MECHANISMS
from countveil.report import write_report
from tests.count_laws import laws_by_draws
from tests.joint import FALSE_ALARM, SERIAL, fitted
from tests.recipes import two_sweeps
from tests.recipes.lognormal import LogNormalPrior
from tests.recipes.pairs import Pairs
from tests.recipes.thinning import ThinningNoise
from tests.recipes.thinning_mechanism import Thinning

pytestmark = pytest.mark.long

FIRST = np.zeros(1, dtype=np.int64)
SHORT = {"likelihood": "poisson", "draws": 100, "tune": 60, "chains": 2, "seed": 1, "threads": 1}
SHORTER = SHORT | {"draws": 50, "tune": 50}
SIZE, K = (40, 12), 2


@njit
def ratio_of(law, report, rate, level):
    return expected_ratio(law, report, rate, level)


def planted(scale, seed=3):
    """(rates, a generator) of a small matrix of two topics."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.gamma(0.5, 2.0, (SIZE[0], K)), rng.dirichlet(np.full(SIZE[1], 0.3), K)
    return scale * theta @ phi + 1e-3, rng


def brute(law_of_count, kernel, report, rate):
    """(log P(report), E[count]) by adding up over 400 counts."""
    counts = np.arange(400)
    weights = np.exp(law_of_count(counts, rate)) * kernel(report, counts)
    return np.log(weights.sum()), weights @ counts / weights.sum()


# a mechanism -----------------------------------------------------------------------------------------------------


@pytest.fixture
def thinning(monkeypatch):
    noise = ThinningNoise()
    monkeypatch.setitem(NOISES, noise.mechanism, noise)
    monkeypatch.setitem(MECHANISMS, Thinning.name, Thinning)
    return noise


@pytest.mark.parametrize("loss", [0.1, 0.5, 0.9])
def test_a_mechanism_has_the_law_of_its_reports(thinning, loss):
    law = law_of(thinning, POISSON)
    for report, rate in [(0, 0.3), (1, 1e-6), (3, 2.0), (7, 0.5), (20, 60.0)]:
        score = report_scores(law, FIRST, FIRST, np.array([report]), np.array(loss), np.array([rate]))[0]
        assert score == pytest.approx(stats.poisson.logpmf(report, (1 - loss) * rate), abs=1e-9)
        if report > 0:
            expected = (report + loss * rate) / rate  # what was lost is Poisson, whatever was reported
            assert ratio_of(law, report, rate, loss) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("method", ["gibbs", "em"])
def test_a_mechanism_fits(thinning, method):
    rates, rng = planted(60.0)
    losses = rng.uniform(0.2, 0.6, SIZE[0])
    reports = thinning.sample(rng.poisson(rates), losses[:, None], rng)
    data = Observations(reports, losses, rng.random(SIZE) < 0.1, noise=thinning)
    assert "loss from 0.2" in repr(data)
    fit = fitted(cv.TopicModel(K, method=method, **SHORT), data)
    naive = fitted(cv.TopicModel(K, method=method, **SHORT), cv.ExactCounts(np.maximum(reports, 0)))
    found, wrong = (abs(float(each.rate().sum()) / rates.sum() - 1.0) for each in (fit, naive))
    assert found < 0.1 < wrong
    assert fit.posterior["constant_data"]["loss"].sizes["doc"] == SIZE[0]
    simulated = fit.predict_reports(50, np.random.default_rng(1)).sum(("doc", "word")).to_numpy()
    inside = ~(data.cells(*np.indices(SIZE).reshape(2, -1))[0] < 0).reshape(SIZE)
    assert simulated.mean() * inside.mean() == pytest.approx(reports[inside].sum(), rel=0.1)


def thinned_release(thinning, rows=slice(None)):
    """(true rates, a release of their counts, each row with a loss of its own)."""
    rates, rng = planted(60.0)
    losses = [Fraction(int(n), 100) for n in rng.integers(20, 60, SIZE[0])]
    reports = thinning.sample(rng.poisson(rates), np.array(losses, dtype=float)[:, None], rng)
    made = [Thinning(loss) for loss in losses]
    return rates[rows], cv.Release(reports[rows], made[rows], truncated=False)


def test_a_release_of_a_mechanism_fits_from_memory_and_from_files(thinning, tmp_path):
    rates, release = thinned_release(thinning)
    fit = fitted(cv.TopicModel(K, **SHORTER), release)
    assert abs(float(fit.rate().sum()) / rates.sum() - 1.0) < 0.1
    losses = [float(each.loss) for each in release.mechanism]
    np.testing.assert_array_equal(fit.posterior["constant_data"]["loss"], losses)
    for name, rows in (("a", slice(None, 15)), ("b", slice(15, None))):
        thinned_release(thinning, rows)[1].save(tmp_path / f"{name}.npz")
    files = cv.ReleaseFiles(tmp_path)
    assert files.noise is thinning
    again = fitted(cv.TopicModel(K, **SHORTER), files)
    np.testing.assert_array_equal(again.posterior["posterior"]["phi"], fit.posterior["posterior"]["phi"])
    batches = fitted(cv.TopicModel(K, method=cv.SVI(passes=20, batch_rows=10), seed=1), files)
    assert abs(float(batches.rate().sum()) / rates.sum() - 1.0) < 0.1


def test_a_release_of_a_mechanism_has_a_report_page(thinning, tmp_path):
    _, release = thinned_release(thinning)
    fit = fitted(cv.TopicModel(K, **SHORTER), release)
    fit.save(tmp_path / "fit.nc")
    again = cv.TopicModel.load(tmp_path / "fit.nc")
    assert "loss from 0.2" in again._repr_html_inner()
    for given in (None, release):
        write_report(again, tmp_path / "page.html", given)
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "mechanism thinning, which states no level of privacy" in page
        assert "noise parameter loss" in page
        assert "alpha" not in page.replace("alpha=None", "")
        assert ("Every unit of a count is lost" in page) == (given is release)
    other = cv.Release(release.reports, [*release.mechanism[1:], release.mechanism[0]], truncated=False)
    with pytest.raises(ValueError, match=r"with loss [\d.]+ in row 0, got [\d.]+ in row 0"):
        write_report(again, tmp_path / "page.html", other)
    other = cv.Release(release.reports, cv.PrivacyLevel(1, 1), truncated=False)
    with pytest.raises(ValueError, match="with the mechanism thinning, got two-sided geometric"):
        write_report(again, tmp_path / "page.html", other)


@pytest.mark.parametrize("size", [3, 40, 1000])
def test_the_true_counts_behind_reports_of_a_mechanism_have_their_law(thinning, size):
    report, rate = np.array([size]), np.array([[float(size)]])
    law = laws_by_draws(report, rate, thinning, np.array([0.75]), POISSON)[0]
    lost = np.arange(law.size) - size  # which is Poisson, whatever was reported
    np.testing.assert_allclose(law, stats.poisson.pmf(lost, 0.75 * size), atol=1e-9)


def test_rows_of_two_mechanisms_are_refused_in_words(thinning, tmp_path):
    stated = [Thinning(Fraction(1, 2)), cv.PrivacyLevel(1, 1)]
    release = cv.Release(np.ones((2, 3), dtype=int), stated, truncated=False)
    message = r"same mechanism in all rows, got \['thinning', 'two-sided geometric'\]"
    with pytest.raises(ValueError, match=message):
        cv.TopicModel(K, **SHORT).fit(release)
    for name, each in zip("ab", stated, strict=True):
        cv.Release(np.ones((2, 3), dtype=int), each, truncated=False).save(tmp_path / f"{name}.npz")
    with pytest.raises(ValueError, match=r"reports of one mechanism, got two-sided geometric in .*b\.npz"):
        cv.ReleaseFiles(tmp_path)


def test_a_mechanism_that_has_no_line_in_the_table_is_refused_in_words(tmp_path):
    rates, rng = planted(20.0)
    noise = ThinningNoise()
    data = Observations(noise.sample(rng.poisson(rates), 0.3, rng), 0.3, noise=noise)
    with pytest.raises(ValueError, match=r"mechanism must be one of \['two-sided geometric'\], got 'thinning'"):
        fitted(cv.TopicModel(K, **SHORTER), data).predict_reports(1, rng)


# a likelihood ----------------------------------------------------------------------------------------------------


class TopicsInPairs(cv.TopicModel):
    """Topics of counts in pairs."""

    def _model(self, spec, sizes, mean_count):
        priors = self._priors(spec, sizes, 0.5 * mean_count)
        return factorization(spec, sizes, priors, likelihood=LIKELIHOODS["pairs"])


@pytest.fixture
def pairs(monkeypatch):
    likelihood = Pairs()
    monkeypatch.setitem(LIKELIHOODS, likelihood.name, likelihood)
    for name in ("gibbs",):
        monkeypatch.setitem(METHODS, name, type("Pairs", (METHODS[name],), {"likelihoods": ("poisson", "pairs")}))
    return likelihood


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_a_likelihood_has_the_law_of_its_reports(pairs, alpha):
    law = law_of(TWO_SIDED_GEOMETRIC, pairs)
    for report, rate in [(1, 0.3), (2, 1e-6), (3, 2.0), (7, 0.5), (20, 30.0)]:
        kernel = lambda r, y: (1 - alpha) / (1 + alpha) * alpha ** np.abs(r - y)  # noqa: E731
        score, mean = brute(pairs.log_mass, kernel, report, rate)
        assert report_scores(law, FIRST, FIRST, np.array([report]), np.array(alpha), np.array([rate])) == pytest.approx(
            score
        )
        assert ratio_of(law, report, rate, alpha) == pytest.approx(0.5 * mean / rate, rel=1e-9)
    none = report_scores(law, FIRST, FIRST, np.array([0]), np.array(alpha), np.array([0.7]))[0]
    kernel = lambda r, y: alpha**y / (1 + alpha)  # noqa: E731
    assert none == pytest.approx(brute(pairs.log_mass, kernel, 0, 0.7)[0])


def test_a_likelihood_fits(pairs):
    rates, rng = planted(60.0)
    noise = rng.geometric(0.5, SIZE) - rng.geometric(0.5, SIZE)
    reports = pairs.sample(rates, rng) + noise
    fit = fitted(TopicsInPairs(K, **SHORT), cv.PrivatizedCounts(reports, 0.5))
    assert float(fit.rate().sum()) == pytest.approx(2.0 * rates.sum(), rel=0.1)
    assert fit.model_.likelihood is pairs
    simulated = fit.predict_reports(50, np.random.default_rng(1)).sum(("doc", "word"))
    assert float(simulated.mean()) == pytest.approx(np.maximum(reports, 0).sum(), rel=0.1)


def test_a_method_that_does_not_take_a_likelihood_says_so(pairs):
    model = TopicsInPairs(K, method="bessel-cavi", **SHORT)
    message = r"likelihood must be one of \['poisson'\] for method 'bessel-cavi', got 'pairs'"
    with pytest.raises(ValueError, match=message):
        model.fit(cv.PrivatizedCounts(np.ones(SIZE, dtype=int), 0.5))


# a prior ---------------------------------------------------------------------------------------------------------


class TopicsOfLogNormals(cv.TopicModel):
    """Topics whose documents have log-normal amounts of them."""

    def _model(self, spec, sizes, mean_count):
        priors = self._priors(spec, sizes, mean_count)
        return factorization(spec, sizes, {**priors, "theta": LogNormalPrior(0.0, 1.0)})


@pytest.fixture
def lognormal(monkeypatch):
    monkeypatch.setitem(PRIORS, "log-normal", LogNormalPrior)


def test_a_prior_draws_its_conditional(lognormal):
    prior, rng = LogNormalPrior(0.5, 0.8), np.random.default_rng(5)
    count, exposure, value = np.full(4000, 3.0), np.full(4000, 1.7), np.ones(4000)
    for _ in range(30):
        given = Conditional(1.0, value, count, exposure)
        value, _ = prior.draw(None, None, given, rng)
    grid = np.linspace(-4.0, 4.0, 4001)
    density = np.exp(prior.log_density(grid, 3.0, 1.7))
    cdf = np.cumsum(density) / density.sum()
    p = stats.kstest(np.log(value), lambda x: np.interp(x, grid, cdf)).pvalue
    assert p > FALSE_ALARM
    assert stats.kstest(np.log(value), lambda x: np.interp(x - 0.2, grid, cdf)).pvalue < FALSE_ALARM


def test_a_prior_leaves_the_joint_law_as_it_is(lognormal):
    """Data drawn anew after every sweep: the factors keep their prior's law."""
    from countveil.inference import gibbs
    from countveil.inference.streams import Streams
    from countveil.models.einsum import axis_sizes, parse_spec
    from countveil.models.priors import GammaPrior

    spec, prior = parse_spec("dk,vk->dv", names=("theta", "phi")), LogNormalPrior(-0.5, 0.6)
    model = factorization(
        spec, axis_sizes(spec, (4, 3), {"k": 2}), {"theta": prior, "phi": GammaPrior(1.5, 1.5, False)}
    )
    assert model.fused_factor is None
    rng, found = np.random.default_rng(7), []
    for chain in range(300):
        theta = np.exp(rng.normal(prior.mean, prior.spread, (4, 2)))
        state = gibbs.State((theta, rng.gamma(1.5, 1 / 1.5, (3, 2))), model.initial_hypers(), 0)
        for _ in range(6):
            counts = rng.poisson(state.factors[0] @ state.factors[1].T)
            reports = counts + rng.geometric(0.5, counts.shape) - rng.geometric(0.5, counts.shape)
            data = cv.PrivatizedCounts(reports, 0.5)
            state, _ = gibbs.step(state, Plan(data, model), model, Streams.of_chain(1, chain), SERIAL)
        found.append(np.log(state.factors[0]).ravel())
    z = (np.ravel(found) - prior.mean) / prior.spread
    assert stats.kstest(z, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(z + 0.2, "norm").pvalue < FALSE_ALARM


@pytest.mark.parametrize("method", ["gibbs", "augmented-gibbs"])
def test_a_prior_fits(lognormal, tmp_path, method):
    rates, rng = planted(60.0)
    reports = rng.poisson(rates) + rng.geometric(0.5, SIZE) - rng.geometric(0.5, SIZE)
    fit = fitted(TopicsOfLogNormals(K, method=method, **SHORT), cv.PrivatizedCounts(reports, 0.5))
    assert float(fit.rate().sum()) == pytest.approx(rates.sum(), rel=0.1)
    assert "theta_rate" not in fit.posterior["posterior"]
    fit.save(tmp_path / "fit.nc")
    again = TopicsOfLogNormals.load(tmp_path / "fit.nc")
    assert again.model_.factors[0].prior == fit.model_.factors[0].prior


def test_a_method_that_cannot_treat_a_prior_says_so(lognormal):
    model = TopicsOfLogNormals(K, method="cavi", **SHORT)
    with pytest.raises(ValueError, match=r"independent gammas for method 'cavi', got one of kind 'log-normal'"):
        model.fit(cv.PrivatizedCounts(np.ones(SIZE, dtype=int), 0.5))


# an algorithm ----------------------------------------------------------------------------------------------------


def test_an_algorithm_fits(monkeypatch, tmp_path):
    monkeypatch.setitem(METHODS, "two-sweeps", two_sweeps.TwoSweeps)
    rates, rng = planted(10.0)
    data = cv.PrivatizedCounts(rng.poisson(rates) + rng.geometric(0.5, SIZE) - rng.geometric(0.5, SIZE), 0.5)
    options = SHORT | {"draws": 20, "tune": 10}
    fit = fitted(cv.TopicModel(K, method="two-sweeps", **options), data)
    thinned = fitted(cv.TopicModel(K, method=cv.Gibbs(moves=0, thin=2), **options | {"tune": 20}), data)
    for name in ("theta", "phi", "theta_rate"):
        one, other = (each.posterior["posterior"][name].to_numpy() for each in (fit, thinned))
        np.testing.assert_array_equal(one, other)
    resumed = cv.TopicModel(K, method="two-sweeps", **options)
    for resume in (False, True):
        fitted(resumed, data, checkpoint=tmp_path / "chains.npz", resume=resume)
    np.testing.assert_array_equal(resumed.posterior["posterior"]["phi"], fit.posterior["posterior"]["phi"])


def test_an_algorithm_without_a_line_in_the_table_is_refused_in_words():
    with pytest.raises(ValueError, match=r"method must be one of .*'gibbs'.* got 'two-sweeps'"):
        cv.TopicModel(K, method="two-sweeps").fit(cv.ExactCounts(np.ones(SIZE, dtype=int)))
