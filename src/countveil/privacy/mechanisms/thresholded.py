"""Noisy values that are published only if they are large."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from countveil.privacy.exact import exact, from_text, short
from countveil.privacy.mechanisms.base import AddedNoise, Elsewhere, Mechanism, check_names, from_json
from countveil.privacy.mechanisms.two_sided_geometric import TwoSidedGeometric


@dataclass(frozen=True, repr=False)
class Thresholded(Elsewhere):
    """Noise was added to every count, and only values above a threshold were published.

        report = count + tau if count + tau > above, absent otherwise,   tau by ``mechanism``

    ``mechanism`` adds noise: TwoSidedGeometric, DiscreteGaussian, Gaussian, Laplace or Skellam. A value equal to
    ``above`` is absent. Raises TypeError if ``above`` is not a number or ``mechanism`` adds no noise, ValueError if
    ``above`` is not below 2**53 in size, or no whole number although noisy values are.
    """

    mechanism: Mechanism
    above: Fraction

    name: ClassVar[str] = "thresholded noise"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "noise, and only large values published"

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, AddedNoise | TwoSidedGeometric):
            kind = self.mechanism.name if isinstance(self.mechanism, Mechanism) else type(self.mechanism).__name__
            raise TypeError(f"mechanism must add noise, as Laplace does, got {kind!r:.40}")
        object.__setattr__(self, "above", exact("above", self.above))
        if abs(self.above) >= 2**53:
            raise ValueError(f"above must be below 2**53 in size, as reports are, got {short(self.above)}")
        if not self.real and self.above.denominator != 1:
            raise ValueError(f"above must be a whole number, as noisy values are, got {short(self.above)}")

    @property
    def real(self) -> bool:  # type: ignore[override]
        """Whether published values are real numbers."""
        return isinstance(self.mechanism, AddedNoise) and self.mechanism.real

    @property
    def absent(self) -> bool:
        """True: a noisy value that is not published."""
        return True

    def parameters(self) -> dict[str, Any]:
        """``above`` in text, and the JSON form of the noise."""
        return {"above": str(self.above), "mechanism": self.mechanism.to_json()}

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The mechanism of both; ValueError or TypeError for anything else."""
        check_names(parameters, ("above", "mechanism"))
        inner = parameters["mechanism"]
        if isinstance(inner, dict) and inner.get("name") == cls.name:
            raise ValueError(f"mechanism must add noise, got {cls.name!r}")
        return cls(from_json(inner), _signed(parameters["above"]))

    @property
    def in_words(self) -> str:
        """The noise and the threshold."""
        return f"{self.mechanism.in_words}, published above {short(self.above)}"

    def describe(self) -> str:
        """What was published, and what the noise protects."""
        return (
            f"Noise was added to every count, and only values above {short(self.above)} were published; where there is "
            f"none, the noisy value was {short(self.above)} or less. The threshold protects nothing by itself, and "
            f"what is absent is protected as what is published. {self.mechanism.describe()}"
        )

    def __repr__(self) -> str:
        return f"Thresholded({self.mechanism!r}, {short(self.above)})"


def _signed(text: Any) -> Fraction:
    """A number in text that may be negative; ValueError for any other spelling."""
    if isinstance(text, str) and text.startswith("-") and text != "-0":
        return -from_text("above", text[1:])
    return from_text("above", text)
