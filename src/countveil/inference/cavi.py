"""Exact coordinate-ascent variational inference: gamma factors, and the distribution of true counts in closed form.

Q of every factor is gamma. Q of the counts and their split is unrestricted: its optimum is the distribution of the
true count at the rate of the factors' geometric means G = exp E log, with a multinomial split (mathematics, section 5).
Learned prior rates have gamma Qs of their own. The evidence lower bound is exact and never decreases. Where counts come
in bursts, Q is of the bursts, and their dispersions are point estimates at which the bound is greatest (13.9).

Where counts are sparse and noise is strong, G is so far below the mean that Q starves its components. The
"arithmetic" expectation splits counts by means instead, as in zeroth-order collapsed inference for topic
models (Asuncion et al. 2009): no bound, but a penalised likelihood that never decreases and does not starve.
"""

import sys
from dataclasses import KW_ONLY
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import digamma

from countveil.common.parameters import OneOf, Option, declared
from countveil.engines.blocks import Arrays, Engine
from countveil.inference import dispersion
from countveil.inference.algorithm import bind
from countveil.inference.ascent import update_all
from countveil.inference.dispersion import maximised_parameters
from countveil.inference.factors import MeanRule, Priors, Scales
from countveil.inference.plan import Plan
from countveil.inference.run import Optimiser
from countveil.inference.starts import Start, automatic, begin
from countveil.inference.streams import START, Streams
from countveil.kernels.random import SMALLEST
from countveil.laws.counts.protocol import Parameters
from countveil.models.factorization import Factorization

EXPECTATIONS = ("geometric", "arithmetic")


class State(NamedTuple):
    """Q's parameters: Gamma(shape, rate) for every entry of every factor, and the prior rates' gammas.

    A fixed factor has its value as the shape, and rate one.
    """

    shapes: Arrays
    rates: Arrays
    hypers: Arrays  # (2, ...) shape and rate of Q of each prior's hyperparameters; their ratio is the value if fixed
    sweep: int
    parameters: Parameters = ()  # of the likelihood itself: point estimates

    @property
    def means(self) -> Arrays:
        """Means of all factors."""
        return tuple(shape / rate for shape, rate in zip(self.shapes, self.rates, strict=True))


class Info(NamedTuple):
    """The evidence lower bound (or penalised log-likelihood) of the state before the step."""

    objective: float


def init(plan: Plan, model: Factorization, streams: Streams, engine: Engine, start: Start = automatic) -> State:
    """Q after one update from a start."""
    factors = begin(start, plan.data, model, streams.generator(0, START), engine)
    return from_point(factors, plan, model, engine)


def from_point(factors: Arrays, plan: Plan, model: Factorization, engine: Engine) -> State:
    """Q after one update from a point estimate of all factors."""
    ones = tuple(np.ones_like(factor) for factor in factors)
    factors, parameters = dispersion.started(factors, plan, model, engine)
    point = State(factors, ones, initial_hypers(model), -1, parameters)
    return update(point, factors, factors, plan, model, engine)[0]


def step(
    state: State, plan: Plan, model: Factorization, streams: Streams, engine: Engine, expectation: str = "geometric"
) -> tuple[State, Info]:
    """One iteration; draws nothing."""
    means = state.means
    split_by = geometric_means(state.shapes, state.rates, model) if expectation == "geometric" else means
    new, objective = update(state, split_by, means, plan, model, engine)
    for f in model.free:
        prior = model.factors[f].prior
        prior_part = prior.bound if expectation == "geometric" else prior.penalty
        objective += prior_part(model.factors[f], state.shapes[f], state.rates[f], state.hypers[f], plan.scales[f])
    return new, Info(objective)


def update(
    state: State, split_by: Arrays, means: Arrays, plan: Plan, model: Factorization, engine: Engine
) -> tuple[State, float]:
    """Q of counts, factors and hyperparameters, and the likelihood's parameters, each replaced by its optimum in turn.

    Returns the data's part of the bound too. The state's factors enter by ``split_by`` and ``means``.
    """
    observations = plan.data
    rule = MeanRule(model, expected_priors(model, plan.scales, state.hypers))
    law = observations.law(model.likelihood, state.parameters)
    new_means, data_bound = update_all(plan, model, law, split_by, means, rule, engine)
    hypers = update_hypers(model, plan.scales, state.hypers, new_means)
    parameters = maximised_parameters(state.parameters, observations, model, split_by, new_means, engine)
    return State(*rule.gammas(model, means), hypers, state.sweep + 1, parameters), data_bound


def expected_priors(model: Factorization, scales: Scales, hypers: Arrays) -> Priors:
    """(shape, expected rate) of every factor's prior, each of the factor's shape, known offsets included."""
    found = []
    for factor, hyper, scale in zip(model.factors, hypers, scales, strict=True):
        shape, rate = factor.prior.gamma(hyper[0] / hyper[1], scale)
        found.append((np.broadcast_to(shape, factor.shape), np.broadcast_to(rate, factor.shape)))
    return found


def geometric_means(shapes: Arrays, rates: Arrays, model: Factorization) -> Arrays:
    """exp E log of all factors; the values of fixed ones."""
    found = list(shapes)
    for f in model.free:
        found[f] = np.maximum(np.exp(digamma(shapes[f])) / rates[f], SMALLEST)
    return tuple(found)


def initial_hypers(model: Factorization) -> Arrays:
    """Initial shape and rate of Q of each prior's hyperparameters."""
    return tuple(factor.prior.start_q(factor) for factor in model.factors)


def update_hypers(model: Factorization, scales: Scales, hypers: Arrays, means: list[np.ndarray]) -> Arrays:
    """Q of each prior's hyperparameters given the factors' means; unchanged where they or the factor are fixed."""
    found = list(hypers)
    for f in model.free:
        found[f] = model.factors[f].prior.update_q(model.factors[f], hypers[f], scales[f], means[f])
    return tuple(found)


@declared
class CAVI(Optimiser):
    """Approximates the posterior by independent gammas: fast, and accurate for dense counts."""

    name = "cavi"
    says = "approximates the posterior by independent gammas: fast, and accurate for dense counts."
    algorithm = sys.modules[__name__]
    exposures = True
    likelihoods = ("poisson", "negative-binomial")
    starved = (
        "It has shrunk its components too far, as cavi does if counts are sparse and noise is strong. "
        'Use method="gibbs", or "em" for a quick look, or method=cv.CAVI(expectation="arithmetic").'
    )

    _: KW_ONLY
    # fmt: off
    expectation: Annotated[str, Option(OneOf(EXPECTATIONS),
        'means by which counts are split between components: "geometric" (a true bound; best for dense counts), or '
        '"arithmetic" (does not shrink components too far when counts are sparse and noise is strong).')] = "geometric"
    # fmt: on

    def bound(self) -> Any:
        """The algorithm with its expectation."""
        return bind(self.algorithm, expectation=self.expectation)
