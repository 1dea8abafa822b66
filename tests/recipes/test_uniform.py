"""The recipe of a mechanism that ``Reports`` read: the law of its reports, estimates, what is refused, and a fit."""

import warnings

import numpy as np
import pytest

import countveil as cv
from countveil.kernels.report_kernels import GUESS
from countveil.laws.noise.laws import LAWS, law_of
from countveil.privacy.mechanisms import MECHANISMS, from_json
from tests import reference
from tests.recipes.uniform import Uniform, UniformLaw

W = 3
SHORT = {"likelihood": "poisson", "draws": 50, "tune": 50, "chains": 1, "seed": 1, "threads": 1}


@pytest.fixture(autouse=True)
def uniform(monkeypatch):
    monkeypatch.setitem(MECHANISMS, Uniform.name, Uniform)
    monkeypatch.setitem(LAWS, Uniform.name, lambda spec: UniformLaw(spec.w))


def test_reports_have_their_law():
    law, reports = law_of(Uniform(W)), np.arange(-10.0, 20.0)
    for count in (0, 2, 7):
        same = np.full(reports.size, count)
        wanted = np.where(np.abs(reports - count) <= W, 1 / (2 * W + 1), 0.0)
        np.testing.assert_allclose(np.exp(law.log_kernel(reports, same)), wanted, rtol=1e-12)
        np.testing.assert_allclose(law.less(reports, same), wanted.cumsum() - wanted, atol=1e-12)
        least, most = law.support(reports)
        np.testing.assert_array_equal(wanted > 0, (least <= count) & (count <= most) & (reports >= -W))
        drawn = law.draw(np.full(4_000, count), np.random.default_rng(1)).astype(int)
        assert reference.chi_square_p_value(drawn, -10, wanted) > 1e-4
        assert reference.chi_square_p_value(drawn + 1, -10, wanted) < 1e-4


@pytest.mark.parametrize("count", [0, 1, 5])
def test_estimates_have_the_count_for_their_mean(count):
    """A count of zero included, although its report -w leaves no other count."""
    reports = count + np.arange(-W, W + 1)
    noise = cv.Reports([reports], Uniform(W)).noise
    assert noise.unbiased
    np.testing.assert_array_equal(noise.value_c[1:], reports)  # each has a code of its own
    assert noise.kernel.real_cj[1:, GUESS].mean() == pytest.approx(count, abs=1e-12)
    np.testing.assert_allclose(noise.variance_c[1:], reports.var(), rtol=1e-12)


def test_reports_that_are_impossible_or_truncated_at_zero_are_refused():
    with pytest.raises(ValueError, match=r"reports must be at least -3, under uniform noise \(w 3\), got -4.0"):
        cv.Reports([[-4, 2]], Uniform(W))
    with pytest.raises(ValueError, match="truncated at zero"):
        cv.Reports(np.zeros((9, 9)), Uniform(W))


def test_a_fit_recovers_planted_rates_where_the_naive_fit_does_not(tmp_path):
    rng = np.random.default_rng(1)
    rates = rng.gamma(0.5, 2.0, (60, 2)) @ rng.dirichlet(np.full(20, 0.3), 2)
    reports = cv.simulate_reports(rng.poisson(rates), Uniform(W), rng)
    cv.import_reports(reports, Uniform(W), "a test").save(tmp_path / "reports.npz")
    release = cv.Release.load(tmp_path / "reports.npz")
    assert release.mechanism == Uniform(W) == from_json(Uniform(W).to_json())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        naively = cv.NaiveCounts(np.maximum(reports, 0))
        fits = [cv.TopicModel(2, **SHORT).fit(data) for data in (release, naively)]
    right, naive = (float(np.abs(fit.rate().to_numpy() - rates).mean()) for fit in fits)
    assert right < 0.5 * naive
