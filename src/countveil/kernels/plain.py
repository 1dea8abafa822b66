"""Kernels in plain Python, for debuggers and coverage: what ``compiled`` makes of them if NUMBA_DISABLE_JIT is set.

Numbers are the same as those of compiled code: floats overflow to infinity, logs and divisions have the results of IEEE
754 rather than exceptions, and integers wrap around. A division by zero is an error where it is one in compiled code,
as long as both numbers are Python's own.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np


def plain(function: Callable[..., Any], error_model: str = "python") -> Any:
    """The function itself, with the numbers of compiled code; options are those of ``compiled.subroutine``.

    Functions of its module find ``math`` replaced by ``Math`` from then on.
    """
    if function.__globals__.get("math") is math:
        function.__globals__["math"] = Math()

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        if error_model == "numpy":
            arguments = tuple(np.float64(each) if type(each) is float else each for each in arguments)
        with np.errstate(all="ignore"):
            return function(*arguments)

    call.py_func = function  # type: ignore[attr-defined]
    return call


def plain_elementwise(function: Callable[..., Any]) -> Any:
    """The function of arrays that calls it for each of their elements, as a ufunc does."""
    of_one = np.frompyfunc(plain(function, "numpy"), function.__code__.co_argcount, 1)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        found = np.asarray(of_one(*arguments), dtype=object)
        return np.array(found.ravel().tolist()).reshape(found.shape)[()]

    call.py_func = function  # type: ignore[attr-defined]
    return call


class Math:
    """The module ``math``, whose functions have the values of IEEE 754 where Python's raise an error."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(math, name)
        if callable(found):
            found = without_errors(name, found)
        setattr(self, name, found)
        return found


POLES = {"lgamma": math.inf, "log": -math.inf, "log1p": -math.inf}
"""Values where a function has a pole."""


def without_errors(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``math`` that overflows to infinity, and is infinite at poles and no number outside its domain."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            found = function(*arguments)
        except OverflowError:
            return np.float64(math.inf)
        except ValueError:
            x = arguments[0]
            at_pole = name in POLES and (x == -1.0 if name == "log1p" else x == 0.0 or name == "lgamma")
            return np.float64(POLES[name] if at_pole else math.nan)
        return np.float64(found) if isinstance(found, float) else found

    return call
