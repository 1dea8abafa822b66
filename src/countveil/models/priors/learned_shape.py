"""Gamma priors of factors whose shape is learned, along with their rates or given these."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from countveil.kernels.gamma import SMALLEST
from countveil.kernels.hyperparameters import shape_given_counts, shape_given_entries
from countveil.laws.counts.slices import draw_on_slices
from countveil.models.priors.gamma import GammaPrior
from countveil.models.priors.protocol import Grid, Scale

MEDIAN, SPREAD = 0.1, 1.0  # of the shape's own prior, log-normal: 95% of it lie between .014 and .71
BOUNDS = np.log(1e-4), np.log(1e4)  # of the logarithm of the shape
WIDTH = 0.2  # of the first slice: wider ones take more evaluations where data are large


class Evidence(NamedTuple):
    """What a factor's entries x say about their shape, x multiplied by the known scale of their rates."""

    sizes: np.ndarray  # (K,) entries of each component
    totals: np.ndarray  # (K,) their sums
    added: np.ndarray  # (K,) what is known of the sum of a component's shapes beside a for each entry
    logs: float  # sum of log x over all entries
    rates: float  # sum of log b over all entries; 0 if rates are learned
    cut: float  # entries that were too small for a number


class Told(NamedTuple):
    """What the counts of a factor's entries say about their shape."""

    counts: np.ndarray  # (n,)
    exposures: np.ndarray  # (n,)
    rates: np.ndarray  # (n,) prior rates, divided by the shape if they are learned
    numbers: np.ndarray  # (m,) the different positive counts
    times: np.ndarray  # (m,) how often each of them is found


class LearnedShapePrior(NamedTuple):
    """Independent Gamma(a, rate) over the entries of a factor, with one shape a for all of them, which is learned.

    If ``rate`` is None, each component has a rate of its own, b_k | a ~ Exponential of mean a / ``mean``, so that the
    entries' size is ``mean`` by the prior whatever the shape (mathematics, section 18); a factor without an observed
    axis has a single one. Otherwise rates are known: a number, or an array that broadcasts against the factor. The
    hyperparameters are the shape, once for each rate, and the rates.
    """

    mean: float | None
    rate: float | np.ndarray | None

    @property
    def kind(self) -> str:
        """Its name in files."""
        return "gamma-of-learned-shape"

    @property
    def independent(self) -> bool:
        """Every entry is a gamma variable of its own, given the hyperparameters."""
        return True

    def start(self, factor: Grid) -> np.ndarray:
        """(2, ...) the median shape, and the rates: one per component if they are learned, else as given."""
        if self.mean is not None:
            rates = np.full(factor.component_shape, MEDIAN / self.mean)
        else:
            rates = np.asarray(self.rate, float)
        return np.stack([np.full_like(rates, MEDIAN), rates])

    def gamma(self, hypers: np.ndarray, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries."""
        return hypers[0], hypers[1] * scale

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
        """Gamma(shape + count, rate + exposure), entry by entry."""
        shape, rate = self.gamma(hypers, scale)
        return np.asarray(rng.standard_gamma(shape + count) / (rate + exposure))

    def draw_hypers(
        self, factor: Grid, hypers: np.ndarray, scale: Scale, value: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Shape and rates given the factor: log a on slices of (18.2), with the rates summed out, then b_k | a."""
        evidence = self.evidence(factor, scale, value)
        return self.drawn(factor, hypers, evidence, lambda log_a: self.log_density(log_a, evidence), rng)

    def drawn(
        self,
        factor: Grid,
        hypers: np.ndarray,
        evidence: Evidence,
        log_density: Callable[[np.ndarray], np.ndarray],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Shape and rates given what the factor says; the shape's density has the rates summed out."""
        now = np.log(hypers[0].flat[:1])
        shape = np.exp(draw_on_slices(log_density, now, BOUNDS, rng, WIDTH)[0])
        rates = hypers[1]
        if self.mean is not None:
            drawn = rng.standard_gamma(1.0 + shape * evidence.sizes + evidence.added)
            rates = np.reshape(drawn / (self.mean / shape + evidence.totals), factor.component_shape)
        return np.stack([np.full_like(rates, shape), rates])

    def draw_hypers_given_counts(
        self,
        factor: Grid,
        hypers: np.ndarray,
        scale: Scale,
        count: np.ndarray,
        exposure: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Shape given the counts and exposures of all entries, which have to be drawn anew afterwards.

        Most entries are near zero, and given their values the shape hardly moves; with them summed out it is free.
        Learned rates move along, in proportion.
        """
        told = self.told(factor, hypers, scale, count, exposure)
        return self.drawn_given_counts(hypers, lambda log_a: self.log_mass(log_a, told), rng)

    def drawn_given_counts(
        self, hypers: np.ndarray, log_mass: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
    ) -> np.ndarray:
        """A shape by its density given counts, and the rates in the same proportion to it as before if learned."""
        now = np.log(hypers[0].flat[:1])
        shape = np.exp(draw_on_slices(log_mass, now, BOUNDS, rng, WIDTH)[0])
        rates = hypers[1] if self.mean is None else hypers[1] * (shape / hypers[0])
        return np.stack([np.full_like(rates, shape), rates])

    def told(
        self, factor: Grid, hypers: np.ndarray, scale: Scale, count: np.ndarray, exposure: np.ndarray
    ) -> "Told":
        """What counts and exposures say, each parameter counted once; learned rates by their ratio to the shape."""
        rate = (hypers[1] if self.mean is None else hypers[1] / hypers[0]) * scale
        arrays = np.broadcast_arrays(count, np.maximum(exposure, 0.0), rate)
        used = np.broadcast_to(factor.weight, factor.shape) > 0.0
        n, e, b = (x.ravel() if used.all() else x[used] for x in arrays)
        numbers, times = np.unique(n[n > 0.0], return_counts=True)
        return Told(n, e, b, numbers, times)

    def log_mass(self, log_a: np.ndarray, told: "Told") -> np.ndarray:
        """(n,) log-densities of log a given counts and exposures, up to a constant (mathematics, equation 18.5)."""
        learned = self.mean is not None
        return prior_of(log_a) + shape_given_counts(log_a, *told, learned)

    def evidence(self, factor: Grid, scale: Scale, value: np.ndarray) -> Evidence:
        """What the entries say, each parameter counted once."""
        scaled = scale * value
        logs, cut = factor.component_sums(np.log(scaled)), factor.component_sums(value <= SMALLEST)
        rates = 0.0
        if self.rate is not None:
            rates = float(factor.component_sums(np.broadcast_to(np.log(self.rate), factor.shape)).sum())
        sizes, totals = (np.ravel(factor.component_sums(x)) for x in (1.0, scaled))
        return Evidence(sizes, totals, np.zeros(sizes.size), float(logs.sum()), rates, float(cut.sum()))

    def log_density(self, log_a: np.ndarray, evidence: Evidence) -> np.ndarray:
        """(n,) log-densities of log a given the entries, up to a constant (mathematics, equations 18.2 and 18.3).

        An entry that was cut at the smallest number stands for all below (mathematics, equation 18.4).
        """
        mean = np.nan if self.mean is None else self.mean
        return prior_of(log_a) + shape_given_entries(log_a, *evidence, mean)

    def estimate(self, factor: Grid, scale: Scale, value: np.ndarray) -> np.ndarray:
        """The median shape, and rates at which the prior's means add up to the entries' scaled sum."""
        found = self.start(factor)
        if self.mean is not None:
            totals = np.maximum(factor.component_sums(scale * value), SMALLEST)
            found[1] = MEDIAN * factor.component_sums(1.0) / totals
        return found

    def resized(self, factor: Grid, hypers: np.ndarray, times: float) -> tuple[np.ndarray, float] | None:
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

    def reported_shapes(self, hypers: np.ndarray) -> np.ndarray | None:
        """(C, S) the shapes."""
        return hypers[:, :, 0].reshape(*hypers.shape[:2], -1)[:, :, 0]

    def at(self, shape: float) -> GammaPrior:
        """The prior of new rows in a draw with this shape."""
        return GammaPrior(float(shape), 1.0 if self.rate is None else self.rate, learned=self.rate is None)

    def facts(self) -> dict[str, Any]:
        """The mean, or the rates."""
        rate = None if self.rate is None else np.asarray(self.rate).tolist()
        return {"kind": self.kind, "mean": self.mean, "rate": rate}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """The prior that ``facts`` described."""
        rate = facts["rate"]
        return cls(facts["mean"], np.array(rate) if isinstance(rate, list) else rate)


def prior_of(log_a: np.ndarray) -> np.ndarray:
    """(n,) log-densities of log a by the shape's own prior, up to a constant."""
    return np.asarray(-0.5 * ((log_a - np.log(MEDIAN)) / SPREAD) ** 2)
