"""The laws of reports for PyMC: a Poisson or negative binomial count plus two-sided geometric noise, differentiable.

    P(r | rate) = (1 - alpha) / (1 + alpha) * sum_y P(y | rate) alpha^|r - y|
    d log P(r | rate) / d rate = E[y | r, rate] / rate - 1,   y Poisson

Elementwise PyTensor operations hold the compiled functions behind ``countveil.log_likelihood``: for each law one for
the score, and one for each of its derivatives. They run in PyTensor's C and Python modes as NumPy calls and in its
Numba mode natively. Its JAX mode does not know them: for NumPyro's samplers write the model with
``countveil.bridges.numpyro``.
"""

import functools
import math
from contextlib import suppress
from importlib import import_module
from typing import Any

from countveil.bridges.protected_counts import Scores, scores_of
from countveil.common.arrays import check_alpha
from countveil.common.extras import install
from countveil.kernels.compiled import elementwise, kernel
from countveil.laws.noise.two_sided_geometric import bursty_reports as bursty_laws
from countveil.laws.noise.two_sided_geometric import poisson as laws
from countveil.laws.noise.two_sided_geometric.formulas import censored_log_probability, exposure
from countveil.privacy.mechanisms import Mechanism

try:
    with suppress(ModuleNotFoundError):
        try:
            import_module("arviz")
        except FileNotFoundError:  # another process, importing it too, has renamed the file that both had written
            import_module("arviz")
    import pymc
    import pytensor.tensor as pt
    from pymc.distributions.dist_math import check_parameters
    from pytensor.gradient import DisconnectedType, grad_not_implemented, grad_undefined
    from pytensor.graph.basic import Apply, Constant
    from pytensor.graph.op import Op
    from pytensor.scalar.basic import ScalarOp, upgrade_to_float
    from pytensor.tensor.elemwise import Elemwise
except ImportError as missing:
    raise ImportError(f"countveil.bridges.pymc needs PyMC: {install('pymc')}") from missing
except (OSError, RuntimeError) as error:
    raise ImportError(
        f"PyMC keeps files in the home directory: set HOME to a folder that you can write to ({error})"
    ) from error

__all__ = ["PrivatizedNegativeBinomial", "PrivatizedPoisson", "negative_binomial_score", "poisson_score"]

KNOWN = "the reports and their noise level are known"


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


@kernel
def _possible(mean: Any, concentration: Any, alpha: Any) -> bool:
    """Whether a sampler proposes possible values, whose sums end."""
    return 0.0 <= mean < math.inf and concentration > 0.0 and 0.0 <= alpha < 1.0


@kernel
def _bursty_score(r: Any, mean: Any, concentration: Any, alpha: Any) -> float:
    """log P(r | mean, concentration, alpha); NaN at impossible values."""
    if not _possible(mean, concentration, alpha):
        return -math.inf if mean == math.inf else math.nan
    return bursty_laws.score(r, mean, concentration, alpha)


@kernel
def _mean_slope(r: Any, mean: Any, concentration: Any, alpha: Any) -> float:
    """Its derivative in the mean."""
    if not _possible(mean, concentration, alpha):
        return math.nan
    return bursty_laws.slopes(r, mean, concentration, alpha)[0]


@kernel
def _concentration_slope(r: Any, mean: Any, concentration: Any, alpha: Any) -> float:
    """Its derivative in the concentration."""
    if not _possible(mean, concentration, alpha):
        return math.nan
    return bursty_laws.slopes(r, mean, concentration, alpha)[1]


@elementwise
def _bursty_score_each(r: Any, mean: Any, concentration: Any, alpha: Any) -> Any:
    return _bursty_score(r, mean, concentration, alpha)


@elementwise
def _mean_slope_each(r: Any, mean: Any, concentration: Any, alpha: Any) -> Any:
    return _mean_slope(r, mean, concentration, alpha)


@elementwise
def _concentration_slope_each(r: Any, mean: Any, concentration: Any, alpha: Any) -> Any:
    return _concentration_slope(r, mean, concentration, alpha)


class _ReportOp(ScalarOp):
    """A compiled function of a report, its law's parameters and alpha; ``nfunc_spec`` names the same for arrays."""

    nin = 3
    compiled: Any

    def __init__(self) -> None:
        super().__init__(upgrade_to_float, name=type(self).__name__.strip("_"))

    def impl(self, *values: Any) -> Any:
        return self.compiled(*values)

    def c_code(self, *_: Any) -> str:
        raise NotImplementedError


class _Slope(_ReportOp):
    nfunc_spec = ("countveil.bridges.pymc._slope_each", 3, 1)
    compiled = staticmethod(_slope)


SLOPE = _Slope()


class _Score(_ReportOp):
    nfunc_spec = ("countveil.bridges.pymc._score_each", 3, 1)
    compiled = staticmethod(_score)
    slopes: tuple[_ReportOp, ...] = (SLOPE,)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        slopes = [cotangents[0] * slope(*inputs) for slope in self.slopes]
        last = len(inputs) - 1
        return [grad_undefined(self, 0, inputs[0], KNOWN), *slopes, grad_undefined(self, last, inputs[last], KNOWN)]

    def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:  # noqa: N802
        return self.pullback(inputs, outputs, output_grads)  # the name before PyTensor 3


class _MeanSlope(_ReportOp):
    nin = 4
    nfunc_spec = ("countveil.bridges.pymc._mean_slope_each", 4, 1)
    compiled = staticmethod(_mean_slope)


class _ConcentrationSlope(_ReportOp):
    nin = 4
    nfunc_spec = ("countveil.bridges.pymc._concentration_slope_each", 4, 1)
    compiled = staticmethod(_concentration_slope)


class _BurstyScore(_Score):
    nin = 4
    nfunc_spec = ("countveil.bridges.pymc._bursty_score_each", 4, 1)
    compiled = staticmethod(_bursty_score)
    slopes = (_MeanSlope(), _ConcentrationSlope())


SCORE, BURSTY_SCORE = _Score(), _BurstyScore()
score_reports, score_bursty_reports = Elemwise(SCORE), Elemwise(BURSTY_SCORE)


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


def _bursty_logp(value: Any, mean: Any, concentration: Any, alpha: Any, truncated: bool) -> Any:
    score = score_bursty_reports(value, mean, concentration, alpha)
    if truncated:
        none = -concentration * pt.log1p(exposure(alpha) * mean / concentration)  # log E[alpha^count]
        score = pt.switch(value > 0, score, none + censored_log_probability(0.0, alpha, pt.log1p))
        score = pt.switch(value < 0, -math.inf, score)
    rule = "mean must be non-negative, concentration must be positive, alpha must be in [0, 1)"
    return check_parameters(score, mean >= 0, concentration > 0, alpha >= 0, alpha < 1, msg=rule)


def _draw(rate: Any, alpha: Any, size: Any, truncated: bool) -> Any:
    return _noisy(pymc.Poisson.dist(rate, size=size), alpha, size, truncated)


def _bursty_draw(mean: Any, concentration: Any, alpha: Any, size: Any, truncated: bool) -> Any:
    counts = pymc.NegativeBinomial.dist(mu=mean, alpha=concentration, size=size)
    return _noisy(counts, alpha, size, truncated)


def _noisy(counts: Any, alpha: Any, size: Any, truncated: bool) -> Any:
    there = pymc.Geometric.dist(exposure(alpha), size=size)
    back = pymc.Geometric.dist(exposure(alpha), size=size)
    reports = counts + there - back
    return pt.maximum(reports, 0) if truncated else reports


def _parts(name: str, values: tuple[Any, ...], truncated: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The parameters of a law, alpha last, and what makes it a custom distribution."""
    tensors = tuple(pt.as_tensor_variable(value) for value in values)
    if isinstance(tensors[-1], Constant):
        check_alpha(tensors[-1].data)
    tensors = tuple(x if x.dtype.startswith("float") else x.astype("floatX") for x in tensors)
    logp, draw = (_logp, _draw) if len(tensors) == 2 else (_bursty_logp, _bursty_draw)
    functions = {"logp": logp, "dist": draw}
    both = {key: functools.partial(f, truncated=truncated) for key, f in functions.items()}
    return tensors, {**both, "class_name": name}


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
        parameters, parts = _parts("PrivatizedPoisson", (rate, alpha), truncated)
        return pymc.CustomDist(name, *parameters, **parts, **kwargs)

    @classmethod
    def dist(cls, rate: Any, alpha: Any, *, truncated: bool = False, **kwargs: Any) -> Any:
        """The same without a name, for ``pymc.draw`` and ``pymc.logp``."""
        parameters, parts = _parts("PrivatizedPoisson", (rate, alpha), truncated)
        return pymc.CustomDist.dist(*parameters, **parts, **kwargs)


class PrivatizedNegativeBinomial:
    """A report: a negative binomial count plus two-sided geometric noise of level alpha.

    P(r) = (1 - alpha) / (1 + alpha) * sum_y NB(y | mean, concentration) alpha^|r - y|
    Var[y] = mean + mean^2 / concentration

    Put it where a model of exact counts has ``pymc.NegativeBinomial(mu=mean, alpha=concentration)``. Its
    log-probability is differentiable in both. One concentration for all counts is the usual regression. Where it is p
    that all counts share, so that their variance is 1 / (1 - p) times their mean, concentration = mean (1 - p) / p (p
    is the dispersion of ``countveil.distributions.PrivatizedNegativeBinomial``). Otherwise as ``PrivatizedPoisson``.

    Args:
        name: of the variable in the model around it; ``PrivatizedNegativeBinomial.dist`` has none, and needs no model.
        mean: of the count; non-negative.
        concentration: positive; the larger, the closer the count is to a Poisson count.
        alpha: noise level in [0, 1); 0 makes it a negative binomial distribution.
        truncated: reports were released as max(r, 0).
        kwargs: ``observed``, ``shape``, ``dims`` and whatever else a PyMC distribution takes.

    Raises ValueError: alpha outside [0, 1).

    >>> law = PrivatizedNegativeBinomial.dist(1.0, 2.0, 0.5)
    >>> pymc.logp(law, [-2, 0, 3]).eval().round(4).tolist()
    [-2.9312, -1.5449, -2.348]
    """

    def __new__(
        cls, name: str, mean: Any, concentration: Any, alpha: Any, *, truncated: bool = False, **kwargs: Any
    ) -> Any:
        """The variable of this name, in the model around it."""
        parameters, parts = _parts("PrivatizedNegativeBinomial", (mean, concentration, alpha), truncated)
        return pymc.CustomDist(name, *parameters, **parts, **kwargs)

    @classmethod
    def dist(cls, mean: Any, concentration: Any, alpha: Any, *, truncated: bool = False, **kwargs: Any) -> Any:
        """The same without a name, for ``pymc.draw`` and ``pymc.logp``."""
        parameters, parts = _parts("PrivatizedNegativeBinomial", (mean, concentration, alpha), truncated)
        return pymc.CustomDist.dist(*parameters, **parts, **kwargs)


class _ProtectedScore(Op):
    """Scores of reports under any mechanism, and their derivatives: the outputs after the first."""

    __props__ = ("scores",)

    def __init__(self, scores: Scores) -> None:
        self.scores = scores

    def make_node(self, *values: Any) -> Any:
        out = pt.tensor(dtype="float64", shape=values[0].type.shape)
        return Apply(self, list(values), [out.type() for _ in range(1 + len(values))])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        for storage, found in zip(output_storage, self.scores(*inputs), strict=True):
            storage[0] = found

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        if not all(isinstance(each.type, DisconnectedType) for each in cotangents[1:]):
            return [grad_not_implemented(self, i, value, ONCE) for i, value in enumerate(inputs)]
        return [cotangents[0] * slope for slope in self.make_node(*inputs).outputs[1:]]

    def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:  # noqa: N802
        return self.pullback(inputs, outputs, output_grads)  # the name before PyTensor 3


ONCE = "scores are differentiable once"


def _scored(scores: Scores, *values: Any) -> Any:
    """In full shape."""
    shape = pt.zeros(scores.shape, dtype="float64")
    full = pt.broadcast_arrays(shape, *(pt.as_tensor_variable(value).astype("float64") for value in values))
    return _ProtectedScore(scores).make_node(*full[1:]).outputs[0]


def poisson_score(reports: Any, rate: Any, mechanism: Mechanism) -> Any:
    """log P(report | rate), where a report is made of a Poisson count of this rate; add it by ``pymc.Potential``.

    Args:
        reports: what was published, NaN where the mechanism leaves a count without a report.
        rate: non-negative; broadcasts against the reports. The score is differentiable in it, once.
        mechanism: one of ``countveil.mechanisms``.

    Raises:
        TypeError: something else than a mechanism.
        ValueError: reports that the mechanism cannot have made.

    >>> import countveil as cv
    >>> poisson_score([0.0, math.nan, 12.0], 5.0, cv.mechanisms.Suppression(10)).eval().round(4).tolist()
    [-5.0, -0.0393, -5.674]
    """
    return _scored(scores_of(reports, mechanism), rate)


def negative_binomial_score(reports: Any, mean: Any, concentration: Any, mechanism: Mechanism) -> Any:
    """log P(report), where a report is made of a count of this mean with variance mean + mean^2 / concentration.

    It is differentiable in both, once. Otherwise as ``poisson_score``.
    """
    return _scored(scores_of(reports, mechanism), mean, concentration)
