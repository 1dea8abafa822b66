"""Connections of clients who send nothing, or slowly, or too much, or never read: none of them starves others."""

import asyncio
import resource
import socket
import time
from itertools import repeat

import pytest

from countveil.privacy import PrivacyLevel, report, study
from countveil.study.receive import connections, store
from countveil.study.receive.connections import FullError, Limits, Rates, Room, ShareError, address_of
from countveil.study.receive.tally import BUSY, LARGE, NO_HTTP, SLOW
from tests.study.receive.running import Serving, everything, head, until

LEVEL = PrivacyLevel(1, 10)
STUDY = study.new("Mail", "To learn.", "a@b.org", [LEVEL], [("word", ["party", "surprise", "cake"])])


def made(number, values=(1, 0, 7)):
    return report.encode(report.Report(f"{number:032x}", LEVEL, list(values)), STUDY)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "reports.sqlite"


@pytest.fixture
def impatient(monkeypatch):
    """Deadlines short enough for a test."""
    monkeypatch.setattr(connections, "WAITING_SECONDS", 0.3)
    monkeypatch.setattr(connections, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(connections, "SPARED_SECONDS", 0.1)
    monkeypatch.setattr(connections, "BODY_SECONDS", 1.0)


def sends(opened, pieces, pause=0.0):
    """Whether all pieces could be sent before the other end closed the connection."""
    try:
        for piece in pieces:
            opened.sendall(piece)
            time.sleep(pause)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


@pytest.mark.usefixtures("impatient")
def test_who_sends_no_request_is_closed_whatever_else_is_sent(path):
    with Serving(STUDY, path, Limits(0)) as serving:
        silent, dribbling = serving.open(), serving.open()
        start = time.monotonic()
        assert not sends(dribbling, [bytes([byte]) for byte in head(100) * 10], 0.02)
        assert time.monotonic() - start < 3
        assert everything(silent) == b""
        dribbling.close()
        assert serving.post(made(1)) == 200


@pytest.mark.usefixtures("impatient")
def test_a_body_that_stops_or_dribbles_is_given_up(path):
    with Serving(STUDY, path, Limits(0)) as serving:
        stopped, dribbling = serving.open(head(500), b"{"), serving.open(head(500), b"{")
        start = time.monotonic()
        answers = []
        dribbling.settimeout(0.1)
        while not answers:
            try:
                answers.append(dribbling.recv(1 << 16))
            except TimeoutError:
                dribbling.sendall(b" ")
        assert 0.9 < time.monotonic() - start < 5
        assert answers[0].startswith(b"HTTP/1.1 408 ")
        dribbling.close()
        assert everything(stopped).startswith(b"HTTP/1.1 408 ")
        assert serving.counts.refused[SLOW] == 2


@pytest.mark.usefixtures("impatient")
def test_the_rest_of_a_refused_body_is_not_read_for_long(path):
    with Serving(STUDY, path, Limits(0)) as serving:
        endless = serving.open(head(10**15))
        start = time.monotonic()
        assert not sends(endless, repeat(b"x" * 1000), 0.01)
        assert time.monotonic() - start < 3
        endless.close()
        assert serving.counts.refused[LARGE] == 1


@pytest.mark.usefixtures("impatient")
def test_who_does_not_read_the_answers_is_closed(path):
    with Serving(STUDY, path, Limits(0)) as serving:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", serving.port))
        deaf.settimeout(10)
        assert not sends(deaf, repeat(head(0), 100_000))
        deaf.close()
        until(lambda: not serving.server.server_state.connections)


def test_idle_connections_make_room_the_longest_first(path):
    with Serving(STUDY, path, Limits(0), most=16) as serving:
        idle = [serving.open() for _ in range(40)]
        slow = serving.open(head(500), b"{")
        for number in range(50):
            assert serving.post(made(number), f"10.0.0.{number}") == 200
        assert everything(idle[0]) == b""
        assert len(serving.server.server_state.connections) <= 16
        slow.sendall(made(99)[1:].ljust(499))
        slow.shutdown(socket.SHUT_WR)
        assert b"sha256" in everything(slow)  # it was not closed for others: it had a request in flight
        for each in idle:
            each.close()
    assert store.size(path) == 50


def test_where_all_connections_are_busy_a_new_one_is_closed(path):
    with Serving(STUDY, path, Limits(0), most=2) as serving:
        slow = [serving.open(head(500), b"{") for _ in range(2)]
        until(lambda: not serving.waiting._timers and len(serving.server.server_state.connections) == 2)
        assert everything(serving.open(head(0))) == b""
        assert serving.counts.refused[BUSY] == 1
        slow.pop().close()
        until(lambda: len(serving.server.server_state.connections) == 1)
        assert serving.post(made(1)) == 200
        slow.pop().close()


def test_one_connection_can_make_requests_one_after_the_other_or_at_once(path):
    with Serving(STUDY, path, Limits(0)) as serving:
        size = len(made(0))
        requests = [head(size, **({"Connection": "close"} if n == 9 else {})) + made(n) for n in range(10)]
        assert everything(serving.open(*requests)).count(b"200 OK") == 10
        assert everything(serving.open(b"".join(requests))).count(b"200 OK") == 10
    assert store.size(path) == 10


CHUNKED = head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")


@pytest.mark.long
@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01" * 100 + b"\r\n\r\n",
        head(3, X_Long="x" * 1_000_000),
        head(3, X_Many="\r\n".join(f"x{n}: 1" for n in range(100_000))),
        head(-1),
        head("1, 2"),
        head(len(made(1)), Content_length=3) + made(1),
        head(3, Transfer_Encoding="gzip, chunked"),
        CHUNKED + b"zz\r\n",
        CHUNKED + b"f" * 40 + b"\r\n",
        head(len(made(1)), Transfer_Encoding="chunked") + made(1),
        head(5, transfer_encoding="Chunked") + b"0\r\n\r\n" + head(len(made(1))) + made(1),
        CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n",
        head(0, Transfer_Encoding="chunked").replace(b"POST /reports", b"GET /elsewhere") + b"0\r\n\r\n",
    ],
    ids=range(14),
)
@pytest.mark.usefixtures("impatient")
def test_what_is_not_http_is_refused_and_counted_without_a_log_line(path, caplog, sent):
    with Serving(STUDY, path, Limits(0)) as serving:
        answer = everything(serving.open(sent))
        assert answer.startswith(b"HTTP/1.1 400 ") or not answer  # a long head is cut off while it is sent
        assert serving.counts.refused[NO_HTTP] == 1
        assert serving.post(made(1)) == 200
    assert not caplog.records
    assert store.size(path) == 1


def test_what_is_not_http_after_an_answer_is_counted_without_a_log_line(path, caplog):
    with Serving(STUDY, path, Limits(0)) as serving:
        refused = serving.open(CHUNKED + b"bb8\r\n" + b"x" * 3000)
        assert refused.recv(1 << 16).startswith(b"HTTP/1.1 413 ")
        refused.sendall(b"\r\nzz\r\n")
        everything(refused)
        assert serving.counts.refused[LARGE] == serving.counts.refused[NO_HTTP] == 1
    assert not caplog.records


def test_chunks_are_put_together_and_what_follows_a_length_is_not(path):
    chunked = CHUNKED.replace(b"chunked", b"chunked\r\nConnection: close")
    pieces = [made(1)[:50], made(1)[50:]]
    with Serving(STUDY, path, Limits(0)) as serving:
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        assert b"200 OK" in everything(serving.open(chunked + body))
        more = everything(serving.open(head(len(made(2))) + made(2) + b"more\r\n\r\n"))
        assert more.count(b"HTTP/1.1 200 OK") == more.count(b"HTTP/1.1 400") == 1
    assert store.size(path) == 2


def test_a_request_in_flight_is_answered_when_the_receiver_stops(path):
    serving = Serving(STUDY, path, Limits(0))
    content = made(1)
    half, idle = serving.open(head(len(content)), content[:50]), serving.open()
    until(lambda: len(serving.waiting._timers) == 1)
    serving.begin_to_end()
    assert everything(idle) == b""
    with pytest.raises(ConnectionRefusedError):
        serving.open()
    half.sendall(content[50:])
    assert everything(half).startswith(b"HTTP/1.1 200 ")
    serving.end()
    assert store.size(path) == 1


def test_as_many_connections_as_files_allow(monkeypatch):
    asked = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: asked.append(both))
    for soft, hard, most in ((1024, 1 << 20, 1024), (256, 1024, 256), (1 << 16, 1 << 20, 1024)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, both=(soft, hard): both)
        assert connections.most_connections() == most
    assert asked == [(4096, 1 << 20), (1024, 1024)]


def test_the_rate_of_one_address():
    now = 0.0
    rates = Rates(6, lambda: now)
    assert [rates.take("a") for _ in range(8)] == [True] * 6 + [False] * 2
    assert rates.take("b")
    now = 10.0
    assert [rates.take("a") for _ in range(2)] == [True, False]
    now = 1e6
    assert [rates.take("a") for _ in range(7)] == [True] * 6 + [False]
    for number in range(30_000):
        rates.take(str(number))
    assert len(rates._buckets) == 10_000


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:ffff::2", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", ""),
        ("x" * 60_000, ""),
        ("", ""),
    ],
)
def test_whom_a_request_counts_for(host, address):
    assert address_of(host) == address


def test_places_are_few_for_one_address_and_bounded_for_all():
    room = Room(1 << 23, 3)
    assert (room.most, room.at_once) == (8, 1)
    assert [Room(100, at_once).at_once for at_once in (0, 3, 100)] == [256, 3, 100]
    assert [Room(1 << 21, at_once).at_once for at_once in (0, 3, 100)] == [32, 1, 12]

    async def check():
        with room.place("a"), pytest.raises(ShareError), room.place("a"):
            pass
        held = [room.place(str(n)) for n in range(8)]
        for each in held:
            each.__enter__()
        with pytest.raises(FullError), room.place("a"):
            pass
        held.pop().__exit__(None, None, None)
        with room.place("a"):
            pass
        assert len(room._in_flight) == 7

    asyncio.run(check())


def test_the_slowest_body_makes_room_where_there_is_none(monkeypatch):
    monkeypatch.setattr(connections, "SPARED_SECONDS", 0.05)
    ended = []

    async def slow(room, name):
        try:
            with room.place(name):
                async with room.reading():
                    await asyncio.sleep(60)
        except TimeoutError:
            ended.append(name)

    async def check():
        room = Room(1 << 23, 0)
        tasks = [asyncio.create_task(slow(room, str(n))) for n in range(8)]
        await asyncio.sleep(0)
        with pytest.raises(FullError), room.place("early"):
            pass
        await asyncio.sleep(0.1)
        with room.place("a"), room.place("b"):
            await asyncio.sleep(0.01)
        assert ended == ["0", "1"]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (room._total, room._reading, room._in_flight) == (0, {}, {})

    asyncio.run(check())


def test_a_body_may_take_long_in_pieces_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(connections, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.5)

    async def read(pieces, pause):
        async with Room(100, 0).reading() as received:
            for _ in range(pieces):
                received()
                await asyncio.sleep(pause)

    asyncio.run(read(6, 0.04))  # 0.24 s in all, with no pause of 0.1 s
    for pieces, pause in ((2, 0.2), (100, 0.04)):
        with pytest.raises(TimeoutError):
            asyncio.run(read(pieces, pause))
