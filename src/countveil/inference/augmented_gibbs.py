"""Gibbs sampling as published: the noise as two Poisson counts with random rates (mathematics, section 7).

    m ~ Bessel(|r|, 2 sqrt((lambda_1 + mu) lambda_2));  y + g_1 = m + max(r, 0);  g_2 = y + g_1 - r
    y ~ Binomial(y + g_1, mu / (mu + lambda_1));  y's terms ~ Multinomial(y, their shares of mu)
    lambda_l ~ Gamma(1 + g_l, scale alpha)
    each factor's entry ~ Gamma(a + its counts, b + its exposure), with exposure 1 in every cell that is not masked

in every cell, whatever its report. A report that is not positive enters as r = 0. Its size carries no information
about the factors (mathematics, equation 2.5), so the posterior of the factors is the same, and truncated releases can
be fitted too. This is the published method, kept as a baseline for ``gibbs``, which needs no auxiliary variables.
Source: Schein, Wu, Schofield, Zhou and Wallach (2019), section 4, with lambda's scale corrected.
"""

import sys
from typing import NamedTuple

import numpy as np

from countveil.common.parameters import declared
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference.factors import DrawRule, sampled_counts, update_after_allocation
from countveil.inference.gibbs import Info
from countveil.inference.plan import Plan
from countveil.inference.run import Sampler
from countveil.inference.scoring import total_rate
from countveil.inference.starts import Start, automatic, begin
from countveil.inference.streams import ROWS, SPLITS, START, Streams
from countveil.kernels import augmented as kernels
from countveil.laws.counts.laws import law_of
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.laws.noise.two_sided_geometric.formulas import mean_over_positive
from countveil.models.factorization import Factorization


class State(NamedTuple):
    """A chain's state: factors, hyperparameters, sweeps done, and noise rates."""

    factors: tuple[np.ndarray, ...]
    hypers: tuple[np.ndarray, ...]
    sweep: int
    noise: np.ndarray  # (D, V, 2) lambda_1 of the noise added and lambda_2 of the noise taken away
    parameters: tuple[()] = ()


def init(plan: Plan, model: Factorization, streams: Streams, engine: Engine, start: Start = automatic) -> State:
    """The factors of a start, with noise rates drawn from their prior Gamma(1, scale alpha/(1-alpha))."""
    observations, rng = plan.data, streams.generator(0, START)
    factors, hypers = model.begun(begin(start, observations, model, rng, engine), observations.masked_cells)
    alpha = observations.cell_level
    noise = rng.standard_exponential((*observations.shape, 2)) * mean_over_positive(alpha)[..., None]
    return State(factors, hypers, 0, noise)


def step(state: State, plan: Plan, model: Factorization, streams: Streams, engine: Engine) -> tuple[State, Info]:
    """One sweep; returns a new state."""
    observations, sweep = plan.data, state.sweep + 1
    factors, splits = list(state.factors), streams.generator(sweep, SPLITS)
    row_values, values = model.rows.forward(factors), model.columns.forward(factors)
    theta, phi = model.rows.matrix(row_values), model.columns.matrix(values)
    (noise, row_counts), (counts,) = engine.over_rows(
        allocate_block, observations, (phi, streams, sweep), (theta, state.noise)
    )
    law = law_of(observations.noise, model.likelihood)
    rule = DrawRule(model, plan.scales, state.hypers, streams, sweep, engine)
    exposed = plan.fully_exposed
    update_after_allocation(
        model, law, factors, sampled_counts(model.rows, row_values, row_counts, splits),
        sampled_counts(model.columns, values, counts, splits), exposed.data, exposed.links(law),
        rule, engine,
    )  # fmt: skip
    hypers = rule.draw_hypers(factors)
    return State(tuple(factors), hypers, sweep, noise), Info(total_rate(model, factors))


def allocate_block(
    block: Block, phi: np.ndarray, streams: Streams, sweep: int, theta: np.ndarray, noise: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's rows of (noise rates, row counts), and its part of the column counts."""
    new_noise, row_counts, counts = np.empty_like(noise), np.zeros_like(theta), np.zeros_like(phi)
    rng = streams.generator(sweep, ROWS, block.number)
    kernels.allocate_rows(block.entries, theta, phi, noise, new_noise, row_counts, counts, rng)
    return (new_noise, row_counts), (counts,)


@declared
class AugmentedGibbs(Sampler):
    """Samples from the same posterior with the auxiliary noise variables of Schein et al. (2019), more slowly."""

    name = "augmented-gibbs"
    says = "does the same with the auxiliary noise variables of Schein et al. (2019), more slowly."
    algorithm = sys.modules[__name__]
    calibrated = True
    self_loops = True
    any_prior = True
    learned_shapes = True
    seeds = True
    mechanisms = (TWO_SIDED_GEOMETRIC.mechanism,)
