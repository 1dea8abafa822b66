"""How bursty counts are: the dispersion that a fit with negative binomial counts found."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countveil.fit.parameters import check_interval
from countveil.fit.reading import as_calibrated
from countveil.inference import posterior as posteriors
from countveil.laws.counts import NegativeBinomial

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

COLUMNS = ["p", "lower", "upper", "variance_over_mean"]


def dispersions(
    fit: "FactorizationEstimator", interval: float = 0.9, *, uncalibrated: bool = False
) -> pd.DataFrame:
    """The posterior mean of p with its interval, and of 1 / (1 - p), the variance of counts over their mean.

    Columns: the axis or axes that p varies along, if any; p, lower, upper, variance_over_mean. Where intervals are
    not calibrated: as in ``parts.members``. A p that is known has no interval.

    Raises:
        ValueError: a fit with another likelihood, or an interval out of range.
    """
    check_interval(interval)
    tree, model, _ = fit._fitted()
    likelihood: Any = model.likelihood
    if likelihood.name != NegativeBinomial.name:
        raise ValueError(
            f"dispersions go with likelihood {NegativeBinomial.name!r}, got a fit with {likelihood.name!r}"
        )
    if not likelihood.parameter_axes:
        p = float(likelihood.dispersion)
        return pd.DataFrame({"p": [p], "variance_over_mean": [1.0 / (1.0 - p)]})
    posterior, draws = tree["posterior"].dataset, posteriors.flat_draws(tree, "p")
    dims = [str(dim) for dim in posterior["p"].dims if dim not in ("chain", "draw")]
    tail = (1.0 - interval) / 2.0
    lower, upper = np.quantile(draws, [tail, 1.0 - tail], axis=0)
    values = draws.mean(axis=0), lower, upper, (1.0 / (1.0 - draws)).mean(axis=0)
    labels = [posterior[dim].to_numpy() for dim in dims]
    places = np.indices([len(names) for names in labels]).reshape(len(labels), draws[0].size)
    found = {dim: names[place] for dim, names, place in zip(dims, labels, places, strict=True)}
    table = pd.DataFrame(found | dict(zip(COLUMNS, map(np.ravel, values), strict=True)))
    return as_calibrated(table, fit._reader.why_no_intervals, uncalibrated)
