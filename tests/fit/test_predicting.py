"""What a fit predicts, against laws that are added up from its draws by SciPy."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import countveil as cv
from countveil.inference import predict
from tests.joint import FALSE_ALARM, fitted, two_sided_geometric

pytestmark = pytest.mark.long

SHORT = {"draws": 9, "tune": 10, "chains": 3, "seed": 1, "threads": 1, "progress": False}
BURSTY = {"likelihood": "negative-binomial", "dispersion": "column"}
SIZE, ALPHA = (9, 6), 0.5
MOST = {True: 12_000, False: 1000}  # counts of laws with and without bursts
HIDDEN = np.zeros(SIZE, dtype=bool)
HIDDEN[2, 3] = HIDDEN[4, 4] = HIDDEN[8, 0] = True
WORDS = [f"w{v}" for v in range(SIZE[1])]
KINDS = {"poisson": {}, "bursty": BURSTY, "em": {"method": "em"}}


def planted():
    """(true counts, reports)."""
    rng = np.random.default_rng(1)
    counts = rng.negative_binomial(rng.gamma(0.5, 2.0, SIZE) + 0.01, 0.2)
    return counts, counts + two_sided_geometric(np.full(SIZE, ALPHA), rng)


def seen(mask=HIDDEN):
    return cv.PrivatizedCounts(planted()[1], ALPHA, mask, column_labels=WORDS)


@pytest.fixture(scope="module", params=list(KINDS))
def fit(request):
    return fitted(cv.TopicModel(2, **SHORT, **KINDS[request.param]), seen())


@cache
def laws_of(fit):
    """(2, D, V, counts) P(count | report) without reports, and where they are given: means over draws."""
    reports, total, n = planted()[1], 0.0, 0
    counts = np.arange(MOST[bool(fit.model_.likelihood.parameter_axes)])
    kernel = np.where(HIDDEN[:, :, None], 1.0, ALPHA ** np.abs(np.maximum(reports, 0)[:, :, None] - counts))
    for (theta, phi), own in fit._reader.draws():
        rate = (theta @ phi.T)[:, :, None]
        if own:
            p = own[0][None, :, None]
            mass = stats.nbinom.pmf(counts, rate / -np.log1p(-p), 1.0 - p)
        else:
            mass = stats.poisson.pmf(counts, rate)
        weights = np.stack([mass, mass * kernel])
        total += weights / weights.sum(axis=3, keepdims=True)
        n += 1
    return total / n


def laws(fit, given):
    """(D, V, counts) of these."""
    return laws_of(fit)[int(given)]


@pytest.mark.parametrize("given", [True, False])
def test_intervals_are_those_of_the_averaged_law(fit, given):
    expected = laws(fit, given)
    found = fit.count_intervals(seen() if given else None, 0.8, uncalibrated=True)
    assert found["mean"].dims == ("doc", "word")
    assert list(found["word"].to_numpy()) == WORDS
    np.testing.assert_allclose(found["mean"], expected @ np.arange(expected.shape[2]), rtol=1e-6)
    passed, names = np.cumsum(expected, axis=2), ["median", "lower", "upper"]
    if fit._reader.why_no_intervals:
        names[1:] = ["uncalibrated_lower", "uncalibrated_upper"]
        assert list(fit.count_intervals(seen())) == ["mean", "median"]
    for name, level in zip(names, (0.5, 0.1, 0.9), strict=True):
        assert found[name].dtype == np.int64
        np.testing.assert_array_equal(found[name], (passed < level - 1e-9).sum(axis=2))
    with pytest.raises(ValueError, match="interval must be between 0 and 1"):
        fit.count_intervals(interval=1.0)


def test_long_laws_and_small_pieces_change_nothing(fit, monkeypatch):
    whole = fit.count_intervals(seen(), uncalibrated=True)
    monkeypatch.setattr(predict, "FEWEST_COUNTS", 1)
    monkeypatch.setattr(predict, "PROBABILITIES_AT_ONCE", 20)
    monkeypatch.setattr("countveil.fit.predicting.CELLS_AT_ONCE", 12)
    again = fit.count_intervals(seen(), uncalibrated=True)
    np.testing.assert_allclose(again["mean"], whole["mean"], rtol=1e-9)
    for name in list(whole)[1:]:
        np.testing.assert_array_equal(again[name], whole[name])


@pytest.mark.parametrize("given", [True, False])
def test_simulated_counts_follow_the_averaged_law(fit, given):
    expected, n = laws(fit, given), 1000
    drawn = fit.predict_counts(n, np.random.default_rng(2), seen() if given else None)
    assert drawn.dims == ("table", "doc", "word")
    assert drawn.sizes["table"] == n
    counts = np.arange(expected.shape[2])
    mean = expected @ counts
    deviation = np.sqrt(expected @ counts**2 - mean**2)
    error = np.abs(drawn.to_numpy().mean(axis=0) - mean) / (deviation / np.sqrt(n))
    assert error.max() < stats.norm.isf(FALSE_ALARM / error.size)


def test_counts_without_noise_are_their_reports(fit):
    counts, _ = planted()
    data = cv.ExactCounts(counts, HIDDEN, column_labels=WORDS)
    drawn = fit.predict_counts(3, np.random.default_rng(2), data).to_numpy()
    assert (drawn[:, ~HIDDEN] == counts[~HIDDEN]).all()
    found = fit.count_intervals(data)
    np.testing.assert_array_equal(found["median"].to_numpy()[~HIDDEN], counts[~HIDDEN])


@pytest.mark.parametrize("given", [True, False])
def test_probabilities_of_true_counts(fit, given):
    counts, _ = planted()
    expected = laws(fit, given)
    place = (*np.indices(SIZE), counts)
    below, at = fit._count_probabilities(counts, seen() if given else None)
    np.testing.assert_allclose(at.reshape(SIZE), expected[place], rtol=1e-6, atol=1e-12)
    passed = np.cumsum(expected, axis=2)[place] - expected[place]
    np.testing.assert_allclose(below.reshape(SIZE), passed, rtol=1e-6, atol=1e-9)
    some = fit._count_probabilities(pd.DataFrame(counts, columns=WORDS), seen() if given else None, HIDDEN)
    np.testing.assert_allclose(some[1], expected[place][HIDDEN], rtol=1e-6, atol=1e-12)


def test_probabilities_of_hidden_reports(fit):
    _, reports = planted()
    below, at = fit._report_probabilities(seen(None), HIDDEN)
    scores = fit.log_predictive(seen(None), HIDDEN)
    np.testing.assert_allclose(np.log(at), scores, rtol=1e-6)
    for i, place in enumerate(np.argwhere(HIDDEN)):
        less = np.zeros(SIZE, dtype=np.int64) + np.arange(max(reports[tuple(place)], 0))[:, None, None]
        each = [fit.log_predictive(cv.PrivatizedCounts(r, ALPHA), HIDDEN)[i] for r in less]
        assert below[i] == pytest.approx(np.exp(each).sum(), rel=1e-6, abs=1e-12)
    assert fit._report_probabilities(seen())[0].size == (~HIDDEN).sum()


def test_what_does_not_fit_is_refused_in_words(fit):
    counts, reports = planted()
    with pytest.raises(ValueError, match=r"X must hold the cells of the fit, doc x word = \(9, 6\)"):
        fit.predict_counts(2, np.random.default_rng(1), cv.PrivatizedCounts(reports[1:], ALPHA))
    with pytest.raises(ValueError, match=r"counts must have the shape of the fit's data \(9, 6\), got \(6, 9\)"):
        fit._count_probabilities(counts.T)
    with pytest.raises(ValueError, match="counts must have the word labels"):
        fit._count_probabilities(pd.DataFrame(counts, columns=WORDS[::-1]))
    with pytest.raises(ValueError, match=r"cells must not be masked in X, got a masked cell at index \(\d, \d\)"):
        fit._report_probabilities(seen(), HIDDEN)
    with pytest.raises(TypeError, match="rng must be"):
        fit.predict_counts(2, 3)
    first = r"index \({}, {}\)".format(*np.argwhere(HIDDEN)[0])
    for wrong, message in (
        (np.where(HIDDEN, -1, counts), rf"counts must be whole numbers, 0 or more, got something else at {first}"),
        (np.where(HIDDEN, np.nan, counts), rf"got something else at {first}"),
        (np.where(HIDDEN, np.inf, counts), rf"got something else at {first}"),
        (np.full(SIZE, "3"), "counts must be whole numbers, 0 or more, got values of type <U1"),
        (counts + 0.5, r"got something else at index \(0, 0\)"),
    ):
        with pytest.raises(ValueError, match=message):
            fit._count_probabilities(wrong)


@pytest.mark.parametrize("dispersion", ["row", "column"])
def test_axes_and_parameters_of_other_models(dispersion):
    rng = np.random.default_rng(4)
    counts = rng.negative_binomial(1.0, 0.3, (5, 4, 3))
    data = cv.PrivatizedCounts(counts + two_sided_geometric(np.full(counts.shape, 0.3), rng), 0.3)
    options = SHORT | {"likelihood": "negative-binomial", "dispersion": dispersion}
    tensor = fitted(cv.TensorModel(2, modes=["a", "b", "c"], **options), data)
    drawn = tensor.predict_counts(2000, rng, data)
    found = tensor.count_intervals(data)
    assert found["median"].dims == ("a", "b", "c")
    np.testing.assert_allclose(drawn.mean("table"), found["mean"], atol=0.6)
    assert float(abs(drawn.mean("table") - found["mean"]).mean()) < 0.06
    below, _ = tensor._count_probabilities(counts, data)
    shares = (drawn < counts).mean("table").to_numpy().ravel()
    np.testing.assert_allclose(below, shares, atol=0.06)
