"""Do reports simulated from the fit look like those that were published, where others protected the counts?"""

import numpy as np

from countveil.data.observations import Observations
from countveil.estimators.base import FactorizationEstimator
from countveil.inference.predict import simulated_reports
from countveil.likelihoods.protocol import parameters_of_rows
from countveil.noise import AnyMechanismNoise
from countveil.report.check import Check, histogram, judged, releases_of, selected

BINS = 12  # of reports, where there are more different ones
ABSENT = "none"


def why_unchecked(data: Observations) -> str:
    """Why reports cannot be simulated from a fit to these data; empty if they can be."""
    assert isinstance(data.noise, AnyMechanismNoise)
    if not data.noise.one_report:
        return "counts have several reports each, and which mechanism made which is not kept"
    if len(data.noise.mechanisms) > 1:
        return f"the cells have {len(data.noise.mechanisms)} different mechanisms, and which has which is not kept"
    return ""


def check_protected(fit: FactorizationEstimator, data: Observations, rng: np.random.Generator) -> Check:
    """``check.check`` for one mechanism with one report per count, in the matrix form of the model."""
    chosen = selected(data)
    published, visible = values_of(data.take(chosen))
    assert isinstance(data.noise, AnyMechanismNoise)
    edges, absent = edges_of(published[visible]), getattr(data.noise.mechanisms[0], "absent", False)
    likelihood, level = fit.model_.likelihood, np.ones((1, 1))
    rows: list[list[float]] = []
    counts: list[np.ndarray] = []
    n, times = releases_of(fit, published.size, rng)
    draws = zip(fit.matrix_draws(), fit.parameter_draws(), strict=False)
    for ((theta, phi), parameters), wanted in zip(draws, times, strict=True):
        law = (theta[chosen], phi), parameters_of_rows(likelihood, parameters, chosen)
        for _ in range(int(wanted)):
            simulated = simulated_reports([law], data.noise, level, likelihood, rng)[0]
            simulated[~visible] = 0.0
            rows.append(list(statistics(simulated, visible, absent).values()))
            counts.append(histogram(places(simulated[visible], edges), np.arange(edges.size + 1)))
    seen = histogram(places(published[visible], edges), np.arange(edges.size + 1))
    found = judged(n, statistics(published, visible, absent), rows, labels_of(edges), seen, counts)
    return found if absent else found.without_first_bin()


def values_of(data: Observations) -> tuple[np.ndarray, np.ndarray]:
    """((D, V) reports as they were published, NaN where there is none and 0 where masked, (D, V) not masked)."""
    codes = np.zeros(data.shape, dtype=np.int64)
    codes[data.row_numbers, data.columns] = data.reports
    assert isinstance(data.noise, AnyMechanismNoise)
    visible = codes >= 0
    return np.where(visible, data.noise.value_c[np.maximum(codes, 0)], 0.0), visible


def statistics(reports: np.ndarray, visible: np.ndarray, ever_absent: bool) -> dict[str, float]:
    """Numbers that a good model gets right; reports are (D, V), 0 where not visible, NaN only if ``ever_absent``."""
    absent, there = np.isnan(reports), np.nan_to_num(reports)
    n = max(int(visible.sum()), 1)
    found = {"share of counts without a report": float(absent.sum() / n)} if ever_absent else {}
    found |= {
        "share of positive reports": float((there > 0).sum() / n),
        "sum of the reports": float(there.sum()),
        "largest report": float(there.max()),
        "spread of the columns' sums (standard deviation)": float(there.sum(axis=0).std()),
    }
    if len(reports) > 1:
        found["spread of the rows' sums (standard deviation)"] = float(there.sum(axis=1).std())
    return found


def edges_of(reports: np.ndarray) -> np.ndarray:
    """Upper ends of the bins of reports, in order: the different reports, or some of them evenly chosen."""
    there = np.unique(reports[~np.isnan(reports)])
    return (
        there
        if there.size <= BINS
        else np.unique(np.quantile(there, np.arange(1, BINS + 1) / BINS, method="higher"))
    )


def places(reports: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of every report: 0 if it is absent, the last one also if it is larger than all edges."""
    found = 1 + np.minimum(np.searchsorted(edges, np.nan_to_num(reports)), max(edges.size - 1, 0))
    return np.where(np.isnan(reports), 0, found)


def labels_of(edges: np.ndarray) -> list[str]:
    """What the bins are called: by the largest report in each."""
    return [ABSENT, *(f"{edge:,.3g}" for edge in edges)]
