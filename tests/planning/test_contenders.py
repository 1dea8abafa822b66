import numpy as np
import pytest

import countveil as cv
from countveil.evaluation import log_score
from countveil.planning.contenders import (
    FLOORS,
    LEAST_SQUARES,
    OURS,
    Sampling,
    distributions,
    least_squares_on_reports,
    rate_scores,
)


def test_least_squares_is_given_its_best_floor():
    counts = np.array([[0, 3], [1, 0]])
    rate = np.array([[0.0, 3.0], [0.0, 0.0]])
    raised, bare = rate_scores(counts, rate, floored=True), rate_scores(counts, rate, floored=False)
    assert bare["log_score"] == -np.inf
    assert raised["log_score"] == max(log_score(counts, np.maximum(rate, floor)) for floor in FLOORS)
    assert raised["mae"] <= bare["mae"]
    assert LEAST_SQUARES.floored
    assert not OURS.floored


def test_least_squares_takes_the_best_of_its_starts():
    counts = np.random.default_rng(1).poisson(0.3, (60, 80))
    release, sampling = cv.privatize(counts, cv.PrivacyLevel(1, 1)), Sampling(n_topics=4, chains=2)
    found, again = (least_squares_on_reports(release, sampling, 1) for _ in range(2))
    assert np.array_equal(found.rate, again.rate)
    assert found.topics.sum(axis=1) == pytest.approx(1.0)
    one = least_squares_on_reports(release, sampling._replace(chains=1), 1)
    assert not np.array_equal(one.rate, found.rate)


def test_distributions_sum_to_one_even_where_there_is_nothing():
    found = distributions(np.array([[1.0, 3.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(found, [[0.25, 0.75], [0.5, 0.5]])
