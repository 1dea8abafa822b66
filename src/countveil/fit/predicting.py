"""What a fit predicts: releases like the one fitted, true counts, and how probable counts and reports are."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from countveil.common.parameters import check_integer
from countveil.data.labels import Axis, in_order
from countveil.data.matrices import check_mask, check_whole_counts
from countveil.data.observations import Observations
from countveil.data.totals import refuse_totals
from countveil.fit.parameters import check_interval
from countveil.fit.predictive_checks import chances_of, made_alike, made_with, one_mechanism, report_of
from countveil.fit.reading import ENDS
from countveil.inference import posterior as posteriors
from countveil.inference import totals
from countveil.inference.predict import laws_of_counts, refuse_masked, simulated_counts, simulated_reports
from countveil.inference.progress import compiling_told, progress_bar
from countveil.laws.counts.given_reports import Cells, CountsGivenReports, Draw
from countveil.laws.counts.laws import law_of
from countveil.laws.counts.protocol import parameters_of_rows, rates_at
from countveil.laws.noise import TWO_SIDED_GEOMETRIC, AnyMechanismNoise

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

DRAWS_FOR_LAWS = 200  # of the posterior, evenly spread, that laws of counts and reports are averaged over
CELLS_AT_ONCE = 2**20
SWEEPS_FOR_TOTALS = 20  # of a table whose totals are known; see docs/protected-data.md
QUANTILE_ROUNDING = 1e-12  # of a sum of probabilities


def predict_reports(fit: "FactorizationEstimator", n: int, rng: np.random.Generator, X: Any = None) -> xr.DataArray:
    """n simulated releases like the one fitted, (release, and the data's axes).

    For posterior predictive checks. The noise is seeded, and protects nobody. Reports with two-sided geometric
    noise are truncated at zero, as releases may be: one below says no more. Where cells have several mechanisms,
    or counts several reports, a fit does not keep which: X says it, the reports of the fit's own cells, and of
    several reports there is an axis ``report`` before those of the data. Masked cells get reports as well. Counts
    without a report are NaN.

    Raises:
        TypeError, ValueError: as ``log_predictive``; n below one, rng not a Generator, or X not given where it has
            to be.
    """
    draws = drawn(fit, n, rng)
    tree, model, _ = fit._fitted()
    if X is not None and isinstance(fit._observed(X).noise, AnyMechanismNoise):
        return releases_alike(fit, draws, X, rng)
    if not one_mechanism(posteriors.noise_of(tree)[0]):
        raise ValueError(
            "X must be the fitted reports if they have several mechanisms, or if counts have several reports, because "
            f"a fit does not keep which cells have which, got {'none' if X is None else 'other reports'}"
        )
    every = np.arange(model.rows.shape[0])
    laws = [(rates, parameters_of_rows(model.likelihood, own, every)) for rates, own in draws]
    noise, level = posteriors.noise_of(tree)
    per_row = level.size == model.rows.shape[0]
    level = level.reshape(-1, 1) if per_row else level.reshape(model.rows.shape[0], -1)
    reports = simulated_reports(laws, noise, level, model.likelihood, rng, fit._reader.exposure_matrix)
    return along(fit, {"release": len(reports)}, reports, "reports")


def releases_alike(fit: "FactorizationEstimator", draws: list[Any], X: Any, rng: np.random.Generator) -> xr.DataArray:
    """Reports like those in X, by the mechanism of every cell."""
    matrix = fit._reader.data_matrix(fit._reader.own_data("X", X))
    made, likelihood = matrix.provenance.published, fit.model_.likelihood
    assert made is not None
    every, published = np.arange(fit._reader.matrix_shape[0]), made_with(made)

    def reports() -> Iterator[np.ndarray]:
        for (theta, phi), own in draws:
            rates = rates_at(theta, phi, fit._reader.exposure_matrix)
            counts = likelihood.sample(rates, rng, parameters_of_rows(likelihood, own, every))
            yield from (made_alike(report, counts, rng) for report in published)

    axes = {"release": len(draws)} | ({"report": len(published)} if len(published) > 1 else {})
    return along(fit, axes, reports(), "reports", np.nan)


def predict_counts(fit: "FactorizationEstimator", n: int, rng: np.random.Generator, X: Any = None) -> xr.DataArray:
    """n simulated tables of true counts, (table, and the data's axes), each at another draw of the posterior.

    With X, the reports of the fit's own cells, these are draws of the counts behind them: a cell's count given its
    report, and where it is masked in X given the model alone. Every table meets the totals that X has, as a Markov
    chain of 20 sweeps at its draw of the posterior (see ``countveil.sample_counts_given_totals``). Without X they
    are new counts like those, from the model in every cell.

    Raises:
        TypeError, ValueError: as ``log_predictive``; n below one, or rng not a Generator.
    """
    draws, given, data = drawn(fit, n, rng), given_reports(fit, X), data_of(fit, X)
    parts = [] if data is None else list(cells_of(fit, data, None))
    exposure = fit._reader.exposure_matrix
    cells = open_cells_of(data)
    tables = (met(simulated_counts(draw, given, parts, rng, exposure), draw, given, cells, rng) for draw in draws)
    show = fit.progress if data is not None and data.totals is not None else False
    with compiling_told(show), progress_bar(show, "tables") as bar:
        task = bar.add_task("predicting counts", total=n, score="")

        def told() -> Iterator[np.ndarray]:
            for made, table in enumerate(tables, 1):
                yield table
                bar.update(task, completed=made)

        return along(fit, {"table": n}, told(), "counts")


def count_intervals(
    fit: "FactorizationEstimator", X: Any = None, interval: float = 0.9, *, uncalibrated: bool = False
) -> xr.Dataset:
    """The mean and the median of every cell's true count, and an interval that holds it with this probability.

    The four variables, mean, median, lower and upper, are over the data's axes. They belong to the law that
    ``predict_counts`` draws from, given the reports in X or the model alone, averaged over up to 200 draws of the
    posterior. Quantiles are the least counts at which the law reaches their probability, so that the interval
    holds at least what it says. Where intervals are not calibrated: as in ``parts.members``.

    Raises:
        TypeError, ValueError: as ``log_predictive``; an interval that is not between 0 and 1.
    """
    check_interval(interval)
    found = np.zeros((4, *fit._reader.matrix_shape))
    for cells, laws in laws_of_cells(fit, X, modelled_matrix(fit)):
        found[:, cells.rows, cells.columns] = of_laws(laws, interval)
    names = "mean", "median", "lower", "upper"
    table = xr.Dataset(
        {
            name: over_data(fit, values if name == "mean" else values.astype(np.int64), name)
            for name, values in zip(names, found, strict=True)
        }
    )
    if not fit._reader.why_no_intervals:
        return table
    return table.rename(ENDS) if uncalibrated else table.drop_vars(list(ENDS))


def count_intervals_together(
    fits: "Sequence[FactorizationEstimator]", weights: np.ndarray, X: Any, within: float, uncalibrated: bool
) -> xr.Dataset:
    """``count_intervals`` of the weighted mean (F,) of the laws of several fits of the same cells.

    within is the probability of the intervals. The least count at which the mean reaches a level lies between those
    of the fits, and is found by halving.
    """
    tables = [fit.count_intervals(X, within, uncalibrated=True) for fit in fits]
    found = tables[0].rename(dict(zip(tables[0], ("mean", "median", *ENDS), strict=True)))
    means, *quantiles = (np.stack(own) for own in zip(*map(arrays_of, tables), strict=True))
    found["mean"] = found["mean"].copy(data=np.tensordot(weights, means, 1))
    counted, pairs = np.flatnonzero(weights > 0.0).tolist(), fits[0]._in_pairs
    for name, level, own in zip(("median", *ENDS), levels_of(within), quantiles, strict=True):
        least, most = own[counted].min(axis=0), own[counted].max(axis=0)
        while (unsettled := np.triu(least < most) if pairs else least < most).any():
            middle = np.where(unsettled, (least + most) // 2, 0)
            passed = [np.add(*fits[f]._count_probabilities(middle, X, unsettled)) for f in counted]
            reached = np.tensordot(weights[counted], passed, 1) + QUANTILE_ROUNDING >= level
            most[unsettled] = np.where(reached, middle[unsettled], most[unsettled])
            least[unsettled] = np.where(reached, least[unsettled], middle[unsettled] + 1)
        found[name] = found[name].copy(data=np.triu(most) + np.triu(most, 1).T if pairs else most)
    if not any(fit._reader.why_no_intervals for fit in fits):
        return found
    return found.rename(ENDS) if uncalibrated else found.drop_vars(list(ENDS))


def count_probabilities(
    fit: "FactorizationEstimator", counts: Any, X: Any = None, cells: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """(P(count < the true one), P(count = the true one)) in each cell, two arrays (cells,) in the data's order.

    The law is that of ``count_intervals``; counts are true counts over the data's axes, and cells is a mask of
    those to look at, all by default. ``evaluation.coverage`` is made of these.

    Raises:
        TypeError, ValueError: as ``log_predictive``; counts of another shape.
    """
    true, chosen = true_counts(fit, "counts", counts), chosen_cells(fit, cells)
    below, at = np.zeros(fit._reader.matrix_shape), np.zeros(fit._reader.matrix_shape)
    for found, laws in laws_of_cells(fit, X, chosen):
        place, each = np.arange(len(laws)), true[found.rows, found.columns]
        passed = np.cumsum(laws, axis=1)
        last = laws.shape[1] - 1  # beyond it there is next to nothing
        below[found.rows, found.columns] = np.where(each > 0, passed[place, np.clip(each - 1, 0, last)], 0.0)
        at[found.rows, found.columns] = np.where(each <= last, laws[place, np.minimum(each, last)], 0.0)
    return in_data_order(fit, below, chosen), in_data_order(fit, at, chosen)


def log_probabilities(fit: "FactorizationEstimator", counts: Any, cells: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """(log of the posterior average of P(count), count) in each cell, two arrays (cells,) in the data's order.

    By the model alone, whatever was reported. counts are true counts over the data's axes, and cells is a mask of
    those to look at, all by default. ``evaluation.predictive_log_score`` is made of these.

    Raises:
        ValueError: counts or cells of another shape or with other labels, or counts that are no counts.
    """
    true, chosen = true_counts(fit, "counts", counts), chosen_cells(fit, cells)
    likelihood, rows, exposure = fit.model_.likelihood, np.arange(len(true)), fit._reader.exposure_matrix
    total, n_draws = np.full(true.shape, -np.inf), 0
    for (theta, phi), parameters in fit._reader.draws():
        own = parameters_of_rows(likelihood, parameters, rows)
        np.logaddexp(total, likelihood.log_mass(true, rates_at(theta, phi, exposure), own), out=total)
        n_draws += 1
    return in_data_order(fit, total - np.log(n_draws), chosen), in_data_order(fit, true, chosen)


def report_probabilities(
    fit: "FactorizationEstimator", X: Any, cells: Any = None, report: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """(P(report < the one in X), P(report = it)) in each cell, two arrays (cells,) in the data's order.

    Reports with two-sided geometric noise are truncated at zero. Under other mechanisms, no report comes before all
    numbers, and a real number is met with probability 0; X may have other mechanisms than the fit's data, and where
    its counts have several reports, ``report`` says which is meant, from 0. Nothing is conditioned on: for reports
    that were hidden from the fit. cells is a mask of those to look at; all that are seen in X by default.

    Raises:
        TypeError, ValueError: as ``log_predictive``; a report that X does not have.
    """
    data, chosen, given = data_of(fit, X), mask_of(fit, cells), given_reports(fit, X)
    if isinstance(given.noise, AnyMechanismNoise) and data is not None:
        asked = report_of(data, report)
        if chosen is not None:
            refuse_masked(*np.nonzero(chosen & ~asked.seen))
        wanted = asked.seen if chosen is None else chosen
        before, same = chances_of(asked, laws_of_cells(fit, None, wanted))
        return in_data_order(fit, before, wanted), in_data_order(fit, same, wanted)
    if report != 0:
        raise ValueError(f"report must be 0 if each count has one report, got {report!r:.40}")
    below, at = np.zeros(fit._reader.matrix_shape), np.zeros(fit._reader.matrix_shape)
    seen = np.zeros(fit._reader.matrix_shape, dtype=bool)
    for found in cells_of(fit, data, chosen):
        if chosen is not None:
            refuse_masked(found.rows[found.reports < 0], found.columns[found.reports < 0])
        found = found.take(found.reports >= 0)
        sums, n_draws = np.zeros((2, len(found.rows))), 0
        for draw in fit._reader.even_draws(DRAWS_FOR_LAWS):
            given.add_report_probabilities(draw, found, *sums)
            n_draws += 1
        below[found.rows, found.columns], at[found.rows, found.columns] = sums / n_draws
        seen[found.rows, found.columns] = True
    return in_data_order(fit, below, seen), in_data_order(fit, at, seen)


def data_of(fit: "FactorizationEstimator", X: Any) -> Observations | None:
    """The reports of the fit's own cells, over the rows and columns of ``draws``; None without any."""
    return None if X is None else fit._reader.data_matrix(fit._reader.own_data("X", X))


def named_axes(fit: "FactorizationEstimator") -> tuple[list[Axis], tuple[int, ...]]:
    """The axes of the data with their labels, if they have any, and their lengths."""
    axes = fit._reader.axes
    named = [Axis(dim, [names] if names.dtype.kind in "OUT" else []) for dim, names in axes.items()]
    return named, tuple(len(names) for names in axes.values())


def true_counts(fit: "FactorizationEstimator", name: str, counts: Any) -> np.ndarray:
    """True counts over the rows and columns of ``draws``; raises ValueError."""
    named, shape = named_axes(fit)
    if np.ma.is_masked(counts):
        raise ValueError(f"{name} must have no masked entries, got some: leave them out with cells= instead")
    found = in_order(name, counts.toarray() if hasattr(counts, "toarray") else counts, named)
    values = np.asarray(found)
    if values.shape != shape:
        raise ValueError(f"{name} must have the shape of the fit's data {shape}, got {values.shape}")
    check_whole_counts(name, values)
    if fit._in_pairs and np.tril(values, -1).any() and (values != values.T).any():
        i, j = map(int, np.argwhere(values != values.T)[0])
        raise ValueError(
            f"{name} of an undirected network must be the same on both sides of the diagonal, or zero below it, "
            f"got different counts at ({i}, {j}) and ({j}, {i}): numpy.triu({name}) keeps those above it"
        )
    return fit._reader.as_matrix(values.astype(np.int64))


def mask_of(fit: "FactorizationEstimator", cells: Any) -> np.ndarray | None:
    """A mask of cells over the rows and columns of ``draws``; None for all."""
    named, shape = named_axes(fit)
    wanted = check_mask(in_order("cells", cells, named), shape, "cells", "the fit's data")
    if cells is not None and wanted is None:
        return np.zeros(fit._reader.matrix_shape, dtype=bool)
    if wanted is None:
        return None
    has = fit._modelled_cells()
    if has is not None:
        wanted = (wanted | wanted.T if fit._in_pairs else wanted) & has
    return fit._reader.as_matrix(wanted)


def chosen_cells(fit: "FactorizationEstimator", cells: Any) -> np.ndarray | None:
    """The same, but all that the model has where no mask is given."""
    return modelled_matrix(fit) if cells is None else mask_of(fit, cells)


def modelled_matrix(fit: "FactorizationEstimator") -> np.ndarray | None:
    """``_modelled_cells`` over the rows and columns of ``draws``."""
    has = fit._modelled_cells()
    return None if has is None else fit._reader.as_matrix(has)


def over_data(fit: "FactorizationEstimator", matrix: np.ndarray, name: str, left_out: float = 0) -> xr.DataArray:
    """A matrix of cells over the data's axes: a pair on both sides, ``left_out`` where there is no cell."""
    array, has = posteriors.rate_array(matrix, *fit._fitted(), name), fit._modelled_cells()
    return array if has is None else array.copy(data=on_both_sides(fit, array.to_numpy(), has, left_out))


def on_both_sides(fit: "FactorizationEstimator", values: np.ndarray, has: np.ndarray, left_out: float) -> np.ndarray:
    """Values over the data's axes: a pair on both sides, ``left_out`` where there is no cell."""
    rest = np.where(has.T, values.T, left_out) if fit._in_pairs else left_out
    return np.where(has, values, rest).astype(values.dtype)


def along(
    fit: "FactorizationEstimator", axes: dict[str, int], matrices: Iterable[np.ndarray], name: str, left_out: float = 0
) -> xr.DataArray:
    """Matrices of cells as ``over_data`` has them, after new axes of these lengths; labels, which are slow, once."""
    waiting, has = iter(matrices), fit._modelled_cells()
    first = next(waiting)
    labelled = over_data(fit, first, name, left_out)
    values = np.empty((*axes.values(), *labelled.shape), labelled.dtype)
    each = values.reshape(-1, *labelled.shape)
    each[0] = labelled
    for i, matrix in enumerate(waiting, 1):
        own = posteriors.over_output(matrix, fit.model_)
        each[i] = own if has is None else on_both_sides(fit, own, has, left_out)
    return xr.DataArray(values, dims=(*axes, *labelled.dims), coords=labelled.coords, name=name)


def cells_of(fit: "FactorizationEstimator", data: Observations | None, chosen: np.ndarray | None) -> Iterator[Cells]:
    """The chosen cells of each run of rows of about a million cells, with their reports."""
    (n_rows, n_columns), exposure = fit._reader.matrix_shape, fit._reader.exposure_matrix
    step = max(1, CELLS_AT_ONCE // n_columns)
    for first in range(0, n_rows, step):
        size = min(step, n_rows - first), n_columns
        row, column = np.nonzero(np.ones(size, bool) if chosen is None else chosen[first : first + step])
        row += first
        unknown = np.full(row.size, -1), np.zeros(row.size)
        reports, level = unknown if data is None else data.cells(row, column)
        at = None if exposure is None else exposure[row, column]
        yield Cells(row, column, reports, level, at)


def laws_of_cells(
    fit: "FactorizationEstimator", X: Any, chosen: np.ndarray | None
) -> Iterator[tuple[Cells, np.ndarray]]:
    """(some of the chosen cells, P(count = y | report) of each (m, Y)), until each has come once."""
    given, draws = given_reports(fit, X), partial(fit._reader.even_draws, DRAWS_FOR_LAWS)
    data = data_of(fit, X)
    refuse_totals(data)
    for cells in cells_of(fit, data, chosen):
        for numbers, laws in laws_of_counts(draws, given, cells):
            yield cells.take(numbers), laws


def given_reports(fit: "FactorizationEstimator", X: Any) -> CountsGivenReports:
    """The noise on the reports in X, or any where there are none, and the likelihood."""
    noise = TWO_SIDED_GEOMETRIC if X is None else fit._observed(X).noise
    return CountsGivenReports(noise, fit.model_.likelihood)


def in_data_order(fit: "FactorizationEstimator", matrix: np.ndarray, chosen: np.ndarray | None) -> np.ndarray:
    """The chosen entries of an array over ``draws``'s rows and columns, in the order of the data."""
    mask = np.ones(fit._reader.matrix_shape, dtype=bool) if chosen is None else chosen
    kept, values = (posteriors.rate_array(each, *fit._fitted()).to_numpy() for each in (mask, matrix))
    return np.asarray(values[kept])


def drawn(fit: "FactorizationEstimator", n: int, rng: np.random.Generator) -> list[Any]:
    """n draws, each with the likelihood's parameters; all before one is used twice."""
    check_integer("n", n, 1)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    size = posteriors.n_draws(fit.posterior)
    chosen = rng.choice(size, size=n, replace=n > size)
    draws = fit._reader.draws()
    wanted = set(chosen.tolist())
    found = {s: draw for s, draw in enumerate(draws) if s in wanted}
    return [found[int(s)] for s in chosen]


def arrays_of(table: xr.Dataset) -> list[np.ndarray]:
    """The variables of a table in their order, without labels."""
    return [own.to_numpy() for own in table.values()]


def levels_of(interval: float) -> tuple[float, float, float]:
    """The probabilities of the median and of the two ends of an interval."""
    return 0.5, (1.0 - interval) / 2.0, (1.0 + interval) / 2.0


def of_laws(laws: np.ndarray, interval: float) -> np.ndarray:
    """(4, m) the mean, the median and the two ends of an interval of counts with the laws (m, Y)."""
    reached = np.cumsum(laws, axis=1) + QUANTILE_ROUNDING
    quantiles = [np.argmax(reached >= level, axis=1) for level in levels_of(interval)]
    return np.stack([laws @ np.arange(laws.shape[1]), *quantiles])


def open_cells_of(data: Observations | None) -> totals.OpenCells | None:
    """The cells whose counts move to meet the totals of the data; None if these have none."""
    return None if data is None or data.totals is None else totals.open_cells(data)


def met(
    counts: np.ndarray, draw: Draw, given: CountsGivenReports, cells: totals.OpenCells | None, rng: np.random.Generator
) -> np.ndarray:
    """Counts (D, V) drawn given their reports, the open cells' moved to meet the totals, if there are any."""
    if cells is not None:
        matrices, parameters = draw
        law = law_of(given.noise, given.likelihood, parameters)
        totals.meet(counts, cells, law, matrices, rng, SWEEPS_FOR_TOTALS)
    return counts
