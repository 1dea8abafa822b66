"""A mechanism that ``Reports`` read, added by its recipe: the noise is uniform on the whole numbers from -w to w."""

import math
from dataclasses import dataclass

import numpy as np

from countveil.kernels.report_kernels import FLAT
from countveil.laws.noise.additive import AdditiveLaw
from countveil.laws.noise.report_law import log, pieces, whole_numbers
from countveil.privacy.mechanisms import AddedNoise
from countveil.privacy.mechanisms.base import whole


@dataclass(frozen=True, repr=False)
class Uniform(AddedNoise):
    """The owner's side: ``report = count + tau``, each tau with probability 1 / (2 w + 1)."""

    w: int

    name = "uniform"
    version = 1
    title = "uniform noise"
    _exact = ("w",)

    def __post_init__(self):
        object.__setattr__(self, "w", whole("w", self.w, 1))

    @property
    def standard_deviation(self):
        return math.sqrt(self.w * (self.w + 1) / 3)

    def describe(self):
        return f"{self._strength()} A report rules out counts that are more than {self.w} away."


class UniformLaw(AdditiveLaw):
    """The analyst's side."""

    def __init__(self, w):
        self.w, self.size = w, 2.0 * w + 1.0

    def broken(self, reports):
        yield f"reports must be at least {-self.w}", reports < -self.w

    def log_mass(self, tau):
        return np.where(np.abs(tau) <= self.w, -math.log(self.size), -np.inf)

    def log_cdf(self, tau):
        return log(np.clip((np.floor(tau) + self.w + 1.0) / self.size, 0.0, 1.0))

    @property
    def spread(self):
        return math.sqrt(self.w * (self.w + 1) / 3)

    def support(self, reports):
        return whole_numbers(reports - self.w), whole_numbers(reports + self.w)

    def pieces(self, reports):
        return pieces(FLAT, reports.size, constant=-math.log(self.size))

    def sample(self, shape, rng):
        return rng.integers(-self.w, self.w, shape, endpoint=True).astype(np.float64)
