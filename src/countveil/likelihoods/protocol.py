"""What inference asks of a likelihood: the distribution of a count given its rate, and what is allocated."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

Values = Any  # numbers or arrays that broadcast against each other
Parameters = tuple[np.ndarray, ...]  # of the likelihood itself, besides the rates


class Unseen(NamedTuple):
    """The cells whose reports are not stored: their likelihood is exp(-sum_i exposure(ratio_i) rate_i).

    Cells whose kernel has the same ratio are added up; masked cells are left out.
    """

    ratio: np.ndarray  # (n,) different ratios of the noise's kernel
    rate: np.ndarray  # (n,) sum of the rates of the cells with this ratio


class Likelihood(Protocol):
    """The distribution of a count given its rate, which is a sum over components.

    What is allocated to components are the *parts* of a count: each part belongs to a component with probability
    proportional to the component's share of the rate. The number of parts is Poisson with the rate as its mean. The
    parts of a Poisson count are its units; those of a count that comes in bursts are the bursts. A cell whose report is
    not stored enters like a cell with no parts, with an exposure that depends on the noise's ratio. All methods are
    vectorised.

    A likelihood may have parameters of its own, arrays that a sampler draws after the factors in every sweep. So far
    they are the same for all cells: compiled functions do not learn which column a cell is in, except
    ``kernels.general.add_to_tally``.

    Attributes:
        name: as tables, files and messages have it. ``repr`` gives it too, with settings if there are any: checkpoints
            tell models apart by it.
        parameter_axes: {name: "all", "row" or "column"} of each parameter, in order: its name in a posterior, and
            whether it has one value, of shape (1,), or one per row (D,) or column (V,).
    """

    name: ClassVar[str]
    parameter_axes: ClassVar[Mapping[str, str]]

    @property
    def counts(self) -> tuple[Any, ...]:
        """What compiled loops choose their functions by (see ``kernels.general``)."""
        ...

    def exposure(self, ratio: Values, parameters: Parameters = ()) -> Values:
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

    def update(
        self, parameters: Parameters, tally: np.ndarray, unseen: Unseen, rng: np.random.Generator
    ) -> Parameters:
        """A draw of the parameters, if there are any, that leaves their conditional law as it is.

        ``tally`` sums up the counts and parts of the sweep's positive reports (see ``kernels.general.add_to_tally``),
        ``unseen`` the other cells' rates at the sweep's new factors.
        """
        ...
