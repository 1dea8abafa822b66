"""The predictive log score against the average of SciPy's masses, draw by draw."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

import countveil as cv
from countveil.evaluation import predictive_log_score

SHORT = {"draws": 15, "tune": 15, "chains": 2, "seed": 1, "threads": 1, "progress": False}
COUNTS = np.random.default_rng(1).negative_binomial(0.5, 0.3, (12, 7))
HIDDEN = np.random.default_rng(2).random((12, 7)) < 0.3


def fitted(dispersion):
    options = (
        {"likelihood": "poisson"}
        if dispersion is None
        else {"likelihood": "negative-binomial", "dispersion": dispersion}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cv.TopicModel(2, **options, **SHORT).fit(cv.ExactCounts(COUNTS))


def masses(fit, dispersion):
    """(draws, D, V) P(count | draw)."""
    found, posterior = [], fit.posterior["posterior"]
    for s, (theta, phi) in enumerate(fit.matrix_draws()):
        rate = theta @ phi.T
        if dispersion is None:
            found.append(stats.poisson.pmf(COUNTS, rate))
            continue
        p = dispersion if "p" not in posterior else posterior["p"][s // 15, s % 15].to_numpy()
        p = p[:, None] if dispersion == "row" else p
        found.append(stats.nbinom.pmf(COUNTS, rate / -np.log1p(-p), 1.0 - p))
    return np.array(found)


@pytest.mark.long
@pytest.mark.parametrize("dispersion", [None, "global", "column", "row", 0.6])
def test_it_is_the_log_of_the_average_over_draws(dispersion):
    fit = fitted(dispersion)
    average = masses(fit, dispersion).mean(axis=0)
    expected = np.log(average).sum() / COUNTS.sum()
    assert predictive_log_score(COUNTS, fit) == pytest.approx(expected, rel=1e-9)
    assert predictive_log_score(sp.csr_array(COUNTS), fit) == pytest.approx(expected, rel=1e-9)
    some = np.log(average)[HIDDEN].sum() / COUNTS[HIDDEN].sum()
    assert predictive_log_score(COUNTS, fit, HIDDEN) == pytest.approx(some, rel=1e-9)


def test_what_does_not_fit_is_refused_in_words():
    fit = fitted(None)
    with pytest.raises(
        ValueError, match=r"counts must have the shape of the fit's data \(12, 7\), got \(7, 12\)"
    ):
        predictive_log_score(COUNTS.T, fit)
    with pytest.raises(ValueError, match=r"cells must have the shape of the fit's data"):
        predictive_log_score(COUNTS, fit, HIDDEN[:3])
    with pytest.raises(ValueError, match="counts must hold at least one token among the cells, got none"):
        predictive_log_score(0 * COUNTS, fit)


def test_counts_go_by_their_labels_and_must_be_counts():
    table = pd.DataFrame(COUNTS, [f"text {d}" for d in range(12)], [f"word {v}" for v in range(7)])
    fit = cv.TopicModel(2, **SHORT).fit(cv.ExactCounts(table))
    cells = pd.DataFrame(HIDDEN, table.index, table.columns)
    assert predictive_log_score(table, fit, cells) == predictive_log_score(COUNTS, fit, HIDDEN)
    for wrong, message in (
        (table.iloc[::-1], "counts must have the doc labels of reports in their order, got 'text 11'"),
        (-COUNTS, "counts must be whole numbers of at least 0, got other values"),
        (COUNTS + 0.5, "counts must be whole numbers from 0 on, got fractions"),
        (np.where(HIDDEN, np.nan, COUNTS), "counts must be whole numbers of at least 0, got other values"),
        (np.ma.masked_array(COUNTS, HIDDEN), "counts must have no masked entries, which cells leaves out"),
    ):
        with pytest.raises(ValueError, match=message):
            predictive_log_score(wrong, fit)
    for wrong in (cells.iloc[:, ::-1], np.full(COUNTS.shape, 0.5)):
        with pytest.raises(ValueError, match="cells must"):
            predictive_log_score(COUNTS, fit, wrong)
