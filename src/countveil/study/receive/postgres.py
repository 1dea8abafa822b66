"""Reports in a PostgreSQL database; needs psycopg, the extra ``postgres``.

The two tables are countveil_settings and countveil_reports, in the first schema of the search path. A commit is
answered by the server once it is in its log on disk: that is asked for in every transaction, and a server that
does not wait for its disk is refused.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, LiteralString
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from countveil.privacy.errors import RefusedError
from countveil.privacy.study import Study
from countveil.study.receive.database import NEW, OTHER, SAME, VERSION, Batch, StoreError, check_study

_DEFAULTS: dict[str, Any] = {"connect_timeout": 10, "tcp_user_timeout": 60_000, "application_name": "countveil"}
_USER = re.compile(r"\w+://([^@/]*@)?")
_LOCK = 0x56454C32
_FETCHED = 100
_TABLES: tuple[LiteralString, ...] = (
    "CREATE TABLE countveil_settings (name text PRIMARY KEY, value text NOT NULL)",
    'CREATE TABLE countveil_reports (participant text COLLATE "C" PRIMARY KEY, report bytea NOT NULL)',
)
_BEGUN = """SELECT set_config('lock_timeout', '30s', true), set_config('statement_timeout', '60s', true),
 set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
 ELSE current_setting('synchronous_commit') END, true)"""
_INSERT = """INSERT INTO countveil_reports SELECT * FROM unnest(%b::text[], %b::bytea[])
 ON CONFLICT DO NOTHING RETURNING participant"""
_KEPT = "SELECT participant, report FROM countveil_reports WHERE participant = ANY(%b::text[])"


class Postgres:
    """The database at a URL; its tables are made if there are none. A lost connection is made again.

    Raises RefusedError if it cannot be opened, or holds the reports of another study.
    """

    def __init__(self, url: str, study: Study) -> None:
        self._url, self._study = url, study
        self._connection = _opened(url, study)

    def put(self, batch: Batch) -> list[str]:
        """NEW, SAME or OTHER for each, once all is on disk; raises StoreError."""
        if self._connection.closed:
            self._connect()
        try:
            return self._put(batch)
        except psycopg.Error as error:
            if not self._connection.closed:
                raise StoreError(_first_line(error)) from error
        self._connect()
        try:
            return self._put(batch)
        except psycopg.Error as error:
            raise StoreError(_first_line(error)) from error

    def _connect(self) -> None:
        try:
            self._connection = _opened(self._url, self._study)
        except RefusedError as error:
            raise StoreError(str(error)) from error

    def _put(self, batch: Batch) -> list[str]:
        kept: dict[str, bytes] = {}
        for participant, report in batch:
            kept.setdefault(participant, report)
        asked = sorted(kept)  # in one order, or two receivers could wait for each other
        with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
            cursor.execute(_BEGUN)
            cursor.execute(_INSERT, (asked, [kept[participant] for participant in asked]))
            new = {participant for (participant,) in cursor}
            known = [participant for participant in asked if participant not in new]
            if known:
                kept.update(cursor.execute(_KEPT, (known,)))
        return [_outcome(new, kept, *entry) for entry in batch]

    def close(self) -> None:
        """Closes the connection."""
        with suppress(psycopg.Error):
            self._connection.close()


def _outcome(new: set[str], kept: dict[str, bytes], participant: str, report: bytes) -> str:
    if kept[participant] != report:
        return OTHER
    if participant in new:
        new.remove(participant)
        return NEW
    return SAME


def name_of(url: str) -> str:
    """The URL without user and password; raises RefusedError if it is not one."""
    told = _read(url)
    host = quote(told.get("host", told.get("hostaddr", "")), safe="")
    port = f":{told['port']}" if "port" in told else ""
    return f"postgresql://{host}{port}/{told.get('dbname', '')}"


def _read(url: str) -> dict[str, Any]:
    if "@" in _USER.sub("", url, count=1).partition("?")[0]:  # part of a password would be taken for a host
        rule = (
            "must have %40 for @ and %2F for / in a user and a password, got an @ or a / as it is (not shown: it may "
            "be part of the password)"
        )
        raise RefusedError("db", "the URL", rule)
    try:
        return conninfo_to_dict(url)
    except psycopg.Error:  # what it says can hold a password
        raise RefusedError(
            "db",
            "the URL",
            "must be one that PostgreSQL reads, such as postgresql://user@host/database, got one that it "
            "cannot read (not shown: it may contain a password)",
        ) from None


def _connected(url: str) -> psycopg.Connection:
    told = make_conninfo("", **(_DEFAULTS | _read(url) | {"client_encoding": "utf8"}))
    return psycopg.connect(told, autocommit=True, prepare_threshold=None)


def _opened(url: str, study: Study) -> psycopg.Connection:
    name, connection = name_of(url), None
    try:
        connection = _connected(url)
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        with connection.transaction():
            _prepare(connection, study, name)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if not isinstance(error, psycopg.Error):
            raise
        raise _no_store(name, error) from None
    return connection


def _prepare(connection: psycopg.Connection, study: Study, name: str) -> None:
    connection.execute(_BEGUN)
    if _one(connection, "SHOW fsync") != "on":
        raise RefusedError(
            name, "fsync", "must be on at the server, or a crash loses reports that were acknowledged, got off"
        )
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    if not any(_one(connection, f"SELECT to_regclass('countveil_{table}')") for table in ("settings", "reports")):
        for statement in _TABLES:
            connection.execute(statement)
        settings = [("version", str(VERSION)), ("study", study.id)]
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO countveil_settings VALUES (%s, %s)", settings)
    check_study(name, _study_of(connection, name), study)


def _one(connection: psycopg.Connection, query: LiteralString) -> Any:
    row = connection.execute(query).fetchone()
    return row[0] if row else None


def _study_of(connection: psycopg.Connection, name: str) -> str:
    query: LiteralString = "SELECT value FROM countveil_settings WHERE name = "
    version, study = (_one(connection, query + what) for what in ("'version'", "'study'"))
    if version != str(VERSION):
        raise RefusedError(name, "the store", f"must be a store of version {VERSION}, got {version!r:.20}")
    return study


def _first_line(error: Exception) -> str:
    return re.split(r"[\r\n]", str(error), maxsplit=1)[0]


def _no_store(name: str, error: Exception) -> RefusedError:
    return RefusedError(name, "the store", f"must be a store of reports, got: {_first_line(error)}")


def _reading(url: str, study: Study | None = None) -> psycopg.Connection:
    connection = _connected(url)
    try:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        found = _study_of(connection, name_of(url))
        if study is not None:
            check_study(name_of(url), found, study)
    except BaseException:
        connection.close()
        raise
    return connection


def size(url: str, study: Study | None = None) -> int:
    """How many reports a database holds; raises RefusedError if it is not a store, or not of this study."""
    try:
        with _reading(url, study) as connection:
            return _one(connection, "SELECT count(*) FROM countveil_reports")
    except psycopg.Error as error:
        raise _no_store(name_of(url), error) from None


def contents(url: str) -> Iterator[tuple[str, bytes]]:
    """Each report in the order of the tokens, with what to call it; raises RefusedError.

    All are as of one moment, and read a few at a time.
    """
    name = name_of(url)
    try:
        with _reading(url) as connection, connection.transaction(), connection.cursor("reports") as cursor:
            cursor.itersize = _FETCHED
            query = "SELECT participant, report FROM countveil_reports ORDER BY participant"
            for participant, report in cursor.execute(query, binary=True):
                yield f"{name}#{participant}", report
    except psycopg.Error as error:
        raise _no_store(name, error) from None
