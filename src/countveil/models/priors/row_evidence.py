"""What tells of gamma entries whose means and shapes depend on covariates: their counts, or the entries themselves."""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from scipy.special import digamma, gammaln, zeta

from countveil.kernels.gamma import SMALLEST
from countveil.kernels.shapes import look_at_shapes

STEEPEST = 1e6  # of an entry's curvature, beside its shape: matrices stay well conditioned where no chain is


class Slope(NamedTuple):
    """A log-density at logarithms of means or shapes, up to a constant, and its derivatives."""

    mass: np.ndarray  # (K,)
    first: np.ndarray  # (D, K) with respect to each entry's logarithm
    second: np.ndarray  # (D, K) with the sign turned round; of shapes, where it is positive


class Columns(NamedTuple):
    """The design beside a column of ones."""

    rows: np.ndarray  # (D, 1 + P)
    squares: np.ndarray  # (D, (1 + P)^2) products of any two columns

    @classmethod
    def of(cls, design: np.ndarray) -> Self:
        """The columns of a design (D, P)."""
        rows = np.column_stack([np.ones(len(design)), design])
        return cls(rows, (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1))


class Told(NamedTuple):
    """What counts say, with the entries summed out (mathematics, (16.2))."""

    columns: Columns
    counts: np.ndarray  # (D, K)
    exposures: np.ndarray  # (D, K) divided by the known scale of the entries' rates

    def of_means(self, log_mean: np.ndarray, log_shape: np.ndarray) -> Slope:
        """At logarithms of means (D, K)."""
        weight, ratio = np.exp(log_shape) + self.counts, self.exposures * np.exp(log_mean - log_shape)
        share = ratio / (1.0 + ratio)
        mass = np.einsum("dk,dk->k", self.counts, log_mean) - np.einsum("dk,dk->k", weight, np.log1p(ratio))
        expected = weight * share
        return Slope(mass, self.counts - expected, expected * (1.0 - share))

    def of_sizes(self, slopes: np.ndarray, log_shape: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Log-densities of log sizes (K,), where ``slopes`` (D, K) are logarithms of means without them."""
        total, weight = self.counts.sum(axis=0), np.exp(log_shape) + self.counts
        ratio = self.exposures * np.exp(slopes - log_shape)

        def log_mass(size: np.ndarray) -> np.ndarray:
            return np.asarray(total * size - np.einsum("dk,dk->k", weight, np.log1p(ratio * np.exp(size))))

        return log_mass

    def of_shapes(self, log_mean: np.ndarray) -> Callable[[np.ndarray], Slope]:
        """At logarithms of shapes (D, K), given those of means."""
        exposed = self.exposures * np.exp(log_mean)

        def at(log_shape: np.ndarray) -> Slope:
            first, second = np.empty_like(log_shape), np.empty_like(log_shape)
            mass = look_at_shapes(log_shape, self.counts, exposed, first, second)
            return Slope(mass, first, np.maximum(second, 0.0))

        return at


class Seen(NamedTuple):
    """What the entries themselves say; those that were cut at the smallest number stand for all below (18.4)."""

    columns: Columns
    values: np.ndarray  # (D, K) multiplied by the known scale of the entries' rates
    cut: np.ndarray  # (D, K) whether an entry was too small for a number

    @classmethod
    def of(cls, columns: Columns, scaled: np.ndarray, value: np.ndarray) -> Self:
        """Entries, and the same multiplied by a scale."""
        return cls(columns, scaled, value <= SMALLEST)

    def of_means(self, log_mean: np.ndarray, log_shape: np.ndarray) -> Slope:
        """At logarithms of means (D, K); the curvature has a bound."""
        a = np.exp(log_shape)
        ratio = a * self.values * np.exp(-log_mean)
        mass = -(a * log_mean).sum(axis=0) - ratio.sum(axis=0)
        return Slope(mass, ratio - a, np.minimum(ratio, STEEPEST * a))

    def of_sizes(self, slopes: np.ndarray, log_shape: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Log-densities of log sizes (K,), where ``slopes`` (D, K) are logarithms of means without them."""
        a = np.exp(log_shape)
        total, ratio = a.sum(axis=0), (a * self.values * np.exp(-slopes)).sum(axis=0)
        return lambda size: -total * size - ratio * np.exp(-size)

    def of_shapes(self, log_mean: np.ndarray) -> Callable[[np.ndarray], Slope]:
        """At logarithms of shapes (D, K), given those of means."""
        ratio = self.values * np.exp(-log_mean)
        logs = np.log(self.values) - log_mean

        def at(log_shape: np.ndarray) -> Slope:
            a = np.exp(log_shape)
            mass = a * (log_shape + logs - ratio) - gammaln(a) - self.cut * log_shape
            first = a * (log_shape + 1.0 + logs - ratio - digamma(a)) - self.cut
            return Slope(mass.sum(axis=0), first, np.maximum(a**2 * zeta(2.0, a) - a, 0.0))

        return at
