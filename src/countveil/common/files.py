"""Tables as files, and room for large files."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countveil.privacy._archive import replacing
from countveil.privacy._text import cell

if TYPE_CHECKING:
    import pandas as pd

TABLES = {".csv": "", ".xlsx": "openpyxl", ".parquet": "pyarrow"}
"""What tables are written as, and what that needs."""
ROWS_OF_A_SHEET = 2**20


def make_room(temporary: Path, n_bytes: int, path: str | os.PathLike[str]) -> None:
    """See that a new file of this size can be written; it is left empty.

    For writers that end the whole process where the disk is full, as HDF5 may. Raises OSError, which names ``path``.
    """
    with open(temporary, "wb") as file:
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        except OSError as error:
            reason = f"{os.strerror(error.errno or 0)}, {n_bytes:,} bytes are needed"
            raise OSError(error.errno, reason, os.fspath(path)) from error
        finally:
            file.truncate(0)


def write_csv(frame: "pd.DataFrame", path: str | os.PathLike[str]) -> None:
    """Write a table without its index, in one step; text that a spreadsheet would compute gets an apostrophe."""
    with replacing(path) as temporary:
        safe_for_spreadsheets(frame).to_csv(temporary, index=False)


def write_table(frame: "pd.DataFrame", path: str | os.PathLike[str]) -> None:
    """Write a table without its index as a .csv, .xlsx or .parquet, in one step; the first two as ``write_csv``.

    Raises:
        ModuleNotFoundError: openpyxl (.xlsx) or pyarrow (.parquet) is missing.
        ValueError: another ending, or more rows than a sheet has.
    """
    ending = Path(path).suffix.lower()
    if ending not in TABLES:
        raise ValueError(f"a table must end in {', '.join(TABLES)}, got {Path(path).name}")
    if ending == ".csv":
        write_csv(frame, path)
        return
    if find_spec(TABLES[ending]) is None:
        raise ModuleNotFoundError(
            f"{Path(path).name} needs {TABLES[ending]}, which is missing: pip install {TABLES[ending]}, or write a .csv"
        )
    if ending == ".xlsx" and len(frame) >= ROWS_OF_A_SHEET:
        raise ValueError(
            f"a .xlsx must have fewer than {ROWS_OF_A_SHEET:,} rows, got {len(frame):,}: write a .csv or .parquet"
        )
    with replacing(path) as temporary:
        if ending == ".xlsx":
            safe_for_spreadsheets(frame).to_excel(temporary, index=False)
        else:
            frame.to_parquet(temporary, index=False)


def safe_for_spreadsheets(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The table with an apostrophe before text that a spreadsheet would compute."""

    def as_cell(value: Any) -> Any:
        return cell(value) if isinstance(value, str) else value

    texts = [place for place, kind in enumerate(frame.dtypes) if not hasattr(kind, "kind") or kind.kind in "OUT"]
    safe = frame.rename(columns=as_cell)
    for place in texts:
        safe.isetitem(place, frame.iloc[:, place].map(as_cell))
    return safe
