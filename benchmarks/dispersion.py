"""Whether fits find the dispersion of counts under wide noise.

    python benchmarks/dispersion.py FILE [CASE ...] [--tables N] [--processes N]

Planted tables of 20 x 30 negative binomial counts with one component, whose p is the same in all columns or varies
between them, under several mechanisms. Each is fitted with the defaults, and again with chains that start at the truth.
Another case has exact counts of 60 x 5 cells with means up to 9,000. A CASE is a part of a case's name, such as
"scale 30" or "exact". Every table is a line of FILE at once; those that FILE has are left out.

Columns: covered, the coverage of 90% intervals of the true counts, whose ends are randomised because counts are whole
numbers (an interval of whole numbers holds more than it says); the same for chains that start at the truth; the mean p
of both fits, where chains that stick at their start show as a difference; R-hat of p and nested R-hat of p, at most;
processor seconds of the first fit; the state of its verdict.
"""

import argparse
import csv
import itertools
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd

import countveil as cv
from countveil.evaluation import coverage
from countveil.inference import dispersion

N_ROWS, N_COLUMNS = 20, 30
EXACT = "exact"
COLUMNS = ["case", "seed", "covered", "covered_from_truth", "p", "p_from_truth", "r_hat", "nested", "seconds"]
COLUMNS += ["state"]
BURST_SHAPE = 2.0  # gamma shape of the planted factors' entries


class Table(NamedTuple):
    """A planted table."""

    counts: np.ndarray  # (D, V)
    theta: np.ndarray  # (D, 1)
    phi: np.ndarray  # (V, 1); rates of bursts are theta @ phi.T
    p: np.ndarray  # (V,)


def planted(
    rng: np.random.Generator, p: float, by_column: bool, mean: float, shape: tuple[int, int] = (N_ROWS, N_COLUMNS)
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
        return cv.TopicModel(n_topics=1, seed=1, threads=1, progress=False, **options).fit(data)


def p_of(fit: Any) -> np.ndarray:
    """(chains, draws, ...) draws of p."""
    return np.asarray(fit.posterior["posterior"]["p"].to_numpy())


def cases() -> dict[str, tuple[float, bool, float, Any]]:
    """(p, whether it varies by column, mean, observations of counts) of every case by its name."""
    bursts = itertools.product((0.2, 0.7, 0.99), (False, True), (5.0, 500.0))
    planned = [(*each, noise) for each in bursts for noise in MECHANISMS]
    planned += [(0.2, False, mean, "scale 30") for mean in (10.0, 20.0, 40.0)]  # less and less drowned by noise
    found: dict[str, tuple[float, bool, float, Any]] = {
        EXACT: (0.99, False, 3000.0, lambda counts, rng: cv.ExactCounts(counts))
    }
    for p, by_column, mean, noise in planned:
        name = f"p {p} {'by column' if by_column else 'one'}, mean {mean:g}, {noise}"
        found[name] = (p, by_column, mean, MECHANISMS[noise])
    return found


def measure(name: str, seed: int) -> list[Any]:
    """All columns of one table."""
    p, by_column, mean, observe = cases()[name]
    rng = np.random.default_rng(seed if name == EXACT else [seed, int(100 * p), by_column, int(mean)])
    table = planted(rng, p, by_column, mean, (60, 5) if name == EXACT else (N_ROWS, N_COLUMNS))
    data = observe(table.counts, rng)
    begun = time.process_time()
    fit = fitted(data)
    seconds = time.process_time() - begun
    covered, found = [np.nan, np.nan], fit.diagnostics()
    reference = np.nan
    if name != EXACT:
        with at_truth(table):
            from_truth = fitted(data)
        covered = [coverage(table.counts, each, np.random.default_rng(seed), data) for each in (fit, from_truth)]
        reference = p_of(from_truth).mean()
    agreement = found.table.loc["p", ["r_hat", "r_hat_nested"]]
    return [name, seed, *covered, p_of(fit).mean(), reference, *agreement, seconds, str(found.state)]


def measured(n_processes: int, left: Sequence[tuple[str, int]]) -> Iterator[list[Any]]:
    """What is left, as it ends. The first one is fitted alone: it leaves compiled functions on disk for the others."""
    if left:
        yield measure(*left[0])
    with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool:
        for each in as_completed([pool.submit(measure, *key) for key in left[1:]]):
            yield each.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("cases", nargs="*", help="parts of names of cases; all without any")
    parser.add_argument("--tables", type=int, default=4, help="planted tables of each case")
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    if not asked.file.exists():
        asked.file.write_text(",".join(COLUMNS) + "\n")
    done = set(pd.read_csv(asked.file)[["case", "seed"]].itertuples(index=False, name=None))
    names = [name for name in cases() if not asked.cases or any(part in name for part in asked.cases)]
    keys = [(name, seed) for seed in range(asked.tables) for name in names]
    for line in measured(asked.processes, [key for key in keys if key not in done]):
        with asked.file.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(
                f"{each:.4f}" if isinstance(each, float) else each for each in line
            )
        print(*line[:2], flush=True)
    found = pd.read_csv(asked.file)
    with pd.option_context("display.width", 200, "display.max_columns", None, "display.max_rows", None):
        print(found.drop(columns=["seed", "state"]).groupby("case", sort=False).mean().round(3).to_string())


if __name__ == "__main__":
    main()
