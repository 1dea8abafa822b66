"""Simulated studies: true counts, seeded noise under any promise or mechanism, and what each method makes of them."""

import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from countveil.bridges.protected_counts import simulate_reports
from countveil.common.console import Watcher
from countveil.data.observations import ExactCounts, NaiveCounts
from countveil.data.reports import Reports
from countveil.data.simulation import simulate_release
from countveil.engines.threads import one_blas_thread
from countveil.evaluation import log_score, match_topics, mean_absolute_error, topic_error
from countveil.fit import TopicModel
from countveil.inference.diagnostics import FitWarning
from countveil.laws.counts.protocol import in_counts
from countveil.planning.contenders import COLUMN_MEANS, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS, ZERO, Sampling
from countveil.planning.truths import MAX_CELLS, Source, Truth
from countveil.privacy import PrivacyLevel
from countveil.privacy.level import Level, short
from countveil.privacy.mechanisms import Mechanism

Protection: TypeAlias = Level | Mechanism
"""A level, whose noise keeps a promise, or what was done to the counts, which need not keep any."""
LONGEST = 60


class Plain(NamedTuple):
    """Reports as those take them who do not know the mechanism: an absent one is a zero."""

    reports: np.ndarray  # (D, V)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the reports."""
        return tuple(self.reports.shape)


class Protected(NamedTuple):
    """Simulated reports: for fits that know the mechanism, as if they were true counts, and for sums of them."""

    known: Any  # a Release or Reports
    naive: Any  # a Release or whole numbers
    plain: Any  # a Release or Plain


def protected(counts: np.ndarray, protection: Protection, rng: np.random.Generator) -> Protected:
    """Seeded reports of true counts, which protect nobody.

    Raises:
        ValueError: counts that the mechanism has no report for.
    """
    if isinstance(protection, Level):
        release = simulate_release(counts, protection, rng, truncate=False)
        return Protected(release, release, release)
    values = np.asarray(simulate_reports(counts, protection, rng), dtype=np.float64)
    plain = np.nan_to_num(values)
    naive = np.rint(np.maximum(plain, 0.0)).astype(np.int64)
    return Protected(Reports(values, protection, simulated=True), naive, Plain(plain))


def said(protection: Protection) -> str:
    """A level as the command line takes it, N:EPSILON or rho:RHO; a mechanism in words."""
    if isinstance(protection, PrivacyLevel):
        return f"{short(protection.precision)}:{short(protection.epsilon)}"
    return protection.spelt() if isinstance(protection, Level) else protection.in_words[:LONGEST]


def numbers(protection: Protection | None) -> dict[str, object]:
    """N and epsilon, for the table; empty where there are none."""
    if isinstance(protection, PrivacyLevel):
        return {"precision": str(protection.precision), "epsilon": str(protection.epsilon)}
    return {"precision": "", "epsilon": ""}


def heading(level: str) -> str:
    """What a level is called in a figure."""
    return f"N:epsilon = {level}" if level[0].isdecimal() else level


CELLS_SEEN = 10_000  # in which intervals are measured: more are steadier and take more memory
NO_NOISE = "no noise"
FLOOR = 1e-3
"""Rates of zero are raised to this before they are scored: else a positive count would have probability zero."""
SETTINGS: dict[str, Any] = {"method": "gibbs", "likelihood": "poisson", "chains": 2, "tune": 40, "draws": 40}
"""Short chains, since a plan makes many fits; quantiles of their draws are no calibrated intervals."""
MEASURES = {
    "mae": False,
    "mae_of_rates": False,
    "log_score": True,
    "topic_error": False,
    "topic_cosine": True,
    "interval_width": False,
    "coverage": True,
    "share_width": False,
    "total": False,
}
"""What is measured of every fit, and whether more is better; ``evaluate`` says what each is."""
INTERVAL = (0.05, 0.95)


class Grid(NamedTuple):
    """What to simulate: every level, or mechanism, at every number of rows, several times over."""

    levels: Sequence[Protection]
    rows: Sequence[int]
    replicates: int = 3
    seed: int = 1
    threads: int = 1


class Estimate(NamedTuple):
    """What a method makes of the reports."""

    rate: np.ndarray  # (D, V)
    topics: np.ndarray | None  # (K, V)
    theta: np.ndarray | None = None  # (S, D, K) posterior draws, whose products with phi are expected counts
    phi: np.ndarray | None = None  # (S, K, V)


def simulate(grid: Grid, source: Source, watcher: Watcher, **settings: Any) -> pd.DataFrame:
    """One row per fit: level, epsilon, precision, rows, replicate, method, MEASURES, seconds.

    Every replicate draws true counts; all levels and methods see the same ones. The fits of ``countveil``, of
    the naive way and of the true counts are one TopicModel with SETTINGS, or ``settings`` in their place. The
    result depends on the seed and not on the number of threads. Levels may be of rho, and mechanisms may stand among
    them: ours knows what was done, and for all others a count without a report is a zero.

    Raises:
        ValueError: no level or rows, one twice, fewer than two replicates, more cells than MAX_CELLS.
    """
    _check(grid, source)
    units = [(rows, replicate) for rows in sorted(grid.rows, reverse=True) for replicate in _replicates(grid)]
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # short chains by design
        warnings.simplefilter("ignore", FitWarning)
        watcher.stage("compiling (once; kept for the next run)")
        small = source.draw(2, np.random.default_rng(0))
        tried = [protected(small.counts, each, np.random.default_rng(0)).known for each in grid.levels]
        for method, data in ((TRUE_COUNTS, small.counts), *((OURS.name, each) for each in tried)):
            fit(method, data, source.n_topics, 0, **settings | {"tune": 1, "draws": 1})
        watcher.begin(len(units) * (1 + 3 * len(grid.levels)))

        def run(unit: tuple[int, int]) -> list[dict[str, object]]:
            return list(_unit(grid, source, *unit, settings, watcher))

        with ThreadPoolExecutor(grid.threads) as pool:
            futures = [pool.submit(run, unit) for unit in units]
            try:
                found = [row for future in futures for row in future.result()]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return pd.DataFrame(found)


def _unit(
    grid: Grid, source: Source, rows: int, replicate: int, settings: dict[str, Any], watcher: Watcher
) -> Iterator[dict[str, object]]:
    """All fits of one replicate at one number of rows."""
    rng = np.random.default_rng([grid.seed, rows, replicate])
    truth = source.draw(rows, rng)
    seeds = iter(rng.integers(2**31, size=2 + 4 * len(grid.levels)).tolist())

    def scored(level: Protection | None, method: str, data: Any) -> dict[str, object]:
        name = f"{method}, {rows} rows, replicate {replicate}" + (f", {said(level)}" if level else "")
        watched = method not in (COLUMN_MEANS.name, ZERO.name)  # too quick to show
        if watched:
            watcher.started(name)
        begun, seed = time.perf_counter(), next(seeds)
        estimate = fit(method, data, source.n_topics, seed, **settings)
        measured = evaluate(truth, estimate, np.random.default_rng([seed, 1]))
        seconds = time.perf_counter() - begun
        if watched:
            watcher.finished(name, seconds)
        return _place(level) | {"rows": rows, "replicate": replicate, "method": method, **measured,
                                "seconds": seconds}  # fmt: skip

    for method in (TRUE_COUNTS, ZERO.name):
        yield scored(None, method, truth.counts)
    for level in grid.levels:
        reports = protected(truth.counts, level, rng)
        yield scored(level, OURS.name, reports.known)
        yield scored(level, NAIVE.name, reports.naive)
        for method in (LEAST_SQUARES.name, COLUMN_MEANS.name):
            yield scored(level, method, reports.plain)


def fit(contender: str, data: Any, n_topics: int, seed: int, **settings: Any) -> Estimate:
    """What a contender, by its name, makes of reports (of counts, for "true counts" and "zero"), on one thread."""
    if contender == ZERO.name:
        return Estimate(np.zeros(data.shape), None)
    for rival in (LEAST_SQUARES, COLUMN_MEANS):
        if contender == rival.name:
            found = rival.estimate(data, Sampling(n_topics=n_topics, chains=2), seed)
            return Estimate(found.rate, found.topics)
    seen = data if contender == OURS.name else (ExactCounts if contender == TRUE_COUNTS else NaiveCounts)(data)
    model = TopicModel(n_topics, seed=seed, threads=1, progress=False, **SETTINGS | settings).fit(seen)
    draws = model._reader.draws()
    scaled = [in_counts(model.model_.likelihood, *factors, own) for factors, own in draws]
    if len(scaled) == 1:
        return Estimate(model.rate().to_numpy(), model.components_)
    theta = np.stack([theta.astype(np.float32) for theta, _ in scaled])
    phi = np.stack([phi.T.astype(np.float32) for _, phi in scaled])
    return Estimate(model.rate().to_numpy(), model.components_, theta, phi)


def evaluate(truth: Truth, estimate: Estimate, rng: np.random.Generator) -> dict[str, float]:
    """The MEASURES of an estimate; NaN where there are no true rates, counts, topics or draws.

    mae, mae_of_rates: mean over cells of |rate - true count|, and of |rate - true rate|. log_score: Poisson
    log-likelihood of the true counts per word, rates of zero raised to FLOOR. topic_error, topic_cosine: total
    variation distance to, and cosine with, the true topics after matching, means over topics. interval_width,
    coverage: of the middle 90% of a rate's draws, mean width, and the share that holds the true rate, over CELLS_SEEN
    cells at random. share_width: mean width of the middle 90% of draws of the topics' shares of all expected counts.
    total: the sum of all rates over the sum of all true counts.
    """
    rate = estimate.rate
    found = dict.fromkeys(MEASURES, np.nan)
    found["mae"] = mean_absolute_error(rate, truth.counts)
    if truth.counts.any():
        found["log_score"] = log_score(truth.counts, np.where(rate > 0.0, rate, FLOOR))
        found["total"] = float(rate.sum() / truth.counts.sum())
    if truth.rates is not None:
        found["mae_of_rates"] = mean_absolute_error(rate, truth.rates)
    if estimate.topics is not None:
        found["topic_error"] = topic_error(truth.topics, estimate.topics)
        found["topic_cosine"] = topic_cosine(truth.topics, estimate.topics)
    if estimate.theta is not None and estimate.phi is not None:
        shares = estimate.theta.sum(axis=1, dtype=np.float64)
        low, high = np.quantile(shares / shares.sum(axis=1, keepdims=True), INTERVAL, axis=0)
        found["share_width"] = float((high - low).mean())
        cells = rng.integers(rate.size, size=min(rate.size, CELLS_SEEN))
        d, v = np.divmod(cells, rate.shape[1])
        low, high = np.quantile(np.einsum("sek,ske->se", estimate.theta[:, d], estimate.phi[:, :, v]), INTERVAL, axis=0)
        found["interval_width"] = float((high - low).mean())
        if truth.rates is not None:
            found["coverage"] = float(((low <= truth.rates[d, v]) & (truth.rates[d, v] <= high)).mean())
    return found


def topic_cosine(truth: np.ndarray, topics: np.ndarray) -> float:
    """Mean cosine between matched topics, both (K, V) distributions over words."""
    matched = topics[match_topics(truth, topics)]
    lengths = np.linalg.norm(truth, axis=1) * np.linalg.norm(matched, axis=1)
    return float(((truth * matched).sum(axis=1) / lengths).mean())


def _place(level: Protection | None) -> dict[str, object]:
    return {"level": NO_NOISE if level is None else said(level)} | numbers(level)


def _replicates(grid: Grid) -> range:
    return range(1, grid.replicates + 1)


def _check(grid: Grid, source: Source) -> None:
    for name, values in (("levels", grid.levels), ("rows", grid.rows)):
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{name} must be one or more, all different, got {list(values)!s:.80}")
    called = [said(each) for each in grid.levels]
    if len(set(called)) < len(called):
        raise ValueError(f"levels must have different names in tables, got {called}")
    if grid.replicates < 2:
        raise ValueError(f"replicates must be at least 2, to estimate the error, got {grid.replicates}")
    if min(grid.rows) < 2:
        raise ValueError(f"rows must be at least 2, got {min(grid.rows)}")
    if source.most_rows is not None and max(grid.rows) > source.most_rows:
        raise ValueError(
            f"rows must be at most the {source.most_rows} of the pilot, got {max(grid.rows)}: --truth model "
            "(cv.planning.FromModel) draws more"
        )
    if max(grid.rows) * source.n_words > MAX_CELLS:
        raise ValueError(f"rows times words must be at most {MAX_CELLS}, got {max(grid.rows)} x {source.n_words}")
