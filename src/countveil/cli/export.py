"""``countveil export``: every table of a fit as a .csv."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.output import plain_errors, say
from countveil.cli.results import with_quiet
from countveil.cli.show import FitFile, loaded


@plain_errors
@with_quiet
def export(
    fit: FitFile,
    folder: Annotated[Path, typer.Argument(help="The folder to write to; created if it does not exist.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite files in the folder.")] = False,
) -> None:
    """Write all tables of a fit as CSV files: topics, words, documents, activity, totals, diagnostics.

    Each file is named after its table, such as topics_by_word.csv. The tables contain the labels of the data: share
    them as you would share the fit.

    Example: `countveil export survey.nc tables`
    """
    for path in loaded(fit).tables.to_csv(folder, force=force):
        say(f"Wrote {path}.")
