"""One file, many members: a zip that np.load can read, written atomically and sealed with its own hash.

The zip's comment is its seal.
"""

import hashlib
import io
import os
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from countveil.privacy._memory import available_memory
from countveil.privacy.errors import ReleaseError

COPIES = 3
"""How often the bytes of an array are held while it is read: as a member, as an array, and as a checked one."""
HDF5 = b"\x89HDF\r\n\x1a\n"  # how a fit begins
_ABANDONED = 3600  # seconds without a write, after which a temporary file is a leftover
_LEVEL = 1
"""The higher levels take four to ten times as long for files that are hardly smaller."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, ValueError, KeyError, EOFError, OverflowError, RuntimeError)


class Streamed(NamedTuple):
    """A member that is too large to hold: its size in bytes, and its bytes in pieces."""

    size: int
    pieces: Iterable[bytes]


def write(
    path: str | os.PathLike[str], members: Mapping[str, bytes | Streamed], method: int = zipfile.ZIP_DEFLATED
) -> None:
    """Writes the members to ``path`` in one step: either the whole new file is there or the old one stays.

    The same members give the same bytes, which do not tell when or where they were written.
    """
    with replacing(path) as temporary, open(temporary, "x+b") as file:
        _put_together(file, members, method)


def packed(members: Mapping[str, bytes | Streamed], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The bytes of the file that ``write`` makes of the members."""
    file = io.BytesIO()
    _put_together(file, members, method)
    return file.getvalue()


def _put_together(file: BinaryIO, members: Mapping[str, bytes | Streamed], method: int) -> None:
    """Writes the members and the seal to an empty file."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = method
            info._compresslevel = _LEVEL  # type: ignore[attr-defined]
            info.create_system = 3
            info.external_attr = 0o644 << 16
            info.file_size = content.size if isinstance(content, Streamed) else len(content)
            with archive.open(info, "w") as member:
                for piece in content.pieces if isinstance(content, Streamed) else (content,):
                    member.write(piece)
        archive.comment = b" " * SEAL_LENGTH
    size = file.seek(0, os.SEEK_END) - SEAL_LENGTH
    found = seal(file, size)
    file.seek(size)
    file.write(found)


def put(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes ``content`` to ``path`` in one step."""
    with replacing(path) as temporary, open(temporary, "xb") as file:
        file.write(content)


def check_replaceable(path: Path) -> None:
    """Raises OSError if ``path`` is something other than a file, such as a device, that renaming would replace."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path} must be a file or a new name, got a directory, a device or a pipe")


def _clear_leftovers(target: Path) -> None:
    """Removes temporary files for ``target`` that a killed process left, which nobody has written to for an hour."""
    name, oldest = re.escape(target.name), time.time() - _ABANDONED
    temporary = re.compile(rf"\.{name}\.[0-9a-f]{{12}}\.tmp|\.[0-9a-f]{{12}}\.{name}")
    with suppress(OSError):
        for each in os.scandir(target.parent):
            if temporary.fullmatch(each.name) and each.is_file(follow_symlinks=False):
                with suppress(OSError):
                    if each.stat().st_mtime < oldest:
                        os.unlink(each)


@contextmanager
def _naming(target: Path, temporary: Path) -> Iterator[None]:
    """Errors of writing, as of a full disk, name the file that was to be written."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(temporary), temporary):
            raise
        raise type(error)(error.errno, error.strerror or os.strerror(error.errno), os.fspath(target)) from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; it takes the name at the end, unless an error came first.

    It has the same ending, for writers that go by it. What was at ``path`` stays until the moment of renaming. What a
    killed process left there is removed, once nobody has written to it for an hour.
    Raises OSError if there is a device, a pipe or a directory: renaming would put a file in its place.
    """
    target = Path(path)
    check_replaceable(target)
    _clear_leftovers(target)
    temporary = target.with_name(f".{os.urandom(6).hex()}.{target.name}")
    try:
        with _naming(target, temporary):
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class Reader:
    """The members of a file whose seal holds; every fault is a ReleaseError that names the file.

    ``content`` is what a file holds that lies in another one; ``path`` then says how errors call it.
    """

    def __init__(self, path: str | os.PathLike[str], content: bytes | None = None) -> None:
        self.path = os.fspath(path)
        with open(self.path, "rb") if content is None else io.BytesIO(content) as file:
            rule = broken(file, "release")
            if rule is not None:
                raise self.fault(rule)
            file.seek(0)
            content = file.read()
        if content.startswith(HDF5):
            raise self.fault("must be a release, got a fit or another HDF5 file")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
            self._infos = {info.filename: info for info in self._zip.infolist()}
        except _DAMAGE as error:
            said = " ".join(str(error).split())[:200]
            raise self.fault(f"must be a zip archive: {said}") from error
        if len(self._infos) != len(self._zip.infolist()):
            raise self.fault("must hold every member once, got a duplicate")
        self.length = len(content)
        self.asked = sum(info.file_size for info in self._infos.values())
        asked = packed_otherwise(self._infos.values()) or too_much(self.asked, self.length, COPIES)
        if asked is not None:
            raise self.fault(asked)

    @property
    def names(self) -> set[str]:
        """The members that the file holds."""
        return set(self._infos)

    def size(self, name: str) -> int:
        """The size that a member declares; it never decompresses to more."""
        return self._infos[name].file_size

    def read(self, name: str) -> bytes:
        """A member's bytes."""
        try:
            return self._zip.read(name)
        except _DAMAGE as error:
            said = " ".join(str(error).split())[:200]
            raise self.fault(f"must hold a readable {name}, got {said}") from error

    def fault(self, rule: str) -> ReleaseError:
        """The error that says what is wrong with this file."""
        return ReleaseError(f"release file {self.path} {rule}")


# The last bytes of a file: ``countveil-sha256:`` and the SHA-256 of every byte before.
#
# A flipped bit, a truncated file and appended bytes are refused. The seal detects damage and casual
# tampering; it is not a signature: whoever rewrites a file on purpose can compute it again.

PREFIX = b"countveil-sha256:"
SEAL_LENGTH = len(PREFIX) + 64
_PIECE = 1 << 20


def seal(file: BinaryIO, size: int) -> bytes:
    """The seal of the first ``size`` bytes of an open file."""
    file.seek(0)
    digest, left = hashlib.sha256(), size
    while left > 0 and (piece := file.read(min(left, _PIECE))):
        digest.update(piece)
        left -= len(piece)
    return PREFIX + digest.hexdigest().encode("ascii")


def seal_at_end(path: str | os.PathLike[str]) -> bytes:
    """The last bytes of a file, where its seal is; they are not compared with the others."""
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - SEAL_LENGTH))
        return file.read()


def broken(file: BinaryIO, kind: str) -> str | None:
    """The rule that an open file's seal breaks, if it does; ``kind`` says what the file should be."""
    size = file.seek(0, os.SEEK_END) - SEAL_LENGTH
    file.seek(max(0, size))
    found = file.read(SEAL_LENGTH)
    if not found.startswith(PREFIX):
        return f"must end with its SHA-256 seal, got none: it is truncated, longer, or not a {kind}"
    if found != seal(file, size):
        return "must match its SHA-256 seal, got different bytes: it was damaged or changed"
    return None


EXPANSION = 300
"""Deflate at level 1, which releases are written with, packs zeros 229 to 1; at its best level 1,029 to 1."""
SMALL = 1 << 26
"""Bytes that any file may ask for."""


def too_much(asked: int, stored: int, copies: int = 1) -> str | None:
    """Why a file of ``stored`` bytes may not ask for ``asked`` bytes, held ``copies`` times; None if it may."""
    if asked > max(SMALL, EXPANSION * stored):
        return f"must hold what it declares, got {stored} bytes that declare {asked}"
    free = available_memory()
    if asked > SMALL and free is not None and asked * copies > free:
        return f"must fit into the {free} bytes of memory that are free, got {asked} bytes, held {copies} times"
    return None


def packed_otherwise(infos: Iterable[zipfile.ZipInfo]) -> str | None:
    """The rule that members of an archive break; None if each is stored as it is or by deflate.

    Only those are unpacked no further than to the size that is declared: bzip2 and LZMA unpack all that they read.
    """
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return f"must be packed by deflate or not at all, got method {info.compress_type}"
    return None
