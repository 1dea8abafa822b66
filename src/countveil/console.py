"""The console that commands print to: tables on standard output, progress on standard error."""

from rich.console import Console

MIN_WIDTH = 110


def console() -> Console:
    """Standard output, wide enough for the tables where it is not a terminal."""
    found = Console()
    return found if found.is_terminal else Console(width=max(found.width, MIN_WIDTH))


def error_console() -> Console:
    """Standard error, for progress and for what must not get into the output."""
    return Console(stderr=True)
