"""Accepted reports, each participant once: in one SQLite file, or in a PostgreSQL database that a URL names.

Nothing is stored with a time or an address. One thread writes: it puts all waiting reports into one transaction, and
answers only once that is on disk.
"""

import logging
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from countveil.common.extras import install
from countveil.privacy.errors import RefusedError
from countveil.privacy.study import Study
from countveil.study.receive import sqlite
from countveil.study.receive.database import NEW, OTHER, SAME, Database, StoreError, is_postgres, is_url

__all__ = ["NEW", "OTHER", "SAME", "BusyError", "Store", "StoreError", "contents", "is_store", "name_of", "size"]

_BATCH = 512
_LOG = logging.getLogger(__name__)
_Waiting = tuple[str, bytes, "Future[str]"]


class BusyError(Exception):
    """Too many reports are waiting to be written."""


class Store:
    """The store at a path or a URL, made if there is none; at most ``waiting`` reports wait to be written.

    Raises RefusedError if there is something else, or the store of another study; FileNotFoundError if the
    directory of a file does not exist; ModuleNotFoundError if a URL needs the extra ``postgres``.
    """

    def __init__(self, where: str | Path, study: Study, waiting: int = 1024) -> None:
        self._waiting: queue.Queue[_Waiting | None] = queue.Queue(waiting)
        self._failing = False
        self.database = _database(str(where), study)
        self._writer = threading.Thread(target=self._write, name="store", daemon=True)
        self._writer.start()

    def put(self, participant: str, report: bytes) -> "Future[str]":
        """NEW, SAME or OTHER, once that is on disk; raises BusyError where too many wait."""
        future: Future[str] = Future()
        try:
            self._waiting.put_nowait((participant, report, future))
        except queue.Full:
            raise BusyError from None
        return future

    def close(self) -> None:
        """Writes what waits, and closes the database."""
        self._waiting.put(None)
        self._writer.join()
        self.database.close()

    def _write(self) -> None:
        going = True
        while going:
            batch = [self._waiting.get()]
            with suppress(queue.Empty):
                while len(batch) < _BATCH:
                    batch.append(self._waiting.get_nowait())
            going = None not in batch
            self._commit([entry for entry in batch if entry is not None])

    def _commit(self, batch: list[_Waiting]) -> None:
        try:
            outcomes = self.database.put([(participant, report) for participant, report, _ in batch])
        except Exception as error:  # whatever it is, those who wait are told, and the thread goes on
            if not self._failing:
                _LOG.warning("Nothing can be stored, and senders are told to come later: %s", error)
            self._failing = True
            for *_, future in batch:
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
            return
        if self._failing:
            _LOG.warning("Reports are stored again.")
        self._failing = False
        for (*_, future), outcome in zip(batch, outcomes, strict=True):
            if future.set_running_or_notify_cancel():
                future.set_result(outcome)


def _database(where: str, study: Study) -> Database:
    if is_url(where):
        return _postgres(where).Postgres(where, study)
    path = Path(where)
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"no directory {path.parent} to write {path.name} in")
    return sqlite.SQLite(path, study)


def _postgres(url: str) -> ModuleType:
    if not is_postgres(url):
        scheme, colon, _ = url.partition(":")
        got = "other settings" if "=" in scheme or not colon else f"{scheme}:"  # which can hold a password
        raise RefusedError("db", "the URL", f"must begin with postgresql://, or be a file, got {got}")
    try:
        from countveil.study.receive import postgres
    except ImportError as error:
        raise ModuleNotFoundError(
            f"a PostgreSQL database needs the extra postgres: {install('postgres')} ({error})"
        ) from None
    return postgres


def is_store(where: str | Path) -> bool:
    """Whether this is a URL, or a file that is an SQLite database, which no report is."""
    return is_url(str(where)) or sqlite.is_file(Path(where))


def name_of(where: str | Path) -> str:
    """What to call a store: its path, or its URL without user and password; raises RefusedError."""
    return _postgres(str(where)).name_of(str(where)) if is_url(str(where)) else str(where)


def size(where: str | Path, study: Study | None = None) -> int:
    """How many reports a store holds; raises RefusedError if it is not one, or not of this study."""
    if is_url(str(where)):
        return _postgres(str(where)).size(str(where), study)
    return sqlite.size(Path(where), study)


def contents(where: str | Path) -> Iterator[tuple[str, bytes]]:
    """Each report of a store in the order of the tokens, with what to call it; raises RefusedError."""
    return _postgres(str(where)).contents(str(where)) if is_url(str(where)) else sqlite.contents(Path(where))
