"""The predictive log score: how probable a fit finds the true counts, where they are known."""

from typing import Any


def predictive_log_score(counts: Any, fit: Any, cells: Any = None) -> float:
    """log of the posterior average of P(count | draw), summed over cells, per token; higher is better.

        sum_i log (mean over draws of P(y_i | draw)) / sum_i y_i

    Unlike ``log_score`` it is a proper score for every likelihood, since it sees how far counts spread around their
    rates (mathematics, equation 13.7). The work is that of one probability for every cell and draw.

    Args:
        counts: the true counts, over the axes of the fit's data.
        fit: any fitted model, or a stack of them.
        cells: a mask of the cells to score, such as those that were hidden from the fit; all by default. Cells that a
            model leaves out, such as self-loops, are never scored, and a pair of an undirected network is one cell.

    Raises:
        ValueError: counts or cells of another shape or with other labels, counts that are no counts, or no token among
            the cells.
    """
    scores, true = fit.log_probabilities(counts, cells)
    if not true.sum() > 0:
        raise ValueError("counts must hold at least one token among the cells, got none")
    return float(scores.sum() / true.sum())
