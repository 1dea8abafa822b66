"""Where fits begin: positive factors near the data, found in several ways.

A start is a function of (observations, model, random generator, engine).
"""

from collections.abc import Callable

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Engine
from countveil.inference.starts.alternating import fit_before_moves, least_squares_start
from countveil.inference.starts.embedding import embeds, spectral_start
from countveil.inference.starts.given import brought_to_seeds
from countveil.inference.starts.multiplicative import exposed_start, multiplicative_start
from countveil.inference.starts.rotating import rotated_start
from countveil.inference.starts.tensors import alternates, tensor_start
from countveil.models.factorization import Factorization

Start = Callable[[Observations, Factorization, np.random.Generator, Engine], Arrays]


def begin(
    start: Start, observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine
) -> Arrays:
    """The factors of a start, its topics brought to their seeds if the model has any.

    Raises:
        FloatingPointError: they are not finite, with which an algorithm might go on for ever.
    """
    factors = start(observations, model, rng, engine)
    for factor, values in zip(model.factors, factors, strict=True):
        if not np.isfinite(values).all():
            name = getattr(start, "__name__", type(start).__name__)
            raise FloatingPointError(f"start must give finite factors, got {factor.name} by {name!r} that is not")
    return brought_to_seeds(model, factors)


def automatic(observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine) -> Arrays:
    """Spectral for a free factor of actors on both sides, else ``least_squares``; with exposures by cell as that."""
    if observations.exposure is not None:
        return exposed_start(observations, model, rng, engine)
    start = spectral_start if embeds(model) else least_squares
    return start(observations, model, rng, engine)


def least_squares(observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine) -> Arrays:
    """Near a nonnegative least-squares fit: of the matrix form if that is a product of two free factors.

    With exposures by cell it is ``exposed_start``.
    """
    if observations.exposure is not None:
        return exposed_start(observations, model, rng, engine)
    if not model.product_of_two:
        start = tensor_start if alternates(model) else multiplicative_start
        return start(observations, model, rng, engine)
    return model.of_matrices(*least_squares_start(observations, model.n_components, rng, engine))


def before_moves(observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine) -> Arrays:
    """``least_squares`` of a product of two with more components than are wanted: sweeps and moves follow."""
    if observations.exposure is not None:
        return exposed_start(observations, model, rng, engine)
    return model.of_matrices(*least_squares_start(observations, model.n_components, rng, engine, fit_before_moves))


def rotated(observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine) -> Arrays:
    """Near rotated singular vectors, of a product of two: where counts are few and the noise is strong."""
    return model.of_matrices(*least_squares_start(observations, model.n_components, rng, engine, rotated_start))


def spectral(observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine) -> Arrays:
    """Communities of actors by ``spectral_start``.

    Raises:
        ValueError: the model has no free factor that both the rows and the columns use, or exposures are by cell.
    """
    if observations.exposure is not None:
        raise ValueError(
            'start must be other than "spectral" for data with an exposure by cell, got "spectral": use "auto"'
        )
    if not embeds(model):
        raise ValueError(
            'start "spectral" needs a factor that rows and columns share and that is not fixed, as a BlockModel has, '
            f'got {model.spec.text!r}: use "auto" or "least-squares"'
        )
    return spectral_start(observations, model, rng, engine)
