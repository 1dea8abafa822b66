"""What a database of reports does, whichever it is: a batch in one transaction, each participant once."""

import re
from collections.abc import Sequence
from typing import Protocol

from countveil.privacy.errors import RefusedError
from countveil.privacy.study import Study

NEW, SAME, OTHER = "new", "same", "other"
"""What became of a report: stored, already there byte for byte, or refused since its participant has another."""

VERSION = 1
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_POSTGRES = re.compile(r"postgres(ql)?://")
_SETTINGS = re.compile(r"(^|\s)(host|hostaddr|port|dbname|user|password|passfile|service)\s*=")

Batch = Sequence[tuple[str, bytes]]
"""Participants' tokens, and their reports."""


class StoreError(Exception):
    """A batch could not be stored, or it is not known whether it was; it may be handed in again."""


class Database(Protocol):
    """A database that is open for writing, by one thread."""

    def put(self, batch: Batch) -> list[str]:
        """NEW, SAME or OTHER for each, once all is on disk; raises StoreError."""

    def close(self) -> None:
        """Lets go of it."""


def is_postgres(where: str) -> bool:
    """Whether this names a PostgreSQL database."""
    return _POSTGRES.match(where) is not None


def is_url(where: str) -> bool:
    """Whether this is a URL, not a file; "host=... password=..." is taken for one, to be refused as such."""
    return _URL.match(where) is not None or _SETTINGS.search(where) is not None


def check_study(name: str, found: str, study: Study) -> None:
    """Refuses the store of another study."""
    if found != study.id:
        raise RefusedError(name, "study", f"must be {study.id}, got the store of another, {found}")
