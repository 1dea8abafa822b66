"""The options of ``countveil import`` that state totals, and the families of totals that they stand for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from countveil.cli.mechanism_options import mechanism_in_text
from countveil.cli.output import say
from countveil.privacy.mechanisms import Mechanism

if TYPE_CHECKING:
    import pandas as pd

    from countveil.data.tables.cells import Words
    from countveil.data.tables.published import LongTable, ProtectedTable
    from countveil.data.tables.text import Format
    from countveil.data.tables.total_lines import TotalLine

TOTALS = "Totals"
"""The panel of help for them."""
WORDS = ("rows", "columns", "both", "table")
IN_TABLE = ("use", "drop", "none")
VALUE = "totals"


class TotalsOptions(NamedTuple):
    """What is stated of totals."""

    totals: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=TOTALS,
            help="A file of published totals: a column of labels, explained by --totals-of, and a column of totals. "
            "With --long: columns for some of the axes, or for groups, and the column --value. Only method gibbs uses "
            "totals. Repeatable.",
        ),
    ] = None
    total_row: Annotated[
        str | None,
        typer.Option(metavar="LABEL", rich_help_panel=TOTALS, help="Label of the row of totals in a wide table."),
    ] = None
    total_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", rich_help_panel=TOTALS, help="Name of the column of totals in a wide table."),
    ] = None
    totals_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT",
            rich_help_panel=TOTALS,
            help="What the totals add up: rows, columns, both, table (one grand total), or a file of groups with the "
            "label and the group of each member. Give it once for all --totals, or once for each, in order. With "
            "--long: files of groups, in any order.",
        ),
    ] = None
    totals_mechanism: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MECHANISM",
            rich_help_panel=TOTALS,
            help="What was done to the totals: exact [default], or a mechanism with its options in one text, such as "
            "'random-rounding --base 3'. Give it once for all totals, or once for each --totals, in order.",
        ),
    ] = None
    totals_in_table: Annotated[
        str | None,
        typer.Option(
            metavar="use|drop|none",
            rich_help_panel=TOTALS,
            help="Treatment of rows, columns or levels that look like totals: use them as known totals, drop them, or "
            "read them as counts (none). A table that has some is refused without this option.",
        ),
    ] = None
    total: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            rich_help_panel=TOTALS,
            help="A label that marks totals, in addition to Total, All and the like. Repeatable.",
        ),
    ] = None

    def read(self) -> "StatedTotals":
        """The options with their mechanisms read; raises ValueError for a text that states none."""
        return StatedTotals(
            tuple(self.totals or ()),
            self.total_row,
            self.total_column,
            tuple(self.totals_of or ()),
            tuple(mechanism_in_text("--totals-mechanism", text) for text in self.totals_mechanism or ()),
            self.totals_in_table,
            tuple(self.total or ()),
        )


class StatedTotals(NamedTuple):
    """What the options say, as they were given."""

    files: tuple[Path, ...]
    row: str | None
    column: str | None
    what: tuple[str, ...]
    mechanisms: tuple[Mechanism | None, ...]
    in_table: str | None = None
    words: tuple[str, ...] = ()

    @property
    def paths(self) -> list[Path]:
        """All files that are read."""
        return [*self.files, *(Path(each) for each in self.what if each not in WORDS)]

    def check(self, is_long: bool) -> None:
        """Refuse options that do not go together; raises ValueError."""
        inside, files, what = self.row is not None or self.column is not None, self.files, self.what
        odd = next((each for each in what if each not in WORDS and not Path(each).is_file()), None)
        if odd is not None:
            raise ValueError(f"--totals-of must be {', '.join(WORDS)}, or a file of groups, got {odd!r}")
        if is_long and (inside or set(what) & set(WORDS)):
            raise ValueError(
                f"--long must come without --total-row, --total-column and --totals-of {', '.join(WORDS)}: name a file "
                "of --totals with columns of some axes, or of groups"
            )
        if files and inside:
            raise ValueError("--totals must come without --total-row and --total-column: take totals from one place")
        if files and not is_long and not what:
            raise ValueError(
                f"--totals must come with --totals-of {', '.join(WORDS)} or a file of groups, or with --long"
            )
        if self.in_table not in (None, *IN_TABLE):
            raise ValueError(f"--totals-in-table must be {', '.join(IN_TABLE)}, got {self.in_table!r:.40}")
        if self.in_table == "use" and (inside or files):
            raise ValueError(
                "--totals-in-table use must come without --totals, --total-row and --total-column: take totals from "
                "one place"
            )
        if (what or self.mechanisms) and not files and not inside and self.in_table != "use":
            option = "--totals-of" if what else "--totals-mechanism"
            raise ValueError(f"{option} must come with --totals, --total-row or --total-column")
        n = max(1, len(files))
        for option, given in (("--totals-of", what), ("--totals-mechanism", self.mechanisms)):
            if len(given) not in (0, 1, n) and not (is_long and given is what):
                raise ValueError(
                    f"{option} must be given once, or once for each of {n} files of totals, got it {len(given)} times"
                )

    def beside_long(
        self, value: str, words: "Words", stated: "Format"
    ) -> tuple[list[tuple["pd.DataFrame", Any]], list["pd.DataFrame"]]:
        """(tables of totals, and what was done to each; tables of groups) beside a table with a row for each cell."""
        from countveil.data.tables.margins import read_margin

        sums = [
            (read_margin(path, value, words, stated), "exact" if mechanism is None else mechanism)
            for path, mechanism in zip(self.files, self._for_each(self.mechanisms, None), strict=True)
        ]
        return sums, [read_groups(Path(each)) for each in self.what]

    def beside_wide(
        self, table: "ProtectedTable", words: "Words", stated: "Format"
    ) -> tuple["ProtectedTable", list[Any]]:
        """(the table without totals, their families) of a table with a row for each record."""
        from countveil.data.tables.margins import without_margins

        if (self.files or self.row is not None or self.column is not None) and table.values.ndim != 2:
            raise ValueError(f"totals of a wide table need two axes, rows and columns, got {table.values.ndim}")
        if not self.files:
            mechanism = self.mechanisms[0] if self.mechanisms else None
            what = self.what[0] if self.what else None
            return without_margins(table, self.row, self.column, what, mechanism)
        labels, shape = ((table.row_labels, table.column_labels), (table.values.shape[0], table.values.shape[1]))
        found = []
        for path, what, mechanism in zip(
            self.files, self._for_each(self.what, ""), self._for_each(self.mechanisms, None), strict=True
        ):
            found += families_in_file(path, what, mechanism, labels, shape, words, stated)
        return table, found

    def inside_wide(
        self, path: Path, table: "ProtectedTable", shows_counts: bool
    ) -> tuple["ProtectedTable", list[Any]]:
        """(the table without lines that are totals, the families of these).

        Raises:
            ValueError: some, and nothing that says what to do with them; totals that cannot be used, or of which
                nothing says what was done to them.
        """
        import numpy as np

        from countveil.data.tables.margins import without_margins
        from countveil.data.tables.total_lines import total_lines

        self._warn_of_words([*(table.row_labels or []), *(table.column_labels or [])])
        if self.in_table == "none" or table.values.ndim != 2:
            return table, []
        values = table.values
        if isinstance(values, np.ndarray):
            values = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
        rows = total_lines(values, table.row_labels, self.words)
        columns = total_lines(values.T, table.column_labels, self.words)
        lines = [f"row {line}" for line in rows] + [f"column {line}" for line in columns]
        if not lines:
            return table, []
        self._ask(path, lines, shows_counts)
        if self.in_table == "use":
            self._check_use([*rows, *columns])
            if len(rows) > 1 or len(columns) > 1 or None in (table.row_labels, table.column_labels):
                raise ValueError(
                    f"--totals-in-table use must come with one row and one column of totals at most, with names, got "
                    f"{', '.join(lines)}: drop them, and give totals by --totals"
                )
            row, column = (lines_[0].label if lines_ else None for lines_ in (rows, columns))
            of = "both" if rows and columns else "rows" if columns else "columns"
            return without_margins(table, row, column, of, self.mechanisms[0] if self.mechanisms else None)
        kept = [
            ~np.isin(np.arange(n), [line.place for line in own])
            for own, n in zip((rows, columns), values.shape, strict=True)
        ]
        if not kept[0].any() or not kept[1].any():
            raise ValueError(f"{path} must have rows and columns besides its totals, got none")
        return table.part(*kept), []

    def inside_long(
        self, path: Path, table: "LongTable", axes: Sequence[str], value: str, shows_counts: bool
    ) -> tuple["LongTable", list[Any]]:
        """(the table without rows that are totals, tables of these and what was done to them); raises ValueError."""
        import numpy as np

        from countveil.data.tables.total_lines import split_levels, total_levels

        if any(axis not in table.frame for axis in axes):
            return table, []
        self._warn_of_words([name for axis in axes for name in table.frame[axis].unique()])
        if self.in_table == "none":
            return table, []
        masked = table.masked
        values = np.where(masked, np.nan, table.frame[value].to_numpy())
        levels = total_levels(table.frame, axes, values, self.words)
        if not levels:
            return table, []
        said = [f"{axis!r:.60} {line}" for axis, lines in levels.items() for line in lines]
        self._ask(path, said, shows_counts)
        if self.in_table == "drop":
            return table.part(split_levels(table.frame, axes, value, levels)[0]), []
        self._check_use([line for lines in levels.values() for line in lines])
        mechanism: Any = self.mechanisms[0] if self.mechanisms else None
        kept, _ = split_levels(table.frame, axes, value, levels)
        _, tables = split_levels(table.frame[kept | ~masked], axes, value, levels)
        return table.part(kept), [(each, "exact" if mechanism is None else mechanism) for each in tables]

    def _ask(self, path: Path, lines: Sequence[str], shows_counts: bool) -> None:
        """Refuse totals in a table where nothing says what to do with them; raises ValueError."""
        said = ", ".join(lines[:6]) + (", .." if len(lines) > 6 else "")
        how = "" if shows_counts else " with --totals-mechanism exact, or what was done to them"
        if self.in_table is None:
            raise ValueError(
                f"{path} has totals among its counts: {said}. --totals-in-table drop leaves them out, "
                f"--totals-in-table use{how} keeps them as known totals, --totals-in-table none reads them as counts"
            )
        if self.in_table == "use" and not self.mechanisms and not shows_counts:
            raise ValueError(
                f"--totals-in-table use must come{how}, such as 'random-rounding --base 3', if counts are rounded "
                f"or noisy, got totals: {said}"
            )

    def _warn_of_words(self, labels: Sequence[str]) -> None:
        """Print words of --total that name nothing."""
        from countveil.data.tables.total_lines import parts_of

        known = {part for label in labels for part in parts_of(str(label))}
        unused = [word for word in self.words if word.strip().casefold() not in known]
        if unused:
            say(f"warning: no label is {', '.join(map(repr, unused))}, which --total names", err=True)

    def _check_use(self, lines: Sequence["TotalLine"]) -> None:
        """Refuse totals of some lines as totals of all; raises ValueError."""
        partial = [str(line) for line in lines if line.is_partial]
        if partial:
            raise ValueError(
                f"--totals-in-table use needs totals of all other cells, got {', '.join(partial[:6])}: state "
                "--totals-in-table drop, and give these totals by --totals and --totals-of with a file of groups"
            )

    def _for_each(self, given: tuple[Any, ...], default: Any) -> tuple[Any, ...]:
        """What belongs to each file: one for all, one for each, or the default."""
        return given if len(given) == len(self.files) else (given or (default,)) * len(self.files)


def families_in_file(
    path: Path,
    what: str,
    mechanism: Mechanism | None,
    labels: tuple[Any, Any],
    shape: tuple[int, int],
    words: "Words",
    stated: "Format",
) -> list[Any]:
    """The families of a file of totals beside a wide table: two of both, one of anything else."""
    from countveil.data.tables.margins import SIDES, by_side, family_of_frame, grouping_of_frame, read_margin, sided

    groupings = {}
    key = what
    if what not in WORDS:
        key, groups = grouping_of_frame(sided(read_groups(Path(what)), labels), SIDES, labels)
        if key == VALUE:
            raise ValueError(f"{what} must not call its groups {VALUE!r}, got this name: rename the column")
        groupings[key] = groups
    frames = [read_margin(path, VALUE, words, stated, key)]
    if what == "both":
        frames = by_side(frames[0], labels, VALUE)
    elif what == "table":
        frames = [frames[0][[VALUE]]]
    return [family_of_frame(frame, SIDES, labels, VALUE, shape, mechanism, groupings) for frame in frames]


def columns_named(
    sums: Sequence[tuple["pd.DataFrame", Any]], groups: Sequence["pd.DataFrame"], known: Sequence[str]
) -> list[str]:
    """The columns of tables of totals that are no axis and no group of a file: the table itself must have them."""
    named = [str(name) for frame, _ in sums for name in frame.columns]
    here = {*known, *(str(name) for frame in groups for name in frame.columns)}
    return [name for name in dict.fromkeys(named) if name not in here]


def read_groups(path: Path) -> "pd.DataFrame":
    """A file of groups as text."""
    import pandas as pd

    from countveil.data.tables.published import read_frame

    frame = read_frame(path)
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    return frame.apply(lambda column: column.astype(str).str.strip())
