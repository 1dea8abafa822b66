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
    return [each.name for each in found.statistics if each.verdict != "as the model expects"]


def test_reports_that_the_model_made_are_as_it_expects(hidden):
    assert not outside(*hidden)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("truncate", [True, False])
def test_joined_releases_are_as_a_fit_expects_whether_they_were_cut_at_zero_or_not(truncate):
    rng, level = np.random.default_rng(1), cv.PrivacyLevel(epsilon=1, precision=2)
    counts = rng.poisson(rng.gamma(0.5, 1.0, (60, 2)) @ rng.gamma(0.5, 1.0, (2, 15)))
    data = cv.join([cv.simulate_release(counts, level, rng, truncate=truncate) for _ in range(2)])
    fit = cv.TopicModel(2, likelihood="poisson", chains=2, seed=1, progress=False).fit(data)
    assert not outside(fit, data)
    totals = fit.totals()
    assert abs(totals.reported - counts.sum()) < 4 * totals.error
    assert not totals.far_off


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


def by_column(rng, counts):
    """Reports by two mechanisms, of which the first has the even columns, and the mechanisms (1, 12)."""
    known = m.RandomRounding(5), m.Thresholded(m.Gaussian(1), 3)
    each = np.array([known * 6], dtype=object)
    return np.stack(
        [cv.simulate_reports(counts, one, rng)[:, v] for v, one in enumerate(each[0])], axis=1
    ), each


@pytest.fixture(scope="module")
def several():
    rng = np.random.default_rng(5)
    counts = rng.poisson(rng.gamma(0.5, 4.0, (40, 2)) @ rng.gamma(0.5, 1.0, (2, 12)))
    values, each = by_column(rng, counts)
    again, noise = cv.simulate_reports(counts, m.DiscreteGaussian(2), rng), m.DiscreteGaussian(2)
    data = cv.Reports(values, each, rng.random(values.shape) < 0.1).also(again, noise)
    fit = cv.TopicModel(2, draws=40, tune=60, chains=1, seed=1, progress=False).fit(data)
    return fit, values, each, again, data


def test_every_mechanism_of_every_report_is_checked(several):
    fit, _, _, _, data = several
    found = checks.check_protected(fit, data, np.random.default_rng(1))
    names = [each.name for each in found.statistics]
    for wanted in (
        "share of positive reports (report 1, random rounding (base 5))",
        "share of counts without a report (report 1, Gaussian noise (sigma 1), published above 3)",
        "largest report (report 2, discrete Gaussian noise (sigma 2))",
    ):
        assert wanted in names
    assert not any(each.verdict.startswith(OUTSIDE) for each in found.statistics)
    first = data.provenance.published.report(0)
    assert found.seen.sum() == 2 * 480 - first.seen.size + first.seen.sum()


def test_what_another_mechanism_would_make_is_seen(several):
    fit, values, each, again, _ = several
    swapped = each.copy()
    swapped[0, 0::2] = m.Rounding(5)
    swapped[0, 1::2] = m.Thresholded(m.Gaussian(4), 3)
    wrong = cv.Reports(values, swapped).also(again, m.DiscreteGaussian(6))
    said = outside(fit, wrong)
    for part in ("report 1, Gaussian noise (sigma 4), published above 3", "report 2, discrete Gaussian"):
        assert any(part in name for name in said)


def test_many_mechanisms_are_taken_by_kind():
    noise = [m.Gaussian(1 + d / 10) for d in range(5)]
    alone = checks.parts_of(checks.reports_of(cv.Reports(np.zeros((5, 3)), noise)))
    assert [(part.name, part.cells.all()) for part in alone] == [("", True)]
    both = checks.parts_of(checks.reports_of(cv.Reports(np.full((6, 3), 12.0), [*noise, m.Suppression(9)])))
    assert [(part.name, part.absent, part.cells.sum()) for part in both] == [
        ("Gaussian", False, 15),
        ("suppression", True, 3),
    ]


def test_the_page_shows_the_check(tmp_path):
    mechanism, rng = m.Suppression(10), np.random.default_rng(4)
    counts = rng.poisson(6.0, (20, 6))
    release = cv.import_reports(cv.simulate_reports(counts, mechanism, rng), mechanism, "Others, 2020")
    fit = cv.TopicModel(1, draws=20, tune=20, chains=1, seed=1, progress=False).fit(release)
    write_report(fit, tmp_path / "fit.html", release)
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "share of counts without a report" in page
    assert "releases were simulated from the fit" in page
