"""How a file of a matrix is read: its options in commands, and what is said of its orientation."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from countveil.cli.say import say

MATRICES = "Matrices and networks"
"""The panel of help for them."""
ORIENTATION_NOT_STATED = ".mtx", ".npz", ".npy"


class MatrixFile(NamedTuple):
    """Options of every command that reads a matrix; their names are those of ``read_counts``."""

    vocabulary: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=MATRICES,
            help="Names of the columns: a text file, one per line. Their number shows whether a matrix is transposed. "
            "With --network: names of all actors.",
        ),
    ] = None
    transpose: Annotated[
        bool,
        typer.Option(
            "--transpose",
            rich_help_panel=MATRICES,
            help="The matrix file has terms in rows and documents in columns.",
        ),
    ] = False
    n_rows: Annotated[
        int | None,
        typer.Option(
            min=1, rich_help_panel=MATRICES, help="Number of rows, if the file omits empty rows at its end."
        ),
    ] = None
    numbered_from: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1,
            rich_help_panel=MATRICES,
            help="Number of the first word in an SVMlight file, if the file does not show it.",
        ),
    ] = None
    layer: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MATRICES, help="The layer of an .h5ad file that has the counts [default: X]."
        ),
    ] = None

    def refuse(self, option: str) -> None:
        """Raise ValueError for any of these options beside another one that reads another kind of file."""
        named = {"--vocabulary": self.vocabulary} | self.others()
        there = [name for name, value in named.items() if value not in (None, False)]
        if there:
            raise ValueError(f"{option} must come without {' and '.join(there)}")

    def others(self) -> dict[str, object]:
        """The options by name that a list of edges does not have."""
        named = self._asdict()
        return {"--" + name.replace("_", "-"): named[name] for name in named if name != "vocabulary"}

    def say_orientation(self, path: Path, shape: tuple[int, ...]) -> None:
        """Say what was taken for rows where neither the file nor a vocabulary shows it."""
        stated = self.transpose or self.vocabulary is not None
        if path.suffix.lower() in ORIENTATION_NOT_STATED and len(shape) == 2 and not stated:
            say(
                f"{path} was read as {shape[0]} records (documents) with {shape[1]} columns (terms). If it is the "
                "other way round, pass --transpose; --vocabulary, with the names of the columns, checks it."
            )
