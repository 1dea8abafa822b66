import numpy as np
import pytest

import countveil as cv
from countveil.experiments import demo
from countveil.experiments.demo import Plan, run, score
from countveil.fit import TopicModel
from countveil.planning.contenders import CONTENDERS, OURS, TRUE_COUNTS, Estimate
from tests.experiments.conftest import TINY
from tests.interruption import interrupted
from tests.silent import Silent

pytestmark = pytest.mark.long


def test_every_contender_on_every_draw(watched):
    study, watcher = watched
    per_release = len(CONTENDERS) - 1
    assert len(study.fits) == 2 + 2 * 2 * per_release == watcher.total
    assert study.fits.groupby(["level", "method"]).size().loc["1"].eq(2).all()
    assert "countveil, epsilon/N = 1, noise draw 2" in watcher.heard
    assert study.shown_level == "1"
    assert study.shown[TRUE_COUNTS].topics.shape == study.shown[OURS.name].topics.shape == (4, 80)


def test_longer_chains_are_for_what_is_printed(watched):
    study, _ = watched
    draws = study.printed.posterior["posterior"].sizes
    assert (draws["chain"], draws["draw"], study.printed.tune) == (4, 40, 40)
    assert (study.printed_level, study.printed.n_topics) == ("1", 4)
    assert (study.printed.likelihood, study.printed.prior_shape) == (None, None)  # the defaults


def test_an_interrupted_fit_is_no_result(corpus, monkeypatch):
    monkeypatch.setattr(TopicModel, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(corpus, Plan(levels=("1",), noise_draws=1, sampling=TINY, threads=2), Silent())


def test_scores_are_what_they_should_be(watched, corpus):
    fits = watched[0].fits
    zero = fits[fits["method"] == "zero"].iloc[0]
    assert zero["log_score"] == -np.inf
    assert zero["mae"] == pytest.approx(corpus.counts.mean())
    assert fits.loc[fits["method"] != "zero", "log_score"].between(-10, 0).all()
    with_topics = ~fits["method"].isin(["zero", "column means"])
    assert fits["npmi"].notna().equals(with_topics)
    assert fits.loc[with_topics, ["npmi", "npmi_plain"]].abs().max().max() <= 1


def test_the_noise_is_real_and_differs_between_draws_and_runs(corpus):
    plan = Plan(levels=("1",), noise_draws=1, sampling=TINY._replace(tune=1, draws=1))
    first, second = run(corpus, plan, Silent()).release, run(corpus, plan, Silent()).release
    assert not first.simulated
    assert not np.array_equal(first.reports, second.reports)


def test_the_analyst_sees_the_release_alone(monkeypatch, corpus):
    """True counts reach the reference and the scores, and nobody else."""
    seen = []

    def record(release, sampling, seed):
        seen.append(release)
        return Estimate(np.ones(release.shape), None, None, 0.0)

    spies = [contender._replace(estimate=record) for contender in CONTENDERS]
    monkeypatch.setattr(demo, "CONTENDERS", spies)
    monkeypatch.setattr(demo, "ZERO", spies[-1])
    run(corpus, Plan(levels=("1",), noise_draws=1, sampling=TINY), Silent())
    assert seen
    assert all(isinstance(data, cv.Release) for data in seen)


def test_rates_are_raised_to_a_floor_only_where_they_can_fall_to_zero():
    counts, estimate = (np.array([[0, 3], [1, 0]]), Estimate(np.array([[0.0, 3.0], [0.0, 0.0]]), None, None, 0.0))
    assert score(counts, estimate, floored=False)["log_score"] == -np.inf
    assert np.isfinite(score(counts, estimate, floored=True)["log_score"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": ()}, "one or more, all different, got none"),
        ({"levels": ("1", "1")}, "one or more, all different, got 1, 1"),
        ({"levels": ("0",)}, r"levels must be positive numbers \(epsilon/N\), got '0'"),
        ({"noise_draws": 0}, "noise_draws must be at least 1, got 0"),
    ],
)
def test_plans_that_are_refused(corpus, changes, message):
    with pytest.raises(ValueError, match=message):
        run(corpus, Plan(sampling=TINY)._replace(**changes), Silent())
