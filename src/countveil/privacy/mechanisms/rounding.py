"""Rounding to multiples, at random or by a fixed rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from countveil.privacy._text import shown
from countveil.privacy.exact import from_text
from countveil.privacy.mechanisms.base import NO_DIFFERENTIAL_PRIVACY, Elsewhere, check_names, whole


@dataclass(frozen=True, repr=False)
class RandomRounding(Elsewhere):
    """Unbiased random rounding.

        report = base floor(count / base), plus base with probability (count mod base) / base

    Multiples of the base stay as they are. Raises TypeError if ``base`` is not a number, ValueError unless it is a
    whole number of at least 2. Source: Nargundkar and Saveland (1972).
    """

    base: int

    name: ClassVar[str] = "random rounding"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "random rounding"
    unbiased: ClassVar[bool] = True
    _exact: ClassVar[tuple[str, ...]] = ("base",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", whole("base", self.base, 2))

    def check_released(self) -> None:
        """``round_randomly`` draws it, and says that it is not differential privacy."""
        return

    @property
    def rule(self) -> str:
        """What it does, as in "values ..."."""
        return f"rounded up or down to a multiple of {self.base} at random"

    def describe(self) -> str:
        """What was done to a count, and that this is not differential privacy."""
        return (
            f"The count was {self.rule}, so that the mean of its report is the count; multiples stayed as they were. "
            f"A report shows that the count is less than {self.base} away. {NO_DIFFERENTIAL_PRIVACY}"
        )


@dataclass(frozen=True, repr=False)
class Rounding(Elsewhere):
    """Rounding by a fixed rule.

        report = base floor(count / base + 1/2)                      to="nearest", halves upwards
        report = base times the whole number next to count / base    to="even", halves to the even one
        report = base floor(count / base)                            to="down"
        report = base ceil(count / base)                             to="up"
        report = base ceil(count / base) - floor(base / 2)           to="midpoint", and 0 stays 0

    R, NumPy and Python round to even. ``Rounding(6, "midpoint")`` makes 1 to 6 a 3, and 7 to 12 a 9. Raises TypeError
    if ``base`` is not a number, ValueError unless it is a whole number of at least 2 and ``to`` one of these words.
    Source of midpoints: OpenSAFELY, https://docs.opensafely.org/releasing-files/
    """

    base: int
    to: str = "nearest"

    name: ClassVar[str] = "rounding"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "rounding to multiples"

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", whole("base", self.base, 2))
        if not isinstance(self.to, str) or self.to not in WAYS:
            raise ValueError(f"to must be one of {', '.join(WAYS)}, got {shown(self.to)}")

    def parameters(self) -> dict[str, Any]:
        """``base`` in text, and ``to`` unless it is "nearest"."""
        return {"base": str(self.base)} | ({} if self.to == "nearest" else {"to": self.to})

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The mechanism of both; ValueError for anything else."""
        check_names(parameters, ("base", "to") if "to" in parameters else ("base",))
        return cls(from_text("base", parameters["base"]), parameters.get("to", "nearest"))  # type: ignore[arg-type]

    @property
    def rule(self) -> str:
        """What it does, as in "values ..."."""
        return WAYS[self.to].format(base=self.base, middle=self.base // 2)

    @property
    def in_words(self) -> str:
        """The base, and the way unless it is to the nearest multiple."""
        return f"{self.title} of {self.base}" + ("" if self.to == "nearest" else f" ({self.to})")

    def describe(self) -> str:
        """What was done to a count, and that this is not differential privacy."""
        away = self.base - 1 if self.to in ("up", "down") else self.base // 2
        return (
            f"The count was {self.rule}. A report shows that the count is at most {away} away. "
            f"{NO_DIFFERENTIAL_PRIVACY}"
        )

    def __repr__(self) -> str:
        return f"Rounding({self.base})" if self.to == "nearest" else f"Rounding({self.base}, {self.to!r})"


WAYS = {
    "nearest": "rounded to the nearest multiple of {base}, halves upwards",
    "even": "rounded to the nearest multiple of {base}, halves to the even multiple",
    "down": "rounded down to a multiple of {base}",
    "up": "rounded up to a multiple of {base}",
    "midpoint": "rounded up to a multiple of {base} and lowered by {middle}, except 0, which stays 0",
}
"""How fixed rounding goes, in words."""
