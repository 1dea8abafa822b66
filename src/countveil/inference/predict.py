"""What a fit says of reports: how likely they are, cell by cell, and what a new release would look like."""

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from countveil.inference.held_out import report_scores
from countveil.observations import Observations


def pointwise_log_likelihood(
    tree: xr.DataTree, observations: Observations, rows: np.ndarray, columns: np.ndarray
) -> xr.DataArray:
    """log P(max(report, 0) | theta, phi) of the given cells under every draw, (chain, draw, cell).

    Raises:
        ValueError: a cell that is masked in the observations.
    """
    reports, alpha = observations.cells(rows, columns)
    if (reports < 0).any():
        first = int(np.argmax(reports < 0))
        raise ValueError(
            f"cells must be seen in X, got one that is masked at index ({rows[first]}, {columns[first]})"
        )
    draws = tree["posterior"]
    theta, phi = draws["theta"].to_numpy(), draws["phi"].to_numpy()
    scores = np.empty((*theta.shape[:2], len(rows)))
    for c, s in np.ndindex(theta.shape[:2]):
        rate = np.einsum("ek,ke->e", theta[c, s, rows], phi[c, s][:, columns], dtype=np.float64)
        scores[c, s] = report_scores(reports, alpha, rate)
    coordinates = {
        "chain": draws["chain"].to_numpy(),
        "draw": draws["draw"].to_numpy(),
        "doc": ("cell", draws["doc"].to_numpy()[rows]),
        "word": ("cell", draws["word"].to_numpy()[columns]),
    }
    return xr.DataArray(scores, dims=("chain", "draw", "cell"), coords=coordinates, name="log_likelihood")


def log_predictive(scores: xr.DataArray) -> xr.DataArray:
    """log of the mean over draws of exp(scores), (cell,): the log predictive density of each cell."""
    values = scores.to_numpy().reshape(-1, scores.sizes["cell"])
    density = logsumexp(values, axis=0) - np.log(len(values))
    return scores.isel(chain=0, draw=0, drop=True).copy(data=density).rename("log_predictive")


def predict_reports(tree: xr.DataTree, n: int, rng: np.random.Generator) -> xr.DataArray:
    """n simulated releases of the fit's documents, truncated at zero, (release, doc, word): seeded, no privacy.

    Each takes a draw of the posterior, counts ~ Poisson(rate) and two-sided geometric noise at the level of
    its document or cell.
    """
    draws, alpha = tree["posterior"], tree["constant_data"]["alpha"].to_numpy()
    alpha = alpha if alpha.ndim == 2 else alpha[:, None]
    theta, phi = draws["theta"].to_numpy(), draws["phi"].to_numpy()
    chosen = rng.choice(theta.shape[0] * theta.shape[1], size=n, replace=n > theta.shape[0] * theta.shape[1])
    reports = np.empty((n, theta.shape[2], phi.shape[3]), dtype=np.int64)
    for i, draw in enumerate(chosen):
        c, s = divmod(int(draw), theta.shape[1])
        counts = rng.poisson(theta[c, s].astype(np.float64) @ phi[c, s])
        success = np.broadcast_to(1.0 - alpha, counts.shape)
        reports[i] = np.maximum(counts + rng.geometric(success) - rng.geometric(success), 0)
    coordinates = {"doc": draws["doc"].to_numpy(), "word": draws["word"].to_numpy()}
    return xr.DataArray(reports, dims=("release", "doc", "word"), coords=coordinates, name="reports")
