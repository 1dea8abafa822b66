"""What is asked of a noise: all that a report says about its count, whatever the count's law."""

from typing import Any, ClassVar, Protocol

import numpy as np

Values = Any  # numbers or arrays that broadcast against each other


class Noise(Protocol):
    """What the reports of one mechanism say about their counts.

    A level is the mechanism's parameter where it varies by row or by cell, such as alpha; a level of 0 is no noise.
    Reports are stored where they are positive. A cell whose report is not stored has a kernel P(report | count) that is
    geometric in the count, so that it enters the likelihood through an exposure alone (mathematics, section 14); a
    mechanism for which it is not has to store every report. All methods are vectorised.
    """

    mechanism: ClassVar[str]  # its name on the owner's side
    level: ClassVar[str]  # what its levels are called
    levels_below: ClassVar[float]  # levels are from 0 up to this, which is excluded

    @property
    def kernel(self) -> tuple[Any, ...]:
        """What compiled loops choose their functions by (see ``kernels.general``)."""
        ...

    def ratio(self, level: Values) -> Values:
        """P(a report that is not stored | count 1) over P(the same | count 0)."""
        ...

    def bias(self, level: Values) -> Values:
        """The mean, where the count is zero, of what starts take for the report (``kernels.law.debiased``)."""
        ...

    def positive_by_noise(self, level: Values) -> Values:
        """The chance that a count of zero has a positive report."""
        ...

    def mean_at_zero(self, level: Values) -> Values:
        """The mean of max(report, 0) where the count is zero."""
        ...

    def standard_deviation(self, level: Values) -> Values:
        """That of the noise on one count."""
        ...

    def log_kernel(self, report: Values, count: Values, level: Values) -> Values:
        """log P(report | count) up to a constant in the count, reports cut at zero."""
        ...

    def sample(self, counts: np.ndarray, level: Values, rng: np.random.Generator) -> np.ndarray:
        """Reports of these counts, cut at zero: seeded, so that they protect nobody."""
        ...
