"""What inference asks of a likelihood: the distribution of a count given its rate, and what is allocated."""

from typing import Any, ClassVar, Protocol

import numpy as np

Values = Any  # numbers or arrays that broadcast against each other
Parameters = tuple[np.ndarray, ...]  # of the likelihood itself, besides the rates


class Likelihood(Protocol):
    """The distribution of a count given its rate, which is a sum over components.

    What is allocated to components are the *parts* of a count: each part belongs to a component with probability
    proportional to the component's share of the rate. The number of parts is Poisson with the rate as its mean. The
    parts of a Poisson count are its units; those of a count that comes in bursts are the bursts. A cell whose report is
    not stored enters like a cell with no parts, with an exposure that depends on the noise's ratio. All methods are
    vectorised.
    """

    name: ClassVar[str]

    @property
    def counts(self) -> tuple[Any, ...]:
        """What compiled loops choose their functions by (see ``kernels.general``)."""
        ...

    def exposure(self, ratio: Values) -> Values:
        """The exposure of a cell whose report is not stored, and whose kernel is multiplied by this ratio per unit."""
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
        """Initial parameters for data of this shape; empty for many likelihoods."""
        ...

    def tally_size(self, shape: tuple[int, int]) -> int:
        """How many numbers a sweep over data of this shape tallies for ``update``; 0 if there are no parameters."""
        ...

    def update(self, parameters: Parameters, tally: np.ndarray, rng: np.random.Generator) -> Parameters:
        """Parameters given what a sweep tallied (see ``kernels.general.add_to_tally``), if there are any."""
        ...
