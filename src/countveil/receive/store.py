"""Accepted reports in one SQLite file, each participant once; with the standard library alone.

Reports lie in the order of their random tokens, without a time or an address. One thread writes: it takes all
that waits into one transaction, and says so to those who wait only once that is on disk.
"""

import queue
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path

from countveil.privacy.errors import RefusedError
from countveil.privacy.study import Study

NEW, SAME, OTHER = "new", "same", "other"
"""What became of a report: stored, there before byte for byte, or refused for another of its participant."""

_MAGIC = b"SQLite format 3\0"
_APPLICATION = 0x56454C32
_VERSION = 1
_BATCH = 512
_TABLES = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE reports (participant TEXT PRIMARY KEY, report BLOB NOT NULL) WITHOUT ROWID",
)
_Waiting = tuple[str, bytes, "Future[str]"]


class BusyError(Exception):
    """More reports wait to be written than may."""


class Store:
    """The store in a file, which is made if there is none; ``waiting`` bounds what waits to be written.

    Raises RefusedError if the file is something else, or the store of another study.
    """

    def __init__(self, path: Path, study: Study, waiting: int = 1024) -> None:
        self.path = path
        self._waiting: queue.Queue[_Waiting | None] = queue.Queue(waiting)
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        try:
            self._open(study)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise RefusedError(str(path), "the store", f"must be a store of reports, got: {error}") from None
        except BaseException:
            self._connection.close()
            raise
        self._writer = threading.Thread(target=self._write, name="store", daemon=True)
        self._writer.start()

    def _open(self, study: Study) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = 1", "trusted_schema = 0"):
            self._connection.execute(f"PRAGMA {pragma}").close()
        self._connection.execute("BEGIN IMMEDIATE")
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables == 0:
            for statement in _TABLES:
                self._connection.execute(statement)
            self._connection.execute("INSERT INTO settings VALUES ('study', ?)", (study.id,))
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {_VERSION}")
        found = _study_of(self._connection, str(self.path))
        self._connection.execute("COMMIT")
        if found != study.id:
            raise RefusedError(
                str(self.path), "study", f"must be {study.id}, got the store of another, {found}"
            )

    def put(self, participant: str, report: bytes) -> "Future[str]":
        """NEW, SAME or OTHER, once that is on disk; raises BusyError where too many wait."""
        future: Future[str] = Future()
        try:
            self._waiting.put_nowait((participant, report, future))
        except queue.Full:
            raise BusyError from None
        return future

    def close(self) -> None:
        """Writes what waits, and closes the file."""
        self._waiting.put(None)
        self._writer.join()
        self._connection.close()

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
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = [self._put(participant, report) for participant, report, _ in batch]
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            for *_, future in batch:
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
            return
        for (*_, future), outcome in zip(batch, outcomes, strict=True):
            if future.set_running_or_notify_cancel():
                future.set_result(outcome)

    def _put(self, participant: str, report: bytes) -> str:
        done = self._connection.execute(
            "INSERT OR IGNORE INTO reports VALUES (?, ?)", (participant, report)
        ).rowcount
        if done:
            return NEW
        query = "SELECT report FROM reports WHERE participant = ?"
        (before,) = self._connection.execute(query, (participant,)).fetchone()
        return SAME if before == report else OTHER


def _study_of(connection: sqlite3.Connection, name: str) -> str:
    known = [
        connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("application_id", "user_version")
    ]
    if known != [_APPLICATION, _VERSION]:
        raise RefusedError(name, "the store", f"must be a store of version {_VERSION}, got other data")
    return connection.execute("SELECT value FROM settings WHERE name = 'study'").fetchone()[0]


def is_store(path: Path) -> bool:
    """Whether a file is an SQLite database: no report is."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _reading(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
    try:
        _study_of(connection, str(path))
    except sqlite3.DatabaseError as error:
        connection.close()
        raise RefusedError(str(path), "the store", f"must be a store of reports, got: {error}") from None
    except BaseException:
        connection.close()
        raise
    return connection


def size(path: Path) -> int:
    """How many reports a store holds; raises RefusedError if it is none."""
    with closing(_reading(path)) as connection:
        return connection.execute("SELECT count(*) FROM reports").fetchone()[0]


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Each report of a store in the order of the tokens, with what to call it; raises RefusedError."""
    with closing(_reading(path)) as connection:
        query = "SELECT participant, report FROM reports ORDER BY participant"
        for participant, report in connection.execute(query):
            yield f"{path}#{participant}", report
