"""Groups of options that several commands share: declared once, as the fields of a named tuple."""

import functools
import inspect
from collections.abc import Callable
from typing import Any


def with_option_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with every named tuple among its parameters replaced by that tuple's fields.

    Typer reads the options of a command from its signature. A parameter such as ``sampling: Sampling`` becomes one
    option for each field of ``Sampling``, in its place, with the field's type, help and default; the command is
    called with a ``Sampling`` of what was given.
    """
    groups: dict[str, Any] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if hasattr(parameter.annotation, "_fields"):
            groups[parameter.name] = parameter.annotation
            options += inspect.signature(parameter.annotation).parameters.values()
        else:
            options.append(parameter)

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{field: given.pop(field) for field in group._fields})
        return command(**given)

    keywords = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    wrapped.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return wrapped
