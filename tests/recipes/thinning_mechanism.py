"""The owner's side of ``thinning``: how a release states it."""

from dataclasses import dataclass
from fractions import Fraction

from countveil.privacy.exact import from_text
from countveil.privacy.mechanisms import Mechanism


@dataclass(frozen=True)
class Thinning(Mechanism):
    """Every unit of a count is lost by itself with the chance ``loss``."""

    loss: Fraction

    name = "thinning"
    version = 1
    title = "thinning"

    def parameters(self):
        return {"loss": str(self.loss)}

    @classmethod
    def of_parameters(cls, parameters):
        if set(parameters) != {"loss"}:
            raise ValueError("parameters must be loss, got others")
        return cls(from_text("loss", parameters["loss"]))

    def describe(self):
        return f"Every unit of a count is lost with a chance of {self.loss}."
