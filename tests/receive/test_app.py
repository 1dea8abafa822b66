"""The receiving end by HTTP: what is taken, what is refused and how, and what is never told."""

import os
import random
import signal
import threading
import time
from http.client import HTTPException

import pytest
from starlette import testclient

from countveil.privacy import PrivacyLevel, report, study
from countveil.receive import app, path_of, store
from countveil.receive.store import Store
from tests.commands import run
from tests.receive.running import Running

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
def client(path):
    with testclient.TestClient(app.application(STUDY, Store(path, STUDY), app.Limits(0))) as opened:
        yield opened


def test_a_report_is_stored_before_the_answer(client, path):
    answer = client.post("/reports", content=made(1))
    assert (answer.status_code, answer.json()) == (200, {"outcome": "accepted"})
    assert list(store.contents(path)) == [(f"{path}#{1:032x}", made(1))]


def test_the_same_bytes_get_the_same_answer_and_others_are_refused(client, path):
    first, again = (client.post("/reports", content=made(1)) for _ in range(2))
    assert (first.status_code, first.content, first.headers) == (
        again.status_code,
        again.content,
        again.headers,
    )
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
    assert (answer.status_code, answer.json()["outcome"], answer.json()["field"]) == (
        status,
        "refused",
        field,
    )
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


def test_the_rate_of_one_address():
    now = 0.0
    rates = app.Rates(6, lambda: now)
    assert [rates.take("a") for _ in range(8)] == [True] * 6 + [False] * 2
    assert rates.take("b")
    now = 10.0
    assert [rates.take("a") for _ in range(2)] == [True, False]
    now = 1e6
    assert [rates.take("a") for _ in range(7)] == [True] * 6 + [False]
    for number in range(30_000):
        rates.take(str(number))
    assert len(rates._buckets) == 10_000


def test_too_many_requests_are_told_to_come_later(path):
    with testclient.TestClient(app.application(STUDY, Store(path, STUDY), app.Limits(2))) as client:
        answers = [client.post("/reports", content=made(n)) for n in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].headers["retry-after"]
    assert store.size(path) == 2


def test_where_nothing_can_be_stored_nothing_is_accepted(path):
    kept = Store(path, STUDY)
    with testclient.TestClient(app.application(STUDY, kept, app.Limits(0))) as client:
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
    while len(answered) < 100:
        time.sleep(0.01)
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
