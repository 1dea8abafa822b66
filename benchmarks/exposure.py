"""Hidden deaths of a real table found again: with the people of each cell, with offsets, and by two usual methods.

python benchmarks/exposure.py FOLDER [K]
python benchmarks/exposure.py simulated [K]   # two made-up tables of 60 counties, 4 ages and 6 years

FOLDER holds protected/us_county_mortality/michigan_heart_1979_1988.npz: deaths and people in 83 x 6 x 10 cells of
counties, ages and years, whose true counts are known. 0 to 9 are hidden. Printed are, over the hidden counts, the mean
absolute error of the medians given the reports, the mean log probability of the true counts given the reports, and the
coverage of randomised 90% intervals. Rates and intervals of the last two methods are those of a Poisson count in 0 to
9 at the rate that they find: people times the state's rates by age and year (indirect standardisation), and a table
with the interactions of the people whose sums by county and by age and year are fitted, the hidden counts at their
expectations (iterative proportional fitting with EM). With exact totals by county and by age and year, medians and
laws of the fit are those of 400 tables that meet them, and proportional fitting makes the hidden counts' expectations
meet them.

A simulated county has a rate of its own for each of two groups of ages, relative to the state's (gamma with a standard
deviation of 25%), and deaths have a variance of 1.25 times their mean.
"""

import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from protected import deaths
from scipy import stats

import countveil as cv

m = cv.mechanisms
HIDDEN = 10  # counts below are hidden
FIT = {"draws": 100, "tune": 150, "chains": 2, "seed": 1, "progress": False}
LAW = np.arange(HIDDEN)
TABLES, SEEDS = 400, (1, 2)


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


def fitted_to_totals(values: np.ndarray, people: np.ndarray, counts: np.ndarray, rounds: int = 500) -> np.ndarray:
    """Rates at which the expected counts have the exact sums of rows and of columns."""
    rates, hidden, shown = standardised(values, people), np.isnan(values), np.nan_to_num(values)
    for _ in range(rounds):
        for axis in (1, 0):
            left = (counts - shown).sum(axis=axis, keepdims=True)
            found = np.where(hidden, expected(values, rates), 0.0).sum(axis=axis, keepdims=True)
            rates = rates * np.maximum(left, 1e-6) / np.maximum(found, 1e-6)
    return rates


def scores(law: np.ndarray, true: np.ndarray) -> tuple[float, float, float]:
    """(error of medians, mean log probability, coverage of randomised 90% intervals) by laws (n, 10) of counts."""
    passed, each = np.cumsum(law, axis=1), np.arange(len(true))
    median = np.argmax(passed + 1e-12 >= 0.5, axis=1)
    place = passed[each, true] - np.random.default_rng(1).random(len(true)) * law[each, true]
    inside = (place > 0.05) & (place < 0.95)
    return np.abs(median - true).mean(), np.log(law[each, true]).mean(), inside.mean()


def law_by_fit(data: cv.Reports, hidden: np.ndarray, size: int) -> np.ndarray:
    """(hidden cells, 10) by a fit."""
    model = cv.PoissonFactorization("dk,vk->dv", {"k": size}, likelihood="negative-binomial", **FIT)
    fit = model.fit(data)
    if data.totals:
        tables = np.asarray(fit.predict_counts(TABLES, np.random.default_rng(1), data))[:, hidden]
        return ((tables[..., None] == LAW).sum(axis=0) + 0.1) / (TABLES + 0.1 * HIDDEN)
    return np.stack([fit._count_probabilities(np.full(hidden.shape, y), data, hidden)[1] for y in LAW], axis=1)


def simulated(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(counts, people), counties x (ages and years)."""
    rng = np.random.default_rng(seed)
    age = rng.dirichlet([12.0, 12.0, 10.0, 6.0], 60)
    people = rng.lognormal(10.5, 1.0, (60, 1, 1)) * age[:, :, None] * np.linspace(1.0, 1.1, 6)
    own = np.repeat(rng.gamma(16.0, 1 / 16, (60, 2, 1)), 2, axis=1)
    rate = people * own * np.array([2e-4, 6e-4, 2e-3, 8e-3])[:, None] * np.linspace(1.1, 0.9, 6)
    return rng.poisson(rng.gamma(4.0 * rate, 0.25)).reshape(60, -1), people.reshape(60, -1)


def main(counts: np.ndarray, people: np.ndarray, size: int) -> None:
    """The table."""
    people = np.maximum(people.astype(float), 1.0)
    hidden = counts < HIDDEN
    values, mechanism = np.where(hidden, np.nan, counts), m.Suppression(HIDDEN, shows_zero=False)
    by_row, by_column = people.sum(axis=1, keepdims=True) / people.sum(), people.sum(axis=0, keepdims=True)
    fits = {
        "exposure by cell": (people, None),
        "offsets by row and column": (None, None),
        "exposure by cell, exact totals": (people, [(1, counts.sum(axis=1)), (0, counts.sum(axis=0))]),
    }
    print(f"{hidden.sum():,} of {counts.size:,} counts are hidden, mean {counts[hidden].mean():.2f}; K = {size}")
    print("| method | error | log score | coverage | seconds |")
    print("| --- | --- | --- | --- | --- |")
    for name, (exposure, totals) in fits.items():
        offsets = {"row_offset": by_row[:, 0], "column_offset": by_column[0]} if exposure is None else {}
        begin = time.perf_counter()
        law = law_by_fit(cv.Reports(values, mechanism, totals=totals, exposure=exposure, **offsets), hidden, size)
        print_line(name, law, counts[hidden], time.perf_counter() - begin)
    for name, method in {
        "indirect standardisation": standardised,
        "iterative proportional fitting with EM": fitted_proportionally,
        "iterative proportional fitting, exact totals": partial(fitted_to_totals, counts=counts),
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
    components = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    for table in map(simulated, SEEDS) if sys.argv[1] == "simulated" else [deaths(Path(sys.argv[1]))]:
        main(*table, components)
