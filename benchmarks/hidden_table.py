"""Hidden counts of a large sparse table found again, with and without published margins.

python benchmarks/hidden_table.py [COUNTIES] [SWEEPS]
python benchmarks/hidden_table.py seconds    # processor time from import to counts.csv, of two smaller tables
python benchmarks/hidden_table.py bounds     # how often a bound that is not stated is found

Simulated are deaths by county (3,000), age (18), cause (37) and year (5), 10 million cells, by five components over
counties of heavy-tailed sizes, with a variance of 1.25 times the mean. Counts of 1 to 9 are hidden. A CP model of five
components is fitted with two chains, SWEEPS sweeps (60) of tuning and half as many draws, once to the reports alone and
once beside exact totals of all causes by county, age and year. Printed are seconds of the fit, the peak of memory so
far, and the mean absolute error of the hidden counts, of medians of nine tables given the reports, and of the best
constant, which only the truth can choose.

The smaller tables are of four components, 3,000 x 20 with 1 to 9 hidden and totals by row, and 350 x 20 with 0 to 9
hidden and totals by row and by column. Fits are default calls on one thread. All tables meet all totals, and so do the
means in counts.csv; printed is the coverage of randomised 90% intervals of the hidden counts, by 100 further tables.

Of bounds, there are 9,450 tables of Poisson counts at lognormal rates with a bound of 3 to 10; printed are, with and
without the warning of few small counts, how many tables have hidden and shown counts, the share whose bound is found,
and the coverage of randomised 90% intervals of the hidden counts at the true rates.
"""

import resource
import sys
import time
import warnings
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy import stats

import countveil as cv
from countveil.data.numbering import with_bounds

AGES, CAUSES, YEARS, COMPONENTS, SEED = 18, 37, 5, 5, 1
PER_COUNTY, P, TABLES, TABLES_CHECKED = 1000.0, 0.2, 9, 100
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


def seconds(folder: Path) -> None:
    """Print a line for each of two tables: processor time from import to counts.csv, and coverage of hidden counts."""
    print("| cells | hidden | families of totals | import | fit | 300 tables and counts.csv | all | coverage |")
    for rows, axes, shows_zero in ((3000, (1,), True), (350, (1, 0), False)):
        rng = np.random.default_rng(SEED)
        counts = rng.poisson(rng.gamma(0.5, 1.0, (rows, 4)) @ rng.dirichlet(np.full(20, 0.3), 4) * 80.0)
        mechanism = cv.mechanisms.Suppression(10, shows_zero=shows_zero)
        reports = cv.simulate_reports(counts, mechanism, rng)
        times = [time.process_time()]
        totals = [(axis, counts.sum(axis=axis)) for axis in axes]
        release = cv.import_reports(reports, mechanism, "simulated", totals=totals, simulated=True)
        times.append(time.process_time())
        fit = cv.PoissonFactorization("dk,vk->dv", {"k": 4}, seed=SEED, threads=1, progress=False).fit(release)
        times.append(time.process_time())
        fit.counts_table(release, draws=300).to_csv(folder / "counts.csv", index=False)
        times.append(time.process_time())
        found, hidden = pd.read_csv(folder / "counts.csv"), np.isnan(reports)
        assert len(found) == hidden.sum()
        means = reports.copy()
        means[found.iloc[:, 0] - 1, found.iloc[:, 1] - 1] = found["mean"]
        assert all(np.allclose(means.sum(axis=axis), each) for axis, each in totals)
        tables = np.asarray(fit.predict_counts(TABLES_CHECKED, rng, release))
        assert all((tables.sum(axis=axis + 1) == each).all() for axis, each in totals)
        assert (tables[:, ~hidden] == counts[~hidden]).all()
        drawn, true = tables[:, hidden], counts[hidden]
        below, at = (drawn < true).mean(axis=0), (drawn == true).mean(axis=0)
        places = below + rng.random(below.size) * at
        spent = [f"{each:.0f} s" for each in (*np.diff(times), times[-1] - times[0])]
        inside = ((places > 0.05) & (places < 0.95)).mean()
        print(f"| {counts.size:,} | {hidden.sum():,} | {len(axes)} | {' | '.join(spent)} | {inside:.3f} |", flush=True)


def bounds() -> None:
    """Print a line for tables with a warning, and one for those without."""
    rng, found = np.random.default_rng(SEED), {False: [], True: []}
    for scale, size, spread, _ in product((4, 8, 15, 30, 50, 100, 200), (60, 240, 960), (0.5, 1.0, 1.5), range(150)):
        below, rate = int(rng.integers(3, 11)), rng.lognormal(np.log(scale), spread, size)
        counts = rng.poisson(rate)
        hidden = (counts > 0) & (counts < below)
        if not hidden.any() or (counts < below).all():
            continue
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            given = with_bounds(np.where(hidden, np.nan, counts), cv.mechanisms.Suppression(None), None)
        possible, true = np.arange(1, given.below), counts[hidden][:, None]
        law = stats.poisson.pmf(possible, rate[hidden][:, None])
        law /= law.sum(axis=1, keepdims=True)
        before, at = (law * (possible < true)).sum(axis=1), (law * (possible == true)).sum(axis=1)
        places = before + rng.random(before.size) * at
        inside = ((places > 0.05) & (places < 0.95)).sum()
        found[bool(doubts)].append((given.below == below, inside, places.size))
    print("| warning | tables | bound found | coverage | hidden counts |")
    for warned, each in found.items():
        right, inside, n = np.array(each).T
        print(f"| {warned} | {len(each):,} | {right.mean():.2f} | {inside.sum() / n.sum():.3f} | {n.sum():,} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["seconds"]:
        with TemporaryDirectory() as place:
            seconds(Path(place))
    elif sys.argv[1:] == ["bounds"]:
        bounds()
    else:
        main(*map(int, sys.argv[1:]))
