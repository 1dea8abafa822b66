"""The law of a report for NumPyro: a negative binomial count plus two-sided geometric noise.

    P(r) = (1 - alpha) / (1 + alpha) * sum_y NB(y | mean, concentration) alpha^|r - y|
    d log P(r) / d mean = s / (mean + s) (E[y | r] / mean - 1),   s = concentration
    d log P(r) / d s = E[bursts | r] / s - log(1 + mean / s) - (E[y | r] - mean) / (mean + s)

Everything is JAX, so models run under jit, vmap and grad. The sums over counts are those of
``laws.noise.two_sided_geometric.negative_binomial_sums``: up to four runs of falling weights, for all reports at
once, until no run adds anything. The work therefore grows with the count's standard deviation, and all reports take
as many steps as the longest. In double precision (``numpyro.enable_x64()``) the result agrees with
``countveil.log_likelihood`` to about 1e-11; in single precision it is off by up to 1e-3 where counts are large.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jax.scipy.special import digamma, gammaln, xlogy
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import promote_shapes, validate_sample
from numpyro.util import is_prng_key

from countveil.bridges.numpyro.poisson import HALF_LOG_TWO_PI, WHOLE_NUMBERS, _poisson_deviance, reports_of
from countveil.distributions._checks import check_alpha
from countveil.laws.noise.two_sided_geometric import formulas
from countveil.laws.noise.two_sided_geometric.formulas import exposure

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


def _stirling_error(x: Array) -> Array:
    """log Gamma(x + 1) - log(sqrt(2 pi x) (x/e)^x) for x > 0."""
    near = jnp.minimum(x, 15.0)
    small = gammaln(near + 1.0) - (near + 0.5) * jnp.log(near) + near - HALF_LOG_TWO_PI
    s = 1.0 / (x * x)
    large = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - s / 1188) * s) * s) * s) / x
    return jnp.where(x <= 15.0, small, large)


def _negative_binomial_logpmf(n: Array, mean: Array, s: Array) -> Array:
    """log NB(n; s, p), p = mean / (mean + s), by the saddle point (Loader 2000)."""
    x, size = jnp.maximum(n, 1.0), s + jnp.maximum(n, 1.0)
    near = _stirling_error(size) - _stirling_error(s) - _stirling_error(x)
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


def _score_and_gradients(r: Array, mean: Array, s: Array, alpha: Array) -> tuple[Array, Array, Array]:
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
    return (
        jnp.where(positive, jnp.where(noisy, log_constant + total, exact), not_positive),
        jnp.where(positive, in_mean, -exposure(alpha) / (1.0 + unseen)),
        jnp.where(positive, in_s, unseen / (1.0 + unseen) - jnp.log1p(unseen)),
    )


@jax.custom_jvp
def _log_prob(r: Array, mean: Array, s: Array, alpha: Array) -> Array:
    """log P(r | mean, s, alpha)."""
    return _score_and_gradients(r, mean, s, alpha)[0]


def _log_prob_jvp(primals: tuple[Array, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
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


_log_prob.defjvp(_log_prob_jvp, symbolic_zeros=True)
_compiled_log_prob = jax.jit(_log_prob)


class PrivatizedNegativeBinomial(Distribution):
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
    pytree_aux_fields = ("truncated",)

    def __init__(
        self,
        mean: ArrayLike,
        concentration: ArrayLike,
        alpha: ArrayLike,
        *,
        truncated: bool = False,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(alpha, jax.core.Tracer):
            check_alpha(np.asarray(alpha))
        self.count_mean, self.concentration, self.alpha = promote_shapes(mean, concentration, alpha)
        self.truncated = truncated
        shape = lax.broadcast_shapes(*(jnp.shape(x) for x in (mean, concentration, alpha)))
        super().__init__(batch_shape=shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """All whole numbers; from zero on where truncated."""
        return constraints.nonnegative_integer if self.truncated else WHOLE_NUMBERS

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Reports of shape sample_shape + batch_shape: seeded, for simulation, not for privacy."""
        if not is_prng_key(key):
            raise TypeError(f"key must be a JAX random key, got {type(key).__name__}")
        size_key, count_key, noise_key = random.split(key, 3)
        shape = tuple(sample_shape) + self.batch_shape
        sizes = random.gamma(size_key, self.concentration, shape) / self.concentration
        counts = random.poisson(count_key, self.count_mean * sizes, shape)
        return reports_of(counts, self.alpha, noise_key, self.truncated)

    @validate_sample
    def log_prob(self, value: ArrayLike) -> Array:
        """log P(value | mean, concentration, alpha), of the shape that value and the batch broadcast to."""
        r, mean, s, alpha = self._floats(value)
        if not self.truncated:
            return _compiled_log_prob(r, mean, s, alpha)
        censored = _log_unseen(mean, s, alpha) + formulas.censored_log_probability(0.0, alpha, jnp.log1p)
        return jnp.where(r > 0.0, _compiled_log_prob(r, mean, s, alpha), censored)

    @property
    def mean(self) -> Array:
        """E[r] = mean; truncated, more by E[alpha^count] alpha / (1 - alpha^2)."""
        _, mean, s, alpha = self._floats(0.0)
        return mean + jnp.exp(_log_unseen(mean, s, alpha)) * formulas.excess(alpha) if self.truncated else mean

    @property
    def variance(self) -> Array:
        """Var[r] = mean + mean^2 / concentration + 2 alpha / (1 - alpha)^2; truncated, what max(r, 0) keeps of it."""
        _, mean, s, alpha = self._floats(0.0)
        of_count, noise = mean + mean**2 / s, formulas.variance(alpha)
        if not self.truncated:
            return of_count + noise
        lost = 0.5 * jnp.exp(_log_unseen(mean, s, alpha)) * noise
        return of_count + mean**2 + noise - lost - self.mean**2

    def _floats(self, value: ArrayLike) -> list[Array]:
        """(value, mean, concentration, alpha) as floating-point arrays of one shape."""
        dtype = jnp.result_type(float)
        parameters = self.count_mean, self.concentration, self.alpha
        return jnp.broadcast_arrays(*(jnp.asarray(x, dtype) for x in (value, *parameters)))
