"""Exact coordinate-ascent variational inference: gamma factors, and the true counts' law in closed form.

Q of every factor is gamma, Q(y and its terms) is unrestricted, and its optimum is the true count's law at
the rate mu~ that the factors' geometric means G = exp E log make, with a multinomial split (mathematics, section 5).
Learned prior rates have gamma Qs of their own. The evidence lower bound is exact and never decreases.

Where counts are sparse and noise is strong, G is so far below the mean that Q starves its components. The
"arithmetic" expectation splits counts by means instead, as in zeroth-order collapsed inference for topic
models (Asuncion et al. 2009): no bound, but a penalised likelihood that never decreases and does not starve.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Engine
from countveil.inference.ascent import update_all
from countveil.inference.factors import MeanRule, Priors, offset_scales
from countveil.inference.start import start_factors
from countveil.inference.streams import START, Streams
from countveil.models.factorization import Factor, Factorization

SMALLEST = 1e-150
EXPECTATIONS = ("geometric", "arithmetic")


class State(NamedTuple):
    """Q's parameters: Gamma(shape, rate) for every entry of every factor, and the prior rates' gammas.

    A fixed factor has its value for a shape and a rate of one.
    """

    shapes: Arrays
    rates: Arrays
    hypers: Arrays  # (2, ...) shape and rate of Q(b) of each factor's prior; of mean b where it is fixed
    sweep: int

    @property
    def means(self) -> Arrays:
        """Means of all factors."""
        return tuple(shape / rate for shape, rate in zip(self.shapes, self.rates, strict=True))


class Info(NamedTuple):
    """The evidence lower bound (or penalised log-likelihood) of the state that the step began with."""

    objective: float


def init(observations: Observations, model: Factorization, streams: Streams, engine: Engine) -> State:
    """Q one update on from the least-squares start."""
    start = start_factors(observations, model, streams.generator(0, START), engine)
    return from_point(start, observations, model, engine)


def from_point(factors: Arrays, observations: Observations, model: Factorization, engine: Engine) -> State:
    """Q one update on from a point estimate of all factors."""
    return update(factors, factors, initial_hypers(model), observations, model, engine, 0)[0]


def step(
    state: State,
    observations: Observations,
    model: Factorization,
    streams: Streams,
    engine: Engine,
    expectation: str = "geometric",
) -> tuple[State, Info]:
    """One iteration; draws nothing."""
    means = state.means
    split_by = geometric_means(state.shapes, state.rates, model) if expectation == "geometric" else means
    new, objective = update(split_by, means, state.hypers, observations, model, engine, state.sweep + 1)
    prior_part = factor_bound if expectation == "geometric" else factor_penalty
    scales = offset_scales(model, observations)
    for f in model.free:
        objective += prior_part(state.shapes[f], state.rates[f], state.hypers[f], model.factors[f], scales[f])
    return new, Info(objective)


def update(
    split_by: Arrays,
    means: Arrays,
    hypers: Arrays,
    observations: Observations,
    model: Factorization,
    engine: Engine,
    sweep: int,
) -> tuple[State, float]:
    """Q(y), Q(factors), Q(rates) each replaced by their optimum in turn; and the data's part of the bound."""
    rule = MeanRule(model, expected_priors(model, observations, hypers))
    new_means, data_bound = update_all(observations, model, split_by, means, rule, engine)
    shapes, rates = list(means), [np.ones_like(mean) for mean in means]
    for f in model.free:
        shapes[f], rates[f] = rule.shapes[f], rule.rates[f]
    new_hypers = update_hypers(model, observations, hypers, new_means)
    return State(tuple(shapes), tuple(rates), new_hypers, sweep), data_bound


def expected_priors(model: Factorization, observations: Observations, hypers: Arrays) -> Priors:
    """(shape, expected rate) of every factor's prior, each of the factor's shape, known offsets included."""
    found = []
    for factor, hyper, scale in zip(model.factors, hypers, offset_scales(model, observations), strict=True):
        rate = np.broadcast_to(hyper[0] / hyper[1] * scale, factor.shape)
        found.append((np.broadcast_to(factor.prior.shape, factor.shape), rate))
    return found


def geometric_means(shapes: Arrays, rates: Arrays, model: Factorization) -> Arrays:
    """exp E log of all factors; fixed ones as they are."""
    found = list(shapes)
    for f in model.free:
        found[f] = np.maximum(np.exp(digamma(shapes[f])) / rates[f], SMALLEST)
    return tuple(found)


def initial_hypers(model: Factorization) -> Arrays:
    """Shape and rate of each Q(b), of the prior's rate as mean."""
    return tuple(np.stack([rate, np.ones_like(rate)]) for rate in model.initial_rates())


def update_hypers(
    model: Factorization, observations: Observations, hypers: Arrays, means: list[np.ndarray]
) -> Arrays:
    """Q(b) = Gamma(1 + sum of shapes, 1/scale + sum of means); as it was where rates or the factor are fixed."""
    found = list(hypers)
    scales = offset_scales(model, observations)
    for f in model.free:
        factor = model.factors[f]
        if factor.prior.learned:
            rate = 1.0 / factor.prior.rate + factor.rate_sums(scales[f] * means[f])
            found[f] = np.stack([1.0 + factor.rate_sums(factor.prior.shape), rate])
    return tuple(found)


def gamma_entropy(shape: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Entropy of Gamma(shape, rate)."""
    return shape - np.log(rate) + gammaln(shape) + (1.0 - shape) * digamma(shape)


def factor_bound(
    shape: np.ndarray, rate: np.ndarray, hyper: np.ndarray, factor: Factor, scale: np.ndarray | float
) -> float:
    """E log p(factor | b) p(b) - E log q(factor) q(b): minus the divergence of Q from Gamma(a, scale b)."""
    a, learned = np.asarray(factor.prior.shape), factor.prior.learned
    b = hyper[0] / hyper[1]
    log_b = digamma(hyper[0]) - np.log(hyper[1]) if learned else np.log(b)
    each = gamma_entropy(shape, rate) + a * (log_b + np.log(scale)) - gammaln(a)
    each = each + (a - 1.0) * (digamma(shape) - np.log(rate)) - b * scale * (shape / rate)
    bound = float((factor.weight * each).sum())
    if learned:
        bound += float((-np.log(factor.prior.rate) - b / factor.prior.rate + gamma_entropy(*hyper)).sum())
    return bound


def factor_penalty(
    shape: np.ndarray, rate: np.ndarray, hyper: np.ndarray, factor: Factor, scale: np.ndarray | float
) -> float:
    """What the arithmetic iteration adds to the log-likelihood: sum of a log m - b m, and of b's own terms."""
    mean, b = shape / rate, hyper[0] / hyper[1]
    penalty = float((factor.weight * (factor.prior.shape * np.log(mean) - b * scale * mean)).sum())
    if factor.prior.learned:
        sizes = 1.0 + factor.rate_sums(factor.prior.shape)
        penalty += float((sizes * np.log(b) - b / factor.prior.rate).sum())
    return penalty
