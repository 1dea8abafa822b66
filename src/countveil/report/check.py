"""Do reports simulated from the fit look like those that were seen? And how many does noise alone explain?"""

from typing import NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.fit.base import FactorizationEstimator
from countveil.inference.posterior import evenly
from countveil.inference.predict import simulated_reports
from countveil.laws.counts.laws import positive_beyond_noise
from countveil.laws.counts.protocol import in_counts, parameters_of_rows, rates_at

SIMULATED_CELLS = 20_000_000  # over all releases: more make the intervals steadier and take longer
CELLS_AT_ONCE = 2_000_000  # kept dense; of larger data a selection of rows is compared, to save memory
MIN_RELEASES, MAX_RELEASES = 20, 100
DRAWS_FOR_MEANS = 50  # of a selection of rows: more lower the Monte Carlo error and take longer
SUM = "sum of the positive reports"
OUTSIDE = "not as the model expects"
NEAR = "near the end of what the model expects"
FAR = 3.5  # standard deviations of simulated releases; of five right statistics, one in twenty is outside 95% of them


class Noise(NamedTuple):
    """Totals of the reports: as seen, by noise alone, and by the fit."""

    rows: int  # that were counted; of very large data an even selection
    cells: int
    masked: int
    share_seen: float  # of positive reports
    share_by_noise: float  # if every true count were zero
    share_by_fit: float
    sum_seen: float  # of the positive reports
    sum_by_noise: float
    sum_of_rates: float  # expected true counts of the cells that were seen


class Statistic(NamedTuple):
    """A number of the release, and the middle 95% of it in simulated releases."""

    name: str
    seen: float
    low: float
    high: float
    verdict: str

    def shown(self, value: float) -> str:
        """A value of this statistic: a share in per cent, anything else as a number."""
        if self.name.startswith("share"):
            return f"{100.0 * value:.2f}%"
        return f"{value:,.0f}" if value >= 1000.0 else f"{value:.3g}"


class Check(NamedTuple):
    """Statistics, and how many cells had each report, or one in each bin: labels (n,), seen, low and high (n,)."""

    releases: int
    statistics: list[Statistic]
    labels: list[str]
    seen: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def without_first_bin(self) -> "Check":
        """The same with a bin less."""
        bins = (values[1:] for values in (self.labels, self.seen, self.low, self.high))
        return Check(self.releases, self.statistics, *bins)  # type: ignore[arg-type]


def noise_of(fit: FactorizationEstimator, data: Observations) -> Noise:
    """How much of a release noise alone explains; data in the matrix form of the model."""
    rows = selected(data)
    reports, visible, level = dense(data.take(rows))
    expected, by_noise = mean_of_rows(fit, rows), data.noise.positive_by_noise(level)
    positive = by_noise + mean_beyond_noise(fit, data, rows, level, expected)
    excess = data.noise.mean_at_zero(level)
    return Noise(
        len(rows),
        int(visible.sum()),
        int((~visible).sum()),
        float((reports[visible] > 0).mean()),
        float(by_noise[visible].mean()),
        float(positive[visible].mean()),
        float(reports[visible].sum()),
        float(excess[visible].sum()),
        float(expected[visible].sum()),
    )


def check(fit: FactorizationEstimator, data: Observations, rng: np.random.Generator) -> Check:
    """Compare a release with simulated ones (20 to 100 of them), each at another draw of the posterior.

    data is in the matrix form of the model. What was masked is left out of both; of very large data an even selection
    of rows is compared.
    """
    chosen = selected(data)
    taken = data.take(chosen)
    reports, visible, level = dense(taken)
    n, times = releases_of(fit, reports.size, rng)
    top = int(reports.max()) if reports.size else 0
    edges = np.arange(min(top, 12) + 1)
    likelihood = fit.model_.likelihood
    rows: list[list[float]] = []
    counts: list[np.ndarray] = []
    draws = fit._reader.draws()
    for ((theta, phi), parameters), wanted in zip(draws, times, strict=True):
        law = (theta[chosen], phi), parameters_of_rows(likelihood, parameters, chosen)
        for _ in range(int(wanted)):
            simulated = simulated_reports([law], data.noise, level, likelihood, rng, taken.exposure)[0]
            simulated *= visible
            rows.append(list(statistics(simulated, visible).values()))
            counts.append(histogram(simulated[visible], edges))
    labels = ["0 or less", *map(str, edges[1:])]
    if len(edges) > 12:
        labels[-1] = f"{edges[-1]} or more"
    seen = histogram(reports[visible], edges)
    return judged(n, statistics(reports, visible), rows, labels, seen, counts)


def releases_of(fit: FactorizationEstimator, cells: int, rng: np.random.Generator) -> tuple[int, np.ndarray]:
    """(how many releases of this many cells to simulate, how many at each draw of the posterior)."""
    n = int(np.clip(SIMULATED_CELLS // cells, MIN_RELEASES, MAX_RELEASES))
    draws = fit.posterior["sample_stats"]["total_rate"].size
    return n, np.bincount(rng.choice(draws, size=n, replace=n > draws), minlength=draws)


def judged(
    releases: int,
    values: dict[str, float],
    rows: list[list[float]],
    labels: list[str],
    seen: np.ndarray,
    counts: list[np.ndarray],
) -> Check:
    """Statistics and bins of a release against those of simulated ones, a row for each."""
    simulated = np.array(rows)
    low, high = np.quantile(simulated, [0.025, 0.975], axis=0)
    mean, reach = simulated.mean(axis=0), FAR * simulated.std(axis=0)
    least = np.minimum(simulated.min(axis=0), mean - reach)
    most = np.maximum(simulated.max(axis=0), mean + reach)
    found = [
        Statistic(name, value, low[i], high[i], verdict(value, low[i], high[i], least[i], most[i]))
        for i, (name, value) in enumerate(values.items())
    ]
    return Check(releases, found, labels, seen, *np.quantile(np.array(counts), [0.025, 0.975], axis=0))


def total_in_doubt(found: Check) -> str:
    """Whether the fit's sum of counts is probably "too low" or "too high", by that of the reports; else empty."""
    total = next(s for s in found.statistics if s.name == SUM)
    if not total.verdict.startswith(OUTSIDE):
        return ""
    return "too low" if total.seen > total.high else "too high"


def statistics(reports: np.ndarray, visible: np.ndarray) -> dict[str, float]:
    """Numbers that a good model gets right; reports are (D, V), 0 where not visible."""
    found = {
        "share of positive reports": float((reports > 0).sum() / max(visible.sum(), 1)),
        SUM: float(reports.sum()),
        "largest report": float(reports.max()),
        "spread of the columns' sums (standard deviation)": float(reports.sum(axis=0).std()),
    }
    if len(reports) > 1:
        found["spread of the rows' sums (standard deviation)"] = float(reports.sum(axis=1).std())
    return found


def verdict(value: float, low: float, high: float, least: float, most: float) -> str:
    """Whether a statistic lies within its interval, or at least among what chance allows, in words."""
    if low <= value <= high:
        return "as the model expects"
    return f"{NEAR if least <= value <= most else OUTSIDE}: {'lower' if value < low else 'higher'}"


def failed(found: Check | None) -> list[str]:
    """A sentence on the statistics that are not as the model expects; nothing where all are."""
    names = [] if found is None else [s.name for s in found.statistics if s.verdict.startswith(OUTSIDE)]
    return [f"Simulated releases differ from the real one in: {'; '.join(names)}."] if names else []


def histogram(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How many values are 0, 1, 2, ...; the last number counts all that are as large or larger."""
    return np.bincount(np.minimum(values, edges[-1]).astype(np.int64), minlength=len(edges))


def dense(data: Observations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(reports, visible, noise level), each (D, V): max(report, 0), zero where masked."""
    reports = np.zeros(data.shape, dtype=np.int64)
    reports[data.row_numbers, data.columns] = data.reports
    visible = reports >= 0
    return np.maximum(reports, 0), visible, np.broadcast_to(data.cell_level, data.shape)


def selected(data: Observations) -> np.ndarray:
    """The rows to look at: all, or evenly spread ones of some two million cells."""
    return evenly(data.shape[0], max(1, CELLS_AT_ONCE // data.shape[1]))


def mean_of_rows(fit: FactorizationEstimator, rows: np.ndarray) -> np.ndarray:
    """(rows, V) posterior mean of their expected counts; for a selection of rows over some 50 draws, evenly spread."""
    n_rows, n_columns = fit._reader.matrix_shape
    if len(rows) == n_rows:
        return fit._reader.as_matrix(fit.rate())
    total, n = np.zeros((len(rows), n_columns)), 0
    for (theta, phi), parameters in fit._reader.even_draws(DRAWS_FOR_MEANS):
        theta, phi = in_counts(fit.model_.likelihood, theta, phi, parameters)
        total += rates_at(theta[rows], phi, exposure_of_rows(fit, rows))
        n += 1
    return total / n


def exposure_of_rows(fit: FactorizationEstimator, rows: np.ndarray) -> np.ndarray | None:
    """(rows, V) the exposures of their cells, if there are any by cell."""
    exposure = fit._reader.exposure_matrix
    return None if exposure is None else exposure[rows]


def mean_beyond_noise(
    fit: FactorizationEstimator, data: Observations, rows: np.ndarray, level: np.ndarray, expected: np.ndarray
) -> np.ndarray:
    """(rows, V) P(report > 0) - P(tau > 0): at the expected counts, or with parameters averaged over some 50 draws."""
    likelihood = fit.model_.likelihood
    if not likelihood.parameter_axes:
        rate = expected / likelihood.mean(1.0)
        return np.asarray(positive_beyond_noise(data.noise, likelihood, rate, level))
    total, n = np.zeros(expected.shape), 0
    for (theta, phi), parameters in fit._reader.even_draws(DRAWS_FOR_MEANS):
        own = parameters_of_rows(likelihood, parameters, rows)
        rates = rates_at(theta[rows], phi, exposure_of_rows(fit, rows))
        total += positive_beyond_noise(data.noise, likelihood, rates, level, own)
        n += 1
    return total / n
