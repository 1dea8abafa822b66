"""The store: each participant once, on disk before it is told, nobody else's file."""

import sqlite3
from pathlib import Path

import pytest

from countveil.privacy import PrivacyLevel, study
from countveil.privacy.errors import RefusedError
from countveil.receive import store
from countveil.receive.store import NEW, OTHER, SAME, Store


def planned(title="Mail"):
    axes = [("word", ["party", "surprise"])]
    return study.new(title, "To learn.", "a@b.org", [PrivacyLevel(1, 10)], axes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "reports.sqlite"


@pytest.fixture
def opened(path):
    made = Store(path, planned())
    yield made
    made.close()


def test_each_participant_once(opened, path):
    outcomes = [
        opened.put(who, what).result(10)
        for who, what in [("b", b"1"), ("a", b"2"), ("b", b"1"), ("b", b"3"), ("a", b"2")]
    ]
    assert outcomes == [NEW, NEW, SAME, OTHER, SAME]
    assert list(store.contents(path)) == [(f"{path}#a", b"2"), (f"{path}#b", b"1")]
    assert store.size(path) == 2


def test_many_at_once_in_any_batches(opened, path):
    waiting = [opened.put(f"{n % 500:03}", b"%d" % (n % 500)) for n in range(1000)]
    outcomes = [future.result(10) for future in waiting]
    assert outcomes == [NEW] * 500 + [SAME] * 500
    assert store.size(path) == 500


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


def test_an_error_is_told_to_all_who_wait_and_the_store_goes_on(opened, path):
    opened._connection.execute("PRAGMA query_only = 1")
    futures = [opened.put(name, b"x") for name in "ab"]
    for future in futures:
        with pytest.raises(sqlite3.Error):
            future.result(10)
    opened._connection.execute("PRAGMA query_only = 0")
    assert opened.put("a", b"x").result(10) == NEW


def test_it_opens_again_and_only_for_its_study(path):
    made = Store(path, planned())
    assert made.put("a", b"1").result(10) == NEW
    made.close()
    again = Store(path, planned())
    assert again.put("a", b"1").result(10) == SAME
    again.close()
    with pytest.raises(RefusedError, match="study must be"):
        Store(path, planned("Post"))


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
        with pytest.raises(RefusedError, match="must be a store of version 1"):
            call(path)


def test_no_time_and_no_order_of_arrival_is_in_it(opened, path):
    for who in ("c", "a", "b"):
        opened.put(who, b"x").result(10)
    reader = sqlite3.connect(path)
    columns = [row[1] for row in reader.execute("PRAGMA table_info(reports)")]
    tokens = [row[0] for row in reader.execute("SELECT participant FROM reports")]
    reader.close()
    assert columns == ["participant", "report"]
    assert tokens == ["a", "b", "c"]


def test_a_directory_is_no_store(tmp_path):
    assert not store.is_store(tmp_path)
    assert not store.is_store(Path(tmp_path / "nothing"))
