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
from countveil.inference.posterior import evenly, mechanism_kept, n_draws, totals_kept
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

# Releases simulated from a fit, and statistics by which they are compared with the real one.
#
# A verdict and a page are about the same releases, and so say the same.

CELLS = 200_000  # of evenly spread rows, at most
RELEASES = 40
MIN_DRAWS = 50  # of every chain of two or more, for a fit to speak against its data
DOUBT = 1e-3  # of the releases of a right model, at most, have a statistic that is not as it expects
SHOWN = Suppression, TopCoding, Thresholded
"""Mechanisms that may show every value of some range, so that only a fit says whether one is missing."""
MOST_KINDS = 3  # mechanisms of one report with statistics of their own; of more mechanisms, every kind has some
TENTH, TWICE = 0.1, 2.0  # of the mean of simulated releases, and of the largest report: what is slightly off
BINS = 12  # of reports, where there are more different ones
MOST_NAMED = 6  # statistics in a verdict: counts with many reports have many
SUM = "sum of the reports"
SPREAD = "spread of the {}s' sums (standard deviation)"
OUTSIDE = "not as the model expects"
NEAR = "near the end of what the model expects"
SLIGHT = "slightly off what the model expects"
WIDE = "smaller than the model expects, which makes intervals too wide"


class Stratum(NamedTuple):
    """Some cells of a report that have statistics of their own."""

    name: str
    cells: np.ndarray  # (D, V) booleans
    absent: bool  # whether some of these counts may have no report


class Part(NamedTuple):
    """Reports of some counts, one of each: (D, V), 0 where they are not seen."""

    values: np.ndarray
    seen: np.ndarray
    make: Callable[[np.ndarray, np.random.Generator], np.ndarray]  # reports of counts
    variance: np.ndarray  # (D, V) of noise that is added to counts and may be negative; NaN of other mechanisms
    gaps: list[tuple[str, np.ndarray, float, float]]  # mechanism, its cells, and a range with no report in it
    name: str
    strata: list[Stratum]


class Statistic(NamedTuple):
    """A number of the release, and the middle 95% of it in simulated releases."""

    name: str
    seen: float
    low: float
    high: float
    verdict: str

    @property
    def fails(self) -> bool:
        """Whether it speaks against the fit."""
        return self.verdict.startswith(OUTSIDE)

    @property
    def wide(self) -> bool:
        """Whether it is smaller than a fit expects whose intervals are too wide."""
        return self.verdict == WIDE

    def shown(self, value: float) -> str:
        """A value of this statistic: a share in per cent, anything else as a number."""
        if self.name.startswith("share"):
            return f"{100.0 * value:.2f}%"
        return f"{value:,.0f}" if value >= 1000.0 else f"{value:.3g}"


class Check(NamedTuple):
    """Statistics, and how many cells had each report, or one in each bin: labels (n,), seen, low and high (n,)."""

    selection: str  # of rows that were compared, such as "4 of 12"; empty for all
    exact: bool  # whether these are true counts, of which there is no release and no report
    releases: int
    statistics: list[Statistic]
    labels: list[str]
    seen: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def release(self) -> str:
        """What was simulated."""
        return "table" if self.exact else "release"

    @property
    def report(self) -> str:
        """What a cell has."""
        return "count" if self.exact else "report"


def rows_compared(data: Observations, cells: int | None = None) -> np.ndarray:
    """The rows that are compared: all, or evenly spread ones with about so many cells, or about ``CELLS``."""
    return evenly(data.shape[0], max(1, (cells or CELLS) // data.shape[1]))


def check(fit: Any, data: Observations) -> Check | None:
    """Compare a release, in the matrix form of the model, with the simulated ones; None if none can be simulated.

    What was masked is left out of both.
    """
    rows = rows_compared(data)
    taken = data.take(rows)
    parts = parts_of(taken)
    if not parts:
        return None
    real = [part.values for part in parts]
    bins = bins_of(reports_in(parts, real), isinstance(data.noise, AnyMechanismNoise))
    simulated = [
        (statistics(parts, reports), bins.tally(reports_in(parts, reports)))
        for _, reports in releases(fit, taken, rows, parts)
    ]
    found, exact = compared_by(statistics(parts, real), [each for each, _ in simulated]), data.kind == "exact"
    if exact:
        found = [each._replace(name=each.name.replace("report", "count")) for each in found]
    low, high = np.quantile([tally for _, tally in simulated], [0.025, 0.975], axis=0)
    kept = slice(0 if any(each.absent for part in parts for each in part.strata) else 1, None)
    tallies = (each[kept] for each in (bins.tally(reports_in(parts, real)), low, high))
    selection = f"{len(rows):,} of {data.shape[0]:,}" if len(rows) < data.shape[0] else ""
    return Check(selection, exact, len(simulated), found, bins.labels[kept], *tallies)


def releases(
    fit: Any, data: Observations, rows: np.ndarray, parts: list[Part]
) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """((D, V) expected counts, the reports (D, V) of every part) of some forty releases at evenly spread draws.

    ``data`` are those of these rows of the fit. Reports that are not seen are 0, and NaN where there is none.
    """
    rng, likelihood = np.random.default_rng([fit.seed_, len(rows)]), fit.model_.likelihood
    times = -(-RELEASES // n_draws(fit.posterior))  # of each draw, more than once if there are few
    for (theta, phi), parameters in fit._reader.even_draws(RELEASES):
        own = parameters_of_rows(likelihood, parameters, rows)
        rates = rates_at(theta[rows], phi, data.exposure)
        rate, share = in_counts(likelihood, theta, phi, parameters)
        mean = rates_at(rate[rows], share, data.exposure)
        for _ in range(times):
            counts = likelihood.sample(rates, rng, own).astype(np.int64)
            yield mean, [np.where(part.seen, part.make(counts, rng), 0.0) for part in parts]


def statistics(parts: list[Part], reports: list[np.ndarray]) -> dict[str, tuple[float, float]]:
    """Numbers that a good model gets right, and the smallest step of each, by name; reports (D, V) of every part."""
    several = sum(len(part.strata) for part in parts) > 1
    return {
        f"{name} ({stratum.name})" if several else name: found
        for part, values in zip(parts, reports, strict=True)
        for stratum in part.strata
        for name, found in of_cells(np.where(stratum.cells, values, 0.0), stratum).items()
    }


def of_cells(reports: np.ndarray, stratum: Stratum) -> dict[str, tuple[float, float]]:
    """``statistics`` of some cells: reports are (D, V), 0 in all others, NaN where there is none."""
    absent, there, n = np.isnan(reports), np.nan_to_num(reports), max(int(stratum.cells.sum()), 1)
    found = {"share of counts without a report": (absent.sum() / n, 1.0 / n)} if stratum.absent else {}
    found |= {
        "share of positive reports": ((there > 0).sum() / n, 1.0 / n),
        SUM: (there.sum(), 1.0),
        "largest report": (there.max(), 1.0),
        SPREAD.format("column"): (there.sum(axis=0).std(), 0.0),
    }
    if len(reports) > 1:
        found[SPREAD.format("row")] = there.sum(axis=1).std(), 0.0
    return {name: (float(value), step) for name, (value, step) in found.items()}


def compared_by(
    real: dict[str, tuple[float, float]], simulated: list[dict[str, tuple[float, float]]]
) -> list[Statistic]:
    """Every statistic of a release against those of simulated ones."""
    limit = stats.t.isf(0.5 * DOUBT / len(real), len(simulated) - 1)
    found = []
    for name, (value, step) in real.items():
        values = np.array([each[name][0] for each in simulated])
        low, high = map(float, np.quantile(values, [0.025, 0.975]))
        found.append(Statistic(name, value, low, high, in_words(name, value, values, (low, high), step, limit)))
    return found


def in_words(
    name: str, value: float, simulated: np.ndarray, ends: tuple[float, float], step: float, limit: float
) -> str:
    """Whether a statistic is within its interval, or as far from the mean as chance allows, and what follows if not.

    Maxima have long tails, so that their logarithms are compared. Intervals of a model whose releases vary more than
    the real one are too wide: they cover, which is why this speaks against no result. Nor does a slight difference,
    even if there are so many cells that it is not chance.
    """
    if ends[0] <= value <= ends[1]:
        return "as the model expects"
    side = "lower" if value < ends[0] else "higher"
    slight = TENTH * abs(simulated.mean())
    if name.startswith("largest"):
        slight = np.log(TWICE)
        step /= 1.0 + max(value, 0.0)
        value, simulated = np.log1p(max(value, 0.0)), np.log1p(np.maximum(simulated, 0.0))
    spread = simulated.var(ddof=1) * (1.0 + 1.0 / simulated.size)  # their mean is known only so well
    if abs(value - simulated.mean()) < limit * np.sqrt(spread + step**2):
        return f"{NEAR}: {side}"
    if abs(value - simulated.mean()) <= slight:
        return f"{SLIGHT}: {side}"
    return WIDE if name.startswith("spread") and side == "lower" else f"{OUTSIDE}: {side}"


def failed(found: list[Statistic], exact: bool = False) -> list[str]:
    """A sentence on the statistics that speak against the fit, of reports or of true counts; none where none does."""
    names = [each.name for each in found if each.fails]
    if len(names) > MOST_NAMED:
        names = [*names[: MOST_NAMED - 1], f"{len(names) - MOST_NAMED + 1} other statistics"]
    begin = "Simulated tables differ" if exact else "Simulated releases differ"
    return [f"{begin} from the real one in: {'; '.join(names)}."] if names else []


def able(fit: Any) -> bool:
    """Whether a fit has the intervals, chains and draws that it takes to speak against its data."""
    sizes = fit.posterior["posterior"].sizes
    return not fit._reader.why_no_intervals and sizes["chain"] > 1 and sizes["draw"] >= MIN_DRAWS


def has_check(fit: Any) -> bool:
    """Whether a fit was compared with its data when it ended, if its chains had settled; naive fits never are."""
    return able(fit) and mechanism_kept(fit.posterior) is not None and totals_kept(fit.posterior) is not None


def judged_with(fit: Any, found: Diagnostics, compared: Check | None) -> Diagnostics:
    """The diagnostics of a fit, with the check of a release if they were made without it."""
    return found if compared is None or has_check(fit) else found.doubted(failed(compared.statistics, compared.exact))


class Bins(NamedTuple):
    """Ranges of reports up to each edge; the first is of counts without a report, and the last has no end."""

    edges: np.ndarray
    labels: list[str]

    def tally(self, reports: np.ndarray) -> np.ndarray:
        """How many reports are in each bin."""
        place = 1 + np.minimum(np.searchsorted(self.edges, np.nan_to_num(reports)), max(self.edges.size - 1, 0))
        return np.bincount(np.where(np.isnan(reports), 0, place), minlength=self.edges.size + 1)


def bins_of(reports: np.ndarray, of_any: bool) -> Bins:
    """A bin for every report, or for some ranges of them; reports of two-sided geometric noise are cut at zero."""
    if not of_any:
        edges = np.arange(min(int(reports.max(initial=0.0)), BINS) + 1)
        labels = ["0 or less", *map(str, edges[1:])]
        labels[-1] += " or more" if len(edges) > BINS else ""
        return Bins(edges, ["none", *labels])
    edges = np.unique(reports[~np.isnan(reports)])
    if edges.size > BINS:
        edges = np.unique(np.quantile(edges, np.arange(1, BINS + 1) / BINS, method="higher"))
    return Bins(edges, ["none", *(f"{edge:,.3g}" for edge in edges)])


def reports_in(parts: list[Part], reports: list[np.ndarray]) -> np.ndarray:
    """The reports of all cells that have statistics, one after another."""
    return np.concatenate(
        [values[each.cells] for part, values in zip(parts, reports, strict=True) for each in part.strata]
    )


def parts_of(data: Observations) -> list[Part]:
    """Every report of the counts that can be simulated."""
    if isinstance(data.noise, AnyMechanismNoise):
        made = data.provenance.published
        published = [] if made is None else [checkable(report_of(data, i)) for i in range(len(made.layers))]
        parts = [part_of(each) for each in published]
        if len(parts) > 1:
            parts = [part._replace(strata=numbered(part.strata, i)) for i, part in enumerate(parts, start=1)]
        return [part for part in parts if part.strata]
    values = np.zeros(data.shape)
    values[data.row_numbers, data.columns] = data.reports
    level, noise, seen = np.broadcast_to(data.cell_level, data.shape), data.noise, values != MASKED
    return [
        Part(
            np.maximum(values, 0.0),
            seen,
            lambda counts, rng: noise.sample(counts, level, rng),
            np.full(data.shape, np.nan),
            [],
            "",
            [Stratum("", seen, False)],
        )
    ]


def numbered(strata: list[Stratum], report: int) -> list[Stratum]:
    """The same, where a count has several reports."""
    return [each._replace(name=f"report {report}, {each.name}") for each in strata]


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
        values,
        report.seen,
        lambda counts, rng: made_alike(report, counts, rng),
        variance,
        gaps,
        names,
        strata_of(report),
    )


def strata_of(report: Report) -> list[Stratum]:
    """The cells of every mechanism of a report, or of every kind of mechanism where there are many."""
    used = [i for i in range(len(report.mechanisms)) if (report.seen & (report.number == i)).any()]
    kinds: dict[str, list[int]] = {}
    for i in used:
        each = report.mechanisms[i]
        kinds.setdefault(each.in_words if len(used) <= MOST_KINDS else each.name, []).append(i)
    return [
        Stratum(
            kind,
            report.seen & np.isin(report.number, numbers),
            any(getattr(report.mechanisms[i], "absent", False) for i in numbers),
        )
        for kind, numbers in kinds.items()
    ]


def gap_of(mechanism: Mechanism, shown: np.ndarray) -> tuple[float, float]:
    """The range of reports that the mechanism shows and of which there are none: below the least, or above the most."""
    if isinstance(mechanism, TopCoding):
        return float(shown.max()) + 0.5, np.inf
    least = shown[shown > 0].min(initial=np.inf)
    return 0.5, (least - 0.5 if np.isfinite(least) else np.inf)


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
        below[where], at[where] = report_chances(found.mechanisms, found.number[where], values[where], weights)
    lowest = lossless(found) & (values == 0)
    return np.where(lowest, 0.0, below), np.where(lowest, below + at, at)


# What a verdict says of them, and of sums of counts.

LAPLACE = 0.5**0.5  # the scale of a Laplace variable with variance one
TABLES = 10  # of true counts, drawn given their reports
CAREFUL = 1.2  # times a quantile for sums of many counts, since sums of few are skewed
SLIGHT_SUM = 0.02  # of a sum: what is off by less changes no conclusion, and sums of reports alone are not off
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
        return before._replace(misfits=() if found is None else tuple(failed(found.statistics, exact=True)))
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
    if (np.abs(counts - alone) <= SLIGHT_SUM * alone)[far > 0.0].all():
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
