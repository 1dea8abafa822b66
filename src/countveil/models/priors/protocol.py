"""What is asked of the prior of a factor.

A prior has hyperparameters, kept as one array of its own making ("hypers"): a sampler draws them beside the factors.
Known offsets of a factor's axis come as ``scale``, by which prior rates are multiplied: 1.0, or an array that
broadcasts against the factor.
"""

from typing import Any, Protocol

import numpy as np

Scale = float | np.ndarray


class Grid(Protocol):
    """What a prior knows of its factor: the shape of its entries, and which of them belong to one component."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the factor."""
        ...

    @property
    def component_shape(self) -> tuple[int, ...]:
        """Broadcasts against the shape: one number for each component, or one in all."""
        ...

    @property
    def symmetric(self) -> bool:
        """Whether the factor equals its transpose: each pair of entries is one parameter."""
        ...

    @property
    def weight(self) -> np.ndarray | np.float64:
        """1 for every entry that is a parameter of its own, 0 for the others."""
        ...

    def component_sums(self, values: np.ndarray | float) -> np.ndarray:
        """Sums over each component's own entries."""
        ...


class Prior(Protocol):
    """The prior of a factor, as samplers use it.

    Given its hyperparameters an ``independent`` prior makes every entry a gamma variable of its own. Then the entry's
    conditional is Gamma(shape + count, rate + exposure), which the compiled sweeps draw themselves, and variational
    methods can treat it. Any other prior draws the whole factor: it may couple rows, or depend on what is known of
    them.
    """

    @property
    def kind(self) -> str:
        """Its name in files."""
        ...

    @property
    def independent(self) -> bool:
        """Whether every entry is a gamma variable of its own given the hyperparameters."""
        ...

    def start(self, factor: Grid) -> np.ndarray:
        """Hyperparameters to begin with."""
        ...

    def gamma(self, hypers: np.ndarray, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries, which broadcast against the factor; for an ``independent`` prior."""
        ...

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
        """The factor, positive, drawn from prior times value^count exp(-exposure value); for one that is not.

        A step that leaves this law as it is will do: ``value`` is where the factor was.
        """
        ...

    def draw_hypers(
        self, factor: Grid, hypers: np.ndarray, scale: Scale, value: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Hyperparameters given the factor."""
        ...

    def estimate(self, factor: Grid, value: np.ndarray) -> np.ndarray:
        """Hyperparameters that fit a point estimate of the factor."""
        ...

    def reported_rates(self, hypers: np.ndarray) -> np.ndarray | None:
        """(C, S, ...) prior rates in draws of the hyperparameters, for the posterior; None where there are none."""
        ...

    def facts(self) -> dict[str, Any]:
        """Plain values for a file, which ``priors.prior_of`` reads back."""
        ...


class VariationalPrior(Prior, Protocol):
    """A prior that variational methods can treat: they keep a gamma law of its hyperparameters, ``q`` (2, ...)."""

    def start_q(self, factor: Grid) -> np.ndarray:
        """(shape, rate) of the hyperparameters' law to begin with."""
        ...

    def update_q(
        self,
        factor: Grid,
        q: np.ndarray,
        scale: Scale,
        mean: np.ndarray,
        copies: float = 1.0,
        weight: float = 1.0,
    ) -> np.ndarray:
        """Its optimum given the factor's means, had its rows been seen ``copies`` times; a step of this weight."""
        ...

    def grow_q(self, q: np.ndarray, times: float) -> np.ndarray:
        """The law had this many times the rows said the same."""
        ...

    def bound(self, factor: Grid, shape: np.ndarray, rate: np.ndarray, q: np.ndarray, scale: Scale) -> float:
        """E log p - E log q of factor and hyperparameters, for a factor of independent gammas."""
        ...

    def penalty(
        self, factor: Grid, shape: np.ndarray, rate: np.ndarray, q: np.ndarray, scale: Scale
    ) -> float:
        """What the arithmetic iteration adds to the log-likelihood for them."""
        ...
