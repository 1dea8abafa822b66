"""The option of ``countveil import`` that states the exposure of every cell, and what it stands for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from countveil.data.tables.published import ProtectedTable
    from countveil.data.tables.text import Format

Exposure = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|COLUMN",
        help="Exposure of each cell, such as its population: with --long, a column; otherwise a file like the table, "
        "with the same labels.",
    ),
]


def column_of_exposure(given: str | None) -> list[str]:
    """The column of a long table that has exposures, in a list, empty without one."""
    return [] if given is None else [given]


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
