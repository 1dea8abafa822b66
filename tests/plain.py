"""Tests of kernels in plain Python, by Numba's switch: which are left out, and how many draws the others make.

``NUMBA_DISABLE_JIT=1 python -m pytest -n 0 tests/kernels`` is for debuggers and coverage. It makes fewer draws, so
that it finds kernels that fail, and large errors; compiled code is tested by all of them.
"""

import numba
import pytest

PLAIN = bool(numba.config.DISABLE_JIT)
about_compiling = pytest.mark.skipif(PLAIN, reason="about compiled code, of which there is none")
takes_many_draws = pytest.mark.skipif(PLAIN, reason="laws that differ a little need more draws to be told apart")


def repeated(n: int) -> int:
    """So many draws or sweeps; a fortieth in plain Python, where each takes a hundred times as long."""
    return n // 40 if PLAIN else n
