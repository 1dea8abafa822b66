"""The priors of a fit in words."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.report.priors import priors_of
from tests.report.conftest import QUICK

COUNTS = np.random.default_rng(1).poisson(2.0, (6, 5))
DATA = cv.PrivatizedCounts(COUNTS, 0.3)


@pytest.fixture(scope="module")
def fit():
    return cv.TopicModel(2, **QUICK).fit(DATA)


def test_a_learned_shape_has_its_prior_and_its_posterior(fit):
    found = dict(priors_of(fit))
    assert list(found) == ["theta", "phi"]
    draws = fit.posterior["posterior"]["phi_shape"].to_numpy()
    low, high = np.quantile(draws, [0.05, 0.95])
    assert "log-normal of median 0.1 and log standard deviation 1" in found["phi"]
    assert (
        f"Posterior mean of the shape: {draws.mean():.2g} (90% interval {low:.2g} to {high:.2g})."
        in found["phi"]
    )


def test_a_known_shape_and_rates_that_are_learned_or_known():
    learned = dict(priors_of(cv.TopicModel(2, prior_shape=0.5, **QUICK).fit(DATA)))
    assert learned["phi"].startswith("Independent gammas of shape 0.5, and learned rates, a component's own")
    known = cv.TopicModel(2, method="em", prior_shape=1.0, prior_rate=2.0, seed=1, progress=False).fit(DATA)
    assert dict(priors_of(known))["theta"] == "Independent gammas of shape 1, and rate 2."


def test_other_priors_are_said_in_their_own_words():
    frame = pd.DataFrame({"x": np.arange(6.0)})
    topics = cv.TopicModel(2, prevalence="~ x", **QUICK).fit(DATA, covariates=frame)
    assert (
        "Coefficients of standardised columns are Normal(0, 1^2), those of shapes Normal(0, 0.5^2)"
        in dict(priors_of(topics))["theta"]
    )
    assert "Posterior means of the shapes: " in dict(priors_of(topics))["theta"]
    named = cv.PrivatizedCounts(pd.DataFrame(COUNTS, columns=list("abcde")), 0.3)
    seeded = dict(priors_of(cv.TopicModel(2, seeds={"one": ["a", "b"]}, **QUICK).fit(named)))
    assert "Seeded topics: 1; 5 is added to the shape of every seeded word in its topic." in seeded["phi"]
    assert "Posterior mean of the shape: " in seeded["phi"]
    dated = dict(priors_of(cv.TopicModel(2, **QUICK).fit(DATA, time=[1, 1, 2, 2, 3, 3])))
    assert "whose shapes are a gamma chain over 3 steps of time" in dated["theta"]
    found = " ".join(said for _, said in priors_of(cv.DynamicModel(2, background=True, **QUICK).fit(DATA)))
    assert "A gamma chain: each step depends on the step before" in found
    assert "Each component is Dirichlet with a learned concentration" in found
    assert "; one is spread out, with concentration 1." in found
