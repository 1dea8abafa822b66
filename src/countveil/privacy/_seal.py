"""The last bytes of a file: ``countveil-sha256:`` and the SHA-256 of every byte before.

A flipped bit, a truncated file and appended bytes are refused. The seal detects damage and casual tampering; it is
not a signature: whoever rewrites a file on purpose can compute it again.
"""

import hashlib
import os
from typing import BinaryIO

PREFIX = b"countveil-sha256:"
LENGTH = len(PREFIX) + 64
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
        file.seek(max(0, file.seek(0, os.SEEK_END) - LENGTH))
        return file.read()


def broken(file: BinaryIO, kind: str) -> str | None:
    """The rule that an open file's seal breaks, if it does; ``kind`` says what the file should be."""
    size = file.seek(0, os.SEEK_END) - LENGTH
    file.seek(max(0, size))
    found = file.read(LENGTH)
    if not found.startswith(PREFIX):
        return f"must end with its SHA-256 seal, got none: it is truncated, longer, or not a {kind}"
    if found != seal(file, size):
        return "must match its SHA-256 seal, got different bytes: it was damaged or changed"
    return None
