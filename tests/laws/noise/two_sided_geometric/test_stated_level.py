"""Which sums and numbers of reports contradict a level: those in the tails of their exact laws."""

import numpy as np
import pytest
from scipy import stats

from countveil.laws.noise.two_sided_geometric import stated_level

ALPHA, CELLS = 0.4, 60.0
ONE_LEVEL = np.array([ALPHA]), np.array([CELLS])
IN_ALL = np.arange(300.0)


def contradicted(found):
    return [bool(each) for each in found]


def test_sums_below_zero_by_the_law_of_as_many_geometric_sizes():
    sums = stats.nbinom(CELLS, 1.0 - ALPHA)
    odd = (sums.cdf(IN_ALL) < stated_level.SURPRISE) | (sums.sf(IN_ALL - 1.0) < stated_level.SURPRISE)
    assert 0 < odd.sum() < odd.size
    assert contradicted(stated_level.of_signed(*ONE_LEVEL, found) for found in IN_ALL) == odd.tolist()


def test_reports_at_most_zero_by_the_law_of_zero_counts():
    numbers = np.arange(1.0, CELLS + 1.0)
    odd = stats.binom.sf(numbers - 1.0, CELLS, 1.0 / (1.0 + ALPHA)) < stated_level.SURPRISE
    assert 0 < odd.sum() < odd.size
    assert contradicted(stated_level.of_zeros(*ONE_LEVEL, found) for found in numbers) == odd.tolist()


@pytest.mark.parametrize("together", [40.0, 200.0])
def test_reports_of_two_by_the_law_of_noise_alone(together):
    twos = np.arange(together)
    odd = stats.binom.cdf(twos, together, ALPHA / (1.0 + ALPHA)) < stated_level.SURPRISE
    assert 0 < odd.sum() < odd.size
    found = (stated_level.of_twos(np.array([ALPHA]), np.array([together - n]), np.array([n])) for n in twos)
    assert contradicted(found) == odd.tolist()
