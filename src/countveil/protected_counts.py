"""Counts under any mechanism: their reports read and checked, their laws given reports and rates, and simulations."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from countveil.data.beside import in_order_of
from countveil.distributions._checks import (
    FloatArray,
    check_dispersion,
    check_generator,
    check_positive,
    check_together,
    check_whole,
    refuse,
)
from countveil.noise.laws import law_of
from countveil.noise.report_law import ReportLaw
from countveil.noise.windows import Cells, Given, draw, given
from countveil.privacy.mechanisms import Elsewhere, Mechanism, TwoSidedGeometric

LARGEST = 2.0**53
"""Reports are below this in size, so that they are floats as well."""


def simulate_reports(counts: Any, mechanism: Mechanism, rng: np.random.Generator) -> NDArray[Any]:
    """Reports of these counts under a mechanism, seeded: for research alone, they protect nobody.

    P(report | count) is that of the mechanism; reports are floats, NaN where the mechanism leaves a count without one,
    and whole numbers of 64 bits where it does neither. The shape is that of the counts.

    Raises ValueError: counts not whole or negative, or beyond the rows of a table. TypeError: mechanism not one of
    ``countveil.mechanisms``, rng not a numpy.random.Generator.

    >>> import numpy as np
    >>> import countveil as cv
    >>> rng = np.random.default_rng(1)
    >>> simulate_reports([0, 3, 12], cv.mechanisms.Suppression(10), rng).tolist()
    [0.0, nan, 12.0]
    """
    check_mechanism(mechanism)
    y = check_whole("counts", counts.toarray() if sparse.issparse(counts) else counts)
    refuse("counts must be non-negative", y < 0, y)
    reports = np.asarray(law_of(mechanism).draw(y, check_generator(rng)))
    kept = isinstance(mechanism, Elsewhere) and (mechanism.real or mechanism.absent)
    return (reports if kept else reports.astype(np.int64))[()]


def sample(
    reports: Any,
    rate: ArrayLike,
    mechanism: Mechanism,
    dispersion: ArrayLike | None,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """One draw of every true count given its report; errors as in ``countveil.sample_true_counts``."""
    law, cells, shape = _read(reports, rate, mechanism, dispersion)
    with np.errstate(all="ignore"):
        return draw(law, cells, rng).reshape(shape)[()]


def expected(reports: Any, rate: ArrayLike, mechanism: Mechanism, dispersion: ArrayLike | None) -> Given:
    """Scores and expectations of true counts and bursts given their reports; errors likewise."""
    law, cells, shape = _read(reports, rate, mechanism, dispersion)
    with np.errstate(all="ignore"):
        found = given(law, cells)
    return Given(*(values.reshape(shape)[()] for values in found))


def check_mechanism(mechanism: Any) -> None:
    """Raises TypeError for anything but a mechanism."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be one of countveil.mechanisms, got {type(mechanism).__name__}")


def read_reports(reports: Any, mechanism: Mechanism) -> FloatArray:
    """Reports as floats, NaN where absent.

    Raises:
        TypeError: reports that are no numbers.
        ValueError: reports that the mechanism cannot have made: NaN where every count has a report, fractions where
            reports are whole numbers, and whatever else its law says.
    """
    if isinstance(reports, np.ma.MaskedArray) and np.ma.is_masked(reports):
        raise ValueError("reports must not hold masked entries: leave them out, or draw them from the model")
    found = _as_floats(reports.toarray() if sparse.issparse(reports) else reports)
    absent = np.isnan(found)
    if not getattr(mechanism, "absent", False):
        rule = f"reports must not be missing, because {mechanism.name} gives every count a report"
        refuse(f"{rule}: leave them out, or draw them from the model", absent, found)
    with np.errstate(invalid="ignore"):
        refuse("reports must be below 2^53 in size", ~absent & ~(np.abs(found) < LARGEST), found)
        if not getattr(mechanism, "real", False):
            refuse("reports must be whole numbers", ~absent & (np.floor(found) != found), found)
        for rule, broken in law_of(mechanism).broken(found):
            refuse(f"{rule}, under {mechanism!r}"[:200], ~absent & broken, found)
    return found


def _as_floats(reports: Any) -> FloatArray:
    """Numbers, with None, NaN and pandas' NA as NaN."""
    array = np.asarray(reports)
    if array.dtype.kind == "O":
        missing = np.asarray(pd.isna(array))
        kinds = {
            type(value).__name__
            for value in array[~missing]
            if not isinstance(value, int | float | np.number)
        }
        if kinds:
            raise TypeError(f"reports must be numbers, got {min(kinds)}")
        return np.where(missing, np.nan, array).astype(np.float64)
    if array.dtype.kind not in "buif":
        raise TypeError(f"reports must be numbers, got {type(reports).__name__} of dtype {array.dtype}")
    return array.astype(np.float64)


def _read(
    reports: Any, rate: ArrayLike, mechanism: Mechanism, dispersion: ArrayLike | None
) -> tuple[ReportLaw, Cells, tuple[int, ...]]:
    """The law, the entries in row-major order, and the shape that reports, rates and dispersions broadcast to."""
    check_mechanism(mechanism)
    r = read_reports(reports, mechanism)
    given_: dict[str, NDArray[Any]] = {
        "reports": r,
        "rate": check_positive("rate", in_order_of("rate", rate, reports)),
    }
    if dispersion is not None:
        given_["dispersion"] = check_dispersion(in_order_of("dispersion", dispersion, reports))
    shape = check_together(**given_)
    return law_of(mechanism), Cells(*(np.broadcast_to(a, shape).ravel() for a in given_.values())), shape


def alpha_of(mechanism: Mechanism | None) -> float | None:
    """alpha of two-sided geometric noise, whose laws are in closed form; None for any other mechanism."""
    if mechanism is None:
        return None
    check_mechanism(mechanism)
    return mechanism.alpha if isinstance(mechanism, TwoSidedGeometric) else None
