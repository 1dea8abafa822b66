"""Reports of protected tables against those that a fit expects."""

import numpy as np
import pytest

import countveil as cv
from countveil.report import protected_check as checks
from countveil.report import write_report
from countveil.report.check import OUTSIDE

m = cv.mechanisms


def fitted(mechanism, seed=1):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.5, 4.0, (40, 2)) @ rng.gamma(0.5, 1.0, (2, 12)))
    data = cv.Reports(cv.simulate_reports(counts, mechanism, rng), mechanism)
    fit = cv.TopicModel(2, draws=40, tune=60, chains=1, seed=1, progress=False).fit(data)
    return fit, data


@pytest.fixture(scope="module")
def hidden():
    return fitted(m.Suppression(10))


def outside(fit, data):
    found = checks.check_protected(fit, data, np.random.default_rng(1))
    return [each.name for each in found.statistics if each.verdict.startswith(OUTSIDE)]


def test_reports_that_the_model_made_are_as_it_expects(hidden):
    assert not outside(*hidden)


def test_other_reports_are_not(hidden):
    fit, data = hidden
    values, _ = checks.values_of(data)
    assert "share of counts without a report" in outside(
        fit, cv.Reports(np.where(np.isnan(values), 0.0, values), m.Suppression(10))
    )
    assert "sum of the reports" in outside(
        fit, cv.Reports(np.where(values > 0, values + 20.0, values), m.Suppression(10))
    )


def test_values_are_the_published_ones():
    rng = np.random.default_rng(2)
    for mechanism in (m.Suppression(5), m.RandomRounding(3), m.Gaussian(2)):
        reports = cv.simulate_reports(rng.poisson(3.0, (6, 5)), mechanism, rng).astype(float)
        mask = np.zeros((6, 5), dtype=bool)
        mask[1, 2] = True
        values, visible = checks.values_of(cv.Reports(reports, mechanism, mask))
        np.testing.assert_array_equal(visible, ~mask)
        np.testing.assert_array_equal(values[visible], reports[~mask])


def test_bins_hold_every_report_once():
    reports = np.array([np.nan, 0.0, 3.0, 3.0, 7.5, 90.0])
    edges = checks.edges_of(reports)
    assert edges.tolist() == [0.0, 3.0, 7.5, 90.0]
    assert checks.places(reports, edges).tolist() == [0, 1, 2, 2, 3, 4]
    assert checks.places(np.array([-5.0, 4.0, 1e9]), edges).tolist() == [1, 3, 4]
    many = checks.edges_of(np.arange(1000.0))
    assert many.size == checks.BINS
    assert many[-1] == 999.0


def test_it_is_said_why_there_is_no_check(hidden):
    _, data = hidden
    rng = np.random.default_rng(3)
    several = data.also(
        cv.simulate_reports(np.zeros(data.shape, dtype=int), m.Gaussian(100), rng), m.Gaussian(100)
    )
    assert "several reports" in checks.why_unchecked(several)
    two = cv.Reports(np.zeros((2, 3)), [m.Gaussian(1), m.Gaussian(2)])
    assert "2 different mechanisms" in checks.why_unchecked(two)
    assert checks.why_unchecked(data) == ""


def test_the_page_shows_the_check(tmp_path):
    mechanism, rng = m.Suppression(10), np.random.default_rng(4)
    counts = rng.poisson(6.0, (20, 6))
    release = cv.import_reports(cv.simulate_reports(counts, mechanism, rng), mechanism, "Others, 2020")
    fit = cv.TopicModel(1, draws=20, tune=20, chains=1, seed=1, progress=False).fit(release)
    write_report(fit, tmp_path / "fit.html", release)
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "share of counts without a report" in page
    assert "releases were simulated from the fit" in page
