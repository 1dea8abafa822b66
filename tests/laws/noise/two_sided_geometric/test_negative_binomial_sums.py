"""Sums of weights on either side of a report, against sums over all counts; tails are tested with the distribution."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from countveil.laws.noise.two_sided_geometric import negative_binomial, negative_binomial_sums
from tests.bursts import PS, SHAPES, masses

CASES = [case for case in itertools.product(PS, SHAPES) if case[1] < 1e5]


def of_part(part, counts, logs, bursts, tilt):
    """(log of the sum of weights, and the means of counts and bursts under them)."""
    logs = logs[part] + tilt[part]
    total = logsumexp(logs)
    law = np.exp(logs - total)
    return total, law @ counts[part], law @ bursts[part]


@pytest.mark.parametrize(("p", "s"), CASES)
def test_sums_up_to_a_report_and_above_it(p, s):
    counts, logs, bursts = masses(s, p)
    for k, alpha in itertools.product((0, 1, 12, 400), (1e-4, 0.3, 0.95, 1.0)):
        tilt = -np.abs(k - counts) * -math.log(alpha)
        sides = ((negative_binomial_sums.sums_up_to, counts <= k), (negative_binomial_sums.sums_above, counts > k))
        for side, part in sides:
            log_scale, total, moment, parts = side(k, s, p, alpha)
            expected = of_part(part, counts, logs, bursts, tilt)
            assert log_scale + math.log(total) == pytest.approx(expected[0], rel=1e-11, abs=1e-11)
            assert (moment / total, parts / total) == pytest.approx(expected[1:], rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("p", "s"), CASES)
def test_expectations_are_those_that_sampling_uses(p, s):
    for r, alpha in itertools.product((1, 12, 400), (0.0, 0.3, 0.95)):
        score, count, bursts = negative_binomial_sums.expectations(r, s, p, alpha)
        expected = negative_binomial.score_and_bursts(r, s, p, alpha)
        assert (score, bursts) == pytest.approx(expected, rel=1e-8, abs=1e-9)
        assert bursts <= count * (1.0 + 1e-12)
