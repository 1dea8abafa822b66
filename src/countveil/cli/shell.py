"""What the commands share: errors in one line, and outputs that replace nothing by accident."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from countveil.privacy._archive import check_replaceable

EXPECTED = (ValueError, TypeError, OSError, ModuleNotFoundError)

Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads to use [default: all]; the result does not depend on it.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]


def plainly(command: Callable[..., None]) -> Callable[..., None]:
    """The command with expected errors as one line on stderr and exit status 1, Ctrl-C as 130."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except EXPECTED as error:
            typer.echo("error: " + " ".join(str(error).split()), err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None

    return wrapped


def check_free(path: Path, force: bool, *others: Path | None) -> None:
    """Refuse an output that is another file of the command, is a directory, or has none to be written in.

    One that exists is refused unless forced.
    """
    for other in others:
        if other is not None and is_same(path, other):
            raise ValueError(f"{path} must be a file of its own, got {other}, which this command needs")
    if path.is_dir():
        raise IsADirectoryError(f"{path} must be a file to write, got a directory")
    check_replaceable(path)
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; choose another name, or pass --force to replace it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no directory {path.parent} to write {path.name} in")


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, or would once it is written."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()
