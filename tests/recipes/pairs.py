"""A likelihood that was added by its recipe: things that come two at a time.

    count = 2 pairs,   pairs ~ Poisson(rate)

The parts that belong to components are the pairs. A cell whose report is not stored says that there was no pair: its
kernel falls by ratio^2 for each, so that its exposure is 1 - ratio^2.
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import stats

from countveil.kernels import general
from countveil.kernels.law import provides
from countveil.kernels.poisson import poisson_logpmf


class PairsCounts(NamedTuple):
    """Counts of things in pairs, for compiled loops."""

    parameters: tuple[()] = ()


class Pairs:
    """The likelihood of counts of things that come in pairs."""

    name = "pairs"
    parameter_axes: ClassVar = {}
    settings: ClassVar = {}
    counts = PairsCounts()

    def __repr__(self):
        return self.name

    def range_of(self, name):
        return 0.0, 1.0

    def exposure(self, ratio, parameters=()):
        return 1.0 - ratio**2

    def mean(self, rate, parameters=()):
        return 2.0 * rate

    def log_mass(self, count, rate, parameters=()):
        pairs = np.asarray(count) // 2
        return np.where(np.asarray(count) % 2 == 0, stats.poisson.logpmf(pairs, rate), -np.inf)

    def sample(self, rate, rng, parameters=()):
        return 2 * rng.poisson(rate)

    def start(self, shape):
        return ()

    def tally_size(self, shape):
        return 0

    def update(self, parameters, tally, unseen, rng):
        return parameters


@provides(general.log_mass, PairsCounts)
def log_mass(likelihood, count, rate):
    return poisson_logpmf(count // 2, rate) if count % 2 == 0 else -math.inf


@provides(general.draw_parts, PairsCounts)
def draw_parts(likelihood, count, rate, rng):
    return count // 2


@provides(general.expected_parts, PairsCounts)
def expected_parts(likelihood, count, rate):
    return 0.5 * count


@provides(general.add_to_tally, PairsCounts)
def add_to_tally(likelihood, row, column, count, parts, tally):
    pass


@provides(general.parts_exposure, PairsCounts)
def parts_exposure(likelihood, ratio):
    return 1.0 - ratio**2
