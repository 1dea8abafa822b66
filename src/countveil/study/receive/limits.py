"""What one address may take of a receiver: requests per minute, requests in flight, and room while a body is read."""

import asyncio
import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

BODY_SECONDS = 30.0
"""A body must arrive within this time."""
SILENT_SECONDS = 5.0
"""A sender who sends nothing for this long is given up."""
SPARED_SECONDS = 2.0
"""A body that takes longer than this makes room for others where there is none."""
_ADDRESSES = 10_000
_MEMORY = 1 << 26
_FEWEST, _MOST = 8, 256


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
        self.most = max(_FEWEST, min(_MOST, _MEMORY // largest))
        self.at_once = max(1, at_once * self.most // _MOST) if at_once else self.most
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
