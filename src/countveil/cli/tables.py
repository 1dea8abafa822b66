"""Tables of counts from files, with what they are warned of said as commands say it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countveil.cli.say import say

if TYPE_CHECKING:
    from countveil.data.io import CountTable


def read_table(path: Path, **options: Any) -> "CountTable":
    """What ``read_counts`` finds, with its options and errors; prints its warnings."""
    from countveil.data.io import read_counts

    with doubts_said():
        return read_counts(path, **options)


@contextmanager
def doubts_said() -> Iterator[None]:
    """Prints what is warned of inside, unless it ends in an error, as commands say it."""
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        yield
    for doubt in doubts:
        say(f"warning: {doubt.message}", err=True)
