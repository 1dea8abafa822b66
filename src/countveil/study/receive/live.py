"""What a receiver shows while it runs: its counts in one line, and of its log no more than a reader can use."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from countveil.common.console import console

SECONDS = 30.0
"""At most one line in this time, of counts and of each place that logs."""


@contextmanager
def shown(line: Callable[[], str], seconds: float = SECONDS) -> Iterator[None]:
    """Shows a line that changes: in place on a terminal, otherwise again where it changed, and at the end."""
    screen = console()
    if screen.is_terminal:
        from rich.live import Live
        from rich.text import Text

        text = lambda: Text(line(), no_wrap=True, overflow="ellipsis")  # noqa: E731
        with Live(get_renderable=text, console=screen, refresh_per_second=2):
            yield
        return
    ended = threading.Event()
    printer = threading.Thread(target=_print, args=(line, ended, seconds), name="counts", daemon=True)
    printer.start()
    try:
        yield
    finally:
        ended.set()
        printer.join()


def _print(line: Callable[[], str], ended: threading.Event, seconds: float) -> None:
    before, last = line(), False
    while not last:
        last = ended.wait(seconds)
        now = line()
        if now != before:
            typer.echo(now)
        before = now


class Sparing(logging.Filter):
    """Lets through one record in ``seconds`` of each place in the code that logs; whoever causes more fills no disk."""

    def __init__(self, seconds: float = SECONDS, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds, self._now = seconds, now
        self._last: dict[tuple[str, int], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the last record of that place was long enough ago."""
        place, now = (record.pathname, record.lineno), self._now()
        if now - self._last.get(place, -self._seconds) < self._seconds:
            return False
        self._last[place] = now
        return True


def log_sparingly() -> None:
    """Sends warnings of the receiver and of its web server to standard error, sparingly."""
    handler = logging.StreamHandler()
    handler.addFilter(Sparing())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, format="%(message)s", force=True)
