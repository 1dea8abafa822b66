import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.special import digamma, logsumexp

from countveil.noise.additive import GeometricLaw
from countveil.noise.laws import law_of
from countveil.noise.thresholded import ThresholdedLaw
from countveil.noise.windows import Cells, draw, exposure, given
from tests import reference
from tests.noise.laws import CASES, log_mass

RATES = [1e-12, 0.01, 1.0, 50.0, 1e4]
MOST = 20_000
LIKELIHOODS = {"poisson": None, "bursty": 0.6, "very bursty": 0.97}
every = pytest.mark.parametrize("name", CASES)


def cells_of(reports, rate, p):
    rates = np.full(len(reports), rate)
    return Cells(np.array(reports, float), rates, None if p is None else np.full(len(reports), p))


@cache
def kernel_of(name, i):
    """log P(report i | 0, 1, ...)."""
    _, kernel, reports = CASES[name]
    return kernel(reports[i], np.arange(MOST))


@pytest.mark.parametrize("p", LIKELIHOODS.values(), ids=LIKELIHOODS)
@every
def test_scores_expectations_and_gradients_are_sums_over_all_counts(name, p):
    mechanism, _, reports = CASES[name]
    law, worst = law_of(mechanism), 0.0
    for rate in RATES[:4] if p == 0.97 else RATES:
        found = given(law, cells_of(reports, rate, p))
        gradients = found.gradient(np.full(len(reports), rate))
        y = np.arange(MOST)
        logs, slopes = log_mass(y, rate, p)
        s = 0.0 if p is None else rate / -math.log1p(-p)
        bursts = y if p is None else s * (digamma(s + y) - digamma(s))
        for i in range(len(reports)):
            both = logs + kernel_of(name, i)
            total = logsumexp(both)
            weights = np.exp(both - total)
            wanted = total, weights @ y, weights @ bursts, weights @ slopes
            got = found.log_probability[i], found.counts[i], found.parts[i], gradients[i]
            errors = [abs(a - b) for a, b in zip(got, wanted, strict=True)]
            scales = max(1.0, abs(wanted[0])), *(np.abs(wanted[1:3])), max(1.0, abs(wanted[3]))
            worst = max(worst, *(e / max(size, 1e-300) for e, size in zip(errors, scales, strict=True)))
    assert worst < 1e-9


@every
def test_exposures_are_the_slope_of_the_score_at_rate_zero(name):
    mechanism, kernel, reports = CASES[name]
    reports = [r for r in reports if not r > 100]  # beyond, the ratio is no float
    found = exposure(law_of(mechanism), np.array(reports, float))
    for r, e in zip(reports, found, strict=True):
        zero, one = kernel(r, np.arange(2))
        assert (
            math.isnan(e)
            if zero == -np.inf
            else e == pytest.approx(-math.expm1(one - zero), rel=1e-9, abs=1e-14)
        )


@pytest.mark.parametrize("p", [None, 0.6], ids=["poisson", "bursty"])
@every
def test_draws_follow_the_law_of_the_count(name, p):
    mechanism, kernel, reports = CASES[name]
    law, rng, y, n = law_of(mechanism), np.random.default_rng(4), np.arange(3_000), 3_000
    p_values, wrong = [], []
    for rate, r in itertools.product((0.4, 30.0), [r for r in reports if not r > 1_000]):
        both = log_mass(y, rate, p)[0] + kernel(r, y)
        law_of_count = np.exp(both - logsumexp(both))
        if law_of_count.max() > 0.999:
            continue
        draws = draw(law, cells_of([r] * n, rate, p), rng)
        p_values.append(reference.chi_square_p_value(draws, 0, law_of_count))
        other = draw(law, cells_of([r] * n, 2 * rate, p), rng)  # the negative control: another rate
        wrong.append(reference.chi_square_p_value(other, 0, law_of_count))
    assert min(p_values) > 1e-5
    assert min(wrong) < 1e-5


def test_cells_do_not_disturb_each_other(monkeypatch):
    law = law_of(CASES["cut discrete"][0])
    cells = Cells(np.array([np.nan, 95.0, 3_000.0, np.nan]), np.array([1e-3, 80.0, 2_900.0, 200.0]))
    alone = [given(law, cells.at([i])) for i in range(4)]
    together = given(law, cells)
    monkeypatch.setattr("countveil.noise.windows.CHUNK", 100)
    for found in (together, given(law, cells)):
        for field in ("log_probability", "counts", "parts"):
            np.testing.assert_array_equal(getattr(found, field), [getattr(one, field)[0] for one in alone])
    draws = draw(law, cells, np.random.default_rng(1))
    np.testing.assert_array_equal(draws, draw(law, cells, np.random.default_rng(1)))
    assert given(law, cells.at([])).counts.shape == (0,)


def test_what_no_count_can_have_and_what_leaves_too_many_open_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="reports must be possible under the mechanism"):
        given(ThresholdedLaw(GeometricLaw(0.0), -1.0), cells_of([math.nan], 1.0, None))
    monkeypatch.setattr("countveil.noise.windows.WIDEST", 10)
    with pytest.raises(ValueError, match="reports must leave at most 10 counts open, got "):
        given(law_of(CASES["Gaussian"][0]), cells_of([50.0], 50.0, None))
