"""Suppression of small counts, top-coding of large ones, and counts that are given as ranges."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from countveil.privacy.exact import from_text
from countveil.privacy.mechanisms.base import NO_DIFFERENTIAL_PRIVACY, Elsewhere, check_names, whole


@dataclass(frozen=True, repr=False)
class Suppression(Elsewhere):
    """Small counts are hidden, all others shown.

        report = count if count >= below, or if count = 0 and zeros are shown; absent otherwise

    ``below=None`` is a bound that the publisher does not state. ``Reports`` and imports replace it by the least
    positive count that they show. If all cells have one bound and many small counts are shown, this is the bound. It
    is wrong for counts that were hidden for other reasons than being small, as to protect another cell of their row.

    Raises TypeError if ``below`` is not a number or ``shows_zero`` not a boolean, ValueError unless ``below`` is None
    or a whole number of at least 2, or 1 where zeros are hidden too.
    """

    below: int | None
    shows_zero: bool = True

    name: ClassVar[str] = "suppression"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "small counts hidden"

    def __post_init__(self) -> None:
        if not isinstance(self.shows_zero, bool):
            raise TypeError(f"shows_zero must be True or False, got {self.shows_zero!r:.40}")
        if self.below is not None:
            object.__setattr__(self, "below", whole("below", self.below, 1 + self.shows_zero))

    @property
    def absent(self) -> bool:
        """True: a hidden count."""
        return True

    def parameters(self) -> dict[str, Any]:
        """``below`` in text, and ``shows_zero``; ValueError without a bound."""
        if self.below is None:
            raise ValueError(f"mechanism must have a bound in files, got {self!r}: state it, as in Suppression(10)")
        return {"below": str(self.below), "shows_zero": self.shows_zero}

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The mechanism of both; ValueError or TypeError for anything else."""
        check_names(parameters, ("below", "shows_zero"))
        return cls(from_text("below", parameters["below"]), parameters["shows_zero"])  # type: ignore[arg-type]

    @property
    def rule(self) -> str:
        """What it does, as in "values ..."."""
        return f"of {self._range} hidden"

    @property
    def in_words(self) -> str:
        """Which counts are suppressed."""
        return f"suppression of {self._range}"

    def describe(self) -> str:
        """What was done to a count, and that this is not differential privacy."""
        return (
            f"Counts of {self._range} are hidden; all others are shown as they are and not protected. "
            f"{NO_DIFFERENTIAL_PRIVACY} Totals of rows or columns may give hidden counts away."
        )

    @property
    def _range(self) -> str:
        least = int(self.shows_zero)
        if self.below is None:
            return f"{least} up to an unstated bound"
        return f"{least} to {self.below - 1}" if self.below - 1 > least else f"{least}"

    def __repr__(self) -> str:
        return f"Suppression({self.below}, shows_zero={self.shows_zero})"


@dataclass(frozen=True, repr=False)
class Interval(Elsewhere):
    """A count without a report lies in a stated range; any report is the count itself.

        lower <= count <= upper where there is no report,   report = count elsewhere

    ``upper=None`` is no upper bound. The range is a fact about the cell, and nothing is said of how it was chosen: a
    count in the range may have been shown. So simulated reports, which leave out every count in the range, are no
    check of it. For tables with bands such as "10-50", every cell has the mechanism of its band; ``Reports.between``
    takes arrays of bounds. A rule for all cells is ``Suppression`` or ``TopCoding``.

    Raises TypeError if a bound is not a number, ValueError unless both are whole numbers from 0 with lower <= upper.
    """

    lower: int
    upper: int | None = None

    name: ClassVar[str] = "interval"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "ranges in place of counts"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", whole("lower", self.lower, 0))
        if self.upper is not None:
            object.__setattr__(self, "upper", whole("upper", self.upper, self.lower))

    @property
    def absent(self) -> bool:
        """True: a count that is given as a range."""
        return True

    def parameters(self) -> dict[str, Any]:
        """Both bounds in text, None where there is no upper one."""
        return {"lower": str(self.lower), "upper": None if self.upper is None else str(self.upper)}

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The mechanism of both; ValueError for anything else."""
        check_names(parameters, ("lower", "upper"))
        upper = parameters["upper"]
        return cls(
            from_text("lower", parameters["lower"]),  # type: ignore[arg-type]
            None if upper is None else from_text("upper", upper),  # type: ignore[arg-type]
        )

    def describe(self) -> str:
        """What is known of a count, and that this is not differential privacy."""
        return (
            f"A count without a report is {self.range_in_words}; a report is the count itself, and not protected. "
            f"{NO_DIFFERENTIAL_PRIVACY} Totals of rows or columns may give more away."
        )

    @property
    def in_words(self) -> str:
        """The range of counts without a report."""
        return f"ranges of {self.range_in_words}"

    @property
    def range_in_words(self) -> str:
        """As in "1 to 9"."""
        if self.upper is None:
            return f"{self.lower} or more"
        return f"{self.lower} to {self.upper}" if self.upper > self.lower else f"{self.lower}"

    def __repr__(self) -> str:
        return f"Interval({self.lower}, {self.upper})"


def describe_ranges(intervals: Sequence[Interval]) -> str:
    """``Interval.describe`` of cells with different ranges."""
    ordered = sorted(intervals, key=lambda each: (each.lower, math.inf if each.upper is None else each.upper))
    return (
        f"A count without a report lies in the range of its cell; there are {len(ordered):,} different ranges, from "
        f"{ordered[0].range_in_words} up to {ordered[-1].range_in_words}. A report is the count itself, and not "
        f"protected. {NO_DIFFERENTIAL_PRIVACY} Totals of rows or columns may give more away."
    )


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

    @property
    def rule(self) -> str:
        """What it does, as in "values ..."."""
        return f"above {self.above} shown as {self.above}"

    @property
    def in_words(self) -> str:
        """The bound."""
        return f"top-coding at {self.above}"

    def describe(self) -> str:
        """What was done to a count, and that this is not differential privacy."""
        return (
            f"Counts above {self.above} are shown as {self.above}, which means {self.above} or more; all others are "
            f"shown as they are and not protected. {NO_DIFFERENTIAL_PRIVACY}"
        )
