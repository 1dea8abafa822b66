"""``countveil import``: a release from a table that somebody else protected."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from countveil.cli import mechanism_options as m
from countveil.cli.errors import plain_errors
from countveil.cli.options import Force
from countveil.cli.outputs import check_free
from countveil.cli.results import with_quiet
from countveil.cli.say import say
from countveil.cli.tables import doubts_said


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
    mechanism: m.Kind = None,
    alpha: m.Alpha = None,
    sigma: m.Sigma = None,
    scale: m.Scale = None,
    l1: m.L1 = None,
    l2: m.L2 = None,
    base: m.Base = None,
    below: m.Below = None,
    hides_zero: m.HidesZero = False,
    above: m.Above = None,
    noise: m.Noise = None,
    probabilities: m.Probabilities = None,
    absent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD", help="What stands for a count without a report, such as '<10'; repeatable."
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="What stands for a cell that was never reported, for reasons that have nothing to do with its count, "
            "such as 'n/a', or '' for empty cells; repeatable.",
        ),
    ] = None,
    mechanisms: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --long, instead of --mechanism: a .csv with a mechanism and its parameters in each row, and the "
            "value of a column for which it holds, or ends of a range, such as 'date from' and 'date to'.",
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
        str | None,
        typer.Option(
            help="With --long: the report of cells without a row, such as 0 where zeros were left out, or missing "
            "where they were never reported."
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
        typer.Option(help="Whose totals are used: rows or columns. A release keeps one of them."),
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
    check_free(output, force, table, probabilities, mechanisms)
    given: dict[str, Any] = {
        "alpha": alpha,
        "sigma": sigma,
        "scale": scale,
        "l1": l1,
        "l2": l2,
        "base": base,
        "below": below,
    }
    given |= {"above": above, "noise": noise, "probabilities": probabilities}
    if mechanisms is not None and (
        mechanism is not None or hides_zero or any(each is not None for each in given.values())
    ):
        raise ValueError(
            "--mechanisms must come without --mechanism and its parameters: they are in the file"
        )
    if mechanisms is not None and long is None:
        raise ValueError("--mechanisms must come with --long: mechanisms go by the value of a column")
    stated: Any = None if mechanisms is not None else m.stated_mechanism(mechanism, hides_zero, given)
    if (long is None) != (value is None):
        raise ValueError("--long and --value must come together: axes, and the column of reports")
    if long is not None and (no_header or row_labels is not None):
        raise ValueError("--long must come without --no-header and --row-labels: its axes name the labels")
    if background is not None and long is None:
        raise ValueError("--background must come with --long: cells of a wide table all have a place")
    left_out = read_background(background)
    check_totals_options(long, totals, total_row, total_column, totals_of)
    from countveil.cli.mechanism_tables import MechanismTable
    from countveil.data.importing import import_long, import_reports
    from countveil.data.margins import SIDES, margin_of_frame, read_margin, without_margins
    from countveil.data.protected_files import read_long, read_protected

    words, gone = absent or [], missing or []
    if long is not None and value is not None:
        axes = [name.strip() for name in long.split(",")]
        by = None if mechanisms is None else MechanismTable(mechanisms)
        cells, mask = read_long(table, axes, value, words, gone, None if by is None else by.by)
        stated = stated if by is None else by.of(cells[by.by].tolist())
        sums = None if totals is None else read_margin(totals, axes, value, words, None)
        release = import_long(
            cells, axes, value, stated, source, by=None if by is None else by.by, mask=mask,
            background=left_out, totals=sums, simulated=simulated,
        )  # fmt: skip
    else:
        with doubts_said():
            found = read_protected(
                table, header=not no_header, row_labels=row_labels, absent=words, missing=gone
            )
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


def read_background(text: str | None) -> "float | Literal['missing'] | None":
    """A number, or the word "missing"; raises ValueError for anything else."""
    if text is None or text == "missing":
        return text  # type: ignore[return-value]
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"--background must be a number or missing, got {text!r:.60}") from error


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
