"""What loops ask of the law of a report given its rate: functions that Numba chooses by the law's type.

A law is noise times likelihood, a named tuple whose class says which. Numba compiles a loop for every class of law that
it is called with, and then calls the functions below directly: nothing is chosen at run time. A module that implements
a law registers its functions with ``provides``. Batches are those of ``batches``; "counts" below are what is allocated
to components, whatever the likelihood calls them. Draws and expectations are given a stored report, which is positive;
a cell that is not stored matters only through its exposure. Starts depend on the noise alone: ``debiased``, ``bias``
and ``unbiased`` are chosen by the noise's class.
"""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import overload


def draw_counts(law, n, batch, tally, source, rng):
    """Replace count_i, the reports, by draws of what is allocated at the first n entries of a batch.

    What the likelihood needs to update its own parameters is added to ``tally``, which is empty if it has none.
    """
    raise NotImplementedError


def expect_counts(law, n, batch):
    """ratio_i = E[what is allocated] / rate_i; returns the sum of log P(report_i | rate_i) + rate_i."""
    raise NotImplementedError


def expected_ratio(law, report, rate, level):
    """E[what is allocated] / rate of one stored report."""
    raise NotImplementedError


def report_score(law, report, rate, level):
    """log P(report | rate) of one stored report."""
    raise NotImplementedError


def unseen_score(law, rate, level):
    """log P(a report that is not stored | rate): ``unseen_constant`` minus the exposure times the rate."""
    raise NotImplementedError


def unseen_constant(law, level):
    """log P(a report that is not stored) at rate zero."""
    raise NotImplementedError


def unseen_exposure(law, level):
    """The exposure of a report that is not stored."""
    raise NotImplementedError


def debiased(noise, report, level):
    """A multiple of a stored report that, less ``bias``, has mean zero where the count is zero."""
    raise NotImplementedError


def bias(noise, level):
    """The mean of ``debiased`` where the count is zero."""
    raise NotImplementedError


def unbiased(noise, report, level):
    """An unbiased estimate of the count; all reports that are not positive count as the same one."""
    raise NotImplementedError


def provides(
    function: Callable[..., Any], law_class: type
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that implements a function of this kind for laws of a class; the law is its first argument.

    The implementation is compiled into every loop that calls it. It should do little more than call compiled functions,
    which Numba keeps on disk.
    """

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        @overload(function, strict=False, inline="always")
        def choose(law, *arguments):
            if isinstance(law, types.BaseNamedTuple) and law.instance_class is law_class:
                return implementation
            return None

        return implementation

    return register
