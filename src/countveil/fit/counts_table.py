"""Tables of the true counts behind reports, cell by cell or summed over axes, with intervals."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from countveil.common.parameters import check_choice, check_integer
from countveil.data.observations import Observations
from countveil.fit.parameters import check_interval
from countveil.fit.predicting import (
    CELLS_AT_ONCE,
    DRAWS_FOR_LAWS,
    QUANTILE_ROUNDING,
    levels_of,
    met,
    of_laws,
    open_cells_of,
)
from countveil.fit.predictive_checks import estimates
from countveil.fit.reading import as_calibrated
from countveil.inference import posterior as posteriors
from countveil.inference.posterior import mechanism_kept
from countveil.inference.predict import counts_of_cells, laws_of_counts
from countveil.kernels.report_kernels import LEAST, MOST
from countveil.laws.counts.given_reports import Cells, CountsGivenReports
from countveil.laws.noise import AnyMechanismNoise
from countveil.privacy._memory import available_memory, in_words
from countveil.privacy.mechanisms import Composed, Mechanism, RandomRounding, Rounding, TopCoding

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

HIDDEN, NOISY, MASKED, EXACT = "hidden", "noisy", "masked", "exact"
KINDS: dict[type[Mechanism], str] = {RandomRounding: "rounded", Rounding: "rounded", TopCoding: "top-coded"}
"""What a count is called of whose report there is a number; NOISY by all other mechanisms."""
SUMMARY = "mean", "median", "lower", "upper"
DRAWS = 400  # of all counts together; the ends of 90% intervals are the 20th from below and from above
BYTES_PER_CELL = 160  # of a table, while it is made
BYTES_PER_DRAW = 8  # of a count in memory


class Listed(NamedTuple):
    """Some cells of the data with what was reported of them; all fields are of n cells."""

    places: np.ndarray  # (n, axes) along the axes of the data
    cells: Cells  # over the rows and columns of ``draws``
    reports: list[np.ndarray]  # one for each report of a count, NaN where there is none
    kind: np.ndarray
    exact: np.ndarray  # the count that the report determines, -1 where it determines none

    @property
    def is_open(self) -> np.ndarray:
        """Which counts are not determined by their reports."""
        return np.asarray(self.exact < 0)


def counts_table(
    fit: "FactorizationEstimator",
    X: Any,
    *,
    cells: str = HIDDEN,
    by: str | Sequence[str] | None = None,
    interval: float = 0.9,
    draws: int = DRAWS,
    uncalibrated: bool = False,
) -> pd.DataFrame:
    """The true counts that their reports leave open, a row for each, with intervals; or sums of counts.

    Columns: the axes of the data (labels, or numbers from 1), report (NaN where there is none; report_1, report_2,
    ... if counts have several), kind (hidden, rounded, top-coded, noisy, masked, exact), mean, median, lower,
    upper. If the data have an exposure or offsets, also exposure, and rate, rate_lower and rate_upper, which are
    mean, lower and upper per exposure. Axes have the names in the DataFrame or long table, otherwise those in
    ``axes``.

    Intervals are those of ``count_intervals``: the laws of single counts given their reports, averaged over up to
    200 draws of the posterior. If totals are known, they are quantiles of ``draws`` tables that meet all totals,
    as by ``predict_counts``. The same fit and data give the same table.

    Args:
        X: the reports of the fit's own cells.
        cells: "hidden" leaves out counts that are determined by their reports; "all" lists these too. Cells that
            the model leaves out, such as self-loops, are never listed; a pair of an undirected network is one.
        by: axes; the rows are then sums over all other axes, all of them, with the number of counts in each that
            are not exact (``hidden``) in place of report and kind. An empty list is one sum of all counts. Masked
            counts are part of their sums. Intervals are quantiles of sums of ``draws`` tables, so that they are
            joint. Where the verdict says that sums of many counts are slightly off, reports that have an unbiased
            estimate are added up instead. In an undirected network, a pair is part of the sums of both actors.
        interval: probability of the intervals.
        draws: how many tables are drawn, for sums and where totals are known.
        uncalibrated: as in ``parts.members``.

    Raises:
        TypeError, ValueError: as ``log_predictive``; an unknown axis, or an option out of range.
        MemoryError: more cells than fit in memory, as where every one of billions of counts is noisy, or the draws
            of as many.
    """
    check_choice("cells", cells, (HIDDEN, "all"))
    check_interval(interval)
    check_integer("draws", draws, 1)
    if by is not None and cells != HIDDEN:
        raise ValueError(f"cells must be left out with by, since sums are of all cells, got {cells!r}")
    data = fit._reader.own_data("X", X)
    names = names_of_axes(fit, data)
    axes = None if by is None else places_of_axes(by, names, tuple(fit._reader.axes))
    listed = listed_cells(fit, data, every=cells == "all")
    if axes is None:
        chosen = np.flatnonzero(listed.is_open | (cells == "all"))
        table = table_of_cells(fit, data, listed, chosen, names, interval, draws)
    else:
        table = table_of_sums(fit, data, listed, axes, names, interval, draws)
    if "rate" not in table:
        return as_calibrated(table, fit._reader.why_no_intervals, uncalibrated)
    rates = ["rate_lower", "rate_upper"]
    ends = table[rates].rename(columns=dict(zip(rates, ("lower", "upper"), strict=True)))
    ends = as_calibrated(ends, fit._reader.why_no_intervals, uncalibrated)
    table = as_calibrated(table.drop(columns=rates), fit._reader.why_no_intervals, uncalibrated)
    return table.join(ends.add_prefix("rate_"))


def names_of_axes(fit: "FactorizationEstimator", data: Observations) -> list[str]:
    """What the data call their axes; the fit's names where they do not, or where a column has that name."""
    axes = list(fit._reader.axes)
    given = [*data.provenance.axis_names, *[None] * len(axes)][: len(axes)]
    found = [axis if name is None else name for name, axis in zip(given, axes, strict=True)]
    taken = {"kind", "hidden", "exposure", "rate", *SUMMARY}
    clash = len(set(found)) < len(found) or any(name in taken or name.startswith(("report", "rate_")) for name in found)
    return axes if clash else found


def listed_cells(fit: "FactorizationEstimator", data: Observations, every: bool) -> Listed:
    """All cells of the model, or those that may be open, and others that are stored; others are zero."""
    shape = data.mode_shape
    if every or (data.noise.counts_positive and data.is_noisy):
        check_room(math.prod(shape) * BYTES_PER_CELL, f"{math.prod(shape):,} cells", "list sums of fewer axes")
        flat = np.arange(math.prod(shape))
    else:
        flat = data.row_numbers * data.shape[1] + data.columns
        check_room(flat.size * BYTES_PER_CELL, f"{flat.size:,} cells", "take some of the rows")
    has = fit._modelled_cells()
    flat = flat if has is None else flat[has.ravel()[flat]]
    rows, columns = np.divmod(flat, data.shape[1])
    codes, level = data.cells(rows, columns)
    places = np.stack(np.unravel_index(flat, shape), axis=1)
    masked = codes < 0
    layers = layers_of(data, rows, columns, codes, every)
    kind = np.full(flat.size, MASKED, dtype=object)
    for layer in reversed(layers):  # of several reports, the first one that was seen
        kind[layer.seen] = kinds_of(layer)[layer.seen]
    if isinstance(data.noise, AnyMechanismNoise):
        least, most = data.noise.kernel.whole_cj[np.maximum(codes, 0)][:, [LEAST, MOST]].T
        exact = np.where(~masked & (least == most), least, -1)
    else:
        exact = np.where(~masked & (level <= 0.0), codes, -1)
    kind[masked], kind[exact >= 0] = MASKED, EXACT
    exposure = None if data.exposure is None else data.exposure[rows, columns]
    cells = Cells(*fit._reader.matrix_places(places), codes, level, exposure)
    return Listed(places, cells, [layer.values for layer in layers], kind, exact)


def table_of_cells(
    fit: "FactorizationEstimator",
    data: Observations,
    listed: Listed,
    chosen: np.ndarray,
    names: list[str],
    within: float,
    n: int,
) -> pd.DataFrame:
    """A row for each of the chosen cells."""
    found = np.tile(listed.exact[chosen].astype(np.float64), (4, 1))
    unknown = listed.is_open[chosen]
    cells = listed.cells.take(chosen[unknown])
    if data.totals is None:
        given = CountsGivenReports(data.noise, fit.model_.likelihood)
        found[:, unknown] = of_single_counts(fit, given, cells, within)
    else:
        found[:, unknown] = of_draws(drawn_together(fit, data, cells, n), within)
    several = len(listed.reports) > 1
    reports = {f"report_{i}" if several else "report": own for i, own in enumerate(listed.reports, 1)}
    columns = labelled(fit, listed.places[chosen], names)
    columns |= {name: values[chosen] for name, values in (reports | {"kind": listed.kind}).items()}
    rows, places = listed.places[chosen, 0], listed.places[chosen, 1:]
    exposure = exposure_of(data, rows, np.ravel_multi_index(tuple(places.T), data.mode_shape[1:]))
    return table_of(columns, found, exposure)


def table_of_sums(
    fit: "FactorizationEstimator",
    data: Observations,
    listed: Listed,
    axes: list[int],
    names: list[str],
    within: float,
    n: int,
) -> pd.DataFrame:
    """A row for each sum over all axes but these."""
    sizes = [data.mode_shape[a] for a in axes]
    n_sums = math.prod(sizes)
    check_room(n_sums * (n * BYTES_PER_DRAW + BYTES_PER_CELL), f"{n} draws of {n_sums:,} sums", "take fewer draws")
    cell, group = members_of_sums(fit, listed.places, axes, sizes)
    unknown = listed.is_open[cell]

    def summed(values: np.ndarray, where: np.ndarray | slice) -> np.ndarray:
        return np.bincount(group[where], values, n_sums)

    known = summed(listed.exact[cell][~unknown], ~unknown)
    hidden = np.bincount(group[unknown], minlength=n_sums)
    opened = np.flatnonzero(listed.is_open)
    numbers = np.cumsum(listed.is_open) - 1
    tables = tables_drawn(fit, data, listed.cells.take(opened), n)
    mechanism = mechanism_kept(fit.posterior)
    if mechanism is None or not mechanism.sums:
        drawn = np.stack([known + summed(counts[numbers[cell[unknown]]], unknown) for counts in tables])
        found = of_draws(drawn.astype(np.int64), within)
    else:  # what has a report is estimated by it, and the rest by the fit
        seen = listed.is_open & (listed.cells.reports >= 0)
        reports, level = listed.cells.reports[seen], listed.cells.level[seen]
        estimate, variance = np.zeros((2, seen.size))
        estimate[seen] = estimates(data, reports, level)
        variance[seen] = data.noise.variance(reports, level)
        others = unknown & ~seen[cell]
        drawn = np.stack([summed(counts[numbers[cell[others]]], others) for counts in tables])
        mean = known + summed(estimate[cell], slice(None)) + drawn.mean(axis=0)
        error = np.sqrt(summed(variance[cell], slice(None)) + drawn.var(axis=0))
        found = np.maximum(of_normal(mean, error, within), known)
    exposure, modelled = exposure_of_sums(fit, data, axes, sizes)
    shown = np.flatnonzero(modelled)
    places = np.stack(np.unravel_index(shown, sizes), axis=1) if axes else np.zeros((shown.size, 0), int)
    columns = labelled(fit, places, [names[a] for a in axes], axes) | {"hidden": hidden[shown]}
    return table_of(columns, found[:, shown], None if exposure is None else exposure[shown])


def members_of_sums(
    fit: "FactorizationEstimator", places: np.ndarray, axes: list[int], sizes: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """(the cell of every member of a sum, its sum): a pair of actors is a member of two, where rows are actors."""
    cell = np.arange(len(places))
    if fit._in_pairs and len(axes) == 1:
        both = np.flatnonzero(places[:, 0] != places[:, 1])
        cell, places = np.concatenate([cell, both]), np.concatenate([places, places[both, ::-1]])
    if not axes:
        return cell, np.zeros(len(cell), dtype=np.int64)
    return cell, np.ravel_multi_index(tuple(places[:, axes].T), sizes)


def exposure_of_sums(
    fit: "FactorizationEstimator", data: Observations, axes: list[int], sizes: list[int]
) -> tuple[np.ndarray | None, np.ndarray]:
    """(the exposure of every sum, or None where the data have none; whether the model has a cell of it)."""
    n_sums, has = math.prod(sizes), fit._modelled_cells()
    with_exposure = has_exposure(data)
    if has is None and not with_exposure:
        return None, np.ones(n_sums, dtype=bool)
    exposure, cells = np.zeros(n_sums), np.zeros(n_sums, dtype=np.int64)
    for first in range(0, math.prod(data.mode_shape), CELLS_AT_ONCE):
        flat = np.arange(first, min(first + CELLS_AT_ONCE, math.prod(data.mode_shape)))
        flat = flat if has is None else flat[has.ravel()[flat]]
        places = np.stack(np.unravel_index(flat, data.mode_shape), axis=1)
        cell, group = members_of_sums(fit, places, axes, sizes)
        cells += np.bincount(group, minlength=n_sums)
        if with_exposure:
            own = exposure_of(data, *np.divmod(flat, data.shape[1]))
            assert own is not None
            exposure += np.bincount(group, own[cell], n_sums)
    return exposure if with_exposure else None, cells > 0


def labelled(
    fit: "FactorizationEstimator", places: np.ndarray, names: Sequence[str], axes: Sequence[int] | None = None
) -> dict[str, np.ndarray]:
    """The columns of axes: labels, or numbers from 1."""
    known = list(fit._reader.axes.values())
    chosen = known if axes is None else [known[a] for a in axes]
    return {
        name: labels[place] if labels.dtype.kind in "OUT" else place + 1
        for name, labels, place in zip(names, chosen, places.T, strict=True)
    }


def of_single_counts(
    fit: "FactorizationEstimator", given: CountsGivenReports, cells: Cells, within: float
) -> np.ndarray:
    """(4, n) mean, median, lower and upper by the law of each count given its report."""
    found = np.empty((4, len(cells.rows)))
    for first in range(0, len(cells.rows), CELLS_AT_ONCE):
        part = np.arange(first, min(first + CELLS_AT_ONCE, len(cells.rows)))
        laws = laws_of_counts(partial(fit._reader.even_draws, DRAWS_FOR_LAWS), given, cells.take(part))
        for numbers, each in laws:
            found[:, part[numbers]] = of_laws(each, within)
    return found


def drawn_together(fit: "FactorizationEstimator", data: Observations, cells: Cells, n: int) -> np.ndarray:
    """(n, cells) counts of the open cells in n tables."""
    size = len(cells.rows)
    check_room(2 * n * size * BYTES_PER_DRAW, f"{n} draws of {size:,} counts", "take fewer draws, or sums")
    found = np.empty((n, size), dtype=np.int64)
    for s, counts in enumerate(tables_drawn(fit, data, cells, n)):
        found[s] = counts
    return found


def tables_drawn(fit: "FactorizationEstimator", data: Observations, cells: Cells, n: int) -> Iterator[np.ndarray]:
    """n times (cells,) counts of all open cells, given all reports and totals, at evenly spread draws."""
    rng, given = np.random.default_rng(fit.seed_), CountsGivenReports(data.noise, fit.model_.likelihood)
    opened = None if data.totals is None else open_cells_of(fit._reader.data_matrix(data))
    different = min(n, posteriors.n_draws(fit.posterior))
    for s, draw in enumerate(fit._reader.even_draws(n)):
        for _ in range(n // different + (s < n % different)):
            counts = counts_of_cells(draw, given, cells, rng)
            if opened is not None:
                whole = np.zeros(fit._reader.matrix_shape, dtype=np.int64)
                whole[cells.rows, cells.columns] = counts
                counts = met(whole, draw, given, opened, rng)[cells.rows, cells.columns]
            yield counts


class Layer(NamedTuple):
    """One report of each of n counts."""

    values: np.ndarray  # NaN where a count has none
    seen: np.ndarray  # False where it was masked
    mechanisms: Sequence[Mechanism]
    number: np.ndarray  # of the mechanism of each


def layers_of(data: Observations, rows: np.ndarray, columns: np.ndarray, codes: np.ndarray, every: bool) -> list[Layer]:
    """Every report of these cells as it was published, NaN where a count has none or is masked."""
    masked = codes < 0
    if not isinstance(data.noise, AnyMechanismNoise):
        values = np.where(masked, np.nan, codes)
        if data.below_zero is not None:
            values -= np.asarray(data.below_zero[rows, columns]).ravel()
        return [Layer(values, ~masked, (), np.zeros(values.size, dtype=np.int64))]
    noise, made = data.noise, data.provenance.published
    if made is None or (noise.one_report and not every):  # a report of code 0 is not kept
        known = np.maximum(codes, 0)
        values = np.where(masked, np.nan, noise.value_c[known])
        return [Layer(values, ~masked, noise.mechanisms, noise.mechanism_c[known])]
    found = []
    for place in range(len(made.layers)):
        report = made.report(place)
        seen = report.seen[rows, columns] & ~masked
        values = np.where(seen, report.values[rows, columns], np.nan)
        found.append(Layer(values, seen, report.mechanisms, report.number[rows, columns]))
    return found


def kinds_of(layer: Layer) -> np.ndarray:
    """(n,) what each count is called by its report."""
    words = np.array([kind_by(each) for each in layer.mechanisms] or [NOISY], dtype=object)
    return np.where(np.isnan(layer.values), HIDDEN, words[layer.number])


def kind_by(mechanism: Mechanism) -> str:
    """What a count is called of whose report there is a number; of several rules, by the last that changes it."""
    steps = mechanism.steps if isinstance(mechanism, Composed) else (mechanism,)
    return next((KINDS[type(each)] for each in reversed(steps) if type(each) in KINDS), NOISY)


def has_exposure(data: Observations) -> bool:
    """Whether the data have offsets, or an exposure by cell."""
    offsets = (data.prior_scale_d != 1.0).any() or (data.prior_scale_v != 1.0).any()
    return bool(offsets or data.exposure is not None)


def exposure_of(data: Observations, rows: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
    """(n,) the exposure of each of these cells, times its offsets; None where the data have neither."""
    if not has_exposure(data):
        return None
    offsets = data.prior_scale_d[rows] * data.prior_scale_v[columns]
    return np.asarray(data.exposure_of(rows, columns) / offsets)


def table_of(columns: dict[str, np.ndarray], found: np.ndarray, exposure: np.ndarray | None) -> pd.DataFrame:
    """The columns, the summary (4, n) and, where there are exposures, rates."""
    columns = columns | {
        name: values if name == "mean" else values.astype(np.int64) for name, values in zip(SUMMARY, found, strict=True)
    }
    if exposure is not None:
        columns |= {"exposure": exposure, "rate": found[0] / exposure}
        columns |= {"rate_lower": found[2] / exposure, "rate_upper": found[3] / exposure}
    return pd.DataFrame(columns)


def of_draws(drawn: np.ndarray, interval: float) -> np.ndarray:
    """(4, m) mean, median, lower and upper of whole numbers (n, m), which are sorted in place.

    Quantiles are the least numbers at which the draws reach their probability.
    """
    drawn.sort(axis=0)
    n = len(drawn)
    places = [max(math.ceil(level * n - n * QUANTILE_ROUNDING) - 1, 0) for level in levels_of(interval)]
    return np.stack([drawn.mean(axis=0), *(drawn[place] for place in places)])


def of_normal(mean: np.ndarray, error: np.ndarray, interval: float) -> np.ndarray:
    """(4, m) mean, median, lower and upper of sums by estimates and standard errors, all but the mean whole."""
    middle, lower, upper = (mean + ndtri(level) * error for level in levels_of(interval))
    return np.stack([mean, np.rint(middle), np.floor(lower), np.ceil(upper)])


def places_of_axes(by: Any, names: Sequence[str], of_fit: Sequence[str]) -> list[int]:
    """The places of axes by the data's names or the fit's, as given; raises ValueError."""
    given = [by] if isinstance(by, str) else list(by)
    known = {**{name: a for a, name in enumerate(of_fit)}, **{name: a for a, name in enumerate(names)}}
    for name in given:
        if name not in known:
            what = ("rows", "columns") if len(of_fit) == 2 else [f"axis {a}" for a in range(len(of_fit))]
            listed = ", ".join(f"{each} ({place})" for each, place in zip(names, what, strict=True))
            raise ValueError(f"by (--sums) must name axes among {listed}, got {name!r:.60}")
    found = [known[name] for name in given]
    if len(set(found)) < len(found):
        raise ValueError(f"by must name each axis once, got {given}")
    return found


def check_room(n_bytes: int, what: str, remedy: str) -> None:
    """Refuse what does not fit in memory; raises MemoryError."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} must fit in memory: they need {in_words(n_bytes)}, {in_words(available)} are available; {remedy}"
        )
