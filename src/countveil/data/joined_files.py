"""Files of several releases of the same counts: every release is in them as it is, with a seal of its own.

The file is a zip that is sealed as releases are. Its members are the release files 1.npz, 2.npz, .., not packed again,
and a meta.json with their seals in order, so that none can be missing, changed or in another's place.
"""

import os
import zipfile
from collections.abc import Iterable, Sequence

from countveil.privacy import Release, _archive, _format
from countveil.privacy._archive import too_much

FORMAT = "countveil-joined-releases"
FORMAT_VERSION = 1
FIRST = "1.npz"
MOST_RELEASES = 100
HASH = 64  # characters at the end of a release file


def write(path: str | os.PathLike[str], releases: Iterable[Release]) -> None:
    """Write two releases or more to one file, in one step; the same releases give the same bytes.

    Raises:
        ValueError: fewer than two releases, or more than ``MOST_RELEASES``.
    """
    contents = [_archive.packed(_format.members(each)) for each in releases]
    if not 2 <= len(contents) <= MOST_RELEASES:
        raise ValueError(f"releases must be 2 to {MOST_RELEASES} to be in one file, got {len(contents)}")
    _archive.write(path, members_of(contents), zipfile.ZIP_STORED)


def members_of(contents: Sequence[bytes]) -> dict[str, bytes]:
    """The members of a file of these release files."""
    seals = [each[-HASH:].decode("ascii") for each in contents]
    meta = {"format": FORMAT, "format_version": FORMAT_VERSION, "releases": seals}
    return {_format.META: _format.canonical(meta)} | {
        f"{number}.npz": each for number, each in enumerate(contents, start=1)
    }


def read(path: str | os.PathLike[str]) -> list[Release]:
    """The releases in a file: one in that of a release, two or more in one that ``write`` made.

    Raises:
        FileNotFoundError: no such file.
        IsADirectoryError: a folder.
        ReleaseError: a file that is damaged, is of something else, or asks for more memory than its bytes can fill, by
            itself or in one of its releases; the error names file and rule.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} must be a file of releases, got a folder")
    reader = _archive.Reader(path)
    parts = readers_in(reader) if FIRST in reader.names else [reader]
    return [Release._read(each) for each in parts]


def readers_in(reader: _archive.Reader) -> list[_archive.Reader]:
    """The release files in a file, each with a seal that holds; raises ReleaseError."""
    number = len(reader.names) - 1
    names = [f"{place}.npz" for place in range(1, number + 1)]
    if reader.names != {_format.META, *names} or not 2 <= number <= MOST_RELEASES:
        listed = f"{_format.META} and 2 to {MOST_RELEASES} releases from {FIRST} on"
        raise reader.fault(f"must hold {listed}, got {sorted(reader.names)[:8]}")
    if reader.asked > reader.length:
        raise reader.fault(
            f"must hold releases that are not packed again, got {reader.length} bytes that declare {reader.asked}"
        )
    contents = [reader.read(name) for name in names]
    found = [_archive.Reader(f"{reader.path}/{name}", each) for name, each in zip(names, contents, strict=True)]
    stated = reader.read(_format.META)
    if stated != members_of(contents)[_format.META]:
        raise reader.fault(
            f"must describe itself as {FORMAT!r}, version {FORMAT_VERSION}, with the seals of its releases in "
            f"their order, got {stated!r:.80}"
        )
    asked = too_much(sum(each.asked for each in found), reader.length, _archive.COPIES)
    if asked is not None:
        raise reader.fault(asked)
    return found
