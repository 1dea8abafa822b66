"""Prevalence over time: against plain loops over draws, and against the trend that was planted."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.inference.matching import keep_weights
from tests.dates import SHARES, TIME, YEARS, counts, model, the_fit


@pytest.fixture(scope="module")
def fit():
    return the_fit()


def topics_of(fit):
    """The topics whose words are those of the first, second and third block."""
    return [int(np.argmax(fit.components_[:, own].sum(axis=1))) for own in np.split(np.arange(24), 3)]


def test_the_planted_trend_is_found_with_the_year_that_has_no_documents(fit):
    table = fit.effects.over_time()
    assert list(table.columns) == ["topic", "support", "time", "estimate", "lower", "upper"]
    by = table.pivot(index="time", columns="topic", values="estimate")[topics_of(fit)]
    truth = SHARES / SHARES.sum(axis=1, keepdims=True)
    assert np.abs(by.to_numpy() - truth).max() < 0.2
    np.testing.assert_allclose(by.sum(axis=1), 1.0, atol=1e-6)
    held = [
        ((rows.lower <= truth[:, i]) & (truth[:, i] <= rows.upper)).mean()
        for i, k in enumerate(topics_of(fit))
        for rows in [table[table.topic == k].reset_index()]
    ]
    assert np.mean(held) > 0.7
    width = (table.upper - table.lower).to_numpy().reshape(3, YEARS).mean(axis=0)
    assert width[5] > 1.2 * (width[4] + width[6]) / 2  # nothing is of this year


def test_shares_are_means_over_the_draws_of_each_chain(fit):
    table, x = fit.effects.over_time(0.8), fit.posterior["posterior"]["theta_over_time"].to_numpy()
    for number, found in fit._reader.numbered("k"):
        for t in range(YEARS):
            own = [
                draw[t, k] / draw[t].sum() for c, k in zip(found.chains, found.components, strict=True) for draw in x[c]
            ]
            row = table[(table.topic == number) & (table.time == 1990 + t)].iloc[0]
            wanted = [np.mean(own), *np.quantile(own, [0.1, 0.9])]
            np.testing.assert_allclose(row[["estimate", "lower", "upper"]].astype(float), wanted, rtol=1e-6)


def test_a_chain_without_weight_says_nothing(fit):
    before = fit.effects.over_time()
    keep_weights(fit.posterior, np.array([1.0, 0.0]))
    fit._matched = {}
    weighted = fit.effects.over_time().estimate.to_numpy().reshape(3, YEARS)
    del fit.posterior["chains"]
    fit._matched = {}
    x = fit.posterior["posterior"]["theta_over_time"].to_numpy()[0]
    np.testing.assert_allclose(weighted.T, (x / x.sum(axis=2, keepdims=True)).mean(axis=0), rtol=1e-6)
    pd.testing.assert_frame_equal(fit.effects.over_time(), before)


def test_naive_fits_have_shares_without_intervals():
    naive = model(draws=4, tune=4, chains=1).fit(cv.NaiveCounts(np.maximum(np.asarray(counts().reports), 0)), time=TIME)
    table = naive.effects.over_time()
    assert list(table.columns) == ["topic", "support", "time", "estimate"]
    assert table.support.isna().all()
    assert "uncalibrated_lower" in naive.effects.over_time(uncalibrated=True)


def test_it_is_among_the_tables_and_needs_dates_and_an_interval_in_range(fit):
    pd.testing.assert_frame_equal(fit.tables["prevalence_over"], fit.effects.over_time())
    plain = model(draws=2, tune=2).fit(counts())
    assert "prevalence_over" not in plain.tables
    with pytest.raises(ValueError, match="needs a fit with dates of the rows"):
        plain.effects.over_time()
    with pytest.raises(ValueError, match="interval must be between 0 and 1"):
        fit.effects.over_time(1.0)
