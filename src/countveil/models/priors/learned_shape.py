"""Gamma priors of factors whose shape is learned, along with their rates or given these."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from countveil.kernels.hyperparameters import LARGEST_SHARE, shape_given_counts, shape_given_entries
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
    Scale,
    check_shapes,
    ranged,
)

WIDTH = 0.2  # of the first slice: wider ones take more evaluations where data are large


class GivenEntries(NamedTuple):
    """What the law of the shape needs of a factor's entries x, multiplied by the known scale of their rates."""

    sizes: np.ndarray  # (K,) entries of each component
    totals: np.ndarray  # (K,) their sums
    added: np.ndarray  # (K,) what is known of the sum of a component's shapes beside a for each entry
    logs: float  # sum of log x over all entries
    rates: float  # sum of log b over all entries; 0 if rates are learned
    cut: float  # entries that were too small for a number


class GivenCounts(NamedTuple):
    """What the law of the shape needs of the counts of a factor's entries."""

    counts: np.ndarray  # (n,)
    shares: np.ndarray  # (n,) exposures over prior rates, times the shape if these are learned
    numbers: np.ndarray  # (m,) the different positive counts
    times: np.ndarray  # (m,) how often each of them is found


@dataclass(frozen=True)
class LearnedShapePrior(Prior):
    """Independent Gamma(a, rate) over the entries of a factor, with one shape a for all of them, which is learned.

    If ``rate`` is None, each component has a rate of its own, b_k | a ~ Exponential of mean a / ``mean``, so that the
    entries' size is ``mean`` by the prior whatever the shape (mathematics, section 18); a factor without an observed
    axis has a single one. Otherwise rates are known: a number, or an array that broadcasts against the factor. The
    hyperparameters are the shape, once for each rate, and the rates.
    """

    mean: float | None
    rate: float | np.ndarray | None

    kind: ClassVar[str] = "gamma-of-learned-shape"
    independent: ClassVar[bool] = True
    new_rows: ClassVar[bool] = True
    collapsed: ClassVar[bool] = True

    def start(self, factor: Factor) -> np.ndarray:
        """(2, ...) the median shape, and the rates: one per component if they are learned, else as given."""
        if self.mean is not None:
            rates = np.full(factor.component_shape, MEDIAN / self.mean)
        else:
            rates = np.asarray(self.rate, float)
        return np.stack([np.full_like(rates, MEDIAN), rates])

    def gamma(self, hypers: np.ndarray, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries."""
        return hypers[0], hypers[1] * scale

    def draw_hypers(
        self, factor: Factor, hypers: np.ndarray, scale: Scale, value: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Shape and rates given the factor: log a on slices of (18.2), with the rates summed out, then b_k | a."""
        entries = self.given_entries(factor, scale, value)
        return self.drawn(factor, hypers, entries, lambda log_a: self.log_density(log_a, entries), rng)

    def drawn(
        self,
        factor: Factor,
        hypers: np.ndarray,
        entries: GivenEntries,
        log_density: Callable[[np.ndarray], np.ndarray],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Shape and rates given the factor; the shape's density has the rates summed out."""
        now = np.log(hypers[0].flat[:1])
        shape = np.exp(draw_on_slices(log_density, now, BOUNDS, rng, WIDTH)[0])
        rates = hypers[1]
        if self.mean is not None:
            drawn = rng.standard_gamma(1.0 + shape * entries.sizes + entries.added)
            rates = np.reshape(drawn / (self.mean / shape + entries.totals), factor.component_shape)
        return np.stack([np.full_like(rates, shape), rates])

    def draw_hypers_given_counts(
        self, factor: Factor, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> np.ndarray:
        """Shape given the counts and exposures of all entries, which have to be drawn anew afterwards.

        Most entries are near zero, and given their values the shape hardly moves; with them summed out it is free.
        Learned rates move along, in proportion.
        """
        counts = self.given_counts(factor, hypers, given.scale, given.counts, given.exposures)
        return self.drawn_given_counts(hypers, lambda log_a: self.log_mass(log_a, counts), rng)

    def drawn_given_counts(
        self, hypers: np.ndarray, log_mass: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
    ) -> np.ndarray:
        """A shape by its density given counts, and the rates in the same proportion to it as before if learned."""
        now = np.log(hypers[0].flat[:1])
        shape = np.exp(draw_on_slices(log_mass, now, BOUNDS, rng, WIDTH)[0])
        rates = hypers[1] if self.mean is None else hypers[1] * (shape / hypers[0])
        return np.stack([np.full_like(rates, shape), rates])

    def given_counts(
        self, factor: Factor, hypers: np.ndarray, scale: Scale, count: np.ndarray, exposure: np.ndarray
    ) -> GivenCounts:
        """Counts and exposures, each parameter counted once; learned rates by their ratio to the shape."""
        rate = (hypers[1] if self.mean is None else hypers[1] / hypers[0]) * scale
        arrays = np.broadcast_arrays(count, np.maximum(exposure, 0.0), rate)
        used = np.broadcast_to(factor.weight, factor.shape) > 0.0
        n, e, b = (x.ravel() if used.all() else x[used] for x in arrays)
        numbers, times = np.unique(n[n > 0.0], return_counts=True)
        return GivenCounts(n, np.minimum(e / b, LARGEST_SHARE), numbers, times)

    def log_mass(self, log_a: np.ndarray, given: GivenCounts) -> np.ndarray:
        """(n,) log-densities of log a given counts and exposures, up to a constant (mathematics, equation 18.5)."""
        learned = self.mean is not None
        return log_prior(log_a) + shape_given_counts(log_a, *given, learned)

    def given_entries(self, factor: Factor, scale: Scale, value: np.ndarray) -> GivenEntries:
        """Sums over the entries, each parameter counted once."""
        scaled = scale * value
        logs, cut = factor.component_sums(np.log(scaled)), factor.component_sums(value <= SMALLEST)
        rates = 0.0
        if self.rate is not None:
            rates = float(factor.component_sums(np.broadcast_to(np.log(self.rate), factor.shape)).sum())
        sizes, totals = (np.ravel(factor.component_sums(x)) for x in (1.0, scaled))
        return GivenEntries(sizes, totals, np.zeros(sizes.size), float(logs.sum()), rates, float(cut.sum()))

    def log_density(self, log_a: np.ndarray, entries: GivenEntries) -> np.ndarray:
        """(n,) log-densities of log a given the entries, up to a constant (mathematics, equations 18.2 and 18.3).

        An entry that was cut at the smallest number stands for all below (mathematics, equation 18.4).
        """
        mean = np.nan if self.mean is None else self.mean
        return log_prior(log_a) + shape_given_entries(log_a, *entries, mean)

    def estimate(self, factor: Factor, scale: Scale, value: np.ndarray) -> np.ndarray:
        """The median shape, and rates at which the prior's means add up to the entries' scaled sum."""
        found = self.start(factor)
        if self.mean is not None:
            totals = np.maximum(factor.component_sums(scale * value), SMALLEST)
            found[1] = MEDIAN * factor.component_sums(1.0) / totals
        return found

    def resized(self, factor: Factor, hypers: np.ndarray, times: float) -> tuple[np.ndarray, float] | None:
        """Learned rates, divided by the number: b_k to the power of its shapes cancels the entries' Jacobian."""
        if self.mean is None:
            return None
        new = hypers.copy()
        new[1] /= times
        change = (hypers[1] - new[1]) * self.mean / hypers[0] - np.log(times)
        return new, float(change.sum())

    def reported_rates(self, hypers: np.ndarray) -> np.ndarray | None:
        """The rates; None where they vary from entry to entry."""
        return hypers[:, :, 1] if self.rate is None or np.size(self.rate) == 1 else None

    def reported(self, factor: Factor, hypers: np.ndarray) -> Reported:
        """The shape."""
        return {"_shape": ((), hypers[:, :, 0].reshape(*hypers.shape[:2], -1)[:, :, 0])}

    def summaries(self, factor: Factor, hypers: np.ndarray) -> list[np.ndarray]:
        """The shape."""
        return [self.reported(factor, hypers)["_shape"][1]]

    def check_reported(self, name: str, values: np.ndarray) -> None:
        """Shapes have bounds."""
        check_shapes(name, values)

    def gamma_of_new_rows(self, rates: np.ndarray, shape: float | None, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries of new rows in a draw with this shape."""
        return np.ravel(shape), rates * scale  # type: ignore[arg-type]

    @property
    def learns_shape(self) -> bool:
        """Yes."""
        return True

    @property
    def has_one_law(self) -> bool:
        """Whether rates are learned, or one number."""
        return bool(self.rate is None or np.size(self.rate) == 1)

    @property
    def size(self) -> float | None:
        """The mean of an entry around which rates are learned; None if they are known."""
        return self.mean

    def of_size(self, mean: float) -> Self:
        """The prior with learned rates around this mean of an entry; as it is if rates are known."""
        return self if self.mean is None else replace(self, mean=mean)

    @property
    def stated(self) -> tuple[str, ...]:
        """The rate; and that there is no mean, which otherwise depends on the data."""
        return ("rate", "mean") if self.mean is None else ("rate",)

    @property
    def from_data(self) -> tuple[str, ...]:  # type: ignore[override]
        """The mean, if rates are learned."""
        return () if self.mean is None else ("mean",)

    def describe(self) -> str:
        """The shape's prior, and rates."""
        if self.mean is not None:
            rates = f"rates that are learned so that entries are of size {ranged(self.mean)} by the prior"
        else:
            rates = f"rate {ranged(self.rate)}"
        return f"Independent gammas of one learned shape (prior: {LEARNED_SHAPE}) and {rates}."

    def facts(self) -> dict[str, Any]:
        """The mean, or the rates."""
        rate = None if self.rate is None else np.asarray(self.rate).tolist()
        return {"kind": self.kind, "mean": self.mean, "rate": rate}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """The prior that ``facts`` described."""
        rate = facts["rate"]
        return cls(facts["mean"], np.array(rate) if isinstance(rate, list) else rate)


def log_prior(log_a: np.ndarray) -> np.ndarray:
    """(n,) log-densities of log a by the shape's own prior, up to a constant."""
    return np.asarray(-0.5 * ((log_a - np.log(MEDIAN)) / SPREAD) ** 2)
