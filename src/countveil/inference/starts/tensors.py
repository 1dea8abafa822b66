"""Alternating nonnegative least squares for tensors: products of factors of which each is used once.

The squared error is quadratic in any one factor. A factor's entries go to their exact minimum one by one (mathematics,
equation 10.3), as in ``alternating``. Products with the data cost most: one with the columns' side serves all factors
of the rows, and the other way round.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.engines.threads import one_blas_thread
from countveil.inference.ascent import maximise
from countveil.inference.facts import facts_of
from countveil.inference.plan import Plan
from countveil.inference.starts.alternating import merged_products
from countveil.inference.starts.multiplicative import floored, random_factors
from countveil.inference.tuning import BEGINNINGS, note_race
from countveil.kernels import start as kernels
from countveil.kernels.tiles import is_dense
from countveil.models.einsum import Side
from countveil.models.factorization import Factorization

Race = tuple[tuple[int, int], ...]  # how many beginnings, the best so far, go on for how many iterations

RACE: Race = ((10, 3), (3, 4), (1, 16))
MANY = 2  # times the components are fitted, where they can be merged
RACE_OF_MANY: Race = ((5, 3), (2, 3), (1, 3))
LIKELIER = 5  # iterations of expectation maximisation before merging
SWEEPS = 5  # over the entries of a factor, for each gradient
ROUNDS = 2  # over the factors of one side, for each product with the data


def alternates(model: Factorization) -> bool:
    """Whether all factors are used once, each observed axis by one of them, and none is symmetric."""
    axes = "".join(model.spec.terms)
    return (
        len(model.factors) == len(model.spec.terms)
        and all(axes.count(a) == 1 for a in model.spec.output)
        and not any(factor.symmetric for factor in model.factors)
    )


def mergeable(model: Factorization) -> bool:
    """Whether components are products with one vector per factor, so that two can be merged into one."""
    axes = model.spec.latent
    return len(axes) == 1 and all(axes in f.axes and f.fixed is None for f in model.factors)


def tensor_start(observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine) -> Arrays:
    """Positive factors near the least-squares fit: the best of several random beginnings.

    Where components can be merged there are twice as many at first, since most beginnings with as many as in the model
    end with one component for two true ones. They are made likelier before they are merged: a weak component's cells
    matter less to squared errors than the noise of strong ones, whose merging would lose more.
    """
    with one_blas_thread():
        if not mergeable(model):
            return floored(model, race(observations, model, RACE, rng, engine))
        wide = model.with_components(MANY * model.n_components)
        best = floored(wide, race(observations, wide, RACE_OF_MANY, rng, engine))
        found = merged_factors(model, likelier(observations, wide, best, engine))
    return floored(model, found)


def likelier(observations: Observations, model: Factorization, factors: Arrays, engine: Engine) -> Sequence[np.ndarray]:
    """The factors after some iterations of expectation maximisation; the likelihood's parameters stay as they start."""
    law = observations.law(model.likelihood, model.initial_parameters())
    plan, found = Plan(observations, model), list(factors)
    for _ in range(LIKELIER):
        found, _ = maximise(plan, model, law, tuple(found), engine)
    return found


def race(
    observations: Observations, model: Factorization, plan: Race, rng: np.random.Generator, engine: Engine
) -> list[np.ndarray]:
    """The best of several random beginnings; the worse ones drop out on the way."""
    begun = [random_factors(observations, model, rng, engine) for _ in range(plan[0][0])]
    order, errors, rounds = np.arange(len(begun)), np.zeros(len(begun)), np.zeros(len(begun), dtype=int)
    for n_left, iterations in plan:
        order = order[:n_left]
        errors[order] = [improve(observations, model, begun[i], iterations, engine) for i in order]
        rounds[order] += 1
        order = order[np.argsort(errors[order], kind="stable")]
    note_race(BEGINNINGS, errors, int(order[0]), rounds.tolist())
    return begun[order[0]]


def merged_factors(model: Factorization, factors: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Factors of the model from those of more components."""
    places = [factor.axes.index(model.spec.latent) for factor in model.factors]
    last = [np.moveaxis(values, place, -1) for values, place in zip(factors, places, strict=True)]
    matrices = merged_products([values.reshape(-1, values.shape[-1]) for values in last], model.n_components)
    shaped = (matrix.reshape(*values.shape[:-1], -1) for matrix, values in zip(matrices, last, strict=True))
    return [np.ascontiguousarray(np.moveaxis(values, -1, place)) for values, place in zip(shaped, places, strict=True)]


def improve(
    observations: Observations, model: Factorization, factors: list[np.ndarray], iterations: int, engine: Engine
) -> float:
    """Improve the free factors, in the list; the squared error, less that of zero."""
    error = 0.0
    for _ in range(iterations):
        for side in (model.rows, model.columns):
            product = times_data(observations, model, factors, side is model.rows, engine)
            for _ in range(ROUNDS):
                for u, use in enumerate(side.uses):
                    if model.factors[use.factor].fixed is None:
                        error = descend(model, side, u, product, factors)
    return error


def descend(model: Factorization, side: Side, u: int, product: np.ndarray, factors: list[np.ndarray]) -> float:
    """Improve one factor, in the list; the squared error, less that of zero."""
    f = side.uses[u].factor
    factor = model.factors[f]
    target = side.gradient(u, side.forward(factors), product)
    seen = [i for i, a in enumerate(factor.axes) if a in model.spec.output]
    order = seen + [i for i in range(len(factor.axes)) if i not in seen]
    n = int(np.prod([factor.shape[i] for i in seen]))
    shape = [factor.shape[i] for i in order]
    values = np.array(factors[f].transpose(order).reshape(n, -1))
    wanted = np.ascontiguousarray(target.transpose(order).reshape(n, -1))
    gram = gram_of(model, f, factors)
    kernels.descend(values, gram, wanted, SWEEPS)
    factors[f] = np.ascontiguousarray(values.reshape(shape).transpose(np.argsort(order)))
    return float(((values @ gram) * values).sum() - 2.0 * (values * wanted).sum())


def gram_of(model: Factorization, f: int, factors: Sequence[np.ndarray]) -> np.ndarray:
    """(L, L) of a factor's flattened latent axes: the product of the others with itself, summed over observed axes."""
    axes = {a: i for i, a in enumerate(model.spec.output + model.spec.latent)}
    again = {a: i if a in model.spec.output else i + len(axes) for a, i in axes.items()}
    operands: list[Any] = []
    for g, factor in enumerate(model.factors):
        if g != f:
            for numbers in (axes, again):
                operands += [factors[g], [numbers[a] for a in factor.axes]]
    latent = [a for a in model.factors[f].axes if a in model.spec.latent]
    found = np.einsum(*operands, [axes[a] for a in latent] + [again[a] for a in latent], optimize="greedy")
    n = int(np.prod(found.shape[: len(latent)]))
    return np.ascontiguousarray(found.reshape(n, n))


def times_data(
    observations: Observations, model: Factorization, factors: list[np.ndarray], of_rows: bool, engine: Engine
) -> np.ndarray:
    """T phi (D, K) or T^T theta (V, K), with masked cells of T filled."""
    facts = facts_of(observations, engine)
    theta, phi = model.matrices(factors)
    own = theta, facts.bias_d, facts.fill_d
    shared = observations.noise.kernel, phi, facts.fill_v, of_rows
    rows, sums = engine.over_rows(multiply_block, observations, shared, own)
    if of_rows:
        return rows[0] - np.outer(facts.bias_d, phi.sum(axis=0))
    return np.asarray(sums[0] - sums[1])


def multiply_block(
    block: Block,
    noise: tuple[Any, ...],
    phi: np.ndarray,
    fill_v: np.ndarray,
    of_rows: bool,
    theta: np.ndarray,
    bias_d: np.ndarray,
    fill_d: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """The block's rows of S phi, or its part of (S^T theta, bias_d theta)."""
    factor, product = (phi, np.zeros_like(theta)) if of_rows else (theta, np.zeros_like(phi))
    dense = is_dense(block.entries, len(phi))
    kernels.multiply(noise, block.entries, fill_d, fill_v, factor, product, dense, of_rows)
    if of_rows:
        return (product,), ()
    return (), (product, (bias_d[:, None] * theta).sum(axis=0))
