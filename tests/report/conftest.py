import numpy as np
import pandas as pd
import pytest

import countveil as cv

QUICK = {"draws": 10, "tune": 10, "chains": 2, "seed": 1, "threads": 1, "progress": False}
NASTY = "<script>alert(1)</script>"
LONG = "donaudampfschifffahrtsgesellschaft" * 6
WORDS = [NASTY, LONG, '"><img src=x onerror=alert(2)>', "$x_1$", "&amp;", "{{ 7*7 }}", "-->", "\u202eabc"]


def release_of(counts, level=None):
    return cv.simulate_release(counts, level or cv.PrivacyLevel(2, 1), np.random.default_rng(2))


@pytest.fixture(scope="session")
def release():
    counts = np.random.default_rng(1).poisson(2.0, (12, len(WORDS)))
    return release_of(pd.DataFrame(counts, columns=WORDS))


@pytest.fixture(scope="session")
def topic_fit(release):
    return cv.TopicModel(3, **QUICK).fit(release)


@pytest.fixture(scope="session")
def network():
    names = [*WORDS[:6], "f", "g"]
    counts = np.random.default_rng(3).poisson(np.kron([[6.0, 0.3], [0.3, 4.0]], np.ones((4, 4))))
    return release_of(pd.DataFrame(counts, index=names, columns=names))


@pytest.fixture(scope="session")
def block_fit(network):
    return cv.BlockModel(2, **QUICK).fit(network)


@pytest.fixture(scope="session")
def events():
    counts = np.random.default_rng(5).poisson(2.0, (5, 12))
    columns = [f"{a} | {b}" for a in ("aid", NASTY, "talk", "war") for b in ("2001", "2002", "2003")]
    return release_of(pd.DataFrame(counts, index=list("abcde"), columns=columns))


@pytest.fixture(scope="session")
def tensor_fit(events):
    data = cv.PrivatizedCounts.from_release(events).folded()
    return cv.TensorModel(2, modes=["who", "what", "year"], **QUICK).fit(data)
