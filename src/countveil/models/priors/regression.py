"""Gamma priors of factors whose sizes depend on covariates of the rows, with shapes that may be learned."""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import gammaln

from countveil.kernels.gamma import SMALLEST
from countveil.likelihoods.slices import draw_on_slices
from countveil.models.priors.learned_shape import BOUNDS, MEDIAN, SPREAD, WIDTH
from countveil.models.priors.protocol import Grid, Scale

KEPT = (
    0.0,
    0.8,
)  # how much of the coefficients each proposal keeps: one bold, one that is taken where that is not
LARGEST = 40.0  # of coefficients, and of how far logarithms of means are from the usual one, either way
STEEPEST = 1e6  # of an entry's curvature, beside its shape: matrices stay well conditioned where no chain is


class Told(NamedTuple):
    """What the counts of a factor's entries say about its coefficients and shapes."""

    rows: np.ndarray  # (D, 1 + P) a column of ones, and the design
    squares: np.ndarray  # (D, (1 + P)^2) products of any two columns
    counts: np.ndarray  # (D, K)
    exposures: np.ndarray  # (D, K) divided by the known scale of the entries' rates

    def at(self, slopes: np.ndarray, log_a: np.ndarray) -> "Slope":
        """What the counts say at logarithms of means (D, K)."""
        weight, ratio = np.exp(log_a) + self.counts, self.exposures * np.exp(slopes - log_a)
        share = ratio / (1.0 + ratio)
        mass = np.einsum("dk,dk->k", self.counts, slopes) - np.einsum("dk,dk->k", weight, np.log1p(ratio))
        expected = weight * share
        return Slope(mass, self.counts - expected, expected * (1.0 - share))


class Seen(NamedTuple):
    """What a factor's entries themselves say about its coefficients and shapes."""

    rows: np.ndarray  # (D, 1 + P) a column of ones, and the design
    squares: np.ndarray  # (D, (1 + P)^2) products of any two columns
    values: np.ndarray  # (D, K) multiplied by the known scale of the entries' rates
    logs: np.ndarray  # (K,) sums of their logarithms
    cut: np.ndarray  # (K,) entries that were too small for a number

    def at(self, slopes: np.ndarray, log_a: np.ndarray) -> "Slope":
        """What the entries say at logarithms of means (D, K); the curvature has a bound."""
        a = np.exp(log_a)
        ratio = a * self.values * np.exp(-slopes)
        mass = -a * slopes.sum(axis=0) - ratio.sum(axis=0)
        return Slope(mass, ratio - a, np.minimum(ratio, STEEPEST * a))


class Slope(NamedTuple):
    """The log-density of data at logarithms of means, up to a constant, and its derivatives."""

    mass: np.ndarray  # (K,)
    first: np.ndarray  # (D, K) with respect to each row's logarithm
    second: np.ndarray  # (D, K) with the sign turned round


class Place(NamedTuple):
    """Log sizes and coefficients (1 + P, K), and what proposals ask of them."""

    found: np.ndarray
    log_mass: np.ndarray  # (K,)
    aim: np.ndarray  # (K, 1 + P) where a Newton step leads
    curvature: np.ndarray  # (K, 1 + P, 1 + P)


class RegressionPrior(NamedTuple):
    """Independent Gamma(a_k, rate b_k exp(-x_d beta_k)) over a factor (mathematics, section 16).

    Coefficients have the prior beta_pk ~ Normal(0, ``spread``^2). The rates b_k | a_k have an exponential prior of mean
    a_k / ``mean``, so that entries are of size ``mean`` by the prior where x_d = 0. Each component has a shape of its
    own, learned with the prior of section 18, or all have a known one. The hyperparameters are (2 + P, 1, K): shapes,
    rates and coefficients. They are drawn given the counts of all entries, with these summed out; the entries have to
    be drawn anew afterwards. The entries of a factor that is used twice cannot be summed out: there, the
    hyperparameters are drawn given the entries.
    """

    mean: float
    shape: float | None
    design: np.ndarray  # (D, P)
    spread: float = 1.0

    @property
    def kind(self) -> str:
        """Its name in files."""
        return "gamma-with-covariates"

    @property
    def independent(self) -> bool:
        """Every entry is a gamma variable of its own, given the hyperparameters."""
        return True

    def start(self, factor: Grid) -> np.ndarray:
        """(2 + P, 1, K) the known or median shape, rates of entries of size ``mean``, and coefficients of zero."""
        found = np.zeros((2 + self.design.shape[1], *factor.component_shape))
        found[0] = MEDIAN if self.shape is None else self.shape
        found[1] = found[0] / self.mean
        return found

    def gamma(self, hypers: np.ndarray, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries."""
        slopes = np.clip(self.design @ hypers[2:, 0], -LARGEST, LARGEST)
        return hypers[0], hypers[1] * np.exp(-slopes) * scale

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
        """Given the factor if it is used twice, by (16.4) and (16.5); else as they are: they are drawn given counts.

        First shapes on slices, with the rates summed out, then the rates, then sizes and coefficients together.
        """
        if not factor.shared:
            return hypers
        seen, slopes = self.seen(scale, value), np.clip(self.design @ hypers[2:, 0], -LARGEST, LARGEST)
        log_a, total = np.log(hypers[0, 0]), (np.exp(-slopes) * seen.values).sum(axis=0)
        if self.shape is None:
            own = self.mass_of_shapes_given_values(slopes, total, seen)
            log_a = draw_on_slices(own, log_a, BOUNDS, rng, WIDTH)
        a = np.exp(log_a)
        rate = rng.standard_gamma(1.0 + len(slopes) * a) / (self.mean / a + total)
        return self.moved(np.vstack([log_a - np.log(rate), hypers[2:, 0]]), log_a, seen, rng)

    def draw_hypers_given_counts(
        self,
        factor: Grid,
        hypers: np.ndarray,
        scale: Scale,
        count: np.ndarray,
        exposure: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Shapes and sizes on slices of (16.2), then sizes and coefficients together by Newton proposals."""
        told = self.told(scale, count, exposure)
        log_a, found = np.log(hypers[0, 0]), np.vstack([np.log(hypers[0] / hypers[1]), hypers[2:, 0]])
        slopes = self.slopes(found, told)
        if self.shape is None:
            log_a = draw_on_slices(mass_of_shapes(slopes, told), log_a, BOUNDS, rng, WIDTH)
        sizes = self.mass_of_sizes(slopes - found[0], log_a, told)
        middle = np.log(self.mean)
        found[0] = draw_on_slices(sizes, found[0], (middle - LARGEST, middle + LARGEST), rng, WIDTH)
        return self.moved(found, log_a, told, rng)

    def moved(
        self, found: np.ndarray, log_a: np.ndarray, told: Told | Seen, rng: np.random.Generator
    ) -> np.ndarray:
        """The hyperparameters after Newton proposals of log sizes and coefficients (1 + P, K) together."""
        place = self.place(found, log_a, told)
        for kept in KEPT:
            place = self.proposed(place, log_a, told, kept, rng)
        size, coefficients = place.found[0], place.found[1:, None]
        return np.stack([np.exp(log_a)[None], np.exp(log_a - size)[None], *coefficients])

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """(a column of ones and the design, products of any two of these columns)."""
        rows = np.column_stack([np.ones(len(self.design)), self.design])
        return rows, (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)

    def told(self, scale: Scale, count: np.ndarray, exposure: np.ndarray) -> Told:
        """Counts and exposures, beside the design."""
        return Told(*self.columns(), count, np.maximum(exposure, 0.0) / scale)

    def seen(self, scale: Scale, value: np.ndarray) -> Seen:
        """The entries, beside the design."""
        values = scale * value
        return Seen(*self.columns(), values, np.log(values).sum(axis=0), (value <= SMALLEST).sum(axis=0))

    def slopes(self, found: np.ndarray, told: Told | Seen) -> np.ndarray:
        """(D, K) logarithms of the entries' prior means before offsets."""
        return found[0] + np.clip(self.design @ found[1:], -LARGEST, LARGEST)

    def log_mass(self, found: np.ndarray, log_a: np.ndarray, told: Told | Seen) -> np.ndarray:
        """(K,) log-densities of log sizes and coefficients (1 + P, K), up to a constant: (16.2), or (16.5)."""
        return self.place(found, log_a, told).log_mass

    def mass_of_sizes(
        self, slopes: np.ndarray, log_a: np.ndarray, told: Told
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Log-densities of log sizes (K,) given all else, up to a constant; ``slopes`` are without them."""
        total, ratio, weight = (
            told.counts.sum(axis=0),
            told.exposures * np.exp(slopes - log_a),
            np.exp(log_a) + told.counts,
        )

        def log_mass(size: np.ndarray) -> np.ndarray:
            own = np.log1p(ratio * np.exp(size))
            return np.asarray(
                (total - 1.0) * size - self.mean * np.exp(-size) - np.einsum("dk,dk->k", weight, own)
            )

        return log_mass

    def mass_of_shapes_given_values(
        self, slopes: np.ndarray, total: np.ndarray, seen: Seen
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Log-densities of the logarithms of shapes (K,) given entries, with the rates summed out, by (16.4).

        ``slopes`` are without sizes, ``total`` (K,) are sums of entries divided by their exponentials. An entry that
        was cut at the smallest number stands for all below (18.4).
        """
        logs, n = seen.logs - slopes.sum(axis=0), len(slopes)

        def log_mass(log_a: np.ndarray) -> np.ndarray:
            a = np.exp(log_a)
            found = a * logs - n * gammaln(a) - (1.0 + seen.cut) * log_a
            found += gammaln(1.0 + n * a) - (1.0 + n * a) * np.log(total + self.mean / a)
            return np.asarray(found - 0.5 * ((log_a - np.log(MEDIAN)) / SPREAD) ** 2)

        return log_mass

    def place(self, found: np.ndarray, log_a: np.ndarray, told: Told | Seen) -> Place:
        """What proposals ask of log sizes and coefficients; Newton's curvature has the prior's mean one of the size."""
        small = self.mean * np.exp(-found[0])
        mass, first, second = told.at(self.slopes(found, told), log_a)
        mass += -found[0] - small - 0.5 * (found[1:] ** 2).sum(axis=0) / self.spread**2
        slope = told.rows.T @ first
        slope[0] += small - 1.0
        slope[1:] -= found[1:] / self.spread**2
        size = len(found)
        curvature = (second.T @ told.squares).reshape(-1, size, size)
        curvature += np.diag([1.0, *np.full(size - 1, self.spread**-2)])
        return Place(
            found, mass, found.T + np.linalg.solve(curvature, slope.T[:, :, None])[:, :, 0], curvature
        )

    def proposed(
        self, place: Place, log_a: np.ndarray, told: Told | Seen, kept: float, rng: np.random.Generator
    ) -> Place:
        """A Metropolis step: a normal around where a Newton step leads, of which a part ``kept`` is held back."""
        (root, aim), now = towards(place, kept), place.found.T
        noise = rng.standard_normal(now.shape)
        tried = aim + np.linalg.solve(root.transpose(0, 2, 1), noise[:, :, None])[:, :, 0]
        middle = np.append(np.log(self.mean), np.zeros(now.shape[1] - 1))
        new = np.clip(tried, middle - LARGEST, middle + LARGEST)
        other = self.place(np.ascontiguousarray(new.T), log_a, told)
        back_root, back = towards(other, kept)
        gone = np.einsum("kqp,kq->kp", back_root, now - back)
        gain = other.log_mass - place.log_mass + 0.5 * (noise**2 - gone**2).sum(axis=1)
        scales = (np.diagonal(each, axis1=1, axis2=2) for each in (back_root, root))
        gain += np.log(np.divide(*scales)).sum(axis=1)
        taken = (new == tried).all(axis=1) & (np.log(rng.random(gain.size)) < gain)
        return Place(
            np.where(taken, other.found, place.found),
            np.where(taken, other.log_mass, place.log_mass),
            np.where(taken[:, None], other.aim, place.aim),
            np.where(taken[:, None, None], other.curvature, place.curvature),
        )

    def estimate(self, factor: Grid, scale: Scale, value: np.ndarray) -> np.ndarray:
        """The start, with rates at which the prior's means add up to the entries' scaled sum."""
        found = self.start(factor)
        found[1] = (
            found[0] * factor.component_sums(1.0) / np.maximum(factor.component_sums(scale * value), 1e-150)
        )
        return found

    def reported_rates(self, hypers: np.ndarray) -> np.ndarray | None:
        """The rates where x_d = 0."""
        return hypers[:, :, 1]

    def reported_shapes(self, hypers: np.ndarray) -> np.ndarray | None:
        """None: every component has a shape of its own."""
        return None

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


def mass_of_shapes(slopes: np.ndarray, told: Told) -> Callable[[np.ndarray], np.ndarray]:
    """Log-densities of the logarithms of shapes (K,) given logarithms of means (D, K), up to a constant."""
    most = told.counts.shape[1]
    ratio, total = told.exposures * np.exp(slopes), told.counts.sum(axis=0)
    rows, columns = np.nonzero(told.counts)
    kinds, times = np.unique(told.counts[rows, columns] * most + columns, return_counts=True)
    numbers, owners = kinds // most, (kinds % most).astype(np.int64)

    def log_mass(log_a: np.ndarray) -> np.ndarray:
        a = np.exp(log_a)
        parts = times * (gammaln(a[owners] + numbers) - gammaln(a)[owners])
        found = np.bincount(owners, parts, minlength=most) - total * log_a
        found -= np.einsum("dk,dk->k", a + told.counts, np.log1p(ratio / a))
        return np.asarray(found - 0.5 * ((log_a - np.log(MEDIAN)) / SPREAD) ** 2)

    return log_mass


def towards(place: Place, kept: float) -> tuple[np.ndarray, np.ndarray]:
    """(root L (K, 1 + P, 1 + P) of the precision L L^T, mean (K, 1 + P)) of the proposal from a place."""
    root = np.linalg.cholesky(place.curvature / (1.0 - kept**2))
    return root, kept * place.found.T + (1.0 - kept) * place.aim
