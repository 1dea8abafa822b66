"""What every mechanism has, the table of those that files can state, and how they are read."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

MOST_DIGITS = 100
"""Of the numbers of a promise that a release states: a float such as 1e-12 is a fraction of 28."""


class Mechanism(ABC):
    """A way of turning counts into reports, as a frozen, hashable value that files can state.

    ``name`` and ``version`` identify the law in files: a changed law gets a new version. ``title`` completes
    "counts with ...". ``unbiased`` says that a report's mean is the count; ``lossless_at_zero`` that
    max(0, report) tells a Poisson model as much as the report does; ``signed_only`` that releases never cut its reports
    at zero.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    title: ClassVar[str]
    unbiased: ClassVar[bool] = False
    lossless_at_zero: ClassVar[bool] = False
    signed_only: ClassVar[bool] = False

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The exact parameters as plain JSON values, in the one spelling that they have."""

    @classmethod
    @abstractmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The mechanism whose ``parameters()`` these are; ValueError or TypeError for anything else."""

    @abstractmethod
    def describe(self) -> str:
        """What it does to a count and what that protects, in plain sentences."""

    def check_released(self) -> None:
        """Raises ValueError if no release may state this mechanism; here, every release may."""
        return

    def to_json(self) -> dict[str, Any]:
        """Name, version and parameters, as files state them; ``from_json`` reads them back."""
        return {"name": self.name, "version": self.version, "parameters": self.parameters()}


MECHANISMS: dict[str, type[Mechanism]] = {}
"""Every mechanism that files can state, by its name there; the package fills it."""


def from_json(value: Any) -> Mechanism:
    """The mechanism that ``to_json`` gave; ValueError for another name, version, parameter or spelling."""
    if not isinstance(value, dict) or set(value) != {"name", "version", "parameters"}:
        raise ValueError(f"mechanism must have a name, a version and parameters, got {names_in(value)}")
    name, version, parameters = value["name"], value["version"], value["parameters"]
    if not isinstance(name, str) or name not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {', '.join(map(repr, MECHANISMS))}, got {shown(name)}")
    kind = MECHANISMS[name]
    if type(version) is not int or version != kind.version:
        raise ValueError(f"mechanism {name!r} must have version {kind.version}, got {shown(version)}")
    if not isinstance(parameters, dict):
        raise ValueError(f"mechanism {name!r} must have named parameters, got {names_in(parameters)}")
    try:
        found = kind.of_parameters(parameters)
    except (TypeError, ValueError) as error:
        raise ValueError(f"mechanism {name!r}: {error}") from None
    if json.dumps(found.parameters(), sort_keys=True) != json.dumps(parameters, sort_keys=True):
        raise ValueError(f"mechanism {name!r} must have its parameters in their one spelling, got another")
    return found


def shown(value: Any) -> str:
    """A value from a file for a message: short, in ASCII, with nothing that moves a cursor."""
    return ascii(value)[:40]


def names_in(value: Any) -> str:
    """What an object in a file holds, or what stands in its place, for a message."""
    return shown(sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__)
