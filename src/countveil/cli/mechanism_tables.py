"""A file with a mechanism in each row, for tables in which it goes by the value of a column."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countveil.cli.mechanism_options import KINDS, stated_mechanism
from countveil.data.tables.margins import SIDES
from countveil.data.tables.published import read_frame
from countveil.privacy.mechanisms import Mechanism

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
PARAMETERS = sorted({name for _, names in KINDS.values() for name in names} - {"probabilities"})
"""All that fit into a cell; a table of probabilities is in a file of its own."""
HIDES_ZERO = "hides-zero"
FROM, TO = " from", " to"


class MechanismTable:
    """Mechanisms by the value of one column: ``by`` is its name."""

    def __init__(self, path: Path) -> None:
        """Read a .csv or .tsv with a column ``mechanism``, columns of parameters, and values, or ends of ranges.

        Values are in a column called as that of the table; ranges, with both ends, in two, "date from" and "date to"
        for a column "date", of which an empty cell is no end.

        Raises:
            FileNotFoundError, ValueError: a file that cannot be read, other columns, or what is no mechanism.
        """
        if path.suffix.lower() not in (".csv", ".tsv"):
            raise ValueError(f"{path} must be a .csv or .tsv with a mechanism in each row")
        frame = read_frame(path).fillna("")
        frame.columns = pd.Index([str(name).strip() for name in frame.columns])
        keys = [name for name in frame.columns if name not in ("mechanism", HIDES_ZERO, *PARAMETERS)]
        self.path, self.ranged = path, len(keys) == 2
        self.by = keys[0].removesuffix(FROM) if self.ranged else keys[0] if keys else ""
        wanted = [self.by + FROM, self.by + TO] if self.ranged else [self.by]
        if keys != wanted or not self.by or len(set(frame.columns)) < len(frame.columns):
            raise ValueError(
                f"{path} must have one column beside mechanism and parameters, the values of a column, or two, such as "
                f"'date from' and 'date to', got {str(keys)[:200]}"
            )
        cells = [{name: str(cell).strip() for name, cell in row.items()} for row in frame.to_dict("records")]
        self.rows = [(tuple(row[key] for key in keys), self._mechanism(row)) for row in cells]

    def _mechanism(self, row: dict[str, str]) -> Mechanism:
        given = {name: row.get(name) or None for name in PARAMETERS}
        if row.get(HIDES_ZERO, "") not in ("", "yes", "no"):
            raise ValueError(f"{self.path} must have yes, no or nothing as {HIDES_ZERO}, got others")
        try:
            return stated_mechanism(row.get("mechanism") or None, row.get(HIDES_ZERO) == "yes", given)
        except ValueError as error:
            said = " ".join(str(error).split())[:300]
            raise ValueError(f"{self.path} must state mechanisms as options do: {said}") from error

    def of(self, values: Sequence[str]) -> dict[str, Mechanism]:
        """The mechanism of every value.

        Raises:
            ValueError: a value with none, or with several; a range whose order as text is not that of its dates.
        """
        ends = [end for keys, _ in self.rows for end in keys if end]
        numeric = self.ranged and all(NUMBER.fullmatch(text) for text in (*ends, *values))
        if self.ranged and not numeric:
            self._check_order((*ends, *values))
        found = {}
        for value in dict.fromkeys(values):
            own = [each for keys, each in self.rows if self._holds(keys, value, numeric)]
            if len(own) != 1:
                raise ValueError(
                    f"{self.path} must have one mechanism for every {self.by!r:.60}, got {len(own)} for {value!r:.60}"
                )
            found[value] = own[0]
        return found

    def of_sides(self, rows: Sequence[str] | None, columns: Sequence[str] | None) -> Any:
        """The mechanisms of a wide table: (D, 1) where they go by "rows", (1, V) where they go by "columns".

        Raises:
            ValueError: another column, a side without labels, and as ``of``.
        """
        if self.by not in SIDES:
            raise ValueError(
                f"{self.path} must have mechanisms by rows or by columns beside a wide table, got {self.by!r:.60}"
            )
        labels = rows if self.by == SIDES[0] else columns
        if labels is None:
            raise ValueError(f"the table must have labels of {self.by}, which {self.path} names, got none")
        known, found = self.of(labels), np.empty(len(labels), dtype=object)
        found[:] = [known[label] for label in labels]
        return found[:, None] if self.by == SIDES[0] else found[None, :]

    def _check_order(self, texts: Sequence[str]) -> None:
        """Refuse texts whose digits have other places in some than in others, or that begin with a day or a month."""
        shapes = dict.fromkeys(re.sub(r"[0-9]", "0", text) for text in texts)
        if any("0" in shape for shape in shapes) and (
            len(shapes) > 1 or re.match(r"00?[^0A-Za-z]00?[^0]", next(iter(shapes)))
        ):
            raise ValueError(
                f"{self.path} must have ranges of {self.by!r:.60} in numbers, or in texts of one form in which larger "
                f"units come first, such as 2023-07-01, got {', '.join(list(shapes)[:2])} (0 for any digit)"
            )

    def _holds(self, keys: tuple[str, ...], value: str, numeric: bool) -> bool:
        if not self.ranged:
            return keys[0] == value
        first, last = keys
        if numeric:
            return (not first or float(first) <= float(value)) and (not last or float(value) <= float(last))
        return (not first or first <= value) and (not last or value <= last)
