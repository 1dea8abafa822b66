"""Do reports simulated from the fit look like those that were published, where others protected the counts?

Statistics are of parts: every report of the counts by itself, and in it the cells of every mechanism, or of every kind
of mechanism where there are more than three.
"""

from typing import NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.data.provenance import Report
from countveil.fit.base import FactorizationEstimator
from countveil.fit.predictive_checks import checkable, made_alike, report_of, truncated
from countveil.laws.counts.protocol import parameters_of_rows, rates_at
from countveil.laws.noise import AnyMechanismNoise
from countveil.report.check import Check, histogram, judged, releases_of, selected

BINS = 12  # of reports, where there are more different ones
ABSENT = "none"
MOST_PARTS = 3  # with statistics by mechanism


class Part(NamedTuple):
    """Some cells of a report, and what they are called beside others; empty where there are no others."""

    report: int
    cells: np.ndarray  # (D, V) booleans
    absent: bool  # whether some of these counts may have no report
    name: str


def check_protected(
    fit: FactorizationEstimator, data: Observations, rng: np.random.Generator
) -> Check | None:
    """``check.check`` for reports of any mechanisms, in the matrix form of the model.

    None where ``checkable`` leaves no report.
    """
    chosen = selected(data)
    taken = data.take(chosen)
    published = [checkable(each) for each in reports_of(taken)]
    parts = parts_of(published)
    if not parts:
        return None
    seen = [truncated(each.values, each) for each in published]
    edges, absent = edges_of(of_parts(seen, parts)), any(part.absent for part in parts)
    likelihood = fit.model_.likelihood
    rows: list[list[float]] = []
    counts: list[np.ndarray] = []
    n, times = releases_of(fit, published[0].values.size, rng)
    draws = fit._reader.draws()
    for ((theta, phi), parameters), wanted in zip(draws, times, strict=True):
        own = parameters_of_rows(likelihood, parameters, chosen)
        for _ in range(int(wanted)):
            true = likelihood.sample(rates_at(theta[chosen], phi, taken.exposure), rng, own)
            simulated = [made_alike(each, true, rng) for each in published]
            rows.append(list(of_all(simulated, parts).values()))
            counts.append(binned(simulated, parts, edges))
    found = judged(n, of_all(seen, parts), rows, labels_of(edges), binned(seen, parts, edges), counts)
    return found if absent else found.without_first_bin()


def reports_of(data: Observations) -> list[Report]:
    """Every report of the counts as it was published."""
    made = data.provenance.published
    if made is not None and (len(made.layers) > 1 or made.n_mechanisms > 1):
        return [report_of(data, place) for place in range(len(made.layers))]
    values, visible = values_of(data)
    assert isinstance(data.noise, AnyMechanismNoise)
    return [Report(values, visible, data.noise.mechanisms, np.zeros(values.shape, np.int64))]


def parts_of(published: list[Report]) -> list[Part]:
    """The parts of which there are statistics, each with a cell or more."""
    found: list[Part] = []
    for place, report in enumerate(published):
        kinds: dict[str, list[int]] = {}
        used = [i for i in range(len(report.mechanisms)) if (report.seen & (report.number == i)).any()]
        for i in used:
            each = report.mechanisms[i]
            kinds.setdefault(each.in_words if len(used) <= MOST_PARTS else each.name, []).append(i)
        for kind, numbers in kinds.items():
            absent = any(getattr(report.mechanisms[i], "absent", False) for i in numbers)
            found.append(Part(place, report.seen & np.isin(report.number, numbers), absent, kind))
    if len(found) == 1:
        return [found[0]._replace(name="")]
    if len(published) == 1:
        return found
    return [part._replace(name=f"report {part.report + 1}, {part.name}") for part in found]


def of_all(reports: list[np.ndarray], parts: list[Part]) -> dict[str, float]:
    """The statistics of all parts."""
    return {
        f"{name} ({part.name})" if part.name else name: value
        for part in parts
        for name, value in statistics(
            np.where(part.cells, reports[part.report], 0.0), part.cells, part.absent
        ).items()
    }


def of_parts(reports: list[np.ndarray], parts: list[Part]) -> np.ndarray:
    """The reports of all parts, one after another."""
    return np.concatenate([reports[part.report][part.cells] for part in parts])


def binned(reports: list[np.ndarray], parts: list[Part], edges: np.ndarray) -> np.ndarray:
    """How many reports are in each bin."""
    return histogram(places(of_parts(reports, parts), edges), np.arange(edges.size + 1))


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
