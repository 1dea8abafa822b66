import numpy as np
import pytest

import countveil as cv
from countveil.fit import load
from countveil.fit.predictive_checks import rows_compared
from countveil.inference.matching import overlap
from countveil.privacy._text import plain
from countveil.report import baselines, render
from countveil.report.baselines import compare, naive_fit, noise_alone, strongest
from countveil.report.loading import observed
from countveil.report.page import compared
from countveil.report.sections import cards
from tests.interruption import interrupted
from tests.report.conftest import QUICK, release_of
from tests.report.test_page import read


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
    monkeypatch.setattr("countveil.report.baselines.CELLS_AT_ONCE", 4 * 8)
    monkeypatch.setattr("countveil.report.baselines.DRAWS_FOR_MEANS", 20)
    assert rows_compared(data, 4 * 8).tolist() == [0, 3, 7, 11]
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


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def compared_page(topic_fit, release):
    """The page of a fit beside the naive one."""
    return read(render(topic_fit, release, naive=True))


def test_the_naive_fit_is_the_same_model_of_the_reports_as_they_are(topic_fit, release):
    found = naive_fit(topic_fit, release)
    by_hand = cv.TopicModel(3, **QUICK).fit(cv.NaiveCounts(release))
    np.testing.assert_array_equal(found.components_, by_hand.components_)
    assert found.posterior.attrs["observations"] == "naive"
    assert topic_fit.posterior.attrs["observations"] == "private"


def test_an_interrupted_naive_fit_is_no_comparison(topic_fit, release, monkeypatch):
    monkeypatch.setattr(cv.TopicModel, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        naive_fit(topic_fit, release)


def test_a_fit_without_a_seed_is_compared_under_the_seed_that_it_drew(release):
    fit = cv.TopicModel(2, **(QUICK | {"seed": None})).fit(release)
    assert naive_fit(fit, release).seed_ == fit.seed_


def test_totals_are_of_the_cells_that_were_reported(block_fit, network):
    naive = naive_fit(block_fit, network)
    found = compare(block_fit, naive, observed(block_fit, network), 3)
    off = ~np.eye(8, dtype=bool)
    rates = [each.rate().to_numpy()[off] for each in (block_fit, naive)]
    assert (found.total, found.naive_total) == pytest.approx([rate.sum() for rate in rates], rel=1e-5)
    assert (found.empty, found.naive_empty) == tuple((rate < 0.1).mean() for rate in rates)
    assert found.naive_total > found.total


def test_a_fit_beside_itself_has_everything_in_common(topic_fit, block_fit, tensor_fit, release):
    fits = (topic_fit, block_fit, tensor_fit)
    for fit in fits:
        for each in map(fit._reader.member_means, fit._reader.kinds[0].axes):
            np.testing.assert_allclose(each.sum(axis=1), 1.0, rtol=1e-5)
            np.testing.assert_allclose(np.diag(overlap(each, each)), 1.0, rtol=1e-5)
    found = compare(topic_fit, topic_fit, observed(topic_fit, release), 4)
    (topics,) = found.parts
    assert [pair.overlap for pair in topics.pairs] == ["100%"] * 3
    assert all(pair.members == pair.naive_members for pair in topics.pairs)
    assert topics.alike == 3


def test_what_two_distributions_share():
    first, second = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]), np.array([[0.0, 0.5, 0.5]])
    assert overlap(first, second).tolist() == [[0.5], [0.5]]


def test_from_80_percent_on_two_are_much_the_same(topic_fit, monkeypatch):
    monkeypatch.setattr(baselines, "overlap", lambda first, second: np.diag([0.79, 0.8, 0.81]))
    found = baselines.pairs_of(topic_fit._reader.kinds[0], topic_fit, topic_fit, 2)
    assert sorted(pair.overlap for pair in found.pairs) == ["79%", "80%", "81%"]
    assert found.alike == 2


def test_components_are_matched_whatever_their_order(release, topic_fit):
    other, (part,) = cv.TopicModel(3, **QUICK).fit(release), topic_fit._reader.kinds
    turned = other.posterior["posterior"].dataset.isel(topic=[2, 0, 1]).assign_coords(topic=range(3))
    other.posterior["posterior"] = turned
    found = compare(topic_fit, other, observed(topic_fit, release), 2).parts[0]
    assert [pair.overlap for pair in found.pairs] == ["100%"] * 3
    names = {card.number: strongest(card) for card in cards(other, part, 2)}
    assert [pair.naive_members for pair in found.pairs] == [names[1], names[2], names[0]]
    assert all(pair.members == pair.naive_members for pair in found.pairs)


def test_the_page_says_how_the_naive_fit_differs(topic_fit, release, tensor_fit, events, compared_page):
    page = compared_page
    naive = naive_fit(topic_fit, release)
    found = compare(topic_fit, naive, observed(topic_fit, release), 8)
    assert f"expected sum of the true counts {found.total:,.0f} {found.naive_total:,.0f}" in page.text
    for pair in found.parts[0].pairs:
        members = " ".join(f"{pair.members} {pair.naive_members} {pair.overlap}".split())
        assert f"{pair.title} {plain(members)}" in page.text
    assert "What if the noise were ignored?" not in read(render(topic_fit, release)).text
    text = read(render(tensor_fit, events, naive=True)).text
    assert "the strongest entries of who; what; year" in text
    years = [pair.naive_members.split("; ")[2] for pair in compare_events(tensor_fit, events).parts[0].pairs]
    assert all("2001" in names or "2002" in names for names in years)


def test_sums_of_a_selection_of_rows_are_called_so(topic_fit, release, compared_page, monkeypatch):
    assert "over all reported counts this fit" in compared_page.text
    monkeypatch.setattr(baselines, "CELLS_AT_ONCE", 5 * release.shape[1])
    page = read(render(topic_fit, release, naive=True))
    assert "over all reported counts of 5 of 12 rows this fit naive" in page.text
    found = compare(topic_fit, naive_fit(topic_fit, release), observed(topic_fit, release), 8)
    assert f"expected sum of the true counts {found.total:,.0f} {found.naive_total:,.0f}" in page.text


def compare_events(fit, events):
    return compare(fit, naive_fit(fit, events), observed(fit, events), 8)


def test_a_model_whose_components_cannot_be_listed_is_compared_by_its_totals(release):
    fit = cv.PoissonFactorization("dkt,vkt->dv", {"k": 2, "t": 2}, **QUICK).fit(release)
    text = read(render(fit, release, naive=True)).text
    assert "share of expected counts below 0.1" in text
    assert "overlap" not in text


def test_a_fit_from_a_file_is_compared_too(topic_fit, release, compared_page, tmp_path):
    topic_fit.save(tmp_path / "fit.nc")
    text = read(render(load(tmp_path / "fit.nc"), release, naive=True)).text
    assert text == compared_page.text


def test_where_there_is_nothing_to_compare_it_is_refused(topic_fit):
    counts = np.random.default_rng(1).poisson(2.0, (6, 5))
    with pytest.raises(ValueError, match="naive needs the release that was fitted, got none"):
        render(topic_fit, naive=True)
    exact = cv.TopicModel(2, **QUICK).fit(cv.ExactCounts(counts))
    with pytest.raises(ValueError, match=r"the naive comparison needs a fit of private counts, got exact counts"):
        naive_fit(exact, release_of(counts))
