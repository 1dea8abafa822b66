"""Subroutines have no machine code of their own; kernels that link them, fresh or from files, compute the same."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.linked import Linked
from tests.compiled import ROOT
from tests.plain import about_compiling

pytestmark = [pytest.mark.long, about_compiling]


def odds(x):
    return np.exp(x) / (1.0 + np.exp(-x * x))


def test_a_kernel_computes_the_same_bits_with_a_subroutine_of_either_kind():
    linked, plain = subroutine(odds), njit(odds)

    @kernel
    def with_linked(x):
        return linked(x) + linked(2.0 * x)

    @njit
    def with_plain(x):
        return plain(x) + plain(2.0 * x)

    for x in np.random.default_rng(1).normal(size=100):
        assert with_linked(x) == with_plain(x)
    (compiled,) = linked.compiled.overloads.values()
    assert isinstance(compiled.library, Linked)
    assert compiled.library._compiled_object is None  # no machine code was made
    (usual,) = plain.overloads.values()
    assert usual.library.get_pointer_to_function(usual.fndesc.llvm_cpython_wrapper_name)


MODULE = """
import math
from countveil.kernels.compiled import kernel, subroutine

@subroutine
def inner(x):
    return math.exp(-x) + 1.0

@subroutine
def outer(x):
    return inner(x) * 2.0

@kernel
def first(x):
    return outer(x)

@kernel
def second(x):
    return outer(x) - inner(x)
"""


def test_another_process_links_what_was_kept(tmp_path):
    (tmp_path / "loops.py").write_text(MODULE)
    own = {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{tmp_path}"}

    def run(name):
        code = (
            f"import loops; print(loops.{name}(0.0), *(sum(each.compiled.stats.cache_hits.values()) "
            "for each in (loops.outer, loops.inner)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | own, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run("first") == "4.0 0 0"
    assert run("second") == "2.0 1 1"
    assert run("second") == "2.0 0 0"  # a kernel from its file needs no subroutine
