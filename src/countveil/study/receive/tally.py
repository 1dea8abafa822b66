"""How many reports a receiver has accepted, how many requests it has refused and why, and how it shows this live."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from countveil.common.console import console
from countveil.privacy.errors import RefusedError

INVALID = "not a valid report"
OTHER_STUDY = "report of another study"
AGAIN = "participant has another report"
LARGE = "too large"
SLOW = "too slow or cut off"
MANY = "too many from one address"
BUSY = "no room"
ELSEWHERE = "not a POST to the study's address"
NO_HTTP = "not HTTP"
FAILED = "an error of the receiver"
REASONS = (INVALID, OTHER_STUDY, AGAIN, LARGE, SLOW, MANY, BUSY, ELSEWHERE, NO_HTTP, FAILED)
"""What a sender writes is in none of them, so their number does not grow."""


class Tally:
    """Counts since the receiver began; ``stored`` reports were there before, ``target`` are wanted.

    One thread counts; others may read.
    """

    def __init__(self, stored: int = 0, target: int | None = None) -> None:
        self.reports, self.target = stored, target
        self.refused = dict.fromkeys(REASONS, 0)

    def accept(self) -> None:
        """Counts a report that was stored and was not there before."""
        self.reports += 1

    def refuse(self, reason: str) -> None:
        """Counts a refused request; ``reason`` is one of REASONS."""
        self.refused[reason] += 1

    def line(self) -> str:
        """All counts in one line, the most frequent reason first."""
        counts = sorted(((times, reason) for reason, times in self.refused.items() if times), reverse=True)
        listed = ", ".join(f"{times:,} {reason}" for times, reason in counts)
        refused = sum(times for times, _ in counts)
        return f"{progress(self.reports, self.target)}; {refused:,} refused" + (f": {listed}" if listed else "")


def progress(reports: int, target: int | None) -> str:
    """How many reports there are, and of how many that are wanted."""
    if target is None:
        return f"{reports:,} reports"
    return f"{reports:,} of {target:,} reports ({reports / target:.0%})"


def reason_of(error: RefusedError) -> str:
    """The reason to count for a report that a check refused."""
    return OTHER_STUDY if error.field in ("study", "schema_hash") else INVALID


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
