"""Whether reports look as the fit of them predicts: their sums by row and column, their spread, and missing values.

Reports are simulated at draws of the posterior, under the stated mechanism. What no counts can do under it contradicts
the mechanism; sums that differ may be the model's fault as well.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from countveil.data.mechanism_checks import SURPRISE, MechanismCheck, untested
from countveil.data.observations import Observations
from countveil.fit.simulated_releases import (
    Part,
    able,
    check,
    compared_by,
    failed,
    parts_of,
    releases,
    rows_compared,
    statistics,
)
from countveil.fit.totals import SETTLED
from countveil.inference.diagnostics import Diagnostics
from countveil.inference.predict import counts_of_cells
from countveil.kernels.law import unbiased
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.given_reports import Cells, CountsGivenReports

LAPLACE = 0.5**0.5  # the scale of a Laplace variable with variance one
TABLES = 10  # of true counts, drawn given their reports
CAREFUL = 1.2  # times a quantile for sums of many counts, since sums of few are skewed
SLIGHT = 0.02  # of a sum: what is off by less changes no conclusion, and sums of reports alone are not off
FEW = 0.01  # of the rows, and of the columns: so many may be unlike all others
FAR = 5.0  # standard deviations by which a spread is too small or too large
MISSED = 3.5  # the same, by which the number of missing values is above none


def check_against_fit(
    fit: Any, data: Observations, before: MechanismCheck | None, diagnosed: Callable[[], Diagnostics]
) -> MechanismCheck | None:
    """What reports say of their mechanism by themselves, and what a fit of them says besides.

    ``data`` are in the matrix form of the model. ``diagnosed`` computes the diagnostics of the fit, and is called only
    if they matter. A fit whose chains have not settled, or that has no intervals, is no evidence.
    """
    if before is None:
        if data.kind != "exact":
            return None
        before = MechanismCheck()  # true counts have no mechanism, but the model may not explain them
    if not able(fit) or diagnosed().state not in SETTLED:
        return before._replace(unchecked=(*before.unchecked, *unable(data)))
    if data.kind == "exact":  # other sentences have numbers of the true counts, which are not kept
        found = check(fit, data)
        return before._replace(misfits=tuple(failed([] if found is None else found.statistics)))
    chosen = rows_compared(data)
    by_fit = compared(fit, data.take(chosen), chosen)
    return by_fit._replace(found=(*before.found, *by_fit.found), unchecked=before.unchecked)


def unable(data: Observations) -> list[str]:
    """What cannot be said without a fit that can be trusted."""
    names = dict.fromkeys(each.in_words for each in untested(data))
    several = f"{next(iter(names), '')}{' and the others' if len(names) > 1 else ''}"
    said = f"Whether {several} is right shows only in a fit by method gibbs whose chains have settled."
    return [said] if names else []


def compared(fit: Any, data: Observations, rows: np.ndarray) -> MechanismCheck:
    """What contradicts the mechanism, and what the fit does not explain, in the data of these rows of the fit."""
    parts = parts_of(data)
    margins: list[list[np.ndarray]] = [[] for _ in parts]
    spreads: list[list[np.ndarray]] = [[] for _ in parts]
    filled: list[list[list[int]]] = [[] for _ in parts]
    numbers = []
    for mean, reports in releases(fit, data, rows, parts):
        numbers.append(statistics(parts, reports))
        for i, (part, values) in enumerate(zip(parts, reports, strict=True)):
            margins[i].append(sums(values))
            spreads[i].append(np.array([spread(part, each, mean) for each in (part.values, values)]))
            filled[i].append([int(within(values, *gap[1:]).sum()) for gap in part.gaps])
    found, misfits, outlying = [], [], []
    for i, part in enumerate(parts):
        for gap, times in zip(part.gaps, np.array(filled[i]).T, strict=True):
            found += of_gap(gap, times)
        less, more = of_spread(part, np.array(spreads[i]))
        found += less
        wrong, few = of_margins(sums(part.values), np.array(margins[i]), rows)
        misfits += more + wrong
        outlying += few
    wrong, slight = of_counts(fit, data, rows)
    real = statistics(parts, [part.values for part in parts])
    wrong += failed(compared_by(real, numbers)) if real else []
    each = found, (), misfits + wrong, slight, outlying
    return MechanismCheck(*(tuple(dict.fromkeys(said)) for said in each))


def within(values: np.ndarray, cells: np.ndarray, low: float, high: float) -> np.ndarray:
    """Where the values of cells are in a range."""
    return cells & (values > low) & (values < high)


def of_gap(gap: tuple[str, np.ndarray, float, float], times: np.ndarray) -> list[str]:
    """By how many of the simulated reports are where none was seen, ``times`` (releases,)."""
    name, _, low, high = gap
    mean, deviation = float(times.mean()), float(np.sqrt(max(times.var(ddof=1), times.mean())))
    if mean <= MISSED * deviation or not times.all():
        return []
    where = f"above {low - 0.5:g}" if np.isinf(high) else f"below {high + 0.5:g}"
    return [
        (
            f"The reports contradict {name}: none that is shown is {where}, where this fit expects about {mean:,.0f}. "
            "Ask for the bound that was used."
        )
    ]


def spread(part: Part, values: np.ndarray, mean: np.ndarray) -> float:
    """How far reports with added noise are from the expected counts, squared, in all."""
    judged = part.seen & ~np.isnan(part.variance)
    return float(((values - mean)[judged] ** 2 / (part.variance + mean)[judged]).sum())


def of_spread(part: Part, pairs: np.ndarray) -> tuple[list[str], list[str]]:
    """(less spread than noise makes, more than the fit explains), by pairs (releases, 2) of seen and simulated ones."""
    deviation = float(pairs[:, 1].std(ddof=1))
    if not deviation > 0.0:
        return [], []
    distance = float((pairs[:, 0] - pairs[:, 1]).mean()) / deviation
    if distance < -FAR:
        said = "they are closer to their fit than noise of this size allows. Ask how they were protected."
        return [f"The reports contradict {part.name}: {said}"], []
    if distance > FAR:
        said = "counts vary more than the model allows, or there is more noise than is stated."
        return [], [f"The fit does not explain how far the reports are spread: {said}"]
    return [], []


def of_counts(fit: Any, data: Observations, rows: np.ndarray) -> tuple[list[str], list[str]]:
    """(misfits, slight ones) by the sum of counts given reports that is farthest from that of unbiased estimates.

    Let u(r) be the unbiased estimate of a count from its report alone (mathematics, section 12). If the fit is right,
    u(r) - E[y | r] has mean zero and at most the variance of u(r) given y (12.6). No rate enters: counts that a fit
    takes for noise show in their sums even where its rates have wide intervals. Sums of few reports have tails as long
    as those of the noise (Bernstein's inequality for sums of Laplace variables).
    """
    if not data.noise.unbiased or data.totals is not None:
        return [], []
    row, column = np.nonzero(np.ones(data.shape, dtype=bool))
    reports, level = data.cells(row, column)
    seen = reports >= 0
    row, column, reports, level = row[seen], column[seen], reports[seen], level[seen]
    exposure = None if data.exposure is None else data.exposure[row, column]
    cells = Cells(rows[row], column, reports, level, exposure)
    given = CountsGivenReports(data.noise, fit.model_.likelihood)
    rng, drawn, n = np.random.default_rng([fit.seed_, len(rows), 1]), np.zeros(row.size), 0
    for draw in fit._reader.even_draws(TABLES):
        drawn += counts_of_cells(draw, given, cells, rng)
        n += 1
    values = np.zeros((4, *data.shape))
    variance = data.noise.variance(reports, level)
    values[:, row, column] = drawn / n, estimates(data, reports, level), variance, variance**2
    counts, alone, square, fourth = map(sums, values)
    known = square > 0.0
    error = np.sqrt(np.where(known, square, 1.0))
    tail = np.log(2.0 * known.sum() / SURPRISE) if known.any() else 0.0
    longer = LAPLACE * tail * np.sqrt(fourth) / np.where(known, square, 1.0)
    far = np.where(known, np.abs(counts - alone) / error - longer - np.sqrt(longer**2 + 2.0 * tail), -np.inf)
    worst = int(np.argmax(far))
    if far[worst] <= 0.0:
        return [], []
    found = (
        f"the true counts of {sum_called(worst, far.size, rows)} add up to {counts[worst]:,.0f} by this fit, and to "
        f"{alone[worst]:,.0f} by the reports (standard error {error[worst]:,.0f})."
    )
    if (np.abs(counts - alone) <= SLIGHT * alone)[far > 0.0].all():
        return [], [f"Sums of many counts are slightly off: {found} Tables of sums use only the reports."]
    return [f"The fit does not explain the sums of its reports: {found} {another_likelihood(fit)}"], []


def estimates(data: Observations, reports: np.ndarray, level: np.ndarray) -> np.ndarray:
    """(n,) the unbiased estimates of counts from their reports."""
    known, place = np.unique(np.stack([reports, level]), axis=1, return_inverse=True)
    values = [unbiased(data.noise.kernel, int(report), float(each)) for report, each in known.T]
    return np.asarray(values, dtype=float)[np.ravel(place)]


def another_likelihood(fit: Any) -> str:
    """What may explain counts that a fit takes for noise, or noise that it takes for counts."""
    likelihood = fit.model_.likelihood
    if likelihood.name == POISSON.name:
        return f'Try likelihood="{NegativeBinomial.name}".'
    if getattr(fit, "directed", True) is False:
        return "More components may help."  # (i, j) and (j, i) have one dispersion
    other = "row" if "column" in likelihood.parameter_axes.values() else "column"
    return f'Try dispersion="{other}", or more components.'


def sum_called(number: int, size: int, rows: np.ndarray) -> str:
    """What is added up in one of ``sums`` of these rows."""
    if number == size - 1:
        return "all reports"
    named = f"row {rows[number]}" if number < len(rows) else f"column {number - len(rows)}"
    return f"{named}, counted from 0,"


def sums(values: np.ndarray) -> np.ndarray:
    """Sums by row, by column and in all."""
    there = np.nan_to_num(values)
    return np.concatenate([there.sum(axis=1), there.sum(axis=0), [there.sum()]])


def of_margins(seen: np.ndarray, simulated: np.ndarray, rows: np.ndarray) -> tuple[list[str], list[str]]:
    """(misfits, those of a few rows or columns) by standardised differences from sums of releases (releases, sums)."""
    releases = len(simulated)
    deviation = np.sqrt(simulated.var(axis=0, ddof=1) + 1.0)
    distance = np.abs(seen - simulated.mean(axis=0)) / deviation
    worst = int(np.argmax(distance))
    far = distance >= CAREFUL * stats.t.isf(0.5 * SURPRISE / seen.size, releases - 1)
    if not far[worst]:
        return [], []
    of = sum_called(worst, seen.size, rows)
    expects = f"{simulated[:, worst].mean():,.0f} (standard deviation {deviation[worst]:,.0f})"
    of_rows, of_columns, of_all = np.split(far, [len(rows), far.size - 1])
    if of_rows.mean() <= FEW and of_columns.mean() <= FEW and not of_all.any():
        others = int(far.sum()) - 1
        more = {0: "", 1: " One other row or column does not fit either."}.get(
            others, f" {others} other rows or columns do not fit either."
        )
        said = (
            f"{of[0].upper()}{of[1:]} does not fit: its reports add up to {seen[worst]:,.0f}, where the fit expects "
            f"{expects}.{more} Do not report {'their' if others else 'its'} rates."
        )
        return [], [said]
    said = (
        f"The fit does not explain the sums of its reports: that of {of} is {seen[worst]:,.0f}, where it expects "
        f"{expects}. The model or the stated mechanism is wrong."
    )
    return [said], []
