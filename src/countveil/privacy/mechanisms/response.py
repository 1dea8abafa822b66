"""Randomised response: an answer of yes or no, or an edge of a network, that was flipped by chance."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from countveil.privacy.exact import Exact, positive, rounded_up, short
from countveil.privacy.mechanisms.base import Elsewhere


@dataclass(frozen=True, repr=False)
class RandomisedResponse(Elsewhere):
    """A yes (1) or no (0) that was flipped with a stated probability, as edges of a network are.

        P(report = 1 | count >= 1) = P(report = 0 | count = 0) = 1 - probability

    The answer is yes if the count is 1 or more: a network that has edges only hides how often two actors met, and the
    probability of an edge is 1 - exp(-rate). ``keeping(epsilon)`` has the probability 1 / (1 + e^epsilon). Raises
    TypeError if ``probability`` is not a number, ValueError unless it lies between 0 and 1/2. Source: Warner (1965).
    """

    probability: Fraction

    name: ClassVar[str] = "randomised response"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "randomised response"
    _exact: ClassVar[tuple[str, ...]] = ("probability",)

    def __post_init__(self) -> None:
        found = positive("probability", self.probability)
        if not Fraction(1, 10**15) <= found < Fraction(1, 2):
            raise ValueError(f"probability must be at least 1e-15 and below 1/2, got {short(found)}")
        object.__setattr__(self, "probability", found)

    @classmethod
    def keeping(cls, epsilon: Exact) -> Self:
        """The flips that promise epsilon for one count: the probability is the float nearest to 1 / (1 + e^epsilon)."""
        loss = float(positive("epsilon", epsilon))
        return cls(Fraction(math.exp(-loss) / (1.0 + math.exp(-loss))))

    @property
    def epsilon(self) -> float:
        """log((1 - probability) / probability)."""
        return math.log(1 / self.probability - 1)

    def describe(self) -> str:
        """What was done to a count, and what that protects."""
        ratio = rounded_up((1 - self.probability) / self.probability)
        return (
            f"Whether the count is above 0, a yes or no, was flipped with probability {short(self.probability)}. No "
            f"conclusion drawn from one report becomes more than {ratio} times as likely under a yes as under a no "
            f"(epsilon is {rounded_up(self.epsilon)}), and epsilon adds up over the answers of a person."
        )
