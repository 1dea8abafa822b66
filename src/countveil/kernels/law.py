"""What loops ask of the law of a report given its rate: functions that Numba chooses by the law's type.

A law is noise times likelihood, a named tuple whose class says which, with a field ``likelihood``. Numba compiles a
loop for every class of law that it is called with, and then calls the functions below directly: nothing is chosen at
run time. A module that implements a law registers its functions with ``provides``, or with ``by_default`` where one
function is right for most laws. Batches are those of ``entries``; "counts" below are what is allocated to components,
whatever the likelihood calls them. Draws and expectations are given a stored report, which is positive; a cell that is
not stored matters only through its exposure. Starts depend on the noise alone: ``debiased``, ``bias`` and ``unbiased``
are chosen by the noise's class.

Where parameters vary by row or column, ``law_at`` gives the law of one cell, which may be of another class; functions
of a report, a rate and a level are called with that one. Functions of batches are given the row and the whole law.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global

from countveil.kernels.compiled import Subroutine, subroutine


class Choice(AbstractTemplate):
    """How Numba finds what one of these functions is for a law: by the type of the first argument.

    What ``numba.extending.overload`` finds is compiled again in every process. Here it is a subroutine, kept on disk.
    """

    key: ClassVar[Any]
    compiled: ClassVar[dict[tuple[Any, ...], Any]]

    def generic(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The signature of a call; None where the law provides nothing."""
        law = arguments[0]
        found = type(self).key.dispatch(law.instance_class) if is_law(law) else None
        if not isinstance(found, Subroutine):
            return None
        chosen = types.Dispatcher(found.compiled)
        signature = chosen.get_call_type(self.context, arguments, keywords)
        self.compiled[signature.args] = chosen.get_overload(signature)
        return signature

    def get_impl_key(self, signature: Any) -> Any:
        """What is called."""
        return self.compiled[signature.args]


def is_law(kind: Any) -> bool:
    """Whether a type is that of a named tuple."""
    return isinstance(kind, types.BaseNamedTuple)


def by_class(function: Callable[..., Any]) -> Any:
    """A decorator that declares a function whose implementation depends on the class of its first argument.

    Compiled functions choose when they are compiled, by ``Choice``, and Python chooses when it calls.
    """
    chosen = singledispatch(function)
    choice = type(f"Choice of {function.__name__}", (Choice,), {"key": chosen, "compiled": {}})
    infer_global(chosen, types.Function(choice))
    return chosen


def by_default(function: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that implements a function of this kind for all laws that do not provide one."""
    return provides(function, tuple)


def provides(function: Any, law_class: type) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that implements a function of this kind for laws of a class; the law is its first argument.

    It makes the implementation a subroutine, unless it is one.
    """

    def register(implementation: Callable[..., Any]) -> Any:
        found = implementation if hasattr(implementation, "py_func") else subroutine(implementation)
        function.register(law_class, found)
        return found

    return register


@by_class
def law_at(law, row, column):
    """The law of one cell; by default the law itself."""
    raise NotImplementedError


@by_class
def draw_counts(law, row, n, batch, tally, source, rng):
    """Replace count_i, the reports, by draws of what is allocated at the first n entries of a batch from one row.

    What the likelihood needs to update its own parameters is added to ``tally``, which is empty if it has none.
    """
    raise NotImplementedError


@by_class
def expect_counts(law, row, n, batch):
    """ratio_i = E[what is allocated] / rate_i; returns the sum of log P(report_i | rate_i) + rate_i."""
    raise NotImplementedError


@by_class
def expected_ratio(law, report, rate, level):
    """E[what is allocated] / rate of one stored report."""
    raise NotImplementedError


@by_class
def expect_both(law, report, rate, level):
    """(E[count], E[what is allocated]) of one stored report, for likelihoods with parameters of their own."""
    raise NotImplementedError


@by_class
def report_score(law, report, rate, level):
    """log P(report | rate) of one stored report."""
    raise NotImplementedError


@by_class
def unseen_score(law, rate, level):
    """log P(a report that is not stored | rate): ``unseen_constant`` minus the exposure times the rate."""
    raise NotImplementedError


@by_class
def unseen_constant(law, level):
    """log P(a report that is not stored) at rate zero."""
    raise NotImplementedError


@by_class
def unseen_exposure(law, level):
    """The exposure of a report that is not stored."""
    raise NotImplementedError


@by_class
def seen_exposures(law, row):
    """(V,) exposures of a row's positive reports; empty where each is 1, as without exposures by cell."""
    raise NotImplementedError


@by_class
def debiased(noise, report, level):
    """A multiple of a stored report that, less ``bias``, has mean zero where the count is zero."""
    raise NotImplementedError


@by_class
def bias(noise, level):
    """The mean of ``debiased`` where the count is zero."""
    raise NotImplementedError


@by_class
def unbiased(noise, report, level):
    """An unbiased estimate of the count; all reports that are not positive count as the same one."""
    raise NotImplementedError


@by_default(law_at)
def same_law(law, row, column):
    """The law itself."""
    return law


@by_default(seen_exposures)
def whole_exposures(law, row):
    """Of 1 each."""
    return np.empty(0)
