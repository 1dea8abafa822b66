"""A fit of topics of documents with dates that several tests read, and the data behind it."""

import warnings
from functools import cache

import numpy as np
import pandas as pd

import countveil as cv

D, V, YEARS = 120, 24, 8
SHORT = {"draws": 60, "tune": 60, "chains": 2, "seed": 1, "likelihood": "poisson", "progress": False}
LABELS = [f"doc {d}" for d in range(D)]
STEP = np.delete(np.arange(YEARS), 5)[np.random.default_rng(3).integers(0, YEARS - 1, D)]  # none of one year
TIME = pd.Series(1990 + STEP, index=LABELS)
SHARES = np.stack([np.linspace(0.1, 0.7, YEARS), np.linspace(0.6, 0.0, YEARS) + 0.02, np.full(YEARS, 0.28)], axis=1)


@cache
def counts():
    """Reports of three topics of their own words: the first rises from 10% to 70%, the second falls."""
    rng = np.random.default_rng(6)
    shares = SHARES / SHARES.sum(axis=1, keepdims=True)
    theta = 40.0 * np.stack([rng.dirichlet(6.0 * shares[t]) for t in STEP])
    phi = np.kron(np.eye(3), np.full((1, V // 3), 0.9 / (V // 3))) + 0.1 / V
    frame = pd.DataFrame(rng.poisson(theta @ phi), index=LABELS, columns=[f"w{v}" for v in range(V)])
    return cv.simulate_release(frame, cv.PrivacyLevel(epsilon=2.0, precision=1), rng=np.random.default_rng(7))


def model(**changes):
    """Three topics."""
    return cv.TopicModel(**({"n_topics": 3} | SHORT | changes))


@cache
def the_fit():
    """Fitted once for all tests of one process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model().fit(counts(), time=TIME)
