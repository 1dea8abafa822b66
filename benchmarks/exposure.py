"""Hidden deaths of a real table found again: with the people of each cell, with offsets, and by two usual methods.

python benchmarks/exposure.py FOLDER [K]

FOLDER holds protected/us_county_mortality/michigan_heart_1979_1988.npz: deaths and people in 83 x 6 x 10 cells of
counties, ages and years, whose true counts are known. 0 to 9 are hidden. Printed are, over the hidden counts, the mean
absolute error of the medians given the reports, the mean log probability of the true counts given the reports, and the
share of 90% intervals that hold them. Rates and intervals of the last two methods are those of a Poisson count in 0 to
9 at the rate that they find: people times the state's rates by age and year (indirect standardisation), and a table
with the interactions of the people whose sums by county and by age and year are fitted, the hidden counts at their
expectations (iterative proportional fitting with EM).
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from protected import deaths
from scipy import stats

import countveil as cv

m = cv.mechanisms
HIDDEN = 10  # counts below are hidden
FIT = {"draws": 100, "tune": 150, "chains": 2, "seed": 1, "progress": False}
LAW = np.arange(HIDDEN)


def expected(values: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """The counts, hidden ones at their expectations given Poisson rates."""
    laws = law_of(rates)
    return np.where(np.isnan(values), laws @ LAW, values)


def law_of(rates: np.ndarray) -> np.ndarray:
    """(.., 10) the law of a Poisson count given that it is hidden."""
    mass = stats.poisson.logpmf(LAW, rates[..., None])
    mass = np.exp(mass - mass.max(axis=-1, keepdims=True))
    return mass / mass.sum(axis=-1, keepdims=True)


def standardised(values: np.ndarray, people: np.ndarray, rounds: int = 200) -> np.ndarray:
    """Rates of all cells: people times the state's rate of the column, which EM finds."""
    rates = people * np.nansum(values) / people.sum()
    for _ in range(rounds):
        rates = people * (expected(values, rates).sum(axis=0) / people.sum(axis=0))
    return rates


def fitted_proportionally(values: np.ndarray, people: np.ndarray, rounds: int = 500) -> np.ndarray:
    """The same, scaled to the sums of rows as well: u_d v_v people_dv by EM."""
    rates = standardised(values, people)
    for _ in range(rounds):
        counts = expected(values, rates)
        rates = rates * (counts.sum(axis=1) / rates.sum(axis=1))[:, None]
        rates = rates * (counts.sum(axis=0) / rates.sum(axis=0))
    return rates


def scores(law: np.ndarray, true: np.ndarray) -> tuple[float, float, float]:
    """(error of medians, mean log probability, coverage of 90% intervals) by laws (n, 10) of hidden counts."""
    passed = np.cumsum(law, axis=1) + 1e-12
    median, low, high = (np.argmax(passed >= level, axis=1) for level in (0.5, 0.05, 0.95))
    chance = law[np.arange(len(true)), true]
    return np.abs(median - true).mean(), np.log(chance).mean(), ((low <= true) & (true <= high)).mean()


def law_by_fit(data: cv.Reports, hidden: np.ndarray, size: int) -> np.ndarray:
    """(hidden cells, 10) by a fit."""
    model = cv.PoissonFactorization("dk,vk->dv", {"k": size}, likelihood="negative-binomial", **FIT)
    fit = model.fit(data)
    return np.stack(
        [fit._count_probabilities(np.full(hidden.shape, y), data, hidden)[1] for y in LAW], axis=1
    )


def main(folder: Path, size: int) -> None:
    """The table."""
    counts, people = deaths(folder)
    people = np.maximum(people.astype(float), 1.0)
    hidden = counts < HIDDEN
    values, mechanism = np.where(hidden, np.nan, counts), m.Suppression(HIDDEN, shows_zero=False)
    by_row, by_column = people.sum(axis=1, keepdims=True) / people.sum(), people.sum(axis=0, keepdims=True)
    exposures = {
        "exposure by cell": people,
        "offsets by row and column": None,
    }
    print(
        f"{hidden.sum():,} of {counts.size:,} counts are hidden, mean {counts[hidden].mean():.2f}; K = {size}"
    )
    print("| method | error | log score | coverage | seconds |")
    print("| --- | --- | --- | --- | --- |")
    for name, exposure in exposures.items():
        offsets = {"row_offset": by_row[:, 0], "column_offset": by_column[0]} if exposure is None else {}
        begin = time.perf_counter()
        law = law_by_fit(cv.Reports(values, mechanism, exposure=exposure, **offsets), hidden, size)
        print_line(name, law, counts[hidden], time.perf_counter() - begin)
    for name, method in {
        "indirect standardisation": standardised,
        "iterative proportional fitting with EM": fitted_proportionally,
    }.items():
        begin = time.perf_counter()
        law = law_of(method(values, people))[hidden]
        print_line(name, law, counts[hidden], time.perf_counter() - begin)


def print_line(name: str, law: np.ndarray, true: np.ndarray, seconds: float) -> None:
    """One line of the table."""
    error, score, inside = scores(law, true)
    print(f"| {name} | {error:.3f} | {score:.3f} | {inside:.3f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 4)
