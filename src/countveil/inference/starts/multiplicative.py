"""Starts of any factorization from random factors: least squares by multiplicative updates, or, with exposures, EM."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.engines.threads import one_blas_thread
from countveil.inference.ascent import maximise
from countveil.inference.facts import facts_of
from countveil.inference.plan import Plan
from countveil.inference.starts.alternating import affordable, fit_reports
from countveil.kernels import start as kernels
from countveil.laws.counts import POISSON
from countveil.models.einsum import Side
from countveil.models.factorization import Factorization

ITERATIONS = 100
FLOOR = 0.01  # of a factor's entries, relative to their mean, so that none starts at zero
SHARED_FLOOR = 0.02  # the same for a shared factor, whose components have mean 1
TINY = 1e-300  # keeps divisors positive


def multiplicative_start(
    observations: Observations,
    model: Factorization,
    rng: np.random.Generator,
    engine: Engine,
    iterations: int = ITERATIONS,
) -> Arrays:
    """Positive factors after some updates from random ones.

    A factor that both sides use begins at the rows of ``fit_reports``. From nearly even memberships the updates would
    rarely leave the state of one community for all, where the error has no slope towards several.
    """
    factors = random_factors(observations, model, rng, engine)
    if model.shared in model.free:
        size = size_of_entries(observations, model, engine)
        factors[model.shared] = size * shared_start(observations, model, rng, engine)
    update(observations, model, factors, model.free, iterations, engine)
    return floored(model, factors)


def random_factors(
    observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine
) -> list[np.ndarray]:
    """Nearly even factors whose rates add up to about the mean count; fixed ones as they are."""
    size = size_of_entries(observations, model, engine)
    factors = [
        size * (0.5 + rng.random(factor.shape)) if factor.fixed is None else factor.fixed for factor in model.factors
    ]
    for f in (f for f in model.free if model.factors[f].symmetric):
        factors[f] = 0.5 * (factors[f] + factors[f].T)
    return factors


def size_of_entries(observations: Observations, model: Factorization, engine: Engine) -> float:
    """The size at which equal entries of all factors give the mean count, at the mean exposure if these are by cell."""
    mean = facts_of(observations, engine).mean_count
    if observations.exposure is not None:
        mean /= float(observations.exposure.mean())
    n_terms = np.prod([model.columns.sizes[a] for a in model.spec.latent])
    return float((mean / n_terms) ** (1.0 / len(model.spec.terms)))


def floored(model: Factorization, factors: list[np.ndarray]) -> Arrays:
    """The factors with free entries kept away from zero."""
    for f in model.free:
        factors[f] = np.maximum(factors[f], FLOOR * max(float(factors[f].mean()), TINY))
    return tuple(factors)


def update(
    observations: Observations,
    model: Factorization,
    factors: list[np.ndarray],
    which: Iterable[int],
    iterations: int,
    engine: Engine,
) -> None:
    """Update these factors in turn, in the list.

    Each update is factor * gradient(positive part of T) / gradient(rates + negative part of T) over the cells that are
    not masked, with T the debiased reports. It never raises the squared error (Lee and Seung 2001). For a factor that
    is used twice the ratio is taken to the power 1/2.
    """
    numbers = tuple(which)
    with one_blas_thread():
        for _ in range(iterations):
            for f in numbers:
                above, below = gradients(observations, model, factors, f, engine)
                times = sum(use.factor == f for use in (*model.rows.uses, *model.columns.uses))
                factors[f] = factors[f] * (above / np.maximum(below, TINY)) ** (1.0 / times)


def shared_start(
    observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine
) -> np.ndarray:
    """The rows of a nonnegative least-squares fit as the factor that both sides use, each component of mean 1."""
    theta, _ = fit_reports(observations, model.n_components, rng, engine, affordable(observations))
    mean = theta.mean(axis=0)
    return model.as_row_factor(np.maximum(theta / np.where(mean > 0.0, mean, 1.0), SHARED_FLOOR))


def gradients(
    observations: Observations, model: Factorization, factors: list[np.ndarray], f: int, engine: Engine
) -> tuple[np.ndarray, np.ndarray]:
    """The numerator and denominator of factor f's multiplicative update, summed over its uses."""
    rows, columns = model.rows.forward(factors), model.columns.forward(factors)
    theta, phi = (
        np.ascontiguousarray(side.matrix(values)) for side, values in ((model.rows, rows), (model.columns, columns))
    )
    above, below = np.zeros(model.factors[f].shape), np.zeros(model.factors[f].shape)

    def add(side: Side, values: list[np.ndarray], pulls: tuple[np.ndarray, ...]) -> None:
        nonlocal above, below
        for u, use in enumerate(side.uses):
            if use.factor == f:
                above = above + side.gradient(u, values, pulls[0])
                below = below + side.gradient(u, values, np.maximum(pulls[1], 0.0))

    by_row, by_column = (any(use.factor == f for use in side.uses) for side in (model.rows, model.columns))
    noise = observations.noise.kernel
    shared, own = (noise, phi, phi.T @ phi, by_row, by_column), (theta, facts_of(observations).bias_d)
    of_rows, sums = engine.over_rows(pull_block, observations, shared, own)
    if by_row:
        add(model.rows, rows, of_rows)
    if by_column:
        up, down, gram, biased = sums
        add(model.columns, columns, (up, down + phi @ gram + biased))
    if model.factors[f].symmetric:
        above, below = above + above.T, below + below.T
    return above, below


def pull_block(
    block: Block,
    noise: tuple[Any, ...],
    phi: np.ndarray,
    gram: np.ndarray,
    by_row: bool,
    by_column: bool,
    theta: np.ndarray,
    bias_d: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """The block's part of the update's numerator (T's positive part) and denominator (rates and T's negative part).

    Both leave out masked cells. By row: both times phi. By column: the sums over stored cells of both times theta, then
    theta^T theta and bias_d theta.
    """
    rows: Arrays = ()
    sums: Arrays = ()
    if by_row:
        rows = np.zeros_like(theta), theta @ gram + np.outer(bias_d, phi.sum(axis=0))
        kernels.pull(noise, block.entries, theta, phi, *rows, True)
    if by_column:
        sums = np.zeros_like(phi), np.zeros_like(phi)
        kernels.pull(noise, block.entries, theta, phi, *sums, False)
        sums = *sums, theta.T @ theta, (bias_d[:, None] * theta).sum(axis=0)
    return rows, sums


# With exposures by cell, expectation maximisation from the best of several random beginnings: least squares of the
# reports would fit the exposures first, where these differ by orders of magnitude.
BEGINNINGS = 4
FIRST_ITERATIONS = 10  # of each beginning
MORE_ITERATIONS = 40  # of the best


def exposed_start(observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine) -> Arrays:
    """Positive factors whose rates are expected counts for one unit of exposure."""
    plan, law, best, most = Plan(observations, model), observations.law(POISSON), None, -np.inf
    with one_blas_thread():
        for _ in range(BEGINNINGS):
            factors = begun(observations, model, rng, engine)
            for _ in range(FIRST_ITERATIONS):
                factors, score = maximise(plan, model, law, tuple(factors), engine)
            if best is None or score > most:
                best, most = factors, score
        assert best is not None
        for _ in range(MORE_ITERATIONS):
            best, _ = maximise(plan, model, law, tuple(best), engine)
    return floored(model, best)


def begun(
    observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine
) -> list[np.ndarray]:
    """Random factors of about the right size, less even than those from which least squares begins."""
    factors = random_factors(observations, model, rng, engine)
    for f in model.free:
        uneven = factors[f] * rng.standard_gamma(2.0, factors[f].shape)
        factors[f] = 0.5 * (uneven + uneven.T) if model.factors[f].symmetric else uneven
    return factors
