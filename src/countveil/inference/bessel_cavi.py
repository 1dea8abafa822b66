"""Variational inference as published (mathematics, section 7): a point mass at the Bessel mode, the delta method.

    m = mode of Bessel(|r|, 2 sqrt(G[lambda_2] G[lambda_1 + mu])) in every cell
    E[y + g_1] = m + max(r, 0);  E[g_2] = E[y + g_1] - r
    E[(g_1, y's terms)] = E[y + g_1] in proportion to (G[lambda_1], geometric means of the terms' factors)
    Q(lambda_l) = Gamma(1 + E[g_l], scale alpha)
    Q(factor's entry) = Gamma(a + its expected counts, b + its exposure), with exposure 1 where it is not masked

with E log(lambda_1 + mu) by the delta method to second order, in every cell that is not masked. With
center="mean" the point mass is at the mean of the Bessel distribution (the 2018 preprint's appendix E). Nothing here
is a bound on the evidence, so ``objective`` is the log-likelihood at Q's mean factors instead. Kept for comparison:
``cavi`` needs neither point mass nor delta method.

A report that is not positive enters as r = 0. Its size carries no information about the factors (mathematics,
equation 2.5), and a release may not contain it. The published updates would use it as the order of the Bessel
distribution, and so approximate differently there. Where a side of the rate is a product of several factors, the
variance of each component is exact, but covariances between components are left out. Source: the 2019 variational
paper, section 3, and the 2018 preprint, appendix E, with the shape of Q(theta) summed over the row and lambda's scale
corrected.
"""

import sys
from dataclasses import KW_ONLY
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from countveil.common.parameters import OneOf, Option, declared
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference.algorithm import bind
from countveil.inference.cavi import expected_priors, geometric_means, initial_hypers, update_hypers
from countveil.inference.factors import MeanRule, expected_counts, update_after_allocation
from countveil.inference.plan import Plan
from countveil.inference.run import Optimiser
from countveil.inference.scoring import log_likelihood
from countveil.inference.starts import Start, automatic, begin
from countveil.inference.streams import START, Streams
from countveil.kernels import bessel_cavi as kernels
from countveil.laws.counts.laws import law_of
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.laws.noise.two_sided_geometric.formulas import exposure
from countveil.models.einsum import Side
from countveil.models.factorization import Factorization

Center = Literal["mode", "mean"]
CENTERS = ("mode", "mean")


class State(NamedTuple):
    """Q's parameters, as in ``cavi``, and the gammas of the noise rates."""

    shapes: Arrays
    rates: Arrays
    hypers: Arrays
    sweep: int
    noise_shape: np.ndarray  # (D, V, 2) shapes of Q(lambda_1), Q(lambda_2); their scale is the cell's alpha

    @property
    def means(self) -> Arrays:
        """Means of all factors."""
        return tuple(shape / rate for shape, rate in zip(self.shapes, self.rates, strict=True))


class Info(NamedTuple):
    """log P(max(reports, 0)) at the mean factors of the state before the step; not a bound, and it may fall."""

    objective: float


def init(
    plan: Plan,
    model: Factorization,
    streams: Streams,
    engine: Engine,
    start: Start = automatic,
    *,
    center: Center = "mode",
) -> State:
    """Q after one update from a start, with noise rates at their prior's mean."""
    factors = begin(start, plan.data, model, streams.generator(0, START), engine)
    return from_point(factors, plan, model, engine, center=center)


def from_point(factors: Arrays, plan: Plan, model: Factorization, engine: Engine, *, center: Center = "mode") -> State:
    """Q after one update from a point estimate of all factors; noise rates begin at their mean alpha / (1 - alpha)."""
    ratio = exposure(plan.data.cell_level)[..., None]
    noise = np.broadcast_to(1.0 / ratio, (*plan.data.shape, 2))
    moments = factors, factors, tuple(np.zeros_like(factor) for factor in factors)
    return update(moments, initial_hypers(model), noise, plan, model, engine, 0, center)


def step(
    state: State, plan: Plan, model: Factorization, streams: Streams, engine: Engine, *, center: Center = "mode"
) -> tuple[State, Info]:
    """One iteration; draws nothing."""
    means = state.means
    variances = [np.zeros_like(mean) for mean in means]
    for f in model.free:
        variances[f] = means[f] / state.rates[f]
    moments = geometric_means(state.shapes, state.rates, model), means, tuple(variances)
    new = update(moments, state.hypers, state.noise_shape, plan, model, engine, state.sweep + 1, center)
    return new, Info(log_likelihood(means, plan.data, model, engine))


def update(
    moments: tuple[Arrays, Arrays, Arrays],
    hypers: Arrays,
    noise_shape: np.ndarray,
    plan: Plan,
    model: Factorization,
    engine: Engine,
    sweep: int,
    center: Center,
) -> State:
    """Q of counts, noise rates, factors and hyperparameters, each updated in turn."""
    if center not in ("mode", "mean"):
        raise ValueError(f"center must be 'mode' or 'mean', got {center!r}")
    observations, (geometric, means, _) = plan.data, moments
    theta, phi = (side_moments(side, *moments) for side in (model.rows, model.columns))
    (noise, row_ratio), (ratio,) = engine.over_rows(
        expect_block, observations, (phi, center == "mean"), (*theta, noise_shape)
    )
    rule = MeanRule(model, expected_priors(model, plan.scales, hypers))
    factors = list(means)
    row_counts = expected_counts(model.rows, model.rows.forward(geometric), row_ratio)
    counts = expected_counts(model.columns, model.columns.forward(geometric), ratio)
    exposed, law = plan.fully_exposed, law_of(observations.noise, model.likelihood)
    links = exposed.links(law)
    update_after_allocation(model, law, factors, row_counts, counts, exposed.data, links, rule, engine)
    new_hypers = update_hypers(model, plan.scales, hypers, factors)
    return State(*rule.gammas(model, means), new_hypers, sweep, noise)


def expect_block(
    block: Block,
    phi: tuple[np.ndarray, np.ndarray, np.ndarray],
    use_mean: bool,
    geometric: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    noise_shape: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """The block's rows of (noise shapes, row ratio), and its part of the column ratio."""
    noise, row_ratio, ratio = np.array(noise_shape), np.zeros_like(mean), np.zeros_like(phi[0])
    theta = geometric, mean, variance
    kernels.expect_rows(block.entries, theta, phi, noise, row_ratio, ratio, use_mean)
    return (noise, row_ratio), (ratio,)


def side_moments(
    side: Side, geometric: Arrays, means: Arrays, variances: Arrays
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(geometric mean, mean, variance) of a side's matrix; the variance as E[x^2] - E[x]^2, term by term."""
    mean = side.matrix(side.forward(means))
    squares = side.matrix(side.forward([m * m + w for m, w in zip(means, variances, strict=True)]))
    certain = side.matrix(side.forward([m * m for m in means]))
    return side.matrix(side.forward(geometric)), mean, np.maximum(squares - certain, 0.0)


@declared
class BesselCAVI(Optimiser):
    """The variational method of Schofield et al. (2019)."""

    name = "bessel-cavi"
    says = "is the variational method of Schofield et al. (2019)."
    algorithm = sys.modules[__name__]
    mechanisms = (TWO_SIDED_GEOMETRIC.mechanism,)
    starved = (
        "It has shrunk its components too far, as bessel-cavi does if counts are sparse and noise is strong. "
        'Use method="gibbs", or "em" for a quick look, or method=cv.CAVI(expectation="arithmetic").'
    )

    _: KW_ONLY
    center: Annotated[Center, Option(OneOf(CENTERS), 'the Bessel\'s "mode", as published, or its "mean".')] = "mode"

    def bound(self) -> Any:
        """The algorithm with its centre."""
        return bind(self.algorithm, center=self.center)
