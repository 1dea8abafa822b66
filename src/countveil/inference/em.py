"""Expectation maximisation on the marginal likelihood of the reports: KL-NMF for private counts.

    theta_dk <- theta_dk (sum_v R_dv phi_vk) / (sum_v e_dv phi_vk),  R = E[y | r, mu] / mu;  phi likewise

(mathematics, section 12). It never decreases the likelihood; without noise it is the classic multiplicative
KL-NMF of Lee and Seung. Under strong noise it overfits in the end: ``HeldTotal`` keeps the size of its rates
right, and ``held_out`` stops it early.
"""

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from countveil.engines.threads import ThreadEngine
from countveil.inference.ascent import Factor, pass_over_rows
from countveil.inference.start import least_squares_start
from countveil.inference.streams import START, Streams
from countveil.kernels.gibbs import MASKED
from countveil.models.matrix import MatrixModel
from countveil.observations import Observations

SMALLEST = 1e-150
ROUNDING = 1e-12


class State(NamedTuple):
    """A point estimate of both factors."""

    theta: np.ndarray  # (D, K)
    phi: np.ndarray  # (V, K)
    sweep: int
    penalty: float = 0.0  # on the sum of all rates


class Info(NamedTuple):
    """The log-likelihood log P(max(reports, 0) | theta, phi) of the state that the step began with."""

    objective: float


def init(observations: Observations, model: MatrixModel, streams: Streams) -> State:
    """The least-squares start."""
    return State(*least_squares_start(observations, model.n_components, streams.generator(0, START)), 0)


def from_point(
    theta: np.ndarray,
    phi: np.ndarray,
    observations: Observations,
    model: MatrixModel,
    engine: ThreadEngine,
    iterations: int,
) -> State:
    """A few iterations on from a point: a better place for a chain to begin."""
    state = State(theta, phi, 0)
    for _ in range(iterations):
        state, _ = step(state, observations, model, None, engine)
    return state


def step(
    state: State,
    observations: Observations,
    model: MatrixModel,
    streams: Streams | None,
    engine: ThreadEngine,
) -> tuple[State, Info]:
    """One iteration; draws nothing."""
    return update(state, observations, engine, None)


def update(
    state: State, observations: Observations, engine: ThreadEngine, total: float | None
) -> tuple[State, Info]:
    """One iteration at the state's penalty; with ``total``, phi's is made such that the rates add up to that."""
    theta, phi = Factor(state.theta, state.theta), Factor(state.phi, state.phi)
    unscaled = copy(observations)  # the penalty is on the rates, offsets and all
    unscaled.prior_scale_d = np.ones(observations.shape[0])
    found = pass_over_rows(unscaled, theta, phi, 0.0, state.penalty * state.phi.sum(axis=0), engine)
    new_theta = np.maximum(found.theta_shape / np.maximum(found.theta_rate, SMALLEST), SMALLEST)
    theta_total = new_theta.sum(axis=0)

    def phi_at(penalty: float) -> np.ndarray:
        exposure = np.maximum(found.phi_exposure + penalty * theta_total, SMALLEST)
        return np.maximum(found.phi_count / exposure, SMALLEST)

    penalty = state.penalty
    if total is not None:
        penalty = solve_penalty(
            lambda x: float(theta_total @ phi_at(x).sum(axis=0)), found.phi_count.sum(), total
        )
    return State(new_theta, phi_at(penalty), state.sweep + 1, penalty), Info(found.data_bound)


def solve_penalty(total_at: Callable[[float], float], expected: float, total: float) -> float:
    """The penalty x >= 0 with total_at(x) = total; 0 where the rates add up to no more without one.

    total_at falls, and lies below expected / x.
    """
    if total_at(0.0) <= total * (1.0 + ROUNDING):
        return 0.0
    return float(brentq(lambda x: total_at(x) - total, 0.0, 2.0 * expected / total, rtol=ROUNDING))


class HeldTotal:
    """The iteration with the sum of all rates held at an unbiased estimate of the sum of all true counts.

    No factor is negative, so that a fit takes noise upwards for counts and cannot take noise downwards for
    anything: under strong noise its rates add up to far too much. The likelihood is therefore maximised under
    the constraint that they do not. By Lagrange's multiplier x that is x on every exposure, or an exponential
    prior of rate x over mu_dv; x is found anew in every iteration. Without noise it is 0.
    """

    def __init__(self, observations: Observations) -> None:
        self.total = max(total_count(observations), 1e-3 * observations.shape[0])
        self.noisy = bool(observations.alpha_d.any() or observations.alpha_e.any())
        hidden = observations.reports == MASKED
        rows = np.repeat(np.arange(observations.shape[0]), np.diff(observations.indptr))
        self.hidden = rows[hidden], observations.columns[hidden]

    def target(self, state: State) -> float:
        """What all rates are to add up to: the estimate, and the masked cells' rates as they are."""
        rows, columns = self.hidden
        return self.total + float(np.einsum("ek,ek->", state.theta[rows], state.phi[columns]))

    def init(self, observations: Observations, model: MatrixModel, streams: Streams) -> State:
        """The least-squares start, brought to size."""
        state = init(observations, model, streams)
        if not self.noisy:
            return state
        excess = float(state.theta.sum(axis=0) @ state.phi.sum(axis=0)) / self.target(state)
        return state._replace(theta=state.theta / max(excess, 1.0))

    def step(
        self,
        state: State,
        observations: Observations,
        model: MatrixModel,
        streams: Streams | None,
        engine: ThreadEngine,
    ) -> tuple[State, Info]:
        """One iteration; draws nothing."""
        return update(state, observations, engine, self.target(state) if self.noisy else None)


def total_count(observations: Observations) -> float:
    """An unbiased estimate of the sum of all true counts that are not masked.

    It adds up r where a report is positive and -alpha / (1 - alpha) where it is not: each has the true count
    for its mean, whatever that is.
    """
    o = observations
    rows = np.repeat(np.arange(o.shape[0]), np.diff(o.indptr))
    alpha = o.alpha_e if o.alpha_e.size else o.alpha_d[rows]
    stored = np.where(o.reports > 0, o.reports, np.where(o.reports == MASKED, 0.0, -alpha / (1.0 - alpha)))
    unstored = o.shape[1] - np.diff(o.indptr)
    return float(stored.sum() - (unstored * o.alpha_d / (1.0 - o.alpha_d)).sum())
