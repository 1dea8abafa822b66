"""Options that several commands share."""

from typing import Annotated

import typer

from countveil.privacy import PrivacyLevel

Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads to use [default: all]; the result does not depend on it.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]


def read_level(text: str) -> PrivacyLevel:
    """A level from N:EPSILON."""
    precision, separator, epsilon = text.partition(":")
    if not separator:
        raise ValueError(f"level must be N:EPSILON, such as 10:1, got {text!r}")
    return PrivacyLevel(epsilon, precision)


def read_dispersion(text: str | None) -> str | float | None:
    """A dispersion as the models take it: a number where the text is one."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
