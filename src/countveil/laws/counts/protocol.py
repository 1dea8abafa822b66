"""What inference asks of a likelihood: the distribution of a count given its rate, and what is allocated."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

Values = Any  # numbers or arrays that broadcast against each other
Parameters = tuple[np.ndarray, ...]  # of the likelihood itself, besides the rates


class Unseen(NamedTuple):
    """The cells whose reports are not stored: their likelihood is exp(-sum_i exposure(ratio_i) rate_i).

    Cells whose kernel has the same ratio, and for which the parameters are the same, are added up; masked cells are
    left out.
    """

    ratio: np.ndarray  # (n,) different ratios of the noise's kernel
    rate: np.ndarray  # (n, 1), (n, D) or (n, V) sums of rates, if the parameters are by row or by column


class Likelihood(Protocol):
    """The distribution of a count given its rate, which is a sum over components.

    What is allocated to components are the *parts* of a count: each part belongs to a component with probability
    proportional to the component's share of the rate. The number of parts is Poisson with the rate as its mean. The
    parts of a Poisson count are its units; those of a count that comes in bursts are the bursts. A cell whose report is
    not stored enters like a cell with no parts, with an exposure that depends on the noise's ratio. All methods are
    vectorised.

    A likelihood may have parameters of its own, arrays that a sampler draws after the factors in every sweep. Where
    they vary by row or by column (not both), its named tuple provides ``kernels.general.likelihood_at``. If by column,
    it has a field ``by_column`` that is 1; if by row, a field ``first_row`` (see ``laws.counts.laws.in_block``). If its
    loops need more than the parameters, or not all of them, a method ``counts_given`` of the likelihood returns
    ``counts`` with what they need. The vectorised methods take the parameters of each cell (see ``parameters_at``).

    Attributes:
        name: as tables, files and messages have it. ``repr`` gives it too, with settings if there are any: checkpoints
            tell models apart by it.
        parameter_axes: {name: "all", "row" or "column"} of each parameter, in order: its name in a posterior, and
            whether it has one value, of shape (1,), or one per row (D,) or column (V,).
        settings: what a file holds to make it again, as keywords of ``with_settings``; empty for most.
    """

    name: ClassVar[str]

    @property
    def parameter_axes(self) -> Mapping[str, str]:
        """See above."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """See above."""
        ...

    @property
    def with_settings(self) -> Callable[..., "Likelihood"]:
        """A method that makes the likelihood with other settings."""
        ...

    @property
    def counts(self) -> tuple[Any, ...]:
        """What compiled loops choose their functions by (see ``kernels.general``)."""
        ...

    def range_of(self, name: str) -> tuple[float, float]:
        """The least and the greatest value of a parameter."""
        ...

    def exposure(self, ratio: Values, parameters: Parameters = ()) -> Values:
        """The exposure of a cell whose report is not stored, and whose kernel is multiplied by this ratio per unit."""
        ...

    def mean(self, rate: Values, parameters: Parameters = ()) -> Values:
        """E[count | rate], a multiple of the rate."""
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

    def update(self, parameters: Parameters, tally: np.ndarray, unseen: Unseen, rng: np.random.Generator) -> Parameters:
        """A draw of the parameters, if there are any, that leaves their conditional law as it is.

        ``tally`` sums up the counts and parts of the sweep's positive reports (see ``kernels.general.add_to_tally``),
        ``unseen`` the other cells' rates at the sweep's new factors.
        """
        ...

    def maximised(self, parameters: Parameters, tally: np.ndarray, unseen: Unseen, penalised: np.ndarray) -> Parameters:
        """The parameters, if there are any, at which the expected log-likelihood is greatest; for ``em`` and ``cavi``.

        As in ``update``, but ``tally`` has expected counts and parts. The log-likelihood is less the expected counts of
        cells whose rates add up to ``penalised``, (1,), (D,) or (V,).
        """
        ...


def parameters_at(likelihood: Likelihood, parameters: Parameters, rows: Any, columns: Any) -> Parameters:
    """The parameters of cells, given numbers of their rows and columns that broadcast against each other."""
    places = {"all": slice(None), "row": rows, "column": columns}
    axes = likelihood.parameter_axes.values()
    return tuple(values[places[axis]] for values, axis in zip(parameters, axes, strict=True))


def parameters_of_rows(likelihood: Likelihood, parameters: Parameters, rows: np.ndarray) -> Parameters:
    """The parameters of all cells of some rows, which broadcast against (rows, V)."""
    return parameters_at(likelihood, parameters, rows[:, None], slice(None))


def rates_at(theta: np.ndarray, phi: np.ndarray, exposure: np.ndarray | None) -> np.ndarray:
    """(D, V) the rates of all cells: theta @ phi.T, times their exposures if there are any by cell."""
    rates: np.ndarray = theta @ phi.T
    return rates if exposure is None else rates * exposure


def in_counts(
    likelihood: Likelihood, theta: np.ndarray, phi: np.ndarray, parameters: Parameters
) -> tuple[np.ndarray, np.ndarray]:
    """(theta, phi) with one of them rescaled, so that theta @ phi.T is the expected count of every cell."""
    if "row" in likelihood.parameter_axes.values():
        own = parameters_at(likelihood, parameters, slice(None), 0)
        return theta * np.reshape(likelihood.mean(1.0, own), (-1, 1)), phi
    own = parameters_at(likelihood, parameters, 0, slice(None))
    return theta, phi * np.reshape(likelihood.mean(1.0, own), (-1, 1))
