"""``countveil import``: a release from a table that somebody else protected."""

import warnings
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from countveil.cli import mechanism_options as m
from countveil.cli import totals_options as t
from countveil.cli.options import Force, with_option_groups
from countveil.cli.output import check_ending, check_free, doubts_said, plain_errors, say
from countveil.cli.reading_options import TABLE, CellOptions, FileOptions, MatrixFile, NetworkFile
from countveil.cli.results import with_quiet
from countveil.common.names import names_in

if TYPE_CHECKING:
    from countveil.data.tables.cells import Cells, Words
    from countveil.data.tables.published import ProtectedTable
    from countveil.data.tables.text import Format
    from countveil.privacy import Release

Exposure = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|COLUMN",
        help="Exposure of each cell, such as its population: with --long, a column; otherwise a file laid out as the "
        "table, with the same labels.",
    ),
]


@plain_errors
@with_quiet
@with_option_groups
def import_table(
    table: Annotated[
        Path,
        typer.Argument(
            help="Published reports: .csv, .tsv, .txt, .xlsx or .parquet, wide or long; .npy, .npz, .mtx, .txt (UCI "
            "bag of words), .dat (LDA-C), .svmlight, .h5ad."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file to write.")],
    *,
    source: Annotated[
        str | None, typer.Option(help="Who published the reports and where, in one line [default: the file name].")
    ] = None,
    by_options: m.MechanismOptions,
    stands_for: CellOptions,
    mechanisms: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=m.MECHANISM,
            help="Instead of --mechanism: a .csv with one mechanism and its parameters in each row. One more column, "
            "named after a column of the table, has the value to which the mechanism applies; two such as 'date from' "
            "and 'date to' state a range. Without --long, this column is called rows or columns and has their labels.",
        ),
    ] = None,
    no_header: Annotated[
        bool,
        typer.Option(
            "--no-header", rich_help_panel=TABLE, help="The first row of the file has reports: columns have no names."
        ),
    ] = False,
    row_labels: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=TABLE,
            help="The column that has row labels, or several, separated by commas. Put a name that contains a comma in "
            "double quotes.",
        ),
    ] = None,
    file: FileOptions,
    long: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="For a file with a row for each cell: the columns that name the cell, separated by commas, rows "
            "first. Put a name that contains a comma in double quotes. If some cells have no row, state --background, "
            "unless the mechanism hides counts.",
        ),
    ] = None,
    value: Annotated[str | None, typer.Option(metavar="COLUMN", help="With --long: the column of reports.")] = None,
    status: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=TABLE,
            help="With --long: the column that states why a cell has no number, in the words that --absent and "
            "--missing name.",
        ),
    ] = None,
    background: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=TABLE,
            help="With --long: what a cell without a row is: 0 if rows of zeros were left out, missing if these cells "
            "were never reported.",
        ),
    ] = None,
    matrix: MatrixFile,
    edges: NetworkFile,
    totals: t.TotalsOptions,
    exposure: Exposure = None,
    simulated: Annotated[
        bool,
        typer.Option(
            "--simulated",
            rich_help_panel=m.MECHANISM,
            help="The noise came from a seeded generator and protects nobody.",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Make a release from a table that somebody else protected.

    State what was done to the counts, as the publisher documents it. Reports that the mechanism cannot produce are
    refused; the verdict of a fit states whether the others are consistent with it. The release records that whoever
    imported it vouches for the mechanism.

    Example: `countveil import deaths.csv -o deaths.npz --mechanism suppression --below 10 --absent Suppressed
    --source "CDC WONDER, 1999-2020"`
    """
    stated_totals = totals.read()
    of_cells = Path(exposure) if exposure is not None and long is None else None
    check_free(output, force, table, by_options.probabilities, mechanisms, of_cells, *stated_totals.paths)
    check_ending(output, ".npz")
    if mechanisms is not None and by_options.given:
        raise ValueError("--mechanisms must come without --mechanism and its parameters, which are in the file")
    in_column = m.check_in_column(by_options.parameters, long)
    stated: Any = None
    if mechanisms is None and not in_column and (by_options.given or edges.network):
        stated = by_options.stated()
    if (long is None) != (value is None):
        raise ValueError("--long and --value must come together: axes, and the column of reports")
    if long is not None and (no_header or row_labels is not None):
        raise ValueError("--long must come without --no-header and --row-labels: its axes name the labels")
    if long is not None:
        matrix.refuse("--long")
    edges.check_import(
        matrix.others()
        | {"--long": long, "--mechanisms": mechanisms, "--missing": stands_for.missing, "--no-header": no_header}
    )
    if background is not None and long is None and not edges.network:
        raise ValueError("--background must come with --long: in a wide table no cell is left out")
    if status is not None and long is None:
        raise ValueError("--status must come with --long: it names a column of a table with a row for each cell")
    if no_header and file.header_rows:
        raise ValueError("--no-header must come without --header-rows, which states how many rows have names")
    left_out = read_background(background)
    stated_totals.check(long is not None)
    from countveil.cli.mechanism_options import MechanismTable
    from countveil.data.importing import import_long, import_reports
    from countveil.data.tables.cells import HIDDEN, by_cell, by_row, mechanism_of_intervals, shows_counts
    from countveil.data.tables.published import (
        check_empty,
        check_rates,
        rate_levels,
        rate_lines,
        read_long,
        read_protected,
    )

    words, form = stands_for.read(), file.read()
    source = table.name if source is None else source
    by = None if mechanisms is None else MechanismTable(mechanisms)

    def of_intervals(read: Any) -> Any:
        """What is stated, or else what intervals say; raises ValueError where neither is there."""
        if stated is not None or by is not None:
            return stated
        ranges = None if read.cells is None else mechanism_of_intervals(read.cells)
        return by_options.stated() if ranges is None else ranges

    read: Cells | None = None
    flags, layout, n_cells, no_row = None, None, 0, ""
    if edges.network:
        release = edges.imported(table, matrix.vocabulary, stated, source, words.absent, left_out, simulated, form)
    elif long is not None and value is not None:
        axes = names_in(long)
        sums, groups = stated_totals.beside_long(value, words, form)
        further = [*([] if by is None else [by.by]), *t.columns_named(sums, groups, [*axes, value])]
        in_columns = (by_options.sigma if in_column else None), exposure
        numbers = [name for name in in_columns if name is not None]
        with doubts_said():
            whole = read_long(table, axes, value, words, further, numbers=numbers, status=status, stated=form)
        check_rates(table, rate_levels(whole, axes, value))
        stated = stated if in_column else of_intervals(whole)
        exact = not in_column and shows_counts([stated] if by is None else [each for _, each in by.rows])
        kept, inside = stated_totals.inside_long(table, whole, axes, value, exact)
        key = None if by is None else by.by
        stated = stated if by is None else by.of(kept.frame[by.by].tolist())
        if in_column:
            stated, key = m.of_column(kept.frame, axes, by_options)
        frame, stated, key = by_row(kept.frame, stated, key, kept.cells.intervals)
        with doubts_said():
            release = import_long(
                frame, axes, value, stated, source, by=key, mask=kept.masked,
                background=left_out, totals=[*sums, *inside] or None, groups=groups, exposure=exposure,
                simulated=simulated,
            )  # fmt: skip
        no_row = without_row(prod(release.shape) - len(kept.frame), by_options.mechanism, left_out)
        read, flags, layout, n_cells = kept.cells, kept.flags, kept.layout, len(whole.frame)
    else:
        with doubts_said():
            found = read_protected(
                table, header=not no_header, row_labels=row_labels, words=words, stated=form, **matrix._asdict()
            )
        check_empty(table, found, words)
        check_rates(table, rate_lines(found))
        n_cells = 0 if found.cells is None else found.cells.code.size
        stated = of_intervals(found)
        exact = shows_counts([stated] if by is None else [each for _, each in by.rows])
        found, families = stated_totals.beside_wide(found, words, form)
        found, inside = stated_totals.inside_wide(table, found, exact)
        stated = stated if by is None else by.of_sides(found.row_labels, found.column_labels)
        if found.cells is not None:
            stated = by_cell(stated, found.cells.intervals)
        with doubts_said():
            release = import_reports(
                found, stated, source, totals=[*families, *inside] or None, simulated=simulated,
                exposure=exposure_of_wide(exposure, found, not no_header, row_labels, form),
            )  # fmt: skip
        read, layout = found.cells, found.layout
    release.save(output)
    if layout is not None:
        say(f"Read {table}: {layout.describe()}.")
    if read is not None:
        say(read.describe(n_cells - read.code.size, flags, no_row))
        warn_of(read, words, release)
    ranges_alone = read is not None and read.has_intervals and not (read.tally()[HIDDEN] or no_row)
    if by_options.mechanism == "suppression" and by_options.below is None and not ranges_alone:
        say(
            f"No bound of hidden counts was stated (--below): they are below {bound_of(release)}, the smallest "
            "positive count that is shown, if all cells have the same bound."
        )
    say(release.describe())
    matrix.say_orientation(table, release.shape)
    say(f"Wrote {output}: {' x '.join(map(str, release.shape))} reports, imported.")


def bound_of(release: "Release") -> int:
    """The bound of the counts that a release hides."""
    return next(int(each.below) for each in release.known_mechanisms if hasattr(each, "below"))


def warn_of(read: "Cells", words: "Words", release: "Release") -> None:
    """Print what is odd: labels of several rows, words that occur nowhere, and numbers that were rounded further."""
    from countveil.data.tables.looking import lattice_of, repeated_in

    repeated = repeated_in(release.row_labels or ())
    if repeated:
        say(
            f"warning: several rows are called {repeated[0]!r:.60}: name columns that tell them apart by --row-labels",
            err=True,
        )
    unused = [word for word in (*words.absent, *words.missing, *words.zero) if word.strip() not in read.texts]
    if unused:
        say(f"warning: no cell is {', '.join(map(repr, unused))}, which the options name", err=True)
    rules = [rule for each in release.known_mechanisms for rule in getattr(each, "steps", (each,))]
    base = max((int(getattr(rule, "base", 1)) for rule in rules), default=1)
    lattice = lattice_of(read.values, base)
    if lattice is not None:
        say(
            f"warning: all positive numbers are {lattice}, which the stated mechanism does not explain: if they were "
            "rounded, state how, or intervals are too narrow",
            err=True,
        )


def without_row(n: int, mechanism: str | None, left_out: "float | str | None") -> str:
    """What cells of a long table without a row are, in words; empty where all have one.

    Raises:
        ValueError: some that nothing says what they are, by a publisher who leaves out zeros.
    """
    from countveil.data.tables.text import amount
    from countveil.privacy.mechanisms import PRESETS

    if not n:
        return ""
    if left_out is None and mechanism in PRESETS and PRESETS[mechanism].omits_zeros:
        raise ValueError(
            f"--background must say what {amount(n, 'cell')} without a row are, because {mechanism} leaves out rows of "
            "zeros: --background 0 if they are zeros, --background missing if they were never reported"
        )
    what = "hidden" if left_out is None else "masked" if left_out == "missing" else f"{left_out:g}"
    return f"{amount(n, 'cell')} without a row ({what})"


def read_background(text: str | None) -> "float | Literal['missing'] | None":
    """A number, or the word "missing"; raises ValueError for anything else."""
    if text is None or text == "missing":
        return text  # type: ignore[return-value]
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"--background must be a number or missing, got {text!r:.60}") from error


def exposure_of_wide(
    given: str | None, found: "ProtectedTable", header: bool, row_labels: str | None, stated: "Format"
) -> Any:
    """The exposures in a file like that of the table, with its number format as stated, in its order, or None.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file that cannot be read, or of another shape or with other labels than the table.
    """
    if given is None:
        return None
    from countveil.data.tables.published import read_protected
    from countveil.data.tables.text import Format

    path = Path(given)
    marks = Format(thousands=stated.thousands, decimal=stated.decimal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of numbers that look like no counts, as these are
        own = read_protected(path, header=header, row_labels=row_labels, stated=marks)
    if own.values.shape != found.values.shape:
        raise ValueError(
            f"--exposure {path} must have the shape of the table {found.values.shape}, got {own.values.shape}"
        )
    for word, names, known in (
        ("row", own.row_labels, found.row_labels),
        ("column", own.column_labels, found.column_labels),
    ):
        check_same(path, word, names, known)
    return own.values


def check_same(path: Path, word: str, names: Sequence[str] | None, known: Sequence[str] | None) -> None:
    """Refuse labels that are not those of the table, in its order; raises ValueError."""
    found, wanted = (list(map(str, each or ())) for each in (names, known))
    if found == wanted:
        return
    pairs = zip(found, wanted, strict=False)
    place = next((i for i, pair in enumerate(pairs) if pair[0] != pair[1]), min(len(found), len(wanted)))
    shown = [each[place] if place < len(each) else "none" for each in (found, wanted)]
    raise ValueError(
        f"--exposure {path} must have the {word} labels of the table in their order, got {shown[0]!r:.60} for "
        f"{shown[1]!r:.60}"
    )
