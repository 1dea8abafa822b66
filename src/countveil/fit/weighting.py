"""The weights of a fit's chains: equal, or stacked by reports that are left out one at a time."""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from countveil.data.observations import Observations
from countveil.inference import posterior as posteriors
from countveil.inference.folds import cells_to_score, is_mirrored, scores_left_out, stacking_weights
from countveil.inference.matching import keep_weights
from countveil.inference.predict import Laws

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

DRAWS = 50  # of each chain at most, evenly spread, that cells are scored under


def weigh(fit: "FactorizationEstimator", data: Observations, seed: int) -> None:
    """Give a fit's chains stacking weights, by the data that it was made of in the matrix form of its model.

    Chains keep equal weights where there are no cells to score, or a score is not finite, or scoring is
    interrupted; a warning says so.
    """
    pairs = is_mirrored(data)
    likelihood = fit.model_.likelihood
    try:
        cells = cells_to_score(data, seed, pairs)
        scores = [scores_left_out(draws, data, likelihood, cells, pairs) for draws in draws_by_chain(fit)]
        weights = stacking_weights(np.stack(scores, axis=1))
    except (ValueError, KeyboardInterrupt) as error:
        why = "scoring them was interrupted" if isinstance(error, KeyboardInterrupt) else error
        warnings.warn(f"chains have equal weights: {why}", stacklevel=4)
        return
    keep_weights(fit.posterior, weights)


def weights_in_words(fit: "FactorizationEstimator") -> str:
    """The chains' weights as a list; empty where they are equal."""
    weights = fit.weights_
    return "" if np.ptp(weights) == 0.0 else ", ".join(f"{weight:.2f}" for weight in weights)


def draws_by_chain(fit: "FactorizationEstimator") -> Iterator[Laws]:
    """The draws of each chain, as ``FitReader.draws`` has them."""
    tree, model, layout = fit._fitted()
    draws = tree["posterior"].dataset
    kept = posteriors.evenly(draws.sizes["draw"], DRAWS)
    for chain in range(draws.sizes["chain"]):
        own = xr.DataTree.from_dict({"posterior": draws.isel(chain=[chain], draw=kept)})
        yield posteriors.matrix_draws(own, model, layout)
