"""What loops ask of the law of a report given its rate: functions that are chosen by the law's type when they compile.

A law is noise times likelihood: a named tuple whose class says which. Numba compiles a loop for every class of law that
it is called with, and a call of a function below then is a direct one: nothing is chosen at run time. A module that
knows a law says so with ``provides``. Batches are those of ``batches``; "counts" below are what is allocated to
components, whatever the likelihood calls them. Whatever is drawn or expected here is given a stored report, which is
positive; a cell that is not stored matters through its exposure alone. Where chains begin is a matter of the noise
alone: ``debiased``, ``bias`` and ``unbiased`` are chosen by its own class.
"""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import overload


def draw_counts(law, n, batch, tally, source, rng):
    """Replace count_i, the reports, by draws of what is allocated at the first n entries of a batch.

    What the likelihood needs to update its own parameters is added to ``tally``, which is empty where it has none.
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
    """log P(a report that is not stored | rate): minus the exposure times the rate, and ``unseen_constant``."""
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
    """A number whose mean is the count, whatever that is; a report that is not positive is one that is not stored."""
    raise NotImplementedError


def provides(
    function: Callable[..., Any], law_class: type
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: this is what one of such functions is for laws of this class, its first argument.

    What is decorated is compiled into every loop that needs it. It should do little but call compiled functions, which
    Numba keeps on disk.
    """

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        @overload(function, strict=False, inline="always")
        def choose(law, *arguments):
            if isinstance(law, types.BaseNamedTuple) and law.instance_class is law_class:
                return implementation
            return None

        return implementation

    return register
