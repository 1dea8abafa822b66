"""What PostgreSQL alone can do to a store: crash, refuse, tell too much, or belong to somebody else."""

import sys
import threading
import time
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest

from countveil.privacy import PrivacyLevel, report, study
from countveil.privacy.errors import RefusedError
from countveil.study.receive import store
from countveil.study.receive.postgres import Postgres
from countveil.study.receive.store import NEW, SAME, Store
from tests.commands import fails
from tests.study.receive.running import Running
from tests.study.receive.servers import Server

LEVEL = PrivacyLevel(1, 10)
STUDY = study.new("Mail", "To learn.", "a@b.org", [LEVEL], [("word", ["party", "surprise"])])


def asked(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else None


@pytest.fixture
def own():
    """A server of this test alone, which it may crash."""
    made = Server()
    yield made
    made.remove()


def made(number):
    return report.encode(report.Report(f"{number:032x}", LEVEL, [number, 1]), STUDY)


@pytest.mark.long
def test_what_was_answered_survives_crashes_of_the_server(own, tmp_path):
    where, answered, ended = own.new(), [], threading.Event()

    def send(running, first):
        number = first
        while not ended.is_set():
            try:
                outcome = running.post(made(number))
            except OSError:  # told to come later, which keeps the report for the next try
                time.sleep(0.01)
                continue
            assert outcome == "accepted"
            answered.append(number)
            number += 4

    with Running(tmp_path, STUDY, where) as running:
        threads = [threading.Thread(target=send, args=(running, first)) for first in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            before = len(answered)
            while len(answered) < before + 100:
                time.sleep(0.01)
            own.stop("immediate")
            own.start()
        before = len(answered)
        while len(answered) < before + 100:
            time.sleep(0.01)
        ended.set()
        for thread in threads:
            thread.join()
        own.stop("immediate")
        own.start()
    kept = [name.rpartition("#")[2] for name, _ in store.contents(where)]
    assert kept == sorted(f"{number:032x}" for number in answered)


def test_two_receivers_do_not_wait_for_each_other(server):
    where, barrier, outcomes = server.new(), threading.Barrier(2), []
    names = [f"{n:06}" for n in range(20_000)]

    def put(asked):
        with closing(Postgres(where, STUDY)) as opened:
            barrier.wait()
            outcomes.append(opened.put([(name, b"1") for name in asked]))

    threads = [threading.Thread(target=put, args=(asked,)) for asked in (names, names[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told for (told,) in {tuple(set(told)) for told in outcomes}) == [NEW, SAME]


def test_a_lost_connection_is_made_again(server):
    where = server.new()
    with closing(Store(where, STUDY)) as opened:
        assert opened.put("a", b"1").result(10) == NEW
        asked(where, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert opened.put("a", b"1").result(10) == SAME


def test_it_waits_for_the_disk_whatever_the_server_was_told(server):
    where = server.new()
    asked(where, f"ALTER ROLE {server.user} SET synchronous_commit = off")
    try:
        with closing(Store(where, STUDY)) as opened:
            asked(where, "CREATE TABLE seen (setting text)")
            asked(
                where,
                "CREATE FUNCTION see() RETURNS trigger AS 'BEGIN INSERT INTO seen VALUES "
                "(current_setting(''synchronous_commit'')); RETURN NEW; END' LANGUAGE plpgsql",
            )
            asked(where, "CREATE TRIGGER t BEFORE INSERT ON countveil_reports FOR EACH ROW EXECUTE FUNCTION see()")
            opened.put("a", b"1").result(10)
            assert asked(where, "SELECT * FROM seen") == [("on",)]
    finally:
        asked(where, f"ALTER ROLE {server.user} RESET synchronous_commit")


def test_a_server_that_does_not_wait_for_its_disk_is_refused(own):
    own.stop()
    own.start("-c fsync=off")
    with pytest.raises(RefusedError, match="fsync must be on"):
        Store(own.url(), STUDY)


def test_other_tables_are_refused_and_left_alone(server):
    where = server.new()
    asked(where, "CREATE TABLE countveil_reports (x text)")
    calls = (store.size, lambda url: list(store.contents(url)), lambda url: Store(url, STUDY))
    for call in calls:
        with pytest.raises(RefusedError, match="must be a store of reports"):
            call(where)
    assert asked(where, "SELECT * FROM countveil_reports") == []
    asked(where, "CREATE TABLE countveil_settings (name text, value text)")
    for call in calls:
        with pytest.raises(RefusedError, match="must be a store of version 1, got None"):
            call(where)


def test_insert_and_select_are_enough_once_it_is_made(server):
    where = server.new()
    Store(where, STUDY).close()
    asked(where, "CREATE ROLE receiver LOGIN")
    asked(where, "GRANT SELECT ON countveil_settings, countveil_reports TO receiver")
    asked(where, "GRANT INSERT ON countveil_reports TO receiver")
    with closing(Store(where.replace(f"//{server.user}@", "//receiver@"), STUDY)) as opened:
        assert opened.put("a", b"1").result(10) == NEW
        assert opened.put("a", b"1").result(10) == SAME
    assert store.size(where.replace(f"//{server.user}@", "//receiver@")) == 1


def test_no_password_is_told(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(STUDY.to_json())
    where = server.url("none", ":hunter2")
    name = f"postgresql://{quote(str(server.folder), safe='')}/none"
    assert store.name_of(where) == name
    said = fails("receive", "s.json", "--db", where) + fails("collect", "s.json", where, "-o", "r.npz")
    assert said.count(f"{name}: the store must be a store of reports") == 2
    said += fails("receive", "s.json", "--db", "postgresql://a:hunter2@h:x y/%00")
    assert "hunter2" not in said


@pytest.mark.parametrize("password", ["hunter2/x", "x@hunter2", "hunter2@", "5/hunter2", "x/y?hunter2", "?@/hunter2"])
def test_nothing_of_a_password_that_is_not_quoted_is_told(tmp_path, monkeypatch, password):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(STUDY.to_json())
    where = f"postgresql://a:{password}@127.0.0.1:1/study"
    said = fails("receive", "s.json", "--db", where) + fails("collect", "s.json", where, "-o", "r.npz")
    assert said.count("the URL must") == 2
    assert "hunter2" not in said


def test_an_address_is_read_as_postgres_reads_it():
    assert store.name_of("postgresql://a:x?%40y%2Fz@h:1/d?user=me@tenant") == "postgresql://h:1/d"
    assert store.name_of("postgresql://%40socket/d") == "postgresql://%40socket/d"


@pytest.mark.parametrize("where", ["host=h password=hunter2", "password = hunter2", "dbname=d password='a:hunter2'"])
def test_settings_are_no_file(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(STUDY.to_json())
    said = fails("receive", "s.json", "--db", where) + fails("collect", "s.json", where, "-o", "r.npz")
    assert said.count("db: the URL must begin with postgresql://, or be a file, got other settings") == 2
    assert "hunter2" not in said + "".join(path.name for path in tmp_path.iterdir())


def test_no_time_and_no_address_is_in_it(server):
    where = server.new()
    with closing(Store(where, STUDY)) as opened:
        for who in ("c", "a", "b"):
            opened.put(who, b"x").result(10)
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'countveil_reports'"
    assert sorted(asked(where, columns)) == [("participant",), ("report",)]
    assert [name[-1] for name, _ in store.contents(where)] == ["a", "b", "c"]


def test_without_the_extra_it_says_what_is_missing(monkeypatch):
    monkeypatch.delattr("countveil.study.receive.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "countveil.study.receive.postgres", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[postgres\]'"):
        store.size("postgresql://a/b")
