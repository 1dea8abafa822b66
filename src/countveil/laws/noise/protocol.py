"""What inference asks of a noise: what a report says about its count, whatever the distribution of counts."""

from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from countveil.privacy.mechanisms import Mechanism

Values = Any  # numbers or arrays that broadcast against each other


class Tally(NamedTuple):
    """How many cells have which report, in groups of cells of one noise level, (groups,) each."""

    level: np.ndarray
    cells: np.ndarray  # that were seen
    at_most_zero: np.ndarray
    ones: np.ndarray
    twos: np.ndarray
    below_zero: np.ndarray | None  # the sum of -r over negative reports r; None where all are truncated


class Contradiction(NamedTuple):
    """A noise level that reports contradict. Where levels vary, both are of a common level with the same mean."""

    stated: float
    found: float
    at_most: bool  # the reports only say that the level is no higher than found


class Noise(Protocol):
    """What the reports of one mechanism say about their counts.

    A level is the parameter of the mechanism that may vary by row or by cell, alpha for instance; level 0 is no noise.
    Only positive reports are stored. For a cell whose report is not stored, the kernel P(report | count) is geometric
    in the count, so that the cell enters the likelihood through an exposure alone (mathematics, section 14). A
    mechanism without this property has to store every report. All methods are vectorised.
    """

    level: ClassVar[str]  # the name of its level
    levels_below: ClassVar[float]  # levels lie in [0, levels_below)
    counts_positive: ClassVar[bool]  # whether a stored report is a number, and positive
    unbiased: bool  # whether ``kernels.law.unbiased`` has the count for its mean

    @property
    def mechanism(self) -> str:
        """What files call it: the mechanism's name on the owner's side, or all mechanisms in JSON."""
        ...

    @property
    def kernel(self) -> tuple[Any, ...]:
        """What compiled loops choose their functions by (see ``kernels.general``)."""
        ...

    def in_words(self, level: np.ndarray) -> str:
        """The mechanism and the range of its levels, for people."""
        ...

    def level_of(self, mechanism: Mechanism) -> float:
        """The level of the noise that a mechanism of this name adds, from the mechanism's own parameters."""
        ...

    def ratio(self, level: Values) -> Values:
        """P(a report that is not stored | count 1) over P(the same | count 0)."""
        ...

    def bias(self, level: Values) -> Values:
        """The mean of ``kernels.law.debiased``, the form of a report that starts use, where the count is zero."""
        ...

    def positive_by_noise(self, level: Values) -> Values:
        """The chance that a count of zero has a positive report."""
        ...

    def mean_at_zero(self, level: Values) -> Values:
        """The mean of max(report, 0) where the count is zero."""
        ...

    def standard_deviation(self, level: Values) -> Values:
        """The standard deviation of the noise on one count."""
        ...

    def variance(self, reports: np.ndarray, level: Values) -> np.ndarray:
        """The variance of ``kernels.law.unbiased`` at these stored numbers (0 where none is), given the counts."""
        ...

    def contradiction(self, tally: Tally) -> Contradiction | None:
        """The level that reports show where it is not the one stated for them, beyond chance; else None."""
        ...

    def log_kernel(self, report: Values, count: Values, level: Values) -> Values:
        """log P(report | count) up to a constant in the count, with reports truncated at zero."""
        ...

    def sample(self, counts: np.ndarray, level: Values, rng: np.random.Generator) -> np.ndarray:
        """Reports of these counts, truncated at zero. The noise is seeded and protects nobody."""
        ...
