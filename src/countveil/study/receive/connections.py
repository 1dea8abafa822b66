"""Connections that cannot starve each other: uvicorn's HTTP/1.1, with a deadline for clients and a bounded number.

A connection waits for its client while it has no complete head of a request, or while its answer is not read. After
WAITING_SECONDS of that it is closed, whatever was sent in the meantime. Where as many are open as may be, the one that
has waited longest is closed for the next.
"""

import asyncio
import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from countveil.study.receive.tally import BUSY, NO_HTTP, Tally

WAITING_SECONDS = 5.0
_FILES = 4096
_MOST = 1024
_BACKLOG = 256
_STOP_SECONDS = 60
_LONGEST_HEAD = 1 << 14


class Waiting:
    """The connections that wait for their clients, the longest first; at most ``most`` connections are open."""

    def __init__(self, most: int, counts: Tally) -> None:
        self.most, self.counts = most, counts
        self._timers: dict[Connection, asyncio.TimerHandle] = {}

    def begin(self, connection: "Connection") -> None:
        """From now on this connection waits for its client."""
        self.end(connection)
        later = asyncio.get_running_loop().call_later
        self._timers[connection] = later(WAITING_SECONDS, connection.transport.abort)

    def end(self, connection: "Connection") -> None:
        """This connection does not wait for its client, or is closed."""
        if (timer := self._timers.pop(connection, None)) is not None:
            timer.cancel()

    def close_longest(self) -> bool:
        """Closes the connection that has waited longest; False if none waits."""
        longest = next(iter(self._timers), None)
        if longest is None:
            return False
        self.end(longest)
        longest.connections.discard(longest)
        longest.transport.abort()
        return True


class OneLength(h11.Connection):
    """Requests whose bodies have one length alone.

    With Transfer-Encoding and Content-Length, or with Transfer-Encoding in HTTP/1.0, a web server in front may read
    another body, and take its rest for a request of somebody else's. Source: RFC 9112, sections 6.1 and 6.3.
    """

    def next_event(self) -> Any:
        """What was received next; raises RemoteProtocolError for a request of more than one length."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version == b"1.0"):
                raise h11.RemoteProtocolError("more than one length")
        return event


class Connection(H11Protocol):
    """One connection; what it does beyond uvicorn's is to say when it waits for its client."""

    def __init__(self, waiting: Waiting, **settings: Any) -> None:
        super().__init__(**settings)
        self.conn = OneLength(h11.SERVER, _LONGEST_HEAD)
        self._waiting = waiting

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Waits for a request, in the place of another where too many are open."""
        full = len(self.connections) >= self._waiting.most and not self._waiting.close_longest()
        super().connection_made(transport)
        if full:
            self._waiting.counts.refuse(BUSY)
            transport.abort()
        else:
            self._waiting.begin(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no longer."""
        self._waiting.end(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Waits no longer once there is a request; anything less does not put the deadline off."""
        super().data_received(data)
        if self._is_served():
            self._waiting.end(self)

    def on_response_complete(self) -> None:
        """Waits for the next request, and for the rest of a body that was refused."""
        super().on_response_complete()
        if not self._is_served() and not self.transport.is_closing():
            self._waiting.begin(self)

    def pause_writing(self) -> None:
        """Waits for the client to read its answers."""
        super().pause_writing()
        self._waiting.begin(self)

    def resume_writing(self) -> None:
        """Waits no longer for that."""
        super().resume_writing()
        if self._is_served():
            self._waiting.end(self)

    def send_400_response(self, msg: str) -> None:
        """Counts what is not HTTP; where an answer has begun, it is the last."""
        self._waiting.counts.refuse(NO_HTTP)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def _is_served(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete and not self.flow.write_paused


def configured(made: Starlette, counts: Tally, proxies: list[str]) -> uvicorn.Config:
    """How uvicorn serves the application; the X-Forwarded-For of these proxies is believed."""
    protocol = partial(Connection, Waiting(most_connections(), counts))
    return uvicorn.Config(
        made,
        http=cast(type[asyncio.Protocol], protocol),
        ws="none",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        backlog=_BACKLOG,
        forwarded_allow_ips=proxies,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )


def most_connections() -> int:
    """How many connections may be open: a part of the files that may, after asking the system for enough of them."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _MOST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return _MOST if soft == resource.RLIM_INFINITY else min(_MOST, soft // 4)


BODY_SECONDS = 30.0
"""A body must arrive within this time."""
SILENT_SECONDS = 5.0
"""A sender who sends nothing for this long is given up."""
SPARED_SECONDS = 2.0
"""A body that takes longer than this makes room for others where there is none."""
_ADDRESSES = 10_000
_MEMORY = 1 << 26
_FEWEST, _MOST_REQUESTS = 8, 256


class Limits(NamedTuple):
    """How many requests one address may make per minute, and have in flight (0: any number)."""

    per_minute: int = 60
    at_once: int = 8


class ShareError(Exception):
    """One address has as many requests in flight as it may have."""


class FullError(Exception):
    """There is no room for another request."""


def address_of(host: str) -> str:
    """Whom to count a request for: an IPv4 address, or the /64 network of an IPv6 address, which one sender owns.

    Whatever is not an address, in a header of a proxy, is counted as one sender.
    """
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((found, 64), strict=False))


class Rates:
    """How many requests each address may still make: one bucket each; the least recently used go first."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = per_minute, now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> bool:
        """Whether one more request of this address is within its rate."""
        if not self._most:
            return True
        now = self._now()
        left, then = self._buckets.pop(address, (float(self._most), now))
        left = min(self._most, left + (now - then) * self._most / 60)
        self._buckets[address] = (max(left - 1, left if left < 1 else 0.0), now)
        while len(self._buckets) > _ADDRESSES:
            self._buckets.popitem(last=False)
        return left >= 1


class Room:
    """Requests in flight with bodies of up to ``largest`` bytes: a bounded number, and ``at_once`` of one address.

    There are fewer places where bodies are large, and one address has the same share of them.

    Where there is no room for one more, the sender who has been sending longest is given up, if that took more than
    SPARED_SECONDS: so slow senders do not starve others.
    """

    def __init__(self, largest: int, at_once: int) -> None:
        self.most = max(_FEWEST, min(_MOST_REQUESTS, _MEMORY // largest))
        self.at_once = max(1, at_once * self.most // _MOST_REQUESTS) if at_once else self.most
        self._in_flight: Counter[str] = Counter()
        self._total = 0
        self._reading: dict[asyncio.Timeout, float] = {}

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Holds a place for one request; raises ShareError, or FullError if none is left."""
        if self._in_flight[address] >= self.at_once:
            raise ShareError
        if self._total >= self.most and not self._give_up_one():
            raise FullError
        self._in_flight[address] += 1
        self._total += 1
        try:
            yield
        finally:
            self._total -= 1
            self._in_flight[address] -= 1
            if not self._in_flight[address]:
                del self._in_flight[address]

    def _give_up_one(self) -> bool:
        now = asyncio.get_running_loop().time()
        slowest = next(iter(self._reading), None)
        if slowest is None or now - self._reading[slowest] < SPARED_SECONDS:
            return False
        del self._reading[slowest]
        slowest.reschedule(now)
        return True

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Callable[[], None]]:
        """Bounds the time of reading a body; what it gives is to be called for each piece. Raises TimeoutError."""
        start = (loop := asyncio.get_running_loop()).time()
        async with asyncio.timeout(SILENT_SECONDS) as timeout:

            def received() -> None:
                if timeout in self._reading:
                    timeout.reschedule(min(loop.time() + SILENT_SECONDS, start + BODY_SECONDS))

            self._reading[timeout] = start
            try:
                yield received
            finally:
                self._reading.pop(timeout, None)
