"""Suppression of small counts, and top-coding of large ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from countveil.privacy.exact import from_text
from countveil.privacy.mechanisms.elsewhere import NO_DIFFERENTIAL_PRIVACY, Elsewhere, check_names, whole


@dataclass(frozen=True, repr=False)
class Suppression(Elsewhere):
    """Small counts are hidden, all others shown.

        report = count if count >= below, or if count = 0 and zeros are shown; absent otherwise

    Raises TypeError if ``below`` is not a number or ``shows_zero`` not a boolean, ValueError unless ``below`` is a
    whole number of at least 2, or 1 where zeros are hidden too.
    """

    below: int
    shows_zero: bool = True

    name: ClassVar[str] = "suppression"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "small counts hidden"

    def __post_init__(self) -> None:
        if not isinstance(self.shows_zero, bool):
            raise TypeError(f"shows_zero must be True or False, got {self.shows_zero!r:.40}")
        object.__setattr__(self, "below", whole("below", self.below, 1 + self.shows_zero))

    @property
    def absent(self) -> bool:
        """True: a hidden count."""
        return True

    def parameters(self) -> dict[str, Any]:
        """``below`` in text, and ``shows_zero``."""
        return {"below": str(self.below), "shows_zero": self.shows_zero}

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The mechanism of both; ValueError or TypeError for anything else."""
        check_names(parameters, ("below", "shows_zero"))
        return cls(from_text("below", parameters["below"]), parameters["shows_zero"])  # type: ignore[arg-type]

    def describe(self) -> str:
        """What was done to a count, and that this is no differential privacy."""
        least = int(self.shows_zero)
        hidden = f"Counts of {least} to {self.below - 1}" if self.below - 1 > least else f"Counts of {least}"
        return (
            f"{hidden} are hidden; all others are shown as they are and not protected. "
            f"{NO_DIFFERENTIAL_PRIVACY} Totals of rows or columns may give hidden counts away."
        )

    def __repr__(self) -> str:
        return f"Suppression({self.below}, shows_zero={self.shows_zero})"


@dataclass(frozen=True, repr=False)
class TopCoding(Elsewhere):
    """Large counts are shown as a bound.

        report = min(count, above)

    A report of ``above`` means this many or more. Raises TypeError if ``above`` is not a number, ValueError unless it
    is a whole number of at least 1.
    """

    above: int

    name: ClassVar[str] = "top-coding"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "large counts cut off"
    _exact: ClassVar[tuple[str, ...]] = ("above",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "above", whole("above", self.above, 1))

    def describe(self) -> str:
        """What was done to a count, and that this is no differential privacy."""
        return (
            f"Counts above {self.above} are shown as {self.above}, which means {self.above} or more; all others are "
            f"shown as they are and not protected. {NO_DIFFERENTIAL_PRIVACY}"
        )
