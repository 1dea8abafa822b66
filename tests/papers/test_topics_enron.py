"""Fits of Enron's topics that are interrupted or die: no half result is kept, and chains go on where they were."""

import numpy as np
import pytest
import scipy.sparse as sp

from countveil.fit import TopicModel
from countveil.inference import gibbs
from papers import real_counts, topics_enron
from papers.bench import CHECKPOINT, Bench
from papers.fits import Sampling, fitted, with_noise
from papers.style import NAIVE, OURS, TRUE_COUNTS
from tests.interruption import interrupted

pytestmark = pytest.mark.long

COUNTS = sp.csr_array(np.random.default_rng(1).poisson(0.4, (30, 25)))
PLAN = topics_enron.QUICK._replace(n_topics=2, noise_draws=1, sampling=Sampling(1, 4, 6), methods=(OURS,))


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A place to work at counts that are there."""
    monkeypatch.setattr(real_counts, "texts", lambda *_: COUNTS)
    return Bench("topics-enron", tmp_path)


def test_an_interrupted_fit_is_no_result(bench, monkeypatch):
    monkeypatch.setattr(TopicModel, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        topics_enron.run(bench, PLAN)
    assert not list(bench.folder.iterdir())


def test_an_interrupted_fit_of_any_case_study_is_no_result(monkeypatch):
    data = with_noise(COUNTS.toarray(), 0.5, np.random.default_rng(2))
    monkeypatch.setattr(TopicModel, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted(OURS, TopicModel(2), data, Sampling(1, 2, 2))


def test_a_fit_that_died_goes_on_where_it_was(bench, tmp_path, monkeypatch):
    whole = topics_enron.run(Bench("topics-enron", tmp_path / "whole"), PLAN).numbers
    right, step, sweeps = topics_enron.scores, gibbs.step, []

    def dies(*_):
        raise RuntimeError("power cut")

    monkeypatch.setattr(topics_enron, "scores", dies)
    with pytest.raises(RuntimeError):
        topics_enron.run(bench, PLAN)
    (left,) = bench.folder.glob("*.npz")
    assert left.name.endswith(CHECKPOINT)

    def counted(*given):
        sweeps.append(1)
        return step(*given)

    monkeypatch.setattr(topics_enron, "scores", right)
    monkeypatch.setattr(gibbs, "step", counted)
    again = topics_enron.run(bench, PLAN).numbers
    assert len(sweeps) == (len(topics_enron.LEVELS) - 1) * 10
    assert not list(bench.folder.glob(f"*{CHECKPOINT}"))
    columns = ["mae", "log_score", "npmi", "umass", "r_hat", "ess"]
    np.testing.assert_array_equal(again[columns], whole[columns])
    ours = again[again["method"] == OURS]
    assert (ours["seconds"] > 0.0).all()
    assert ours["processor_seconds"].isna().tolist() == [True, False, False]


def test_naive_chains_may_be_shorter():
    short = Sampling(1, 2, 3)
    assert PLAN.sampling_of(NAIVE) == PLAN.sampling
    plan = PLAN._replace(naive=short)
    assert plan.sampling_of(NAIVE) == short
    assert plan.sampling_of(OURS) == plan.sampling_of(TRUE_COUNTS) == PLAN.sampling
