"""Whether a fit's probabilities are right: randomised PIT values and coverage, of true counts and of hidden reports.

Where counts are whole numbers, no interval has a probability of exactly 90%. Randomised intervals do: with
V ~ Uniform(0, 1), u = P(Y < y) + V P(Y = y) is uniform if y has the law that the fit states, and an interval of
probability c holds y if |u - 1/2| <= c / 2. So a right model covers c by construction, and too narrow laws cover less.
Source: Czado, Gneiting and Held (2009).

The share is over the cells that ``cells`` chooses, all by default. In sparse tables most of those are zeros that every
model expects: choose the cells with positive reports as well. A choice that depends on what is conditioned on (the
reports, for counts given their reports) keeps the statement true. One that depends on the true counts does not: a right
model then covers another share.
"""

from typing import Any

import numpy as np


def randomised_pit(
    counts: Any, fit: Any, rng: np.random.Generator, X: Any = None, cells: Any = None
) -> np.ndarray:
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
    return randomised(fit.count_probabilities(counts, X, cells), rng)


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
    return randomised(fit.report_probabilities(X, cells, report), rng)


def coverage(
    counts: Any,
    fit: Any,
    rng: np.random.Generator,
    X: Any = None,
    interval: float = 0.9,
    cells: Any = None,
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
        raise ValueError("cells must choose at least one, got none")
    return float((np.abs(pit - 0.5) <= 0.5 * interval).mean())
