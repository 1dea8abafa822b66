"""Counts under other mechanisms: hidden counts of a real table found again, and seconds per sweep.

python benchmarks/protected.py FOLDER     # deaths in Michigan by county, age and year, protected in five ways
python benchmarks/protected.py FOLDER totals   # 1 to 9 hidden, with exact totals published beside
python benchmarks/protected.py FOLDER noisy    # the same, with totals that are noisy and overlap
python benchmarks/protected.py rounded [K]   # sums of a sparse table, with rounded totals: needs no FOLDER
python benchmarks/protected.py sweeps     # K = 50, one thread: ratios to two-sided geometric noise

FOLDER holds protected/us_county_mortality/michigan_heart_1979_1988.npz. The true counts of 83 x 6 x 10 cells are
known; they are protected by a seeded mechanism, and fitted by bursty counts with 6 components, people as offsets of
the rows by county and of the columns by age and year. Printed are the mean absolute errors of hidden counts (all counts
where every one is changed): of medians given the reports, and of the best constant, which only the truth can choose,
or of the reports; and how many true counts lie in their randomised 90% intervals. With totals, medians and intervals
are those of 200 tables that meet the totals.

The rounded tables are simulated: 100 areas of different sizes and 8 groups, of three components, with a mean of 0.3
(base 3) or 0.5 (base 5), rounded at random by cell, and in a second fit with totals by area, by group and of the table
that were rounded likewise. Printed are, for sums of cells by area and sums of ten areas by group, the mean absolute
errors of the fit's medians, of sums of the reports, and of published totals where there are any; and the coverage of
randomised 90% intervals, and the mean of what the fit's and the reports' sums have too much.
"""

import sys
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from sweeps import SEED, TOPICS, Chain, big_data, medians
from threadpoolctl import threadpool_limits

import countveil as cv
from countveil.evaluation import coverage
from countveil.inference import gibbs

m = cv.mechanisms
MECHANISMS = {
    "1 to 9 hidden": m.Suppression(10),
    "random rounding to base 5": m.RandomRounding(5),
    "discrete Gaussian, sigma 5": m.DiscreteGaussian(5),
    "Laplace, scale 5": m.Laplace(5),
    "Gaussian, sigma 10, above 15": m.Thresholded(m.Gaussian(10), 15),
}
COMPONENTS, AGES, AREAS = 6, 6, 100
FIT = {"draws": 200, "tune": 300, "chains": 4, "progress": False}
SHORT = {"draws": 50, "tune": 100, "chains": 2, "progress": False}
SWEPT = {
    "two-sided geometric, alpha = 1/e": m.TwoSidedGeometric(np.exp(-1.0)),
    "discrete Gaussian, sigma 1": m.DiscreteGaussian(1),
    "random rounding to base 3": m.RandomRounding(3),
    "1 to 9 hidden": m.Suppression(10),
    "absent up to 3, discrete Gaussian": m.Thresholded(m.DiscreteGaussian(1), 3),
}


def deaths(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """(counts, people), counties x (ages and years)."""
    found = np.load(folder / "protected" / "us_county_mortality" / "michigan_heart_1979_1988.npz")
    return tuple(found[name].reshape(len(found[name]), -1) for name in ("deaths", "population"))


def of_table(counts: np.ndarray, people: np.ndarray, draw: int) -> None:
    """One line for each mechanism."""
    by_county, by_age = people.sum(axis=1) / people.sum(), people.sum(axis=0).astype(float)
    for name, mechanism in MECHANISMS.items():
        reports = cv.simulate_reports(counts, mechanism, np.random.default_rng([draw, 1]))
        data = cv.Reports(reports, mechanism, row_offset=by_county, column_offset=by_age)
        fit = cv.PoissonFactorization(
            "dk,vk->dv", {"k": COMPONENTS}, likelihood="negative-binomial", seed=draw, **FIT
        ).fit(data)
        hidden = np.isnan(reports) if np.isnan(reports).any() else np.ones(counts.shape, dtype=bool)
        medians_of = fit.count_intervals(data)["median"].to_numpy()
        error = np.abs(medians_of - counts)[hidden].mean()
        constant = np.abs(np.median(counts[hidden]) - counts[hidden]).mean()
        plain = constant if np.isnan(reports).any() else np.abs(np.maximum(reports, 0) - counts).mean()
        inside = coverage(counts, fit, np.random.default_rng(draw), data, cells=hidden)
        print(f"| {name} | {hidden.sum():,} | {error:.2f} | {plain:.2f} | {inside:.3f} |", flush=True)


def of_totals(counts: np.ndarray, people: np.ndarray, draw: int) -> None:
    """One line for each family of totals, where 1 to 9 are hidden."""
    by_year, sums = county_and_year(counts)
    families = {
        "none": None,
        "by county": [(1, counts.sum(axis=1))],
        "by age and year": [(0, counts.sum(axis=0))],
        "by county and year": [(by_year, sums)],
    }
    lines_of(families, counts, people, draw)


def of_noisy_totals(counts: np.ndarray, people: np.ndarray, draw: int) -> None:
    """One line for each set of totals, which are noisy or overlap, where 1 to 9 are hidden."""
    by_year, sums = county_and_year(counts)
    rng, rounding, gaussian = np.random.default_rng([draw, 2]), m.RandomRounding(5), m.DiscreteGaussian(5)
    rounded, noisy = (cv.simulate_reports(sums, each, rng) for each in (rounding, gaussian))
    ages = (0, cv.simulate_reports(counts.sum(axis=0), gaussian, rng), gaussian)
    county = (1, cv.simulate_reports(counts.sum(axis=1), gaussian, rng), gaussian)
    families = {
        "county and year, random rounding to base 5": [(by_year, rounded, rounding)],
        "county and year, discrete Gaussian, sigma 5": [(by_year, noisy, gaussian)],
        "the same, county, and the state by age and year": [(by_year, noisy, gaussian), county, ages],
        "county and year, and the state by age and year, exact": [(by_year, sums), (0, counts.sum(axis=0))],
    }
    lines_of(families, counts, people, draw)


def county_and_year(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the number of every cell's total, the totals) of counties and years."""
    by_year = counts.reshape(len(counts), AGES, -1)
    years = by_year.shape[2]
    group = np.arange(len(counts))[:, None] * years + np.arange(counts.shape[1]) % years
    return group, by_year.sum(axis=1).ravel()


def lines_of(families: dict, counts: np.ndarray, people: np.ndarray, draw: int) -> None:
    """Errors of the hidden counts and their coverage, for each set of totals."""
    by_county, by_age = people.sum(axis=1) / people.sum(), people.sum(axis=0).astype(float)
    reports = cv.simulate_reports(counts, m.Suppression(10), np.random.default_rng([draw, 1]))
    hidden, rng = np.isnan(reports), np.random.default_rng(draw)
    for name, totals in families.items():
        data = cv.Reports(reports, m.Suppression(10), totals=totals, row_offset=by_county, column_offset=by_age)
        model = cv.PoissonFactorization(
            "dk,vk->dv", {"k": COMPONENTS}, likelihood="negative-binomial", seed=draw, **FIT
        )
        begin = time.perf_counter()
        fit = model.fit(data)
        seconds = time.perf_counter() - begin
        tables = fit.predict_counts(200, rng, data).to_numpy()[:, hidden]
        error = np.abs(np.median(tables, axis=0) - counts[hidden]).mean()
        below, at = (tables < counts[hidden]).mean(axis=0), (tables == counts[hidden]).mean(axis=0)
        places = below + rng.random(below.size) * at
        inside = ((places > 0.05) & (places < 0.95)).mean()
        print(f"| {name} | {error:.2f} | {inside:.3f} | {seconds:.0f} s |", flush=True)


def of_rounded(size: int) -> None:
    """One line for each base, simulated table, totals and kind of sum."""
    print("| base | table | totals | sums | fit | reports | totals' own | coverage | excess, fit | excess, reports |")
    for (base, mean), seed in product({3: 0.3, 5: 0.5}.items(), (1, 2)):
        rng, rounding = np.random.default_rng(seed), m.RandomRounding(base)
        people, groups = rng.lognormal(0.0, 0.8, AREAS), rng.dirichlet(np.ones(8), 3)
        shares = rng.dirichlet(np.ones(3), AREAS) @ groups
        counts = rng.poisson(8 * mean * (people / people.mean())[:, None] * shares)
        reports, by_area = (cv.simulate_reports(each, rounding, rng) for each in (counts, counts.sum(axis=1)))
        rest = [(0, counts.sum(axis=0)), ((0, 1), counts.sum())]
        families = [(1, by_area), *((axis, cv.simulate_reports(sums, rounding, rng)) for axis, sums in rest)]
        sums = {"by area": lambda t: t.sum(axis=-1), "ten areas by group": of_ten_areas}
        for totals in (None, [(*family, rounding) for family in families]):
            data = cv.Reports(reports, rounding, totals=totals)
            model = cv.PoissonFactorization("dk,vk->dv", {"k": size}, seed=seed, **SHORT).fit(data)
            tables = np.asarray(model.predict_counts(200, rng, data))
            for name, of in sums.items():
                drawn, true, plain = of(tables), of(counts), of(np.asarray(reports))
                below, at = (drawn < true).mean(axis=0), (drawn == true).mean(axis=0)
                places = below + rng.random(below.shape) * at
                own = np.abs(by_area - true).mean() if totals and name == "by area" else np.nan
                print(
                    f"| {base} | {seed} | {'none' if totals is None else 'rounded'} | {name} "
                    f"| {np.abs(np.median(drawn, axis=0) - true).mean():.3f} | {np.abs(plain - true).mean():.3f} "
                    f"| {own:.3f} | {((places > 0.05) & (places < 0.95)).mean():.3f} "
                    f"| {(drawn.mean(axis=0) - true).mean():+.3f} | {(plain - true).mean():+.3f} |",
                    flush=True,
                )


def of_ten_areas(tables: np.ndarray) -> np.ndarray:
    """Sums of ten areas each by group."""
    return tables.reshape(*tables.shape[:-2], AREAS // 10, 10, -1).sum(axis=-2)


def text() -> np.ndarray:
    """Counts of 1,000 texts of about 90 words and 1,400 words, of ten topics; 6% of the cells have any."""
    rng = np.random.default_rng(SEED)
    share, words = rng.dirichlet(np.full(10, 0.1), 1000), rng.dirichlet(np.full(1400, 0.05), 10)
    return rng.poisson(rng.lognormal(4.5, 0.8, 1000)[:, None] * (share @ words))


def of_sweeps() -> None:
    """Milliseconds per sweep, and ratios."""
    for title, counts in {"1000 x 1000, mean 1": big_data()[1], "1000 x 1400, text": text()}.items():
        print(f"{title}, mean {counts.mean():.3f}, share above zero {(counts > 0).mean():.3f}")
        sweeps_of(counts)


def sweeps_of(counts: np.ndarray) -> None:
    """Lines for one table."""
    chains = {}
    for name, mechanism in SWEPT.items():
        data = cv.Reports(cv.simulate_reports(counts, mechanism, np.random.default_rng(SEED)), mechanism)
        chains[name] = Chain(gibbs, data, TOPICS)
    with threadpool_limits(1):
        found = medians(chains)
    first = found[next(iter(SWEPT))][0]
    for name, (median, _) in found.items():
        print(f"{name:40} {1000 * median:7.1f} ms {median / first:6.2f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "sweeps":
        of_sweeps()
    elif sys.argv[1] == "rounded":
        of_rounded(int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    else:
        for draw in range(1, 3):
            of_each = {"totals": of_totals, "noisy": of_noisy_totals}.get(" ".join(sys.argv[2:]), of_table)
            of_each(*deaths(Path(sys.argv[1])), draw)
