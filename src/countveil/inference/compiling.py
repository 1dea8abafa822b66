"""A notice while kernels are compiled, which happens once after an installation."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Listener, install_listener

from countveil.inference.progress import is_watched

MESSAGE = "Compiling for this machine, up to half a minute; later starts find it done."


class CompilationNotice(Listener):
    """Prints a message when the first kernel has to be compiled, because it is not on disk yet."""

    def __init__(self) -> None:
        self.told = False

    def on_start(self, event: Any) -> None:
        """A kernel is being compiled; the message goes above a progress bar, if there is one."""
        if not self.told:
            self.told = True
            print(MESSAGE, file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """It is compiled."""


@contextmanager
def compiling_told(show: bool | None) -> Iterator[None]:
    """Announce compilation within this context, where a progress bar would be shown."""
    if not is_watched(show):
        yield
        return
    with install_listener("numba:compile", CompilationNotice()):
        yield
