"""Whether fits find the dispersion of counts under wide noise.

python benchmarks/dispersion.py [--tables N] [CASE ...]

Planted tables of 20 x 30 negative binomial counts with one component, whose p is the same in all columns or varies
between them, under several mechanisms. Each is fitted with the defaults, and again with chains that start at the truth.
Printed are the coverage of 90% intervals of the true counts, and the mean p of both fits: chains that stick at their
start show as a difference between them. Another case has exact counts of 60 x 5 cells with means up to 9,000, and
prints R-hat of p. A CASE is a part of a line's name, such as "scale 30" or "exact".
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

import arviz_stats
import numpy as np

import countveil as cv
from countveil.inference import dispersion

N_ROWS, N_COLUMNS = 20, 30
BURST_SHAPE = 2.0  # gamma shape of the planted factors' entries


class Table(NamedTuple):
    """A planted table."""

    counts: np.ndarray  # (D, V)
    theta: np.ndarray  # (D, 1)
    phi: np.ndarray  # (V, 1); rates of bursts are theta @ phi.T
    p: np.ndarray  # (V,)


def planted(
    rng: np.random.Generator,
    p: float,
    by_column: bool,
    mean: float,
    shape: tuple[int, int] = (N_ROWS, N_COLUMNS),
) -> Table:
    """Negative binomial counts of a mean of about ``mean``."""
    logits = np.full(shape[1], np.log(p / (1.0 - p))) + by_column * rng.normal(0.0, 0.7, shape[1])
    p_v = 1.0 / (1.0 + np.exp(-logits))
    theta, phi = (rng.gamma(BURST_SHAPE, 1.0 / BURST_SHAPE, (n, 1)) for n in shape)
    burst = p_v / (-np.log1p(-p_v) * (1.0 - p_v))
    expected = mean * theta @ phi.T
    counts = rng.negative_binomial(expected * (1.0 - p_v) / p_v, 1.0 - p_v)
    return Table(counts, theta, mean * phi / burst[:, None], p_v)


def two_sided(scale: float) -> Any:
    """Observations of counts under two-sided geometric noise of this scale, simulated."""

    def observe(counts: np.ndarray, rng: np.random.Generator) -> Any:
        alpha = np.exp(-1.0 / scale)
        noise = rng.geometric(1.0 - alpha, counts.shape) - rng.geometric(1.0 - alpha, counts.shape)
        return cv.PrivatizedCounts(counts + noise, alpha)

    return observe


def gaussian(counts: np.ndarray, rng: np.random.Generator) -> Any:
    """Observations of counts under discrete Gaussian noise of sigma 30, simulated."""
    noise = np.rint(rng.normal(0.0, 30.0, counts.shape)).astype(np.int64)
    return cv.Reports(counts + noise, cv.mechanisms.DiscreteGaussian(30.0))


def thresholded(counts: np.ndarray, rng: np.random.Generator) -> Any:
    """Observations of counts under geometric noise of scale 3, shown from half of the mean count up, simulated."""
    alpha, least = np.exp(-1.0 / 3.0), max(int(counts.mean() / 2), 1)
    noise = rng.geometric(1.0 - alpha, counts.shape) - rng.geometric(1.0 - alpha, counts.shape)
    reports = (counts + noise).astype(float)
    reports[reports <= least] = np.nan
    mechanism = cv.mechanisms.Thresholded(cv.mechanisms.TwoSidedGeometric(alpha), above=least)
    return cv.Reports(reports, mechanism)


MECHANISMS = {f"scale {scale}": two_sided(scale) for scale in (1, 3, 10, 30)} | {
    "Gaussian 30": gaussian,
    "thresholded": thresholded,
}


def at_truth(table: Table) -> Any:
    """A patch under which chains start at the planted rates and p."""

    def started(factors: Any, observations: Any, model: Any, engine: Any) -> Any:
        own = model.initial_parameters()
        p = table.p if len(own[0]) > 1 else table.p.mean(keepdims=True)
        return (table.theta, table.phi), (p, *own[1:])

    return mock.patch.object(dispersion, "started", started)


def fitted(data: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cv.TopicModel(n_topics=1, seed=1, **options).fit(data)


def p_of(fit: Any) -> np.ndarray:
    """(chains, draws, ...) draws of p."""
    return np.asarray(fit.posterior["posterior"]["p"].to_numpy())


def cases() -> Iterator[tuple[str, float, bool, float, Any]]:
    for p, by_column, mean in itertools.product((0.2, 0.7, 0.99), (False, True), (5.0, 500.0)):
        for name, observe in MECHANISMS.items():
            yield (
                f"p {p} {'by column' if by_column else 'one'}, mean {mean:g}, {name}",
                p,
                by_column,
                mean,
                observe,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="parts of names of cases; all without any")
    parser.add_argument("--tables", type=int, default=4, help="planted tables of each case")
    options = parser.parse_args()
    print(f"{'case':50s} coverage      p  p from the truth  seconds of a fit")
    for name, p, by_column, mean, observe in cases():
        if options.cases and not any(part in name for part in options.cases):
            continue
        covered, found, reference, seconds = [], [], [], 0.0
        for seed in range(options.tables):
            rng = np.random.default_rng([seed, int(100 * p), by_column, int(mean)])
            table = planted(rng, p, by_column, mean)
            data = observe(table.counts, rng)
            begun = time.perf_counter()
            fit = fitted(data)
            seconds += time.perf_counter() - begun
            intervals = fit.count_intervals(data, 0.9)
            inside = (intervals.lower <= table.counts) & (table.counts <= intervals.upper)
            covered.append(np.mean(inside))
            found.append(p_of(fit).mean())
            with at_truth(table):
                reference.append(p_of(fitted(data)).mean())
        print(
            f"{name:50s} {np.mean(covered):8.3f} {np.mean(found):6.3f} {np.mean(reference):17.3f} "
            f"{seconds / options.tables:17.1f}",
            flush=True,
        )
    if not options.cases or "exact" in options.cases:
        for seed in range(options.tables):
            rng = np.random.default_rng(seed)
            table = planted(rng, 0.99, False, 3000.0, (60, 5))
            p = p_of(fitted(cv.ExactCounts(table.counts)))
            rhat = [float(arviz_stats.rhat(p[..., v])) for v in range(p.shape[-1])]
            print(
                f"exact counts of 60 x 5, largest {table.counts.max():,}: R-hat of p at most {max(rhat):.3f}"
            )


if __name__ == "__main__":
    main()
