"""The store: each participant once, on disk before it is told, nobody else's file."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from countveil.privacy import PrivacyLevel, study
from countveil.privacy.errors import RefusedError
from countveil.study.receive import store
from countveil.study.receive.store import NEW, OTHER, SAME, Store


def planned(title="Mail"):
    axes = [("word", ["party", "surprise"])]
    return study.new(title, "To learn.", "a@b.org", [PrivacyLevel(1, 10)], axes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "reports.sqlite"


@pytest.fixture
def opened(where):
    made = Store(where, planned())
    yield made
    made.close()


def test_each_participant_once(opened, where):
    outcomes = [
        opened.put(who, what).result(10)
        for who, what in [("b", b"1"), ("a", b"2"), ("b", b"1"), ("b", b"3"), ("a", b"2")]
    ]
    assert outcomes == [NEW, NEW, SAME, OTHER, SAME]
    name = store.name_of(where)
    assert list(store.contents(where)) == [(f"{name}#a", b"2"), (f"{name}#b", b"1")]
    assert store.size(where) == store.size(where, planned()) == 2
    with pytest.raises(RefusedError, match="got the store of another"):
        store.size(where, planned("Post"))


def test_in_one_batch_the_first_of_a_participant_counts(opened, where):
    opened.put("c", b"0").result(10)
    batch = [("b", b"1"), ("a", b"\0\xff"), ("b", b"2"), ("b", b"1"), ("c", b"0"), ("c", b"9")]
    assert opened.database.put(batch) == [NEW, NEW, OTHER, SAME, SAME, OTHER]
    assert [content for _, content in store.contents(where)] == [b"\0\xff", b"1", b"0"]


def test_many_at_once_in_any_batches(opened, where):
    waiting = [opened.put(f"{n % 500:03}", b"%d" % (n % 500)) for n in range(1000)]
    outcomes = [future.result(10) for future in waiting]
    assert outcomes == [NEW] * 500 + [SAME] * 500
    assert store.size(where) == 500


def test_two_receivers_of_one_study(opened, where):
    names = [f"{n:04}" for n in range(900)]
    with closing(Store(where, planned())) as other:
        rising, falling = {}, {}
        for one, last in zip(names, reversed(names), strict=True):
            rising[one] = opened.put(one, b"first")
            falling[last] = other.put(last, b"second")
        outcomes = [sorted(told[name].result(30) for told in (rising, falling)) for name in names]
    assert outcomes == [[NEW, OTHER]] * 900
    assert store.size(where) == 900


def test_what_waits_is_bounded(path, monkeypatch):
    made = Store(path, planned(), waiting=3)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    waiting = []
    with pytest.raises(store.BusyError):
        waiting.extend(made.put(str(n), b"x") for n in range(2000))
    blocker.execute("ROLLBACK")
    blocker.close()
    made.close()
    assert store.size(path) <= 2000


READ_ONLY = {
    "SQLite": ("PRAGMA query_only = 1", "PRAGMA query_only = 0"),
    "Postgres": ("SET default_transaction_read_only = on", "SET default_transaction_read_only = off"),
}


def test_an_error_is_told_to_all_who_wait_and_the_store_goes_on(opened, caplog):
    on, off = READ_ONLY[type(opened.database).__name__]
    opened.database._connection.execute(on)
    futures = [opened.put(name, b"secret") for name in "ab"]
    for future in futures:
        with pytest.raises(store.StoreError):
            future.result(10)
    opened.database._connection.execute(off)
    assert opened.put("a", b"secret").result(10) == NEW
    first, last = (record.getMessage() for record in caplog.records)
    assert "Nothing can be stored" in first
    assert "secret" not in first
    assert "stored again" in last


def test_an_error_that_nobody_thought_of_does_not_end_the_writer(opened, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(opened.database, "put", lambda batch: [][0])
        with pytest.raises(IndexError):
            opened.put("a", b"1").result(10)
    assert opened.put("a", b"1").result(10) == NEW


def test_it_opens_again_and_only_for_its_study(where):
    made = Store(where, planned())
    assert made.put("a", b"1").result(10) == NEW
    made.close()
    again = Store(where, planned())
    assert again.put("a", b"1").result(10) == SAME
    again.close()
    with pytest.raises(RefusedError, match="study must be"):
        Store(where, planned("Post"))


def test_other_files_are_refused_and_left_alone(path):
    path.write_bytes(b"something else, not a database, and long enough to be one" * 20)
    before = path.read_bytes()
    assert not store.is_store(path)
    with pytest.raises(RefusedError, match="must be a store of reports"):
        Store(path, planned())
    assert path.read_bytes() == before
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE reports (x)")
    other.commit()
    other.close()
    assert store.is_store(path)
    for call in (store.size, lambda path: list(store.contents(path)), lambda path: Store(path, planned())):
        with pytest.raises(RefusedError, match="store of version 1, got a database whose application_id is 0"):
            call(path)


def test_no_time_and_no_order_of_arrival_is_in_it(path):
    made = Store(path, planned())
    for who in ("c", "a", "b"):
        made.put(who, b"x").result(10)
    made.close()
    reader = sqlite3.connect(path)
    columns = [row[1] for row in reader.execute("PRAGMA table_info(reports)")]
    tokens = [row[0] for row in reader.execute("SELECT participant FROM reports")]
    reader.close()
    assert columns == ["participant", "report"]
    assert tokens == ["a", "b", "c"]


@pytest.mark.parametrize("ended", [True, False])
def test_the_pages_of_a_closed_file_are_in_the_order_of_the_tokens(path, ended):
    """A report of more than a page's share lies in pages of its own, which are taken as reports come."""
    made = Store(path, planned())
    tokens = [f"{7 * i % 31:02}" for i in range(31)]
    for who in tokens:
        made.put(who, b"x" * 9000 + b"<" + who.encode() + b">").result(10)
    if not ended:  # as a crash leaves it; what comes next puts it right
        (path.parent / "copy.sqlite").write_bytes(path.read_bytes())
        path.with_name("copy.sqlite-wal").write_bytes(path.with_name("reports.sqlite-wal").read_bytes())
        Store(path.with_name("copy.sqlite"), planned()).close()
    made.close()
    content = (path if ended else path.with_name("copy.sqlite")).read_bytes()
    places = [content.find(f"<{who}>".encode()) for who in sorted(tokens)]
    assert min(places) > 0
    assert places == sorted(places)
    assert not path.with_name("reports.sqlite-wal").exists()
    assert store.size(path) == 31


def test_a_file_that_cannot_be_put_in_order_is_closed_all_the_same(path):
    made = Store(path, planned())
    assert made.put("a", b"x" * 9000).result(10) == NEW
    made.database._connection.execute("PRAGMA query_only = 1")
    made.close()
    assert store.size(path) == 1


def test_a_directory_is_no_store(tmp_path):
    assert not store.is_store(tmp_path)
    assert not store.is_store(Path(tmp_path / "nothing"))
    with pytest.raises(RefusedError, match="must be a store of reports, got: unable to open"):
        Store(tmp_path, planned())


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_the_database_is_for_its_owner_alone(path):
    """Also one that an earlier version made under the umask of most systems."""
    before = os.umask(0o022)
    try:
        for _ in range(2):
            made = Store(path, planned())
            modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
            assert len(modes) == 3
            assert set(modes.values()) == {0o600}
            made.close()
            path.chmod(0o644)
    finally:
        os.umask(before)
