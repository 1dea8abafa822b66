"""Outputs that replace nothing by accident."""

from pathlib import Path

from countveil.cli.say import say
from countveil.common.files import replacing
from countveil.privacy._archive import check_replaceable


def check_free(path: Path, force: bool, *others: Path | None) -> None:
    """Refuse an output that is another file of the command, is a directory, or is in a directory that does not exist.

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


def check_ending(output: Path, ending: str, *also: str) -> None:
    """Refuse an output whose name ends otherwise, so that other commands take it for what it is."""
    if output.suffix.lower() not in (ending, *also):
        raise ValueError(f"output must end in {' or '.join([ending, *also])}, got {output.name}")


def check_folder(path: Path) -> None:
    """Refuse a folder for outputs that exists and is something else."""
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{path} must be a directory for the files, got something else")


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
