"""What mechanisms of other publishers have in common: analysts state them, and releases only some of them."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

from countveil.privacy.exact import Exact, exact, from_text, positive, short
from countveil.privacy.mechanisms.base import Mechanism, names_in

SMALLEST, LARGEST = Fraction(1, 10**100), Fraction(10**100)
"""Scales of noise lie between these, so that they are floats as well."""

NO_DIFFERENTIAL_PRIVACY = (
    "This is not differential privacy: there is no bound on what can be inferred about a count."
)


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
        values = (getattr(self, name) for name in self._exact)
        stated = ", ".join(short(v) if isinstance(v, Fraction) else repr(v) for v in values)
        return f"{type(self).__name__}({stated})"


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
        raise ValueError(
            f"{name} must be a whole number of at least {least} and below 2**53, got {short(found)}"
        )
    return int(found)


def check_names(parameters: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Raises ValueError unless the parameters have these names."""
    if set(parameters) != set(names):
        raise ValueError(f"parameters must be {' and '.join(names)}, got {names_in(parameters)}")
