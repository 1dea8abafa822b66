import pytest

from countveil.experiments import corpora
from countveil.experiments.demo import Plan, run
from countveil.planning.contenders import Sampling
from tests.silent import Silent

TINY = Sampling(n_topics=4, chains=1, tune=3, draws=4)


@pytest.fixture(scope="session")
def corpus():
    full = corpora.load_reuters()
    return corpora.Corpus(full.counts[:60, :80], full.titles[:60], full.words[:80])


@pytest.fixture(scope="session")
def watched(corpus):
    watcher = Silent()
    return run(corpus, Plan(levels=("2", "1"), noise_draws=2, sampling=TINY, threads=2), watcher), watcher
