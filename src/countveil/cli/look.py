"""``countveil look``: one screen about a table before anything is decided."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countveil.cli.options import with_option_groups
from countveil.cli.output import plain_errors, say
from countveil.cli.reading_options import TABLE, FileOptions
from countveil.cli.results import Result, with_result

if TYPE_CHECKING:
    from countveil.data.tables.looking import Look

SHOWN = 5  # of levels and words


@plain_errors
@with_result
@with_option_groups
def look(
    table: Annotated[Path, typer.Argument(help="A published table: .csv, .tsv, .txt, .xlsx or .parquet.")],
    *,
    file: FileOptions,
    status: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=TABLE,
            help="In a table with a row for each cell, the column that states why a cell has no number [default: one "
            "called status or symbol].",
        ),
    ] = None,
) -> Result:
    """Show how a published table would be read, and suggest the command that imports it.

    Nothing is decided or written. You state what was done to the counts, as the publisher documents it. There is no
    command for a table that would be refused; the questions say why.

    Example: `countveil look deaths.csv`
    """
    from countveil.data.tables.looking import look_at

    seen = look_at(table, file.read(), status)
    print_look(seen)
    return {
        "layout": seen.layout,
        "long": seen.long,
        "value": seen.value,
        "axes": seen.axes,
        "dates": seen.times,
        "other_columns": seen.others,
        "totals": seen.totals,
        "cells": seen.n_cells,
        "words": dict(seen.words),
        "numbers": int(seen.shown.size),
        "lattice": None if seen.lattice is None else seen.lattice._asdict(),
        "questions": seen.questions,
        "command": seen.command,
        "options": seen.options,
    }


def print_look(seen: "Look") -> None:
    """The same for people."""
    kind = "a row for each record" if seen.long is None else f"a row for each cell, reports in {seen.value!r}"
    say(f"{seen.path}: {seen.layout}; {kind}.")
    for axis, levels in seen.axes.items():
        dates = ", dates" if axis in seen.times else ""
        say(f"  {axis}: {len(levels):,} ({', '.join(levels[:SHOWN])}{', ..' if len(levels) > SHOWN else ''}){dates}")
    if seen.others:
        say(f"  other columns: {', '.join(seen.others)}")
    shown = seen.shown
    between = f", from {shown.min():g} to {shown.max():g}, {(shown == 0).mean():.0%} zeros" if shown.size else ""
    say(f"{seen.n_cells:,} cells: {shown.size:,} numbers{between}.")
    for word, times in seen.words.most_common():
        say(f"  {word!r}: {times:,}" if word else f"  empty: {times:,}")
    if seen.totals:
        say(f"Totals: {', '.join(seen.totals)}.")
    for question in seen.questions:
        say(question)
    if seen.command is None:
        say("`countveil import` refuses this table until you correct the file, or add options as above to these:")
        say(f"  {shlex.join(seen.options)}")
        return
    say("Check every option against what the publisher says, then run")
    say(f"  {seen.command}")
