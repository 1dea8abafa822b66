"""The largest hidden counts on the page."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.report import hidden
from countveil.report.page import render
from tests.report.conftest import NASTY, QUICK

pytestmark = pytest.mark.long

m = cv.mechanisms
COUNTS = np.random.default_rng(2).poisson(np.outer(np.arange(1, 8), [1, 1, 2, 3, 6]))
PUBLISHED = pd.DataFrame(
    np.where((COUNTS > 0) & (COUNTS < 10), np.nan, COUNTS), columns=["a", NASTY, "c", "d", "e"]
)


@pytest.fixture(scope="module")
def fitted():
    data = cv.Reports(PUBLISHED, m.Suppression(10))
    return cv.PoissonFactorization("dk,vk->dv", {"k": 1}, **QUICK).fit(data), data


def section_of(page):
    """The section on hidden counts, without its image; empty where there is none."""
    found = re.search(r'<section aria-labelledby="hidden">.*?</section>', page, re.DOTALL)
    return "" if found is None else re.sub(r'src="data:[^"]*"', "", found[0])


def test_the_largest_hidden_counts_are_shown_with_intervals(fitted, monkeypatch):
    fit, data = fitted
    n = int(PUBLISHED.isna().to_numpy().sum())
    drawn = []
    original = hidden.hidden_picture
    monkeypatch.setattr(hidden, "hidden_picture", lambda table: drawn.append(table) or original(table))
    page = render(fit, data)
    section = section_of(page)
    assert (
        f"The release hides {n} counts. The picture shows the 20 with the largest expected values" in section
    )
    assert "with 90% intervals" in section
    assert '<a href="#hidden">' in page
    table = fit.counts_table(data)
    (shown,) = drawn
    assert len(shown) == 20
    assert shown["mean"].is_monotonic_decreasing
    assert shown["mean"].min() >= table["mean"].drop(shown.index).max()
    assert NASTY not in page
    assert section_of(render(fit)) == ""


def test_too_many_counts_are_only_counted(fitted, monkeypatch):
    fit, data = fitted
    monkeypatch.setattr(hidden, "MOST_CELLS", 3)
    n = int(PUBLISHED.isna().to_numpy().sum())
    assert hidden.hidden_counts(fit, data) == hidden.HiddenCounts(n, 0, None)
    section = section_of(render(fit, data))
    assert f"The release hides {n} counts, too many for this page." in section
    assert "<img" not in section


def test_data_that_hide_no_count_have_no_section(fitted, monkeypatch):
    fit, _ = fitted
    rounded = cv.Reports(COUNTS // 5 * 5, m.RandomRounding(5))
    assert hidden.hidden_counts(fit, rounded) is None
    monkeypatch.setattr(hidden, "MOST_CELLS", 3)
    assert hidden.hidden_counts(fit, rounded) is None
    assert hidden.hidden_counts(fit, cv.PrivatizedCounts(COUNTS, 0.3)) is None


def test_a_fit_without_intervals_shows_medians():
    data = cv.Reports(PUBLISHED, m.Suppression(10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = cv.PoissonFactorization("dk,vk->dv", {"k": 1}, method="em", seed=1, progress=False).fit(data)
    section = section_of(render(fit, data))
    assert "interval" not in section
    assert "medians, given" in section
    assert "Medians of the 20 largest hidden counts" in section
