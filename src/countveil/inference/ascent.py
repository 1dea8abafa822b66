"""One pass of coordinate ascent over all rows, shared by cavi, em and svi."""

from typing import Any, NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference.factors import MeanRule, expected_counts, row_exposures, update_after_allocation, update_side
from countveil.inference.plan import Plan
from countveil.kernels import variational as kernels
from countveil.kernels.random import SMALLEST
from countveil.kernels.tiles import is_dense
from countveil.laws.counts.laws import in_block
from countveil.models.factorization import Factorization


class Pass(NamedTuple):
    """What a pass over the rows found: theta's new optimum, and what phi's needs."""

    theta_shape: np.ndarray  # (D, K)
    theta_rate: np.ndarray  # (D, K)
    ratio: np.ndarray  # (V, K) expected true counts by column and component, over phi's geometric means
    exposure: np.ndarray  # (V, K) exposure of each column to each component, with the new theta
    data_bound: float  # the data's part of the evidence lower bound, at the factors before the pass


def pass_over_rows(
    observations: Observations,
    law: tuple[Any, ...],
    theta: tuple[np.ndarray, np.ndarray],
    phi: tuple[np.ndarray, np.ndarray],
    prior: tuple[np.ndarray, np.ndarray],
    engine: Engine,
) -> Pass:
    """Update theta given phi, block by block; both are (geometric mean, mean), prior is (shape, rate), each (n, K)."""
    phi_geometric, phi_mean = phi
    (shape, rate), (ratio, exposure, totals, bound) = engine.over_rows(
        update_block, observations, (law, phi_geometric, phi_mean, phi_mean.sum(axis=0)), (*theta, *prior)
    )
    exposure += totals[0]
    return Pass(shape, rate, ratio, np.maximum(exposure, 0.0), float(bound[0]))


def update_block(
    block: Block,
    law: tuple[Any, ...],
    phi_geometric: np.ndarray,
    phi_mean: np.ndarray,
    phi_total: np.ndarray,
    theta_geometric: np.ndarray,
    theta_mean: np.ndarray,
    prior_shape: np.ndarray,
    prior_rate: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """Theta's new (shape, rate), and the block's part of (ratio, exposure, theta's totals, bound)."""
    sums = np.zeros_like(phi_mean), np.zeros_like(phi_mean), np.zeros((2, phi_total.size))
    shape, rate = theta_geometric.copy(), theta_mean.copy()
    law, entries = in_block(law, block.entries, block.first_row)
    bound = kernels.update_rows(
        law, entries, shape, rate, phi_geometric, phi_mean, phi_total, prior_shape, prior_rate, sums,
        is_dense(entries, len(phi_mean)),
    )  # fmt: skip
    return (shape, rate), (*sums, np.array([bound]))


def update_all(
    plan: Plan,
    model: Factorization,
    law: tuple[Any, ...],
    geometric: Arrays,
    means: Arrays,
    rule: MeanRule,
    engine: Engine,
) -> tuple[list[np.ndarray], float]:
    """Replace every free factor by its optimum in turn; ``rule`` keeps the optima.

    Returns the factors' new means, and the data's part of the evidence lower bound at the old factors.
    """
    observations, factors, row = plan.data, list(means), model.row_factor
    values = model.columns.forward(geometric)
    phi = model.columns.matrix(values), model.columns.matrix(model.columns.forward(means))
    if row is not None:
        theta = model.as_row_matrix(geometric[row]), model.as_row_matrix(means[row])
        prior = tuple(model.as_row_matrix(x) for x in rule.priors[row])
        found = pass_over_rows(observations, law, theta, phi, (prior[0], prior[1]), engine)
        rule.keep(row, model.as_row_factor(found.theta_shape), model.as_row_factor(found.theta_rate))
        factors[row] = rule.mean(row)
        counts = expected_counts(model.columns, values, found.ratio)
        update_side(model, model.columns, factors, counts, found.exposure, rule)
        return factors, found.data_bound
    row_values = model.rows.forward(geometric)
    theta_mean = model.rows.matrix(model.rows.forward(means))
    row_ratio, ratio, bound = expect_counts(observations, law, model.rows.matrix(row_values), phi[0], engine)
    bound -= float((theta_mean * row_exposures(observations, law, phi[1], engine)).sum())
    row_counts = expected_counts(model.rows, row_values, row_ratio)
    counts = expected_counts(model.columns, values, ratio)
    links = plan.links(law)
    update_after_allocation(model, law, factors, row_counts, counts, observations, links, rule, engine)
    return factors, bound


def maximise(
    plan: Plan, model: Factorization, law: tuple[Any, ...], factors: Arrays, engine: Engine
) -> tuple[list[np.ndarray], float]:
    """One iteration of expectation maximisation from these factors (mathematics, section 12).

    Returns the new factors, and the log-likelihood of the old ones.
    """
    none = [(np.zeros(factor.shape), np.zeros(factor.shape)) for factor in model.factors]
    found, bound = update_all(plan, model, law, factors, factors, MeanRule(model, none), engine)
    least = least_entry(model)
    for f in model.free:
        found[f] = np.maximum(found[f], least)
    return found, bound


def least_entry(model: Factorization) -> float:
    """The least entry of a factor, as small as it can be while a product of one from every term is positive."""
    return float(SMALLEST ** (2.0 / max(len(model.spec.terms), 2)))


def expect_counts(
    observations: Observations, law: tuple[Any, ...], theta: np.ndarray, phi: np.ndarray, engine: Engine
) -> tuple[np.ndarray, np.ndarray, float]:
    """Expected counts divided by theta (D, K) and by phi (V, K), and the bound without its exposures."""
    (row_ratio,), (ratio, bound) = engine.over_rows(expect_block, observations, (law, phi), (theta,))
    return row_ratio, ratio, float(bound[0])


def expect_block(block: Block, law: tuple[Any, ...], phi: np.ndarray, theta: np.ndarray) -> tuple[Arrays, Arrays]:
    """The block's rows of the row ratio, and its part of (column ratio, bound)."""
    row_ratio, ratio = np.zeros_like(theta), np.zeros_like(phi)
    law, entries = in_block(law, block.entries, block.first_row)
    dense = is_dense(entries, len(phi))
    bound = kernels.expect_rows(law, entries, theta, phi, row_ratio, ratio, dense)
    return (row_ratio,), (ratio, np.array([bound]))
