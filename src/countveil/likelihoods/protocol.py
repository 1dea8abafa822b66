"""What is asked of a likelihood: the law of a count given its rate, and what of the count components share."""

from typing import Any, ClassVar, Protocol

import numpy as np

Values = Any  # numbers or arrays that broadcast against each other
Parameters = tuple[np.ndarray, ...]  # of the likelihood itself, beside the rates


class Likelihood(Protocol):
    """The law of a count given its rate, a sum over components.

    Components share the *parts* of a count: given the parts, each belongs to a component in proportion to its share of
    the rate. Parts come at the rate itself, as a Poisson number. Of a Poisson count they are its units; of a count that
    comes in bursts they are the bursts. A cell whose report is not stored says that there were no parts, with an
    exposure that the noise's ratio decides. All methods are vectorised.
    """

    name: ClassVar[str]

    @property
    def counts(self) -> tuple[Any, ...]:
        """What compiled loops choose their functions by (see ``kernels.general``)."""
        ...

    def exposure(self, ratio: Values) -> Values:
        """The exposure of a cell whose report is not stored, whose kernel falls by this ratio for every count."""
        ...

    def mean(self, rate: Values, parameters: Parameters = ()) -> Values:
        """E[count | rate]."""
        ...

    def log_mass(self, count: Values, rate: Values, parameters: Parameters = ()) -> Values:
        """log P(count | rate)."""
        ...

    def sample(self, rate: np.ndarray, rng: np.random.Generator, parameters: Parameters = ()) -> np.ndarray:
        """Counts with these rates."""
        ...

    def start(self, shape: tuple[int, int]) -> Parameters:
        """Parameters to begin with, for data of this shape; none for most."""
        ...

    def tally_size(self, shape: tuple[int, int]) -> int:
        """How many numbers a sweep over data of this shape tallies for ``update``; 0 where there are no parameters."""
        ...

    def update(self, parameters: Parameters, tally: np.ndarray, rng: np.random.Generator) -> Parameters:
        """Parameters given what a sweep tallied (see ``kernels.general.add_to_tally``), if there are any."""
        ...
