"""``countveil import``: a release from a table that somebody else protected."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.errors import plain_errors
from countveil.cli.mechanism_options import KINDS, stated_mechanism
from countveil.cli.options import Force
from countveil.cli.outputs import check_free
from countveil.cli.results import with_quiet
from countveil.cli.say import say
from countveil.cli.tables import doubts_said

Number = str | None


@plain_errors
@with_quiet
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
            "without a row have no report, which is refused where every count has one.",
        ),
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --long: the column of reports.")
    ] = None,
    background: Annotated[
        float | None,
        typer.Option(
            help="With --long: the report of cells without a row, such as 0 where zeros were left out."
        ),
    ] = None,
    totals: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Exact totals: a table with labels and totals of --totals-of; with --long, columns of some axes and "
            "--value. Fits meet them.",
        ),
    ] = None,
    total_row: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The row of a wide table that holds exact totals.")
    ] = None,
    total_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of a wide table that holds exact totals.")
    ] = None,
    totals_of: Annotated[
        str | None,
        typer.Option(help="Whose totals are used: rows or columns. Those of both at once cannot be."),
    ] = None,
    simulated: Annotated[
        bool,
        typer.Option("--simulated", help="The noise came from a seeded generator: it protects nobody."),
    ] = False,
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
    if background is not None and long is None:
        raise ValueError("--background must come with --long: cells of a wide table all have a place")
    check_totals_options(long, totals, total_row, total_column, totals_of)
    from countveil.data.importing import import_long, import_reports
    from countveil.data.margins import SIDES, margin_of_frame, read_margin, without_margins
    from countveil.data.protected_files import read_long, read_protected

    words = absent or []
    if long is not None and value is not None:
        axes = [name.strip() for name in long.split(",")]
        cells = read_long(table, axes, value, words)
        sums = None if totals is None else read_margin(totals, axes, value, words, None)
        release = import_long(
            cells, axes, value, stated, source, background=background, totals=sums, simulated=simulated
        )
    else:
        with doubts_said():
            found = read_protected(table, header=not no_header, row_labels=row_labels, absent=words)
        found, margin = without_margins(found, total_row, total_column, totals_of)
        if totals is not None:
            sums = read_margin(totals, None, "totals", words, totals_of)
            margin = margin_of_frame(sums, SIDES, (found.row_labels, found.column_labels), "totals")
        release = import_reports(
            found, stated, source, totals=None if margin is None else [margin], simulated=simulated
        )
    release.save(output)
    say(release.describe())
    say(f"Wrote {output}: {' x '.join(map(str, release.shape))} reports, imported.")


def check_totals_options(
    long: str | None, totals: Path | None, row: str | None, column: str | None, of: str | None
) -> None:
    """Refuses options of totals that do not go together; raises ValueError."""
    inside = row is not None or column is not None
    if of not in (None, "rows", "columns"):
        raise ValueError(f"--totals-of must be rows or columns, got {of!r}")
    if long is not None and (inside or of is not None):
        raise ValueError(
            "--long must come without --total-row, --total-column and --totals-of: name a file of --totals"
        )
    if totals is not None and inside:
        raise ValueError("--totals must come without --total-row and --total-column: totals are in one place")
    if totals is not None and long is None and of is None:
        raise ValueError("--totals must come with --totals-of rows or --totals-of columns, or with --long")
    if of is not None and totals is None and not inside:
        raise ValueError("--totals-of must come with --totals, --total-row or --total-column")
