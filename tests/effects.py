"""A fit of topics with covariates that several tests read, and the data behind it."""

import warnings
from functools import cache

import numpy as np
import pandas as pd

import countveil as cv

D, V = 60, 24
SHORT = {"draws": 40, "tune": 40, "chains": 2, "seed": 1, "method": cv.Gibbs(moves=0), "likelihood": "poisson"}
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {"party": RNG.choice(["D", "R"], D), "age": RNG.uniform(20.0, 60.0, D)}, index=[f"doc {d}" for d in range(D)]
)


@cache
def counts():
    """True counts of three topics of their own words; the first is likelier in party R, the second with age."""
    rng, group = np.random.default_rng(6), (FRAME.party == "R").to_numpy(float)
    mean = 8.0 * np.exp(np.stack([1.5 * group, 0.04 * (FRAME.age - 40.0), np.zeros(D)], axis=1))
    theta = rng.gamma(1.5, mean / 1.5)
    phi = np.kron(np.eye(3), np.full((1, V // 3), 0.9 / (V // 3))) + 0.1 / V
    frame = pd.DataFrame(rng.poisson(theta @ phi), index=FRAME.index, columns=[f"w{v}" for v in range(V)])
    return cv.simulate_release(frame, cv.PrivacyLevel(epsilon=2.0, precision=1), rng=np.random.default_rng(7))


def model(**changes):
    """Topics by party and age."""
    settings = {"n_topics": 3, "prevalence": "~ party + age"} | SHORT | changes
    return cv.TopicModel(**settings)


@cache
def the_fit():
    """Fitted once for all tests of one process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model().fit(counts(), covariates=FRAME)
