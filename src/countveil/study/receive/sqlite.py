"""Reports in one SQLite file, with the standard library alone; in the order of their random tokens."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from countveil.privacy.errors import RefusedError
from countveil.privacy.study import Study
from countveil.study.receive.database import NEW, OTHER, SAME, VERSION, Batch, StoreError, check_study

_MAGIC = b"SQLite format 3\0"
_APPLICATION = 0x56454C32
_TABLES = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE reports (participant TEXT PRIMARY KEY, report BLOB NOT NULL) WITHOUT ROWID",
)


class SQLite:
    """The database in a file, which is made if there is none.

    Raises RefusedError if the file is something else, or holds the reports of another study.
    """

    def __init__(self, path: Path, study: Study) -> None:
        _keep_private(path)
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        except sqlite3.Error as error:
            raise _no_store(path, error) from None
        try:
            self._open(study, str(path))
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise _no_store(path, error) from None
        except BaseException:
            self._connection.close()
            raise

    def _open(self, study: Study, name: str) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = 1", "trusted_schema = 0"):
            self._connection.execute(f"PRAGMA {pragma}").close()
        self._connection.execute("BEGIN IMMEDIATE")
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables == 0:
            for statement in _TABLES:
                self._connection.execute(statement)
            self._connection.execute("INSERT INTO settings VALUES ('study', ?)", (study.id,))
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {VERSION}")
        found = _study_of(self._connection, name)
        self._connection.execute("COMMIT")
        check_study(name, found, study)

    def put(self, batch: Batch) -> list[str]:
        """NEW, SAME or OTHER for each, once all is on disk; raises StoreError."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = [self._put(participant, report) for participant, report in batch]
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise StoreError(str(error)) from error
        return outcomes

    def _put(self, participant: str, report: bytes) -> str:
        done = self._connection.execute("INSERT OR IGNORE INTO reports VALUES (?, ?)", (participant, report)).rowcount
        if done:
            return NEW
        query = "SELECT report FROM reports WHERE participant = ?"
        (before,) = self._connection.execute(query, (participant,)).fetchone()
        return SAME if before == report else OTHER

    def close(self) -> None:
        """Closes the file, rewritten in the order of the tokens: its pages would show the order of arrival."""
        with suppress(sqlite3.Error):  # without room, or beside another receiver, it is left for next time
            self._connection.execute("VACUUM")
        self._connection.close()


def _keep_private(path: Path) -> None:
    """Makes the file, or takes it, for its owner alone; SQLite gives the files next to it the same mode.

    A file of somebody else is left as it is. Raises RefusedError where it cannot be made.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        for each in (path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))):
            with suppress(OSError):
                if stat.S_ISREG(each.lstat().st_mode):
                    each.chmod(0o600)
    except OSError as error:
        raise _no_store(path, error) from None


def _study_of(connection: sqlite3.Connection, name: str) -> str:
    known = [connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("application_id", "user_version")]
    if known != [_APPLICATION, VERSION]:
        ours = known[0] == _APPLICATION
        got = f"version {known[1]}" if ours else f"a database whose application_id is {known[0]}"
        raise RefusedError(name, "the store", f"must be a store of version {VERSION}, got {got}")
    return connection.execute("SELECT value FROM settings WHERE name = 'study'").fetchone()[0]


def _no_store(path: Path, error: Exception) -> RefusedError:
    return RefusedError(str(path), "the store", f"must be a store of reports, got: {error}")


def is_file(path: Path) -> bool:
    """Whether a file is an SQLite database, which no report is."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _reading(path: Path, study: Study | None = None) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
    try:
        found = _study_of(connection, str(path))
        if study is not None:
            check_study(str(path), found, study)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _no_store(path, error) from None
    except BaseException:
        connection.close()
        raise
    return connection


def size(path: Path, study: Study | None = None) -> int:
    """How many reports a file holds; raises RefusedError if it is not a store, or not of this study."""
    with closing(_reading(path, study)) as connection:
        return connection.execute("SELECT count(*) FROM reports").fetchone()[0]


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Each report in the order of the tokens, with what to call it; raises RefusedError."""
    with closing(_reading(path)) as connection:
        query = "SELECT participant, report FROM reports ORDER BY participant"
        for participant, report in connection.execute(query):
            yield f"{path}#{participant}", report
