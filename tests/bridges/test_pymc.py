import doctest
import importlib
import itertools
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ, which PyMC imports, announces its next version
    import pymc as pm
import pytensor
import pytensor.tensor as pt
from scipy import stats

import countveil as cv
import countveil.bridges.pymc
from countveil.bridges.pymc import PrivatizedNegativeBinomial, PrivatizedPoisson, negative_binomial_score, poisson_score
from tests import reference
from tests.pages import run_sections
from tests.strangers import ROOT, open_folder, run

pytestmark = pytest.mark.long

REPORTS, RATES = np.array([-7, 0, 1, 3, 30, 1000]), np.array([1e-6, 0.01, 2.5, 30.0, 1e3, 1e6])


SHORTER = "draws=1000, tune=500", "draws=150, tune=200"  # chains


MODES = [("FAST_RUN", True), ("FAST_COMPILE", False), ("NUMBA", False)]  # and whether reports are truncated


def compiled(reports, alpha, mode=None, truncated=False, rates=None):
    """rate -> (log-probability of each report, derivative of their sum in each rate)."""
    rate = pt.tensor("rate", dtype="float64", shape=(rates,))
    score = pm.logp(PrivatizedPoisson.dist(rate, alpha, truncated=truncated), reports)
    return pytensor.function([rate], [score, pytensor.grad(score.sum(), rate)], mode=mode)


def test_logp_and_gradient_are_the_sums_over_all_counts():
    r, m, alpha = (x.ravel() for x in np.meshgrid(REPORTS, RATES, [0.01, 0.7, 0.999]))
    score, slope = compiled(r, alpha)(m)
    cases = [(int(a), b, c) for a, b, c in zip(r, m, alpha, strict=True)]
    exact = [reference.report_logpmf(*case) for case in cases]
    assert max(map(reference.relative_error, score, exact)) < 1e-12
    ratios = [reference.expected_count(*case) / case[1] for case in cases]
    assert max(map(reference.relative_error, slope + 1, ratios)) < 1e-9


@pytest.mark.parametrize(("mode", "truncated"), MODES)
def test_every_mode_of_pytensor_gives_the_same(mode, truncated):
    rng = np.random.default_rng(1)
    reports, rate = rng.integers(0 if truncated else -5, 30, 200), rng.gamma(1.0, 10.0, 200)
    alpha = rng.uniform(0.01, 0.99, 200)
    score, slope = compiled(reports, alpha, mode, truncated)(rate)
    np.testing.assert_allclose(score, cv.log_likelihood(reports, rate, alpha, truncated), rtol=1e-13)
    expected = cv.expected_true_counts(reports, rate, alpha) / rate - 1
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-14)


def test_gradient_by_finite_differences_sums_over_what_was_broadcast():
    reports, rate, h = np.arange(-3, 9), np.array([2.0]), 1e-5
    evaluate = compiled(reports, 0.6, rates=1)
    (up, _), (down, _), (_, slope) = (evaluate(x) for x in (rate + h, rate - h, rate))
    assert up.shape == reports.shape
    assert slope.shape == (1,)
    assert slope[0] == pytest.approx((up - down).sum() / (2 * h), rel=1e-7)


def test_rates_off_the_map_end():
    slope_of = countveil.bridges.pymc.SLOPE.impl
    score_of = countveil.bridges.pymc.SCORE.impl
    assert score_of(3, np.inf, 0.5) == -np.inf
    assert np.isnan(score_of(3, np.nan, 0.5))
    assert np.isnan(slope_of(3, np.inf, 0.5))
    assert slope_of(3, 0.0, 0.5) == 1.0
    assert slope_of(3, 0.0, 0.0) == np.inf
    assert slope_of(-2, 1.0, 0.25) == -0.75


def test_without_noise_it_is_the_poisson_distribution():
    counts = np.arange(30)
    score, slope = compiled(counts, 0.0, rates=1)(np.array([4.0]))
    np.testing.assert_allclose(score, stats.poisson.logpmf(counts, 4.0), rtol=1e-12)
    assert slope[0] == pytest.approx((counts / 4.0 - 1.0).sum())
    assert pm.logp(PrivatizedPoisson.dist(4.0, 0.0), -1).eval() == -np.inf
    assert (pm.draw(PrivatizedPoisson.dist(4.0, 0), 50, random_seed=1) >= 0).all()


@pytest.mark.parametrize(("rate", "alpha"), [(0.3, 0.3), (2.0, 0.8)])
def test_draws_follow_the_law(rate, alpha):
    law = cv.distributions.PrivatizedPoisson(rate, alpha)
    draws = pm.draw(PrivatizedPoisson.dist(rate, alpha, shape=40_000), random_seed=3)
    assert draws.dtype == np.int64
    support = np.arange(draws.min() - 50, draws.max() + 50)
    assert reference.chi_square_p_value(draws, support[0], law.pmf(support)) > 1e-3
    other = cv.distributions.PrivatizedPoisson(rate, 0.95 * alpha).pmf(support)  # the negative control
    assert reference.chi_square_p_value(draws, support[0], other) < 1e-4
    truncated = pm.draw(PrivatizedPoisson.dist(rate, alpha, truncated=True, shape=40_000), random_seed=3)
    assert (truncated == np.maximum(draws, 0)).all()


def test_truncated_law():
    r = np.arange(-2, 400)
    mass = np.exp(pm.logp(PrivatizedPoisson.dist(2.0, 0.8, truncated=True), r).eval())
    assert mass[:2].tolist() == [0.0, 0.0]
    assert mass.sum() == pytest.approx(1.0, rel=1e-12)


def test_shapes():
    law = PrivatizedPoisson.dist(np.ones((4, 1)), np.array([0.1, 0.5, 0.9]))
    assert pm.draw(law).shape == (4, 3)
    assert pm.draw(law, 7).shape == (7, 4, 3)
    assert pm.logp(law, np.zeros((4, 3), int)).eval().shape == (4, 3)
    assert pm.draw(PrivatizedPoisson.dist(1, 0.5, shape=(2, 5))).shape == (2, 5)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\), got 1.0"):
        PrivatizedPoisson.dist(1.0, 1.0)
    with pytest.raises(pm.logprob.utils.ParameterValueError, match="rate must be non-negative"):
        pm.logp(PrivatizedPoisson.dist(-1.0, 0.5), 3).eval()
    alpha = pt.dscalar("alpha")
    score = pm.logp(PrivatizedPoisson.dist(1.0, alpha), 3)
    with pytest.raises(pytensor.gradient.NullTypeGradError, match="noise level are known"):
        pytensor.grad(score, alpha)


def test_without_pymc_the_error_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "countveil.bridges.pymc")
    monkeypatch.setitem(sys.modules, "pymc", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[pymc\]'"):
        importlib.import_module("countveil.bridges.pymc")


def test_regression_covers_the_slope_and_the_naive_one_does_not(capsys):
    found = run_sections("regression.md", SHORTER, "The data", "PyMC")
    covers = {}
    for name, slope in found["slopes"].items():
        low, high = np.quantile(slope, [0.025, 0.975])
        covers[name] = bool(low < 1.0 < high)
    assert covers == {"private": True, "naive": False}
    assert "naive" in capsys.readouterr().out


def test_predictive_draws_in_a_model():
    with pm.Model(coords={"person": range(6)}) as model:
        rate = pm.Gamma("rate", 2.0, 1.0)
        PrivatizedPoisson("r", rate, 0.5, observed=[3, -1, 0, 2, 4, 1], dims="person")
        prior = pm.sample_prior_predictive(draws=20, random_seed=1)
    assert model["r"].owner is not None
    assert prior["prior_predictive"]["r"].shape == (1, 20, 6)
    score = model.compile_logp()({"rate_log__": np.log(1.5)})
    expected = cv.log_likelihood([3, -1, 0, 2, 4, 1], 1.5, 0.5).sum()
    jacobian = np.log(1.5)
    assert score == pytest.approx(expected + np.log(1.5 * np.exp(-1.5)) + jacobian, rel=1e-12)


def test_without_a_home_directory_the_remedy_is_named():
    with open_folder() as folder:
        code = "import countveil.bridges.pymc"
        found = run(code, ROOT / "src", folder, HOME="/nonexistent", NUMBA_CACHE_DIR=os.environ["NUMBA_CACHE_DIR"])
    assert found.returncode == 1
    last = found.stderr.strip().splitlines()[-1]
    assert "PyMC keeps files in the home directory: set HOME to a folder that you can write to" in last


MEANS, CONCENTRATIONS = np.array([1e-6, 0.3, 4.0, 90.0]), np.array([1e-3, 0.7, 20.0, 1e6])


def bursty(reports, alpha, mode=None, truncated=False):
    """(mean, concentration) -> (log-probability of each report, derivatives of their sum in both)."""
    mean, concentration = (pt.tensor(name, dtype="float64", shape=(None,)) for name in ("mean", "concentration"))
    law = PrivatizedNegativeBinomial.dist(mean, concentration, alpha, truncated=truncated)
    score = pm.logp(law, reports)
    slopes = pytensor.grad(score.sum(), [mean, concentration])
    return pytensor.function([mean, concentration], [score, *slopes], mode=mode)


def exactly(reports, mean, concentration, alpha, truncated=False):
    """The same scores by ``countveil.log_likelihood``."""
    rate, p = concentration * np.log1p(mean / concentration), mean / (mean + concentration)
    return cv.log_likelihood(reports, rate, alpha, truncated, likelihood="negative-binomial", dispersion=p)


@pytest.mark.parametrize(("mode", "truncated"), MODES)
def test_bursty_scores_and_gradients_are_exact_in_every_mode(mode, truncated):
    cases = itertools.product([0, 1, 3, 30, 400] if truncated else REPORTS[:-1], MEANS, CONCENTRATIONS)
    reports, mean, concentration = (np.array(x) for x in zip(*cases, strict=True))
    reports = reports.astype(int)
    alpha = np.where(np.arange(reports.size) % 2, 0.3, 0.9)
    score, in_mean, in_concentration = bursty(reports, alpha, mode, truncated)(mean, concentration)
    np.testing.assert_allclose(score, exactly(reports, mean, concentration, alpha, truncated), rtol=1e-9, atol=1e-9)
    h = 1e-5
    for slope, up, down in (
        (in_mean * mean, (mean * (1 + h), concentration), (mean * (1 - h), concentration)),
        (in_concentration * concentration, (mean, concentration * (1 + h)), (mean, concentration * (1 - h))),
    ):
        found = (exactly(reports, *up, alpha, truncated) - exactly(reports, *down, alpha, truncated)) / (2 * h)
        np.testing.assert_allclose(slope, found, rtol=1e-5, atol=1e-6)


def test_bursty_scores_at_the_ends():
    score, mean_slope, slope = (
        op.impl for op in (countveil.bridges.pymc.BURSTY_SCORE, *countveil.bridges.pymc.BURSTY_SCORE.slopes)
    )
    assert score(3, np.inf, 1.0, 0.5) == -np.inf
    for values in ((3, np.nan, 1.0, 0.5), (3, 1.0, 0.0, 0.5), (3, -1.0, 1.0, 0.5), (3, 1.0, 1.0, 1.0)):
        assert np.isnan([score(*values), mean_slope(*values), slope(*values)]).all()
    assert score(3, 2.0, 1e300, 0.5) == pytest.approx(cv.log_likelihood(3, 2.0, 0.5), rel=1e-12)
    assert np.isfinite([score(3, 1e9, 1e-300, 0.5), mean_slope(3, 1e-300, 1.0, 0.5)]).all()
    without = pm.logp(PrivatizedNegativeBinomial.dist(4.0, 1.5, 0.0), np.arange(-1, 20)).eval()
    np.testing.assert_allclose(without, stats.nbinom.logpmf(np.arange(-1, 20), 1.5, 1.5 / 5.5), rtol=1e-12)


def test_bursty_draws_follow_the_law():
    mean, concentration, alpha = 3.0, 0.6, 0.7
    p = mean / (mean + concentration)
    law = cv.distributions.PrivatizedNegativeBinomial(concentration * np.log1p(mean / concentration), p, alpha)
    draws = pm.draw(PrivatizedNegativeBinomial.dist(mean, concentration, alpha, shape=40_000), random_seed=3)
    support = np.arange(draws.min() - 50, draws.max() + 50)
    assert reference.chi_square_p_value(draws, support[0], law.pmf(support)) > 1e-3
    other = cv.distributions.PrivatizedPoisson(mean, alpha).pmf(support)  # the negative control
    assert reference.chi_square_p_value(draws, support[0], other) < 1e-4
    truncated = PrivatizedNegativeBinomial.dist(mean, concentration, alpha, truncated=True, shape=40_000)
    assert (pm.draw(truncated, random_seed=3) == np.maximum(draws, 0)).all()
    truncated = PrivatizedNegativeBinomial.dist(mean, concentration, alpha, truncated=True)
    mass = np.exp(pm.logp(truncated, np.arange(-3, 1000)).eval())
    assert mass.sum() == pytest.approx(1.0, rel=1e-9)


def test_bursty_parameters_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\), got 1.0"):
        PrivatizedNegativeBinomial.dist(1.0, 1.0, 1.0)
    with pytest.raises(pm.logprob.utils.ParameterValueError, match="concentration must be positive"):
        pm.logp(PrivatizedNegativeBinomial.dist(1.0, 0.0, 0.5), 3).eval()
    alpha = pt.dscalar("alpha")
    score = pm.logp(PrivatizedNegativeBinomial.dist(1.0, 1.0, alpha), 3)
    with pytest.raises(pytensor.gradient.NullTypeGradError, match="noise level are known"):
        pytensor.grad(score, alpha)


def test_a_regression_on_private_bursty_counts_covers_the_truth():
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.0, 1.0, 200)
    mean, concentration = np.exp(1.0 + 1.0 * x), 0.8
    counts = rng.negative_binomial(concentration, concentration / (mean + concentration))
    reports = counts + cv.distributions.TwoSidedGeometric(0.6).rvs(200, rng)
    with pm.Model():
        intercept, slope = pm.Normal("intercept", 0.0, 2.0), pm.Normal("slope", 0.0, 2.0)
        size = pm.LogNormal("concentration", 0.0, 1.5)
        PrivatizedNegativeBinomial("r", pm.math.exp(intercept + slope * x), size, 0.6, observed=reports)
        found = pm.sample(draws=150, tune=200, chains=2, cores=1, random_seed=1, progressbar=False)
    for name, truth in {"intercept": 1.0, "slope": 1.0, "concentration": 0.8}.items():
        low, high = np.quantile(found.posterior[name].to_numpy(), [0.01, 0.99])
        assert low < truth < high, name
    assert found.posterior["slope"].std() < 0.4


def test_examples_run():
    assert doctest.testmod(countveil.bridges.pymc).failed == 0


HIDES = cv.mechanisms.Suppression(10)
HIDDEN = np.array([[np.nan, 0.0], [12.0, np.nan]])


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_scores_of_any_mechanism_and_their_slopes(mode):
    rate, s = pt.dvector("rate"), pt.dscalar("s")
    score = poisson_score(HIDDEN, rate, HIDES)
    evaluate = pytensor.function([rate], [score, pytensor.grad(score.sum(), rate)], mode=mode)
    rates = np.array([0.5, 8.0])
    found, slopes = evaluate(rates)
    np.testing.assert_allclose(found, cv.log_likelihood(HIDDEN, rates, mechanism=HIDES), rtol=1e-13)
    expected = cv.expected_true_counts(HIDDEN, rates, mechanism=HIDES) / rates - 1.0
    np.testing.assert_allclose(slopes, expected.sum(axis=0), rtol=1e-12)
    bursty = negative_binomial_score(HIDDEN, rate, s, HIDES).sum()
    evaluate = pytensor.function([rate, s], [bursty, pytensor.grad(bursty, s)], mode=mode)
    (up, _), (down, _), (_, slope) = (evaluate(rates, at) for at in (0.70001, 0.69999, 0.7))
    assert slope == pytest.approx((up - down) / 2e-5, rel=1e-6)


def test_scores_of_any_mechanism_are_differentiable_once():
    rate = pt.dscalar("rate")
    slope = pytensor.grad(poisson_score(HIDDEN, rate, HIDES).sum(), rate)
    with pytest.raises(pytensor.gradient.NullTypeGradError, match="differentiable once"):
        pytensor.grad(slope, rate)


def test_a_regression_on_hidden_counts_finds_its_slope():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, 300)
    reports = cv.simulate_reports(rng.poisson(np.exp(1.5 + x)), HIDES, rng)
    with pm.Model():
        intercept, slope = pm.Normal("intercept", 0.0, 2.0), pm.Normal("slope", 0.0, 2.0)
        pm.Potential("reports", poisson_score(reports, pm.math.exp(intercept + slope * x), HIDES))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few draws; Numba calls what it does not compile
            chains = pm.sample(draws=100, tune=200, chains=1, random_seed=1, progressbar=False)
    slope = chains.posterior["slope"].to_numpy()
    assert abs(slope.mean() - 1.0) < 4 * slope.std()
    assert slope.std() < 0.2


ONE_BEFORE = """
import pathlib, sys

replace = pathlib.Path.replace


def after_another(self, target):
    if self.name == "daily_warning.tmp":
        pathlib.Path.replace = replace
        replace(self, target)
    return replace(self, target)


pathlib.Path.replace = after_another
import countveil.bridges.pymc
print("arviz" in sys.modules)
"""


@pytest.mark.filterwarnings("ignore")
def test_a_process_whose_file_another_takes_away_in_an_empty_home_does_not_fail(tmp_path):
    """Another process may take away the file that ArviZ has just written and is about to rename."""
    environment = {key: value for key, value in os.environ.items() if key != "XDG_CACHE_HOME"}
    given = {**environment, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"}
    raced = subprocess.run([sys.executable, "-c", ONE_BEFORE], env=given, capture_output=True, text=True)
    assert (raced.returncode, raced.stdout.strip()) == (0, "True"), raced.stderr
