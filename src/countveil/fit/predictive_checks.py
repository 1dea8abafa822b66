"""Whether reports look as the fit of them predicts: their sums by row and column, their spread, and missing values.

Reports are simulated at draws of the posterior, under the stated mechanism. What no counts can do under it contradicts
the mechanism; sums that differ may be the model's fault as well.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from countveil.data.mechanism_checks import SURPRISE, MechanismCheck, untested
from countveil.data.observations import Observations
from countveil.data.provenance import Published, Report
from countveil.fit.totals import SETTLED
from countveil.inference.diagnostics import Diagnostics
from countveil.inference.posterior import evenly
from countveil.inference.predict import counts_of_cells
from countveil.kernels.entries import MASKED
from countveil.kernels.law import unbiased
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.given_reports import Cells, CountsGivenReports
from countveil.laws.counts.protocol import in_counts, parameters_of_rows, rates_at
from countveil.laws.noise import AnyMechanismNoise
from countveil.laws.noise.additive import AdditiveLaw
from countveil.laws.noise.laws import law_of, report_chances
from countveil.privacy.mechanisms import Composed, Interval, Mechanism, Suppression, Thresholded, TopCoding

CELLS = 200_000  # of evenly spread rows, at most
RELEASES = 40  # simulated
LAPLACE = 0.5**0.5  # the scale of a Laplace variable with variance one
TABLES = 10  # of true counts, drawn given their reports
MIN_DRAWS = 50  # of every chain of two or more, for a fit to speak against its data
CAREFUL = 1.2  # times a quantile for sums of many counts, since sums of few are skewed
SLIGHT = 0.02  # of a sum: what is off by less changes no conclusion, and sums of reports alone are not off
FEW = 0.01  # of the rows, and of the columns: so many may be unlike all others
FAR = 5.0  # standard deviations by which a spread is too small or too large
MISSED = 3.5  # the same, by which the number of missing values is above none
SHOWN = Suppression, TopCoding, Thresholded
"""Mechanisms that may show every value of some range, so that only a fit says whether one is missing."""


class Part(NamedTuple):
    """Reports of some counts, one of each: (D, V), 0 where they are not seen."""

    values: np.ndarray
    seen: np.ndarray
    make: Callable[[np.ndarray, np.random.Generator], np.ndarray]  # reports of counts
    variance: (
        np.ndarray
    )  # (D, V) of noise that is added to counts and may be negative; NaN of other mechanisms
    gaps: list[tuple[str, np.ndarray, float, float]]  # mechanism, its cells, and a range with no report in it
    name: str


def check_against_fit(
    fit: Any, data: Observations, before: MechanismCheck | None, diagnosed: Callable[[], Diagnostics]
) -> MechanismCheck | None:
    """What reports say of their mechanism by themselves, and what a fit of them says besides.

    ``data`` are in the matrix form of the model. ``diagnosed`` computes the diagnostics of the fit, and is called only
    if they matter. A fit whose chains have not settled, or that has no intervals, is no evidence.
    """
    if before is None:
        return None
    sizes = fit.posterior["posterior"].sizes
    able = not fit._reader.why_no_intervals and sizes["chain"] > 1 and sizes["draw"] >= MIN_DRAWS
    if not able or diagnosed().state not in SETTLED:
        return before._replace(unchecked=(*before.unchecked, *unable(data)))
    chosen = evenly(data.shape[0], max(1, CELLS // data.shape[1]))
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
    rng, likelihood = np.random.default_rng([fit.seed_, len(rows)]), fit.model_.likelihood
    for (theta, phi), parameters in fit._reader.even_draws(RELEASES):
        own = parameters_of_rows(likelihood, parameters, rows)
        counts = likelihood.sample(rates_at(theta[rows], phi, data.exposure), rng, own).astype(np.int64)
        rate, share = in_counts(likelihood, theta, phi, parameters)
        mean = rates_at(rate[rows], share, data.exposure)
        for i, part in enumerate(parts):
            values = np.where(part.seen, part.make(counts, rng), 0.0)
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
    each = found, (), misfits + wrong, slight, outlying
    return MechanismCheck(*(tuple(dict.fromkeys(said)) for said in each))


def parts_of(data: Observations) -> list[Part]:
    """Every report of the counts."""
    if isinstance(data.noise, AnyMechanismNoise):
        made = data.provenance.published
        return (
            [] if made is None else [part_of(checkable(report_of(data, i))) for i in range(len(made.layers))]
        )
    values = np.zeros(data.shape)
    values[data.row_numbers, data.columns] = data.reports
    level, noise = np.broadcast_to(data.cell_level, data.shape), data.noise
    return [
        Part(
            np.maximum(values, 0.0),
            values != MASKED,
            lambda counts, rng: noise.sample(counts, level, rng),
            np.full(data.shape, np.nan),
            [],
            "",
        )
    ]


def part_of(report: Report) -> Part:
    """A report of the counts with its gaps."""
    values, variance = (
        np.where(report.seen, truncated(report.values, report), 0.0),
        np.full(report.seen.shape, np.nan),
    )
    gaps = []
    for number, each in enumerate(report.mechanisms):
        cells, law = report.seen & (report.number == number), law_of(each)
        shown = values[cells & ~np.isnan(values)]
        if not shown.size:
            continue
        if isinstance(law, AdditiveLaw) and not law.exact and not each.lossless_at_zero:
            variance[cells] = law.spread**2
        if isinstance(each, SHOWN) or (isinstance(each, Composed) and each.absent):
            gaps.append((each.in_words, cells, *gap_of(each, shown)))
    names = ", ".join(each.in_words for each in report.mechanisms)
    return Part(
        values, report.seen, lambda counts, rng: made_alike(report, counts, rng), variance, gaps, names
    )


def gap_of(mechanism: Mechanism, shown: np.ndarray) -> tuple[float, float]:
    """The range of reports that the mechanism shows and of which there are none: below the least, or above the most."""
    if isinstance(mechanism, TopCoding):
        return float(shown.max()) + 0.5, np.inf
    least = shown[shown > 0].min(initial=np.inf)
    return 0.5, (least - 0.5 if np.isfinite(least) else np.inf)


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


def report_of(data: Observations, place: int) -> Report:
    """The first report of every count of data in matrix form, or another one; raises ValueError where there is none."""
    made = data.provenance.published
    if made is None:
        raise ValueError(
            f"X must hold reports as they were published (cv.Reports), got data with {data.noise.mechanism}"
        )
    if not isinstance(place, int | np.integer) or not 0 <= place < len(made.layers):
        raise ValueError(f"report must be a number from 0 to {len(made.layers) - 1}, got {place!r:.40}")
    found = made.report(int(place))
    codes = np.zeros(data.shape, dtype=np.int64)
    codes[data.row_numbers, data.columns] = data.reports
    return found._replace(seen=found.seen & (codes >= 0))  # others may have been hidden since


def checkable(found: Report) -> Report:
    """The same without reports that a model cannot simulate: nothing states how ranges of counts were chosen."""
    others = np.array([isinstance(each, Interval) for each in found.mechanisms])
    return found._replace(seen=found.seen & ~others[found.number]) if others.any() else found


def made_alike(found: Report, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Reports (D, V) of these counts, each by the mechanism of its cell, as ``truncated``; NaN where there is none."""
    simulated, flat = np.empty(counts.size), counts.reshape(-1).astype(np.int64)
    for mechanism, cells in by_number(found):
        simulated[cells] = law_of(mechanism).draw(flat[cells], rng)
    return truncated(simulated.reshape(counts.shape), found)


def by_number(found: Report) -> Iterator[tuple[Mechanism, np.ndarray]]:
    """Every mechanism that some cell has, in their order, with the numbers of its cells in row-major order."""
    numbers = found.number.reshape(-1)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(found.mechanisms)))
    for mechanism, cells in zip(found.mechanisms, np.split(order, ends[:-1]), strict=True):
        if cells.size:
            yield mechanism, cells


def truncated(values: np.ndarray, found: Report) -> np.ndarray:
    """Reports (D, V), at zero where they are negative and that says as much, since releases may be cut there."""
    return np.where(lossless(found) & (values < 0), 0.0, values)


def lossless(found: Report) -> np.ndarray:
    """(D, V) whether a report that is not positive says as much as any other, as with two-sided geometric noise."""
    return np.array([each.lossless_at_zero for each in found.mechanisms])[found.number]


def made_with(made: Published) -> list[Report]:
    """Every report of all counts."""
    return [made.report(place) for place in range(len(made.layers))]


def one_mechanism(noise: Any) -> bool:
    """Whether reports can be simulated without knowing which cells have which mechanism."""
    return not isinstance(noise, AnyMechanismNoise) or (len(noise.mechanisms) == 1 and noise.one_report)


def chances_of(found: Report, laws: Iterator[tuple[Any, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """(D, V) P(report < the one seen), and P(report = it), of reports as ``truncated``.

    ``laws`` gives some cells at a time with the laws of their counts by the model alone, averaged over draws.
    """
    values = truncated(found.values, found)
    below, at = np.zeros(values.shape), np.zeros(values.shape)
    for cells, weights in laws:
        where = cells.rows, cells.columns
        below[where], at[where] = report_chances(
            found.mechanisms, found.number[where], values[where], weights
        )
    lowest = lossless(found) & (values == 0)
    return np.where(lowest, 0.0, below), np.where(lowest, below + at, at)
