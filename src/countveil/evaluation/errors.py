"""Errors, scores and calibration of rates and of whole fits against true counts that are known."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import gammaln, xlogy


def mean_absolute_error(rate: Any, counts: Any) -> float:
    """Mean over all cells of |rate - count|.

    rate and counts have one shape; counts may be sparse. On sparse counts it rewards predicting too little
    (all zeros score well), so report ``log_score`` and the zero predictor beside it.

    Raises:
        ValueError: shapes or labels that differ, empty arrays, or values that are negative or not finite.
    """
    rates, true = _checked(rate, counts)
    return float(np.abs(rates - true).mean())


def log_score(counts: Any, rate: Any) -> float:
    """Poisson log-likelihood of the true counts per word (unit of a count) under estimated rates; higher is better.

        sum_i (y_i log mu_i - mu_i - log y_i!) / sum_i y_i

    The factorials are included. They are the same for every method and put the score on the scale of a proper
    log-probability. A count above zero under a rate of zero scores -inf.

    Raises:
        ValueError: as ``mean_absolute_error``, and counts that are all zero.
    """
    rates, true = _checked(rate, counts)
    tokens = true.sum()
    if tokens == 0.0:
        raise ValueError("counts must include a positive one, got zeros only")
    return float((xlogy(true, rates) - rates - gammaln(true + 1.0)).sum() / tokens)


def poisson_divergence(true_rate: Any, rate: Any) -> float:
    """Mean over all cells of the Kullback-Leibler divergence from Poisson(true_rate) to Poisson(rate); lower is better.

        KL = mu log(mu / rate) - mu + rate,   mu the true rate

    Both have one shape and may be sparse. A rate of zero where the true rate is not gives infinity. Source: Schein
    et al. (2018), section 5.

    Raises:
        ValueError: as ``mean_absolute_error``.
    """
    rates, true = _checked(rate, true_rate)
    positive = true > 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(true, where=positive, out=np.zeros_like(true)) - np.log(
            rates, where=positive, out=np.zeros_like(true)
        )
    return float((true * logs - true + rates).mean())  # not log(true / rates): the ratio may underflow


def _checked(rate: Any, counts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rates and counts as float64 arrays of one shape."""
    rates = _values("rate", rate)
    true = _values("counts", counts)
    if rates.shape != true.shape:
        raise ValueError(f"rate must have the shape of counts {true.shape}, got {rates.shape}")
    _check_labels(_labels(rate), _labels(counts))
    if rates.size == 0:
        raise ValueError(f"counts must not be empty, got shape {true.shape}")
    return rates, true


def _check_labels(rate: list[list[str]], counts: list[list[str]]) -> None:
    """Refuse labels that differ, along the axes that have labels on both sides."""
    for axis, (found, wanted) in enumerate(zip(rate, counts, strict=False)):
        for i, (name, other) in enumerate(zip(found, wanted, strict=False)):
            if name != other:
                raise ValueError(
                    f"rate must have the labels of counts in their order, got {name!r} for {other!r} at entry {i} of "
                    f"axis {axis}"
                )


def _labels(values: Any) -> list[list[str]]:
    """The labels along each axis as text; empty where entries are numbered from 0, and for plain arrays."""
    labelled = isinstance(values, xr.DataArray)
    axes = [values.get_index(dim) for dim in values.dims] if labelled else getattr(values, "axes", ())
    named = [[str(label) for label in axis] for axis in axes]
    return [names if names != [str(i) for i in range(len(names))] else [] for names in named]


def _values(name: str, values: Any) -> np.ndarray:
    """Non-negative finite values as a dense float64 array."""
    array: Any = values.toarray() if hasattr(values, "toarray") else values
    dense = np.asarray(array, dtype=np.float64)
    bad = ~((dense >= 0.0) & (dense < np.inf))
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} must be non-negative and finite, got {dense[first]} at index {first}")
    return dense


def predictive_log_score(counts: Any, fit: Any, cells: Any = None) -> float:
    """log of the posterior average of P(count | draw), summed over cells, per word (unit); higher is better.

        sum_i log (mean over draws of P(y_i | draw)) / sum_i y_i

    Unlike ``log_score`` it is a proper score for every likelihood, since it sees how far counts spread around their
    rates (mathematics, equation 13.7). The work is that of one probability for every cell and draw.

    Args:
        counts: the true counts, over the axes of the fit's data.
        fit: any fitted model, or a stack of them.
        cells: a mask of the cells to score, such as those that were hidden from the fit; all by default. Cells that a
            model leaves out, such as self-loops, are never scored, and a pair of an undirected network is one cell.

    Raises:
        ValueError: counts or cells of another shape or with other labels, counts that are no counts, or no positive
            count among the cells.
    """
    scores, true = fit._log_probabilities(counts, cells)
    if not true.sum() > 0:
        raise ValueError("counts must include a positive one among the cells, got none")
    return float(scores.sum() / true.sum())


# Whether a fit's probabilities are right: randomised PIT values and coverage, of true counts and of hidden
# reports.
#
# Where counts are whole numbers, no interval has a probability of exactly 90%. Randomised intervals do: with
# V ~ Uniform(0, 1), u = P(Y < y) + V P(Y = y) is uniform if y has the law that the fit states, and an
# interval of probability c holds y if |u - 1/2| <= c / 2. So a right model covers c by construction, and too
# narrow laws cover less. Source: Czado, Gneiting and Held (2009).
#
# The share is over the cells that ``cells`` chooses, all by default. In sparse tables most of those are zeros
# that every model expects: choose the cells with positive reports as well. A choice that depends on what is
# conditioned on (the reports, for counts given their reports) keeps the statement true. One that depends on
# the true counts does not: a right model then covers another share.
def randomised_pit(counts: Any, fit: Any, rng: np.random.Generator, X: Any = None, cells: Any = None) -> np.ndarray:
    """(cells,) P(Y < y) + V P(Y = y) of the true counts y, in the order of the data: uniform if the fit is right.

    Args:
        counts: the true counts, over the axes of the fit's data.
        fit: any fitted model.
        rng: draws V.
        X: the reports of the fit's own cells. With them, the law of a count is given its report where it has one;
            without, it is the model's alone, as for counts that were hidden from the fit.
        cells: a mask of the cells to look at; all by default.

    Raises:
        TypeError, ValueError: counts or cells of another shape, or X that is not the fit's; rng not a Generator.
    """
    return randomised(fit._count_probabilities(counts, X, cells), rng)


def randomised_pit_of_reports(
    X: Any, fit: Any, rng: np.random.Generator, cells: Any = None, report: int = 0
) -> np.ndarray:
    """(cells,) the same of reports that were hidden from the fit; those with geometric noise are truncated at zero.

    X may be under any mechanism (see ``report_probabilities``); where its counts have several reports, ``report`` says
    which is meant, from 0. cells is a mask of the cells to look at: those that were hidden, which are seen in X.
    Reports that the fit has seen are predicted too well.

    Raises:
        TypeError, ValueError: as ``randomised_pit``, and a cell that is masked in X.
    """
    return randomised(fit._report_probabilities(X, cells, report), rng)


def coverage(
    counts: Any, fit: Any, rng: np.random.Generator, X: Any = None, interval: float = 0.9, cells: Any = None
) -> float:
    """The share of the chosen cells whose true count lies in its randomised central interval of this probability.

    Arguments and errors as for ``randomised_pit``; ValueError also for no cells, or an interval that is not between 0
    and 1.
    """
    return covered(randomised_pit(counts, fit, rng, X, cells), interval)


def coverage_of_reports(
    X: Any, fit: Any, rng: np.random.Generator, interval: float = 0.9, cells: Any = None, report: int = 0
) -> float:
    """The same share of reports that were hidden from the fit; arguments as for ``randomised_pit_of_reports``."""
    return covered(randomised_pit_of_reports(X, fit, rng, cells, report), interval)


def randomised(probabilities: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """(P(Y < y), P(Y = y)) as u = P(Y < y) + V P(Y = y)."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    below, at = probabilities
    return below + rng.random(below.shape) * at


def covered(pit: np.ndarray, interval: float) -> float:
    """The share of PIT values in the middle."""
    if not isinstance(interval, int | float | np.number) or not 0.0 < interval < 1.0:
        raise ValueError(f"interval must be between 0 and 1, got {interval!r:.60}")
    if not pit.size:
        raise ValueError("cells must select at least one cell, got none")
    return float((np.abs(pit - 0.5) <= 0.5 * interval).mean())
