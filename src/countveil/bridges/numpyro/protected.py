"""Scores of reports under any mechanism, for NumPyro: differentiable in what their counts depend on.

    log P(r) = log sum_y P(y) P(r | y)
    d log P(r) / d rate = E[y | r] / rate - 1,   y Poisson

The sums are those of ``countveil.log_likelihood``, compiled by Numba, and JAX calls them on the host.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from countveil.bridges.protected_counts import Scores, scores_of
from countveil.privacy.mechanisms import Mechanism

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
