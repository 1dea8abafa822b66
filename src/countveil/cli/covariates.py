"""Covariates of a release's rows as options of ``countveil fit``, and what is printed of their effects."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from countveil.cli.options import MODEL
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
            raise ValueError("prevalence and covariates must come together, got covariates alone")
        if self.covariates is None:
            return None
        return table_by_label(self.covariates)

    def beside(self, data: Any, table: "pd.DataFrame | None") -> "pd.DataFrame | None":
        """The table that was read, or what a release carries, if there is a formula; raises ValueError without both."""
        if self.prevalence is None or table is not None:
            return table
        from countveil.data.covariates import in_rows_of

        carried = in_rows_of(data)
        if carried is None:
            raise ValueError(
                "prevalence must come with --covariates where the release carries none, got prevalence alone"
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

    effects = model.effects()
    one = effects.columns[0]
    title = Text(f"Coefficients, of the log of {model.parts[0].whole.removeprefix('all ')}")
    table = Table(one, "term", "estimate", title=title, title_justify="left", header_style="")
    for number, row in zip(effects[one], effects.itertuples(), strict=True):
        ends = f" ({row.lower:.2f} to {row.upper:.2f})" if "lower" in effects else ""
        table.add_row(str(number), Text(plain(str(row.term))), f"{row.estimate:.2f}{ends}")
    console().print(table)
