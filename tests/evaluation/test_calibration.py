"""Coverage and PIT values: right where the model is right, by simulation from it, and wrong where it is wrong."""

import numpy as np
import pytest
from scipy import stats

import countveil as cv
from countveil.evaluation import coverage, coverage_of_reports, randomised_pit, randomised_pit_of_reports
from tests.joint import FALSE_ALARM, two_sided_geometric

SIZE, ALPHA, P = (200, 60), 0.5, 0.85
SHORT = {"draws": 1, "tune": 0, "chains": 1, "seed": 1, "threads": 1, "progress": False}
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
    return cv.PrivatizedCounts(
        counts + two_sided_geometric(np.full(SIZE, ALPHA), np.random.default_rng(3)), ALPHA
    )


def at_the_truth(factors, data, poisson=False):
    """A fit of one draw, which is the truth; of Poisson counts with the true expected counts."""
    fit = cv.TopicModel(2, **SHORT, **({"likelihood": "poisson"} if poisson else BURSTY)).fit(data)
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
        assert agrees(
            coverage(counts, right, np.random.default_rng(5), data, cells=chosen), 0.9, chosen.sum()
        )
    chosen = counts > 0
    assert not agrees(
        coverage(counts, right, np.random.default_rng(5), data, cells=chosen), 0.9, chosen.sum()
    )


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
    with pytest.raises(ValueError, match="cells must choose at least one, got none"):
        coverage(counts, right, rng, data, cells=np.zeros(SIZE, dtype=bool))
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got int"):
        randomised_pit(counts, right, 3)
    with pytest.raises(ValueError, match="counts must have the shape"):
        randomised_pit(counts.T, right, rng)
