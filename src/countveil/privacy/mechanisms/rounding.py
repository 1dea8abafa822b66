"""Rounding to multiples, at random or to the nearest."""

from dataclasses import dataclass
from typing import ClassVar

from countveil.privacy.mechanisms.elsewhere import NO_DIFFERENTIAL_PRIVACY, Elsewhere, whole


class _ToMultiples(Elsewhere):
    """What both have in common."""

    base: int
    _exact: ClassVar[tuple[str, ...]] = ("base",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", whole("base", self.base, 2))


@dataclass(frozen=True, repr=False)
class RandomRounding(_ToMultiples):
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

    def check_released(self) -> None:
        """``round_randomly`` draws it, and says that it is no differential privacy."""
        return

    def describe(self) -> str:
        """What was done to a count, and that this is no differential privacy."""
        return (
            f"The count was rounded up or down to a multiple of {self.base} at random, so that the mean of its report "
            f"is the count; multiples stayed as they were. A report shows that the count is less than {self.base} "
            f"away. {NO_DIFFERENTIAL_PRIVACY}"
        )


@dataclass(frozen=True, repr=False)
class Rounding(_ToMultiples):
    """Rounding to the nearest multiple, halves upwards.

        report = base floor(count / base + 1/2)

    Raises TypeError if ``base`` is not a number, ValueError unless it is a whole number of at least 2.
    """

    base: int

    name: ClassVar[str] = "rounding"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "rounding to multiples"

    def describe(self) -> str:
        """What was done to a count, and that this is no differential privacy."""
        return (
            f"The count was rounded to the nearest multiple of {self.base}, halves upwards. A report shows that the "
            f"count is at most {self.base // 2} away. {NO_DIFFERENTIAL_PRIVACY}"
        )
