"""A prior that was added by its recipe: log-normal entries, which have no conditional in closed form.

    log entry ~ Normal(mean, spread^2)

It draws the whole factor itself, by random-walk steps in logarithms that leave the conditional as it is.
"""

from typing import NamedTuple

import numpy as np

STEPS = 4


class LogNormalPrior(NamedTuple):
    """Independent log-normal entries; the hyperparameters are mean and spread, which stay."""

    mean: float
    spread: float

    kind = property(lambda self: "log-normal")
    independent = property(lambda self: False)

    def start(self, factor):
        return np.array([self.mean, self.spread])

    def gamma(self, hypers, scale):
        raise NotImplementedError

    def log_density(self, log_value, count, exposure):
        """log of prior times value^count exp(-exposure value), of the entries' logarithms."""
        prior = -0.5 * ((log_value - self.mean) / self.spread) ** 2
        return prior + count * log_value - exposure * np.exp(log_value)

    def draw(self, factor, hypers, scale, value, count, exposure, rng):
        log_value = np.log(value)
        for _ in range(STEPS):
            proposed = log_value + rng.normal(0.0, 0.7, value.shape)
            gain = self.log_density(proposed, count, exposure) - self.log_density(log_value, count, exposure)
            log_value = np.where(np.log(rng.random(value.shape)) < gain, proposed, log_value)
        return np.exp(log_value)

    def draw_hypers(self, factor, hypers, scale, value, rng):
        return hypers

    def estimate(self, factor, scale, value):
        return self.start(factor)

    def reported_rates(self, hypers):
        return None

    def reported_shapes(self, hypers):
        return None

    def facts(self):
        return {"kind": self.kind, "mean": self.mean, "spread": self.spread}

    @classmethod
    def from_facts(cls, facts):
        return cls(facts["mean"], facts["spread"])
