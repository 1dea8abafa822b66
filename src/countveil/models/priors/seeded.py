"""Gamma priors of topics whose seeded words have a larger shape."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import gammaln

from countveil.kernels.random import SMALLEST
from countveil.models.priors.gamma import GammaPrior
from countveil.models.priors.learned_shape import GivenCounts, GivenEntries, LearnedShapePrior
from countveil.models.priors.prior import Conditional, Factor, Prior, Reported, Scale, ranged


@dataclass(frozen=True)
class SeededPrior(Prior):
    """Independent Gamma(a + s_vk, b_k) over a factor of words v by topics k (mathematics, section 18).

    The shape a and the rates b_k are known or learned as in ``usual``. What is added, s_vk, is positive for the seeded
    words of the first topics, and else zero. The hyperparameters are those of ``usual``: a learned shape is that of the
    entries without a seed.
    """

    usual: GammaPrior | LearnedShapePrior
    added: np.ndarray  # (V, K)

    kind: ClassVar[str] = "gamma-with-seeds"
    independent: ClassVar[bool] = True
    collapsed: ClassVar[bool] = True
    needs: ClassVar[str | None] = "seeds"

    @property
    def n_seeded(self) -> int:
        """How many topics have seeded words: the first ones."""
        return int(self.added.any(axis=0).sum())

    def start(self, factor: Factor) -> np.ndarray:
        """Those of ``usual``."""
        return self.usual.start(factor)

    def gamma(self, hypers: np.ndarray, scale: Scale) -> tuple[Any, Any]:
        """(shape, rate) of the entries."""
        shape, rate = self.usual.gamma(hypers, scale)
        return shape + self.added, rate

    def draw_hypers(
        self, factor: Factor, hypers: np.ndarray, scale: Scale, value: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Rates given the factor, and before them a learned shape, by (18.7)."""
        if isinstance(self.usual, GammaPrior):
            return self.whole.draw_hypers(factor, hypers, scale, value, rng)
        entries = self.given_entries(factor, scale, value)
        return self.usual.drawn(factor, hypers, entries, lambda log_a: self.log_density(log_a, entries, value), rng)

    @property
    def whole(self) -> GammaPrior:
        """The prior of a known shape as one of gammas whose shapes vary."""
        assert isinstance(self.usual, GammaPrior)
        return replace(self.usual, shape=self.usual.shape + self.added)

    def draw_hypers_given_counts(
        self, factor: Factor, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> np.ndarray:
        """A learned shape given the counts and exposures of all entries, by (18.8), as ``usual`` draws it."""
        if isinstance(self.usual, GammaPrior):
            return hypers
        counts = self.usual.given_counts(factor, hypers, given.scale, given.counts, given.exposures)
        return self.usual.drawn_given_counts(hypers, lambda log_a: self.log_mass(log_a, counts), rng)

    def given_entries(self, factor: Factor, scale: Scale, value: np.ndarray) -> GivenEntries:
        """As without seeds, with what is added to each component's sum of shapes."""
        assert isinstance(self.usual, LearnedShapePrior)
        added = np.ravel(factor.component_sums(self.added))
        return self.usual.given_entries(factor, scale, value)._replace(added=added)

    def log_density(self, log_a: np.ndarray, entries: GivenEntries, value: np.ndarray) -> np.ndarray:
        """(n,) log-densities of log a given the entries, up to a constant (mathematics, equation 18.7)."""
        assert isinstance(self.usual, LearnedShapePrior)
        seeded, a = self.added > 0.0, np.exp(log_a)[:, None]
        shape, cut = a + self.added[seeded], value[seeded] <= SMALLEST
        own = gammaln(a) - gammaln(shape) + cut * (log_a[:, None] - np.log(shape))
        return self.usual.log_density(log_a, entries) + own.sum(axis=1)

    def log_mass(self, log_a: np.ndarray, given: GivenCounts) -> np.ndarray:
        """(n,) log-densities of log a given counts and exposures, up to a constant (mathematics, equation 18.8)."""
        assert isinstance(self.usual, LearnedShapePrior)
        seeded, a = np.ravel(self.added > 0.0), np.exp(log_a)[:, None]
        added, counts = np.ravel(self.added)[seeded], given.counts[seeded]
        shares = given.shares[seeded] / (1.0 if self.usual.mean is None else a)
        own = gammaln(a + added + counts) - gammaln(a + counts) - gammaln(a + added) + gammaln(a)
        own -= added * np.log1p(shares)
        return self.usual.log_mass(log_a, given) + own.sum(axis=1)

    def estimate(self, factor: Factor, scale: Scale, value: np.ndarray) -> np.ndarray:
        """Those of ``usual``, with rates at which the prior's means add up to the entries' scaled sum."""
        if isinstance(self.usual, GammaPrior):
            return self.whole.estimate(factor, scale, value)
        found = self.usual.estimate(factor, scale, value)
        if self.usual.mean is not None:
            sizes = factor.component_sums(1.0)
            found[1] *= 1.0 + factor.component_sums(self.added) / (found[0] * sizes)
        return found

    def resized(self, factor: Factor, hypers: np.ndarray, times: float) -> tuple[np.ndarray, float] | None:
        """As without seeds, which add to shapes and leave rates."""
        return self.usual.resized(factor, hypers, times)

    def reported_rates(self, hypers: np.ndarray) -> np.ndarray | None:
        """The rates; None where they vary from entry to entry."""
        return self.usual.reported_rates(hypers)

    def reported(self, factor: Factor, hypers: np.ndarray) -> Reported:
        """A learned shape of the entries without a seed."""
        return self.usual.reported(factor, hypers)

    def summaries(self, factor: Factor, hypers: np.ndarray) -> list[np.ndarray]:
        """Those of ``usual``."""
        return self.usual.summaries(factor, hypers)

    def check_reported(self, name: str, values: np.ndarray) -> None:
        """As ``usual``."""
        self.usual.check_reported(name, values)

    @property
    def n_anchored(self) -> int:
        """The topics with seeded words, which come first."""
        return self.n_seeded

    @property
    def learns_shape(self) -> bool:
        """As ``usual``."""
        return self.usual.learns_shape

    @property
    def stated(self) -> tuple[str, ...]:
        """What is added; ``usual`` checks itself."""
        return ("added",)

    def check_file(self, rule: str, wanted: Self) -> None:
        """Refuse other seeds, and what ``usual`` refuses."""
        super().check_file(rule, wanted)
        if self.usual.kind != wanted.usual.kind:
            raise ValueError(f"{rule}, of kind {wanted.usual.kind}, got {self.usual.kind}")
        self.usual.check_file(rule, wanted.usual)  # type: ignore[arg-type]

    def describe(self) -> str:
        """``usual``, and what is added."""
        more = f"{ranged(self.added.max())} is added to the shape of every seeded word in its topic."
        return f"{self.usual.describe()} Seeded topics: {self.n_seeded}; {more}"

    def facts(self) -> dict[str, Any]:
        """Those of ``usual``; and of what is added, a digest."""
        digest = hashlib.sha256(np.ascontiguousarray(self.added, dtype=float).data).hexdigest()
        return {"kind": self.kind, "usual": self.usual.facts(), "added": digest}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """The prior that ``facts`` described, with zero in place of what is added, which its reader sets.

        Raises:
            ValueError: a usual prior of another kind.
        """
        usual: dict[str, Any] = {"gamma": GammaPrior, "gamma-of-learned-shape": LearnedShapePrior}
        kind = facts["usual"]["kind"]
        if kind not in usual:
            raise ValueError(f"usual prior must be of a kind among {sorted(usual)}, got {kind!r:.40}")
        return cls(usual[kind].from_facts(facts["usual"]), np.zeros((1, 1)))
