"""Releases as commands read them: one, those that were joined in a file, or those of a folder."""

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from countveil.cli.output import say
from countveil.privacy import Release

if TYPE_CHECKING:
    from countveil.data.release_files import ReleaseFiles
    from countveil.data.reports import Reports

Data: TypeAlias = "Release | Reports | ReleaseFiles"

TABLES = ".csv", ".tsv", ".parquet", ".xlsx"

ReleaseFile = Annotated[
    Path, typer.Argument(help="A release from `countveil privatize`, `import` or `join`, or a folder of releases.")
]


def loaded(path: Path) -> "Release | Reports":
    """A release, or the reports of those that were joined in a file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a table, or a file of something else; the error names the file.
    """
    check_release(path)
    from countveil.data.joined_files import read
    from countveil.data.joining import join

    found = read(path)
    if len(found) == 1:
        return found[0]
    try:
        return join(found)
    except ValueError as error:
        raise ValueError(f"{path} must hold releases that can be joined: {error}") from error


def read_release(path: Path) -> "Data":
    """What a command is about: a release, joined ones, or those of a folder; says what has to be known of them.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a table, a file that is not a release, or reports that their mechanism cannot have made.
    """
    from countveil.data.release_files import ReleaseFiles

    data = ReleaseFiles(path) if path.is_dir() else loaded(path)
    if isinstance(data, Release):
        check_imported(path, data)
    say_of(data)
    return data


def say_of(data: "Data") -> None:
    """Say whether noise is simulated, who vouches for imported reports, and what joined ones promise together."""
    from countveil.data.reports import Reports

    joined, stated = isinstance(data, Reports), data if isinstance(data, Release) else data.provenance
    if stated.simulated:
        which = "One of these releases, or more," if joined else "This release"
        say(f"{which} is simulated: its noise came from a seeded generator and protects nobody.")
    if stated.source is not None:
        say(f"These reports were imported from: {stated.source}. Whoever imported them vouches for the mechanism.")
    if isinstance(data, Reports):
        say(f"{in_words(data)}. {data.promise}")


def check_release(path: Path) -> None:
    """Refuse what is not there, and tables, which are no releases."""
    if not path.exists():
        raise FileNotFoundError(f"no release at {path}")
    if path.suffix.lower() in TABLES:
        raise ValueError(
            f"{path} must be a release, got a table: `countveil import` makes a release of a table that somebody "
            "else protected, `countveil privatize` one of true counts"
        )


def check_imported(path: Path, release: Release) -> None:
    """Refuses reports that their mechanism cannot have made; raises ValueError, which names the file."""
    from countveil.data.importing import check_again

    try:
        check_again(release)
    except ValueError as error:
        raise ValueError(f"{path} must hold reports that its mechanism can produce: {error}") from error


def in_words(data: "Reports") -> str:
    """How many releases were joined, of which counts, and how many rows are in more than one of them."""
    number, size = len(data.provenance.releases or ()), " x ".join(map(str, data.mode_shape))
    several = repeated_rows(data)
    return f"{number} releases of {size} counts: {several} of {data.mode_shape[0]} rows are in more than one"


def repeated_rows(data: "Reports") -> int:
    """How many rows of joined reports are in more than one release."""
    rows = [release.row_labels or range(release.shape[0]) for release in data.provenance.releases or ()]
    return sum(times > 1 for times in Counter(chain.from_iterable(rows)).values())
