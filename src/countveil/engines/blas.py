"""One thread of BLAS while anything is fitted: with more it adds up in another order, and fits start threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_before: dict[str, tuple[Any, int]] = {}  # of each library by its file: what controls it, and its threads
_users = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this process; the last context to end, in any thread, sets the numbers back.

    The number is one for the whole process. Contexts that each set back what they found would leave one thread behind
    where two overlap and the one that began first ends first.
    """
    global _users
    with _lock:
        for library in libraries():
            _before.setdefault(library.filepath, (library, library.num_threads))
            set_threads(library, 1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                for library, threads in _before.values():
                    set_threads(library, threads)
                _before.clear()


@cache
def libraries() -> list[Any]:
    """What controls each BLAS library: those of NumPy and SciPy, and the one that Numba would otherwise load later.

    They are looked for once. That takes a millisecond, or six where many libraries are loaded, and a fit asks often.
    """
    import_module("scipy.linalg.cython_blas")
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def set_threads(library: Any, threads: int) -> None:
    """Set a library's number, from whichever thread: threadpoolctl from 3.8 on listens to one thread alone."""
    let_go = getattr(library, "clear_controlling_thread", None)
    if let_go is not None:
        let_go(force=True)
    library.set_num_threads(threads)
    if let_go is not None:
        let_go(force=True)
