"""What the page says about bursty counts, and about totals that a Poisson fit misses."""

import warnings

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit.totals import totals_of
from countveil.report import render
from countveil.report.bursts import bursts_of
from countveil.report.loading import observed
from tests.report.conftest import NASTY, QUICK, WORDS, release_of
from tests.report.test_page import read

LONGER = QUICK | {"draws": 40, "tune": 80}


@pytest.fixture(scope="module")
def bursty():
    """A release of counts in large bursts, under much noise."""
    rng = np.random.default_rng(1)
    counts = rng.negative_binomial(0.05, 0.02, (150, len(WORDS)))
    return release_of(pd.DataFrame(counts, columns=WORDS), cv.PrivacyLevel("0.3", 1))


def fitted(release, options=LONGER, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cv.TopicModel(2, **options, **more).fit(release)


@pytest.mark.long
def test_the_page_of_a_poisson_fit_says_that_it_leaves_counts_out(bursty):
    fit = fitted(bursty, likelihood="poisson")
    page, found = read(render(fit, bursty)), totals_of(fit, observed(fit, bursty))
    assert found.falls_short
    said = f"without a model {found.reported:,.0f} (90% interval {found.lower:,.0f} to {found.upper:,.0f})"
    assert said in page.text
    assert f"by this fit {found.fitted:,.0f}" in page.text
    assert page.text.count('Try likelihood="negative-binomial".') == 1
    assert "Dispersion of the counts" not in page.text


@pytest.mark.long
def test_the_page_of_a_bursty_fit_shows_its_dispersion(bursty):
    fit = fitted(bursty, dispersion="global")
    text = read(render(fit, bursty)).text
    row = fit.dispersions().iloc[0]
    said = f"The dispersion p is {row['p']:.2f} ({row['lower']:.2f} to {row['upper']:.2f}): the variance of a count is"
    assert said in text
    assert "Try likelihood" not in text
    known = fitted(bursty, QUICK, likelihood="negative-binomial", dispersion=0.9)
    assert (
        "The dispersion p is 0.90, which was given: the variance of a count is 10 times"
        in read(render(known)).text
    )


def test_the_burstiest_columns_are_listed_by_name(bursty):
    fit = fitted(bursty, QUICK, likelihood="negative-binomial", dispersion="column")
    found = bursts_of(fit)
    table = fit.dispersions().sort_values("p", ascending=False, kind="stable")
    assert [name for name, _, _ in found.rows] == list(table["word"])[:8]
    assert found.said.startswith(f"Each word has its own dispersion p, from {table['p'].min():.2f} to")
    page = render(fit, bursty)
    assert NASTY not in page
    assert NASTY in read(page).text
    assert f"{table['p'].iloc[0]:.2f} ({table['lower'].iloc[0]:.2f} to" in read(page).text


def test_a_poisson_fit_has_no_dispersion(bursty):
    assert bursts_of(fitted(bursty, QUICK, likelihood="poisson")) is None


def test_a_point_estimate_is_not_said_to_be_given(bursty):
    said = bursts_of(
        fitted(bursty, {"seed": 1, "threads": 1}, method=cv.EM(max_iter=5), dispersion="global")
    ).said
    assert "given" not in said
