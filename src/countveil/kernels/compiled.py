"""How functions are compiled: kernels, which Python calls, and the subroutines that they are made of.

Numba also compiles each function for C, and for Python, which takes long where a function has dozens of arrays. Kernels
are compiled for Python alone, subroutines for neither: kernels take in their code (``linking``). Both are kept on disk
(``keeping``) and run without the interpreter's lock.

If NUMBA_DISABLE_JIT is set, all of them run in plain Python, for debuggers and coverage. Numbers are the same as those
of compiled code: floats overflow to infinity, logs and divisions have the results of IEEE 754 rather than exceptions,
and integers wrap around. A division by zero is an error where it is one in compiled code, as long as both numbers are
Python's own.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, njit, types, vectorize
from numba.extending import typeof_impl

from countveil.kernels import linking
from countveil.kernels.keeping import cache_of


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


def kernel(function: Callable[..., Any]) -> Any:
    """A decorator: compiled for Python, and for other compiled functions."""
    if config.DISABLE_JIT:
        return plain(function)
    compiled = njit(nogil=True, no_cfunc_wrapper=True)(function)
    compiled._cache = cache_of(function)
    return compiled


def elementwise(function: Callable[..., Any]) -> Any:
    """A decorator: a function of numbers becomes a NumPy ufunc."""
    if config.DISABLE_JIT:
        return plain_elementwise(function)
    ufunc = vectorize(function)
    ufunc._dispatcher.cache = cache_of(function)
    return ufunc


def subroutine(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A decorator: compiled for other compiled functions; options are Numba's, such as ``error_model``."""
    if function is None:
        return lambda decorated: subroutine(decorated, **options)
    return plain(function, **options) if config.DISABLE_JIT else Subroutine(function, options)


class Subroutine:
    """A compiled function that only compiled functions call.

    Python may call it as well, in a test: that compiles a caller for every type of arguments, which is not kept.

    Attributes:
        compiled: what Numba calls.
        py_func: the function itself.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        forms = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True, "pipeline_class": linking.Compiler}
        self.compiled, self.py_func = njit(nogil=True, **forms, **options)(function), function
        self.compiled._cache = cache_of(function)
        self._caller: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns."""
        if self._caller is None:
            self._caller = caller_of(self.compiled)
        return self._caller(*arguments)


def caller_of(compiled: Any) -> Any:
    """A function that Python calls, and that calls a compiled one."""

    @njit
    def call(*arguments):
        return compiled(*arguments)

    return call


@typeof_impl.register(Subroutine)
def type_of_subroutine(value: Subroutine, context: Any) -> types.Dispatcher:
    """What Numba takes a subroutine for where compiled code names one."""
    return types.Dispatcher(value.compiled)
