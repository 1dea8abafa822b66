"""Two-sided geometric noise as inference sees it (``laws.noise.protocol``). Levels are alpha."""

from typing import Any, ClassVar

import numpy as np
from scipy import special

from countveil.laws.noise.protocol import Contradiction, Tally
from countveil.laws.noise.two_sided_geometric import formulas
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
        """The stated and the found alpha where they differ beyond chance; else None.

        Given a report r at or below zero, -r is geometric, P(-r = k) proportional to alpha^k, whatever the true count
        is (mathematics, equation 2.5). So signed reports show alpha. Truncated ones bound it from above: a count of
        zero makes more reports of zero than any other count does, 1 / (1 + alpha) of them, and no count makes fewer
        reports of two for each report of one, alpha.
        """
        kept = tally.level > 0.0
        level, cells, at_most_zero, ones, twos = (values[kept] for values in tally[:5])
        if tally.below_zero is not None:
            return of_signed(level, at_most_zero, float(tally.below_zero[kept].sum()))
        return of_zeros(level, cells, float(at_most_zero.sum())) or of_twos(level, ones, twos)

    def log_kernel(self, report: Any, count: Any, level: Any) -> np.ndarray:
        """|max(report, 0) - count| log alpha."""
        with np.errstate(divide="ignore"):
            log_alpha = np.where(level > 0.0, np.log(level), -1e300)  # at 0 the report is the count
        return np.asarray(log_alpha * np.abs(np.maximum(report, 0) - count))

    def sample(self, counts: np.ndarray, level: Any, rng: np.random.Generator) -> np.ndarray:
        """max(count + tau, 0)."""
        return np.asarray(np.maximum(counts + formulas.sample(level, rng, counts.shape), 0))


SURPRISE = 2.5e-5  # of a right level, on each of two sides: one release in twenty thousand is doubted


def of_signed(alpha: np.ndarray, n: np.ndarray, found: float) -> Contradiction | None:
    """By the sum of the sizes of n reports at or below zero, each geometric with mean alpha / (1 - alpha)."""
    mean, odd = float((n * alpha / (1.0 - alpha)).sum()), float((n * (alpha / (1.0 - alpha)) ** 2).sum())
    if mean <= 0.0:
        return None
    # negative binomial: exact for one level, else with the same two moments
    size, p = mean**2 / odd, mean / (mean + odd)
    above = special.betaincc(size, found, p) if found > 0.0 else 1.0  # P(as much, or more)
    if min(special.betainc(size, found + 1.0, p), above) >= SURPRISE:
        return None
    total = float(n.sum())
    return Contradiction(mean / (total + mean), found / (total + found), at_most=False)


def of_zeros(alpha: np.ndarray, cells: np.ndarray, found: float) -> Contradiction | None:
    """By more reports of zero than noise leaves."""
    n = float(cells.sum())
    share = float((cells / (1.0 + alpha)).sum()) / max(n, 1.0)
    if n == 0.0 or special.bdtrc(found - 1.0, int(n), share) >= SURPRISE:
        return None
    return Contradiction(1.0 / share - 1.0, n / found - 1.0, at_most=True)


def of_twos(alpha: np.ndarray, ones: np.ndarray, twos: np.ndarray) -> Contradiction | None:
    """By fewer reports of two, for the reports of one, than noise makes by itself."""
    n, found = float((ones + twos).sum()), float(twos.sum())
    share = float(((ones + twos) * alpha / (1.0 + alpha)).sum()) / max(n, 1.0)
    if n == 0.0 or special.bdtr(found, int(n), share) >= SURPRISE:
        return None
    return Contradiction(share / (1.0 - share), found / (n - found), at_most=True)
