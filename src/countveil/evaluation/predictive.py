"""The predictive log score: how probable a fit finds the true counts, where they are known."""

from typing import Any

import numpy as np

from countveil.likelihoods.protocol import parameters_of_rows


def predictive_log_score(counts: Any, fit: Any, cells: Any = None) -> float:
    """log of the posterior average of P(count | draw), summed over cells, per token; higher is better.

        sum_i log (mean over draws of P(y_i | draw)) / sum_i y_i

    Unlike ``log_score`` it is a proper score for every likelihood, since it sees how far counts spread around their
    rates (mathematics, equation 13.7). The work is that of one probability for every cell and draw.

    Args:
        counts: the true counts, over the axes of the fit's data.
        fit: any fitted model.
        cells: a mask of the cells to score, such as those that were hidden from the fit; all by default.

    Raises:
        ValueError: counts or cells of another shape, or no token among the cells.
    """
    shape = tuple(len(names) for names in fit.axes.values())
    true = np.asarray(counts.toarray() if hasattr(counts, "toarray") else counts)
    chosen = np.ones(shape, dtype=bool) if cells is None else np.asarray(cells, dtype=bool)
    for name, values in (("counts", true), ("cells", chosen)):
        if values.shape != shape:
            raise ValueError(f"{name} must have the shape of the fit's data {shape}, got {values.shape}")
    if not true[chosen].sum() > 0:
        raise ValueError("counts must hold at least one token among the cells, got none")
    kept, matrix = fit.as_matrix(chosen), fit.as_matrix(true)
    rows, n_draws = np.arange(len(matrix)), 0
    total = np.full(matrix.shape, -np.inf)
    for (theta, phi), parameters in zip(fit.matrix_draws(), fit.parameter_draws(), strict=False):
        own = parameters_of_rows(fit.model_.likelihood, parameters, rows)
        np.logaddexp(total, fit.model_.likelihood.log_mass(matrix, theta @ phi.T, own), out=total)
        n_draws += 1
    return float((total[kept] - np.log(n_draws)).sum() / matrix[kept].sum())
