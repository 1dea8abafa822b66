"""``countveil look``: one screen about a table before anything is decided."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countveil.cli.errors import plain_errors
from countveil.cli.option_groups import with_option_groups
from countveil.cli.reading_options import FileOptions
from countveil.cli.results import Result, with_result
from countveil.cli.say import say

if TYPE_CHECKING:
    from countveil.data.looking import Look

SHOWN = 5  # of levels and words


@plain_errors
@with_result
@with_option_groups
def look(
    table: Annotated[Path, typer.Argument(help="A published table: .csv, .tsv, .txt, .xlsx or .parquet.")],
    *,
    file: FileOptions,
) -> Result:
    """Show how a published table would be read, and suggest the command that imports it.

    Nothing is decided and nothing is written: what was done to the counts is for you to state, as the publisher says.

    Example: `countveil look deaths.csv`
    """
    from countveil.data.looking import look_at

    found = look_at(table, file.read())
    print_look(found)
    return {
        "layout": found.layout,
        "long": found.long,
        "value": found.value,
        "axes": found.axes,
        "dates": found.times,
        "other_columns": found.others,
        "totals": found.totals,
        "cells": found.n_cells,
        "words": dict(found.words),
        "numbers": int(found.shown.size),
        "lattice": None if found.lattice is None else found.lattice._asdict(),
        "questions": found.questions,
        "command": found.command,
    }


def print_look(found: "Look") -> None:
    """The same for people."""
    kind = (
        "a row for each record" if found.long is None else f"a row for each cell, reports in {found.value!r}"
    )
    say(f"{found.path}: {found.layout}; {kind}.")
    for axis, levels in found.axes.items():
        dates = ", dates" if axis in found.times else ""
        say(
            f"  {axis}: {len(levels):,} ({', '.join(levels[:SHOWN])}{', ..' if len(levels) > SHOWN else ''}){dates}"
        )
    if found.others:
        say(f"  other columns: {', '.join(found.others)}")
    shown = found.shown
    between = (
        f", from {shown.min():g} to {shown.max():g}, {(shown == 0).mean():.0%} zeros" if shown.size else ""
    )
    say(f"{found.n_cells:,} cells: {shown.size:,} numbers{between}.")
    for word, times in found.words.most_common():
        say(f"  {word!r}: {times:,}" if word else f"  empty: {times:,}")
    if found.totals:
        say(f"Totals: {', '.join(found.totals)}.")
    for question in found.questions:
        say(question)
    say("Check every option against what the publisher says, then run")
    say(f"  {found.command}")
