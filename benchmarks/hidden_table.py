"""Hidden counts of a large sparse table found again, with and without published margins.

python benchmarks/hidden_table.py [COUNTIES] [SWEEPS]
python benchmarks/hidden_table.py seconds    # processor time of default fits and 300 tables, of two smaller tables

Simulated are deaths by county (3,000), age (18), cause (37) and year (5), 10 million cells, by five components over
counties of heavy-tailed sizes, with a variance of 1.25 times the mean. Counts of 1 to 9 are hidden. A CP model of five
components is fitted with two chains, SWEEPS sweeps (60) of tuning and half as many draws, once to the reports alone and
once beside exact totals of all causes by county, age and year. Printed are seconds of the fit, the peak of memory so
far, and the mean absolute error of the hidden counts, of medians of nine tables given the reports, and of the best
constant, which only the truth can choose.

The smaller tables are of four components, 3,000 x 20 with 1 to 9 hidden and totals by row, and 350 x 20 with 0 to 9
hidden and totals by row and by column.
"""

import resource
import sys
import time
import warnings

import numpy as np

import countveil as cv

AGES, CAUSES, YEARS, COMPONENTS, SEED = 18, 37, 5, 5, 1
PER_COUNTY, P, TABLES = 1000.0, 0.2, 9
MECHANISM = cv.mechanisms.Suppression(10)


def simulated(counties: int) -> np.ndarray:
    """True counts (county, age, cause, year)."""
    rng = np.random.default_rng(SEED)
    people = rng.lognormal(0.0, 1.4, counties)
    place = rng.gamma(2.0, 0.5, (counties, COMPONENTS)) * people[:, None] / people.mean()
    age = rng.dirichlet(np.full(AGES, 0.5), COMPONENTS).T
    cause = rng.dirichlet(np.full(CAUSES, 0.2), COMPONENTS).T
    year = rng.gamma(20.0, 1 / 20, (YEARS, COMPONENTS))
    rate = PER_COUNTY * np.einsum("ck,ak,dk,yk->cady", place, age, cause, year) / COMPONENTS
    return rng.poisson(rng.gamma(rate * (1.0 - P) / P) * P / (1.0 - P))


def gigabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main(counties: int = 3000, sweeps: int = 60) -> None:
    """Print a line for each fit."""
    counts = simulated(counties)
    reports = cv.simulate_reports(counts, MECHANISM, np.random.default_rng(SEED))
    hidden = np.isnan(reports)
    constant = np.abs(np.median(counts[hidden]) - counts[hidden]).mean()
    print(f"{counts.size:,} cells, {(counts > 0).mean():.1%} above zero, {hidden.sum():,} hidden")
    by_cause = counts.sum(axis=2)
    for name, totals in {"no totals": None, "totals of causes": [(2, by_cause)]}.items():
        start = time.perf_counter()
        data = cv.Reports(reports, MECHANISM, totals=totals, simulated=True)
        model = cv.TensorModel(
            COMPONENTS,
            likelihood="negative-binomial",
            seed=SEED,
            tune=sweeps,
            draws=sweeps // 2,
            chains=2,
            progress=False,
        )
        fit = model.fit(data)
        seconds, memory = time.perf_counter() - start, gigabytes()
        tables = np.asarray(fit.predict_counts(TABLES, np.random.default_rng(SEED), data))
        if totals is not None:
            assert (tables.sum(axis=3) == by_cause).all()
        error = np.abs(np.median(tables[:, hidden], axis=0) - counts[hidden]).mean()
        print(
            f"{name}: {seconds:.0f} s, {memory:.1f} GB ({gigabytes():.1f} with {TABLES} tables); error {error:.3f}, "
            f"best constant {constant:.3f}, {1 - error / constant:.0%} below",
            flush=True,
        )


def seconds() -> None:
    """Print a line for each of two tables: processor time of a default fit, and of 300 tables that meet the totals."""
    rng = np.random.default_rng(SEED)
    for rows, axes, shows_zero in ((3000, (1,), True), (350, (1, 0), False)):
        counts = rng.poisson(rng.gamma(0.5, 1.0, (rows, 4)) @ rng.dirichlet(np.full(20, 0.3), 4) * 80.0)
        mechanism = cv.mechanisms.Suppression(10, shows_zero=shows_zero)
        reports = cv.simulate_reports(counts, mechanism, rng)
        start = time.process_time()
        data = cv.Reports(reports, mechanism, totals=[(axis, counts.sum(axis=axis)) for axis in axes])
        model = cv.PoissonFactorization("dk,vk->dv", {"k": 4}, seed=SEED, threads=1, progress=False)
        fit = model.fit(data)
        fitted = time.process_time()
        tables = np.asarray(fit.predict_counts(300, rng, data))
        assert all((tables.sum(axis=axis + 1) == counts.sum(axis=axis)).all() for axis in axes)
        print(
            f"{counts.size:,} cells, {np.isnan(reports).sum():,} hidden, {len(axes)} families of totals: "
            f"fit {fitted - start:.0f} s, 300 tables {time.process_time() - fitted:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["seconds"]:
        seconds()
    else:
        main(*map(int, sys.argv[1:]))
