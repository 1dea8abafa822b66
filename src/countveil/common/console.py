"""What commands print to: tables on standard output, progress on standard error, also of many fits."""

import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.segment import Segment

from countveil.privacy._text import plain

MIN_WIDTH = 110


class PlainConsole(Console):
    """A console that writes out control characters in whatever it prints; its own colours stay."""

    def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
        """The segments to print, each of plain text."""
        for segment in super().render(*arguments, **options):
            text = segment.text if segment.control else plain(segment.text, lines=True)
            yield segment if text is segment.text else segment._replace(text=text)


def console() -> Console:
    """Standard output, wide enough for the tables where it is not a terminal."""
    found = PlainConsole()
    return found if found.is_terminal else PlainConsole(width=max(found.width, MIN_WIDTH))


def error_console() -> Console:
    """Standard error, for progress and for what must not get into the output."""
    return PlainConsole(stderr=True)


class Watcher(Protocol):
    """What shows the progress of many fits."""

    def stage(self, name: str) -> None:
        """Something other than a fit begins."""

    def begin(self, total: int) -> None:
        """This many fits are to be made in all, earlier ones included."""

    def started(self, name: str) -> None:
        """A fit starts."""

    def finished(self, name: str, seconds: float) -> None:
        """A fit is done."""


class ProgressWatcher:
    """Progress on stderr: bars in a terminal, one line per fit elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console, self._started = console, time.perf_counter()
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}
        self._overall: TaskID | None = None
        self._total = self._done = 0
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(),
            TimeElapsedColumn(), console=console, disable=not console.is_terminal, transient=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def stage(self, name: str) -> None:
        """Something other than a fit begins."""
        self._say(name)

    def begin(self, total: int) -> None:
        """This many fits are to be made in all, earlier ones included."""
        self._total = total
        if self._overall is None:
            self._overall = self._bar.add_task("all fits", total=total)
        else:
            self._bar.update(self._overall, total=total)

    def started(self, name: str) -> None:
        """A fit starts."""
        with self._lock:
            self._tasks[name] = self._bar.add_task(name, total=None)

    def finished(self, name: str, seconds: float) -> None:
        """A fit is done."""
        with self._lock:
            self._bar.remove_task(self._tasks.pop(name))
            self._done += 1
            if self._overall is not None:
                self._bar.advance(self._overall)
            if not self._console.is_terminal:
                self._say(f"[{self._done}/{self._total}] {name}: {seconds:.1f} s")

    def _say(self, line: str) -> None:
        self._console.print(f"{time.perf_counter() - self._started:6.1f} s  {line}", highlight=False, markup=False)
