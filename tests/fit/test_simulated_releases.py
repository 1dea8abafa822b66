"""Simulated releases against the real one: a right model is hardly ever doubted, and a wrong one is."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import countveil as cv
from countveil.data.reports import observations_of
from countveil.fit import simulated_releases as checks
from countveil.fit.simulated_releases import NEAR, OUTSIDE, SLIGHT, WIDE, Stratum, check, in_words, of_cells
from countveil.inference.diagnostics import FitWarning, State
from countveil.inference.kept import mechanism_kept
from countveil.report import checklist_of, render, write_report
from tests.fit.test_predictive_checks import case, gaussian, geometric

m = cv.mechanisms
QUICK = {"draws": 60, "tune": 60, "chains": 2, "seed": 1, "threads": 1, "progress": False}


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
    found = check(fit, data)
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
    found = check(fit, data).statistics
    assert not any(each.fails for each in found)
    assert stats.binom.sf(len(outside(fit, data)) - 1, len(found), 0.05) > 1e-3
    totals = fit.totals()
    assert abs(totals.reported - counts.sum()) < 4 * totals.error
    assert not totals.far_off


def test_other_reports_are_not(hidden):
    fit, data = hidden
    values = checks.report_of(data, 0).values
    assert "share of counts without a report" in outside(
        fit, cv.Reports(np.where(np.isnan(values), 0.0, values), m.Suppression(10))
    )
    assert "sum of the reports" in outside(
        fit, cv.Reports(np.where(values > 0, values + 20.0, values), m.Suppression(10))
    )


def test_bins_hold_every_report_once():
    reports = np.array([np.nan, 0.0, 3.0, 3.0, 7.5, 90.0])
    bins = checks.bins_of(reports, True)
    assert bins.edges.tolist() == [0.0, 3.0, 7.5, 90.0]
    assert bins.labels == ["none", "0", "3", "7.5", "90"]
    assert bins.tally(reports).tolist() == [1, 1, 2, 1, 1]
    assert bins.tally(np.array([-5.0, 4.0, 1e9])).tolist() == [0, 1, 0, 1, 1]
    many = checks.bins_of(np.arange(1000.0), True).edges
    assert (many.size, many[-1]) == (checks.BINS, 999.0)
    cut = checks.bins_of(np.arange(20.0), False)
    assert cut.labels == ["none", "0 or less", *map(str, range(1, 12)), "12 or more"]
    assert cut.tally(np.array([0, 1, 1, 12, 19])).tolist() == [0, 1, 2, *[0] * 10, 2]


def by_column(rng, counts):
    """Reports by two mechanisms, of which the first has the even columns, and the mechanisms (1, 12)."""
    known = m.RandomRounding(5), m.Thresholded(m.Gaussian(1), 3)
    each = np.array([known * 6], dtype=object)
    return np.stack([cv.simulate_reports(counts, one, rng)[:, v] for v, one in enumerate(each[0])], axis=1), each


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
    found = check(fit, data)
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
    (alone,) = checks.parts_of(observations_of(cv.Reports(np.zeros((5, 3)), noise)))
    assert [each.cells.all() for each in alone.strata] == [True]
    (both,) = checks.parts_of(observations_of(cv.Reports(np.full((6, 3), 12.0), [*noise, m.Suppression(9)])))
    assert [(each.name, each.absent, each.cells.sum()) for each in both.strata] == [
        ("Gaussian", False, 15),
        ("suppression", True, 3),
    ]


def test_numbers_of_a_small_release():
    reports, cells = np.array([[0.0, 3.0], [1.0, 0.0]]), np.array([[True, True], [True, False]])
    assert of_cells(reports, Stratum("", cells, False)) == {
        "share of positive reports": (2 / 3, 1 / 3),
        "sum of the reports": (4.0, 1.0),
        "largest report": (3.0, 1.0),
        "spread of the columns' sums (standard deviation)": (1.0, 0.0),
        "spread of the rows' sums (standard deviation)": (1.0, 0.0),
    }
    absent = of_cells(np.array([[np.nan, 3.0], [1.0, 0.0]]), Stratum("", cells, True))
    assert absent["share of counts without a report"] == (1 / 3, 1 / 3)


def test_a_statistic_in_words():
    rng = np.random.default_rng(1)
    simulated, ends = rng.normal(10.0, 1.0, 40), (8.0, 12.0)
    for value, said in (
        (10.0, "as the model expects"),
        (13.0, f"{NEAR}: higher"),
        (30.0, f"{OUTSIDE}: higher"),
        (1.0, f"{OUTSIDE}: lower"),
    ):
        assert in_words("sum", value, simulated, ends, 1.0, 6.0) == said
    assert in_words("spread of the rows", 1.0, simulated, ends, 0.0, 6.0) == WIDE
    assert in_words("spread of the rows", 30.0, simulated, ends, 0.0, 6.0) == f"{OUTSIDE}: higher"
    few = np.array([8.0, 12.0, 8.0, 12.0])  # 2.3 sqrt(1 + 1/4) around a mean that four values give
    assert in_words("sum", 17.5, few, (8.0, 12.0), 0.0, 3.0) == f"{NEAR}: higher"
    assert in_words("sum", 18.0, few, (8.0, 12.0), 0.0, 3.0) == f"{OUTSIDE}: higher"
    same, ends = np.full(40, 1.0), (1.0, 1.0)
    assert in_words("share", 0.999, same, ends, 0.001, 6.0) == f"{NEAR}: lower", "one report of a thousand"
    assert in_words("share", 0.91, same, ends, 0.001, 6.0) == f"{SLIGHT}: lower"
    assert in_words("share", 0.89, same, ends, 0.001, 6.0) == f"{OUTSIDE}: lower"
    maxima = np.exp(rng.normal(3.0, 0.5, 40))
    ends = tuple(np.quantile(maxima, [0.025, 0.975]))
    assert in_words("largest report", 150.0, maxima, ends, 1.0, 6.0) == f"{NEAR}: higher"
    assert in_words("largest report", 5000.0, maxima, ends, 1.0, 6.0) == f"{OUTSIDE}: higher"
    maxima, ends = np.full(40, 99.0), (99.0, 99.0)
    assert in_words("largest report", 198.0, maxima, ends, 1.0, 6.0) == f"{SLIGHT}: higher"
    assert in_words("largest report", 200.0, maxima, ends, 1.0, 6.0) == f"{OUTSIDE}: higher"


def test_a_verdict_names_few_statistics():
    """Files have room for only so many characters, and counts with many reports have many statistics."""
    every = [checks.Statistic(f"s{i}", 9.0, 0.0, 1.0, f"{OUTSIDE}: higher") for i in range(100)]
    begin = "Simulated releases differ from the real one in: "
    assert checks.failed(every[:2]) == [f"{begin}s0; s1."]
    assert checks.failed(every[:6]) == [f"{begin}s0; s1; s2; s3; s4; s5."]
    assert checks.failed(every) == [f"{begin}s0; s1; s2; s3; s4; 95 other statistics."]
    assert checks.failed([each._replace(verdict=WIDE) for each in every]) == []


def test_reports_that_cannot_be_simulated_are_no_part():
    """A verdict and a page would otherwise be about different random numbers."""
    counts = np.arange(12).reshape(4, 3)
    ranges = cv.Reports.between(counts, counts + 2)
    assert checks.parts_of(observations_of(ranges)) == []
    (part,) = checks.parts_of(observations_of(ranges.also(counts + 1.0, m.Gaussian(2))))
    assert [each.name for each in part.strata] == ["report 2, Gaussian noise (sigma 2)"]


def found_in(fit, data):
    """The statistics of a release by a fit that has the true rates, as a verdict has them."""
    rows = np.arange(data.shape[0])
    parts = checks.parts_of(data)
    simulated = [checks.statistics(parts, reports) for _, reports in checks.releases(fit, data, rows, parts)]
    return checks.compared_by(checks.statistics(parts, [part.values for part in parts]), simulated)


def known(stub):
    """A fit that has the true rates in all of its forty draws."""
    sizes = SimpleNamespace(sizes={"chain": 2, "draw": 20})
    return SimpleNamespace(**vars(stub), posterior={"posterior": sizes})


@pytest.mark.long
@pytest.mark.parametrize("kind", ["poisson", "row"])
@pytest.mark.parametrize("observe", [geometric(0.3), geometric(0.9), gaussian])
def test_releases_of_true_rates_are_hardly_ever_doubted(kind, observe):
    """And those of half of the rates always are."""
    doubted = 0
    for seed in range(100):
        fit, data = case(np.random.default_rng([7, seed]), kind, observe)
        doubted += bool(checks.failed(found_in(known(fit), data)))
    assert doubted == 0
    fit, data = case(np.random.default_rng(7), kind, observe, sizes=20.0)
    draws = fit._reader.even_draws
    fit._reader.even_draws = lambda n: (((0.5 * theta, phi), own) for (theta, phi), own in draws(n))
    assert "sum of the reports" in checks.failed(found_in(known(fit), data))[0]


def rows_of(rng, sums):
    """Counts of two planted topics, a row of every sum."""
    topics = np.kron(np.eye(2), np.full(10, 0.1))
    return np.stack([rng.multinomial(n, rng.dirichlet([0.5, 0.5]) @ topics) for n in sums])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_of_one_sum_make_intervals_wide_which_is_said_and_forbids_nothing():
    """Rates cover more often than stated: a check that fails where intervals cover would be a false alarm."""
    rng = np.random.default_rng(3)
    release = cv.simulate_release(rows_of(rng, [60] * 60), cv.PrivacyLevel(2, 1), rng)
    fit = cv.TopicModel(2, **QUICK).fit(release)
    found = {each.name: each.verdict for each in check(fit, observations_of(release)).statistics}
    assert found["spread of the rows' sums (standard deviation)"] == WIDE
    page = " ".join(render(fit, release).split())
    assert page.count("varies less than the model expects, which makes intervals too wide: spread of the rows") == 2
    assert "The real one looks like them" not in page
    assert not mechanism_kept(fit.posterior).misfits
    assert not any(
        "Simulated releases" in said for said in (fit.diagnostics().verdict, checklist_of(fit, release).judged.verdict)
    )


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_a_fit_and_its_page_have_one_verdict(tmp_path):
    """Of counts one of which no such model makes, the fit itself says it, by the numbers that the page has."""
    rng = np.random.default_rng(4)
    counts = rows_of(rng, rng.poisson(60.0, 60))
    counts[3, 5] = 2000
    release = cv.simulate_release(counts, cv.PrivacyLevel(2, 1), rng)
    fit = cv.TopicModel(1, likelihood="poisson", **QUICK).fit(release)
    judged = fit.diagnostics()
    assert judged.state == State.UNSAFE
    failing = "; ".join(each.name for each in check(fit, observations_of(release)).statistics if each.fails)
    assert "largest report" in failing
    assert f"Simulated releases differ from the real one in: {failing}." in judged.verdict
    assert write_report(fit, tmp_path / "fit.html", release).verdict == judged.verdict
    assert checklist_of(fit, release).judged.verdict == judged.verdict


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_of_true_counts_and_its_page_have_one_verdict():
    rng = np.random.default_rng(4)
    counts = rows_of(rng, rng.poisson(60.0, 60))
    counts[3, 5] = 2000
    data = cv.ExactCounts(counts)
    with pytest.warns(FitWarning, match="^Simulated releases differ"):
        fit = cv.TopicModel(1, likelihood="poisson", **QUICK).fit(data)
    judged = fit.diagnostics()
    assert (judged.state, judged.mechanism) == (State.UNSAFE, None)
    assert judged.verdict.startswith("Simulated releases differ from the real one in: ")
    assert "mechanism" not in judged.verdict
    assert checklist_of(fit, data).judged.verdict == judged.verdict


def test_the_diagonal_of_a_network_is_left_out():
    rng = np.random.default_rng(3)
    release = cv.simulate_release(rng.poisson(3.0, (8, 8)), cv.PrivacyLevel(2, 1), rng)
    fit = cv.BlockModel(2, **QUICK | {"draws": 10, "tune": 10}).fit(release)
    found = check(fit, fit._reader.data_matrix(fit._observed(release)))
    assert found.seen.sum() == 56
    assert found.low.sum() <= 56 <= found.high.sum()


def test_of_large_data_an_even_selection_of_rows_is_compared(hidden, monkeypatch):
    fit, data = hidden
    assert (check(fit, data).selection, check(fit, data).seen.sum()) == ("", 480)
    monkeypatch.setattr(checks, "CELLS", 4 * 12)
    found = check(fit, data)
    assert (found.selection, found.seen.sum(), found.releases) == ("4 of 40", 48, checks.RELEASES)


def test_the_page_shows_the_check(tmp_path):
    mechanism, rng = m.Suppression(10), np.random.default_rng(4)
    counts = rng.poisson(6.0, (20, 6))
    release = cv.import_reports(cv.simulate_reports(counts, mechanism, rng), mechanism, "Others, 2020")
    fit = cv.TopicModel(1, draws=20, tune=20, chains=1, seed=1, progress=False).fit(release)
    write_report(fit, tmp_path / "fit.html", release)
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "share of counts without a report" in page
    assert "releases were simulated from the fit" in page
