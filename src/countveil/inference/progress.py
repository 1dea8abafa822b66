"""Progress of a fit where somebody can watch, and a notice while kernels are compiled."""

import gc
import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Listener, install_listener
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from countveil.kernels import keeping

SECONDS_BETWEEN = 0.2
WIDTH = 110
LOOK = '<pre style="white-space:pre;overflow-x:auto;line-height:1.3;font-family:Menlo,Consolas,monospace">{code}</pre>'


def progress_bar(show: bool | None, unit: str = "sweeps") -> Progress:
    """A progress display; None shows it where somebody can watch (on stderr of a terminal, or in a notebook).

    ``unit`` says what is counted.
    """
    console = Console(stderr=True)
    if console.is_jupyter and show is not False:
        return NotebookProgress(*columns(unit))
    return Progress(*columns(unit), console=console, disable=not is_watched(show))


def is_watched(show: bool | None) -> bool:
    """Whether to show progress: as asked, or where somebody can watch."""
    console = Console(stderr=True)
    return show if show is not None else console.is_terminal or console.is_jupyter


def columns(unit: str = "sweeps") -> list[ProgressColumn]:
    """What is shown for each task."""
    return [
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(f"{unit},"),
        TimeRemainingColumn(), TextColumn("left  {task.fields[score]}"),
    ]  # fmt: skip


class NotebookProgress(Progress):
    """Progress in the output of a notebook cell, redrawn a few times a second; rich's own needs ipywidgets."""

    def __init__(self, *shown: ProgressColumn) -> None:
        quiet = Console(file=io.StringIO(), force_jupyter=False)
        super().__init__(*shown, console=quiet, auto_refresh=False)
        self._output: Any = None
        self._due = 0.0

    def start(self) -> None:
        """Create the output."""
        from IPython.display import HTML, display

        self._output = display(HTML(self.as_html()), display_id=True)

    def stop(self) -> None:
        """Draw the final state."""
        self._due = 0.0
        self.refresh()
        self._output = None

    def refresh(self) -> None:
        """Redraw, unless the last time was a moment ago."""
        now = time.monotonic()
        if self._output is None or now < self._due:
            return
        from IPython.display import HTML

        self._due = now + SECONDS_BETWEEN
        self._output.update(HTML(self.as_html()))

    def update(self, task_id: TaskID, **fields: Any) -> None:
        """Update a task's progress, and redraw."""
        super().update(task_id, **fields)
        self.refresh()

    def as_html(self) -> str:
        """The bars as they are now."""
        paper = Console(file=io.StringIO(), record=True, width=WIDTH, force_jupyter=False, force_terminal=True)
        paper.print(self.get_renderable())
        return paper.export_html(inline_styles=True, code_format=LOOK)


MESSAGE = "Compiling for this machine, up to two minutes; later starts find it done."
MESSAGE_EACH_TIME = "Compiling for this machine, up to two minutes."


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
