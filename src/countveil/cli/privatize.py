"""``countveil privatize``: a release from a matrix of true counts."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countveil.cli.options import FILES, LEVEL, Epsilon, Force, Precision, with_option_groups
from countveil.cli.output import check_ending, check_free, doubts_said, plain_errors, read_table, say
from countveil.cli.reading_options import TABLE, MatrixFile, NetworkFile
from countveil.cli.results import with_quiet
from countveil.privacy import PrivacyLevel, Release, privatize, privatize_to_files, round_randomly
from countveil.privacy._counts import reads_as_number
from countveil.privacy._reports import Labels, describe_labels
from countveil.privacy.counting import format_of
from countveil.privacy.level import Level
from countveil.privacy.wording import BOTH

if TYPE_CHECKING:
    from countveil.data.io import CountTable

ROUNDING = "Rounding, without differential privacy"
"""The panel of help for it."""


@plain_errors
@with_quiet
@with_option_groups
def privatize_counts(
    counts: Annotated[
        Path,
        typer.Argument(
            help="Matrix of true counts, one record per row: .csv, .npy, .npz, .mtx, .txt (UCI bag of words), .dat "
            "(LDA-C), .svmlight, .h5ad."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file to write.")],
    *,
    epsilon: Epsilon = None,
    precision: Precision = None,
    rho: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=LEVEL,
            help="Instead of --epsilon and --precision: zero-concentrated privacy loss for one unit in one cell, a "
            "positive decimal. The noise is discrete Gaussian with sigma^2 = 1/(2 rho); reports may be negative.",
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            metavar="random-rounding",
            rich_help_panel=ROUNDING,
            help="Instead of noise: round counts at random to a multiple of --base, without bias. This is not "
            "differential privacy: a report shows the range of its count, and nothing limits what an attacker can "
            "infer from other tables, such as totals. Use it only if a rule requires it.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=ROUNDING,
            help="Base of --mechanism random-rounding: a whole number of at least 2, such as 3.",
        ),
    ] = None,
    matrix: MatrixFile,
    truncated: Annotated[
        bool | None,
        typer.Option(
            "--truncated/--signed",
            help="Truncate reports at zero, or keep negative ones [default: truncate if the counts are sparse; --rho "
            "always keeps them].",
        ),
    ] = None,
    no_header: Annotated[
        bool,
        typer.Option(
            "--no-header", rich_help_panel=TABLE, help="The first row of the .csv has counts: columns have no names."
        ),
    ] = False,
    row_labels: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", rich_help_panel=TABLE, help="Name of the .csv column that has row labels, not counts."
        ),
    ] = None,
    no_row_labels: Annotated[
        bool, typer.Option("--no-row-labels", help="Leave the row labels out of the release.")
    ] = False,
    rows_per_file: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=FILES,
            help="Write several releases with this many rows each: --output names a new folder for them.",
        ),
    ] = None,
    edges: NetworkFile,
    force: Force = False,
) -> None:
    """Add exact noise to counts and write the release.

    The noise is two-sided geometric with alpha = exp(-epsilon/N), or discrete Gaussian with --rho. It is sampled in
    exact arithmetic from the operating system's entropy, and cannot be seeded or repeated. Prints the privacy promise,
    but no counts.

    Rules for a .csv: commas separate cells, and the encoding is UTF-8. Unless --no-header is given, the first row has
    column names, none of them a number. The first column has row labels if its header cell is empty or none of its
    cells is a number; --row-labels names a different column, such as numeric ids. All other cells are non-negative
    whole numbers. Row labels, the name of their column and column names are published as they are.

    Example: `countveil privatize survey.csv -o survey.npz --epsilon 1 --precision 2`
    """
    directed = edges.directed
    if (edges.network or directed is not None) and rows_per_file is not None:
        raise ValueError(
            "a network must be in one file: leave out --rows-per-file, or --network, --directed and --undirected"
        )
    edges.check(
        {
            "--no-header": no_header,
            "--row-labels": row_labels,
            "--mechanism": mechanism,
            "--no-row-labels": no_row_labels,
        }
        | matrix.others()
    )
    if rows_per_file is None:
        check_free(output, force, counts, matrix.vocabulary)
        check_ending(output, ".npz")
    rounding = rounding_of(mechanism, base)
    if rounding is not None:
        unmeant: dict[str, Any] = {
            "--epsilon": epsilon,
            "--precision": precision,
            "--rho": rho,
            "--truncated or --signed": truncated,
        }
        unmeant |= {"--rows-per-file": rows_per_file, "--directed or --undirected": directed}
        refuse_beside_rounding(unmeant)
    level: Any = level_of(epsilon, precision, rho) if rounding is None else None
    check_format(counts)
    if edges.network:
        table, directed = read_network(counts, edges, matrix.vocabulary)
    else:
        table = read_table(counts, header=not no_header, row_labels=row_labels, **matrix._asdict())
    values = table.values
    if values.dtype.kind in "iuf" and 0 not in values.shape and values.max() == 0:
        say(f"warning: every count in {counts} is zero; is it the right file?", err=True)
    labels: dict[str, Any] = named_labels(table)
    if no_row_labels:
        labels["row_labels"] = None
    if rounding is not None:
        release, files = round_randomly(table.values, rounding, **labels), ""
        release.save(output)
    elif rows_per_file is None:
        release, files = privatize(table.values, level, truncated, directed=directed, **labels), ""
        release.save(output)
    else:
        paths = privatize_to_files(table.values, level, output, truncated, rows_per_file=rows_per_file, **labels)
        release, files = Release.load(paths[0]), f" in {len(paths)} files"
    describe(release, level, tuple(labels.values()), release.extras.axis_names)
    matrix.say_orientation(counts, table.values.shape)
    size = f"{table.values.shape[0]} x {release.shape[1]}"
    kind = "truncated at zero" if release.truncated else "signed" if rounding is None else "randomly rounded"
    kind += {None: "", True: ", of a directed network", False: ", of an undirected network"}[directed]
    say(f"Wrote {output}: {size} reports{files}, {kind}.")


def named_labels(table: "CountTable") -> dict[str, Any]:
    """The labels of rows and columns, each with the name of its axis, for the functions that release counts."""
    import pandas as pd

    called = table.axis_names or (None, None)
    return {
        kind: None if labels is None else pd.Index(labels, dtype=object, name=name)
        for kind, labels, name in zip(("row_labels", "column_labels"), table[1:3], called, strict=True)
    }


def read_network(path: Path, network: NetworkFile, vocabulary: Path | None) -> "tuple[CountTable, bool]":
    """True counts between all actors, and whether they are directed; warns if the actors are those with an edge."""
    from countveil.data.edge_lists import GRAPHS, counts_of_edges

    with doubts_said():
        edges = network.read(path, vocabulary)
        table = counts_of_edges(edges)
    if vocabulary is None and path.suffix.lower() not in GRAPHS:
        say(
            "warning: only actors with an edge are in the network, and their names are published; name all actors by "
            "--vocabulary",
            err=True,
        )
    return table, edges.directed


def rounding_of(mechanism: str | None, base: str | None) -> int | None:
    """The base of random rounding, if that was asked for; raises ValueError for another mechanism or base."""
    if mechanism is None and base is None:
        return None
    if mechanism != "random-rounding":
        raise ValueError(
            f"--mechanism must be random-rounding, with --base, or left out for a level, got {mechanism or 'none'}"
        )
    if base is None or not re.fullmatch("[0-9]{1,10}", base, re.ASCII):
        raise ValueError(
            "--base must be a whole number of at least 2, such as --base 3, got "
            f"{'none' if base is None else ascii(base)[:20]}"
        )
    return int(base)


def refuse_beside_rounding(given: Mapping[str, Any]) -> None:
    """Raises ValueError for options that random rounding does not have, by name."""
    there = [name for name, value in given.items() if value is not None]
    if there:
        raise ValueError(f"--mechanism random-rounding must come without {' and '.join(there)}")


def level_of(epsilon: str | None, precision: str | None, rho: str | None) -> Level:
    """The level that was asked for: epsilon and precision together, or rho alone."""
    if epsilon is not None and precision is not None and rho is None:
        return PrivacyLevel(epsilon, precision)
    if rho is not None and epsilon is None and precision is None:
        return PrivacyLevel.zcdp(rho)
    given = {"--epsilon": epsilon, "--precision": precision, "--rho": rho}
    rule, named = (
        "a level must be --epsilon and --precision, or --rho alone",
        [k for k, v in given.items() if v is not None],
    )
    if not named:
        raise typer.BadParameter(f"{rule}, got none")
    raise ValueError(f"{rule}, got {' and '.join(named)}")


def check_format(counts: Path) -> None:
    """Refuse a document of an office program or a PDF, and say how its content becomes plain text."""
    if not counts.is_file() or counts.suffix.lower() == ".npz":  # which is a zip, as office documents are
        return
    with open(counts, "rb") as file:
        start = file.read(8)
    if key := format_of(start):
        raise ValueError(f"{counts} must hold a matrix of counts, got a file that is not plain text. {BOTH[key]}")


def describe(release: Release, level: Level | None, labels: Labels, names: Sequence[str | None] | None) -> None:
    """Print what is promised and which labels are published as they are; warn of a level that hides little, or of none.

    ``release`` may be one file of several, ``labels`` are those of all, and ``names`` those of the axes.
    """
    if level is None:
        say("warning: random rounding is not differential privacy and promises no privacy level", err=True)
        say(release.known_mechanisms[0].describe())
    elif hidden := level.hides():
        smaller = "epsilon/N" if isinstance(level, PrivacyLevel) else "rho"
        say(f"warning: {level.in_numbers()} hides {hidden}; a smaller {smaller} hides more", err=True)
    if level is not None:
        say(level.describe())
    say(describe_columns(release.shape[1], release.column_labels))
    if published := describe_labels(labels, names):
        say(published)


def describe_columns(n_columns: int, names: tuple[str, ...] | None) -> str:
    """How many columns were taken for counts, and which, so that a column of something else is noticed."""
    said = f"{n_columns} column{'s' if n_columns > 1 else ''} of counts"
    if names is None or reads_as_number(names[0]) or reads_as_number(names[-1]):
        return f"{said}."
    return f"{said}, from {names[0]} to {names[-1]}."
