"""``countveil import``: a release from a table that somebody else protected."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from countveil.cli import exposure_option as e
from countveil.cli import mechanism_options as m
from countveil.cli import totals_options as t
from countveil.cli.errors import plain_errors
from countveil.cli.options import Force
from countveil.cli.outputs import check_ending, check_free
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
            help="Instead of --mechanism: a .csv with a mechanism and its parameters in each row, and the value of a "
            "column for which it holds, or ends of a range, such as 'date from' and 'date to'. Without --long, that "
            "column is called rows or columns, and has their labels.",
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
    totals: t.Totals = None,
    total_row: t.TotalRow = None,
    total_column: t.TotalColumn = None,
    totals_of: t.TotalsOf = None,
    totals_mechanism: t.TotalsMechanism = None,
    exposure: e.Exposure = None,
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
    stated_totals = t.StatedTotals.of(totals, total_row, total_column, totals_of, totals_mechanism)
    beside = Path(exposure) if exposure is not None and long is None else None
    check_free(output, force, table, probabilities, mechanisms, beside, *stated_totals.paths)
    check_ending(output, ".npz")
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
    stated: Any = None if mechanisms is not None else m.stated_mechanism(mechanism, hides_zero, given)
    if (long is None) != (value is None):
        raise ValueError("--long and --value must come together: axes, and the column of reports")
    if long is not None and (no_header or row_labels is not None):
        raise ValueError("--long must come without --no-header and --row-labels: its axes name the labels")
    if background is not None and long is None:
        raise ValueError("--background must come with --long: cells of a wide table all have a place")
    left_out = read_background(background)
    stated_totals.check(long is not None)
    from countveil.cli.mechanism_tables import MechanismTable
    from countveil.data.importing import import_long, import_reports
    from countveil.data.protected_files import read_long, read_protected

    words, gone = absent or [], missing or []
    by = None if mechanisms is None else MechanismTable(mechanisms)
    if long is not None and value is not None:
        axes = [name.strip() for name in long.split(",")]
        sums, groups = stated_totals.beside_long(value, words, gone)
        further = [*([] if by is None else [by.by]), *e.column_of_exposure(exposure)]
        further += t.columns_named(sums, groups, [*axes, value])
        cells, mask = read_long(table, axes, value, words, gone, further)
        stated = stated if by is None else by.of(cells[by.by].tolist())
        release = import_long(
            cells, axes, value, stated, source, by=None if by is None else by.by, mask=mask,
            background=left_out, totals=sums or None, groups=groups, exposure=exposure, simulated=simulated,
        )  # fmt: skip
    else:
        with doubts_said():
            found = read_protected(
                table, header=not no_header, row_labels=row_labels, absent=words, missing=gone
            )
        found, families = stated_totals.beside_wide(found, words, gone)
        stated = stated if by is None else by.of_sides(found.row_labels, found.column_labels)
        release = import_reports(
            found, stated, source, totals=families or None, simulated=simulated,
            exposure=e.exposure_of_wide(exposure, found, not no_header, row_labels),
        )  # fmt: skip
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
