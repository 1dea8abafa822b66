"""Any mechanism with finitely many counts and reports, as a table of probabilities."""

import math
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from countveil.privacy._text import first_wrong, shown
from countveil.privacy.exact import exact, from_text, rounded_up, short
from countveil.privacy.mechanisms.base import Elsewhere, check_names

MOST_NUMBERS = 1_000_000
NONE = Fraction(0)  # most of a large table
SMALLEST = Fraction(1, 10**300)  # probabilities that are not 0 are floats with all their digits
MOST_DIGITS = 400  # of a numerator or a denominator: a float of at least 1e-300 has 316 at most
TOLERANCE = 1e-9


@dataclass(frozen=True, repr=False)
class Table(Elsewhere):
    """Reports by a table: cell-key perturbation, randomised response, or any other.

        P(report = r | count = y) = probabilities[y][r],   y = 0, ..., Y,   r = 0, ..., R

    A count beyond the last row does not occur: extend the table to where counts end. Raises TypeError if the table is
    not made of rows of numbers; ValueError if rows have different lengths, a number is negative, or above 0 and below
    1e-300 or a fraction of more than 400 digits, or a row does not sum to 1 within 1e-9.
    """

    probabilities: tuple[tuple[Fraction, ...], ...]

    name: ClassVar[str] = "table"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "a table of probabilities"

    def __post_init__(self) -> None:
        given: Any = self.probabilities
        if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
            raise TypeError(f"probabilities must be rows of numbers, got {type(given).__name__}")
        if hasattr(given, "to_numpy"):  # data frames are made of columns
            raise TypeError(
                f"probabilities must be rows of numbers, got {type(given).__name__}: take its .to_numpy(), counts 0, "
                "1, ... along the rows and reports 0, 1, ... along the columns"
            )
        given = tuple(given)
        _check_size(given)
        rows = tuple(_row(y, row) for y, row in enumerate(given))
        _check_size(rows)
        rule = "probabilities must have at least one row, and rows of one length"
        if not rows:
            raise ValueError(f"{rule}, got none")
        if wrong := next((y for y, row in enumerate(rows) if len(row) != len(rows[0])), 0):
            raise ValueError(f"{rule}, got {len(rows[0])} numbers in row 0 and {len(rows[wrong])} in row {wrong}")
        object.__setattr__(self, "probabilities", rows)

    def parameters(self) -> dict[str, Any]:
        """The rows, numbers as reduced fractions in text."""
        return {"probabilities": [[str(p) for p in row] for row in self.probabilities]}

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The table of these rows; ValueError or TypeError for anything else."""
        check_names(parameters, ("probabilities",))
        rows = parameters["probabilities"]
        if not isinstance(rows, list):
            raise ValueError(f"probabilities must be a list of lists, got {shown(rows)}")
        if wrong := first_wrong(rows, lambda row: isinstance(row, list)):
            raise ValueError(f"probabilities must be a list of lists, got {wrong}")
        _check_size(rows)
        longest = max((len(p) for row in rows for p in row if isinstance(p, str)), default=0)
        if longest > 2 * MOST_DIGITS + 1:
            raise ValueError(
                f"probabilities must be fractions of at most {MOST_DIGITS} digits, got {longest} characters"
            )
        return cls(tuple(tuple(from_text("probabilities", p) for p in row) for row in rows))

    @property
    def in_words(self) -> str:
        """The size of the table."""
        return f"{self.title} ({len(self.probabilities)} x {len(self.probabilities[0])})"

    def describe(self) -> str:
        """The size of the table, and what its largest ratio in a column says about protection."""
        rows = self.probabilities
        columns = list(zip(*rows, strict=True))
        size = f"Counts up to {len(rows) - 1} were turned into reports up to {len(columns) - 1} by a table."
        if any(0 in column and any(column) for column in columns):
            return f"{size} Some reports rule some counts out: this is not differential privacy."
        ratio = max((max(column) / min(column) for column in columns if any(column)), default=Fraction(1))
        likely = f"more than {rounded_up(ratio)} times as likely under one count as under another"
        return f"{size} No conclusion becomes {likely}."

    def __repr__(self) -> str:
        return f"Table(<{len(self.probabilities)} x {len(self.probabilities[0])}>)"


def _check_size(rows: Iterable[Any]) -> None:
    """Refuse more numbers than a table may hold, before any is converted; rows without a length are not counted."""
    numbers = sum(len(row) for row in rows if isinstance(row, Sized))
    if numbers > MOST_NUMBERS:
        raise ValueError(f"probabilities must hold at most {MOST_NUMBERS} numbers, got {numbers}")


def _row(y: int, row: Any) -> tuple[Fraction, ...]:
    if not isinstance(row, Iterable) or isinstance(row, str | Mapping):
        raise TypeError(f"probabilities must be rows of numbers, got {type(row).__name__} in row {y}")
    numbers = tuple(NONE if isinstance(p, float) and p == 0 else exact("probabilities", p) for p in row)
    others = [p for p in numbers if p is not NONE]
    if any(p < 0 for p in others):
        raise ValueError(f"probabilities must not be negative, got {short(min(others))} in row {y}")
    if any(0 < p < SMALLEST for p in others):
        least = min(p for p in others if p)
        raise ValueError(f"probabilities must be 0 or at least 1e-300, got {short(least)} in row {y}")
    longest = max((max(abs(p.numerator), p.denominator) for p in others), default=0)
    if longest >= 10**MOST_DIGITS:
        raise ValueError(
            f"probabilities must be fractions of at most {MOST_DIGITS} digits, got more in row {y}: give floats instead"
        )
    total = math.fsum(float(p) for p in others)  # an exact sum grows by the digits of every denominator
    if abs(total - 1.0) > TOLERANCE:
        raise ValueError(f"probabilities must sum to 1 in every row, got {total:.6g} in row {y}")
    return numbers
