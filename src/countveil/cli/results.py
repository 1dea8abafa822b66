"""What commands found, for people or for programs: ``--json`` and ``--quiet``."""

import contextlib
import functools
import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import typer

from countveil.cli.output import say

Result = dict[str, Any]
"""Tables, lines, numbers and lists by name, or functions that make them, called if they are printed."""

Json = Annotated[bool, typer.Option("--json", help="Print results as JSON; messages go to stderr.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and warnings, without a progress bar.")]


class Failed(typer.Exit):
    """What was found is not as it should be: it is printed, and the exit status is 1."""

    def __init__(self, found: Result) -> None:
        super().__init__(1)
        self.found = found


def with_quiet(command: Callable[..., None]) -> Callable[..., None]:
    """The command with ``--quiet``."""

    @functools.wraps(command)
    def wrapped(*, quiet: bool, **given: Any) -> None:
        with silent() if quiet else contextlib.nullcontext():
            command(**given)

    return with_parameters(wrapped, command, quiet=Quiet)


def with_result(command: Callable[..., Result]) -> Callable[..., None]:
    """The command with ``--quiet``, and with ``--json``, which prints what it returns and nothing else."""

    @functools.wraps(command)
    def wrapped(*, as_json: bool, quiet: bool, **given: Any) -> None:
        if as_json:
            with silent() if quiet else contextlib.redirect_stdout(sys.stderr):
                found, failed = told_of(lambda: command(**given))
            say(as_text(found))
            if failed is not None:
                raise failed
            return
        with silent() if quiet else contextlib.nullcontext():
            command(**given)

    return with_parameters(wrapped, command, as_json=Json, quiet=Quiet)


def told_of(command: Callable[[], Result]) -> tuple[Result, Failed | None]:
    """What a command returns, or what it failed with."""
    try:
        return command(), None
    except Failed as failed:
        return failed.found, failed


def with_parameters(wrapped: Callable[..., None], command: Callable[..., Any], **added: Any) -> Callable[..., None]:
    """A wrapped command that shows the parameters of the command, and switches besides that are off."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [each.replace(kind=keyword) for each in inspect.signature(command).parameters.values()]
    switches = [inspect.Parameter(name, keyword, default=False, annotation=kind) for name, kind in added.items()]
    wrapped.__signature__ = inspect.Signature([*own, *switches])  # type: ignore[attr-defined]
    return wrapped


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Nothing on standard output, and no progress on standard error."""
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(NoTerminal(sys.stderr)),
    ):
        yield


class NoTerminal:
    """A stream that does not pass for a terminal, so that nobody draws progress on it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        """False."""
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def as_text(found: Result) -> str:
    """A result as JSON of plain ASCII; what is not a number is null."""
    return json.dumps({name: plain_value(value) for name, value in found.items()}, indent=1)


def plain_value(value: Any) -> Any:
    """A table as a list of rows, what is not a number as None, anything else as it is; functions are called first."""
    if callable(value):
        value = value()
    if hasattr(value, "to_json"):
        return json.loads(value.to_json(orient="records"))
    if isinstance(value, dict):
        return {name: plain_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fit_tables(found: Any, members: int, documents: int = 0) -> Result:
    """What a fit says: its components and their members, documents if any are wanted, effects, chains, the verdict."""
    from countveil.laws.counts import NegativeBinomial

    tables: Result = {}
    for part in found._reader.kinds:
        for axis in part.axes:
            tables[f"{part.many} by {axis}"] = partial(members_of, found, part, axis, members)
    merged: list[list[int]] = found.parts.merged()
    if merged:
        tables["merged"] = merged
    if documents:
        tables["documents"] = partial(top_documents, found, documents)
    if found.covariates_ is not None:
        tables |= {"effects": found.effects.table, "contrasts": found.effects.contrasts}
    if found._n_upper:
        tables["upper topics"] = found.parts.upper_topics
    if found.dates_ is not None:
        tables["prevalence over time"] = found.effects.over_time
    if found.model_.likelihood.name == NegativeBinomial.name:
        tables["dispersions"] = found.dispersions
    totals = found.totals()
    if totals is not None:
        tables["totals"] = totals.facts
    judged = found.diagnostics()
    tables["diagnostics"] = judged.table.reset_index(names="quantity")
    return tables | judged.of_chains() | {"state": str(judged.state), "verdict": judged.verdict} | mechanism_of(judged)


def warning_of(judged: Any, results: str) -> str:
    """A warning with the reason of a verdict by which results, such as "counts", are not safe to report; else empty."""
    from countveil.inference.diagnostics import State

    if judged.state in (State.SAFE, State.WITH_SUPPORT):
        return ""
    return f"warning: these {results} are not safe to report. {judged.reason}"


def mechanism_of(judged: Any) -> Result:
    """What the reports say of their mechanism; nothing where that was not asked."""
    found = judged.mechanism
    return {} if found is None else {"mechanism": {"state": str(found.state), **found._asdict()}}


def members_of(found: Any, part: Any, axis: str, n: int) -> Any:
    """The n largest members of every component of a kind along an axis."""
    return found.parts.supported(axis, n).rename(columns={"component": part.one, "member": axis})


def top_documents(found: Any, n: int) -> Any:
    """The documents of every topic, one table after another."""
    import pandas as pd

    topics = found.parts.support()["component"]
    return pd.concat([found.documents.top(k, n) for k in topics], ignore_index=True)
