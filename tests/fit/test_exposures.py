"""What fits with exposures by cell say: every rate, law, score and prediction is that at the exposure of its cell."""

import warnings

import numpy as np
import pytest
from scipy import stats

import countveil as cv
from countveil.fit.component_tables import component_counts
from countveil.fit.results import check_file
from countveil.inference.predict import log_predictive
from countveil.privacy.mechanisms import Suppression
from countveil.selection import hold_out

pytestmark = pytest.mark.long

SHAPE = (9, 5)
OPTIONS = {"draws": 10, "tune": 10, "chains": 2, "seed": 1, "threads": 1, "progress": False}
LONGER = OPTIONS | {"draws": 30, "tune": 30}


def scene(seed=1):
    """(counts, exposures, the same with counts of 1 to 3 hidden)."""
    rng = np.random.default_rng(seed)
    exposure = np.exp(rng.normal(1.0, 1.5, SHAPE))
    counts = rng.poisson(exposure * (rng.gamma(1.0, 1.0, (9, 2)) @ rng.gamma(1.0, 1.0, (2, 5))))
    values = np.where((counts > 0) & (counts < 4), np.nan, counts)
    mask = np.zeros(SHAPE, dtype=bool)
    mask[2, 3] = True
    return counts, exposure, cv.Reports(values, Suppression(4), mask, exposure=exposure), values, mask


@pytest.fixture(scope="module")
def fitted():
    """(fit of a Poisson topic model, counts, exposures, data, values, mask)."""
    made = scene()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cv.TopicModel(2, likelihood="poisson", **OPTIONS).fit(made[2])
    return fit, *made


def rates_of(fit, exposure):
    """(draws, D, V) of counts."""
    return np.array([exposure * (theta @ phi.T) for (theta, phi), _ in fit._reader.draws()])


def test_rates_and_totals_are_of_counts(fitted):
    fit, _, exposure, _, _, mask = fitted
    rates = rates_of(fit, exposure)
    np.testing.assert_array_equal(fit._reader.exposure_matrix, exposure)
    np.testing.assert_allclose(fit.rate(), rates.mean(axis=0), rtol=1e-6)
    totals = fit.posterior["sample_stats"]["total_rate"].to_numpy().ravel()
    np.testing.assert_allclose(totals, rates.sum(axis=(1, 2)), rtol=1e-5)
    assert fit.totals().fitted == pytest.approx(rates[:, ~mask].sum(axis=1).mean(), rel=1e-5)


def test_laws_of_counts_are_those_at_their_exposures(fitted):
    fit, counts, exposure, data, values, mask = fitted
    y, rates = np.arange(4000), rates_of(fit, exposure)
    mass = np.array([stats.poisson.pmf(y, draw[..., None]) for draw in rates])
    allowed = np.where(np.isnan(values)[..., None], (y > 0) & (y < 4), values[..., None] == y)
    allowed |= mask[..., None]
    given = mass * allowed
    given = (given / given.sum(axis=-1, keepdims=True)).mean(axis=0)
    found = fit.count_intervals(data)
    np.testing.assert_allclose(found["mean"], given @ y, rtol=1e-6)
    np.testing.assert_array_equal(found["median"], np.argmax(np.cumsum(given, axis=-1) >= 0.5 - 1e-12, axis=-1))
    np.testing.assert_allclose(fit.count_intervals()["mean"], rates.mean(axis=0), rtol=1e-4)
    _, at = fit._count_probabilities(counts, data)
    np.testing.assert_allclose(at, np.take_along_axis(given, counts[..., None], -1).ravel(), atol=1e-9)
    scores, _ = fit._log_probabilities(counts)
    own = np.take_along_axis(mass, np.broadcast_to(counts, (len(rates), *SHAPE))[..., None], -1)[..., 0]
    np.testing.assert_allclose(scores, np.log(own.mean(axis=0)).ravel(), rtol=1e-6)


def test_scores_of_reports_are_those_at_their_exposures(fitted):
    fit, _, exposure, data, values, mask = fitted
    y = np.arange(4000)
    allowed = np.where(np.isnan(values)[..., None], (y > 0) & (y < 4), values[..., None] == y)
    chance = np.array(
        [(stats.poisson.pmf(y, draw[..., None]) * allowed).sum(axis=-1) for draw in rates_of(fit, exposure)]
    )
    scores = fit.log_likelihood(data)
    np.testing.assert_allclose(scores.to_numpy().reshape(len(chance), -1), np.log(chance[:, ~mask]), atol=1e-6)
    np.testing.assert_allclose(fit.log_predictive(data), np.log(chance[:, ~mask].mean(axis=0)), atol=1e-6)
    assert fit.posterior["sample_stats"]["log_likelihood"].to_numpy().ravel() == pytest.approx(
        np.log(chance[:, ~mask]).sum(axis=1), abs=1e-3
    )
    np.testing.assert_allclose(fit.log_predictive(data), log_predictive(scores), rtol=1e-12)
    _, at = fit._report_probabilities(data)
    np.testing.assert_allclose(at, chance[:, ~mask].mean(axis=0), atol=1e-6)


def test_simulated_tables_have_the_exposures(fitted):
    fit, counts, exposure, data, values, mask = fitted
    n, mean = 400, rates_of(fit, exposure).mean(axis=0)
    most = stats.norm.isf(1e-6)
    new = fit.predict_counts(n, np.random.default_rng(1)).to_numpy()
    error = new.std(axis=0, ddof=1) / np.sqrt(n)
    assert (np.abs(new.mean(axis=0) - mean) < most * error + 1e-9).all()
    behind = fit.predict_counts(n, np.random.default_rng(1), data).to_numpy()
    known = ~np.isnan(values) & ~mask
    assert (behind[:, known] == counts[known]).all()
    free = behind[:, mask]
    assert abs(free.mean() - mean[mask]) < most * free.std() / np.sqrt(n)
    reports = fit.predict_reports(n, np.random.default_rng(1), data).to_numpy()
    shares, expected = np.isnan(reports).mean(axis=0), np.zeros(SHAPE)
    for draw in rates_of(fit, exposure):
        expected += stats.poisson.cdf(3, draw) - stats.poisson.pmf(0, draw)
    expected /= len(rates_of(fit, exposure))
    assert (np.abs(shares - expected) < most * np.sqrt(expected * (1 - expected) / n) + 0.02).all()


def test_tables_of_counts_have_them(fitted):
    """Single counts by their laws, sums by drawn tables; a masked count is of its rate at its own exposure."""
    fit, _, exposure, data, _, mask = fitted
    table, laws = fit.counts_table(data, cells="all"), fit.count_intervals(data)
    np.testing.assert_allclose(table["exposure"], exposure.ravel())
    for name in ("mean", "lower", "upper"):
        np.testing.assert_allclose(table[name], laws[name].to_numpy().ravel(), rtol=1e-6)
    np.testing.assert_allclose(table["rate"], table["mean"] / exposure.ravel())
    rates = rates_of(fit, exposure)[:, mask].ravel()
    assert table["mean"][mask.ravel()].item() == pytest.approx(rates.mean(), rel=1e-3)
    sums = fit.counts_table(data, by=[], draws=4000)
    assert sums["exposure"].item() == pytest.approx(exposure.sum())
    error = np.sqrt(table["mean"].sum() / 4000) + rates.std() / np.sqrt(4000)
    assert abs(sums["mean"].item() - table["mean"].sum()) < 5.0 * error


def test_a_file_of_a_fit_keeps_them(fitted, tmp_path):
    fit, _, exposure, data, *_ = fitted
    fit.save(tmp_path / "f.nc")
    found = cv.TopicModel.load(tmp_path / "f.nc")
    np.testing.assert_array_equal(found._reader.exposure_matrix, exposure)
    np.testing.assert_array_equal(found.rate(), fit.rate())
    np.testing.assert_array_equal(found.log_predictive(data), fit.log_predictive(data))
    tree = fit.posterior.copy(deep=True)
    tree["constant_data"]["exposure"] = -tree["constant_data"]["exposure"]
    with pytest.raises(ValueError, match="must hold positive finite exposures"):
        check_file(fit, tree)


def test_data_that_come_later_need_none_or_the_same(fitted):
    fit, _, exposure, data, values, mask = fitted
    plain = cv.Reports(values, Suppression(4), mask)
    np.testing.assert_array_equal(fit.log_predictive(plain), fit.log_predictive(data))
    np.testing.assert_array_equal(fit.count_intervals(plain)["mean"], fit.count_intervals(data)["mean"])
    other = cv.Reports(values, Suppression(4), mask, exposure=2.0 * exposure)
    with pytest.raises(ValueError, match=r"X must have the exposure of the fit, or none, got .* at index \(\d+, \d+\)"):
        fit.log_predictive(other)
    with pytest.raises(ValueError, match="X must have an exposure by cell for transform"):
        fit.transform(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        without = cv.TopicModel(2, likelihood="poisson", **OPTIONS).fit(plain)
    assert without._reader.exposure_matrix is None
    with pytest.raises(ValueError, match="X must have no exposure by cell, because the fitted data have none"):
        without.log_predictive(data)
    with pytest.raises(ValueError, match="X must have no exposure by cell for transform"):
        without.transform(data)


def test_new_rows_are_transformed_with_their_exposures(fitted):
    fit, _, exposure, data, *_ = fitted
    found = fit.transform(data)
    theta = fit.posterior["posterior"]["theta"].mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(found.sum(axis=1), theta.sum(axis=1), rtol=0.5)
    tenfold = cv.ExactCounts(np.full((2, 5), 7), exposure=np.repeat([[1.0], [10.0]], 5, axis=1) * exposure[:1])
    small, large = fit.transform(tenfold).sum(axis=1)
    assert 5.0 < small / large < 20.0


def test_hidden_cells_and_folds_keep_them():
    _, exposure, data, *_ = scene()
    training, held_out = hold_out(data, 0.2, seed=1)
    np.testing.assert_array_equal(training.exposure, exposure)
    np.testing.assert_array_equal(held_out.exposure, exposure)
    models = {k: cv.TopicModel(k, likelihood="poisson", **OPTIONS) for k in (1, 2)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cv.compare(data, list(models.values()), 2, 1, draws=5, tune=5, threads=1, progress=False)
    assert np.isfinite(found.scores).all()


def test_dispersed_counts_have_them_too():
    rng = np.random.default_rng(3)
    exposure, p = np.exp(rng.normal(2.0, 1.2, (40, 8))), 0.7
    bursts = exposure * (rng.gamma(2.0, 0.5, (40, 1)) @ rng.gamma(2.0, 0.5, (1, 8)))
    counts = rng.negative_binomial(bursts / -np.log1p(-p), 1.0 - p)
    data = cv.ExactCounts(counts, exposure=exposure)
    model = cv.PoissonFactorization(
        "dk,vk->dv", {"k": 1}, likelihood="negative-binomial", dispersion="column", **LONGER
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = model.fit(data)
    assert fit.dispersions()["p"].to_numpy().mean() == pytest.approx(p, abs=0.06)
    mean = bursts / -np.log1p(-p) * p / (1.0 - p)
    assert np.abs(np.log(fit.rate().to_numpy() / mean)).mean() < 0.25


def test_tensors_have_them_along_their_axes():
    rng = np.random.default_rng(4)
    exposure = np.exp(rng.normal(2.0, 1.5, (10, 6, 4)))
    rates = np.einsum("i,j,t->ijt", rng.gamma(2.0, 0.5, 10), rng.gamma(2.0, 0.5, 6), rng.gamma(2.0, 0.5, 4))
    counts = rng.poisson(exposure * rates)
    data = cv.ExactCounts(counts, exposure=exposure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cv.TensorModel(1, likelihood="poisson", **LONGER).fit(data)
    found = fit.rate().to_numpy() / exposure
    assert np.abs(np.log(found / rates)).mean() < 0.2
    assert fit.predict_counts(1, rng, data).shape == (1, 10, 6, 4)
    assert np.isfinite(fit.log_predictive(data)).all()


def test_forecasts_and_joined_releases_refuse_them(tmp_path):
    rng = np.random.default_rng(6)
    exposure = np.exp(rng.normal(2.0, 0.5, (8, 4)))
    counts = rng.poisson(exposure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cv.DynamicModel(1, likelihood="poisson", **OPTIONS).fit(cv.ExactCounts(counts, exposure=exposure))
    with pytest.raises(ValueError, match="forecast needs data without an exposure by cell"):
        fit.forecast(2)
    rounded = 5 * (counts // 5)
    release = cv.import_reports(rounded, cv.mechanisms.Rounding(5), "a test", exposure=exposure)
    with pytest.raises(ValueError, match="releases with an exposure cannot be joined"):
        cv.join([release, cv.import_reports(10 * (counts // 10), cv.mechanisms.Rounding(10), "a test")])
    with pytest.raises(ValueError, match="exposure must be None with a release that has its own, got"):
        cv.Reports.from_release(release, exposure=exposure)
    np.testing.assert_array_equal(cv.NaiveCounts(release).exposure, exposure)


def test_components_are_of_counts(fitted):
    fit, _, exposure, *_ = fitted
    draws = fit.posterior["posterior"].dataset.isel(chain=[0])
    theta, phi = (draws[name].to_numpy()[0] for name in ("theta", "phi"))
    phi = phi if phi.shape[1:] == (2, 5) else phi.transpose(0, 2, 1)
    each = np.einsum("dv,sdk,skv->skdv", exposure, theta, phi)
    tree, model, layout = fit._fitted()
    counts = component_counts(tree, model, layout, "k")[: len(theta)]
    np.testing.assert_allclose(counts, each.sum(axis=(2, 3)), rtol=1e-5)
    along = fit._reader.shares("word").transpose("chain", "draw", "topic", "word").to_numpy()[0]
    expected = each.sum(axis=2)
    np.testing.assert_allclose(along, expected / expected.sum(axis=2, keepdims=True), rtol=1e-4)
    sizes = fit.parts.prevalences()["prevalence"].to_numpy()
    assert sizes.sum() == pytest.approx(1.0, abs=0.05)
    words = fit.documents.words(0, n=5).set_index("word")["probability"].sort_index()
    own = rates_of(fit, exposure)[:, 0]
    np.testing.assert_allclose(words, (own / own.sum(axis=1, keepdims=True)).mean(axis=0), rtol=1e-5)
