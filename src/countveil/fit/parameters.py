"""Checks of what is passed to a fit: its data, labels, levels and intervals."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import check_array

from countveil.data.matrices import unwrap


class Level(NamedTuple):
    """A number, which the data check together with the reports; or None."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        check_level(name, value)


FORMATS = ("csr", "csc", "coo")  # sparse ones in which scikit-learn can find values that are not finite


def check_interval(interval: float) -> None:
    """Refuse what is not a probability strictly between 0 and 1."""
    number = isinstance(interval, int | float | np.number) and not isinstance(interval, bool)
    if not number or not 0.0 < interval < 1.0:
        raise ValueError(f"interval must be between 0 and 1, got {interval!r:.60}")


def check_labels_of_fit(
    rule: str, axes: Mapping[str, np.ndarray], labels: Sequence[Sequence[str] | None]
) -> None:
    """Refuse labels that differ from the fit's along an axis, or are in another order; axes without labels pass.

    Raises:
        ValueError: the rule, and the first label that differs.
    """
    for (dim, known), names in zip(axes.items(), labels, strict=True):
        if names is None or known.dtype.kind not in "OUT":
            continue
        for i, (fitted, given) in enumerate(zip(known.tolist(), names, strict=True)):
            if fitted != given:
                raise ValueError(f"{rule}, got {given!r} for {fitted!r} at {dim} {i}")


def check_level(name: str, value: Any) -> None:
    """Refuse what is neither a number nor None."""
    if value is None or (isinstance(value, int | float | np.number) and not isinstance(value, bool)):
        return
    raise ValueError(
        f"{name} must be a number in [0, 1) or None, got {type(value).__name__}: levels of rows, columns or cells go "
        "with the data, PrivatizedCounts(X, alpha)"
    )


def check_plain(X: Any, estimator: Any) -> dict[str, Any]:
    """Reports in a plain array, and the mask and labels they came with, by the rules of scikit-learn.

    Raises:
        TypeError, ValueError: as ``sklearn.utils.check_array``.
    """
    reports, mask, rows, columns = unwrap(X, None, None, None)
    if isinstance(X, pd.DataFrame) and X.isna().to_numpy().any():
        raise ValueError(
            "X must have no missing values, got NaN: mask cells without a report, "
            "PrivatizedCounts(X, alpha, mask=X.isna())"
        )
    if not (sp.issparse(reports) and reports.ndim != 2):
        reports = check_array(
            reports,
            accept_sparse=FORMATS,
            allow_nd=True,
            ensure_non_negative=estimator.__sklearn_tags__().input_tags.positive_only,
            estimator=estimator,
            input_name="X",
        )
    return {"reports": reports, "mask": mask, "row_labels": rows, "column_labels": columns}
