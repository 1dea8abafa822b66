"""Expectation maximisation on the marginal likelihood of the reports: KL-NMF for private counts.

    theta_dk <- theta_dk (sum_v R_dv phi_vk) / (sum_v e_dv phi_vk),  R = E[y | r, mu] / mu;  phi likewise

(mathematics, section 12). It never decreases the likelihood; without noise it is the classic multiplicative
KL-NMF of Lee and Seung. Under strong noise it overfits in the end, and is to be stopped early.
"""

from typing import NamedTuple

import numpy as np

from countveil.engines.threads import ThreadEngine
from countveil.inference.ascent import Factor, pass_over_rows
from countveil.inference.start import least_squares_start
from countveil.inference.streams import START, Streams
from countveil.models.matrix import MatrixModel
from countveil.observations import Observations

SMALLEST = 1e-150


class State(NamedTuple):
    """A point estimate of both factors."""

    theta: np.ndarray  # (D, K)
    phi: np.ndarray  # (V, K)
    sweep: int


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
    theta, phi = Factor(state.theta, state.theta), Factor(state.phi, state.phi)
    found = pass_over_rows(observations, theta, phi, 0.0, np.zeros(model.n_components), engine)
    new_theta = np.maximum(found.theta_shape / np.maximum(found.theta_rate, SMALLEST), SMALLEST)
    new_phi = np.maximum(found.phi_count / np.maximum(found.phi_exposure, SMALLEST), SMALLEST)
    return State(new_theta, new_phi, state.sweep + 1), Info(found.data_bound)
