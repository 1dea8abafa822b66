import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.planning import FromPilot, FromPrior, Grid, Truth, simulate
from countveil.planning.simulate import MEASURES, Estimate, evaluate, heading, numbers, protected, said, topic_cosine
from countveil.privacy import PrivacyLevel
from countveil.privacy.mechanisms import Table
from tests.silent import Silent

LEVELS = [PrivacyLevel(1, 10), PrivacyLevel(3, 1)]
SOURCE = FromPrior(3, 25, 30.0)
GRID = Grid(LEVELS, [20, 60], replicates=2)
FAST = {"tune": 10, "draws": 20}


@pytest.fixture(scope="module")
def fits():
    watcher = Silent()
    found = simulate(GRID, SOURCE, watcher, **FAST)
    assert len(found) - 12 == watcher.total == len(watcher.heard) - 1
    return found


@pytest.mark.long
def test_every_level_size_replicate_and_method_once(fits):
    keys = ["level", "rows", "replicate", "method"]
    assert not fits.duplicated(keys).any()
    assert fits.groupby("level").size().to_dict() == {"no noise": 8, "10:1": 16, "1:3": 16}
    assert set(fits.loc[fits["level"] == "10:1", "epsilon"]) == {"1"}
    assert fits[["mae", "mae_of_rates", "log_score", "total"]].notna().all().all()
    assert fits["coverage"].notna().equals(fits["method"].isin(["countveil", "naive", "true counts"]))


@pytest.mark.long
def test_less_noise_is_less_error_and_naive_sees_more_than_there_is(fits):
    mean = fits[fits["rows"] == 60].groupby(["level", "method"])["mae_of_rates"].mean()
    assert mean["no noise", "true counts"] < mean["1:3", "countveil"] < mean["10:1", "countveil"]
    assert mean["10:1", "countveil"] < mean["10:1", "naive"]
    zero = fits[fits["method"] == "zero"]
    assert (zero["total"] == 0).all()
    assert zero["log_score"].notna().all()
    naive = fits[(fits["method"] == "naive") & (fits["level"] == "10:1")]
    assert (naive["total"] > 2).all()
    assert (naive["coverage"] < 0.5).all()


@pytest.mark.long
def test_a_seed_has_one_result_whatever_the_threads():
    grid = Grid(LEVELS[1:], [20], replicates=2)
    once, again, other = (
        simulate(each, SOURCE, Silent(), tune=2, draws=4)
        for each in (grid, grid._replace(threads=2), grid._replace(seed=2))
    )
    pd.testing.assert_frame_equal(again.drop(columns="seconds"), once.drop(columns="seconds"))
    assert not np.array_equal(other["mae"], once["mae"])


@pytest.mark.long
def test_the_noise_is_simulated_and_never_real(monkeypatch):
    def forbidden(*_):
        raise AssertionError("real noise")

    for name in ("draw", "draw_narrow"):
        monkeypatch.setattr(f"countveil.privacy.noise.{name}", forbidden)
    simulate(Grid(LEVELS[1:], [5], 2), SOURCE, Silent(), tune=2, draws=4)


@pytest.mark.long
def test_bursty_fits_of_bursty_counts_hold_the_rates_more_often():
    source, grid = FromPrior(2, 15, 60.0, 0.9), Grid(LEVELS[1:], [60], 2)
    found = {}
    for likelihood in ("poisson", "negative-binomial"):
        fits = simulate(grid, source, Silent(), tune=40, draws=20, likelihood=likelihood)
        found[likelihood] = fits.groupby("method")[["coverage", "total"]].mean()
    assert found["negative-binomial"]["coverage"]["countveil"] > found["poisson"]["coverage"]["countveil"] + 0.1
    assert found["negative-binomial"]["total"]["countveil"] == pytest.approx(1.0, abs=0.15)


@pytest.mark.long
def test_em_has_no_intervals_and_a_pilot_no_rates():
    counts = np.random.default_rng(1).poisson(2.0, (10, 6))
    source = FromPilot(counts, 2, chains=1, tune=2, draws=2)
    found = simulate(Grid(LEVELS[1:], [10], 2), source, Silent(), method="em")
    assert found[["interval_width", "coverage", "mae_of_rates"]].isna().all().all()
    assert found["mae"].notna().all()


@pytest.mark.long
def test_measures_of_an_estimate_that_is_known():
    topics = np.array([[1.0, 0.0], [0.0, 1.0]])
    truth = Truth(np.array([[2, 0], [0, 4]]), np.array([[2.0, 0.0], [0.0, 4.0]]), topics)
    theta = np.array([[[2.0, 0.0], [0.0, 4.0]]] * 3)
    exact = evaluate(truth, Estimate(truth.rates, topics[::-1], theta, np.array([topics] * 3)), np.random.default_rng())
    assert exact["mae"] == exact["mae_of_rates"] == exact["topic_error"] == exact["interval_width"] == 0.0
    assert exact["topic_cosine"] == exact["coverage"] == exact["total"] == pytest.approx(1.0)
    assert exact["share_width"] == 0.0
    double = evaluate(truth, Estimate(2.0 * truth.rates, None), np.random.default_rng())
    assert (double["mae"], double["total"]) == (1.5, 2.0)
    assert np.isnan(double["topic_error"])
    assert set(double) == set(MEASURES)
    nothing = evaluate(truth, Estimate(np.zeros((2, 2)), None), np.random.default_rng())
    assert np.isfinite(nothing["log_score"])


@pytest.mark.long
def test_the_width_of_intervals_is_that_of_the_draws():
    """Rates uniform on [0, 1] in every cell have 90% intervals of width 0.9; the truth 0.98 is outside."""
    theta = np.linspace(1e-9, 1.0, 1001).reshape(-1, 1, 1) * np.ones((1, 4, 1))
    truth = Truth(np.ones((4, 3)), np.full((4, 3), 0.98), np.full((1, 3), 1 / 3))
    estimate = Estimate(np.full((4, 3), 0.5), truth.topics, theta, np.ones((1001, 1, 3)))
    found = evaluate(truth, estimate, np.random.default_rng(0))
    assert found["interval_width"] == pytest.approx(0.9)
    assert found["coverage"] == 0.0
    truth.rates[:] = 0.9
    assert evaluate(truth, estimate, np.random.default_rng(0))["coverage"] == 1.0


@pytest.mark.long
def test_a_simulated_study_may_hold_no_count_at_all():
    found = simulate(Grid(LEVELS[1:], [2], 2), FromPrior(2, 3, 1e-6), Silent(), tune=2, draws=4)
    assert found["log_score"].isna().all()
    assert found["mae"].notna().all()


@pytest.mark.long
def test_the_cosine_is_of_matched_topics():
    truth = np.array([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5]])
    assert topic_cosine(truth, truth[::-1]) == pytest.approx(1.0)
    assert topic_cosine(np.eye(2), np.array([[0.5, 0.5], [0.1, 0.9]])) == pytest.approx(
        (1 / np.sqrt(2) + 0.9 / np.sqrt(0.82)) / 2
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "message"),
    [({"levels": []}, r"levels must be one or more, all different, got \[\]"),
     ({"levels": [Table(((1, 0), (0, 1))), Table(((0, 1), (1, 0)))]}, "levels must have different names"),
     ({"rows": [5, 5]}, r"rows must be one or more, all different, got \[5, 5\]"),
     ({"rows": [1]}, "rows must be at least 2, got 1"),
     ({"rows": [10**6]}, "rows times words must be at most 20000000, got 1000000 x 25"),
     ({"replicates": 1}, "replicates must be at least 2")],
)  # fmt: skip
def test_what_cannot_be_simulated_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        simulate(GRID._replace(**change), SOURCE, Silent())


@pytest.mark.long
def test_more_rows_than_the_pilot_has_are_refused_before_anything_runs():
    source = FromPilot(np.ones((4, 3), dtype=int), 1, chains=1, tune=1, draws=1)
    with pytest.raises(ValueError, match="rows must be at most the 4 of the pilot, got 5"):
        simulate(Grid(LEVELS, [5]), source, Silent())


m = cv.mechanisms
COUNTS = np.random.default_rng(1).poisson(np.random.default_rng(2).gamma(0.5, 20.0, (30, 8)))
KINDS = [m.DiscreteGaussian(2), m.RandomRounding(5), m.Suppression(10), m.Thresholded(m.Gaussian(3), 4)]


@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
def test_absent_reports_are_zeros_to_those_who_do_not_know(mechanism):
    found = protected(COUNTS, mechanism, np.random.default_rng(3))
    values = np.asarray(cv.simulate_reports(COUNTS, mechanism, np.random.default_rng(3)), dtype=float)
    assert found.known.provenance.simulated
    assert found.known.noise.mechanisms == (mechanism,)
    np.testing.assert_array_equal(found.known.provenance.published.report(0).values, values)
    np.testing.assert_array_equal(found.plain.reports, np.nan_to_num(values))
    np.testing.assert_array_equal(found.naive, np.rint(np.nan_to_num(values).clip(0)))
    assert found.plain.shape == COUNTS.shape


def test_promises_make_simulated_releases():
    for level in (PrivacyLevel(1, 2), PrivacyLevel.zcdp("0.125")):
        found = protected(COUNTS, level, np.random.default_rng(3))
        assert found.known is found.naive is found.plain
        assert found.known.simulated
        assert not found.known.truncated
        assert found.known.levels == level


def test_names():
    assert [said(each) for each in (PrivacyLevel(1, 2), PrivacyLevel.zcdp("0.125"), m.Rounding(5))] == [
        "2:1",
        "rho:0.125",
        "rounding to multiples of 5",
    ]
    assert [heading(each) for each in ("2:1", "rho:0.125", "rounding to multiples of 5")] == [
        "N:epsilon = 2:1",
        "rho:0.125",
        "rounding to multiples of 5",
    ]
    assert numbers(PrivacyLevel(1, 2)) == {"precision": "2", "epsilon": "1"}
    assert numbers(m.Rounding(5)) == numbers(PrivacyLevel.zcdp(1)) == numbers(None)


@pytest.mark.long
def test_who_knows_the_mechanism_is_nearer_to_the_rates():
    levels = [m.Suppression(10), m.DiscreteGaussian(4), PrivacyLevel.zcdp(2)]
    fits = simulate(Grid(levels, [40], 2), FromPrior(2, 12, 60.0), Silent(), tune=20, draws=20)
    mean = fits.groupby(["level", "method"])["mae_of_rates"].mean()
    for level in levels[:2]:
        assert mean[level.in_words, "countveil"] < 0.8 * mean[level.in_words, "naive"]
    assert mean["no noise", "true counts"] < mean["rho:2", "countveil"] < mean[levels[1].in_words, "countveil"]
    naive = fits[(fits["level"] == levels[0].in_words) & (fits["method"] == "naive")]
    assert (naive["total"] < 0.97).all()
