"""A prior that was added by its recipe: log-normal entries, which have no conditional in closed form.

    log entry ~ Normal(mean, spread^2)

It draws the whole factor itself, by random-walk steps in logarithms that leave the conditional as it is.
"""

from dataclasses import dataclass

import numpy as np

from countveil.models.priors import Prior

STEPS = 4


@dataclass(frozen=True)
class LogNormalPrior(Prior):
    """Independent log-normal entries; the hyperparameters are mean and spread, which stay."""

    kind = "log-normal"
    mean: float
    spread: float

    def start(self, factor):
        return np.array([self.mean, self.spread])

    def log_density(self, log_value, counts, exposures):
        """log of prior times value^count exp(-exposure value), of the entries' logarithms."""
        prior = -0.5 * ((log_value - self.mean) / self.spread) ** 2
        return prior + counts * log_value - exposures * np.exp(log_value)

    def draw(self, factor, hypers, given, rng):
        log_value = np.log(given.value)
        for _ in range(STEPS):
            proposed = log_value + rng.normal(0.0, 0.7, log_value.shape)
            gain = self.log_density(proposed, *given[2:]) - self.log_density(log_value, *given[2:])
            log_value = np.where(np.log(rng.random(log_value.shape)) < gain, proposed, log_value)
        return np.exp(log_value), hypers
