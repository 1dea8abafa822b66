"""An index that was left among the columns of a table: refused by its name, warned of by its values.

No message here shows a value: values may be counts, which are what must be protected.
"""

import re
import warnings
from collections.abc import Sequence
from typing import Any

REMEDY = "read the file with index_col=0 or use .set_index"

_SAVED = re.compile(r"Unnamed: 0(\.\d+)*(_level_0)?")  # what pandas calls a saved index, also one saved twice
_RESET = ("index", "level_0")  # what it calls one that was reset; real counts may have these names
_OF_IDS = re.compile(r"(?i:(.*[\W_])?(id|uid|uuid|guid|idx)|id[\W_].*)|.*[a-z](Id|ID)", re.DOTALL)
_ROWS_TO_JUDGE = 10  # fewer counts may increase from row to row, or be a run of numbers, by chance
_ROWS_FOR_A_NAME = 3  # fewer counts are all different too often, whatever their name


def check_columns(what: str, names: Sequence[Any], values: Any, numbered: bool, remedy: str = REMEDY) -> None:
    """Refuses a column with the name of an index, and warns of one that looks like an index or an id.

    ``values`` is an array of numbers or a sparse one, (rows, columns), ``names`` are its columns', ``numbered`` says
    that its rows have no labels.

    Raises:
        ValueError: a column with the name that pandas gives to an index; one called "index" or "level_0" only if it is
            the first, or all its values differ.
    """
    if values.dtype.kind not in "iuf":
        return
    tops = [name[0] if isinstance(name, tuple) else name for name in names]
    for place, name in enumerate(tops):
        if not isinstance(name, str):
            continue
        reset = name in _RESET and (not place or _differ(values, place))
        if reset or _SAVED.fullmatch(name):
            raise ValueError(
                f"{what} must not include the index, got a column called {name!r:.60}: {remedy}, or leave "
                + ("it out; if it holds counts, give it another name" if reset else "it out")
            )
    said = _said_of_first(values) if numbered else ""
    said = said or _said_of_runs(values) or _said_of_names(tops, values)
    if said:
        warnings.warn(f"{said}: if it names the rows of the {what}, {remedy}", stacklevel=3)


def _said_of_first(values: Any) -> str:
    """Of a first column that increases from row to row."""
    first = _column(values, 0)
    increases = len(first) >= _ROWS_TO_JUDGE and (first[1:] > first[:-1]).all() and _whole(first)
    return "the first column increases from row to row, as an index does" if increases else ""


def _said_of_runs(values: Any) -> str:
    """Of the first column that holds as many consecutive whole numbers as there are rows, in any order."""
    n_rows = values.shape[0]
    if n_rows < _ROWS_TO_JUDGE:
        return ""
    low, high = (_plain(end(axis=0)).astype(float) for end in (values.min, values.max))
    for place in (high == low + n_rows - 1).nonzero()[0].tolist():
        if _differ(values, place) and _whole(_column(values, place)):
            return f"column {place} holds consecutive numbers, each once, as an index does"
    return ""


def _said_of_names(names: Sequence[Any], values: Any) -> str:
    """Of the first column with the name of an id and a value of its own in each row."""
    for place, name in enumerate(names):
        if isinstance(name, str) and _OF_IDS.fullmatch(name) and _differ(values, place):
            return f"column {name!r:.60} has another value in each row, as an id does"
    return ""


def _whole(column: Any) -> bool:
    """Whether all values are whole numbers."""
    return all(float(value).is_integer() for value in column.tolist())


def _differ(values: Any, place: int) -> bool:
    """Whether all values of a column differ, and are enough to say so."""
    column = _column(values, place).tolist()
    return len(set(column)) == len(column) >= _ROWS_FOR_A_NAME


def _column(values: Any, place: int) -> Any:
    return _plain(values[:, [place]]).ravel()


def _plain(values: Any) -> Any:
    """A sparse array as a plain one with one axis; any other as it is."""
    return values.toarray().ravel() if hasattr(values, "toarray") else values
