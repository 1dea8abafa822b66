import importlib
import os
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ, which PyMC imports, announces its next version
    import pymc as pm
import pytensor
import pytensor.tensor as pt
from scipy import stats

import countveil as cv
import countveil.pymc
from countveil.pymc import PrivatizedPoisson
from tests import reference
from tests.strangers import ROOT, open_folder, run

REPORTS, RATES = np.array([-7, 0, 1, 3, 30, 1000]), np.array([1e-6, 0.01, 2.5, 30.0, 1e3, 1e6])
PAGE = Path(__file__).parent.parent / "docs" / "regression.md"


def run_page(*sections):
    """What the code blocks of these sections of the how-to page leave behind."""
    texts = {text.split("\n")[0]: text for text in PAGE.read_text().split("\n## ")}
    left = {}
    for section in sections:
        for block in re.findall(r"```python\n(.*?)```", texts[section], re.DOTALL):
            exec(block, left)
    return left


def compiled(reports, alpha, mode=None, truncated=False, rates=None):
    """rate -> (log-probability of each report, derivative of their sum in each rate)."""
    rate = pt.tensor("rate", dtype="float64", shape=(rates,))
    score = pm.logp(PrivatizedPoisson.dist(rate, alpha, truncated=truncated), reports)
    return pytensor.function([rate], [score, pytensor.grad(score.sum(), rate)], mode=mode)


@pytest.mark.parametrize("alpha", [0.01, 0.7, 0.999])
def test_logp_and_gradient_are_the_sums_over_all_counts(alpha):
    r, m = (x.ravel() for x in np.meshgrid(REPORTS, RATES))
    score, slope = compiled(r, alpha)(m)
    exact = [reference.report_logpmf(int(a), b, alpha) for a, b in zip(r, m, strict=True)]
    assert max(map(reference.relative_error, score, exact)) < 1e-12
    ratios = [reference.expected_count(int(a), b, alpha) / b for a, b in zip(r, m, strict=True)]
    assert max(map(reference.relative_error, slope + 1, ratios)) < 1e-9


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "NUMBA"])
@pytest.mark.parametrize("truncated", [False, True])
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
    slope_of = countveil.pymc.SLOPE.impl
    score_of = countveil.pymc.SCORE.impl
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
    monkeypatch.delitem(sys.modules, "countveil.pymc")
    monkeypatch.setitem(sys.modules, "pymc", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[pymc\]'"):
        importlib.import_module("countveil.pymc")


def test_regression_covers_the_slope_and_the_naive_one_does_not(capsys):
    found = run_page("The data", "PyMC")
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
        code = "import countveil.pymc"
        found = run(
            code, ROOT / "src", folder, HOME="/nonexistent", NUMBA_CACHE_DIR=os.environ["NUMBA_CACHE_DIR"]
        )
    assert found.returncode == 1
    last = found.stderr.strip().splitlines()[-1]
    assert "PyMC keeps files in the home directory: set HOME to a folder that you can write to" in last
