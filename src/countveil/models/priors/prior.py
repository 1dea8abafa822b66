"""A factor, and what inference asks of its prior.

A prior has hyperparameters, kept in one array whose form it chooses ("hypers"). A sampler draws them along with the
factors. Known offsets of a factor's axis come as ``scale``, by which prior rates are multiplied: 1.0, or an array that
broadcasts against the factor.
"""

import dataclasses
import math
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

MEDIAN, SPREAD = 0.1, 1.0  # of a learned shape's own prior, log-normal: 95% of it lie between .014 and .71
BOUNDS = np.log(1e-4), np.log(1e4)  # of the logarithm of a learned shape
LEARNED_SHAPE = f"log-normal of median {MEDIAN:g} and log standard deviation {SPREAD:g}"
"""Its prior in words."""
Scale = float | np.ndarray
Axes = tuple[str, ...]
"""Letters of axes of the model, and longer names of other dimensions."""
Reported = dict[str, tuple[tuple[int | str, ...], np.ndarray]]
"""Results by name: axes, as numbers of the factor's or names of others, and values (C, S, ...)."""


class Conditional(NamedTuple):
    """What a factor is drawn given: its density is that of the prior times value^count exp(-exposure value)."""

    scale: Scale
    value: np.ndarray  # the current factor
    counts: np.ndarray
    exposures: np.ndarray


class Factor(NamedTuple):
    """A factor: its axes at its first use, their sizes, its prior, its value if it is fixed, and what it is like.

    It may equal its transpose (``symmetric``), or be used twice (``shared``).
    """

    name: str
    axes: str
    shape: tuple[int, ...]
    component_shape: tuple[int, ...]  # broadcasts against shape: one number per component, or a single one
    prior: "Prior"
    fixed: np.ndarray | None = None
    symmetric: bool = False
    shared: bool = False

    def reported(self, hypers: np.ndarray) -> dict[str, tuple[Axes, np.ndarray]]:
        """What its prior reports of draws of hyperparameters: full names, axes and values (C, S, ...)."""
        found = self.prior.reported(self, hypers)
        return {
            f"{self.name}{name}" if name.startswith("_") else name: (
                tuple(a if isinstance(a, str) else self.axes[a] for a in axes),
                values,
            )
            for name, (axes, values) in found.items()
        }

    @property
    def weight(self) -> np.ndarray | np.float64:
        """1 for every entry that is a separate parameter; 0 below the diagonal of a symmetric factor."""
        return np.triu(np.ones(self.shape)) if self.symmetric else np.float64(1.0)

    def component_sums(self, values: np.ndarray | float) -> np.ndarray:
        """Weighted sums of entries over the axes along which ``component_shape`` does not vary."""
        axes = tuple(i for i, n in enumerate(self.component_shape) if n == 1)
        if np.ndim(values) == 0 and not self.symmetric:
            return np.full(self.component_shape, values * float(math.prod(self.shape[i] for i in axes)))
        full = np.asarray(self.weight * values if self.symmetric else values)
        if full.shape != self.shape:
            full = np.broadcast_to(full, self.shape)
        return np.add.reduce(full, axis=axes, keepdims=True)


class Prior:
    """The prior of a factor; every prior is a frozen dataclass of this class.

    Under an ``independent`` prior, the entries are independent gamma variables given the hyperparameters, by ``gamma``.
    The conditional of an entry is then Gamma(shape + count, rate + exposure), and compiled sweeps draw it themselves.
    Any other prior has ``draw``: it may couple rows, or depend on their covariates. Variational methods treat a prior
    that is ``variational``, which also has the five methods at the end; ``q`` (2, ...) is the gamma Q of its hypers.
    """

    kind: ClassVar[str]  # its name in files
    # Names of parameters that depend on a fit's data.
    from_data: ClassVar[tuple[str, ...]] = ()
    independent: ClassVar[bool] = False
    variational: ClassVar[bool] = False
    collapsed: ClassVar[bool] = False
    """Whether hyperparameters are drawn before the entries, with these summed out: an independent prior's."""
    holds_size: ClassVar[bool] = False
    """Whether hyperparameters are about the factor's own size. Draws keep the sizes of components in it then, and all
    other factors sum to one."""
    new_rows: ClassVar[bool] = False
    """Whether reported rates and a learned shape are enough to draw new rows: it has ``gamma_of_new_rows`` then."""
    of_cells: ClassVar[bool] = False
    """Whether the factor has an entry for every cell, by which the rate that the others give is multiplied."""
    needs: ClassVar[str | None] = None
    """The ability that a method has to have, as a class of ``Method`` states it."""
    of_rows: ClassVar[bool] = False
    """Whether it needs a factor with rows."""

    def start(self, factor: Factor) -> np.ndarray:
        """Initial hyperparameters."""
        raise NotImplementedError

    def begin(self, factor: Factor, value: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where a chain begins, given a start's factor: (the factor, hyperparameters).

        ``seen`` shows which entries of the factor's first axis have a cell that is not masked.
        """
        return value, self.start(factor)

    def gamma(self, hypers: np.ndarray, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries, which broadcast against the factor; TypeError unless ``independent``."""
        raise TypeError(f"a prior of kind {self.kind!r} must not be asked for independent gammas")

    def draw(
        self, factor: Factor, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """(the factor, hyperparameters), by a Markov step that leaves their joint conditional as it is."""
        shape, rate = self.gamma(hypers, given.scale)
        return rng.standard_gamma(shape + given.counts) / (rate + given.exposures), hypers

    def draw_hypers_given_counts(
        self, factor: Factor, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> np.ndarray:
        """Hyperparameters of a ``collapsed`` prior given counts and exposures; entries are drawn anew afterwards."""
        return hypers

    def draw_hypers(
        self, factor: Factor, hypers: np.ndarray, scale: Scale, value: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Hyperparameters given the factor; as they are if they were drawn before."""
        return hypers

    def estimate(self, factor: Factor, scale: Scale, value: np.ndarray) -> np.ndarray:
        """Hyperparameters that fit a point estimate of the factor."""
        return self.start(factor)

    def resized(self, factor: Factor, hypers: np.ndarray, times: float) -> tuple[np.ndarray, float] | None:
        """What hyperparameters become if the factor is multiplied by a number; None if its size is not learned.

        With them comes the logarithm by which the density of factor and hyperparameters changes, times the Jacobian of
        the map from both to both.
        """
        return None

    @property
    def n_anchored(self) -> int:
        """How many of the first components it treats unlike all others."""
        return 0

    @property
    def learns_shape(self) -> bool:
        """Whether it learns one shape of gammas, of all entries but those with seeds."""
        return False

    @property
    def has_one_law(self) -> bool:
        """Whether entries are gammas of one shape, whose rates do not vary within a component at the start."""
        return False

    def reported_rates(self, hypers: np.ndarray) -> np.ndarray | None:
        """(C, S, ...) prior rates, for the posterior, from draws of the hyperparameters; None if there are none."""
        return None

    def reported(self, factor: Factor, hypers: np.ndarray) -> Reported:
        """Other results (C, S, ...) from draws of the hyperparameters; a name that begins with _ follows the factor's.

        Draws from files are checked by ``check_reported``.
        """
        return {}

    @property
    def components(self) -> tuple[tuple[str, str, str], ...]:
        """Components that the prior itself has: (what it reports of them, their sizes, their dimension), all by name.

        What is reported has them along its last axis, each a distribution over the axis before. They are matched across
        draws and ordered by size in this order, once the factor's own components are.
        """
        return ()

    def summaries(self, factor: Factor, hypers: np.ndarray) -> list[np.ndarray]:
        """(C, S, ...) of what is reported, numbers by which chains are compared, whatever the order of components."""
        return []

    def check_reported(self, name: str, values: np.ndarray) -> None:
        """Refuse values from a file, reported by this name, that no chain draws; raises ValueError."""

    def gamma_of_new_rows(self, rates: np.ndarray, shape: float | None, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries of new rows (D, K), given a draw of reported rates (K,) or (1,), and shape."""
        raise NotImplementedError

    @property
    def stated(self) -> tuple[str, ...]:
        """Names of parameters that the parameters of a fit give: of all, if not ``from_data``."""
        names = (field.name for field in fields(self))  # type: ignore[arg-type]
        return tuple(name for name in names if name not in self.from_data)

    def check_file(self, rule: str, wanted: Self) -> None:
        """Refuse a prior from a file that is not ``wanted``: its ``stated`` parameters are equal, others positive.

        Raises:
            ValueError: begins with the rule, and shows both values.
        """
        for name in wanted.stated:
            found, asked = getattr(self, name), getattr(wanted, name)
            if not same(found, asked):
                raise ValueError(f"{rule}, with {name} {asked!s:.60}, got {found!s:.60}")
        for name in wanted.from_data:
            found = np.asarray(getattr(self, name))
            numbers = found.astype(float)
            check_values(f"{rule}, with a positive {name}", found, (numbers > 0.0) & (numbers < np.inf))

    def describe(self) -> str:
        """The prior in a sentence."""
        return f"Of kind {self.kind}."

    def facts(self) -> dict[str, Any]:
        """Plain values for a file, which ``priors.prior_of`` reads back."""
        return {"kind": self.kind, **vars(self)}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """The prior that ``facts`` described."""
        names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: facts[name] for name in names})

    def start_q(self, factor: Factor) -> np.ndarray:
        """Initial (shape, rate) of the hyperparameters' Q."""
        raise NotImplementedError

    def update_q(
        self, factor: Factor, q: np.ndarray, scale: Scale, mean: np.ndarray, copies: float = 1.0, weight: float = 1.0
    ) -> np.ndarray:
        """A step of this weight towards the optimum given the factor's means, with its rows seen ``copies`` times."""
        raise NotImplementedError

    def grow_q(self, q: np.ndarray, times: float) -> np.ndarray:
        """``q`` as if this many times the rows had given the same evidence per row."""
        raise NotImplementedError

    def bound(self, factor: Factor, shape: np.ndarray, rate: np.ndarray, q: np.ndarray, scale: Scale) -> float:
        """E log p - E log q of factor and hyperparameters, for a factor of independent gammas."""
        raise NotImplementedError

    def penalty(self, factor: Factor, shape: np.ndarray, rate: np.ndarray, q: np.ndarray, scale: Scale) -> float:
        """The prior's part of the objective of the arithmetic expectation."""
        raise NotImplementedError


def same(one: Any, other: Any) -> bool:
    """Whether two numbers or arrays are equal, or both are None."""
    if one is None or other is None:
        return one is other
    return np.array_equal(np.asarray(one, dtype=float), np.asarray(other, dtype=float))


def check_values(rule: str, values: np.ndarray, right: np.ndarray) -> None:
    """Refuse numbers from a file that break a rule, whose message has the first of them; raises ValueError."""
    if not right.all():
        raise ValueError(f"{rule}, got {values[~right].flat[0]}")


def check_shapes(name: str, values: np.ndarray) -> None:
    """Refuse learned shapes that no chain draws: new rows would take their draws from them; raises ValueError."""
    low, high = np.exp(BOUNDS)
    right = (0.99 * low <= values) & (values <= 1.01 * high)
    check_values(f"must have shapes between {low:g} and {high:g} at {name}", values, right)


def ranged(values: object) -> str:
    """A number to two digits, or the least and the greatest of several."""
    flat = np.ravel(np.asarray(values, dtype=float))
    low, high = f"{flat.min():.2g}", f"{flat.max():.2g}"
    return low if low == high else f"{low} to {high}"
