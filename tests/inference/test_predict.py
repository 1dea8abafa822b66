import numpy as np
import pytest
from scipy import stats

import countveil as cv
from countveil.inference.diagnostics import FitWarning, signal_share
from countveil.inference.predict import log_predictive_of_cells
from countveil.laws.counts import POISSON
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from tests.count_laws import count_laws, laws_by_draws
from tests.joint import draw_reports, planted, truncated_logpmf

QUICK = {"draws": 40, "tune": 60, "chains": 2, "seed": 1, "threads": 1}


def test_log_likelihood_is_that_of_each_draw():
    _, _, observations, reports = planted(12, 10, 2, 0.5, seed=1, tokens=30.0)
    fit = cv.TopicModel(2, likelihood="poisson", **QUICK).fit(observations)
    scores = fit.log_likelihood(observations)
    assert scores.dims == ("chain", "draw", "cell")
    draws = fit.posterior["posterior"].isel(chain=1, draw=7)
    mu = draws["theta"].to_numpy().astype(float) @ draws["phi"].to_numpy()
    expected = truncated_logpmf(reports, mu, np.asarray(0.5))
    np.testing.assert_allclose(scores[1, 7].to_numpy().reshape(12, 10), expected, rtol=1e-5)
    total = fit.posterior["sample_stats"]["log_likelihood"].to_numpy()
    np.testing.assert_allclose(scores.sum("cell"), total, rtol=1e-6)
    density = fit.log_predictive(observations)
    np.testing.assert_allclose(density, np.log(np.exp(scores).mean(("chain", "draw"))), rtol=1e-9)


def test_only_seen_cells_can_be_scored():
    _, _, observations, reports = planted(12, 10, 2, 0.5, seed=1, tokens=30.0)
    mask = np.zeros((12, 10), dtype=bool)
    mask[3, 4] = mask[5, 6] = True
    fit = cv.TopicModel(2, **QUICK).fit(cv.PrivatizedCounts(reports, 0.5, mask))
    assert fit.log_predictive(observations, mask).sizes["cell"] == 2
    assert fit.log_predictive(cv.PrivatizedCounts(reports, 0.5, mask)).sizes["cell"] == 118
    with pytest.raises(ValueError, match=r"got a masked cell at index \(3, 4\)"):
        fit.log_predictive(cv.PrivatizedCounts(reports, 0.5, mask), mask)
    with pytest.raises(ValueError, match=r"of the fit, doc x word = \(12, 10\), got \(11, 10\)"):
        fit.log_predictive(cv.PrivatizedCounts(reports[1:], 0.5))


@pytest.mark.long
@pytest.mark.parametrize("dispersion", ["row", "column"])
def test_cells_are_scored_draw_by_draw_as_all_at_once(dispersion):
    _, _, observations, _ = planted(12, 10, 2, 0.5, seed=1, tokens=30.0)
    fit = cv.TopicModel(2, dispersion=dispersion, **QUICK).fit(observations)
    every, rng = fit.log_predictive(observations).to_numpy().reshape(12, 10), np.random.default_rng(1)
    rows, columns = np.divmod(rng.permutation(120)[:25], 10)
    draws = fit._reader.draws()
    found = log_predictive_of_cells(draws, observations, fit.model_.likelihood, rows, columns)
    np.testing.assert_allclose(found, every[rows, columns], rtol=1e-12)
    hidden = observations.hide(rows, columns)
    with pytest.raises(ValueError, match="got a masked cell at index"):
        log_predictive_of_cells([], hidden, fit.model_.likelihood, rows, columns)


@pytest.mark.long
@pytest.mark.parametrize("method", ["gibbs", "em"])
def test_held_out_cells_prefer_the_true_number_of_topics(method):
    _, _, observations, reports = planted(120, 60, 6, np.exp(-1), seed=3)
    mask = np.random.default_rng(4).random(reports.shape) < 0.1
    seen = cv.PrivatizedCounts(reports, np.exp(-1), mask)
    scores = {}
    for k in (3, 6, 12):
        fit = cv.TopicModel(k, method=method, likelihood="poisson", **QUICK | {"tune": 100}).fit(seen)
        scores[k] = float(fit.log_predictive(observations, mask).mean())
    assert max(scores, key=scores.get) == 6


@pytest.mark.long
def test_predicted_releases_look_like_the_release():
    _, _, observations, reports = planted(60, 40, 3, 0.6, seed=2)
    fit = cv.TopicModel(3, **QUICK).fit(observations)
    simulated = fit.predict_reports(50, np.random.default_rng(5)).to_numpy()
    assert simulated.min() == 0
    for quantity in (lambda r: (r > 0).mean(axis=(-2, -1)), lambda r: np.maximum(r, 0).mean(axis=(-2, -1))):
        values, seen = quantity(simulated), quantity(reports)
        assert abs(values.mean() - seen) < 4 * values.std()
    with pytest.raises(TypeError, match="rng must be"):
        fit.predict_reports(3, 7)


def test_laws_of_counts_are_normalised_and_have_the_expected_count():
    reports, alpha = np.array([-3, 0, 2, 40]), np.array([0.5, 0.1, 0.0, 0.7])
    rates = np.array([[1.0, 0.2, 3.0, 9.0], [2.0, 7.0, 0.4, 30.0]])
    laws = count_laws(reports, rates, TWO_SIDED_GEOMETRIC, alpha, POISSON)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-12)
    expected = cv.expected_true_counts(reports, rates, alpha).mean(axis=0)
    np.testing.assert_allclose(laws @ np.arange(laws.shape[1]), expected, rtol=1e-8)
    assert laws[2, 2] == 1.0
    poisson = np.exp(-0.5) * 0.5**2 / 2.0, np.exp(-1.0) / 2.0
    assert laws[0, 2] == pytest.approx(np.mean(poisson), rel=1e-9)
    for slow, fast in zip(laws, laws_by_draws(reports, rates, TWO_SIDED_GEOMETRIC, alpha, POISSON), strict=True):
        np.testing.assert_allclose(fast.sum(), 1.0, rtol=1e-12)
        np.testing.assert_allclose(fast[: slow.size], slow[: fast.size], atol=1e-10)


@pytest.mark.parametrize("kind", ["row", "cell"])
def test_signal_share_is_one_at_the_true_rates_and_zero_at_none(kind):
    rng = np.random.default_rng(6)
    theta, phi = rng.gamma(1.0, 1.0, (400, 3)), rng.gamma(1.0, 1.0, (300, 3))
    mu = theta @ phi.T
    alpha = rng.uniform(0.2, 0.8, mu.shape if kind == "cell" else 400)
    full = alpha if kind == "cell" else alpha[:, None]
    mask = rng.random(mu.shape) < 0.1
    observations = cv.PrivatizedCounts(draw_reports(mu, full, rng), alpha, mask)
    p = 1.0 - np.exp(-(1 - full) * mu) / (1 + full)
    by_noise = np.broadcast_to(full / (1 + full), mu.shape)
    error = np.sqrt((p * (1 - p))[~mask].sum()) / (p - by_noise)[~mask].sum()
    z = stats.norm.isf(1e-4)
    found = signal_share(observations, theta, phi)
    assert abs(found.value - 1.0) < z * error
    assert found.error == pytest.approx(error, rel=0.1)  # which divides by what was expected
    assert signal_share(observations, 0 * theta, phi).value == 0.0


def test_a_starved_fit_says_so_in_words():
    _, _, observations, _ = planted(150, 120, 5, np.exp(-0.5), seed=6, tokens=12.0)
    model = cv.TopicModel(5, method=cv.CAVI(tolerance=1e-8), draws=5, seed=1)
    with pytest.warns(FitWarning, match="has shrunk its components too far"):
        fit = model.fit(observations)
    assert "Not safe yet" in fit.diagnostics().verdict
    with pytest.warns(FitWarning, match=r"the fit expects \d{3}% .* of the sum of the true counts"):
        kept = cv.TopicModel(5, method=cv.CAVI(expectation="arithmetic"), draws=5, seed=1).fit(observations)
    assert "shrunk" not in kept.diagnostics().verdict


@pytest.mark.long
@pytest.mark.parametrize("method", ["gibbs", "em"])
def test_no_cells_have_no_densities(method):
    data = cv.PrivatizedCounts([[2]], 0.5)  # one actor, whose only cell is a self-loop
    fit = cv.BlockModel(1, method=method, **QUICK).fit(data)
    assert fit.log_likelihood(data).sizes["cell"] == 0
    assert fit.log_predictive(data).shape == (0,)


def test_a_pair_is_one_cell_and_no_cells_are_none():
    counts = np.triu(np.random.default_rng(1).poisson(2.0, (8, 8)), 1)
    mask = np.zeros((8, 8), dtype=bool)
    mask[1, 5] = mask[5, 1] = True
    reports = counts + counts.T
    data = cv.PrivatizedCounts(reports, 0.3)
    fit = cv.BlockModel(2, directed=False, **QUICK).fit(cv.PrivatizedCounts(reports, 0.3, mask))
    one_side = fit.log_predictive(data, np.triu(mask))
    for chosen in (mask, np.tril(mask)):
        np.testing.assert_array_equal(fit.log_predictive(data, chosen), one_side)
    assert one_side.sizes["cell"] == 1
    assert fit.log_likelihood(data, np.zeros((8, 8), dtype=bool)).sizes["cell"] == 0
