"""A notice while kernels are compiled, which happens once after an installation."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Listener, install_listener

from countveil.inference.progress import is_watched
from countveil.kernels import keeping

MESSAGE = "Compiling for this machine, up to half a minute; later starts find it done."
MESSAGE_EACH_TIME = "Compiling for this machine, up to half a minute."


class Compilation(Listener):
    """Prints a message when the first function has to be compiled; pauses the garbage collector meanwhile.

    Compiling makes many objects and little garbage: the collector would take a tenth of the time.
    """

    def __init__(self, told: bool) -> None:
        self.told, self.depth, self.paused = told, 0, False

    def on_start(self, event: Any) -> None:
        """A function is being compiled; the message goes above a progress bar, if there is one."""
        if not self.told:
            self.told = True
            print(MESSAGE_EACH_TIME if keeping.told else MESSAGE, file=sys.stderr, flush=True)
        self.depth += 1  # those that it calls are compiled meanwhile
        if gc.isenabled():
            gc.disable()
            self.paused = True

    def on_end(self, event: Any) -> None:
        """It is compiled."""
        self.depth = max(self.depth - 1, 0)
        if self.depth == 0:
            self.go_on()

    def go_on(self) -> None:
        """Let the collector run again."""
        if self.paused:
            gc.enable()
            self.paused = False


@contextmanager
def compiling_told(show: bool | None) -> Iterator[None]:
    """Announce compilation within this context, where a progress bar would be shown."""
    found = Compilation(told=not is_watched(show))
    try:
        with install_listener("numba:compile", found):
            yield
    finally:
        found.go_on()
