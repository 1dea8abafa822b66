"""Dirichlet priors of factors whose components are distributions over an observed axis."""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import gammaln

from countveil.kernels.gamma import SMALLEST
from countveil.laws.counts.slices import draw_on_slices
from countveil.models.priors.protocol import Grid, Scale

MEDIAN, SPREAD = 0.1, 1.0  # of a learned concentration's own prior, log-normal, as of learned gamma shapes
BOUNDS = np.log(1e-4), np.log(1e4)  # of the logarithm of the concentration
WIDTH = 0.2  # of the first slice


class DirichletPrior(NamedTuple):
    """phi_k ~ Dirichlet(a, ..., a) for each component k of a factor, with one concentration a for all of them.

    If ``concentration`` is None, it is learned. It is the only hyperparameter.

    Cells that are unseen, or whose reports are not positive, have exposures below one, so that the conditional of
    phi_k is no Dirichlet distribution. Counts m_vk ~ Poisson((E_k - e_vk) phi_vk), drawn first, make up for what
    exposures e_vk lack to the largest, E_k. With them it is, since exp(-E_k sum_v phi_vk) is constant (mathematics,
    equation 17.6).

    The first component may have a known concentration of its own, ``background``. If it is one or more, this component
    is spread over its axis, and takes what belongs to no other.
    """

    concentration: float | None
    background: float | None = None

    @property
    def kind(self) -> str:
        """Its name in files."""
        return "dirichlet"

    @property
    def independent(self) -> bool:
        """Entries of a component sum to one."""
        return False

    def start(self, factor: Grid) -> np.ndarray:
        """(1,) the concentration, or the median of its prior."""
        return np.array([MEDIAN if self.concentration is None else self.concentration], dtype=float)

    def gamma(self, hypers: np.ndarray, scale: Scale) -> tuple[Any, Any]:
        """Entries are no independent gamma variables; raises TypeError."""
        raise TypeError("a Dirichlet prior must not be asked for gammas")

    def draw_with_hypers(
        self,
        factor: Grid,
        hypers: np.ndarray,
        scale: Scale,
        value: np.ndarray,
        count: np.ndarray,
        exposure: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The factor, and the concentration, which is drawn before it with the factor integrated out.

        Raises:
            ValueError: known offsets of the factor's axis.
        """
        if not np.all(np.equal(scale, 1.0)):
            raise ValueError(
                "offsets must be for an axis whose factor has a gamma prior, got offsets for a factor with a Dirichlet "
                "prior: leave them out"
            )
        axes = summed_axes(factor)
        lack = exposure.max(axis=axes, keepdims=True) - exposure
        whole = count + rng.poisson(lack * value)
        if self.concentration is None:
            now = np.log(hypers)
            drawn = draw_on_slices(lambda log_a: self.log_mass(log_a, whole, axes), now, BOUNDS, rng, WIDTH)
            hypers = np.exp(drawn)
        shares = np.maximum(rng.standard_gamma(self.concentrations(factor, hypers[0]) + whole), SMALLEST)
        return shares / shares.sum(axis=axes, keepdims=True), hypers

    def concentrations(self, factor: Grid, usual: float) -> np.ndarray:
        """The concentration of each component, over the last axis."""
        found = np.full(factor.shape[-1], usual)
        if self.background is not None:
            found[0] = self.background
        return found

    def log_mass(self, log_a: np.ndarray, count: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        """(n,) log-densities of log a given whole counts, up to a constant (mathematics, equation 17.7)."""
        if self.background is not None:
            count = count[..., 1:]
        found = -0.5 * ((log_a - np.log(MEDIAN)) / SPREAD) ** 2
        numbers, times = np.unique(count[count > 0.0], return_counts=True)
        totals = count.sum(axis=axes)
        size = np.prod([count.shape[i] for i in axes])
        for i, a in enumerate(np.exp(log_a)):
            found[i] += times @ (gammaln(a + numbers) - gammaln(a))
            found[i] -= (gammaln(size * a + totals) - gammaln(size * a)).sum()
        return found

    def draw(
        self,
        factor: Grid,
        hypers: np.ndarray,
        scale: Scale,
        value: np.ndarray,
        count: np.ndarray,
        exposure: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """The factor, with the concentration as it is."""
        known = self._replace(concentration=float(hypers[0]))
        return known.draw_with_hypers(factor, hypers, scale, value, count, exposure, rng)[0]

    def draw_hypers(
        self, factor: Grid, hypers: np.ndarray, scale: Scale, value: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """The concentration as it is: it was drawn before the factor."""
        return hypers

    def estimate(self, factor: Grid, scale: Scale, value: np.ndarray) -> np.ndarray:
        """The start."""
        return self.start(factor)

    def reported_rates(self, hypers: np.ndarray) -> np.ndarray | None:
        """None: there are no rates."""
        return None

    def reported_shapes(self, hypers: np.ndarray) -> np.ndarray | None:
        """(C, S) concentrations that were learned."""
        return hypers[:, :, 0] if self.concentration is None else None

    def facts(self) -> dict[str, Any]:
        """The concentrations."""
        return {"kind": self.kind, "concentration": self.concentration, "background": self.background}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """The prior that ``facts`` described."""
        return cls(facts["concentration"], facts["background"])


def summed_axes(factor: Grid) -> tuple[int, ...]:
    """The axes over which a component's entries are summed."""
    return tuple(i for i, n in enumerate(factor.component_shape) if n == 1)
