"""Dirichlet priors of factors whose components are distributions over an observed axis."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from countveil.kernels.random import SMALLEST
from countveil.laws.counts.slices import draw_on_slices
from countveil.models.priors.prior import (
    BOUNDS,
    LEARNED_SHAPE,
    MEDIAN,
    SPREAD,
    Conditional,
    Factor,
    Prior,
    Reported,
    check_shapes,
    ranged,
)

WIDTH = 0.2  # of the first slice


@dataclass(frozen=True)
class DirichletPrior(Prior):
    """phi_k ~ Dirichlet(a, ..., a) for each component k of a factor, with one concentration a for all of them.

    If ``concentration`` is None, it is learned, with the prior of learned shapes. It is the only hyperparameter.

    Cells that are unseen, or whose reports are not positive, have exposures below one, so that the conditional of
    phi_k is no Dirichlet distribution. Counts m_vk ~ Poisson((E_k - e_vk) phi_vk), drawn first, make up for what
    exposures e_vk lack to the largest, E_k. With them it is, since exp(-E_k sum_v phi_vk) is constant (mathematics,
    equation 17.6).

    The first component may have a known concentration of its own, ``background``. If it is one or more, this component
    is spread over its axis, and takes what belongs to no other.
    """

    concentration: float | None
    background: float | None = None

    kind: ClassVar[str] = "dirichlet"

    def start(self, factor: Factor) -> np.ndarray:
        """(1,) the concentration, or the median of its prior."""
        return np.array([MEDIAN if self.concentration is None else self.concentration], dtype=float)

    def draw(
        self, factor: Factor, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """The factor, and the concentration, which is drawn before it with the factor integrated out.

        Raises:
            ValueError: known offsets of the factor's axis.
        """
        if not np.all(np.equal(given.scale, 1.0)):
            raise ValueError(
                "offsets must be for an axis whose factor has a gamma prior, got offsets for a factor with a Dirichlet "
                "prior: leave them out"
            )
        axes = summed_axes(factor)
        lack = given.exposures.max(axis=axes, keepdims=True) - given.exposures
        whole = given.counts + rng.poisson(lack * given.value)
        return self.draw_given_counts(whole, axes, hypers, rng)

    def draw_given_counts(
        self, whole: np.ndarray, axes: tuple[int, ...], hypers: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """The factor and the concentration given whole counts, whose components sum to one over these axes."""
        if self.concentration is None:
            now = np.log(hypers)
            drawn = draw_on_slices(self.log_density(whole, axes), now, BOUNDS, rng, WIDTH)
            hypers = np.exp(drawn)
        own = self.concentrations(whole.shape[-1], hypers[0])
        shares = np.maximum(rng.standard_gamma(own + whole), SMALLEST)
        return shares / shares.sum(axis=axes, keepdims=True), hypers

    def concentrations(self, n_components: int, usual: float) -> np.ndarray:
        """The concentration of each component, over the last axis."""
        found = np.full(n_components, usual)
        if self.background is not None:
            found[0] = self.background
        return found

    def log_density(self, count: np.ndarray, axes: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
        """log a (n,) -> its log-densities (n,) given whole counts, up to a constant (mathematics, equation 17.7)."""
        if self.background is not None:
            count = count[..., 1:]
        numbers, times = np.unique(count[count > 0.0], return_counts=True)
        totals = count.sum(axis=axes)
        size = np.prod([count.shape[i] for i in axes])

        def found(log_a: np.ndarray) -> np.ndarray:
            values = -0.5 * ((log_a - np.log(MEDIAN)) / SPREAD) ** 2
            for i, a in enumerate(np.exp(log_a)):
                values[i] += times @ (gammaln(a + numbers) - gammaln(a))
                values[i] -= (gammaln(size * a + totals) - gammaln(size * a)).sum()
            return np.asarray(values)

        return found

    @property
    def n_anchored(self) -> int:
        """The background, which comes first."""
        return int(self.background is not None)

    def reported(self, factor: Factor, hypers: np.ndarray) -> Reported:
        """A learned concentration."""
        return {"_shape": ((), hypers[:, :, 0])} if self.concentration is None else {}

    def summaries(self, factor: Factor, hypers: np.ndarray) -> list[np.ndarray]:
        """A learned concentration."""
        return [hypers[:, :, 0]] if self.concentration is None else []

    def check_reported(self, name: str, values: np.ndarray) -> None:
        """Concentrations have the bounds of shapes."""
        check_shapes(name, values)

    def describe(self) -> str:
        """The concentrations."""
        known = f"a learned concentration (prior: {LEARNED_SHAPE})"
        if self.concentration is not None:
            known = f"concentration {ranged(self.concentration)}"
        spread = f"; one is spread out, with concentration {ranged(self.background)}" if self.background else ""
        return f"Each component is Dirichlet with {known}{spread}."


def summed_axes(factor: Factor) -> tuple[int, ...]:
    """The axes over which a component's entries are summed."""
    return tuple(i for i, n in enumerate(factor.component_shape) if n == 1)
