"""Covariates, dates and seeds as options of the commands that fit, and what is printed of them."""

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from countveil.cli.options import MODEL
from countveil.cli.output import say
from countveil.privacy._text import plain

if TYPE_CHECKING:
    import pandas as pd

    from countveil.fit import BlockModel, TensorModel, TopicModel


class Rows(NamedTuple):
    """Options about covariates of the rows."""

    prevalence: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Formula of the row covariates that topics, communities or components depend on, such as "
            "'~ party + year'; their coefficients are printed.",
        ),
    ] = None
    covariates: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Table of covariates (CSV) whose first column has the row labels of the release [default: the "
            "covariates in the release].",
        ),
    ] = None

    def read(self) -> "pd.DataFrame | None":
        """The table, if there is one; raises ValueError, which names the file."""
        if self.prevalence is None and self.covariates is not None:
            raise ValueError("--covariates must come with --prevalence, a formula such as '~ party', got no formula")
        if self.covariates is None:
            return None
        return table_by_label(self.covariates)

    def beside(self, data: Any, table: "pd.DataFrame | None") -> "pd.DataFrame | None":
        """The table that was read, or what a release carries, if there is a formula; raises ValueError without both."""
        if self.prevalence is None or table is not None:
            return table
        from countveil.data.reports import in_rows_of

        carried = in_rows_of(data)
        if carried is None:
            raise ValueError(
                "--prevalence must come with --covariates, a table, if the release has no covariates, got none"
            )
        return carried


def table_by_label(path: Path, **how: Any) -> "pd.DataFrame":
    """A table in CSV whose first column has the labels of rows, each as it is written; raises ValueError."""
    import pandas as pd

    try:
        found = pd.read_csv(path, converters={0: str}, **how)
        return found.set_index(found.columns[0])
    except (ValueError, UnicodeError, IndexError) as error:
        raise ValueError(f"{path} must be a table in CSV: {error}") from error


def print_effects(model: "TopicModel | TensorModel | BlockModel") -> None:
    """The coefficients of covariates, one row per component and term, with intervals if there are any."""
    from rich.table import Table
    from rich.text import Text

    from countveil.common.console import console

    effects = model.effects.table()
    one = effects.columns[0]
    title = Text(f"Coefficients, of the log of {model._reader.kinds[0].whole.removeprefix('all ')}")
    table = Table(one, "term", "estimate", title=title, title_justify="left", header_style="")
    for number, row in zip(effects[one], effects.itertuples(), strict=True):
        ends = f" ({row.lower:.2f} to {row.upper:.2f})" if "lower" in effects else ""
        table.add_row(str(number), Text(plain(str(row.term))), f"{row.estimate:.2f}{ends}")
    console().print(table)


SHOWN = 5  # steps of time at most


DayFirst = Annotated[
    bool | None,
    typer.Option(
        "--day-first/--month-first",
        rich_help_panel=MODEL,
        help="Whether dates such as 1/2/2020 begin with the day or the month [default: detected from a number above "
        "12].",
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
            raise ValueError(f"{self.time} must have two columns, labels of rows and dates, got {found.shape[1] + 1}")
        dates = found.iloc[:, 0]
        if self.day_first is None or dates.isna().any():
            return dates
        import pandas as pd

        from countveil.data.dates import dates_of

        read = dates_of([str(text).strip() for text in dates], self.day_first)
        return dates if read is None or read.form != "day" else pd.Series(pd.to_datetime(read.first_day), dates.index)


def print_over_time(model: "TopicModel") -> None:
    """The expected share of every topic in some steps of time, with intervals if there are any."""
    import numpy as np
    from rich.table import Column, Table
    from rich.text import Text

    from countveil.common.console import console

    assert model.dates_ is not None
    found, names = model.effects.over_time(), model.dates_.names
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


COLUMNS = "topic", "word"
USUAL_WEIGHT = 5.0


class Seeding(NamedTuple):
    """Options about seeded topics."""

    seeds: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Seed words of the first topics: a table (CSV) with the columns topic and word, or JSON such as "
            '{"economy": ["tax", "jobs"]}.',
        ),
    ] = None
    seed_weight: Annotated[
        float,
        typer.Option(
            rich_help_panel=MODEL,
            help="Amount added to the gamma shape of a seed word in its topic, if the file has no weights.",
        ),
    ] = USUAL_WEIGHT

    def read(self) -> "dict[str, list[str] | dict[str, float]] | None":
        """The words by topic, if there is a file, with weights unless they have the usual one.

        Raises:
            ValueError: a file that does not hold seeds, which it names.
        """
        words = self._words()
        if words is None or self.seed_weight == USUAL_WEIGHT:
            return words
        return {topic: with_weight(each, self.seed_weight) for topic, each in words.items()}

    def _words(self) -> dict[str, Any] | None:
        if self.seeds is None:
            return None
        try:
            text = self.seeds.read_text(encoding="utf-8-sig")
            return from_json(text) if self.seeds.suffix.lower() == ".json" else from_table(text)
        except (ValueError, RecursionError, csv.Error) as error:
            raise ValueError(f"{self.seeds} must hold seeds: {error}") from error


def with_weight(words: Any, weight: float) -> Any:
    """A list of words as a mapping to their weight; what else a file holds, the model's own check refuses."""
    plain = isinstance(words, list) and all(isinstance(word, str) for word in words)
    return dict.fromkeys(words, weight) if plain and len(set(words)) == len(words) else words


def from_json(text: str) -> dict[str, Any]:
    """An object of lists, or of objects with weights; what is in them is checked with the model's other parameters."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f'must be an object such as {{"economy": ["tax", "jobs"]}}, got {text.strip()!r:.60}')
    return found


def from_table(text: str) -> dict[str, list[str]]:
    """A table of one word a line, with its topic; topics come in the order in which they first do."""
    rows = csv.DictReader(text.splitlines())
    if not set(COLUMNS) <= set(rows.fieldnames or ()):
        raise ValueError(f"must have the columns {' and '.join(COLUMNS)}, got {rows.fieldnames or 'none'}")
    found: dict[str, list[str]] = {}
    for row in rows:
        topic, word = ((row[name] or "").strip() for name in COLUMNS)
        if not topic or not word:
            raise ValueError(f"must have a topic and a word in every line, got line {rows.line_num} without them")
        found.setdefault(topic, []).append(word)
    return found


def say_left_out(model: "TopicModel") -> None:
    """Name the seeds that the data do not have."""
    for topic, wanted in (model.seeds or {}).items():
        absent = [word for word in wanted if word not in (model.seeds_ or {})[topic]]
        if absent:
            words = plain(", ".join(absent))
            say(f"Left out of the seeds of {plain(topic)}, since the data do not have them: {words}.")
