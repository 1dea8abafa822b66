"""Kernels and subroutines: what calls what, what is kept on disk, and in which forms they are compiled."""

import importlib.util
import math
import os
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.event import Listener, install_listener

from countveil.kernels import law as stubs
from countveil.kernels.compiled import Math, kernel, plain, plain_elementwise, subroutine
from countveil.kernels.law import provides
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricKernel
from tests.plain import about_compiling

SOURCE = """
from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.law import by_class, provides
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricKernel


@by_class
def chosen(law, level):
    raise NotImplementedError


@subroutine
def square(x):
    return x * x


@provides(chosen, TwoSidedGeometricKernel)
def exposure(law, level):
    return square(level) + 1.0


@kernel
def total(law, values):
    total = 0.0
    for value in values:
        total += chosen(law, value)
    return total


@kernel
def last(law, values):
    return chosen(law, values[-1])
"""


@subroutine
def divided(x, y):
    """x / y."""
    return x / y


@subroutine(error_model="numpy")
def divided_as_numpy_does(x, y):
    """The same without an error."""
    return x / y


@kernel
def divide_all(values, y, found):
    """Each value over y."""
    for i in range(values.size):
        found[i] = divided(values[i], y)


class Law(NamedTuple):
    parameters: tuple[()] = ()


class Names(Listener):
    """The names of what is compiled."""

    def __init__(self):
        self.found = []

    def on_start(self, event):
        self.found.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


def compiled_by(path, name):
    """What is compiled for a call of a kernel of a module loaded from its file, as in another process; its value."""
    spec = importlib.util.spec_from_file_location("compiled_alone", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with install_listener("numba:compile", Names()) as names:
        value = getattr(module, name)(TwoSidedGeometricKernel(), np.array([1.0, 2.0]))
    return names.found, value


def test_a_kernel_calls_a_subroutine():
    found = np.empty(3)
    divide_all(np.array([1.0, 2.0, 3.0]), 2.0, found)
    assert found.tolist() == [0.5, 1.0, 1.5]


def test_python_calls_a_subroutine_with_any_types():
    assert (divided(1, 2), divided(1.0, 4.0), divided(np.float32(1.0), 2)) == (0.5, 0.25, 0.5)
    assert divided.__name__ == "divided"
    assert divided.__doc__ == "x / y."


def test_a_subroutine_takes_options():
    assert divided_as_numpy_does(1.0, 0.0) == np.inf
    with pytest.raises(ZeroDivisionError):
        divided(1.0, 0.0)


@about_compiling
def test_types_that_do_not_fit_are_refused():
    with pytest.raises(TypingError):
        divided("one", 2.0)


@about_compiling
def test_only_kernels_are_compiled_for_python_and_nothing_is_for_c(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # code from disk does not say what it defines
    again = kernel(divide_all.py_func)
    again(np.ones(2), 2.0, np.empty(2))
    assert forms_of(again) == (True, False)
    part = subroutine(divided.py_func)
    part.compiled.compile((numba.float64, numba.float64))
    assert forms_of(part.compiled) == (False, False)
    assert has_machine_code(again)
    assert not has_machine_code(part.compiled)
    assert part(1.0, 2.0) == 0.5


@about_compiling
def test_a_subroutine_may_call_python_whether_it_was_kept_or_not(tmp_path, monkeypatch):
    """Errors with numbers in them do so, as ``print`` does, which would wait for ever if this did not work."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    for hits in (0, 1):
        part = subroutine(refused)
        with pytest.raises(ValueError, match=r"too large', 2\.5"):
            part(2.5)
        assert part.compiled.stats.cache_hits.total() == hits


def refused(x):
    raise ValueError("too large", x)


def has_machine_code(dispatcher):
    """Whether a function that was compiled once was also turned into machine code."""
    (code,) = dispatcher.overloads.values()
    return code.library.codegen._engine.is_symbol_defined(code.fndesc.llvm_func_name)


def forms_of(dispatcher):
    """Whether a function that was compiled once has a form for Python, and one for C."""
    (code,) = dispatcher.overloads.values()
    defined = {function.name for function in code.library.get_defined_functions()}
    return code.fndesc.llvm_cpython_wrapper_name in defined, code.fndesc.llvm_cfunc_wrapper_name in defined


@about_compiling
def test_a_process_compiles_what_no_other_has_left_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "compiled_alone.py"
    path.write_text(SOURCE)
    assert compiled_by(path, "total") == (["total", "exposure", "square"], 7.0)
    assert compiled_by(path, "total") == ([], 7.0)
    assert compiled_by(path, "last") == (["last"], 5.0)


def test_a_law_may_provide_a_subroutine_as_it_is():
    @subroutine
    def half(law, level):
        return 0.5 * level

    assert provides(stubs.unseen_constant, Law)(half) is half

    @numba.njit
    def call(law):
        return stubs.unseen_constant(law, 3.0)

    assert call(Law()) == 1.5


FITS = """
import sys
import numpy as np
import countveil as cv

reports = np.array([[3, -1, 0, 7], [0, 2, 1, -2], [12, 0, 4, 1]])
found = {}
for kind in ("poisson", "negative-binomial"):
    fit = cv.TopicModel(2, likelihood=kind, draws=2, tune=2, chains=1, seed=1, threads=1, progress=False)
    found[kind] = fit.fit(cv.PrivatizedCounts(reports, 0.4)).components_
window = cv.Reports(reports, cv.mechanisms.DiscreteGaussian(1.5))
fit = cv.TopicModel(2, draws=2, tune=2, chains=1, seed=1, threads=1, progress=False).fit(window)
found["window"] = fit.components_
found["scores"] = cv.log_likelihood(reports, 1.5, 0.4)
found["bessel"] = cv.distributions.Bessel([0, 3], 2.5).logpmf([[1, 2], [0, 5]])
np.savez(sys.argv[1], **found)
"""


def fitted(path):
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    found = subprocess.run([sys.executable, "-c", FITS, path], env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    with np.load(path) as file:
        return dict(file)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_fits_are_the_same_without_compiled_code(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "compiled.npz")])
    exec(FITS, {})
    with np.load(sys.argv[1]) as file:
        compiled = dict(file)
    python = fitted(str(tmp_path / "python.npz"))
    assert compiled.keys() == python.keys()
    for name, values in compiled.items():
        np.testing.assert_allclose(python[name], values, rtol=1e-9, err_msg=name)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("log", 0.0, -math.inf),
        ("log", -1.0, math.nan),
        ("log1p", -1.0, -math.inf),
        ("log1p", -2.0, math.nan),
        ("exp", 1e4, math.inf),
        ("expm1", 1e4, math.inf),
        ("lgamma", 0.0, math.inf),
        ("sqrt", -1.0, math.nan),
        ("log", 2.0, math.log(2.0)),
    ],
)
def test_functions_of_math_do_not_fail(name, x, expected):
    assert getattr(Math(), name)(x) == pytest.approx(expected, nan_ok=True, rel=0, abs=0)


def divided_plainly(x, y):
    return x / y


@pytest.mark.long
def test_a_division_by_zero_is_an_error_unless_it_is_asked_to_be_none():
    assert plain(divided_plainly, error_model="numpy")(1.0, 0.0) == math.inf
    with pytest.raises(ZeroDivisionError):
        plain(divided_plainly)(1.0, 0.0)


@pytest.mark.long
def test_integers_wrap_around():
    assert plain(lambda x, y: x * y)(np.uint64(2**63), np.uint64(2)) == 0


@pytest.mark.long
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 2)])
def test_functions_of_numbers_take_arrays(shape):
    found = plain_elementwise(divided_plainly)(np.ones(shape), 2)
    assert (found.shape, found.dtype) == (shape, np.float64)
    assert (found == 0.5).all()


@pytest.mark.long
def test_whole_numbers_stay_whole():
    assert plain_elementwise(lambda x: x + 1)(np.array([1, 2])).dtype == np.int64
