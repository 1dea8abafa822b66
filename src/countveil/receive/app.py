"""The web application that takes reports in: one address, one method, and nothing that reads what is stored."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from countveil.privacy import report
from countveil.privacy.errors import RefusedError
from countveil.privacy.report import Report
from countveil.privacy.study import Study
from countveil.receive import path_of
from countveil.receive.store import OTHER, BusyError, Store, StoreError

HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
"""A page that was opened from a file has no origin of its own, and must be able to read the answer."""
_SECONDS = 30
_MEMORY = 1 << 26
_ADDRESSES = 10_000
_INLINE = 1 << 16


class Limits(NamedTuple):
    """How many requests per minute one address may make (0: any number)."""

    per_minute: int = 60


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


def application(study: Study, store: Store, limits: Limits) -> Starlette:
    """The application; it closes the store when it ends."""
    receiver = Receiver(study, store, limits)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(store.close)

    async def other(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return refusal(status, "the request", "must be a POST of a report to the address of the study")

    return Starlette(
        routes=[Route(path_of(study), receiver.take, methods=["POST"])],
        lifespan=lifespan,
        exception_handlers={HTTPException: other},
    )


def refusal(status: int, field: str, rule: str, **headers: str) -> Response:
    """The answer to what is not accepted: which field, which rule."""
    told = {"outcome": "refused", "field": field, "rule": rule}
    return JSONResponse(told, status, headers=HEADERS | headers)


class Receiver:
    """Takes one report per request: within the rate, within the size, valid, of a new participant, and on disk."""

    def __init__(self, study: Study, store: Store, limits: Limits) -> None:
        self._study, self._store = study, store
        self._most = report.most_bytes(study)
        self._rates = Rates(limits.per_minute)
        self._room = asyncio.Semaphore(max(2, min(256, _MEMORY // self._most)))

    async def take(self, request: Request) -> Response:
        """The answer to one request."""
        if not self._rates.take(request.client.host if request.client else ""):
            return refusal(429, "the request", "must come later, got too many", **{"Retry-After": "60"})
        if self._room.locked():
            return busy()
        async with self._room:
            try:
                async with asyncio.timeout(_SECONDS):
                    content = await self._read(request)
                    found = await self._checked(content)
                outcome = await asyncio.wrap_future(self._store.put(found.participant, content))
            except RefusedError as error:
                return refusal(413 if error.field == "the body" else 400, error.field, error.rule)
            except TimeoutError:
                return refusal(408, "the body", f"must arrive within {_SECONDS} seconds, got less of it")
            except ClientDisconnect:
                return refusal(400, "the body", "must arrive, got a closed connection")
            except (BusyError, StoreError):
                return busy()
        if outcome == OTHER:
            rule = "must be new, got a participant who has another report here"
            return refusal(409, "participant", rule)
        return JSONResponse({"outcome": "accepted"}, headers=HEADERS)

    async def _read(self, request: Request) -> bytes:
        declared = request.headers.get("content-length", "0")
        content = bytearray()
        if declared.isascii() and declared.isdecimal() and len(declared) < 20 and int(declared) <= self._most:
            async for piece in request.stream():
                content += piece
                if len(content) > self._most:
                    break
            else:
                return bytes(content)
        raise RefusedError("the report", "the body", f"must have at most {self._most} bytes, got more")

    async def _checked(self, content: bytes) -> Report:
        if len(content) < _INLINE:
            return report.decode(content, self._study, "the report")
        return await run_in_threadpool(report.decode, content, self._study, "the report")


def busy() -> Response:
    """The answer where nothing could be stored."""
    return refusal(503, "the request", "must come later, got no room to store it", **{"Retry-After": "10"})
