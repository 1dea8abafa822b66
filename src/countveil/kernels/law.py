"""What loops ask of the law of a report given its rate: functions that Numba chooses by the law's type.

A law is noise times likelihood, a named tuple whose class says which. Numba compiles a loop for every class of law that
it is called with, and then calls the functions below directly: nothing is chosen at run time. A module that implements
a law registers its functions with ``provides``, or with ``by_default`` where one function is right for most laws.
Batches are those of ``batches``; "counts" below are what is allocated to components, whatever the likelihood calls
them. Draws and expectations are given a stored report, which is positive; a cell that is not stored matters only
through its exposure. Starts depend on the noise alone: ``debiased``, ``bias`` and ``unbiased`` are chosen by the
noise's class.

Where parameters vary by row or column, ``law_at`` gives the law of one cell, which may be of another class; functions
of a report, a rate and a level are called with that one. Functions of batches are given the row and the whole law.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global

from countveil.kernels.compiled import Subroutine, subroutine


def law_at(law, row, column):
    """The law of one cell; by default the law itself."""
    raise NotImplementedError


def baseline(law, base, weight_lv, place_d, row, column):
    """The exposure of a cell that is not stored: by default base, that of all such cells of the row.

    If exposures vary by column, base is 0, and they are in a table (see ``entries``).
    """
    raise NotImplementedError


def draw_counts(law, row, n, batch, tally, source, rng):
    """Replace count_i, the reports, by draws of what is allocated at the first n entries of a batch from one row.

    What the likelihood needs to update its own parameters is added to ``tally``, which is empty if it has none.
    """
    raise NotImplementedError


def expect_counts(law, row, n, batch):
    """ratio_i = E[what is allocated] / rate_i; returns the sum of log P(report_i | rate_i) + rate_i."""
    raise NotImplementedError


def expected_ratio(law, report, rate, level):
    """E[what is allocated] / rate of one stored report."""
    raise NotImplementedError


def expect_both(law, report, rate, level):
    """(E[count], E[what is allocated]) of one stored report, for likelihoods with parameters of their own."""
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


class Choice(AbstractTemplate):
    """How Numba finds what one of these functions is for a law: by the type of the first argument.

    What ``numba.extending.overload`` finds is compiled again in every process. Here it is a subroutine, kept on disk.
    """

    provided: ClassVar[dict[type, Any]]
    default: ClassVar[Any]
    compiled: ClassVar[dict[tuple[Any, ...], Any]]

    def generic(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The signature of a call; None where the law provides nothing."""
        law = arguments[0]
        found = self.provided.get(law.instance_class, self.default) if is_law(law) else None
        if found is None:
            return None
        chosen = types.Dispatcher(found)
        signature = chosen.get_call_type(self.context, arguments, keywords)
        self.compiled[signature.args] = chosen.get_overload(signature)
        return signature

    def get_impl_key(self, signature: Any) -> Any:
        """What is called."""
        return self.compiled[signature.args]


choices: dict[Callable[..., Any], type[Choice]] = {}


def is_law(kind: Any) -> bool:
    """Whether a type is that of a named tuple."""
    return isinstance(kind, types.BaseNamedTuple)


def choice_of(function: Callable[..., Any]) -> type[Choice]:
    """What Numba chooses by for a function of this kind."""
    if function not in choices:
        members = {"key": function, "provided": {}, "default": None, "compiled": {}}
        choices[function] = type(f"Choice of {function.__name__}", (Choice,), members)
        infer_global(function, types.Function(choices[function]))
    return choices[function]


def as_subroutine(implementation: Any) -> Any:
    """The implementation as a subroutine, unless it is one."""
    return implementation if isinstance(implementation, Subroutine) else subroutine(implementation)


def by_default(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that implements a function of this kind for all laws that do not provide one."""

    def register(implementation: Callable[..., Any]) -> Any:
        found = as_subroutine(implementation)
        choice_of(function).default = found.compiled
        return found

    return register


def provides(function: Callable[..., Any], law_class: type) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that implements a function of this kind for laws of a class; the law is its first argument.

    It makes the implementation a subroutine, unless it is one.
    """
    choice = choice_of(function)

    def register(implementation: Callable[..., Any]) -> Any:
        found = as_subroutine(implementation)
        choice.provided[law_class] = found.compiled
        return found

    return register


@by_default(law_at)
def same_law(law, row, column):
    """The law itself."""
    return law


@by_default(baseline)
def same_baseline(law, base, weight_lv, place_d, row, column):
    """That of the row."""
    return base
