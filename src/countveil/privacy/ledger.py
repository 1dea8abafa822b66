"""What was released about which record, kept on the device of the person whom it is about.

One SQLite file. It holds the reports, which are noisy already, and no true count; records are kept under a
keyed digest of their names, so that the file alone tells nobody what they are called. (The key is in the file:
whoever has the file can test a guessed name.)

    asking again       gives the stored report, byte for byte: the noise of a record is drawn once
    anew, on purpose   draws fresh noise; the rates epsilon/N of all reports that left about a record add up, and so do
                       their rhos; where there are both, a report at epsilon and N counts as a rho of (epsilon/N)^2/2
    waves              a study asks once in each; reports of several waves add up like all others
    the limit          what may leave about any one record, in all studies together; no second release without one

A report is committed here before it can leave, and marked as gone before it is written out: a crash in between
counts as a release. Writers take turns (BEGIN IMMEDIATE), so that two processes cannot draw twice.
"""

import hashlib
import hmac
import os
import secrets
import sqlite3
import stat
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from countveil.privacy import names
from countveil.privacy._text import shown
from countveil.privacy.errors import LimitError, RefusedError
from countveil.privacy.exact import short
from countveil.privacy.level import ConcentratedLevel, Level, PrivacyLevel, total
from countveil.privacy.study import Study

_APPLICATION = 0x56454C31
_VERSION, _VERSION_OF_RHO = 1, 2
"""A ledger is of the second version once a level of rho is in it, which versions of this package before do not know."""
_OF_RHO = "rho"
"""What stands in place of N where a level of rho is stored."""
_NAME_IT = "name another: --ledger, or COUNTVEIL_LEDGER"
_WAIT_SECONDS = 60
_TABLES = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE releases (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        record BLOB NOT NULL,
        study TEXT NOT NULL,
        title TEXT NOT NULL,
        epsilon TEXT NOT NULL,
        precision TEXT NOT NULL,
        turn INTEGER NOT NULL,
        anew INTEGER NOT NULL,
        made TEXT NOT NULL,
        gone TEXT,
        report BLOB NOT NULL,
        UNIQUE (record, study, epsilon, precision, turn)
    )""",
)
_COLUMNS = "number, record, study, title, epsilon, precision, turn, anew, made, gone, report"


class Entry(NamedTuple):
    """One report in the ledger; ``gone`` is when it left the device, or None if it did not."""

    number: int
    record: bytes  # keyed digest of its name
    study: str
    title: str
    level: Level
    turn: int  # 1 for the first report of this record under this study and level
    anew: int  # 1 where fresh noise was asked for on purpose
    made: str
    gone: str | None
    report: bytes


def default_path() -> Path:
    """Where the ledger is unless told otherwise: $COUNTVEIL_LEDGER, or ~/.countveil/ledger.sqlite3.

    Raises RefusedError if neither is known.
    """
    told = os.environ.get("COUNTVEIL_LEDGER")
    if told:
        return Path(told)
    try:
        return Path.home() / ".countveil" / "ledger.sqlite3"
    except RuntimeError:
        raise RefusedError("~/.countveil", "the ledger", f"has no place without a home directory; {_NAME_IT}") from None


class Ledger:
    """The ledger in a file, which is made, readable by its owner alone, if there is none.

    ``begun`` says whether there was none. Raises RefusedError if the file is not a ledger, is damaged, or stays
    locked by another process for a minute.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        folder = Path(self.path).absolute().parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
        except OSError as error:
            raise RefusedError(
                self.path, "the ledger", f"cannot be written there ({error.strerror}); {_NAME_IT}"
            ) from error
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        os.close(descriptor)
        if not regular:
            raise RefusedError(self.path, "the ledger", "must be a regular file, got a pipe or a device")
        with self._plainly():
            self._connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Closes the file; what was committed stays."""
        self._connection.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        for pragma in ("journal_mode = DELETE", "synchronous = EXTRA", "fullfsync = 1", "trusted_schema = 0"):
            self._connection.execute(f"PRAGMA {pragma}").close()
        with self._turn():
            known = self._one("PRAGMA application_id")[0], self._one("PRAGMA user_version")[0]
            tables = self._one("SELECT count(*) FROM sqlite_master")[0]
            self.begun = known == (0, 0) and tables == 0
            if self.begun:
                for statement in _TABLES:
                    self._connection.execute(statement)
                self._set("secret", _checked(secrets.token_bytes(32)))
                self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._connection.execute(f"PRAGMA user_version = {_VERSION}")
            elif known not in ((_APPLICATION, _VERSION), (_APPLICATION, _VERSION_OF_RHO)):
                rule = f"must be a ledger of version {_VERSION} or {_VERSION_OF_RHO}"
                ours = known[0] == _APPLICATION
                got = f"version {known[1]}" if ours else f"a database whose application_id is {known[0]}"
                raise RefusedError(self.path, "the ledger", f"{rule}, got {got}; {_NAME_IT}")
            if (fault := self._one("PRAGMA integrity_check(1)")[0]) != "ok":
                raise RefusedError(self.path, "the ledger", f"must be whole, got damage: {fault}")
            stored = self._setting("secret")
            if type(stored) is not bytes or stored != _checked(stored[:32]):
                got = f"{len(stored)} bytes that do not match" if type(stored) is bytes else "no bytes"
                rule = f"must be 32 bytes and their hash, got {got}: the ledger is damaged"
                raise RefusedError(self.path, "secret", rule)
            self._secret = stored[:32]

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            busy = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
            rule = "must be free within a minute, got it locked" if busy else f"must be readable, got: {error}"
            raise RefusedError(self.path, "the ledger", rule) from error

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One transaction that no other process writes in; on disk when it is over."""
        with self._plainly():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _one(self, query: str, *values: object) -> tuple:
        with closing(self._connection.execute(query, values)) as cursor:
            return cursor.fetchone()

    def _setting(self, name: str) -> bytes | str | None:
        row = self._one("SELECT value FROM settings WHERE name = ?", name)
        return None if row is None else row[0]

    def _set(self, name: str, value: bytes | str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def _entries(self, where: str, *values: object) -> list[Entry]:
        query = f"SELECT {_COLUMNS} FROM releases WHERE {where} ORDER BY number"
        with closing(self._connection.execute(query, values)) as cursor:
            rows = cursor.fetchall()
        return [Entry._make((*row[:4], self._level(row[4], row[5]), *row[6:])) for row in rows]

    def _level(self, epsilon: str, precision: str) -> Level:
        try:
            if precision == _OF_RHO:
                return PrivacyLevel.zcdp(Fraction(epsilon))
            return PrivacyLevel(Fraction(epsilon), Fraction(precision))
        except (ValueError, TypeError, ArithmeticError):
            got = f"{shown(epsilon)} and {shown(precision)}: the ledger is damaged"
            raise RefusedError(self.path, "a level", f"must be two positive fractions, got {got}") from None

    def _digest(self, purpose: str, *parts: str) -> bytes:
        message = "\0".join([purpose, *parts])
        return hmac.digest(self._secret, message.encode("utf-8", "surrogatepass"), "sha256")

    def _named(self, record: str) -> str:
        """The form of a record's name that its digest is of: as it was given, where an older ledger has it so."""
        older = unicodedata.normalize("NFC", record)
        found = self._one("SELECT count(*) FROM releases WHERE record = ?", self._digest("record", older))[0]
        return older if found else names.normalised(record)

    def _key(self, record: str) -> bytes:
        return self._digest("record", self._named(record))

    def participant(self, study: Study, record: str) -> str:
        """The token that stands for a record in a study, in all its waves: of its name and this ledger's key alone."""
        with self._plainly():
            return self._digest("participant", study.id, self._named(record))[:16].hex()

    def find(self, study: Study, record: str, level: Level, anew: bool = False) -> Entry | None:
        """The report that asking again gives, if there is one: the last that left, or else one that did not.

        ``anew`` looks only for one that did not leave.
        """
        with self._plainly():
            found = self._asked(self._key(record), study, level)
        return _again(found, anew)

    def _asked(self, record: bytes, study: Study, level: Level) -> list[Entry]:
        return self._entries(
            "record = ? AND study = ? AND epsilon = ? AND precision = ?", *(record, study.asked, *_stored(level))
        )

    def obtain(
        self, study: Study, record: str, level: Level, make: Callable[[str], bytes], anew: bool = False
    ) -> Entry:
        """The report about a record: the stored one, or else what ``make`` returns for its token, stored.

        ``anew`` asks for fresh noise although a report left; one that never left is given first, and may then leave
        beside the others. On return the report is on disk. Raises LimitError where the limit, or its absence,
        forbids a release.
        """
        with self._turn():
            key = self._key(record)
            found = self._asked(key, study, level)
            again = _again(found, anew)
            if again is not None:
                self._connection.execute(
                    "UPDATE releases SET anew = max(anew, ?) WHERE number = ?", (int(anew), again.number)
                )
                return again
            turn = len(found) + 1
            self._check(key, study.asked, level, anew)
            content = make(self.participant(study, record))
            told = (study.asked, study.named, *_stored(level), turn, int(anew), _now())
            self._know_rho(level)
            row = self._connection.execute(
                f"INSERT INTO releases ({_COLUMNS}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)",
                (key, *told, content),
            )
            (made,) = self._entries("number = ?", row.lastrowid)
        return made

    def restate(self, entry: Entry, content: bytes) -> Entry:
        """The entry with other bytes, for what stands in the clear beside the same noise; as it is once it left."""
        with self._turn():
            self._connection.execute(
                "UPDATE releases SET report = ? WHERE number = ? AND gone IS NULL", (content, entry.number)
            )
            (stored,) = self._entries("number = ?", entry.number)
        return stored

    def hand_over(self, entry: Entry) -> bytes:
        """The report's bytes, after recording on disk that they left; raises LimitError where they may not.

        Raises RefusedError where the report was restated since ``entry`` was read, and so is not what was shown.
        """
        with self._turn():
            (stored,) = self._entries("number = ?", entry.number)
            if stored.report != entry.report:
                rule = "must be the one that was shown, got one with other covariates: ask again"
                raise RefusedError(self.path, "the report", rule)
            if stored.gone is None:
                self._check(stored.record, stored.study, stored.level, bool(stored.anew))
                self._connection.execute("UPDATE releases SET gone = ? WHERE number = ?", (_now(), stored.number))
        return stored.report

    def _check(self, record: bytes, study: str, level: Level, anew: bool) -> None:
        """Refuses one more release about a record at a level: without purpose, or past the limit."""
        gone = self._entries("record = ? AND gone IS NOT NULL", record)
        if not anew and any(entry.study == study for entry in gone):
            raise LimitError(
                "this record must be released only once under this study (in waves, once in each), got a request for "
                "another release: ask for the released report at its own level, or for fresh noise (--anew), which "
                "adds to what is known about the record"
            )
        limit = self.limit()
        if limit is None:
            if gone:
                raise LimitError(
                    f"a limit must be set before a record is released again, got none and {len(gone)} "
                    "earlier release(s) of this record; set one with the command limit"
                )
            return
        before = [entry.level for entry in gone]
        spent, without = (_against(limit, levels) for levels in ([*before, level], before))
        if spent > (limit.epsilon if isinstance(limit, PrivacyLevel) else limit.loss):
            raise LimitError(
                f"releases of one record must not exceed your limit, {limit.in_numbers()}, got {short(spent)} with "
                f"this one, {short(without)} without"
            )

    def _know_rho(self, level: Level) -> None:
        """Makes this a ledger of the second version where the level is of rho."""
        if isinstance(level, ConcentratedLevel):
            self._connection.execute(f"PRAGMA user_version = {_VERSION_OF_RHO}")

    def limit(self) -> Level | None:
        """What all releases of any one record may add up to, or None if no limit was set."""
        with self._plainly():
            value = self._setting("limit")
        if value is None:
            return None
        epsilon, _, precision = str(value).partition(" ")
        return self._level(epsilon, precision)

    def set_limit(self, limit: Level) -> None:
        """Sets the limit, of epsilon at an N or of rho; what was released stays released, even where it is more."""
        with self._turn():
            self._set("limit", " ".join(_stored(limit)))
            self._know_rho(limit)

    def spent(self, record: str) -> Level | None:
        """What all reports of a record that left add up to, as ``level.total`` does; None where none left."""
        return total(entry.level for entry in self.entries(record) if entry.gone)

    def entries(self, record: str | None = None) -> list[Entry]:
        """All reports, or those about one record, in the order in which they were made."""
        with self._plainly():
            if record is None:
                return self._entries("TRUE")
            return self._entries("record = ?", self._key(record))


def _stored(level: Level) -> tuple[str, str]:
    """A level as the two columns of the table hold it."""
    if isinstance(level, PrivacyLevel):
        return str(level.epsilon), str(level.precision)
    return str(level.loss), _OF_RHO


def _against(limit: Level, levels: list[Level]) -> Fraction:
    """What releases at these levels add up to in the numbers of the limit; LimitError where it has none for them."""
    if isinstance(limit, ConcentratedLevel):
        return sum((level.kept_rho for level in levels), Fraction(0))
    spent = total(levels)
    if isinstance(spent, ConcentratedLevel) or not isinstance(limit, PrivacyLevel):
        raise LimitError(
            f"your limit must be in rho if a report at a rho is released, got {limit.in_numbers()}: discrete "
            "Gaussian noise keeps no epsilon; set one with the command limit --rho, in which a report at epsilon and N "
            "counts as (epsilon/N)^2/2"
        )
    return Fraction(0) if spent is None else spent.loss * limit.precision


def _again(found: list[Entry], anew: bool) -> Entry | None:
    """Which of a record's reports at one level is given again: one that left, unless fresh noise is asked for."""
    gone = [entry for entry in found if entry.gone]
    kept = [entry for entry in found if not entry.gone]
    given = kept if anew else gone or kept
    return given[-1] if given else None


def _checked(secret: bytes) -> bytes:
    """The key followed by its hash, to detect a damaged key: under another key, every record would be new."""
    return secret + hashlib.sha256(secret).digest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
