"""What a fit says of reports: how likely they are, cell by cell, and what a new release would look like."""

from collections.abc import Iterable

import numpy as np
import xarray as xr
from scipy.special import gammaln, logsumexp

from countveil.data.observations import Observations
from countveil.inference.held_out import report_scores

Matrices = Iterable[tuple[np.ndarray, np.ndarray]]  # (theta (D, K), phi (V, K)) of each draw


def pointwise_log_likelihood(
    draws: Matrices, observations: Observations, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """(S, cells) log P(max(report, 0)) of the given cells under every draw.

    Raises:
        ValueError: a cell that is masked in the observations.
    """
    reports, alpha = observations.cells(rows, columns)
    if (reports < 0).any():
        first = int(np.argmax(reports < 0))
        raise ValueError(
            f"cells must be seen in X, got one that is masked at index ({rows[first]}, {columns[first]})"
        )
    return np.stack(
        [
            report_scores(reports, alpha, np.einsum("ek,ek->e", theta[rows], phi[columns]))
            for theta, phi in draws
        ]
    )


def log_predictive(scores: xr.DataArray) -> xr.DataArray:
    """log of the mean over draws of exp(scores), (cell,): the log predictive density of each cell."""
    values = scores.to_numpy().reshape(-1, scores.sizes["cell"])
    density = logsumexp(values, axis=0) - np.log(len(values))
    return scores.isel(chain=0, draw=0, drop=True).copy(data=density).rename("log_predictive")


def simulated_reports(draws: Matrices, alpha: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n, D, V) a simulated release for every draw, truncated at zero: seeded, no privacy.

    Counts ~ Poisson(rate) and two-sided geometric noise; alpha broadcasts against (D, V).
    """
    found = []
    for theta, phi in draws:
        counts = rng.poisson(theta @ phi.T)
        success = np.broadcast_to(1.0 - alpha, counts.shape)
        found.append(np.maximum(counts + rng.geometric(success) - rng.geometric(success), 0))
    return np.stack(found)


def count_laws(reports: np.ndarray, rates: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(n, Y) P(true count = y | report), y = 0 to Y - 1, for n cells, averaged over the draws of their rates.

    reports and alpha are (n,), rates (S, n). P(y | r, rate) is proportional to rate^y / y! alpha^|max(r, 0) - y|,
    and Y is so large that less than 1e-9 is cut off (mathematics: sections 2 and 4).
    """
    kept = np.maximum(reports, 0)
    highest = float(max(kept.max(), np.ceil(rates.max())))
    counts = np.arange(int(highest + 10.0 * np.sqrt(highest + 1.0)) + 20)
    total = np.zeros((len(kept), counts.size))
    with np.errstate(divide="ignore"):
        log_alpha = np.where(alpha > 0.0, np.log(alpha), -1e300)  # at 0 the report is the count
    distance = log_alpha[:, None] * np.abs(kept[:, None] - counts)
    for rate in rates:
        weights = counts * np.log(np.maximum(rate, 1e-300))[:, None] - gammaln(counts + 1.0) + distance
        total += np.exp(weights - logsumexp(weights, axis=1, keepdims=True))
    return total / len(rates)
