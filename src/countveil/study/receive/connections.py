"""Connections that cannot starve each other: uvicorn's HTTP/1.1, with a deadline for clients and a bounded number.

A connection waits for its client while it has no complete head of a request, or while its answer is not read. After
WAITING_SECONDS of that it is closed, whatever was sent in the meantime. Where as many are open as may be, the one that
has waited longest is closed for the next.
"""

import asyncio
from functools import partial
from typing import Any, cast

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
