"""Two-sided geometric noise as inference sees it (``laws.noise.protocol``). Levels are alpha."""

from typing import Any, ClassVar

import numpy as np

from countveil.laws.noise.protocol import Contradiction, Tally
from countveil.laws.noise.two_sided_geometric import formulas, stated_level
from countveil.laws.noise.two_sided_geometric.law import TwoSidedGeometricKernel


class TwoSidedGeometricNoise:
    """What a report with two-sided geometric noise says about its count."""

    mechanism: str = "two-sided geometric"
    level: ClassVar[str] = "alpha"
    levels_below: ClassVar[float] = 1.0
    counts_positive: ClassVar[bool] = True
    unbiased: bool = True
    kernel: TwoSidedGeometricKernel = TwoSidedGeometricKernel()

    def in_words(self, level: Any) -> str:
        """alpha, or its range."""
        low, high = float(level.min()), float(level.max())
        return f"alpha {low:.4g}" if low == high else f"alpha from {low:.4g} to {high:.4g}"

    def level_of(self, mechanism: Any) -> float:
        """alpha."""
        return float(mechanism.alpha)

    def ratio(self, level: Any) -> Any:
        """alpha."""
        return level

    def bias(self, level: Any) -> Any:
        """alpha / (1 - alpha)."""
        return formulas.mean_over_positive(level)

    def positive_by_noise(self, level: Any) -> Any:
        """alpha / (1 + alpha)."""
        return formulas.positive_by_noise(level)

    def mean_at_zero(self, level: Any) -> Any:
        """alpha / (1 - alpha^2)."""
        return formulas.excess(level)

    def standard_deviation(self, level: Any) -> Any:
        """sqrt(2 alpha) / (1 - alpha)."""
        return formulas.standard_deviation(level)

    def variance(self, reports: Any, level: Any) -> np.ndarray:
        """2 alpha / (1 - alpha)^2, and half of it where the report is not positive (12.5)."""
        return np.asarray(np.where(reports > 0, 1.0, 0.5) * self.standard_deviation(level) ** 2)

    def contradiction(self, tally: Tally) -> Contradiction | None:
        """By reports at or below zero, or by how many are zero, one and two (``stated_level``)."""
        return stated_level.contradiction(tally)

    def log_kernel(self, report: Any, count: Any, level: Any) -> np.ndarray:
        """|max(report, 0) - count| log alpha."""
        with np.errstate(divide="ignore"):
            log_alpha = np.where(level > 0.0, np.log(level), -1e300)  # at 0 the report is the count
        return np.asarray(log_alpha * np.abs(np.maximum(report, 0) - count))

    def sample(self, counts: np.ndarray, level: Any, rng: np.random.Generator) -> np.ndarray:
        """max(count + tau, 0)."""
        return np.asarray(np.maximum(counts + formulas.sample(level, rng, counts.shape), 0))
