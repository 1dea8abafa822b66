"""A likelihood with a parameter of its own, added by its recipe: counts that come in bursts of logarithmic sizes.

    bursts ~ Poisson(rate),   count ~ NegativeBinomial(rate / q, p),   q = -log(1 - p)

The parts that belong to components are the bursts. One p for all cells is drawn in every sweep.
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, gammaln

from countveil.kernels import general
from countveil.kernels.law import provides

PRIOR = 6.0, 4.0  # of p, a beta law


class BurstCounts(NamedTuple):
    """Counts that come in bursts, for compiled loops."""

    parameters: tuple[np.ndarray, ...] = ()


class Bursts:
    """The likelihood of counts that come in bursts."""

    name = "bursts"
    parameter_axes: ClassVar = {"p": "all"}
    settings: ClassVar = {}
    counts = BurstCounts()

    def __repr__(self):
        return self.name

    def range_of(self, name):
        return 0.0, 1.0

    def exposure(self, ratio, parameters=()):
        (p,) = parameters[0]
        return 1.0 - np.log1p(-p * ratio) / np.log1p(-p)

    def mean(self, rate, parameters=()):
        (p,) = parameters[0]
        return shape_of(rate, p) * p / (1.0 - p)

    def log_mass(self, count, rate, parameters=()):
        (p,) = parameters[0]
        shape = shape_of(rate, p)
        ways = gammaln(shape + count) - gammaln(shape) - gammaln(count + 1.0)
        return ways + shape * np.log1p(-p) + count * np.log(p)

    def sample(self, rate, rng, parameters=()):
        (p,) = parameters[0]
        return rng.negative_binomial(shape_of(rate, p), 1.0 - p)

    def start(self, shape):
        return (np.array([0.5]),)

    def tally_size(self, shape):
        return 2

    def log_density(self, logit, tally, unseen):
        """log P(logit p | counts, bursts, rates of unseen cells), up to a constant."""
        p = expit(logit)
        count, bursts = tally
        exposed = self.exposure(unseen.ratio, (np.array([p]),)) @ unseen.rate[:, 0]
        seen = count * np.log(p) - bursts * np.log(-np.log1p(-p)) - exposed
        return seen + PRIOR[0] * np.log(p) + PRIOR[1] * np.log1p(-p)

    def update(self, parameters, tally, unseen, rng):
        """A slice of the density of logit p."""
        now = float(np.log(parameters[0][0]) - np.log1p(-parameters[0][0]))
        level = self.log_density(now, tally, unseen) - rng.exponential()
        low = now - rng.random()
        high = low + 1.0
        while self.log_density(low, tally, unseen) > level:
            low -= 1.0
        while self.log_density(high, tally, unseen) > level:
            high += 1.0
        while True:
            new = rng.uniform(low, high)
            if self.log_density(new, tally, unseen) > level:
                return (np.array([expit(new)]),)
            low, high = (new, high) if new < now else (low, new)


def shape_of(rate, p):
    return np.maximum(rate, 1e-300) / -np.log1p(-p)


@provides(general.log_mass, BurstCounts)
def log_mass(likelihood, count, rate):
    p = likelihood.parameters[0][0]
    shape = rate / -math.log1p(-p)
    ways = math.lgamma(shape + count) - math.lgamma(shape) - math.lgamma(count + 1.0)
    return ways + shape * math.log1p(-p) + count * math.log(p)


@provides(general.draw_parts, BurstCounts)
def draw_parts(likelihood, count, rate, rng):
    shape = rate / -math.log1p(-likelihood.parameters[0][0])
    bursts = 0
    for i in range(count):
        if rng.random() * (shape + i) < shape:
            bursts += 1
    return bursts


@provides(general.expected_parts, BurstCounts)
def expected_parts(likelihood, count, rate):
    shape = rate / -math.log1p(-likelihood.parameters[0][0])
    bursts = 0.0
    for i in range(count):
        bursts += shape / (shape + i)
    return bursts


@provides(general.add_to_tally, BurstCounts)
def add_to_tally(likelihood, row, column, count, parts, tally):
    tally[0] += count
    tally[1] += parts


@provides(general.parts_exposure, BurstCounts)
def parts_exposure(likelihood, ratio):
    p = likelihood.parameters[0][0]
    return 1.0 - math.log1p(-p * ratio) / math.log1p(-p)
