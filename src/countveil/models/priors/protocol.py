"""What inference asks of the prior of a factor.

A prior has hyperparameters, kept in one array whose form it chooses ("hypers"). A sampler draws them along with the
factors. Known offsets of a factor's axis come as ``scale``, by which prior rates are multiplied: 1.0, or an array that
broadcasts against the factor.
"""

from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

Scale = float | np.ndarray
Reported = dict[
    str, tuple[tuple[int, ...], np.ndarray]
]  # by name: axes, as numbers of the factor's, and (C, S, ...)


class Grid(Protocol):
    """What a prior knows about its factor: its shape, and which entries belong to one component."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the factor."""
        ...

    @property
    def component_shape(self) -> tuple[int, ...]:
        """Broadcasts against the shape: one number per component, or a single one."""
        ...

    @property
    def symmetric(self) -> bool:
        """Whether the factor equals its transpose: each pair of entries is one parameter."""
        ...

    @property
    def shared(self) -> bool:
        """Whether the factor is used twice, so that its entries depend on each other given counts."""
        ...

    @property
    def weight(self) -> np.ndarray | np.float64:
        """1 for every entry that is a separate parameter, 0 for the others."""
        ...

    def component_sums(self, values: np.ndarray | float) -> np.ndarray:
        """Weighted sums over each component's entries."""
        ...


class Prior(Protocol):
    """The prior of a factor, as samplers use it.

    Under an ``independent`` prior, the entries are independent gamma variables given the hyperparameters. The
    conditional of an entry is then Gamma(shape + count, rate + exposure). Compiled sweeps draw it themselves.
    Any other prior draws the whole factor: it may couple rows, or depend on their covariates.
    """

    @property
    def kind(self) -> str:
        """Its name in files."""
        ...

    @property
    def independent(self) -> bool:
        """Whether entries are independent gamma variables given the hyperparameters."""
        ...

    def start(self, factor: Grid) -> np.ndarray:
        """Initial hyperparameters."""
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
        """The factor, positive, drawn from the prior times value^count exp(-exposure value).

        It is called if the prior is not ``independent``. A Markov step from ``value``, the current factor, that leaves
        this distribution invariant is enough.
        """
        ...

    def draw_hypers(
        self, factor: Grid, hypers: np.ndarray, scale: Scale, value: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Hyperparameters given the factor."""
        ...

    def estimate(self, factor: Grid, scale: Scale, value: np.ndarray) -> np.ndarray:
        """Hyperparameters that fit a point estimate of the factor."""
        ...

    def reported_rates(self, hypers: np.ndarray) -> np.ndarray | None:
        """(C, S, ...) prior rates, for the posterior, from draws of the hyperparameters; None if there are none."""
        ...

    def reported_shapes(self, hypers: np.ndarray) -> np.ndarray | None:
        """(C, S) shapes that were learned, for the posterior, from draws of the hyperparameters; None if none were."""
        ...

    def facts(self) -> dict[str, Any]:
        """Plain values for a file, which ``priors.prior_of`` reads back."""
        ...


class JointPrior(Prior, Protocol):
    """A prior that is not ``independent``, and draws its hyperparameters along with the factor.

    Samplers call ``draw_with_hypers`` in place of ``draw``, and ``draw_hypers`` leaves the hyperparameters as they are.
    """

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
        """(factor, hyperparameters), by a Markov step that leaves their joint conditional as it is."""
        ...


@runtime_checkable
class ReportingPrior(Prior, Protocol):
    """A prior whose hyperparameters are results: the posterior has them by name.

    Where it ``holds_size``, draws keep the sizes of components in its factor, and all others sum to one.
    """

    @property
    def holds_size(self) -> bool:
        """Whether hyperparameters are about the factor's own size."""
        ...

    def reported(self, factor: Grid, hypers: np.ndarray) -> Reported:
        """The hyperparameters (C, S, ...) by name."""
        ...


class CollapsedPrior(Prior, Protocol):
    """An ``independent`` prior that draws hyperparameters with the factor's entries summed out, before these."""

    def draw_hypers_given_counts(
        self,
        factor: Grid,
        hypers: np.ndarray,
        scale: Scale,
        count: np.ndarray,
        exposure: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Hyperparameters given the counts and exposures of all entries, which have to be drawn anew afterwards."""
        ...


@runtime_checkable
class RowPrior(Prior, Protocol):
    """A prior whose reported rates are enough to draw new rows, as ``transform`` does.

    It is ``independent``, and reports rates.
    """

    def gamma_of_new_rows(self, rates: np.ndarray, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries of new rows (D, K), given reported rates (K,) or (1,); both broadcast.

        Raises:
            ValueError: new rows have no prior of their own.
        """
        ...


@runtime_checkable
class VariationalPrior(Prior, Protocol):
    """An ``independent`` prior that variational methods can treat: ``q`` (2, ...) is the gamma Q of its hypers."""

    def start_q(self, factor: Grid) -> np.ndarray:
        """Initial (shape, rate) of the hyperparameters' Q."""
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
        """A step of this weight towards the optimum given the factor's means, with its rows seen ``copies`` times."""
        ...

    def grow_q(self, q: np.ndarray, times: float) -> np.ndarray:
        """``q`` as if this many times the rows had given the same evidence per row."""
        ...

    def bound(self, factor: Grid, shape: np.ndarray, rate: np.ndarray, q: np.ndarray, scale: Scale) -> float:
        """E log p - E log q of factor and hyperparameters, for a factor of independent gammas."""
        ...

    def penalty(
        self, factor: Grid, shape: np.ndarray, rate: np.ndarray, q: np.ndarray, scale: Scale
    ) -> float:
        """The prior's part of the objective of the arithmetic expectation."""
        ...


class SizedPrior(Prior, Protocol):
    """A prior whose hyperparameters may learn the size of the whole factor."""

    def resized(self, factor: Grid, hypers: np.ndarray, times: float) -> tuple[np.ndarray, float] | None:
        """What hyperparameters become where the factor is multiplied by a number; None if its size is known.

        With them comes the logarithm by which the density of factor and hyperparameters changes, times the Jacobian of
        the map from both to both.
        """
        ...


def learns_size(prior: Prior) -> TypeGuard[SizedPrior]:
    """Whether it is a ``SizedPrior``."""
    return hasattr(prior, "resized")


def draws_jointly(prior: Prior) -> TypeGuard[JointPrior]:
    """Whether it is a ``JointPrior``: in every sweep, where ``isinstance`` would look at all of a protocol's names."""
    return hasattr(prior, "draw_with_hypers")


def is_collapsed(prior: Prior) -> TypeGuard[CollapsedPrior]:
    """Whether it is a ``CollapsedPrior``, the same way."""
    return hasattr(prior, "draw_hypers_given_counts")
