"""The terminal that commands print to."""

from rich.console import Console

LEAST_WIDTH = 110


def console() -> Console:
    """Standard output, wide enough for the tables where it is no terminal."""
    found = Console()
    return found if found.is_terminal else Console(width=max(found.width, LEAST_WIDTH))
