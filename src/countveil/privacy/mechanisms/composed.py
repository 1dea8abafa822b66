"""Several rules that were applied to a count one after another."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from countveil.privacy._text import listed
from countveil.privacy.mechanisms.base import (
    NO_DIFFERENTIAL_PRIVACY,
    Elsewhere,
    Mechanism,
    check_names,
    from_json,
    names_in,
)
from countveil.privacy.mechanisms.hiding import Suppression, TopCoding
from countveil.privacy.mechanisms.rounding import RandomRounding, Rounding

STEPS = (Suppression, Rounding, RandomRounding, TopCoding)
"""What can be a step."""
MOST_STEPS = 4
LARGEST = 100_000
"""Of a base, or of hidden counts: kernels of such rules are tables."""


@dataclass(frozen=True, repr=False, init=False)
class Composed(Elsewhere):
    """Rounding, random rounding, suppression and top-coding, in the order in which they were applied.

        P(report | count) = sum over z of P(report | z by the last rule) P(z | count by the rules before)

    ``Composed(Suppression(8), Rounding(5))`` hides counts of 1 to 7 and rounds all others to multiples of 5: a report
    of 10 is 8 to 12. ``Composed(Rounding(5), Suppression(8))`` hides what was rounded to 5, so 3 to 7. What one rule
    hides stays hidden.

    Raises TypeError for steps that are none of these, ValueError unless there are two to four, with bases and hidden
    counts of at most 100,000.
    """

    steps: tuple[Mechanism, ...]

    name: ClassVar[str] = "composed"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "several rules one after another"

    def __init__(self, *steps: Mechanism) -> None:
        names = [kind.__name__ for kind in STEPS]
        for each in steps:
            if not isinstance(each, STEPS):
                raise TypeError(f"steps must be {listed(names, 'or')}, got {type(each).__name__}")
            if isinstance(each, Suppression) and each.below is None:
                raise ValueError(f"steps must state what they hide, got {each.in_words}: state below (--below)")
            if (size := getattr(each, "base", 0) or getattr(each, "below", 0)) > LARGEST:
                raise ValueError(f"steps must have a base and hidden counts of at most {LARGEST:,}, got {size:,}")
        if not 2 <= len(steps) <= MOST_STEPS:
            raise ValueError(f"steps must be 2 to {MOST_STEPS}, got {len(steps)}")
        object.__setattr__(self, "steps", steps)

    @property
    def absent(self) -> bool:
        """Whether a step hides counts."""
        return any(isinstance(each, Suppression) for each in self.steps)

    def parameters(self) -> dict[str, Any]:
        """The JSON forms of all steps, in their order."""
        return {"steps": [each.to_json() for each in self.steps]}

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The mechanism of these steps; ValueError or TypeError for anything else."""
        check_names(parameters, ("steps",))
        steps = parameters["steps"]
        if not isinstance(steps, list) or not 2 <= len(steps) <= MOST_STEPS:
            raise ValueError(f"steps must be a list of 2 to {MOST_STEPS}, got {type(steps).__name__}")
        names = [kind.name for kind in STEPS]
        for each in steps:  # before any is read: steps of steps could be of any depth
            if not isinstance(each, dict) or each.get("name") not in names:
                raise ValueError(f"steps must be {listed(names, 'or')}, got {names_in(each)}")
        return cls(*map(from_json, steps))

    @property
    def in_words(self) -> str:
        """All steps in their order."""
        return " then ".join(each.in_words for each in self.steps)

    def describe(self) -> str:
        """What was done to a count, in order, and that this is not differential privacy."""
        rules = "; ".join(f"{i}. values {each.rule}" for i, each in enumerate(self.steps, start=1))  # type: ignore[attr-defined]
        hidden = " Totals of rows or columns may give hidden counts away." if self.absent else ""
        return f"Counts were treated in this order: {rules}. {NO_DIFFERENTIAL_PRIVACY}{hidden}"

    def __repr__(self) -> str:
        return f"Composed({', '.join(map(repr, self.steps))})"
