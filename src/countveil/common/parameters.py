"""Parameters that are declared once: an annotated default, with the rule for its values and what it does.

    @declared
    class Example:
        size: Annotated[int, Whole(1)] = 10
        _: KW_ONLY
        loud: Annotated[bool, Option(Flag(), "whether it is loud.")] = False

The class is a dataclass, so the declaration is its constructor, and is what people, editors and scikit-learn's
``get_params``, ``set_params`` and ``clone`` read. ``check_rules`` holds the values against the rules, except defaults,
which need no rule: None is allowed where it is the default. What an ``Option`` says becomes a section of the docstring;
other parameters are described there by hand.
"""

import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar, dataclass_transform, get_args, get_origin

import numpy as np

AUTO = "auto"
LARGEST = 2**63 - 1  # what compiled functions take

T = TypeVar("T")


class Rule(Protocol):
    """What a parameter may be."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else with a ValueError that says the parameter, the rule and the value."""


class Whole(NamedTuple):
    """A whole number from ``least`` to ``most``."""

    least: int
    most: int = LARGEST

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        check_integer(name, value, self.least, self.most)


class WholeOrAuto(NamedTuple):
    """A whole number from ``least`` on, or "auto"; with ``none`` also None, for a number by the data."""

    least: int = 1
    none: bool = False

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if value is None and self.none:
            return
        if isinstance(value, str):
            if value != AUTO:
                raise ValueError(f"{name} must be a whole number or {AUTO!r}, got {value!r}")
            return
        check_integer(name, value, self.least)


class Positive(NamedTuple):
    """A positive finite number."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        check_positive(name, value)


class PositiveOr(NamedTuple):
    """A positive finite number, or one of a few other values."""

    values: tuple[Any, ...]

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if value is not None and not isinstance(value, str):
            check_positive(name, value)
        elif value not in self.values:
            raise ValueError(f"{name} must be a positive number or one of {list(self.values)}, got {value!r}")


class OneOf(NamedTuple):
    """One of a few values."""

    values: tuple[Any, ...]

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        check_choice(name, value, self.values)


class Flag(NamedTuple):
    """True or False."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        check_flag(name, value)


class Option(NamedTuple):
    """What is declared about a parameter besides its type and its default."""

    rule: Rule | None  # None where it is checked together with other parameters or the data
    says: str


@dataclass_transform(eq_default=False)
def declared(cls: type[T]) -> type[T]:
    """A dataclass without equality whose docstring has what its options say, and its constructor plain types."""
    made: Any = dataclasses.dataclass(eq=False, repr=False, match_args=False)(cls)
    made.__init__.__annotations__ |= {field.name: plain_type(field.type) for field in dataclasses.fields(made)}
    options = described_options(made)
    if cls.__doc__ and options:
        made.__doc__ = f"{inspect.cleandoc(cls.__doc__)}\n\n{section_of(options)}"
    found: type[T] = made
    return found


def described_options(cls: Any) -> dict[str, str]:
    """Type, default and meaning of each option that a declared class takes."""
    found = {}
    for field in dataclasses.fields(cls):
        option = declaration(field.type)
        if isinstance(option, Option):
            kind = re.sub(r"[\w.]+\.(\w+)", r"\1", inspect.formatannotation(plain_type(field.type)))
            found[field.name] = f"({kind}, default {field.default!r}): {option.says}"
    return found


def check_rules(declared: Any) -> None:
    """Refuse parameters that break their rules; raises ValueError."""
    for field in dataclasses.fields(declared):
        value, found = getattr(declared, field.name), declaration(field.type)
        rule = found.rule if isinstance(found, Option) else found
        if rule is not None and value is not field.default:
            rule.check(field.name, value)


def declaration(hint: Any) -> Any:
    """What an annotation adds to a type: a rule or an ``Option``; None for a plain type."""
    return get_args(hint)[1] if get_origin(hint) is Annotated else None


def plain_type(hint: Any) -> Any:
    """A type without what an annotation adds to it."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def section_of(described: Mapping[str, str]) -> str:
    """Options as a section of a docstring."""
    lines = ["Options:"]
    for name, text in described.items():
        lines += textwrap.wrap(
            f"{name} {text}", 110, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False
        )
    return "\n".join(lines)


def check_integer(name: str, value: Any, least: int, most: int = LARGEST) -> None:
    """Refuse what is not a whole number from ``least`` to ``most``."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if whole and value > most:  # it may have more digits than Python prints
        raise ValueError(f"{name} must be a whole number of at most {most}, got a larger one")
    if not whole or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a positive finite number."""
    if isinstance(value, int) and value > sys.float_info.max:  # it may have more digits than Python prints
        raise ValueError(f"{name} must be a positive number of at most {sys.float_info.max}, got a larger one")
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < np.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse what is not one of the allowed values."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")
