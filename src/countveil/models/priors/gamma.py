"""Gamma priors of factors, with rates fixed or learned."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import digamma, gammaln

from countveil.models.priors.prior import Factor, Prior, Scale, ranged


@dataclass(frozen=True)
class GammaPrior(Prior):
    """Independent Gamma(shape, rate) over the entries of a factor.

    Shape and rate are numbers, or arrays that broadcast against the factor. If ``learned``, each component has a rate
    of its own, with an exponential prior of mean ``rate``, so that the size of the factor is found from the data
    (mathematics, section 11); a factor without an observed axis has a single one. The hyperparameters are the rates.
    """

    shape: float | np.ndarray
    rate: float | np.ndarray
    learned: bool

    kind: ClassVar[str] = "gamma"
    from_data: ClassVar[tuple[str, ...]] = ("rate",)
    independent: ClassVar[bool] = True
    new_rows: ClassVar[bool] = True
    variational: ClassVar[bool] = True

    def start(self, factor: Factor) -> np.ndarray:
        """Initial rates: one per component if they are learned, else as given."""
        if self.learned:
            return np.broadcast_to(self.rate, factor.component_shape).astype(float)
        return np.asarray(self.rate, float)

    def gamma(self, hypers: np.ndarray, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries."""
        return self.shape, hypers * scale

    def draw_hypers(
        self, factor: Factor, hypers: np.ndarray, scale: Scale, value: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Rates given the factor, b_k ~ Gamma(1 + sum of shapes, 1 / ``rate`` + sum of entries); unchanged if fixed."""
        if not self.learned:
            return hypers
        scaled = value if isinstance(scale, float) else scale * value
        size, total = factor.component_sums(self.shape), factor.component_sums(scaled)
        return rng.standard_gamma(1.0 + size) / (1.0 / self.rate + total)

    def estimate(self, factor: Factor, scale: Scale, value: np.ndarray) -> np.ndarray:
        """Rates at which the prior's means add up to the entries' scaled sum; as given if they are fixed."""
        if not self.learned:
            return np.asarray(self.rate, float)
        return factor.component_sums(self.shape) / np.maximum(factor.component_sums(scale * value), 1e-150)

    def resized(self, factor: Factor, hypers: np.ndarray, times: float) -> tuple[np.ndarray, float] | None:
        """Learned rates, divided by the number: b_k to the power of its shapes cancels the entries' Jacobian."""
        if not self.learned:
            return None
        rates = hypers / times
        return rates, float(((hypers - rates) / self.rate - np.log(times)).sum())

    def reported_rates(self, hypers: np.ndarray) -> np.ndarray | None:
        """The rates; None where they vary from entry to entry."""
        return hypers if np.size(self.rate) == 1 else None

    def gamma_of_new_rows(self, rates: np.ndarray, shape: float | None, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries of new rows.

        Raises:
            ValueError: the shape varies from entry to entry.
        """
        if np.size(self.shape) != 1:
            raise ValueError(f"shape must be one number for new rows, got {np.size(self.shape)} of them")
        return np.ravel(self.shape), rates * scale

    def start_q(self, factor: Factor) -> np.ndarray:
        """A gamma distribution whose means are the initial rates."""
        rates = self.start(factor)
        return np.stack([rates, np.ones_like(rates)])

    def update_q(
        self, factor: Factor, q: np.ndarray, scale: Scale, mean: np.ndarray, copies: float = 1.0, weight: float = 1.0
    ) -> np.ndarray:
        """A step of this weight towards Gamma(1 + sum of shapes, 1 / ``rate`` + sum of means); unchanged if fixed."""
        if not self.learned:
            return q
        optimum = 1.0 / self.rate + copies * factor.component_sums(scale * mean)
        rate = (1.0 - weight) * q[1] + weight * optimum
        return np.stack([1.0 + copies * factor.component_sums(self.shape), rate])

    def grow_q(self, q: np.ndarray, times: float) -> np.ndarray:
        """``q`` as if this many times the rows had given the same evidence per row; unchanged if fixed."""
        if not self.learned:
            return q
        least = np.minimum(1.0 / self.rate, q[1])
        return np.stack([1.0 + times * (q[0] - 1.0), least + times * (q[1] - least)])

    def bound(self, factor: Factor, shape: np.ndarray, rate: np.ndarray, q: np.ndarray, scale: Scale) -> float:
        """E log p(factor | b) p(b) - E log q(factor) q(b): minus the divergence of Q from Gamma(a, scale b)."""
        a = np.asarray(self.shape)
        b = q[0] / q[1]
        log_b = digamma(q[0]) - np.log(q[1]) if self.learned else np.log(b)
        each = gamma_entropy(shape, rate) + a * (log_b + np.log(scale)) - gammaln(a)
        each = each + (a - 1.0) * (digamma(shape) - np.log(rate)) - b * scale * (shape / rate)
        bound = float((factor.weight * each).sum())
        if self.learned:
            bound += float((-np.log(self.rate) - b / self.rate + gamma_entropy(*q)).sum())
        return bound

    def penalty(self, factor: Factor, shape: np.ndarray, rate: np.ndarray, q: np.ndarray, scale: Scale) -> float:
        """Sum of a log m - b m over the entries' means m, and of b's own terms."""
        mean, b = shape / rate, q[0] / q[1]
        penalty = float((factor.weight * (self.shape * np.log(mean) - b * scale * mean)).sum())
        if self.learned:
            sizes = 1.0 + factor.component_sums(self.shape)
            penalty += float((sizes * np.log(b) - b / self.rate).sum())
        return penalty

    @property
    def has_one_law(self) -> bool:
        """Whether shape and rate are numbers."""
        return bool(np.size(self.shape) == np.size(self.rate) == 1)

    @property
    def size(self) -> float | None:
        """The mean of an entry around which rates are learned; None if they are known."""
        return float(self.shape / self.rate) if self.learned else None

    def of_size(self, mean: float) -> Self:
        """The prior with learned rates around this mean of an entry; as it is if rates are known."""
        return replace(self, rate=float(self.shape) / mean) if self.learned else self

    @property
    def stated(self) -> tuple[str, ...]:
        """A learned rate depends on the data."""
        return ("learned", "shape") if self.learned else ("learned", "shape", "rate")

    def describe(self) -> str:
        """Shape and rates."""
        rates = f"and rate {ranged(self.rate)}"
        if self.learned:
            rates = f"and learned rates, a component's own, exponential of mean {ranged(self.rate)} by the prior"
        return f"Independent gammas of shape {ranged(self.shape)}, {rates}."

    def facts(self) -> dict[str, Any]:
        """Shape, rate, and whether rates are learned."""
        shape, rate = (np.asarray(value).tolist() for value in (self.shape, self.rate))
        return {"kind": self.kind, "shape": shape, "rate": rate, "learned": self.learned}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """The prior that ``facts`` described."""
        shape, rate = (
            np.array(value) if isinstance(value, list) else value for value in (facts["shape"], facts["rate"])
        )
        return cls(shape, rate, facts["learned"])


def gamma_entropy(shape: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Entropy of Gamma(shape, rate)."""
    return shape - np.log(rate) + gammaln(shape) + (1.0 - shape) * digamma(shape)
