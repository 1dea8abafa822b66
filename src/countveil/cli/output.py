"""What commands print and write: plain text, warnings, errors as one line, files that replace nothing by accident."""

import functools
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from countveil.privacy._archive import check_replaceable, replacing
from countveil.privacy._text import plain

if TYPE_CHECKING:
    from countveil.data.io import CountTable


def say(text: str, err: bool = False) -> None:
    """Print lines; control characters that a file brought are written out, never sent to the terminal."""
    typer.echo(plain(text, lines=True), err=err)


def check_free(path: Path, force: bool, *others: Path | None) -> None:
    """Refuse an output that is another file of the command, is a directory, or is in a directory that does not exist.

    One that exists is refused unless forced.
    """
    for other in others:
        if other is not None and is_same(path, other):
            raise ValueError(f"{path} must be a different file from {other}, which this command needs")
    if path.is_dir():
        raise IsADirectoryError(f"{path} must be a file to write, got a directory")
    check_replaceable(path)
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; choose another name, or pass --force to replace it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no directory {path.parent} to write {path.name} in")


def check_ending(output: Path, ending: str, *also: str) -> None:
    """Refuse an output whose name ends otherwise, so that other commands take it for what it is."""
    if output.suffix.lower() not in (ending, *also):
        raise ValueError(f"output must end in {' or '.join([ending, *also])}, got {output.name}")


def check_folder(path: Path) -> None:
    """Refuse a folder for outputs that exists and is something else."""
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(
            f"{path} must be a directory for the files, got a file: give the path of a new or existing directory"
        )


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, or would once it is written."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def tell_of_start(checkpoint: Path, resume: bool) -> None:
    """Say that there is nothing to go on from, where somebody may think that there is."""
    if resume and not checkpoint.exists():
        say(f"There is no checkpoint {checkpoint} yet: starting from the beginning.")


SIZE = re.compile(r"^n_(topics|communities|components)\b")
"""The parameters of models that options of other names set."""
EXPECTED = (ValueError, TypeError, OSError, MemoryError, ModuleNotFoundError)


def plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """The command with expected errors as one line on stderr and exit status 1, Ctrl-C as 130."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except EXPECTED as error:
            message = " ".join((str(error) or "out of memory").split())
            say("error: " + SIZE.sub(r"--\1", message), err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt as stop:
            say(str(stop) or "interrupted", err=True)
            raise typer.Exit(130) from None

    return wrapped


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
