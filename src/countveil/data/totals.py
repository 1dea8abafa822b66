"""Exact totals over groups of counts, as they were published beside reports of the counts themselves."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countveil.data.beside import Axis, in_order
from countveil.kernels.report_kernels import LEAST, MOST, ReportKernels
from countveil.privacy.mechanisms import Mechanism

NONE = -1
"""The number of the total of a cell that is in none."""


class Totals(NamedTuple):
    """One family of totals: no count is in two of them."""

    group: NDArray[np.int32]  # of every cell, the number of its total, or NONE; of the shape of the cells
    value: NDArray[np.int64]  # (G,)

    def arranged(self, shape: Sequence[int], rows: tuple[int, ...], columns: tuple[int, ...]) -> "Totals":
        """The same for cells of this shape whose axes are put into rows and columns."""
        turned = self.group.reshape(shape).transpose(rows + columns)
        return self._replace(group=turned.reshape(math.prod(shape[a] for a in rows), -1))

    def of_rows(self, rows: NDArray[Any]) -> "Totals":
        """Those of some rows. A total that loses a cell is unknown."""
        size = self.value.size
        before, after = (
            np.bincount(group[group >= 0], minlength=size) for group in (self.group, self.group[rows])
        )
        lost = np.append(before != after, False)
        group = self.group[rows]
        group = np.where(lost[group], NONE, group).astype(np.int32)
        return Totals(group, np.where(lost[:-1], 0, self.value))


def read_totals(totals: Any, shape: tuple[int, ...], axes: Sequence[Axis] = ()) -> Totals:
    """The totals of a list of one (axis or groups, values) or (axis or groups, values, "exact"), for cells of a shape.

    Raises:
        TypeError: no list of pairs.
        ValueError: several families, a mechanism, and as ``groups_and_values``.
    """
    if not isinstance(totals, list | tuple) or not all(isinstance(each, list | tuple) for each in totals):
        raise TypeError(f"totals must be a list of (axis or groups, values), got {type(totals).__name__}")
    if len(totals) != 1:
        raise ValueError(f"totals must be of one family, whose groups do not overlap, got {len(totals)}")
    (family,) = totals
    if len(family) not in (2, 3):
        raise TypeError(f"totals must be pairs of axis or groups and values, got one of length {len(family)}")
    if len(family) == 3 and family[2] != "exact":
        got = repr(family[2]) if isinstance(family[2], Mechanism) else type(family[2]).__name__
        raise ValueError(f'totals must be "exact", since noisy ones cannot be used yet, got {got}')
    return groups_and_values(family[0], family[1], shape, axes)


def groups_and_values(where: Any, values: Any, shape: tuple[int, ...], axes: Sequence[Axis] = ()) -> Totals:
    """The totals over an axis or several, or over groups; NaN where one is unknown, which then says nothing.

    Raises:
        ValueError: an axis that is none, values of another shape, negative or fractional ones, groups that are no index
            of the values, a positive total of no cells.
    """
    if np.ndim(where) == 0 or isinstance(where, tuple):
        try:
            summed = np.lib.array_utils.normalize_axis_tuple(where, len(shape))
        except np.exceptions.AxisError as error:
            raise ValueError(f"axis of totals must be one of the {len(shape)} axes, got {where!r}") from error
        left = [axis for axis in range(len(shape)) if axis not in summed]
        if axes and all(axis < len(axes) for axis in left):
            values = in_order("totals", values, [axes[axis] for axis in left]) if left else values
        found = checked_values(values)
        kept = tuple(shape[axis] for axis in left)
        if found.shape != kept:
            raise ValueError(f"values of totals must have the shape {kept}, got {found.shape}")
        numbers = np.arange(found.size, dtype=np.int32)
        numbers = numbers.reshape([1 if a in summed else n for a, n in enumerate(shape)])
        group: NDArray[Any] = np.broadcast_to(numbers, shape)
    else:
        where = in_order("groups of totals", where, axes) if axes else where
        found, group = checked_values(in_order_of_groups(values)), checked_groups(where, shape)
        if found.ndim != 1:
            raise ValueError(f"values of totals must have one axis beside groups, got shape {found.shape}")
        outside = (group < NONE) | (group >= found.size)
        if outside.any():
            raise ValueError(
                f"groups of totals must be from -1 to {found.size - 1}, got {group[outside].flat[0]}"
            )
    found = found.ravel()
    unknown = np.append(np.isnan(found), False)
    if unknown.any():
        group = np.where(unknown[group], NONE, group)
    value = np.where(unknown[:-1], 0.0, found).astype(np.int64)
    empty = np.bincount(group[group >= 0].ravel(), minlength=value.size) == 0
    if (value[empty] > 0).any():
        g = int(np.flatnonzero(empty & (value > 0))[0])
        raise ValueError(f"total {g} must be 0, since no cell is in it, got {value[g]}")
    return Totals(np.ascontiguousarray(group, dtype=np.int32), value)


def in_order_of_groups(values: Any) -> Any:
    """Totals as they are; raises ValueError for a Series that numbers them in another way than from 0 on."""
    if isinstance(values, pd.Series) and pd.api.types.is_integer_dtype(values.index.dtype):
        odd = np.flatnonzero(values.index.to_numpy() != np.arange(len(values)))
        if odd.size:
            raise ValueError(
                f"values of totals must be in the order of the groups' numbers, got {values.index[odd[0]]} at place "
                f"{odd[0]}"
            )
    return values


def checked_values(values: Any) -> NDArray[np.float64]:
    """Totals as floats; raises ValueError for values that no total has."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"values of totals must be whole numbers or NaN, got {type(values).__name__}"
        ) from error
    seen = found[~np.isnan(found)]
    if (seen < 0).any():
        raise ValueError(f"values of totals must be non-negative, got {seen.min():g}")
    if not (np.isfinite(seen) & (seen == np.floor(seen)) & (seen < 2.0**53)).all():
        raise ValueError("values of totals must be whole numbers or NaN, got others")
    return found


def checked_groups(groups: Any, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Groups as whole numbers; raises ValueError for others, or another shape."""
    found = np.asarray(groups)
    if found.shape != shape:
        raise ValueError(f"groups of totals must have the shape {shape}, got {found.shape}")
    if found.dtype.kind not in "iu" and not (found.dtype.kind == "f" and (found == np.floor(found)).all()):
        raise ValueError(f"groups of totals must be whole numbers, got type {found.dtype}")
    return found.astype(np.int64)


def refuse_totals(data: Any) -> None:
    """Raises ValueError for data with totals, where laws of single counts would ignore them."""
    if data is not None and data.totals is not None:
        raise ValueError(
            "X must have no totals where laws are of single counts, got some: use quantiles of predict_counts"
        )


def bounds_of(kernels: ReportKernels, code: Any, group: Any, size: int) -> tuple[Any, Any]:
    """(the least, the greatest) sum of each group, as the reports of its cells say; cells in none are left out."""
    inside = group >= 0
    least, most = (kernels.whole_cj[code[inside], column].astype(float) for column in (LEAST, MOST))
    low, high = (np.bincount(group[inside], bounds, minlength=size) for bounds in (least, most))
    return low, high


def check_possible(low: Any, high: Any, value: Any, needed: Any = True) -> None:
    """Refuse totals outside these bounds; raises ValueError that names the first."""
    wrong = np.flatnonzero(needed & ((value < low) | (value > high)))
    if wrong.size:
        g = wrong[0]
        upper = f"{high[g]:.0f}" if high[g] < 2.0**60 else "any number"
        raise ValueError(
            f"total {g} must be between {low[g]:.0f} and {upper}, as its reports say, got {value[g]}"
        )
