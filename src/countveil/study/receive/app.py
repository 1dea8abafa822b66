"""The web application that takes reports in: one address, one method, and nothing that reads what is stored."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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
from countveil.study.receive import path_of, tally
from countveil.study.receive.connections import (
    BODY_SECONDS,
    SILENT_SECONDS,
    FullError,
    Limits,
    Rates,
    Room,
    ShareError,
    address_of,
)
from countveil.study.receive.store import NEW, OTHER, BusyError, Store, StoreError
from countveil.study.receive.tally import Tally

HEADERS = {"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""A page that was opened from a file has no origin of its own, and must be able to read the answer."""
_INLINE = 1 << 16
_CHECKS = 2
_HERE = ("127.0.0.1", "::1")
_LOG = logging.getLogger(__name__)


class TooLargeError(Exception):
    """A body is larger than any report of the study."""


def application(study: Study, store: Store, limits: Limits, counts: Tally | None = None) -> Starlette:
    """The application; it counts what becomes of requests, and closes the store when it ends."""
    counts = Tally() if counts is None else counts
    receiver = Receiver(study, store, limits, counts)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(store.close)

    async def other(_: Request, error: Exception) -> Response:
        counts.refuse(tally.ELSEWHERE)
        status = error.status_code if isinstance(error, HTTPException) else 500
        return refusal(status, "the request", "must be a POST of a report to the address of the study")

    made = Starlette(
        routes=[Route(path_of(study), receiver.take, methods=["POST"])],
        lifespan=lifespan,
        exception_handlers={HTTPException: other},
    )
    made.router.redirect_slashes = False
    return made


def refusal(status: int, field: str, rule: str, **headers: str) -> Response:
    """The answer to what is not accepted: which field, which rule."""
    told = {"outcome": "refused", "field": field, "rule": rule}
    return JSONResponse(told, status, headers=HEADERS | headers)


class Receiver:
    """Takes one report per request: within the rate, within the size, valid, of a new participant, and on disk."""

    def __init__(self, study: Study, store: Store, limits: Limits, counts: Tally) -> None:
        self._study, self._store, self._counts = study, store, counts
        self._most = report.most_bytes(study)
        self._rates = Rates(limits.per_minute)
        self._room = Room(self._most, limits.at_once)
        self._checks = asyncio.Semaphore(_CHECKS)

    async def take(self, request: Request) -> Response:
        """The answer to one request."""
        host = request.client.host if request.client else ""
        address = address_of(host)
        if not self._rates.take(address):
            return self._too_many(request, host, "60")
        try:
            with self._room.place(address):
                return await self._answer(request)
        except ShareError:
            return self._too_many(request, host, "10")
        except FullError:
            return self._busy()

    async def _answer(self, request: Request) -> Response:
        try:
            content = await self._read(request)
            found = await self._checked(content)
            outcome = await asyncio.wrap_future(self._store.put(found.key, content))
        except TooLargeError:
            rule = f"must have at most {self._most} bytes, got more"
            return self._refused(tally.LARGE, 413, "the body", rule)
        except RefusedError as error:
            return self._refused(tally.reason_of(error), 400, error.field, error.rule)
        except TimeoutError:
            rule = f"must arrive within {BODY_SECONDS:g} seconds without a pause of {SILENT_SECONDS:g}, got less of it"
            return self._refused(tally.SLOW, 408, "the body", rule)
        except ClientDisconnect:
            return self._refused(tally.SLOW, 400, "the body", "must arrive, got a closed connection")
        except (BusyError, StoreError):
            return self._busy()
        except Exception:
            _LOG.exception("A request failed in the receiver.")
            return self._refused(tally.FAILED, 500, "the request", "must come later, got an error of the receiver")
        if outcome == OTHER:
            rule = "must be new, got a participant who has another report here"
            return self._refused(tally.AGAIN, 409, "participant", rule)
        if outcome == NEW:
            self._counts.accept()
        return JSONResponse({"outcome": "accepted"}, headers=HEADERS)

    async def _read(self, request: Request) -> bytes:
        declared = request.headers.get("content-length", "0")
        if not (declared.isascii() and declared.isdecimal() and len(declared) < 20 and int(declared) <= self._most):
            raise TooLargeError
        content = bytearray()
        async with self._room.reading() as received:
            async for piece in request.stream():
                received()
                content += piece
                if len(content) > self._most:
                    raise TooLargeError
        return bytes(content)

    async def _checked(self, content: bytes) -> Report:
        if len(content) < _INLINE:
            return report.decode(content, self._study, "the report")
        async with self._checks:
            return await run_in_threadpool(report.decode, content, self._study, "the report")

    def _refused(self, reason: str, status: int, field: str, rule: str, **headers: str) -> Response:
        self._counts.refuse(reason)
        return refusal(status, field, rule, **headers)

    def _busy(self) -> Response:
        rule = "must come later, got no room to store it"
        return self._refused(tally.BUSY, 503, "the request", rule, **{"Retry-After": "10"})

    def _too_many(self, request: Request, host: str, seconds: str) -> Response:
        if host in _HERE and "x-forwarded-for" not in request.headers:
            _LOG.warning(
                "Too many requests from this machine itself, without X-Forwarded-For: a web server in front has to "
                "pass that on, or all participants share the limits of one address."
            )
        rule = "must come later, got too many"
        return self._refused(tally.MANY, 429, "the request", rule, **{"Retry-After": seconds})
