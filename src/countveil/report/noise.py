"""How much of the reports noise alone explains."""

from typing import NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.fit.base import FactorizationEstimator
from countveil.inference.posterior import evenly
from countveil.laws.counts.laws import positive_beyond_noise
from countveil.laws.counts.protocol import in_counts, parameters_of_rows, rates_at

CELLS_AT_ONCE = 2_000_000  # kept dense; of larger data a selection of rows is compared, to save memory
DRAWS_FOR_MEANS = 50  # of a selection of rows: more lower the Monte Carlo error and take longer


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


def noise_alone(fit: FactorizationEstimator, data: Observations) -> Noise:
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
