import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
from scipy import stats
from scipy.stats import poisson
from sklearn import metrics

import countveil as cv
from countveil.evaluation import (
    coverage,
    coverage_of_reports,
    log_score,
    mean_absolute_error,
    poisson_divergence,
    predictive_log_score,
    randomised_pit,
    randomised_pit_of_reports,
)
from tests.joint import FALSE_ALARM, two_sided_geometric

COUNTS = np.array([[0, 2, 1], [0, 0, 3]])
RATE = np.array([[0.5, 1.5, 1.0], [0.1, 0.2, 4.0]])


def slow_log_score(counts, rate):
    total = 0.0
    for y, mu in zip(counts.ravel(), rate.ravel(), strict=True):
        total += y * math.log(mu) - mu - sum(math.log(i) for i in range(1, y + 1))
    return total / counts.sum()


def test_mean_absolute_error_by_hand():
    assert mean_absolute_error(RATE, COUNTS) == pytest.approx((0.5 + 0.5 + 0 + 0.1 + 0.2 + 1) / 6)


def test_mean_absolute_error_against_scikit_learn():
    rng = np.random.default_rng(2)
    rate, counts = rng.gamma(0.5, 2.0, (30, 20)), rng.poisson(1.0, (30, 20))
    expected = metrics.mean_absolute_error(counts.ravel(), rate.ravel())
    assert mean_absolute_error(rate, counts) == pytest.approx(expected, rel=1e-12)


def test_log_score_by_hand():
    """One cell, y = 2, mu = 1: log(1 e^-1 / 2!) over two tokens."""
    assert log_score([[2]], [[1.0]]) == pytest.approx(-(1 + math.log(2)) / 2)


def test_log_score_is_the_poisson_log_likelihood_with_its_factorials():
    assert log_score(COUNTS, RATE) == pytest.approx(slow_log_score(COUNTS, RATE))
    assert log_score(COUNTS, RATE) == pytest.approx(stats.poisson.logpmf(COUNTS, RATE).sum() / COUNTS.sum())


def test_sparse_counts_score_as_dense_ones():
    assert log_score(sp.csr_array(COUNTS), RATE) == log_score(COUNTS, RATE)
    assert mean_absolute_error(RATE, sp.coo_array(COUNTS)) == mean_absolute_error(RATE, COUNTS)


def test_a_zero_rate_is_right_for_a_zero_and_impossible_for_a_token():
    assert log_score([[0, 1]], [[0.0, 1.0]]) == pytest.approx(-1.0)
    assert log_score([[1, 1]], [[0.0, 1.0]]) == -math.inf


def test_the_truth_scores_better_than_any_scaling_of_it():
    rng = np.random.default_rng(3)
    rate = rng.gamma(0.5, 2.0, (200, 50))
    counts = rng.poisson(rate)
    best = log_score(counts, rate)
    assert all(log_score(counts, factor * rate) < best for factor in (0.5, 0.9, 1.1, 2.0))


def test_all_zeros_can_beat_the_truth_on_absolute_error():
    """The reason why the absolute error alone misleads on sparse counts."""
    rng = np.random.default_rng(4)
    rate = np.full((100, 100), 0.1)
    counts = rng.poisson(rate)
    assert mean_absolute_error(np.zeros_like(rate), counts) < mean_absolute_error(rate, counts)


@pytest.mark.parametrize(
    ("rate", "counts", "message"),
    [
        (RATE[:1], COUNTS, r"rate must have the shape of counts \(2, 3\), got \(1, 3\)"),
        (-RATE, COUNTS, r"rate must be non-negative and finite, got -0.5 at index \(0, 0\)"),
        (RATE * np.nan, COUNTS, "rate must be non-negative and finite, got nan"),
        (RATE * np.inf, COUNTS, "rate must be non-negative and finite, got inf"),
        (RATE, COUNTS - 1, r"counts must be non-negative and finite, got -1.0 at index \(0, 0\)"),
        (np.empty((0, 3)), np.empty((0, 3)), "counts must not be empty"),
    ],
)
def test_what_is_refused(rate, counts, message):
    with pytest.raises(ValueError, match=message):
        mean_absolute_error(rate, counts)
    with pytest.raises(ValueError, match=message):
        log_score(counts, rate)


def test_a_score_per_token_needs_a_token():
    with pytest.raises(ValueError, match="counts must include a positive one, got zeros only"):
        log_score(np.zeros((2, 2)), np.ones((2, 2)))


def test_divergence_of_poisson_laws_against_its_sum():
    rng = np.random.default_rng(1)
    true, rate = rng.gamma(1.0, 3.0, (2, 4, 3))
    y = np.arange(200)[:, None, None]
    mass = poisson.pmf(y, true)
    slow = (mass * (poisson.logpmf(y, true) - poisson.logpmf(y, rate))).sum(axis=0).mean()
    assert poisson_divergence(true, rate) == pytest.approx(slow, rel=1e-9)


def test_divergence_against_scikit_learn():
    """Its Poisson deviance is twice the divergence of the laws, the truth taken for the data."""
    rng = np.random.default_rng(2)
    true, rate = rng.gamma(0.5, 2.0, 600), rng.gamma(0.5, 2.0, 600)
    expected = metrics.mean_poisson_deviance(true, rate) / 2.0
    assert poisson_divergence(true, rate) == pytest.approx(expected, rel=1e-10)


def test_divergence_at_the_ends():
    assert poisson_divergence([0.0, 2.0], [0.0, 2.0]) == 0.0
    assert poisson_divergence([0.0], [3.0]) == 3.0
    assert poisson_divergence([3.0], [0.0]) == np.inf
    assert poisson_divergence([1e-310], [1e15]) == 1e15  # their ratio is zero in doubles


LABELLED = {
    "tables": lambda rows: pd.DataFrame(RATE, index=list(rows), columns=list("xyz")),
    "rates of a fit": lambda rows: xr.DataArray(
        RATE, dims=("doc", "word"), coords={"doc": list(rows), "word": list("xyz")}
    ),
}


def turned(score):
    """A score that takes the counts first, with the rate first."""
    return lambda rate, counts: score(counts, rate)


@pytest.mark.parametrize("make", LABELLED.values(), ids=LABELLED)
@pytest.mark.parametrize("score", [mean_absolute_error, turned(poisson_divergence), turned(log_score)])
def test_labels_of_rates_and_counts_must_agree(make, score):
    counts = pd.DataFrame(COUNTS, index=["a", "b"], columns=list("xyz"))
    wanted = score(RATE, COUNTS)
    for rate, true in ((make("ab"), counts), (make("ab"), COUNTS), (RATE, counts), (make("01"), counts)):
        assert score(rate, true) == wanted
    with pytest.raises(ValueError, match="got 'b' for 'a' at entry 0 of axis 0"):
        score(make("ba"), counts)
    with pytest.raises(ValueError, match="got 'x' for 'z' at entry 0 of axis 1"):
        score(make("ab"), counts[list("zyx")])


SHORT = {"draws": 15, "tune": 15, "chains": 2, "seed": 1, "threads": 1, "progress": False}
SEEN = np.random.default_rng(1).negative_binomial(0.5, 0.3, (12, 7))
HIDDEN = np.random.default_rng(2).random((12, 7)) < 0.3


def fitted(dispersion):
    options = (
        {"likelihood": "poisson"}
        if dispersion is None
        else {"likelihood": "negative-binomial", "dispersion": dispersion}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cv.TopicModel(2, **options, **SHORT).fit(cv.ExactCounts(SEEN))


def masses(fit, dispersion):
    """(draws, D, V) P(count | draw)."""
    found, posterior = [], fit.posterior["posterior"]
    for s, (theta, phi) in enumerate(each for each, _ in fit._reader.draws()):
        rate = theta @ phi.T
        if dispersion is None:
            found.append(stats.poisson.pmf(SEEN, rate))
            continue
        p = dispersion if "p" not in posterior else posterior["p"][s // 15, s % 15].to_numpy()
        p = p[:, None] if dispersion == "row" else p
        found.append(stats.nbinom.pmf(SEEN, rate / -np.log1p(-p), 1.0 - p))
    return np.array(found)


@pytest.mark.long
@pytest.mark.parametrize("dispersion", [None, "global", "column", "row", 0.6])
def test_it_is_the_log_of_the_average_over_draws(dispersion):
    fit = fitted(dispersion)
    average = masses(fit, dispersion).mean(axis=0)
    expected = np.log(average).sum() / SEEN.sum()
    assert predictive_log_score(SEEN, fit) == pytest.approx(expected, rel=1e-9)
    assert predictive_log_score(sp.csr_array(SEEN), fit) == pytest.approx(expected, rel=1e-9)
    some = np.log(average)[HIDDEN].sum() / SEEN[HIDDEN].sum()
    assert predictive_log_score(SEEN, fit, HIDDEN) == pytest.approx(some, rel=1e-9)


def test_what_does_not_fit_is_refused_in_words():
    fit = fitted(None)
    with pytest.raises(ValueError, match=r"counts must have the shape of the fit's data \(12, 7\), got \(7, 12\)"):
        predictive_log_score(SEEN.T, fit)
    with pytest.raises(ValueError, match=r"cells must have the shape of the fit's data"):
        predictive_log_score(SEEN, fit, HIDDEN[:3])
    with pytest.raises(ValueError, match="counts must include a positive one among the cells, got none"):
        predictive_log_score(0 * SEEN, fit)


def test_counts_go_by_their_labels_and_must_be_counts():
    table = pd.DataFrame(SEEN, [f"text {d}" for d in range(12)], [f"word {v}" for v in range(7)])
    fit = cv.TopicModel(2, **SHORT).fit(cv.ExactCounts(table))
    cells = pd.DataFrame(HIDDEN, table.index, table.columns)
    assert predictive_log_score(table, fit, cells) == predictive_log_score(SEEN, fit, HIDDEN)
    for wrong, message in (
        (table.iloc[::-1], "counts must have the doc labels of reports in their order, got 'text 11'"),
        (-SEEN, r"counts must be whole numbers, 0 or more, got something else at index \(\d, \d\)"),
        (SEEN + 0.5, r"got something else at index \(0, 0\)"),
        (np.where(HIDDEN, np.nan, SEEN), r"got something else at index \(\d, \d\)"),
        (np.ma.masked_array(SEEN, HIDDEN), "counts must have no masked entries, got some: leave them out with cells="),
    ):
        with pytest.raises(ValueError, match=message):
            predictive_log_score(wrong, fit)
    for wrong in (cells.iloc[:, ::-1], np.full(SEEN.shape, 0.5)):
        with pytest.raises(ValueError, match="cells must"):
            predictive_log_score(SEEN, fit, wrong)


SIZE, ALPHA, P = (200, 60), 0.5, 0.85
BRIEF = {"draws": 1, "tune": 0, "chains": 1, "seed": 1, "threads": 1, "progress": False}
BURSTY = {"likelihood": "negative-binomial", "dispersion": P}
N = SIZE[0] * SIZE[1]


@pytest.fixture(scope="module")
def factors():
    """theta and phi whose products are rates of bursts, from next to nothing to dozens."""
    rng = np.random.default_rng(1)
    theta, phi = rng.gamma(0.5, 2.0, (SIZE[0], 2)), rng.dirichlet(np.full(SIZE[1], 0.5), 2)
    return 20.0 * theta, phi.T


@pytest.fixture(scope="module")
def counts(factors):
    theta, phi = factors
    rate = theta @ phi.T + 1e-9
    return np.random.default_rng(2).negative_binomial(rate / -np.log1p(-P), 1.0 - P)


@pytest.fixture(scope="module")
def data(counts):
    return cv.PrivatizedCounts(counts + two_sided_geometric(np.full(SIZE, ALPHA), np.random.default_rng(3)), ALPHA)


def at_the_truth(factors, data, poisson=False):
    """A fit of one draw, which is the truth; of Poisson counts with the true expected counts."""
    fit = cv.TopicModel(2, **BRIEF, **({"likelihood": "poisson"} if poisson else BURSTY)).fit(data)
    theta, phi = factors
    scale = P / (-np.log1p(-P) * (1.0 - P)) if poisson else 1.0
    draws = fit.posterior["posterior"].dataset.copy(deep=True)
    draws["theta"][0, 0], draws["phi"][0, 0] = scale * theta, phi.T
    fit.posterior["posterior"].dataset = draws
    return fit


@pytest.fixture(scope="module")
def right(factors, data):
    return at_the_truth(factors, data)


@pytest.fixture(scope="module")
def wrong(factors, data):
    return at_the_truth(factors, data, poisson=True)


def agrees(share, expected, n):
    """Whether a share of n cells is as a binomial one."""
    return abs(share - expected) < stats.norm.isf(FALSE_ALARM / 2) * np.sqrt(expected * (1 - expected) / n)


@pytest.mark.long
@pytest.mark.parametrize("interval", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("given", [True, False])
def test_the_right_model_covers_what_it_says(right, wrong, counts, data, given, interval):
    X, rng = data if given else None, np.random.default_rng(4)
    assert agrees(coverage(counts, right, rng, X, interval), interval, N)
    assert not agrees(coverage(counts, wrong, rng, X, interval), interval, N)


def test_a_choice_by_reports_keeps_it_true_and_one_by_counts_does_not(right, counts, data):
    reports = np.zeros(SIZE, dtype=np.int64)
    reports[data.row_numbers, data.columns] = data.reports
    for chosen in (reports > 0, reports == 0, reports > 5):
        assert agrees(coverage(counts, right, np.random.default_rng(5), data, cells=chosen), 0.9, chosen.sum())
    chosen = counts > 0
    assert not agrees(coverage(counts, right, np.random.default_rng(5), data, cells=chosen), 0.9, chosen.sum())


def test_hidden_reports_are_covered(right, wrong, data):
    rng, chosen = np.random.default_rng(6), np.random.default_rng(7).random(SIZE) < 0.5
    assert agrees(coverage_of_reports(data, right, rng), 0.9, N)
    assert agrees(coverage_of_reports(data, right, rng, 0.5, chosen), 0.5, chosen.sum())
    assert coverage_of_reports(data, wrong, rng) < 0.85


def test_pit_values_are_uniform(right, wrong, counts, data):
    rng = np.random.default_rng(8)
    for pit in (
        randomised_pit(counts, right, rng, data),
        randomised_pit(counts, right, rng),
        randomised_pit_of_reports(data, right, rng),
    ):
        assert pit.shape == (N,)
        assert stats.kstest(pit, "uniform").pvalue > FALSE_ALARM
    for pit in (randomised_pit(counts, wrong, rng, data), randomised_pit_of_reports(data, wrong, rng)):
        assert stats.kstest(pit, "uniform").pvalue < 1e-20


def test_what_makes_no_sense_is_refused_in_words(right, counts, data):
    rng = np.random.default_rng(9)
    with pytest.raises(ValueError, match=r"interval must be between 0 and 1, got '0\.9'"):
        coverage(counts, right, rng, interval="0.9")
    with pytest.raises(ValueError, match="interval must be between 0 and 1, got 90"):
        coverage(counts, right, rng, data, 90)
    with pytest.raises(ValueError, match="cells must select at least one cell, got none"):
        coverage(counts, right, rng, data, cells=np.zeros(SIZE, dtype=bool))
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got int"):
        randomised_pit(counts, right, 3)
    with pytest.raises(ValueError, match="counts must have the shape"):
        randomised_pit(counts.T, right, rng)
