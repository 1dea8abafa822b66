import numpy as np
import pandas as pd
import pytest

import countveil as cv

QUICK = {"draws": 10, "tune": 10, "chains": 2, "seed": 1, "threads": 1, "progress": False}


@pytest.fixture(autouse=True)
def closed(monkeypatch):
    """No window, and no figure that stays open."""
    import matplotlib as mpl
    from matplotlib import pyplot

    mpl.use("Agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="session")
def release():
    counts = np.random.default_rng(1).poisson(2.0, (12, 9))
    table = pd.DataFrame(counts, columns=[f"word{v}" for v in range(8)] + ["$x_1$"])
    return cv.simulate_release(table, cv.PrivacyLevel(2, 1), np.random.default_rng(2), truncate=False)


@pytest.fixture(scope="session")
def topic_fit(release):
    return cv.TopicModel(3, likelihood="poisson", **QUICK).fit(release)


@pytest.fixture(scope="session")
def block_fit():
    names = [f"actor{i}" for i in range(8)]
    counts = np.random.default_rng(3).poisson(np.kron([[6.0, 0.3], [0.3, 4.0]], np.ones((4, 4))))
    table = pd.DataFrame(counts, index=names, columns=names)
    return cv.BlockModel(2, **QUICK).fit(cv.simulate_release(table, cv.PrivacyLevel(3, 1), np.random.default_rng(4)))


@pytest.fixture(scope="session")
def tensor_fit():
    counts = np.random.default_rng(5).poisson(2.0, (5, 4, 3))
    data = cv.PrivatizedCounts(counts, 0.2, labels=[None, list("abcd"), ["x", "y", "z"]])
    return cv.TensorModel(2, modes=["who", "what", "year"], **QUICK).fit(data)
