"""A mechanism that the package does not know, as a newcomer would add it."""

from dataclasses import dataclass
from fractions import Fraction

from countveil.privacy.exact import from_text
from countveil.privacy.mechanisms import Mechanism


@dataclass(frozen=True)
class Divided(Mechanism):
    divisor: Fraction

    name = "division"
    version = 7
    title = "division by a number"

    def parameters(self):
        return {"divisor": str(self.divisor)}

    @classmethod
    def of_parameters(cls, parameters):
        if set(parameters) != {"divisor"}:
            raise ValueError("parameters must be a divisor, got others")
        return cls(from_text("divisor", parameters["divisor"]))

    def describe(self):
        return f"Divided by {self.divisor}."
