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


class Times(NamedTuple):
    """The option about dates of the rows."""

    time: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Let topics change over time: a table (CSV) with the row labels of the release and a date for each, "
            "such as 1998, 1998Q1, 1998-03 or 1998-03-05.",
        ),
    ] = None

    def read(self) -> "pd.Series | None":
        """The dates as text by row label, if there is a table; raises ValueError, which names the file."""
        if self.time is None:
            return None
        found = table_by_label(self.time, dtype={1: str})
        if found.shape[1] != 1:
            raise ValueError(
                f"{self.time} must have two columns, labels of rows and dates, got {found.shape[1] + 1}"
            )
        return found.iloc[:, 0]


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
