"""What one address may take: its rate, its share of the requests in flight, and room while a body is read."""

import asyncio

import pytest

from countveil.study.receive import limits
from countveil.study.receive.limits import FullError, Rates, Room, ShareError, address_of


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
    monkeypatch.setattr(limits, "SPARED_SECONDS", 0.05)
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
    monkeypatch.setattr(limits, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.5)

    async def read(pieces, pause):
        async with Room(100, 0).reading() as received:
            for _ in range(pieces):
                received()
                await asyncio.sleep(pause)

    asyncio.run(read(6, 0.04))  # 0.24 s in all, with no pause of 0.1 s
    for pieces, pause in ((2, 0.2), (100, 0.04)):
        with pytest.raises(TimeoutError):
            asyncio.run(read(pieces, pause))
