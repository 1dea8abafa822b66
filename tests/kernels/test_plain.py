"""Kernels in plain Python: the numbers of compiled code, and a whole fit without Numba."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from countveil.kernels.plain import Math, plain, plain_elementwise

pytestmark = pytest.mark.long

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


def fitted(path, off):
    environment = {**os.environ, "NUMBA_DISABLE_JIT": off}
    found = subprocess.run(
        [sys.executable, "-c", FITS, path], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    with np.load(path) as file:
        return dict(file)


def test_fits_are_the_same_without_compiled_code(tmp_path):
    compiled, python = (fitted(str(tmp_path / f"{off}.npz"), off) for off in "01")
    assert compiled.keys() == python.keys()
    for name, values in compiled.items():
        np.testing.assert_allclose(python[name], values, rtol=1e-9, err_msg=name)


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


def divided(x, y):
    return x / y


def test_a_division_by_zero_is_an_error_unless_it_is_asked_to_be_none():
    assert plain(divided, error_model="numpy")(1.0, 0.0) == math.inf
    with pytest.raises(ZeroDivisionError):
        plain(divided)(1.0, 0.0)


def test_integers_wrap_around():
    assert plain(lambda x, y: x * y)(np.uint64(2**63), np.uint64(2)) == 0


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 2)])
def test_functions_of_numbers_take_arrays(shape):
    found = plain_elementwise(divided)(np.ones(shape), 2)
    assert (found.shape, found.dtype) == (shape, np.float64)
    assert (found == 0.5).all()


def test_whole_numbers_stay_whole():
    assert plain_elementwise(lambda x: x + 1)(np.array([1, 2])).dtype == np.int64
