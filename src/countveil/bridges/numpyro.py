"""The laws of reports for NumPyro, with gradients: in a model of exact counts they replace NumPyro's own laws.

A Poisson count plus two-sided geometric noise:

    P(r | rate) = (1 - alpha) / (1 + alpha) * sum_y rate^y e^(-rate) / y! * alpha^|r - y|
    d log P(r | rate) / d rate = E[y | r, rate] / rate - 1

A negative binomial count plus this noise:

    P(r) = (1 - alpha) / (1 + alpha) * sum_y NB(y | mean, concentration) alpha^|r - y|
    d log P(r) / d mean = s / (mean + s) (E[y | r] / mean - 1),   s = concentration
    d log P(r) / d s = E[bursts | r] / s - log(1 + mean / s) - (E[y | r] - mean) / (mean + s)

Both are JAX, so models run under jit, vmap and grad. In double precision (``numpyro.enable_x64()``) they agree with
``countveil.log_likelihood`` to about 1e-13 and 1e-11. In single precision the first is off by up to 1e-5 where reports
are below 30, and up to 5e-4 beyond, the second by up to 1e-3 where counts are large.

Scores of reports under any mechanism: the sums of ``countveil.log_likelihood``, compiled by Numba, which JAX calls on
the host.
"""

import functools
import math
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from countveil.bridges.protected_counts import Scores, scores_of
from countveil.common.arrays import check_alpha
from countveil.common.extras import install
from countveil.laws.noise.two_sided_geometric import formulas
from countveil.laws.noise.two_sided_geometric.formulas import exposure
from countveil.privacy.mechanisms import Mechanism

try:
    import jax
    import jax.numpy as jnp
    from jax import Array, lax, random
    from jax.scipy.special import digamma, gammaln, xlogy
    from jax.typing import ArrayLike
    from numpyro.distributions import Distribution, constraints
    from numpyro.distributions.util import promote_shapes, validate_sample
    from numpyro.util import is_prng_key
except ImportError as missing:
    raise ImportError(f"countveil.bridges.numpyro needs NumPyro: {install('numpyro')}") from missing

__all__ = ["PrivatizedNegativeBinomial", "PrivatizedPoisson", "negative_binomial_score", "poisson_score"]


class _WholeNumbers(constraints.Constraint[Any]):
    """..., -2, -1, 0, 1, 2, ..."""

    is_discrete = True
    event_dim = 0

    def __call__(self, x: Any) -> Any:
        return x == jnp.floor(x)

    def feasible_like(self, prototype: Any) -> Any:
        return jnp.zeros_like(prototype)

    def tree_flatten(self) -> tuple[tuple[()], tuple[tuple[()], dict[str, Any]]]:
        return (), ((), {})

    def eq(self, other: object, static: bool = False) -> bool:
        return isinstance(other, _WholeNumbers)


WHOLE_NUMBERS = _WholeNumbers()


class _PrivatizedCount(Distribution):
    """What reports with this noise have in common, whatever the law of their counts.

    Parameters are those of ``arg_constraints`` in its order, alpha last.
    """

    pytree_aux_fields = ("truncated",)
    _n_keys: ClassVar[int]  # random keys: those that counts take, and one for the noise

    def __init__(self, *parameters: ArrayLike, truncated: bool, validate_args: bool | None) -> None:
        if not isinstance(parameters[-1], jax.core.Tracer):
            check_alpha(np.asarray(parameters[-1]))
        for name, value in zip(self.arg_constraints, promote_shapes(*parameters), strict=True):
            setattr(self, name, value)
        self.truncated = truncated
        super().__init__(batch_shape=lax.broadcast_shapes(*map(jnp.shape, parameters)), validate_args=validate_args)

    def _score(self, r: Array, *parameters: Array) -> Array:
        """log P(r), for floating-point arrays of one shape."""
        raise NotImplementedError

    def _of_count(self, *parameters: Array) -> tuple[Array, Array, Array]:
        """(E[y], Var[y], log E[alpha^y]) of the count y, given all parameters."""
        raise NotImplementedError

    def _counts(self, keys: list[Any], shape: tuple[int, ...]) -> Array:
        """Draws of the count."""
        raise NotImplementedError

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """All whole numbers; from zero on where truncated."""
        return constraints.nonnegative_integer if self.truncated else WHOLE_NUMBERS

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Reports of shape sample_shape + batch_shape: seeded, for simulation, not for privacy."""
        if not is_prng_key(key):
            raise TypeError(f"key must be a JAX random key, got {type(key).__name__}")
        *keys, noise_key = random.split(key, self._n_keys)
        counts = self._counts(keys, tuple(sample_shape) + self.batch_shape)
        waits = random.exponential(noise_key, (2, *counts.shape), jnp.result_type(float))
        there, back = jnp.floor(waits / -jnp.log(self.alpha)).astype(counts.dtype)
        reports = counts + there - back
        return jnp.maximum(reports, 0) if self.truncated else reports

    @validate_sample
    def log_prob(self, value: ArrayLike) -> Array:
        """log P(value) at the parameters, of the shape that value and the batch broadcast to."""
        r, *parameters = self._floats(value)
        score = self._score(r, *parameters)
        if not self.truncated:
            return score
        none = self._of_count(*parameters)[2] + formulas.censored_log_probability(0.0, parameters[-1], jnp.log1p)
        return jnp.where(r > 0.0, score, none)

    @property
    def mean(self) -> Array:
        """E[r] = E[y]; truncated, more by E[alpha^y] alpha / (1 - alpha^2)."""
        _, *parameters = self._floats(0.0)
        mean, _, log_none = self._of_count(*parameters)
        return mean + jnp.exp(log_none) * formulas.excess(parameters[-1]) if self.truncated else mean

    @property
    def variance(self) -> Array:
        """Var[r] = Var[y] + 2 alpha / (1 - alpha)^2; truncated, what max(r, 0) keeps of it."""
        _, *parameters = self._floats(0.0)
        mean, of_count, log_none = self._of_count(*parameters)
        noise = formulas.variance(parameters[-1])
        if not self.truncated:
            return of_count + noise
        return of_count + mean**2 + noise - 0.5 * jnp.exp(log_none) * noise - self.mean**2

    def _floats(self, value: ArrayLike) -> list[Array]:
        """The value and all parameters as floating-point arrays of one shape."""
        dtype, parameters = jnp.result_type(float), (getattr(self, name) for name in self.arg_constraints)
        return jnp.broadcast_arrays(*(jnp.asarray(x, dtype) for x in (value, *parameters)))


# Poisson counts. The two partial sums of their weights on either side of a report are computed as integrals of a smooth
# function by a Gauss-Legendre rule of fixed size, wherever the report lies: no loop whose length depends on the data.

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
EXACT_STIRLING_ERRORS = np.array(
    [0.0] + [math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - HALF_LOG_TWO_PI for n in range(1, 16)]
)
# The number of nodes trades speed for precision; 24 give the 1e-13 stated above.
LEGENDRE = np.polynomial.legendre.leggauss(24)
NODES, WEIGHTS = 0.5 * (LEGENDRE[0] + 1.0), 0.5 * LEGENDRE[1]
CUTOFF = 36.0  # integrands are followed down to e^-36 of their peak, about 2e-16


def _stirling_error(n: Array) -> Array:
    """log n! - log(sqrt(2 pi n) (n/e)^n) for n >= 1."""
    small = jnp.asarray(EXACT_STIRLING_ERRORS, n.dtype)[jnp.clip(n, 1, 15).astype(int)]
    s = 1.0 / (n * n)
    large = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - s / 1188) * s) * s) * s) / n
    return jnp.where(n <= 15, small, large)


def _poisson_deviance(n: Array, rate: Array) -> Array:
    """n log(n/rate) + rate - n, without cancellation where n is close to the rate (n > 0, rate > 0)."""
    gap = n - rate
    d = gap / (n + rate)
    near = jnp.abs(d) <= 0.1
    d = jnp.where(near, d, 0.0)
    series = jnp.polyval(jnp.asarray([1.0 / j for j in range(17, 1, -2)] + [0.0], n.dtype), d * d)
    far = n * (jnp.log(n) - jnp.log(rate)) - gap
    return jnp.where(near, gap * d + 2.0 * n * d * series, far)


def _poisson_logpmf(n: Array, rate: Array) -> Array:
    """log of rate^n e^-rate / n! for n >= 1, by the saddle-point expansion (Loader 2000)."""
    return -HALF_LOG_TWO_PI - 0.5 * jnp.log(n) - _stirling_error(n) - _poisson_deviance(n, rate)


def _partial_sum(above: Array, r: Array, x: Array) -> Array:
    """Poisson(x) mass above r, or below r, over its mass at r; r >= 1, x <= r + 1 above and x >= r below.

    above:  sum_{j>=1}    x^j / ((r+1) ... (r+j))       = x * int_0^1   e^(xz) (1-z)^r      dz
    below:  sum_{j=1..r}  r (r-1) ... (r-j+1) / x^j     = r * int_0^inf e^(-xz) (1+z)^(r-1) dz

    The integrands fall from z = 0 on like something between an exponential and half a Gaussian; the end of the
    interval is where a quadratic bound of their logarithm reaches -CUTOFF.
    """
    power = jnp.where(above, r, r - 1.0)
    drift = x - r
    root = jnp.sqrt(drift * drift + 2.0 * r * CUTOFF)
    end_above = jnp.minimum(1.0, jnp.where(drift > 0.0, (root + drift) / r, 2.0 * CUTOFF / (root - drift)))
    t, q = CUTOFF / x, power / x
    drift = 4.0 * t - 6.0 * (1.0 - q)
    root = jnp.sqrt(drift * drift + 24.0 * t * (4.0 - q))
    end_below = jnp.where(drift > 0.0, (root + drift) / (8.0 - 2.0 * q), 12.0 * t / (root - drift))
    end = lax.stop_gradient(jnp.where(above, end_above, end_below))
    sign = jnp.where(above, 1.0, -1.0)
    z = end[..., None] * jnp.asarray(NODES, x.dtype)
    exponent = (sign * x)[..., None] * z + power[..., None] * jnp.log1p(-sign[..., None] * z)
    return jnp.where(above, x, r) * end * (jnp.asarray(WEIGHTS, x.dtype) * jnp.exp(exponent)).sum(-1)


def _weight_sums(r: Array, rate: Array, alpha: Array) -> tuple[Array, Array, Array, Array]:
    """(log scale, below, at, above): the compiled ``weight_sums`` without branches, all shapes equal."""
    lower, upper = rate / alpha, rate * alpha
    rising, falling = lower < r, upper > r + 1.0
    anchor = jnp.where(rising, lower, jnp.where(falling, upper, rate))
    logpmf = _poisson_logpmf(r, anchor)
    at = jnp.where(rising | falling, jnp.exp(logpmf), 1.0)
    side_lower, side_upper = _partial_sum(jnp.stack([rising, ~falling]), jnp.stack([r, r]), jnp.stack([lower, upper]))
    below = jnp.where(rising, 1.0 - at * (1.0 + side_lower), at * side_lower)
    above = jnp.where(falling, 1.0 - at * (1.0 + side_upper), at * side_upper)
    tilt = r * jnp.log(alpha)
    scale = jnp.where(rising, lower * exposure(alpha) + tilt, -rate * exposure(alpha) - tilt)
    return jnp.where(rising | falling, scale, logpmf), below, at, above


def _safe_weight_sums(r: Array, rate: Array, alpha: Array) -> tuple[Array, Array, Array, Array]:
    """The same for any report and noise level; its values for r <= 0 or alpha = 0 are finite and unused."""
    level = jnp.where(alpha > 0.0, alpha, 0.5)
    least = float(jnp.finfo(rate.dtype).tiny) * 1e4
    return _weight_sums(jnp.maximum(r, 1.0), jnp.clip(rate, least, _greatest(rate) * level), level)


def _greatest(rate: Array) -> float:
    """The rate at which larger ones are capped, so that a rate that overflowed scores badly and not as NaN."""
    return float(jnp.finfo(rate.dtype).max) * 1e-8


@jax.custom_jvp
def _log_prob(r: Array, rate: Array, alpha: Array) -> Array:
    """log P(r | rate, alpha) for floating-point arrays of one shape (mathematics, equations 2.2 and 2.5)."""
    rate = jnp.minimum(rate, _greatest(rate))
    log_constant = formulas.log_normaliser_of(alpha, jnp.log1p)
    scale, below, at, above = _safe_weight_sums(r, rate, alpha)
    noisy = log_constant + scale + jnp.log(below + at + above)
    exact = _poisson_logpmf(jnp.maximum(r, 1.0), rate)
    not_positive = log_constant + xlogy(jnp.abs(r), alpha) - exposure(alpha) * rate
    return jnp.where(r > 0.0, jnp.where(alpha > 0.0, noisy, exact), not_positive)


def _rate_gradient(r: Array, rate: Array, alpha: Array) -> Array:
    """E[y | r, rate, alpha] / rate - 1 (mathematics, equation 2.3); each case has its own denominator."""
    _, below, at, above = _safe_weight_sums(r, rate, alpha)
    level = jnp.where(alpha > 0.0, alpha, 0.5)
    noisy = (1.0 - level) * (below / level - at - above) / (below + at + above)
    exact = r / jnp.where(alpha > 0.0, 1.0, rate) - 1.0
    return jnp.where(r > 0.0, jnp.where(alpha > 0.0, noisy, exact), alpha - 1.0)


def _log_prob_jvp(primals: tuple[Array, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    for name, tangent in (("reports", tangents[0]), ("alpha", tangents[2])):
        if type(tangent) is not jax.custom_derivatives.SymbolicZero:
            raise NotImplementedError(
                f"log_prob is differentiable only in rate, got a derivative in {name}: "
                "alpha and the reports are known, so wrap them in jax.lax.stop_gradient"
            )
    score = _log_prob(*primals)
    if type(tangents[1]) is jax.custom_derivatives.SymbolicZero:
        return score, jnp.zeros_like(score)
    return score, _rate_gradient(*primals) * tangents[1]


_log_prob.defjvp(_log_prob_jvp, symbolic_zeros=True)
_compiled_log_prob = jax.jit(_log_prob)


class PrivatizedPoisson(_PrivatizedCount):
    """A report: a Poisson count of the given rate plus two-sided geometric noise of level alpha.

    P(r | rate) = (1 - alpha) / (1 + alpha) * sum_y rate^y e^(-rate) / y! * alpha^|r - y|

    Put it where a model of exact counts has ``numpyro.distributions.Poisson``. ``log_prob`` is differentiable
    in the rate, by E[y | r, rate] / rate - 1, so that NUTS needs no true counts; alpha is public and known,
    and a derivative in it is refused. With ``truncated=True`` it is the law of max(r, 0): a report of zero
    then scores log P(r <= 0 | rate), which differs from the signed score by a constant in the rate.

    Args:
        rate: positive; any shape that broadcasts with alpha.
        alpha: noise level in [0, 1); 0 makes it a Poisson distribution.
        truncated: reports were released as max(r, 0).
        validate_args: check rate and reports as every NumPyro distribution does.

    Raises ValueError: alpha outside [0, 1). Source: Schein et al. (2019), with the count summed out.

    >>> import numpyro
    >>> numpyro.enable_x64()
    >>> PrivatizedPoisson(1.0, 0.5).log_prob(np.array([-2, 0, 3])).round(4).tolist()
    [-2.9849, -1.5986, -2.3035]
    """

    arg_constraints = {"rate": constraints.nonnegative, "alpha": constraints.unit_interval}  # noqa: RUF012
    _n_keys = 2

    def __init__(
        self, rate: ArrayLike, alpha: ArrayLike, *, truncated: bool = False, validate_args: bool | None = None
    ) -> None:
        super().__init__(rate, alpha, truncated=truncated, validate_args=validate_args)

    def _score(self, r: Array, *parameters: Array) -> Array:
        return _compiled_log_prob(r, *parameters)

    def _of_count(self, *parameters: Array) -> tuple[Array, Array, Array]:
        rate, alpha = parameters
        return rate, rate, -exposure(alpha) * rate

    def _counts(self, keys: list[Any], shape: tuple[int, ...]) -> Array:
        return random.poisson(keys[0], self.rate, shape)


# Negative binomial counts. The sums over counts are those of
# ``laws.noise.two_sided_geometric.negative_binomial_sums``: up to four runs of falling weights, for all reports at
# once, until no run adds anything. The work therefore grows with the count's standard deviation, and all reports take
# as many steps as the longest.

LEAST, GREATEST_CONCENTRATION, GREATEST_MEAN = 1e-30, 1e15, 1e12  # beyond, scores stay those at the end
STEPS = 2  # of all runs, before whether they have ended is asked again; more compile for longer


class _Run(NamedTuple):
    """Falling weights from ``first`` to ``last``, upwards or downwards, with ratios x (s + y - 1) / y."""

    first: Array
    last: Array
    up: bool
    x: Array
    tilt: Array  # the weight of y is NB(y) e^((y - r) tilt)
    exists: Any


def _stirling_error_of_real(x: Array) -> Array:
    """log Gamma(x + 1) - log(sqrt(2 pi x) (x/e)^x) for x > 0."""
    near = jnp.minimum(x, 15.0)
    small = gammaln(near + 1.0) - (near + 0.5) * jnp.log(near) + near - HALF_LOG_TWO_PI
    s = 1.0 / (x * x)
    large = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - s / 1188) * s) * s) * s) / x
    return jnp.where(x <= 15.0, small, large)


def _negative_binomial_logpmf(n: Array, mean: Array, s: Array) -> Array:
    """log NB(n; s, p), p = mean / (mean + s), by the saddle point (Loader 2000)."""
    x, size = jnp.maximum(n, 1.0), s + jnp.maximum(n, 1.0)
    near = _stirling_error_of_real(size) - _stirling_error_of_real(s) - _stirling_error_of_real(x)
    far = _poisson_deviance(s, size * (s / (mean + s))) + _poisson_deviance(x, size * (mean / (mean + s)))
    return jnp.where(n > 0.0, 0.5 * jnp.log(s / (size * x)) - HALF_LOG_TWO_PI + near - far, -s * jnp.log1p(mean / s))


def _expected_bursts(n: Array, s: Array) -> Array:
    """s (digamma(s + n) - digamma(s)), the mean number of bursts of a count n of NB(s, p)."""
    few = 1.0 + s * (digamma(s + n) - digamma(s + 1.0))
    end, wide = s + n, jnp.maximum(s, 1.0)
    square = 1.0 / (wide * wide) - 1.0 / (end * end)
    series = n / (2.0 * wide * end) + square / 12.0 - square * (1.0 / (wide * wide) + 1.0 / (end * end)) / 120.0
    many = s * (jnp.log1p(n / wide) + series)
    found = jnp.where(s < 1.0, few, jnp.where(s < 100.0, s * (digamma(s + n) - digamma(s)), many))
    return jnp.where(n > 0.0, found, 0.0)


def _runs(r: Array, mean: Array, s: Array, alpha: Array) -> list[_Run]:
    """The runs of the weights of all counts, given positive reports."""
    p, one_mode, log_alpha = mean / (mean + s), s >= 1.0, jnp.log(alpha)
    x, least, none = p / alpha, jnp.zeros_like(r), jnp.full_like(r, jnp.inf)
    gap = jnp.where(x < 1.0, 1.0 - x, 1.0)
    mode = jnp.where(x < 1.0, jnp.clip(jnp.floor(x * (s - 1.0) / gap), 0.0, r), r)
    gap = jnp.where(x > 1.0, x - 1.0, 1.0)
    turn = jnp.where(x > 1.0, jnp.clip(jnp.floor(x * (1.0 - s) / gap), 0.0, r), r)
    split = jnp.where(one_mode, mode, turn)
    upper = p * alpha
    peak = jnp.where(one_mode, jnp.maximum(r + 1.0, jnp.floor(upper * (s - 1.0) / (1.0 - upper))), r + 1.0)
    return [
        _Run(jnp.where(one_mode, split, r), jnp.where(one_mode, least, split + 1.0), False, x, -log_alpha,
             one_mode | (split < r)),
        _Run(jnp.where(one_mode, split + 1.0, least), jnp.where(one_mode, r, split), True, x, -log_alpha,
             ~one_mode | (split < r)),
        _Run(peak, none, True, upper, log_alpha, jnp.ones_like(one_mode)),
        _Run(peak - 1.0, r + 1.0, False, upper, log_alpha, peak - 1.0 >= r + 1.0),
    ]  # fmt: skip


def _sums(runs: list[_Run], s: Array) -> Array:
    """(3, runs, ...) sums of each run's weights, of weights times counts and times expected bursts, over its first."""
    y, last, x = (jnp.stack([getattr(run, name) for run in runs]) for name in ("first", "last", "x"))
    up = jnp.array([run.up for run in runs]).reshape(-1, *(1,) * s.ndim)
    step, negligible = jnp.where(up, 1.0, -1.0), float(jnp.finfo(s.dtype).eps) / 200.0
    burst, active = _expected_bursts(y, s), jnp.stack([run.exists & (run.first != run.last) for run in runs])
    sums = jnp.stack([jnp.ones_like(y), y, burst])

    def move(state: tuple[Array, ...]) -> tuple[Array, ...]:
        y, weight, burst, sums, active = state
        above = jnp.maximum(jnp.where(up, y + 1.0, y), 1.0)  # the greater one of two neighbours
        ratio = x * (s + (above - 1.0)) / above
        ratio = jnp.where(up, ratio, 1.0 / ratio)
        y, weight, burst = y + step, weight * ratio, jnp.maximum(burst + step * s / (s + (above - 1.0)), 0.0)
        sums = jnp.where(active, sums + weight * jnp.stack([jnp.ones_like(y), y, burst]), sums)
        most = jnp.where(s < 1.0, jnp.where(up, jnp.maximum(ratio, x), 1.0), ratio)
        tail = jnp.where(most < 1.0, most / jnp.where(most < 1.0, 1.0 - most, 1.0), jnp.inf)
        rest = jnp.where(weight > 0.0, weight * jnp.minimum(jnp.abs(last - y), tail), 0.0)
        active = active & (y != last) & ~(rest <= negligible * jnp.minimum(sums[0], sums[2]))
        return y, weight, burst, sums, active

    start = y, jnp.ones_like(y), burst, sums, active
    several = lambda state: functools.reduce(lambda state, _: move(state), range(STEPS), state)  # noqa: E731
    return lax.while_loop(lambda state: state[-1].any(), several, start)[3]


def _positive(r: Array, mean: Array, s: Array, alpha: Array) -> tuple[Array, Array, Array]:
    """(log of the sum of NB(y) alpha^|r - y|, E[y | r], E[bursts | r]), given positive reports and 0 < alpha."""
    runs = _runs(r, mean, s, alpha)
    found = _sums(runs, s)
    first, tilt, exists = (jnp.stack([getattr(run, name) for run in runs]) for name in ("first", "tilt", "exists"))
    log_first = _negative_binomial_logpmf(first, mean, s) + (first - r) * tilt
    log_first = jnp.where(exists, log_first, -jnp.inf)
    top = log_first.max(axis=0)
    total, counts, bursts = (jnp.exp(log_first - top) * found).sum(axis=1)
    return top + jnp.log(total), counts / total, bursts / total


def _within(r: Array, mean: Array, s: Array, alpha: Array) -> tuple[Array, ...]:
    """Arguments at which the sums of ``_positive`` are finite and end; where they are used, they are as given."""
    usual = (r > 0.0) & (alpha > 0.0)
    mean = jnp.where(jnp.isnan(mean), 1.0, jnp.clip(mean, LEAST, GREATEST_MEAN))
    s = jnp.where(jnp.isnan(s), 1.0, jnp.clip(s, LEAST, GREATEST_CONCENTRATION))
    values = jnp.maximum(r, 1.0), mean, s, jnp.where(alpha > 0.0, alpha, 0.5)
    return tuple(jnp.where(usual, x, one) for x, one in zip(values, (1.0, 1.0, 1.0, 0.5), strict=True))


def _log_unseen(mean: Array, s: Array, alpha: Array) -> Array:
    """log E[alpha^count], which is log P(r <= 0) at a mean above zero less that at zero."""
    return -s * jnp.log1p(exposure(alpha) * mean / s)


def _score_and_gradients(r: Array, mean: Array, s: Array, alpha: Array) -> tuple[Array, ...]:
    """(log P(r | mean, s, alpha), its derivative in the mean, that in s) for floating-point arrays of one shape."""
    mean, s = jnp.clip(mean, 0.0, GREATEST_MEAN), jnp.clip(s, LEAST, GREATEST_CONCENTRATION)
    total, counts, bursts = _positive(*_within(r, mean, s, alpha))
    positive, noisy, some = r > 0.0, alpha > 0.0, jnp.maximum(mean, LEAST)
    exact = _negative_binomial_logpmf(jnp.maximum(r, 1.0), some, s)
    counts = jnp.where(noisy, counts, r)
    bursts = jnp.where(noisy, bursts, _expected_bursts(jnp.maximum(r, 1.0), s))
    log_constant = formulas.log_normaliser_of(alpha, jnp.log1p)
    unseen = exposure(alpha) * mean / s
    not_positive = log_constant + xlogy(jnp.abs(r), alpha) + _log_unseen(mean, s, alpha)
    in_mean = s / (mean + s) * (counts / some - 1.0)
    in_s = bursts / s - jnp.log1p(mean / s) - (counts - mean) / (mean + s)
    found = (
        jnp.where(positive, jnp.where(noisy, log_constant + total, exact), not_positive),
        jnp.where(positive, in_mean, -exposure(alpha) / (1.0 + unseen)),
        jnp.where(positive, in_s, unseen / (1.0 + unseen) - jnp.log1p(unseen)),
    )
    unknown = jnp.isnan(mean) | jnp.isnan(s)  # sums have used other numbers in their place
    return tuple(jnp.where(unknown, jnp.nan, each) for each in found)


@jax.custom_jvp
def _bursty_log_prob(r: Array, mean: Array, s: Array, alpha: Array) -> Array:
    """log P(r | mean, s, alpha)."""
    return _score_and_gradients(r, mean, s, alpha)[0]


def _bursty_log_prob_jvp(primals: tuple[Array, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    zero = jax.custom_derivatives.SymbolicZero
    for name, tangent in (("reports", tangents[0]), ("alpha", tangents[3])):
        if type(tangent) is not zero:
            raise NotImplementedError(
                f"log_prob is differentiable only in mean and concentration, got a derivative in {name}: "
                "alpha and the reports are known, so wrap them in jax.lax.stop_gradient"
            )
    score, *slopes = _score_and_gradients(*primals)
    moved = jnp.zeros_like(score)
    for slope, tangent in zip(slopes, tangents[1:3], strict=True):
        moved = moved if type(tangent) is zero else moved + slope * tangent
    return score, moved


_bursty_log_prob.defjvp(_bursty_log_prob_jvp, symbolic_zeros=True)
_compiled_bursty_log_prob = jax.jit(_bursty_log_prob)


class PrivatizedNegativeBinomial(_PrivatizedCount):
    """A report: a negative binomial count plus two-sided geometric noise of level alpha.

    P(r) = (1 - alpha) / (1 + alpha) * sum_y NB(y | mean, concentration) alpha^|r - y|
    Var[y] = mean + mean^2 / concentration

    Put it where a model of exact counts has ``numpyro.distributions.NegativeBinomial2(mean, concentration)``.
    ``log_prob`` is differentiable in both, once; second derivatives are not supported. One concentration for all counts
    is the usual regression. Where it is p that all counts share, so that their variance is 1 / (1 - p) times their
    mean, concentration = mean (1 - p) / p (p is the dispersion of
    ``countveil.distributions.PrivatizedNegativeBinomial``). Otherwise as ``PrivatizedPoisson``.

    Args:
        mean: of the count; non-negative; any shape that broadcasts with the others.
        concentration: positive; the larger, the closer the count is to a Poisson count.
        alpha: noise level in [0, 1); 0 makes it a negative binomial distribution.
        truncated: reports were released as max(r, 0).
        validate_args: check parameters and reports as every NumPyro distribution does.

    Raises ValueError: alpha outside [0, 1).

    >>> import numpyro
    >>> numpyro.enable_x64()
    >>> np.asarray(PrivatizedNegativeBinomial(1.0, 2.0, 0.5).log_prob(np.array([-2, 0, 3]))).round(4).tolist()
    [-2.9312, -1.5449, -2.348]
    """

    arg_constraints = {  # noqa: RUF012
        "count_mean": constraints.nonnegative,
        "concentration": constraints.positive,
        "alpha": constraints.unit_interval,
    }
    _n_keys = 3

    def __init__(
        self,
        mean: ArrayLike,
        concentration: ArrayLike,
        alpha: ArrayLike,
        *,
        truncated: bool = False,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(mean, concentration, alpha, truncated=truncated, validate_args=validate_args)

    def _score(self, r: Array, *parameters: Array) -> Array:
        return _compiled_bursty_log_prob(r, *parameters)

    def _of_count(self, *parameters: Array) -> tuple[Array, Array, Array]:
        mean, s, alpha = parameters
        return mean, mean + mean**2 / s, _log_unseen(mean, s, alpha)

    def _counts(self, keys: list[Any], shape: tuple[int, ...]) -> Array:
        sizes = random.gamma(keys[0], self.concentration, shape) / self.concentration
        return random.poisson(keys[1], self.count_mean * sizes, shape)


# Any mechanism.

FROM_HOST = "broadcast_all"  # under vmap: one call for all


def poisson_score(reports: Any, rate: ArrayLike, mechanism: Mechanism) -> Array:
    """log P(report | rate), where a report is made of a Poisson count of this rate; add it by ``numpyro.factor``.

    Args:
        reports: what was published, NaN where the mechanism leaves a count without a report; known, not traced.
        rate: non-negative; broadcasts against the reports. The score is differentiable in it, once.
        mechanism: one of ``countveil.mechanisms``.

    Raises:
        TypeError: something else than a mechanism.
        ValueError: reports that the mechanism cannot have made.

    >>> import countveil as cv
    >>> import numpyro
    >>> numpyro.enable_x64()
    >>> poisson_score([0.0, np.nan, 12.0], 5.0, cv.mechanisms.Suppression(10)).round(4).tolist()
    [-5.0, -0.0393, -5.674]
    """
    return _scored(scores_of(reports, mechanism), rate)


def negative_binomial_score(reports: Any, mean: ArrayLike, concentration: ArrayLike, mechanism: Mechanism) -> Array:
    """log P(report), where a report is made of a count of this mean with variance mean + mean^2 / concentration.

    It is differentiable in both, once. Otherwise as ``poisson_score``.
    """
    return _scored(scores_of(reports, mechanism), mean, concentration)


def _scored(scores: Scores, *values: ArrayLike) -> Array:
    """In full shape, to which vmap adds axes in front."""
    shape = jnp.broadcast_shapes(scores.shape, *map(jnp.shape, values))
    return _score(scores, *(jnp.broadcast_to(jnp.asarray(value, float), shape) for value in values))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _score(scores: Scores, *values: Array) -> Array:
    return _on_host(scores, values)[0]


@_score.defjvp
def _score_jvp(scores: Scores, values: Any, tangents: Any) -> tuple[Array, Array]:
    score, *slopes = _on_host(scores, values)
    return score, sum(slope * tangent for slope, tangent in zip(slopes, tangents, strict=True))


def _on_host(scores: Scores, values: tuple[Array, ...]) -> tuple[Array, ...]:
    """The score of every report, and its derivative by each of the values."""
    found = jax.ShapeDtypeStruct(values[0].shape, values[0].dtype)
    call = partial(_called, scores)
    return jax.pure_callback(call, (found,) * (1 + len(values)), *values, vmap_method=FROM_HOST)


def _called(scores: Scores, *values: Any) -> tuple[np.ndarray, ...]:
    found = scores(*(np.asarray(value, np.float64) for value in values))
    return tuple(each.astype(values[0].dtype) for each in found)
