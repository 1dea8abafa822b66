"""Speed from one version to the next: processor time of one step of every algorithm, and of what comes before it.

    pip install -e '.[benchmarks]'
    python -m pytest benchmarks/track.py -W default --benchmark-autosave --benchmark-compare

Numbers are kept in .benchmarks/, one file a run and named by its commit, and compared with those of the run before;
``pytest-benchmark compare`` sets any of them side by side. The data are those of ``sweeps.py``, and counts so rare that
sweeps go by tokens. ``-W default``: warnings are errors in the tests, and the first run has nothing to compare with.
"""

import time

import numpy as np
import pytest
from sweeps import ALPHA, SEED, SIZE, TOPICS, Chain, big_data
from threadpoolctl import threadpool_limits

import countveil as cv
from countveil.data.observations import ExactCounts, NaiveCounts, Observations, PrivatizedCounts
from countveil.inference import augmented_gibbs, bessel_cavi, cavi, em, gibbs

ROUNDS = 15

pytestmark = pytest.mark.benchmark(timer=time.process_time)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield


@pytest.fixture(scope="module")
def common() -> tuple[np.ndarray, np.ndarray]:
    """(true counts, signed reports), half of these positive."""
    return big_data()[1:]


@pytest.fixture(scope="module")
def rare() -> Observations:
    """Counts of 0.02 on average."""
    rng = np.random.default_rng(SEED)
    counts = rng.poisson(rng.gamma(0.1, 0.2, (SIZE, 1)) * np.ones(SIZE))
    noise = rng.geometric(1.0 - ALPHA, counts.shape) - rng.geometric(1.0 - ALPHA, counts.shape)
    return PrivatizedCounts(counts + noise, ALPHA)


@pytest.mark.parametrize("algorithm", [gibbs, augmented_gibbs, cavi, bessel_cavi, em])
def test_step(algorithm, common, benchmark):
    benchmark.pedantic(Chain(algorithm, PrivatizedCounts(common[1], ALPHA), TOPICS).step, rounds=ROUNDS)


@pytest.mark.parametrize("kind", [NaiveCounts, ExactCounts])
def test_sweep_without_noise(kind, common, benchmark):
    counts = common[0] if kind is ExactCounts else common[1]
    benchmark.pedantic(Chain(gibbs, kind(counts), TOPICS).step, rounds=ROUNDS)


def test_sweep_of_rare_counts(rare, benchmark):
    benchmark.pedantic(Chain(gibbs, rare, TOPICS).step, rounds=ROUNDS)


def test_start(common, benchmark):
    chain = Chain(em, PrivatizedCounts(common[1], ALPHA), TOPICS)
    benchmark.pedantic(gibbs.init, (chain.observations, chain.model, chain.streams), rounds=3)


def test_privatize(common, benchmark):
    level = cv.PrivacyLevel(epsilon=1, precision=1)
    benchmark.pedantic(cv.privatize, (common[0], level), warmup_rounds=1, rounds=ROUNDS)
