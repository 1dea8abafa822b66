"""Predictions of a fit: how likely reports are, cell by cell, simulated releases, and true counts given reports."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from countveil.data.observations import Observations
from countveil.inference.scoring import report_scores
from countveil.kernels.entries import Entries
from countveil.kernels.scoring import stored_rates
from countveil.laws.counts.given_reports import Cells, CountsGivenReports, Draw
from countveil.laws.counts.laws import law_of
from countveil.laws.counts.protocol import Likelihood, parameters_at, parameters_of_rows, rates_at
from countveil.laws.noise.protocol import Noise

Laws = Iterable[Draw]

PROBABILITIES_AT_ONCE = 2**21  # of counts of cells, held together
FEWEST_COUNTS = 16  # of a law; those that need more are computed again with twice as many


def pointwise_log_likelihood(
    draws: Laws, observations: Observations, likelihood: Likelihood, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """(S, cells) log P(max(report, 0)) of the given cells under every draw.

    Raises:
        ValueError: a cell that is masked in the observations.
    """
    (reports, level), noise = seen_cells(observations, rows, columns), observations.noise
    return np.stack(
        [
            report_scores(
                law_of(noise, likelihood, parameters),
                rows,
                columns,
                reports,
                level,
                np.einsum("ek,ek->e", theta[rows], phi[columns]) * observations.exposure_of(rows, columns),
            )
            for (theta, phi), parameters in draws
        ]
    )


def seen_cells(observations: Observations, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(max(report, 0), noise level) of the given cells; raises ValueError for one that is masked."""
    reports, level = observations.cells(rows, columns)
    refuse_masked(rows[reports < 0], columns[reports < 0])
    return reports, level


def refuse_masked(rows: np.ndarray, columns: np.ndarray) -> None:
    """Refuse cells that were asked for and are masked; raises ValueError."""
    if len(rows):
        raise ValueError(f"cells must not be masked in X, got a masked cell at index ({rows[0]}, {columns[0]})")


def log_predictive_of_cells(
    draws: Laws, observations: Observations, likelihood: Likelihood, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """(cells,) log of the mean over draws of P(max(report, 0)) in the given cells, with one draw in memory at a time.

    Raises:
        ValueError: a cell that is masked in the observations.
    """
    total, n_draws = np.full(rows.size, -np.inf), 0
    for scores in scores_of_draws(draws, observations, likelihood, rows, columns):
        np.logaddexp(total, scores, out=total)
        n_draws += 1
    return np.asarray(total - np.log(n_draws))


def scores_of_draws(
    draws: Laws, observations: Observations, likelihood: Likelihood, rows: np.ndarray, columns: np.ndarray
) -> Iterator[np.ndarray]:
    """(cells,) log P(max(report, 0)) in the given cells under every draw, one at a time, each in an array of its own.

    Raises:
        ValueError: a cell that is masked in the observations.
    """
    order = np.lexsort((columns, rows))
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    rows, columns = rows[order], columns[order]
    reports, level = seen_cells(observations, rows, columns)
    n_rows, noise = observations.shape[0], observations.noise
    indptr = np.searchsorted(rows, np.arange(n_rows + 1))
    unread = np.zeros(n_rows)
    entries = Entries(indptr, columns.astype(np.int32), np.zeros(rows.size, np.int16), np.empty(0), unread, unread)
    rates = np.empty(rows.size)
    exposure = observations.exposure_of(rows, columns)
    for (theta, phi), parameters in draws:
        stored_rates(entries, np.ascontiguousarray(theta), np.ascontiguousarray(phi), rates)
        law = law_of(noise, likelihood, parameters)
        yield report_scores(law, rows, columns, reports, level, rates * exposure)[back]


def log_predictive(scores: xr.DataArray, weights: np.ndarray | None = None) -> xr.DataArray:
    """log of the mean over draws of exp(scores), (cell,): the log predictive density of each cell.

    Draws of each chain have its weight (C,) together; by default all draws have the same one.
    """
    n_chains, n_draws = scores.sizes["chain"], scores.sizes["draw"]
    values = scores.to_numpy().reshape(n_chains * n_draws, -1)
    if weights is None:
        density = logsumexp(values, axis=0) - np.log(len(values))
    else:
        density = logsumexp(values, axis=0, b=np.repeat(weights / n_draws, n_draws)[:, None])
    return scores.isel(chain=0, draw=0, drop=True).copy(data=density).rename("log_predictive")


def simulated_reports(
    draws: Laws,
    noise: Noise,
    level: np.ndarray,
    likelihood: Likelihood,
    rng: np.random.Generator,
    exposure: np.ndarray | None = None,
) -> np.ndarray:
    """(n, D, V) a simulated release for every draw, truncated at zero; level broadcasts against (D, V).

    Parameters are those of the cells (see ``parameters_of_rows``), and so are exposures (D, V), if there are any. The
    noise is seeded and protects nobody.
    """
    counts = (likelihood.sample(rates_at(theta, phi, exposure), rng, parameters) for (theta, phi), parameters in draws)
    return np.stack([noise.sample(each, level, rng) for each in counts])


def simulated_counts(
    draw: Draw,
    given: CountsGivenReports,
    parts: Sequence[Cells],
    rng: np.random.Generator,
    exposure: np.ndarray | None = None,
) -> np.ndarray:
    """(D, V) true counts at one draw: given the reports of all cells in ``parts``, or from the model if there are none.

    Cells without a report, -1, are drawn from the model too. Cells have their exposures; without parts, all cells have
    those in ``exposure`` (D, V).
    """
    (theta, phi), parameters = draw
    counts, likelihood = np.empty((len(theta), len(phi)), dtype=np.int64), given.likelihood
    for cells in parts:
        counts[cells.rows, cells.columns] = counts_of_cells(draw, given, cells, rng)
    if not parts:
        every = parameters_of_rows(likelihood, parameters, np.arange(len(theta)))
        counts[:] = likelihood.sample(rates_at(theta, phi, exposure), rng, every)
    return counts


def counts_of_cells(draw: Draw, given: CountsGivenReports, cells: Cells, rng: np.random.Generator) -> np.ndarray:
    """(n,) true counts of some cells at one draw: given their reports, or from the model where a report is -1."""
    (theta, phi), parameters = draw
    counts, likelihood, hidden = (np.empty(len(cells.rows), dtype=np.int64), given.likelihood, cells.reports < 0)
    counts[~hidden] = given.draw(draw, cells.take(~hidden), rng)
    row, column = cells.rows[hidden], cells.columns[hidden]
    own = parameters_at(likelihood, parameters, row, column)
    rates = np.einsum("ek,ek->e", theta[row], phi[column]) * cells.arrays[4][hidden]
    counts[hidden] = likelihood.sample(rates, rng, own)
    return counts


def laws_of_counts(
    draws: Callable[[], Laws], given: CountsGivenReports, cells: Cells
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(numbers of some of the cells (m,), P(true count = y | report) (m, Y)), until each cell has come once.

    Averages over all draws, of which ``draws`` starts anew. Cells whose laws are about equally long come together, so
    that memory is bounded: no array has an axis for draws.
    """
    lengths = np.maximum(2 * given.near(cells), FEWEST_COUNTS)
    waiting = 2 ** np.ceil(np.log2(lengths)).astype(np.int64)
    while (waiting > 0).any():
        size = int(waiting[waiting > 0].min())
        numbers = np.flatnonzero(waiting == size)[: max(1, PROBABILITIES_AT_ONCE // size)]
        total, cut, n_draws = np.zeros((len(numbers), size)), np.zeros(len(numbers), dtype=bool), 0
        for draw in draws():
            given.add_laws(draw, cells.take(numbers), total, cut)
            n_draws += 1
        waiting[numbers] = np.where(cut, 2 * size, 0)
        if not cut.all():
            yield numbers[~cut], total[~cut] / n_draws
