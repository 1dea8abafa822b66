"""How functions are compiled: kernels, which Python calls, and the subroutines that they are made of.

Numba also compiles each function for C, and for Python, which takes long where a function has dozens of arrays. Kernels
are compiled for Python alone, subroutines for neither. Both are kept on disk (``keeping``) and run without the
interpreter's lock. If NUMBA_DISABLE_JIT is set, all of them run in plain Python (``plain``): only this module asks.
"""

from collections.abc import Callable
from typing import Any

from numba import config, njit, types, vectorize
from numba.extending import typeof_impl

from countveil.kernels.keeping import cache_of
from countveil.kernels.plain import plain, plain_elementwise


def kernel(function: Callable[..., Any]) -> Any:
    """A decorator: compiled for Python, and for other compiled functions."""
    if config.DISABLE_JIT:
        return plain(function)
    return kept(njit(nogil=True, no_cfunc_wrapper=True)(function))


def elementwise(function: Callable[..., Any]) -> Any:
    """A decorator: a function of numbers becomes a NumPy ufunc."""
    if config.DISABLE_JIT:
        return plain_elementwise(function)
    ufunc = vectorize(function)
    ufunc._dispatcher.cache = cache_of(function)
    return ufunc


def kept(compiled: Any) -> Any:
    """The same compiled function, kept on disk if that is possible."""
    compiled._cache = cache_of(compiled.py_func)
    return compiled


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
        compile_it = njit(nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=True, **options)
        self.compiled, self.py_func = kept(compile_it(function)), function
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
