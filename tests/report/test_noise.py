import numpy as np
import pytest

import countveil as cv
from countveil.report import render
from countveil.report.loading import observed
from countveil.report.noise import noise_alone, selected
from countveil.report.page import compared
from tests.report.conftest import QUICK, release_of


def test_noise_alone_against_its_law():
    """A release of zeros: what is seen is what noise alone makes, within Monte Carlo error."""
    n, level = 400, cv.PrivacyLevel(1, 1)
    release = release_of(np.zeros((n, 50), dtype=int), level)
    fit = cv.TopicModel(2, **QUICK).fit(release)
    found = noise_alone(fit, observed(fit, release))
    alpha = level.alpha
    tau = np.arange(1, 200)
    mass = (1 - alpha) / (1 + alpha) * alpha**tau
    assert found.share_by_noise == pytest.approx(mass.sum(), rel=1e-12)
    assert found.sum_by_noise == pytest.approx(found.cells * (mass * tau).sum(), rel=1e-9)
    spread = np.sqrt(found.cells * ((mass * tau**2).sum() - (mass * tau).sum() ** 2))
    assert abs(found.sum_seen - found.sum_by_noise) < 5 * spread
    p = found.share_by_noise
    assert abs(found.share_seen - p) < 5 * np.sqrt(p * (1 - p) / found.cells)
    assert (found.cells, found.masked) == (n * 50, 0)


def test_the_fit_s_share_of_positive_reports_is_that_of_the_law(topic_fit, release):
    found = noise_alone(topic_fit, observed(topic_fit, release))
    rate = topic_fit.rate().to_numpy()
    shares = []
    for (theta, phi), (p, *_) in topic_fit._reader.draws():
        exposure = 1.0 - np.log1p(-p * release.alpha) / np.log1p(-p)  # mathematics, 13.2
        shares.append(1.0 - (np.exp(-exposure * (theta @ phi.T)) / (1.0 + release.alpha)).mean())
    assert found.share_by_fit == pytest.approx(np.mean(shares), rel=1e-6)
    assert found.sum_of_rates == pytest.approx(rate.sum(), rel=1e-6)


def test_the_diagonal_of_a_network_is_left_out(block_fit, network):
    data = observed(block_fit, network)
    found = noise_alone(block_fit, data)
    assert (found.cells, found.masked) == (56, 8)
    reports = np.asarray(network.reports) * (1 - np.eye(8, dtype=int))
    assert found.sum_seen == np.maximum(reports, 0).sum()


def test_a_tensor_is_folded_as_its_fit_was(tensor_fit, events):
    found = noise_alone(tensor_fit, observed(tensor_fit, events))
    assert found.cells == 60
    assert found.sum_seen == np.maximum(np.asarray(events.reports), 0).sum()
    assert found.sum_of_rates == pytest.approx(float(tensor_fit.rate().sum()))


def test_of_very_large_data_an_even_selection_of_rows_is_looked_at(topic_fit, release, monkeypatch):
    data = observed(topic_fit, release)
    whole = noise_alone(topic_fit, data)
    monkeypatch.setattr("countveil.report.noise.CELLS_AT_ONCE", 4 * 8)
    monkeypatch.setattr("countveil.report.noise.DRAWS_FOR_MEANS", 20)
    assert selected(data).tolist() == [0, 3, 7, 11]
    found = noise_alone(topic_fit, data)
    reports = np.maximum(np.asarray(release.reports), 0)[[0, 3, 7, 11]]
    assert (whole.rows, found.rows, found.cells) == (12, 4, 32)
    assert found.sum_seen == reports.sum()
    rate = topic_fit.rate().to_numpy()[[0, 3, 7, 11]]
    assert found.sum_of_rates == pytest.approx(rate.sum(), rel=1e-6)
    assert "an even selection of 4 of 12 rows" in render(topic_fit, release)


def test_a_page_shows_one_total(topic_fit, release):
    found = compared(topic_fit, observed(topic_fit, release))
    assert found["noise"].sum_of_rates == found["totals"].fitted == topic_fit.totals().fitted
