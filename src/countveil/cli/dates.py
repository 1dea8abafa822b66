"""Dates of a release's rows as an option of ``countveil fit topics``, and what is printed of topics over time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from countveil.cli.covariates import table_by_label
from countveil.cli.options import MODEL
from countveil.privacy._text import plain

if TYPE_CHECKING:
    import pandas as pd

    from countveil.fit import TopicModel

SHOWN = 5  # steps of time at most


DayFirst = Annotated[
    bool | None,
    typer.Option(
        "--day-first/--month-first",
        rich_help_panel=MODEL,
        help="Whether dates such as 1/2/2020 begin with the day or the month [default: as a number above 12 shows].",
    ),
]


class Times(NamedTuple):
    """The option about dates of the rows."""

    time: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Let topics change over time: a table (CSV) with the row labels of the release and a date for each, "
            "such as 1998, 1998Q1, 1998-03, Mar 1998 or 1998-03-05.",
        ),
    ] = None
    day_first: DayFirst = None

    def read(self) -> "pd.Series | None":
        """The dates by row label, if there is a table; raises ValueError, which names the file."""
        if self.time is None:
            if self.day_first is not None:
                raise ValueError(
                    "--day-first and --month-first must come with --time, the table of dates, got no table"
                )
            return None
        found = table_by_label(self.time, dtype={1: str})
        if found.shape[1] != 1:
            raise ValueError(
                f"{self.time} must have two columns, labels of rows and dates, got {found.shape[1] + 1}"
            )
        dates = found.iloc[:, 0]
        if self.day_first is None or dates.isna().any():
            return dates
        import pandas as pd

        from countveil.data.date_labels import dates_of

        read = dates_of([str(text).strip() for text in dates], self.day_first)
        return (
            dates
            if read is None or read.form != "day"
            else pd.Series(pd.to_datetime(read.first_day), dates.index)
        )


def print_over_time(model: "TopicModel") -> None:
    """The expected share of every topic in some steps of time, with intervals if there are any."""
    import numpy as np
    from rich.table import Column, Table
    from rich.text import Text

    from countveil.common.console import console

    assert model.dates_ is not None
    found, names = model.prevalence_over(), model.dates_.names
    places = np.unique(np.linspace(0, len(names) - 1, min(len(names), SHOWN)).astype(int))
    heads = [Column(Text(plain(str(names[place])))) for place in places]
    title = Text("Expected share of a document over time")
    table = Table("topic", *heads, title=title, title_justify="left", header_style="")
    for topic, rows in found.groupby("topic", sort=False):
        cells = []
        for row in rows.iloc[places].itertuples():
            ends = f" ({100 * row.lower:.0f} to {100 * row.upper:.0f})" if "lower" in rows else ""
            cells.append(f"{100 * row.estimate:.0f}%{ends}")
        table.add_row(str(topic), *cells)
    console().print(table)
