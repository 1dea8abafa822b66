import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from countveil.fit import TopicModel
from countveil.planning import FromModel, FromPilot, FromPrior
from countveil.planning.truths import SHAPE
from tests.interruption import interrupted

FAST = {"chains": 1, "tune": 5, "draws": 10, "threads": 1}
RNG = np.random.default_rng(2)
PILOT = RNG.poisson(RNG.gamma(0.5, 8.0, (30, 2)) @ RNG.dirichlet(np.full(12, 0.3), 2))


def test_the_prior_has_the_total_that_was_asked_for():
    source = FromPrior(5, 40, 30.0)
    totals = [source.draw(200, np.random.default_rng(seed)).rates.sum(axis=1).mean() for seed in range(20)]
    assert abs(np.mean(totals) - 30.0) < 5 * 30.0 / np.sqrt(4000 * SHAPE * 5)
    truth = source.draw(7, np.random.default_rng(1))
    assert truth.counts.shape == truth.rates.shape == (7, 40)
    assert np.allclose(truth.topics.sum(axis=1), 1.0)


def test_topics_of_the_prior_follow_its_law():
    """One of V coordinates is Beta(a, (V - 1) a); a law with another concentration is told apart."""
    first = FromPrior(4000, 3, 30.0).draw(1, np.random.default_rng(5)).topics[:, 0]
    assert stats.kstest(first, stats.beta(SHAPE, 2 * SHAPE).cdf).pvalue > 1e-3
    assert stats.kstest(first, stats.beta(1.5 * SHAPE, 3 * SHAPE).cdf).pvalue < 1e-3


@pytest.mark.parametrize("sparse", [False, True])
def test_a_model_of_the_pilot_draws_as_many_rows_as_wanted(sparse):
    source = FromModel(sp.csr_array(PILOT) if sparse else PILOT, 2, **FAST)
    assert (source.n_words, source.most_rows) == (12, None)
    totals = [source.draw(75, np.random.default_rng(seed)).rates.sum() / 75 for seed in range(30)]
    assert abs(np.mean(totals) - PILOT.sum() / 30) < 0.1 * PILOT.sum() / 30
    truth = source.draw(75, np.random.default_rng(0))
    spread = (truth.counts - truth.rates).sum() / np.sqrt(truth.rates.sum())
    assert abs(spread) < 5
    assert np.linalg.matrix_rank(truth.rates) == 2
    repeated = truth.rates[:30].sum(axis=1)
    assert np.allclose(np.sort(repeated), np.sort(truth.rates[30:60].sum(axis=1)))


def test_counts_of_the_prior_may_come_in_bursts():
    source = FromPrior(5, 40, 30.0, 0.8)
    assert source.about.endswith("rows of 30 on average, overdispersed with p = 0.8")
    drawn = [source.draw(200, np.random.default_rng(seed)) for seed in range(20)]
    totals = [truth.rates.sum(axis=1).mean() for truth in drawn]
    assert abs(np.mean(totals) - 30.0) < 5 * 30.0 / np.sqrt(4000 * SHAPE * 5)
    left = np.concatenate([(truth.counts - truth.rates).ravel() for truth in drawn])
    rates = np.concatenate([truth.rates.ravel() for truth in drawn])
    assert abs(left.sum()) < 5 * np.sqrt(5.0 * rates.sum())
    assert (left**2).sum() / rates.sum() == pytest.approx(5.0, rel=0.1)  # 1 / (1 - p)


@pytest.mark.long
@pytest.mark.parametrize("dispersion", ["global", "column", "row", 0.8])
def test_a_model_of_a_bursty_pilot_draws_bursty_counts(dispersion):
    rng = np.random.default_rng(3)
    rate = rng.gamma(0.5, 8.0, (30, 2)) @ rng.dirichlet(np.full(12, 0.3), 2) + 1e-6
    pilot = rng.negative_binomial(rate, 0.2)  # p is 0.8
    source = FromModel(pilot, 2, likelihood="negative-binomial", dispersion=dispersion, **FAST | {"tune": 100})
    assert source.about.endswith(f"and counts in bursts (negative-binomial, dispersion {dispersion})")
    truths = [source.draw(75, np.random.default_rng(seed)) for seed in range(30)]
    totals = [truth.rates.sum() / 75 for truth in truths]
    assert abs(np.mean(totals) - pilot.sum() / 30) < 0.2 * pilot.sum() / 30
    left = np.concatenate([(truth.counts - truth.rates).ravel() for truth in truths])
    rates = np.concatenate([truth.rates.ravel() for truth in truths])
    assert abs(left.mean()) < 5 * left.std() / np.sqrt(left.size)
    assert (left**2).sum() / rates.sum() > 2.0


def test_topics_of_a_bursty_model_are_shares_of_expected_counts():
    """With p by word, a topic's words count by how large their bursts are."""
    settings = {"likelihood": "negative-binomial", "dispersion": "column"}
    source = FromModel(PILOT, 1, **settings, **FAST | {"tune": 40})
    for seed in range(3):
        truth = source.draw(30, np.random.default_rng(seed))
        np.testing.assert_allclose(truth.topics[0], truth.rates[0] / truth.rates[0].sum(), rtol=1e-5)


def test_an_interrupted_fit_of_the_pilot_is_no_truth(monkeypatch):
    monkeypatch.setattr(TopicModel, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        FromModel(PILOT, 2, **FAST)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_pilot_itself_comes_in_its_own_rows(sparse):
    source = FromPilot(sp.csr_array(PILOT) if sparse else PILOT, 2, **FAST)
    truth = source.draw(30, np.random.default_rng(0))
    assert np.array_equal(truth.counts, PILOT)
    assert truth.rates is None
    some = source.draw(8, np.random.default_rng(0)).counts
    assert len(some) == 8
    assert {tuple(row) for row in some} <= {tuple(row) for row in PILOT}
    with pytest.raises(ValueError, match="rows must be at most the 30 of the pilot, got 31"):
        source.draw(31, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0, 5, 1.0), "got 0 and 5"), ((2, 1, 1.0), "got 2 and 1"), ((2, 5, 0.0), "total must be positive"),
     ((2, 5, float("nan")), "total must be positive"), ((2, 5, 1.0, 1.5), "dispersion must be one of"),
     ((2, 5, 1.0, "row"), "dispersion must be a number if counts are drawn from the prior, got 'row'")],
)  # fmt: skip
def test_a_prior_that_is_none_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FromPrior(*arguments)


@pytest.mark.long
def test_a_pilot_that_the_model_does_not_explain_is_no_warning():
    """Warnings are errors here."""
    counts = np.random.default_rng(4).negative_binomial(0.3, 0.02, (40, 5))
    assert FromModel(counts, 1, seed=1).draw(3, RNG).counts.shape == (3, 5)
