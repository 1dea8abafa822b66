"""Totals across a change of mechanism: views of pages by country and day, most of them not published.

python benchmarks/page_views.py [PAGES] [SWEEPS] [LIKELIHOOD]

Simulated are PAGES pages (2000) x 200 countries x 60 days, by five components with heavy-tailed pages and countries,
and gamma noise of shape 10 on every rate. In the first half, counts with two-sided geometric noise of scale 30 are
published above 450; then those with Gaussian noise of sigma 10 above 90. A point estimate of the second half alone, as
if what was not published were zero, is where a chain of 12 sweeps of the second half begins. Where that ends, with the
mean of its days for every day, a chain of SWEEPS sweeps (16) of both halves begins. Printed are shares of the true
totals, as a mean over the days of each half, of what was published, of that beginning, and of the fit (mean of five of
the last draws), with the step from the first half to the second. LIKELIHOOD is negative-binomial (with a variance of 50
times the mean, about that of counts of 500 here) or poisson.
"""

import resource
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

import countveil as cv

m = cv.mechanisms
COUNTRIES, DAYS, COMPONENTS, SHAPE, SEED = 200, 60, 5, 10.0, 1
FIRST = m.Thresholded(m.TwoSidedGeometric(np.exp(-1 / 30)), 450)
LATER = m.Thresholded(m.Gaussian(10), 90)
BY_DAY = [FIRST if day < DAYS // 2 else LATER for day in range(DAYS)]
P, KEPT, FIRST_SWEEPS = 0.98, 5, 12
NAMES = [f"factor_mode{i}" for i in range(3)]


def published(pages: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(coordinates (3, reports), reports, true totals by day)."""
    rng = np.random.default_rng(SEED)
    views = 2e6 / (np.arange(pages) * 2000 / pages + 5)
    heavy = np.arange(1, COUNTRIES + 1) ** -1.3
    share = np.stack(
        [np.append(rng.permutation(heavy[:20]), rng.permutation(heavy[20:])) for _ in range(COMPONENTS)]
    )
    theta = views[:, None] * rng.dirichlet(np.full(COMPONENTS, 0.3), pages)
    walks = rng.standard_normal((COMPONENTS, DAYS)).cumsum(axis=1) / np.sqrt(DAYS)
    level = 1 + 0.15 * np.sin(2 * np.pi * np.arange(DAYS) / 7) + 0.1 * walks
    where, reports, totals = [], [], np.zeros(DAYS)
    for day in range(DAYS):
        rate = theta @ (share / share.sum(axis=1, keepdims=True) * level[:, day, None])
        counts = rng.poisson(rate * rng.gamma(SHAPE, 1.0 / SHAPE, rate.shape))
        found = np.asarray(cv.simulate_reports(counts, BY_DAY[day], rng), dtype=float)
        page, country = np.nonzero(~np.isnan(found))
        where.append(np.stack([page, country, np.full(page.size, day)]))
        reports.append(found[page, country])
        totals[day] = counts.sum()
    return np.concatenate(where, axis=1), np.concatenate(reports), totals


def factors_of(fit: Any) -> tuple[np.ndarray, ...]:
    """The factors of all draws of a fit, (draws, size, components) each."""
    return tuple(np.asarray(fit.posterior.posterior[name], dtype=float)[0] for name in NAMES)


def tensor(where: np.ndarray, values: np.ndarray, pages: int, days: int) -> sp.coo_array:
    """Values by page, country and day."""
    return sp.coo_array((values, tuple(where)), shape=(pages, COUNTRIES, days))


def begin(
    where: np.ndarray, reports: np.ndarray, pages: int, options: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Factors where a chain of the second half ends, each day the mean of its days; it begins at naive ones."""
    late = where[2] >= DAYS // 2
    days = where[:, late] - np.array([[0], [0], [DAYS // 2]])
    counts = tensor(days, np.rint(reports[late]).astype(np.int64), pages, DAYS // 2)
    naive = cv.TensorModel(COMPONENTS, method="em", max_iter=60, seed=SEED, threads=1, progress=False)
    page, country, day = (values[0] for values in factors_of(naive.fit(cv.NaiveCounts(counts))))
    start = dict(zip(NAMES, (page / counts_in_one(options), country, day), strict=True))
    data = cv.Reports(tensor(days, reports[late], pages, DAYS // 2), LATER, background=np.nan)
    page, country, day = (values[-1] for values in factors_of(sampled(data, start, FIRST_SWEEPS, options)))
    return dict(zip(NAMES, (page, country, np.tile(day.mean(axis=0), (DAYS, 1))), strict=True))


def counts_in_one(options: dict[str, Any]) -> float:
    """The mean count of what the factors are about, counts or bursts."""
    return P / (1 - P) / -np.log1p(-P) if options else 1.0


def sampled(data: cv.Reports, start: dict[str, np.ndarray], sweeps: int, options: dict[str, Any]) -> Any:
    """A fit by one chain, of which draws of the last quarter are kept."""
    thin = max(1, sweeps // 20)
    schedule = {"draws": KEPT, "tune": sweeps - KEPT * thin, "thin": thin, "chains": 1, "threads": 1}
    return cv.TensorModel(COMPONENTS, seed=SEED, progress=False, start=start, **schedule, **options).fit(data)


def show(name: str, totals: np.ndarray, true: np.ndarray) -> None:
    """One line."""
    before, after = ((totals / true)[half].mean() for half in (slice(0, DAYS // 2), slice(DAYS // 2, DAYS)))
    print(f"{name:42} {before:.3f} {after:.3f}  step {100 * (after / before - 1):+.1f}%", flush=True)


def main(pages: int, sweeps: int, likelihood: str) -> None:
    """One fit."""
    where, reports, true = published(pages)
    print(f"{pages * COUNTRIES * DAYS:,} cells, {reports.size:,} published, {true.sum():,.0f} views")
    show("published", np.bincount(where[2], reports, DAYS), true)
    started = time.process_time()
    options = {"likelihood": likelihood, "dispersion": P} if likelihood == "negative-binomial" else {}
    start = begin(where, reports, pages, options)
    by_day = np.array(BY_DAY, dtype=object)[None, None, :]
    data = cv.Reports(tensor(where, reports, pages, DAYS), by_day, background=np.nan)
    begun = np.einsum("ik,jk,tk->t", *start.values(), optimize=True) * counts_in_one(options)
    show(f"begun after {time.process_time() - started:.0f} s", begun, true)
    factors = factors_of(sampled(data, start, sweeps, options))
    fitted = np.einsum("sik,sjk,stk->t", *factors, optimize=True) / KEPT * counts_in_one(options)
    show(f"fitted, {likelihood}, {sweeps} sweeps", fitted, true)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{time.process_time() - started:.0f} s of processor time, {memory:.1f} GB at most")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        int((given[0:1] or [2000])[0]), int((given[1:2] or [16])[0]), (given[2:3] or ["negative-binomial"])[0]
    )
