"""Draws of a table's counts given its reports, its rates, and exact totals of all rows and all columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from countveil.data.labels import Axis
from countveil.data.totals import groups_and_values
from countveil.kernels.crossing import sweep_crossing
from countveil.kernels.report_kernels import LEAST, MOST, UNBOUNDED

Whole = NDArray[np.int64]


def is_crossing(totals: Any) -> bool:
    """Whether these are two families over an axis each, and not one (axis or groups, values)."""
    return (
        isinstance(totals, tuple | list)
        and len(totals) == 2
        and all(isinstance(each, tuple | list) and len(each) == 2 for each in totals)
        and all(np.ndim(where) == 0 and np.ndim(values) == 1 for where, values in totals)
    )


def read_both(totals: Any, shape: tuple[int, ...], axes: Sequence[Axis] = ()) -> tuple[Whole, Whole]:
    """(totals of the rows, of the columns); raises ValueError for others than these, or where one is not known."""
    if len(shape) != 2:
        raise ValueError(f"totals of rows and columns must be of a table with two axes, got {len(shape)}")
    found = {}
    for where, values in totals:
        family = groups_and_values(where, values, shape, axes)
        if (family.group < 0).any():
            raise ValueError("totals of rows and columns must all be known, got NaN")
        found[int(where) % 2] = family.value
    if len(found) < 2:
        raise ValueError("totals must be over axis 0 and over axis 1, got the same axis twice")
    if found[0].sum() != found[1].sum():
        raise ValueError(
            f"totals of rows and of columns must have the same sum, got {found[1].sum()} and {found[0].sum()}"
        )
    return found[1], found[0]


def a_table(rows: Whole, columns: Whole, least: Whole, most: Whole) -> Whole:
    """(D, V) counts within these bounds that meet all totals: a vertex of all such tables, which is whole.

    Raises:
        ValueError: there is none.
    """
    (n, v), total = least.shape, int(rows.sum())
    i = np.arange(n * v)
    sums = csr_array((np.ones(2 * i.size), (np.r_[i // v, n + i % v], np.r_[i, i])), shape=(n + v, i.size))
    bounds = np.column_stack([least.ravel(), np.minimum(most.ravel(), total)])
    found = None
    if (bounds[:, 0] <= bounds[:, 1]).all():
        found = linprog(
            np.zeros(i.size), A_eq=sums, b_eq=np.r_[rows, columns], bounds=bounds, method="highs-ds"
        ).x
    table = np.zeros((n, v)) if found is None else np.round(found).reshape(n, v)
    met = (table.sum(axis=1) == rows).all() and (table.sum(axis=0) == columns).all()
    if not met or (table < least).any() or (table > most).any():
        raise ValueError("totals of rows and columns must be possible together, got ones that no table has")
    return table.astype(np.int64)


def in_cycles(is_open: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The open cells without those that are the only one of a row or column, again and again: these cannot move."""
    left = is_open.copy()
    while True:
        fewer = left & (left.sum(axis=1, keepdims=True) > 1) & (left.sum(axis=0) > 1)
        if (fewer == left).all():
            return left
        left = fewer


def graph_of(row: Whole, column: Whole) -> tuple[Whole, Whole, Whole]:
    """(end_i, start_v, edge_e) of cells in row-major order, as ``sweep_crossing`` takes them."""
    rows, columns = (np.unique(each, return_inverse=True)[1].reshape(-1) for each in (row, column))
    ends = np.column_stack([rows, rows.max(initial=-1) + 1 + columns]).astype(np.int64)
    vertex = np.concatenate([ends[:, 0], ends[:, 1]])
    order = np.argsort(vertex, kind="stable")
    start = np.searchsorted(vertex[order], np.arange(vertex.max(initial=-1) + 2))
    return ends, start.astype(np.int64), (order % max(1, len(row))).astype(np.int64)


def sample_both(
    kernels: Any, cells: tuple[Whole, Any, Any], both: tuple[Whole, Whole], rng: Any, sweeps: int
) -> Whole:
    """(D, V) counts after this many sweeps; cells is (code_i, rate_i, likelihood of cell 0, i)."""
    code, rate, likelihood = cells
    shape = both[0].size, both[1].size
    least, most = (kernels.whole_cj[code, bound].reshape(shape) for bound in (LEAST, MOST))
    count = a_table(*both, least, np.minimum(most, UNBOUNDED))
    moving = in_cycles(least < most)
    row, column = np.nonzero(moving)
    if row.size:
        member = np.flatnonzero(moving)
        own = np.zeros_like(member), member, code[member].astype(np.int64)
        found, graph = count.ravel()[member], graph_of(row, column)
        for _ in range(sweeps):
            sweep_crossing(kernels, likelihood, own, rate[member], graph, rng, found)
        count[row, column] = found
    return count
