"""The console that commands print to: tables on standard output, progress on standard error."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
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
