"""The receiving end by HTTP: what is taken, what is refused and how, and what is never told."""

import os
import random
import resource
import signal
import socket
import threading
from http.client import HTTPException

import pytest
from starlette import testclient

from countveil.privacy import PrivacyLevel, report, study
from countveil.privacy._covariates import Covariate
from countveil.study.receive import app, connections, path_of, store, tally
from countveil.study.receive.connections import Limits
from countveil.study.receive.store import Store
from tests.commands import run
from tests.study.receive.running import PATIENCE, Running, Serving, everything, head, until

pytestmark = pytest.mark.long

LEVEL = PrivacyLevel(1, 10)


def planned(**more):
    axes = [("word", ["party", "surprise", "cake"])]
    return study.new("Mail", "To learn.", "a@b.org", [LEVEL], axes, **more)


STUDY = planned()


def made(number, values=(1, 0, 7), under=STUDY):
    return report.encode(report.Report(f"{number:032x}", LEVEL, list(values)), under)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "reports.sqlite"


@pytest.fixture
def unhurried(monkeypatch):
    """No body is given up for being slow, so that places stay taken however long the machine takes."""
    for name in ("BODY_SECONDS", "SILENT_SECONDS", "SPARED_SECONDS"):
        monkeypatch.setattr(connections, name, 10.0 * PATIENCE)


@pytest.fixture
def client(path):
    with testclient.TestClient(app.application(STUDY, Store(path, STUDY), Limits(0))) as opened:
        yield opened


def test_a_report_is_stored_before_the_answer(client, path):
    answer = client.post("/reports", content=made(1))
    assert (answer.status_code, answer.json()) == (200, {"outcome": "accepted"})
    assert list(store.contents(path)) == [(f"{path}#{1:032x}", made(1))]


def test_the_same_bytes_get_the_same_answer_and_others_are_refused(client, path):
    first, again = (client.post("/reports", content=made(1)) for _ in range(2))
    assert (first.status_code, first.content, first.headers) == (again.status_code, again.content, again.headers)
    other = client.post("/reports", content=made(1, (9, 9, 9)))
    assert (other.status_code, other.json()["field"]) == (409, "participant")
    assert [content for _, content in store.contents(path)] == [made(1)]


@pytest.mark.parametrize(
    ("content", "status", "field"),
    [
        (b"", 400, "the file"),
        (b"\xff\xfe", 400, "the file"),
        (b"[" * 2000, 400, "the file"),
        (made(1)[:-3], 400, "the file"),
        (made(1).replace(b"[1,0", b"[2,0"), 400, "sha256"),
        (made(1).replace(b"[1,0", b"[-2,0"), 400, "reports[0]"),
        (made(1) + b" ", 400, "sha256"),
        (made(1, under=planned(truncated=False)), 400, "study"),
        (b"x" * 2112, 413, "the body"),
        (b'{"a":' + b"9" * 1500 + b"}", 400, "a"),
    ],
)
def test_what_is_no_report_is_refused_with_field_and_rule(client, path, content, status, field):
    answer = client.post("/reports", content=content)
    assert (answer.status_code, answer.json()["outcome"], answer.json()["field"]) == (status, "refused", field)
    assert answer.json()["rule"].startswith("must be") or answer.json()["rule"].startswith("must have")
    assert store.size(path) == 0


def test_a_body_without_a_length_is_cut_off(client, path):
    sent = 0

    def endless():
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b"x" * 1000

    assert client.post("/reports", content=endless()).status_code == 413
    assert client.post("/reports", content=iter([made(5)[:50], made(5)[50:]])).status_code == 200
    answer = client.post("/reports", content=made(6), headers={"content-length": "9" * 30})
    assert answer.status_code == 413


def test_nothing_that_was_stored_can_be_asked_for(client):
    client.post("/reports", content=made(1))
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"):
        for where in ("/", "/reports", f"/reports/{1:032x}", "/reports.sqlite", "/docs", "/openapi.json"):
            answer = client.request(method, where)
            assert answer.status_code in (404, 405)
            assert f"{1:032x}" not in answer.text
    assert client.post("/", content=made(2)).status_code == 404


def test_a_page_opened_from_a_file_can_read_the_answer(client):
    for content in (made(1), b""):
        headers = client.post("/reports", content=content, headers={"Origin": "null"}).headers
        assert headers["access-control-allow-origin"] == "*"
        assert headers["cache-control"] == "no-store"
        assert "set-cookie" not in headers


def test_mutated_reports_are_refused_or_the_same(client, path):
    generator, good = random.Random(4), made(1)
    for _ in range(int(os.environ.get("COUNTVEIL_MUTATIONS", "300"))):
        content = bytearray(good)
        for _ in range(generator.randrange(1, 4)):
            place = generator.randrange(len(content))
            content[place : place + generator.randrange(3)] = generator.randbytes(generator.randrange(3))
        answer = client.post("/reports", content=bytes(content))
        assert bytes(content) == good or answer.status_code in (400, 413)
        assert answer.json()["outcome"] == ("accepted" if bytes(content) == good else "refused")
    assert {content for _, content in store.contents(path)} <= {good}


def test_too_many_requests_are_told_to_come_later(path):
    with testclient.TestClient(app.application(STUDY, Store(path, STUDY), Limits(2))) as client:
        answers = [client.post("/reports", content=made(n)) for n in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].headers["retry-after"]
    assert store.size(path) == 2


def test_where_nothing_can_be_stored_nothing_is_accepted(path):
    kept = Store(path, STUDY)
    with testclient.TestClient(app.application(STUDY, kept, Limits(0))) as client:
        kept.database._connection.execute("PRAGMA query_only = 1")
        assert client.post("/reports", content=made(1)).status_code == 503
        kept.database._connection.execute("PRAGMA query_only = 0")
        assert client.post("/reports", content=made(1)).status_code == 200


def test_the_path_is_that_of_the_address():
    assert path_of(planned(address="https://a.org/x/y")) == "/x/y"
    assert path_of(planned(address="https://a.org")) == "/"
    assert path_of(STUDY) == "/reports"


def test_what_was_answered_survives_a_kill_and_collects(tmp_path, where):
    running = Running(tmp_path, STUDY, where)
    answered, lock = [], threading.Lock()

    def send(first):
        for number in range(first, 100_000, 8):
            try:
                outcome = running.post(made(number, (number, 1, 0)))
            except (OSError, HTTPException, ValueError):
                return
            assert outcome == "accepted"
            with lock:
                answered.append(number)

    threads = [threading.Thread(target=send, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    until(lambda: len(answered) >= 100)
    running.end(signal.SIGKILL)
    for thread in threads:
        thread.join()
    again = Running(tmp_path, STUDY, where)
    kept = {int(name.rpartition("#")[2], 16) for name, _ in store.contents(where)}
    assert set(answered) <= kept
    assert len(kept) <= len(answered) + 8
    assert again.post(made(answered[0], (answered[0], 1, 0))) == "accepted"
    asked, release = str(tmp_path / "study.json"), str(tmp_path / "release.npz")
    said = run("collect", asked, str(where), "-o", release).stdout
    assert f"Accepted {len(kept)} of {len(kept)} reports." in said
    again.end(signal.SIGTERM)
    assert store.size(where) == len(kept)


@pytest.mark.usefixtures("unhurried")
def test_an_address_has_few_requests_in_flight_and_others_are_not_starved(path):
    with Serving(STUDY, path, Limits(0, 2)) as serving:
        slow = [serving.open(head(500, X_Forwarded_For="10.9.9.9"), b"{") for _ in range(2)]
        until(lambda: serving.post(made(1), "10.9.9.9") == 429)
        assert serving.post(made(2), "10.9.9.8") == 200
        for each in slow:
            each.close()
        until(lambda: serving.post(made(3), "10.9.9.9") == 200)
        assert serving.counts.refused[tally.MANY] >= 1
        until(lambda: serving.counts.refused[tally.SLOW] >= 2)
        assert serving.counts.refused[tally.SLOW] == 2


@pytest.mark.usefixtures("unhurried")
def test_where_there_is_no_room_all_are_told_to_come_later(path):
    with Serving(STUDY, path, Limits(0, 0), most=300) as serving:
        held = [serving.open(head(500), b"{") for _ in range(256)]
        until(lambda: serving.post(made(1)) == 503)
        assert serving.counts.refused[tally.BUSY] >= 1
        for each in held:
            each.close()
        until(lambda: serving.post(made(1)) == 200)


def test_only_a_proxy_that_is_trusted_says_where_a_request_is_from(path):
    with Serving(STUDY, path, Limits(1)) as serving:
        assert [serving.post(made(n), f"10.0.0.{n}") for n in range(5)] == [200] * 5
        assert serving.post(made(9), "10.0.0.1, 10.0.0.77") == 200  # the last is what the proxy added
        assert serving.post(made(9), "10.0.0.78, 10.0.0.77") == 429
    with Serving(STUDY, path, Limits(1), proxies=["10.1.1.1"]) as serving:
        assert [serving.post(made(n), f"10.0.0.{n}") for n in range(3)] == [200, 429, 429]


def test_a_proxy_that_does_not_pass_addresses_on_is_noticed(path, caplog):
    with Serving(STUDY, path, Limits(1)) as serving:
        for _ in range(3):
            serving.post(made(1), "10.0.0.1")
        assert not caplog.records
        for _ in range(3):
            everything(serving.open(head(0, Connection="close")))
        assert "without X-Forwarded-For" in caplog.records[0].getMessage()


def test_every_answer_is_counted_and_replays_are_not(path):
    counts = tally.Tally()
    with testclient.TestClient(app.application(STUDY, Store(path, STUDY), Limits(0), counts)) as client:
        for content in (made(1), made(1), made(1, (9, 9, 9)), b"{}", made(2), b"x" * 9999):
            client.post("/reports", content=content)
        client.post("/reports", content=made(1, under=planned(truncated=False)))
        client.get("/")
        assert client.post("/reports/", content=made(3), follow_redirects=False).status_code == 404
    assert counts.reports == 2
    assert {reason: times for reason, times in counts.refused.items() if times} == {
        tally.AGAIN: 1,
        tally.INVALID: 1,
        tally.LARGE: 1,
        tally.OTHER_STUDY: 1,
        tally.ELSEWHERE: 2,
    }


def test_an_error_of_the_receiver_is_answered_and_counted(path, monkeypatch, caplog):
    counts = tally.Tally()
    with testclient.TestClient(app.application(STUDY, Store(path, STUDY), Limits(0), counts)) as client:
        with monkeypatch.context() as broken:
            broken.setattr(report, "decode", lambda *_: 1 / 0)
            answer = client.post("/reports", content=made(1))
        assert (answer.status_code, answer.json()["outcome"]) == (500, "refused")
        assert client.post("/reports", content=made(1)).status_code == 200
    assert counts.refused[tally.FAILED] == 1
    assert "ZeroDivisionError" in caplog.text


def test_a_full_disk_refuses_and_nothing_is_lost(path):
    kept = Store(path, STUDY)
    pages = kept.database._connection.execute("PRAGMA page_count").fetchone()[0]
    stored = []
    with testclient.TestClient(app.application(STUDY, kept, Limits(0))) as client:
        kept.database._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        for number in range(60):
            status = client.post("/reports", content=made(number)).status_code
            assert status in (200, 503)
            stored += [number] if status == 200 else []
        assert 0 < len(stored) < 60
        kept.database._connection.execute("PRAGMA max_page_count = 100000")
        assert client.post("/reports", content=made(99)).status_code == 200
    assert [name.rpartition("#")[2] for name, _ in store.contents(path)] == [
        f"{number:032x}" for number in [*stored, 99]
    ]


def test_one_slow_client_and_many_idle_connections_starve_nobody(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with Running(tmp_path, STUDY) as running:
            open_ones = [socket.create_connection(("127.0.0.1", running.port), 10) for _ in range(1001)]
            open_ones.append(socket.create_connection(("127.0.0.1", running.port), 10))
            open_ones[-1].sendall(head(500) + b"{")
            for number in range(50):
                assert running.post(made(number)) == "accepted"
            for each in open_ones:
                each.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert store.size(tmp_path / "reports.sqlite") == 50


def test_refusals_get_no_line_each_and_the_last_line_has_all_counts(tmp_path):
    with Running(tmp_path, STUDY, more=("--per-minute", "0", "--target", "10")) as running:
        running.post(made(1))
        for _ in range(200):
            with socket.create_connection(("127.0.0.1", running.port), 10) as refused:
                refused.sendall(b"GARBAGE\r\n\r\n")
                refused.recv(1000)
    assert (tmp_path / "err").read_text() == ""
    assert running.process.returncode == 0
    first, last = (tmp_path / "out").read_text().splitlines()
    assert "listening at" in first
    assert last == "1 of 10 reports (10%); 200 refused: 200 not HTTP"


def test_a_participant_has_one_report_in_every_wave(path):
    under = planned(waves=("spring", "summer"))

    def of(wave, values=(1, 0, 7)):
        return report.encode(report.Report(f"{1:032x}", LEVEL, list(values), wave), under)

    with testclient.TestClient(app.application(under, Store(path, under), Limits(0))) as opened:
        outcomes = [opened.post("/reports", content=of(wave)) for wave in ("spring", "summer", "spring")]
        assert [each.status_code for each in outcomes] == [200, 200, 200]
        assert opened.post("/reports", content=of("summer", (9, 9, 9))).status_code == 409
        assert opened.post("/reports", content=made(2)).status_code == 400
    kept = {name.rpartition("#")[2]: content for name, content in store.contents(path)}
    assert kept == {f"{1:032x} {wave}": of(wave) for wave in ("spring", "summer")}


def test_reports_with_covariates_are_taken_as_they_are(path):
    under = planned(covariates=[Covariate("party", ("D", "R"))])
    content = report.encode(report.Report(f"{1:032x}", LEVEL, [1, 0, 7], None, ("D",)), under)
    with testclient.TestClient(app.application(under, Store(path, under), Limits(0))) as opened:
        assert opened.post("/reports", content=made(2)).status_code == 400
        assert opened.post("/reports", content=content).status_code == 200
    assert [kept for _, kept in store.contents(path)] == [content]
