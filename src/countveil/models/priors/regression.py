"""Gamma priors of factors whose means and shapes depend on covariates of the rows."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import digamma, gammaln, zeta

from countveil.kernels.hyperparameters import look_at_shapes
from countveil.kernels.random import SMALLEST
from countveil.laws.counts.slices import draw_on_slices
from countveil.models.priors.learned_shape import WIDTH
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
    check_values,
    ranged,
)

KEPT = (0.0, 0.8)  # how much of the coefficients each proposal keeps: one bold, one that is taken where that is not
SLICED = 0.25  # of the sweeps draw shapes on slices, which alone leave a start far away, but cost as much as the rest
NARROW = 0.5  # of these slices: they step out where few rows tell of a shape, and are cut where many do
OF_SHAPES = 0.5  # the spread of coefficients of shapes, relative to that of coefficients of means
LARGEST = 40.0  # of coefficients, and of how far logarithms of means are from the usual one, either way
NODES = 48  # of the integral of expected shares; 24 differ by less than 1e-3 in any share
BEYOND = 3.0  # how far nodes reach past the least and the largest rate, in logarithms
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


class GivenCounts(NamedTuple):
    """Counts and exposures, with the entries summed out (mathematics, (16.2))."""

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


class GivenEntries(NamedTuple):
    """The entries themselves; those that were cut at the smallest number stand for all below (18.4)."""

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


class Place(NamedTuple):
    """Coefficients (Q, K) of one regression, an intercept among them, and what proposals ask of them."""

    found: np.ndarray
    log_mass: np.ndarray  # (K,)
    aim: np.ndarray  # (K, Q) where a Newton step leads
    curvature: np.ndarray  # (K, Q, Q)


class Entries(NamedTuple):
    """Logarithms of the shapes and means of a factor's entries by the prior, before offsets."""

    log_shape: np.ndarray  # (..., D, K)
    log_mean: np.ndarray  # (..., D, K)


def entries(hypers: np.ndarray, rows: np.ndarray) -> Entries:
    """What hyperparameters (..., 2 + 2 P, K) say of rows (D, P) of the design."""
    log_a, log_b = np.log(hypers[..., :1, :]), np.log(hypers[..., 1:2, :])
    slopes, tilts = np.split(hypers[..., 2:, :], 2, axis=-2)
    slopes = np.clip(rows @ slopes, -LARGEST, LARGEST)
    return Entries(tilted(log_a, rows @ tilts), log_a - log_b + slopes)


def tilted(log_a: np.ndarray, tilt: np.ndarray) -> np.ndarray:
    """(..., D, K) logarithms of shapes, of which log_a is known where covariates have their mean."""
    return np.clip(log_a + tilt, *BOUNDS)


@dataclass(frozen=True)
class RegressionPrior(Prior):
    """Independent Gamma(a_k exp(x_d g_k), mean m_k exp(x_d beta_k)) over a factor (mathematics, section 16).

    Coefficients of means have the prior beta_pk ~ Normal(0, ``spread``^2), those of shapes half of that spread. The
    rates b_k = a_k / m_k | a_k have an exponential prior of mean a_k / ``mean``, so that entries are of size ``mean``
    by the prior where x_d = 0. Each component has a shape a_k of its own, learned with the prior of section 18, or all
    have a known one. The hyperparameters are (2 + 2 P, 1, K): shapes, rates, coefficients of means and of shapes. They
    are drawn given the counts of all entries, with these summed out; the entries have to be drawn anew afterwards. The
    entries of a factor that is used twice cannot be summed out: there, the hyperparameters are drawn given the entries.
    """

    mean: float
    shape: float | None
    design: np.ndarray  # (D, P)
    spread: float = 1.0

    kind: ClassVar[str] = "gamma-with-covariates"
    from_data: ClassVar[tuple[str, ...]] = ("mean",)
    independent: ClassVar[bool] = True
    collapsed: ClassVar[bool] = True
    needs: ClassVar[str | None] = "covariates"
    of_rows: ClassVar[bool] = True

    def start(self, factor: Factor) -> np.ndarray:
        """(2 + 2 P, 1, K) the known or median shape, rates of entries of size ``mean``, coefficients of zero."""
        found = np.zeros((2 + 2 * self.design.shape[1], *factor.component_shape))
        found[0] = MEDIAN if self.shape is None else self.shape
        found[1] = found[0] / self.mean
        return found

    def gamma(self, hypers: np.ndarray, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries."""
        log_shape, log_mean = entries(hypers[:, 0], self.design)
        return np.exp(log_shape), np.exp(log_shape - log_mean) * scale

    def draw_hypers(
        self, factor: Factor, hypers: np.ndarray, scale: Scale, value: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Given the factor if it is used twice; else as they are: they are drawn given counts."""
        return self.drawn(hypers, self.given_entries(scale, value), rng) if factor.shared else hypers

    def draw_hypers_given_counts(
        self, factor: Factor, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> np.ndarray:
        """Given counts, with the entries summed out (16.2)."""
        counts = self.given_counts(given.scale, given.counts, given.exposures)
        return self.drawn(hypers, counts, rng)

    def drawn(self, hypers: np.ndarray, known: GivenCounts | GivenEntries, rng: np.random.Generator) -> np.ndarray:
        """Shapes, now and then, and sizes on slices; then both with their coefficients by Newton proposals."""
        means, shapes = 2, 2 + self.design.shape[1]
        found = np.vstack([np.log(hypers[0] / hypers[1]), hypers[means:shapes, 0]])
        own = np.vstack([np.log(hypers[0]), hypers[shapes:, 0]])
        own = self.drawn_shapes(own, self.slopes(found), known, rng)
        log_shape = tilted(own[0], self.design @ own[1:])
        sizes = self.mass_of_sizes(self.slopes(found) - found[0], log_shape, known)
        bounds = np.log(self.mean) - LARGEST, np.log(self.mean) + LARGEST
        found[0] = draw_on_slices(sizes, found[0], bounds, rng, WIDTH)
        limits = limits_of(len(found), bounds)
        found = proposed(lambda new: self.place(new, log_shape, known), found, limits, rng)
        return np.concatenate([np.exp([own[0], own[0] - found[0]]), found[1:], own[1:]])[:, None]

    def drawn_shapes(
        self, own: np.ndarray, log_mean: np.ndarray, known: GivenCounts | GivenEntries, rng: np.random.Generator
    ) -> np.ndarray:
        """New logarithms of shapes and their coefficients (1 + P, K), given logarithms of means (D, K)."""
        at = known.of_shapes(log_mean)
        if self.shape is None:
            if rng.random() < SLICED:
                mass = self.mass_of_shapes(self.design @ own[1:], at)
                own = np.vstack([draw_on_slices(mass, own[0], BOUNDS, rng, NARROW), own[1:]])
            limits = limits_of(len(own), BOUNDS)
            return proposed(lambda new: self.place_of_shapes(new, at, known), own, limits, rng)

        def with_known(new: np.ndarray) -> Place:
            """The same of coefficients alone."""
            found, mass, aim, curvature = self.place_of_shapes(np.vstack([own[:1], new]), at, known)
            slope = np.einsum("kpq,kq->kp", curvature, aim - found.T)[:, 1:]
            return stepped(new, mass, slope.T, curvature[:, 1:, 1:])

        return np.vstack([own[:1], proposed(with_known, own[1:], limits_of(len(own) - 1), rng)])

    def given_counts(self, scale: Scale, count: np.ndarray, exposure: np.ndarray) -> GivenCounts:
        """Counts and exposures, with the design."""
        return GivenCounts(Columns.of(self.design), count, np.maximum(exposure, 0.0) / scale)

    def given_entries(self, scale: Scale, value: np.ndarray) -> GivenEntries:
        """The entries, with the design."""
        return GivenEntries.of(Columns.of(self.design), scale * value, value)

    def slopes(self, found: np.ndarray) -> np.ndarray:
        """(D, K) logarithms of the entries' prior means before offsets."""
        return found[0] + np.clip(self.design @ found[1:], -LARGEST, LARGEST)

    def mass_of_sizes(
        self, slopes: np.ndarray, log_shape: np.ndarray, known: GivenCounts | GivenEntries
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Log-densities of log sizes (K,) given all else, up to a constant; ``slopes`` are without them."""
        of_data = known.of_sizes(slopes, log_shape)
        return lambda size: of_data(size) - size - self.mean * np.exp(-size)

    def mass_of_shapes(self, tilt: np.ndarray, at: Callable[[np.ndarray], Slope]) -> Callable[[np.ndarray], np.ndarray]:
        """Log-densities of log shapes (K,) given their coefficients, of which ``tilt`` (D, K) comes."""
        return lambda log_a: at(tilted(log_a, tilt)).mass - 0.5 * ((log_a - np.log(MEDIAN)) / SPREAD) ** 2

    def place(self, found: np.ndarray, log_shape: np.ndarray, known: GivenCounts | GivenEntries) -> Place:
        """What proposals ask of log sizes and coefficients; Newton's curvature has the prior's mean one of the size."""
        mass, first, second = known.of_means(self.slopes(found), log_shape)
        small, size = self.mean * np.exp(-found[0]), len(found)
        mass += -found[0] - small - 0.5 * (found[1:] ** 2).sum(axis=0) / self.spread**2
        slope = known.columns.rows.T @ first
        slope[0] += small - 1.0
        slope[1:] -= found[1:] / self.spread**2
        curvature = (second.T @ known.columns.squares).reshape(-1, size, size)
        curvature += np.diag([1.0, *np.full(size - 1, self.spread**-2)])
        return stepped(found, mass, slope, curvature)

    def place_of_shapes(
        self, own: np.ndarray, at: Callable[[np.ndarray], Slope], known: GivenCounts | GivenEntries
    ) -> Place:
        """What proposals ask of log shapes and their coefficients (1 + P, K)."""
        tilt, size = self.design @ own[1:], len(own)
        log_shape = tilted(own[0], tilt)
        mass, first, second = at(log_shape)
        free = log_shape == own[0] + tilt
        precision = np.array([SPREAD**-2, *np.full(size - 1, (OF_SHAPES * self.spread) ** -2)])[:, None]
        gone = own - np.array([np.log(MEDIAN), *np.zeros(size - 1)])[:, None]
        mass -= 0.5 * (precision * gone**2).sum(axis=0)
        slope = known.columns.rows.T @ np.where(free, first, 0.0) - precision * gone
        curvature = (np.where(free, second, 0.0).T @ known.columns.squares).reshape(-1, size, size)
        return stepped(own, mass, slope, curvature + np.diag(precision[:, 0]))

    def estimate(self, factor: Factor, scale: Scale, value: np.ndarray) -> np.ndarray:
        """The start, with rates at which the prior's means add up to the entries' scaled sum."""
        found = self.start(factor)
        found[1] = found[0] * factor.component_sums(1.0) / np.maximum(factor.component_sums(scale * value), 1e-150)
        return found

    def resized(self, factor: Factor, hypers: np.ndarray, times: float) -> tuple[np.ndarray, float] | None:
        """Learned rates, divided by the number: b_k to the power of its shapes cancels the entries' Jacobian."""
        new = hypers.copy()
        new[1] /= times
        change = (hypers[1] - new[1]) * self.mean / hypers[0] - np.log(times)
        return new, float(change.sum())

    def reported_rates(self, hypers: np.ndarray) -> np.ndarray | None:
        """The rates where x_d = 0."""
        return hypers[:, :, 1]

    def reported(self, factor: Factor, hypers: np.ndarray) -> Reported:
        """Each component's shape, and coefficients of means and of shapes, of columns that are centred and scaled."""
        values = np.squeeze(hypers, axis=3)
        means, shapes = np.split(values[:, :, 2:], 2, axis=2)
        return {
            "_shape": ((1,), values[:, :, 0]),
            "_effect": (("term", 1), means),
            "_shape_effect": (("term", 1), shapes),
        }

    def summaries(self, factor: Factor, hypers: np.ndarray) -> list[np.ndarray]:
        """Mean shapes."""
        return [np.squeeze(hypers, axis=3)[:, :, 0].mean(axis=2)]

    def check_reported(self, name: str, values: np.ndarray) -> None:
        """Shapes and coefficients have bounds."""
        if not name.endswith("_effect"):
            check_shapes(name, values)
        else:
            right = np.abs(values) <= LARGEST
            check_values(f"must hold coefficients of at most {LARGEST} at {name}", values, right)

    @property
    def has_one_law(self) -> bool:
        """At the start, where coefficients are zero."""
        return True

    @property
    def stated(self) -> tuple[str, ...]:
        """The design comes with the data."""
        return ("shape", "spread")

    def describe(self) -> str:
        """Shapes, and the priors of coefficients."""
        shape = f"a learned shape for each component (prior: {LEARNED_SHAPE})"
        if self.shape is not None:
            shape = f"shape {ranged(self.shape)}"
        return (
            f"Gammas of {shape}; means and shapes depend on covariates. Coefficients of standardised columns are "
            f"Normal(0, {ranged(self.spread)}^2), those of shapes Normal(0, {ranged(OF_SHAPES * self.spread)}^2)."
        )

    def facts(self) -> dict[str, Any]:
        """Everything except the design: of this, how many columns it has, and a digest."""
        digest = hashlib.sha256(np.ascontiguousarray(self.design, dtype=float).data).hexdigest()
        return {
            "kind": self.kind,
            "mean": self.mean,
            "shape": self.shape,
            "spread": self.spread,
            "terms": self.design.shape[1],
            "design": digest,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """The prior that ``facts`` described, with a row of zeros in place of its design, which its reader sets."""
        return cls(facts["mean"], facts["shape"], np.zeros((1, facts["terms"])), facts["spread"])


def stepped(found: np.ndarray, mass: np.ndarray, slope: np.ndarray, curvature: np.ndarray) -> Place:
    """A place with Newton's step from it; ``slope`` is (Q, K)."""
    aim = found.T + np.linalg.solve(curvature, slope.T[:, :, None])[:, :, 0]
    return Place(found, mass, aim, curvature)


def limits_of(size: int, first: tuple[float, float] = (-LARGEST, LARGEST)) -> np.ndarray:
    """(2, size) between what coefficients stay, the first of them between bounds of its own."""
    return np.array([first, *[(-LARGEST, LARGEST)] * (size - 1)]).T


def proposed(
    place_of: Callable[[np.ndarray], Place], found: np.ndarray, limits: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Coefficients (Q, K) after Metropolis steps: normals around where Newton steps lead, of which parts are held back.

    Every coefficient stays between its ``limits`` (2, Q).
    """
    place = place_of(found)
    for kept in KEPT:
        (root, aim), now = towards(place, kept), place.found.T
        noise = rng.standard_normal(now.shape)
        tried = aim + np.linalg.solve(root.transpose(0, 2, 1), noise[:, :, None])[:, :, 0]
        new = np.clip(tried, *limits)
        other = place_of(np.ascontiguousarray(new.T))
        back_root, back = towards(other, kept)
        gone = np.einsum("kqp,kq->kp", back_root, now - back)
        gain = other.log_mass - place.log_mass + 0.5 * (noise**2 - gone**2).sum(axis=1)
        scales = (np.diagonal(each, axis1=1, axis2=2) for each in (back_root, root))
        gain += np.log(np.divide(*scales)).sum(axis=1)
        taken = (new == tried).all(axis=1) & (np.log(rng.random(gain.size)) < gain)
        place = Place(
            np.where(taken, other.found, place.found),
            np.where(taken, other.log_mass, place.log_mass),
            np.where(taken[:, None], other.aim, place.aim),
            np.where(taken[:, None, None], other.curvature, place.curvature),
        )
    return place.found


def towards(place: Place, kept: float) -> tuple[np.ndarray, np.ndarray]:
    """(root L (K, Q, Q) of the precision L L^T, mean (K, Q)) of the proposal from a place."""
    root = np.linalg.cholesky(place.curvature / (1.0 - kept**2))
    return root, kept * place.found.T + (1.0 - kept) * place.aim


def expected_shares(shape: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """E[theta_k / sum_j theta_j] for theta_k ~ Gamma(shape, rate), along the last axis (mathematics, equation 16.3).

    Arrays (..., K) that broadcast against each other; the result has the shape of the rates.
    """
    log_rate = np.log(rate)
    low, high = log_rate.min(axis=-1) - BEYOND, log_rate.max(axis=-1) + BEYOND
    found, left = np.zeros(np.broadcast_shapes(shape.shape, rate.shape)), 1.0
    for i in range(NODES + 1):
        end = np.exp(low + (high - low) * i / NODES)[..., None]
        middle = np.exp(low + (high - low) * (i - 0.5) / NODES)[..., None] if i else 0.5 * end
        beyond = np.exp(-(shape * np.log1p(end / rate)).sum(axis=-1, keepdims=True))
        weight = shape / (rate + middle)
        found += (left - beyond) * weight / weight.sum(axis=-1, keepdims=True)
        left = beyond
    found += left * (shape / shape.sum(axis=-1, keepdims=True))
    return np.asarray(found)
