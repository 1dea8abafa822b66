import math

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.privacy._extras import Extras
from countveil.report import render
from countveil.report.checklist import who_vouches
from countveil.report.loading import observed, stating
from countveil.report.promise import SEVERAL, promise_of
from tests.report.conftest import QUICK, release_of

COUNTS = np.random.default_rng(1).poisson(2.0, (6, 5))


def fit_of(data):
    return cv.TopicModel(2, **QUICK).fit(data)


def test_the_level_of_the_release_is_said_in_its_own_words():
    level = cv.PrivacyLevel(1, 2)
    release = cv.privatize(COUNTS, level)
    found = promise_of(fit_of(release), release)
    assert found.kind == "private"
    assert found.paragraphs[1] == f"The level is N = 2, epsilon = 1. {level.describe()}"
    one = {d: (factor, right) for d, factor, right in found.distances}
    assert one["2"] == (f"{math.e:.3g} times", "at most 69.7%")
    assert "right in at most 69.7% of cases" in found.paragraphs[1], "one number for one thing"
    assert one["50"] == ("more than a million times", "at most 99.9999%")


def test_without_a_release_the_promise_is_recomputed_from_the_noise():
    found = promise_of(fit_of(cv.PrivatizedCounts(COUNTS, math.exp(-0.5))))
    assert "for a difference of one count" in found.paragraphs[1]
    assert {d: f for d, f, _ in found.distances}["2"] == f"{math.e:.3g} times"


def test_of_several_levels_the_least_protective_is_told():
    levels = [cv.PrivacyLevel(1, 1)] * 5 + [cv.PrivacyLevel(3, 1)]
    release = cv.privatize(COUNTS, levels)
    found = promise_of(fit_of(release), release)
    assert "epsilon = 3" in found.paragraphs[1]
    assert "Levels differ between records" in found.paragraphs[2]
    without = promise_of(fit_of(release))
    assert without.distances == found.distances


@pytest.mark.parametrize("mechanism", [cv.mechanisms.TwoSidedGeometric(0.3), cv.mechanisms.RandomRounding(3)])
def test_a_page_of_a_fit_with_totals_does_not_say_that_it_is_of_the_reports_alone(mechanism):
    reports = cv.simulate_reports(COUNTS, mechanism, np.random.default_rng(2))
    for totals, said in ((None, "reports, and nothing on it"), ([(1, COUNTS.sum(1))], "totals published with them")):
        found = promise_of(fit_of(cv.Reports(reports, mechanism, totals=totals)))
        assert said in found.paragraphs[0]
        assert ("totals" in found.paragraphs[0]) == (totals is not None)


@pytest.mark.parametrize(
    ("data", "kind", "headline"),
    [
        (cv.ExactCounts(COUNTS), "exact", "No protection."),
        (cv.NaiveCounts(COUNTS), "naive", "Noise ignored."),
        (release_of(COUNTS), "simulated", "Simulated noise: nobody is protected."),
    ],
)
def test_where_nobody_is_protected_the_page_says_so(data, kind, headline):
    found = promise_of(fit_of(data))
    assert (found.kind, found.headline) == (kind, headline)
    if kind == "simulated":
        assert "protects nobody" in found.paragraphs[0]
    else:
        assert found.distances == []


def test_cells_without_noise_are_told():
    alpha = np.full(6, 0.4)
    alpha[0] = 0.0
    found = promise_of(fit_of(cv.PrivatizedCounts(COUNTS, alpha)))
    assert found.headline == "Some counts carry no noise, and are not protected."
    assert "Some counts carry no noise at all" in found.paragraphs[2]


@pytest.mark.parametrize(("epsilon", "said"), [(1, "was protected"), (3, "hides little"), (8, "practically nothing")])
def test_a_weak_level_is_not_called_protection(epsilon, said):
    fit = fit_of(cv.PrivatizedCounts(COUNTS, math.exp(-epsilon)))
    assert said in promise_of(fit).headline


def test_levels_of_rho_are_said_in_their_own_words():
    levels = [cv.PrivacyLevel.zcdp("0.125"), cv.PrivacyLevel.zcdp(4)] * 3
    simulated = cv.simulate_release(COUNTS, levels, np.random.default_rng(1))
    release = cv.Release(simulated.reports, levels, False)
    fit = fit_of(release)
    found = promise_of(fit, release)
    assert found.headline == "Every count got noise, but it hides little."
    assert levels[1].describe() in found.paragraphs[1]
    assert "as whoever made this fit has stated" in promise_of(fit).headline
    one = cv.Release(simulated.reports, levels[0], False)
    assert promise_of(fit_of(one), one).headline == "Every count was protected by noise."


def test_imported_reports_are_vouched_for_by_whoever_imported_them():
    reports = np.maximum(COUNTS, 0)
    for mechanism, said in (
        (cv.mechanisms.Suppression(5), "not differential privacy"),
        (cv.mechanisms.TwoSidedGeometric(0.37), "for a difference of one count"),
    ):
        values = np.where((reports > 0) & (reports < 5), np.nan, reports) if "no" in said[:2] else reports
        release = cv.import_reports(values, mechanism, "Others, 2020")
        fit = fit_of(release)
        for given in ([release], []):
            found = promise_of(fit, *given)
            assert found.headline.startswith("The reports were imported from: Others, 2020. Whoever imported them")
            assert "before anybody but their owner" not in " ".join(found.paragraphs)
            assert said in " ".join(found.paragraphs)
        assert "Others, 2020" in fit._repr_html_()


def test_what_several_reports_of_a_record_promise_together_is_said(tmp_path):
    table = pd.DataFrame(COUNTS, [f"p{i}" for i in range(6)])
    joined = cv.join([cv.privatize(table, cv.PrivacyLevel(1, 1)), cv.privatize(table, cv.PrivacyLevel(2, 1))])
    fit = fit_of(joined)
    fit.save(tmp_path / "fit.nc")
    for each in (fit, cv.TopicModel.load(tmp_path / "fit.nc")):
        *_, said = promise_of(each).paragraphs
        assert said == f"{SEVERAL} {joined.promise}"
        assert "e^3" in said
    mechanism = cv.mechanisms.TwoSidedGeometric(0.3)
    again = cv.Reports(COUNTS, mechanism).also(COUNTS[::-1], mechanism)
    assert promise_of(fit_of(again)).paragraphs[-1] == SEVERAL
    assert SEVERAL not in promise_of(fit_of(cv.Reports(COUNTS, mechanism))).paragraphs


def test_joined_releases_describe_themselves_beside_the_fit_of_their_reports():
    table, level = pd.DataFrame(COUNTS, [f"p{i}" for i in range(6)]), cv.PrivacyLevel(1, 1)
    first, second, fewer = (cv.privatize(table[:n], level) for n in (6, 6, 4))
    assert stating(first) == (first,)
    assert stating(None) == stating(cv.Reports(COUNTS, level.mechanism)) == ()
    alike, differing = cv.join([first, second]), cv.join([first, fewer])
    assert stating(alike) == (first, second)
    fit = fit_of(alike)
    headline, words = promise_of(fit, first, second).headline, promise_of(fit, first, second).paragraphs
    assert headline == "Every count was protected by noise."
    assert words[1] == f"In the words of all 2 releases: {first.describe()}"
    found = promise_of(fit_of(differing), *stating(differing))
    assert found.headline == "Every count was protected by noise."
    words = found.paragraphs
    assert words[1] == f"In the words of release 1 of 2: {first.describe()}"
    assert words[2] == f"In the words of release 2 of 2: {fewer.describe()}"
    assert words[-1] == f"{SEVERAL} {differing.promise}"
    vouched = [who_vouches(fit, each) for each in ((), (first,), (first, second))]
    assert [bool(each) for each in vouched] == [False, True, True]
    assert vouched[2] == "The owners of the counts: the 2 releases that they made state it."


def test_waves_of_a_study_are_added_up_and_their_release_is_that_of_the_fit():
    people, names = tuple(f"p{i // 2}" for i in range(6)), ("spring", "summer")
    labels = (people, tuple(f"w{v}" for v in range(5)))
    release = cv.Release(COUNTS, cv.PrivacyLevel(1, 1), True, labels, extras=Extras(waves=(names, (0, 1) * 3)))
    fit = cv.DynamicModel(2, time=1, **QUICK).fit(cv.by_wave(release))
    *_, said = promise_of(fit, release).paragraphs
    assert "come to at most epsilon 2 at N = 1" in said
    assert observed(fit, release).mode_shape == (3, 2, 5)
    by_row = fit_of(release)
    assert promise_of(by_row, release).paragraphs[-1] == said
    assert observed(by_row, release).mode_shape == (6, 5)
    folded = cv.PrivatizedCounts.from_release(release).folded((6, 5, 1))
    tensor = cv.TensorModel(2, **QUICK).fit(folded)
    assert observed(tensor, release).mode_shape == (6, 5, 1)


@pytest.mark.long
@pytest.mark.parametrize("labelled", [True, False])
def test_the_headline_of_joined_releases_is_of_what_they_promise_together(labelled):
    table = pd.DataFrame(COUNTS, [f"p{i}" for i in range(6)]) if labelled else COUNTS
    releases = [cv.privatize(table, cv.PrivacyLevel("1.2", 1)) for _ in range(3)]
    joined = cv.join(releases)
    assert joined.levels[0].hides() == "little"
    fit = fit_of(joined)
    assert promise_of(fit, *releases).headline == "Every count got noise, but it hides little."
    assert "this fit has several reports of a count." in render(fit, joined)
    assert promise_of(fit_of(releases[0]), releases[0]).headline == "Every count was protected by noise."


def test_other_reports_than_those_that_were_fitted_are_refused():
    table, level = pd.DataFrame(COUNTS, [f"p{i}" for i in range(6)]), cv.PrivacyLevel(1, 1)
    first, second, third = (cv.privatize(table, level) for _ in range(3))
    fit = fit_of(cv.join([first, second, third]))
    observed(fit, cv.join([first, second, third]))
    with pytest.raises(ValueError, match="the one that was fitted, got reports that promise something else"):
        observed(fit, cv.join([first, third]))
