"""Nanoseconds per draw of the exact noise, in bulk and in pure Python, and of OpenDP's if it is installed.

And nanoseconds a cell of privatizing sparse counts, 1% of them positive, to a sparse release. Then nanoseconds per
draw of discrete Gaussian noise, with the ratio to the two-sided geometric draw of the same standard deviation, the
p-value of a chi-square test of 10^7 draws against the law, and of 10^5 of OpenDP's. ``gaussian`` prints these alone.
"""

import sys
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import stats

from countveil.privacy import PrivacyLevel, gaussian_noise, noise, privatize

SIGMAS = [Fraction(3, 10), Fraction(1), Fraction(5), Fraction(50), Fraction(3000)]
RATES = [Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(5)]


def per_draw(draw: Callable[[], object], size: int, repeats: int = 7) -> float:
    """Median nanoseconds a draw; tables are built by a first call outside the clock."""
    draw()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        draw()
        seconds.append(time.perf_counter() - start)
    return median(seconds) / size * 1e9


def opendp_or_none() -> Any:
    """OpenDP, if it is installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    return dp


def opendp_gaussian(sigma: float, size: int) -> Callable[[], Any] | None:
    """Its discrete Gaussian noise."""
    if (dp := opendp_or_none()) is None:
        return None
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement, zeros = dp.m.make_gaussian(*space, scale=sigma), [0] * size
    return lambda: measurement(zeros)


def opendp(rate: Fraction, size: int) -> Callable[[], object] | None:
    """Its two-sided geometric noise."""
    if (dp := opendp_or_none()) is None:
        return None
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement = dp.m.make_laplace(*space, scale=float(1 / rate))
    zeros = [0] * size
    return lambda: measurement(zeros)


def p_value(draws: np.ndarray, sigma: float) -> float:
    """Of the chi-square test of draws against the discrete Gaussian law, in cells of at least 20 expected draws."""
    values = np.arange(-int(13 * sigma) - 3, int(13 * sigma) + 4)
    expected = np.exp(-((values / sigma) ** 2) / 2)
    expected *= len(draws) / expected.sum()
    observed = np.bincount(np.clip(draws, values[0], values[-1]) - values[0], minlength=len(values))
    common = expected >= 20
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1))


def gaussian() -> None:
    """Discrete Gaussian noise beside two-sided geometric noise of the same standard deviation."""
    names = "sigma", "NumPy", "ratio", "pure Python", "p-value", "OpenDP", "p-value"
    print("\n" + " ".join(f"{name:>11}" for name in names) + "   (ns)")
    for sigma in SIGMAS:
        variance = sigma**2
        rate = Fraction(np.arcsinh(np.sqrt(0.5 / float(variance))) * 2).limit_denominator(10**6)
        bulk = per_draw(lambda variance=variance: gaussian_noise.draw_array(variance, 10**6), 10**6)
        other = per_draw(lambda rate=rate: noise.draw_array(rate, 10**6), 10**6)
        pure = per_draw(lambda variance=variance: gaussian_noise.draw(variance, 10**5), 10**5, 3)
        fit = p_value(gaussian_noise.draw_array(variance, 10**7), float(sigma))
        theirs = opendp_gaussian(float(sigma), 10**5)
        referee = (
            f"{per_draw(theirs, 10**5, 3):>11.0f} {p_value(np.array(theirs()), float(sigma)):>11.3g}"
            if theirs
            else ""
        )
        print(f"{float(sigma):>11g} {bulk:>11.0f} {bulk / other:>11.2f} {pure:>11.0f} {fit:>11.3g} {referee}")


def main() -> None:
    counts = sp.csr_array(sp.random_array((1000, 10_000), density=0.01, rng=1).astype(bool).astype(int))
    print(f"{'epsilon/N':>10} {'NumPy':>10} {'pure Python':>12} {'OpenDP':>10} {'sparse':>10}   (ns)")
    for rate in RATES:
        bulk = per_draw(lambda rate=rate: noise.draw_array(rate, 10**6), 10**6)
        pure = per_draw(lambda rate=rate: noise.draw(rate, 10**5), 10**5)
        other = opendp(rate, 10**4)
        theirs = f"{per_draw(other, 10**4, 3):10.0f}" if other else f"{'-':>10}"
        level = PrivacyLevel(rate, 1)
        cells = per_draw(lambda level=level: privatize(counts, level), 10**7, 3)
        print(f"{float(rate):>10g} {bulk:>10.0f} {pure:>12.0f} {theirs} {cells:>10.0f}")
    gaussian()


if __name__ == "__main__":
    gaussian() if sys.argv[1:] == ["gaussian"] else main()
