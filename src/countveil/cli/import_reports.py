"""``countveil import``: a release from a table that somebody else protected."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.errors import plain_errors
from countveil.cli.mechanism_options import KINDS, stated_mechanism
from countveil.cli.options import Force
from countveil.cli.outputs import check_free
from countveil.cli.say import say

Number = str | None


@plain_errors
def import_table(
    table: Annotated[
        Path,
        typer.Argument(
            help="Published reports: .csv, .tsv or .parquet, wide or long; .npy, .npz, .mtx or .txt (bag of words)."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file to write.")],
    source: Annotated[str, typer.Option(help="One line on who published the reports, and where.")],
    mechanism: Annotated[
        str | None, typer.Option(help=f"What was done to the counts: {', '.join(KINDS)}.")
    ] = None,
    alpha: Annotated[
        Number, typer.Option(help="Of two-sided geometric noise; enough without --mechanism.")
    ] = None,
    sigma: Annotated[Number, typer.Option(help="Of Gaussian noise, discrete or not.")] = None,
    scale: Annotated[Number, typer.Option(help="Of Laplace noise.")] = None,
    l1: Annotated[Number, typer.Option("--l1", help="Of Skellam noise: the rate of what was added.")] = None,
    l2: Annotated[
        Number, typer.Option("--l2", help="Of Skellam noise: the rate of what was taken away.")
    ] = None,
    base: Annotated[Number, typer.Option(help="Of rounding.")] = None,
    below: Annotated[Number, typer.Option(help="Of suppression: smaller counts are hidden.")] = None,
    hides_zero: Annotated[
        bool, typer.Option("--hides-zero", help="Suppression hides zeros as well.")
    ] = False,
    above: Annotated[
        Number, typer.Option(help="Of top-coding; or the noisy value up to which a count has no report.")
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help="Of thresholded reports: the mechanism that made the noisy values.")
    ] = None,
    probabilities: Annotated[
        Path | None,
        typer.Option(help="Of a table: a .csv with P(report | count), a row for each count from 0."),
    ] = None,
    absent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD", help="What stands for a count without a report, such as '<10'; repeatable."
        ),
    ] = None,
    no_header: Annotated[
        bool,
        typer.Option("--no-header", help="The first row of the file is a record: columns have no names."),
    ] = False,
    row_labels: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that holds row labels, not reports.")
    ] = None,
    long: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="The file has a row for each cell: the columns of the axes, separated by commas, rows first. Cells "
            "without a row have no report, or a report of 0 where every count has one.",
        ),
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --long: the column of reports.")
    ] = None,
    force: Force = False,
) -> None:
    """Make a release of a table that somebody else protected, so that fit, compare and report read it.

    State what was done to the counts, as its publisher says. Reports that the mechanism cannot have made are refused;
    nothing else can be checked, and the release says that whoever imported it vouches for the mechanism.

    Example: `countveil import deaths.csv -o deaths.npz --mechanism suppression --below 10 --absent Suppressed
    --source "CDC WONDER, 1999-2020"`
    """
    check_free(output, force, table, probabilities)
    given = {"alpha": alpha, "sigma": sigma, "scale": scale, "l1": l1, "l2": l2, "base": base, "below": below}
    stated = stated_mechanism(
        mechanism, hides_zero, given | {"above": above, "noise": noise, "probabilities": probabilities}
    )
    if (long is None) != (value is None):
        raise ValueError("--long and --value must come together: axes, and the column of reports")
    if long is not None and (no_header or row_labels is not None):
        raise ValueError("--long must come without --no-header and --row-labels: its axes name the labels")
    from countveil.data.importing import import_long, import_reports
    from countveil.data.protected_files import read_long, read_protected

    words = absent or []
    if long is not None and value is not None:
        axes = [name.strip() for name in long.split(",")]
        release = import_long(read_long(table, axes, value, words), axes, value, stated, source)
    else:
        found = read_protected(table, header=not no_header, row_labels=row_labels, absent=words)
        release = import_reports(found, stated, source)
    release.save(output)
    say(release.describe())
    say(f"Wrote {output}: {' x '.join(map(str, release.shape))} reports, imported.")
