"""The law of a report for PyMC: a Poisson count plus two-sided geometric noise, differentiable in the rate.

    P(r | rate) = (1 - alpha) / (1 + alpha) * sum_y rate^y e^(-rate) / y! * alpha^|r - y|
    d log P(r | rate) / d rate = E[y | r, rate] / rate - 1

Two elementwise PyTensor operations hold the compiled functions behind ``countveil.log_likelihood``: one the
score, the other its derivative. They run in PyTensor's C and Python modes as NumPy calls and in its Numba mode
natively. Its JAX mode does not know them: for NumPyro's samplers write the model with ``countveil.numpyro``.
"""

import functools
import math
from typing import Any

from countveil.distributions._checks import check_alpha
from countveil.extras import install
from countveil.kernels.compiled import elementwise, kernel
from countveil.noise.two_sided_geometric import poisson as laws
from countveil.noise.two_sided_geometric.formulas import censored_log_probability, exposure

try:
    import pymc
    import pytensor.tensor as pt
    from pymc.distributions.dist_math import check_parameters
    from pytensor.gradient import grad_undefined
    from pytensor.graph.basic import Constant
    from pytensor.scalar.basic import ScalarOp, upgrade_to_float
    from pytensor.tensor.elemwise import Elemwise
except ImportError as missing:
    raise ImportError(f"countveil.pymc needs PyMC: {install('pymc')}") from missing
except (OSError, RuntimeError) as error:
    raise ImportError(
        f"PyMC keeps files in the home directory: set HOME to a folder that you can write to ({error})"
    ) from error

__all__ = ["PrivatizedPoisson"]


@kernel
def _score(r: Any, rate: Any, alpha: Any) -> float:
    """log P(r | rate, alpha); NaN, not an endless sum, where a sampler proposes impossible values."""
    if not (rate >= 0.0 and 0.0 <= alpha < 1.0):
        return math.nan
    if math.isinf(rate):
        return -math.inf
    return laws.report_logpmf(r, rate, alpha)


@kernel
def _slope(r: Any, rate: Any, alpha: Any) -> float:
    """E[y | r, rate, alpha] / rate - 1."""
    if not (0.0 <= rate < math.inf and 0.0 <= alpha < 1.0):
        return math.nan
    if r <= 0:
        return alpha - 1.0
    if alpha > 0.0:
        return laws.expected_count_ratio(r, rate, alpha) - 1.0
    return r / rate - 1.0 if rate > 0.0 else math.inf


@elementwise
def _score_each(r: Any, rate: Any, alpha: Any) -> Any:
    return _score(r, rate, alpha)


@elementwise
def _slope_each(r: Any, rate: Any, alpha: Any) -> Any:
    return _slope(r, rate, alpha)


class _ReportOp(ScalarOp):
    """A compiled function of one (report, rate, alpha); ``nfunc_spec`` names the same for whole arrays."""

    nin = 3
    compiled: Any

    def __init__(self) -> None:
        super().__init__(upgrade_to_float, name=type(self).__name__.strip("_"))

    def impl(self, r: Any, rate: Any, alpha: Any) -> Any:
        return self.compiled(r, rate, alpha)

    def c_code(self, *_: Any) -> str:
        raise NotImplementedError


class _Slope(_ReportOp):
    nfunc_spec = ("countveil.pymc._slope_each", 3, 1)
    compiled = staticmethod(_slope)


class _Score(_ReportOp):
    nfunc_spec = ("countveil.pymc._score_each", 3, 1)
    compiled = staticmethod(_score)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        r, _, alpha = inputs
        in_rate = cotangents[0] * SLOPE(*inputs)
        known = "the reports and their noise level are known"
        return [grad_undefined(self, 0, r, known), in_rate, grad_undefined(self, 2, alpha, known)]

    def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:  # noqa: N802
        return self.pullback(inputs, outputs, output_grads)  # the name before PyTensor 3


SLOPE, SCORE = _Slope(), _Score()
score_reports = Elemwise(SCORE)


def _compile_for_numba(op: _ReportOp, node: Any = None, **_: Any) -> Any:
    return op.compiled, None


try:  # PyTensor's Numba mode, from its version 2.36 on; an older one calls the array functions
    from pytensor.link.numba.dispatch.basic import register_funcify_and_cache_key
except ImportError:
    pass
else:
    register_funcify_and_cache_key(_ReportOp)(_compile_for_numba)


def _logp(value: Any, rate: Any, alpha: Any, truncated: bool) -> Any:
    score = score_reports(value, rate, alpha)
    if truncated:
        score = pt.switch(value > 0, score, censored_log_probability(rate, alpha, pt.log1p))
        score = pt.switch(value < 0, -math.inf, score)
    rule = "rate must be non-negative, alpha must be in [0, 1)"
    return check_parameters(score, rate >= 0, alpha >= 0, alpha < 1, msg=rule)


def _draw(rate: Any, alpha: Any, size: Any, truncated: bool) -> Any:
    counts = pymc.Poisson.dist(rate, size=size)
    there = pymc.Geometric.dist(exposure(alpha), size=size)
    back = pymc.Geometric.dist(exposure(alpha), size=size)
    reports = counts + there - back
    return pt.maximum(reports, 0) if truncated else reports


def _parts(rate: Any, alpha: Any, truncated: bool) -> tuple[tuple[Any, Any], dict[str, Any]]:
    rate, alpha = pt.as_tensor_variable(rate), pt.as_tensor_variable(alpha)
    if isinstance(alpha, Constant):
        check_alpha(alpha.data)
    rate, alpha = (x if x.dtype.startswith("float") else x.astype("floatX") for x in (rate, alpha))
    functions = {"logp": _logp, "dist": _draw}
    both = {name: functools.partial(f, truncated=truncated) for name, f in functions.items()}
    return (rate, alpha), {**both, "class_name": "PrivatizedPoisson"}


class PrivatizedPoisson:
    """A report: a Poisson count of the given rate plus two-sided geometric noise of level alpha.

    P(r | rate) = (1 - alpha) / (1 + alpha) * sum_y rate^y e^(-rate) / y! * alpha^|r - y|

    Put it where a model of exact counts has ``pymc.Poisson``. Its log-probability is differentiable in the
    rate, by E[y | r, rate] / rate - 1, so that NUTS needs no true counts; alpha is public and known, and a
    derivative in it is refused. With ``truncated=True`` it is the law of max(r, 0): a report of zero then
    scores log P(r <= 0 | rate), which differs from the signed score by a constant in the rate.

    Args:
        name: of the variable in the model around it; ``PrivatizedPoisson.dist`` has none, and needs no model.
        rate: positive; any shape that broadcasts with alpha.
        alpha: noise level in [0, 1); 0 makes it a Poisson distribution.
        truncated: reports were released as max(r, 0).
        kwargs: ``observed``, ``shape``, ``dims`` and whatever else a PyMC distribution takes.

    Raises ValueError: alpha outside [0, 1). Source: Schein et al. (2019), with the count summed out.

    >>> law = PrivatizedPoisson.dist(1.0, 0.5)
    >>> pymc.logp(law, [-2, 0, 3]).eval().round(4).tolist()
    [-2.9849, -1.5986, -2.3035]
    """

    def __new__(cls, name: str, rate: Any, alpha: Any, *, truncated: bool = False, **kwargs: Any) -> Any:
        """The variable of this name, in the model around it."""
        parameters, parts = _parts(rate, alpha, truncated)
        return pymc.CustomDist(name, *parameters, **parts, **kwargs)

    @classmethod
    def dist(cls, rate: Any, alpha: Any, *, truncated: bool = False, **kwargs: Any) -> Any:
        """The same without a name, for ``pymc.draw`` and ``pymc.logp``."""
        parameters, parts = _parts(rate, alpha, truncated)
        return pymc.CustomDist.dist(*parameters, **parts, **kwargs)
