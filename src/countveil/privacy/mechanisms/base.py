"""What every mechanism has, also those of other publishers, the table of those in files, and how they are read."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

from countveil.privacy._text import shown
from countveil.privacy.exact import Exact, exact, from_text, positive, short

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

    @property
    def in_words(self) -> str:
        """What it is with its numbers, as in "totals with random rounding (base 3)"."""
        return self.title

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
    spelt = found.parameters()
    for key in sorted({*spelt, *parameters}):
        if json.dumps(spelt.get(key), sort_keys=True) != json.dumps(parameters.get(key), sort_keys=True):
            raise ValueError(
                f"mechanism {name!r} must have {key} in its one spelling, {shown(spelt.get(key))}, "
                f"got {shown(parameters.get(key))}"
            )
    return found


def names_in(value: Any) -> str:
    """What an object in a file holds, or what stands in its place, for a message."""
    return shown(sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__)


SMALLEST, LARGEST = Fraction(1, 10**100), Fraction(10**100)
"""Scales of noise lie between these, so that they are floats as well."""

NO_DIFFERENTIAL_PRIVACY = "This is not differential privacy: there is no bound on what can be inferred about a count."


class Elsewhere(Mechanism):
    """A mechanism that is applied elsewhere: its counts are read, and nobody can release counts with it here.

    The owner's side draws two of them too, ``DiscreteGaussian`` with a stated rho and ``RandomRounding``, which say
    so in ``check_released``.

    ``real`` says that reports are real numbers, not whole ones; ``absent`` that a count may have no report, which
    then says something about it and is NaN or None among reports.
    """

    real: ClassVar[bool] = False
    _exact: ClassVar[tuple[str, ...]] = ()  # the names of parameters that are numbers

    @property
    def absent(self) -> bool:
        """Whether a count may be without a report because of what it is."""
        return False

    @property
    def in_words(self) -> str:
        """The title and the numbers."""
        return f"{self.title} ({', '.join(map(' '.join, self._stated().items()))})"

    def parameters(self) -> dict[str, Any]:
        """The numbers as reduced fractions in text."""
        return {name: str(getattr(self, name)) for name in self._exact}

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The mechanism of these numbers; ValueError for other names, spellings or ranges."""
        check_names(parameters, cls._exact)
        return cls(**{name: from_text(name, text) for name, text in parameters.items()})

    def check_released(self) -> None:
        """Raises ValueError: only what the owner's side draws can be in a release."""
        raise ValueError(f"mechanism must be one that the owner's side draws, got {self.name!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._stated().values())})"

    def _stated(self) -> dict[str, str]:
        """The numbers as briefly as they can be written, by name."""
        return {name: short(Fraction(getattr(self, name))) for name in self._exact}


class AddedNoise(Elsewhere):
    """Noise that is added to a count and whose law does not depend on it."""

    unbiased: ClassVar[bool] = True

    @property
    def standard_deviation(self) -> float:
        """Of the noise."""
        raise NotImplementedError

    def _strength(self) -> str:
        kind = "a real number" if self.real else "a whole number, negative ones included"
        spread = f"standard deviation {self.standard_deviation:.3g}"
        return f"Noise with {spread} was added to the count; the report is {kind}."


def scale(name: str, value: Exact) -> Fraction:
    """A positive number in a range of floats; TypeError or ValueError otherwise."""
    found = positive(name, value)
    if not SMALLEST <= found <= LARGEST:
        raise ValueError(f"{name} must lie between 1e-100 and 1e100, got {short(found)}")
    return found


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``; TypeError or ValueError otherwise."""
    found = exact(name, value)
    if found.denominator != 1 or not least <= found < 2**53:
        raise ValueError(f"{name} must be a whole number of at least {least} and below 2**53, got {short(found)}")
    return int(found)


def check_names(parameters: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Raises ValueError unless the parameters have these names."""
    if set(parameters) != set(names):
        raise ValueError(f"parameters must be {' and '.join(names)}, got {names_in(parameters)}")
