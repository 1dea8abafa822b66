"""Errors as a shell expects them: one line and an exit status."""

import functools
from collections.abc import Callable
from typing import Any

import typer

from countveil.cli.say import say

EXPECTED = (ValueError, TypeError, OSError, MemoryError, ModuleNotFoundError)


def plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """The command with expected errors as one line on stderr and exit status 1, Ctrl-C as 130."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except EXPECTED as error:
            say("error: " + " ".join((str(error) or "out of memory").split()), err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt as stop:
            say(str(stop) or "interrupted", err=True)
            raise typer.Exit(130) from None

    return wrapped
