"""An algorithm that was added by its recipe: two sweeps of ``gibbs`` are one step."""

import sys
from typing import NamedTuple

import numpy as np

from countveil.inference import chains, gibbs
from countveil.inference.algorithm import Method
from countveil.inference.starts import automatic


class State(NamedTuple):
    """That of ``gibbs`` after twice as many sweeps."""

    factors: tuple[np.ndarray, ...]
    hypers: tuple[np.ndarray, ...]
    sweep: int
    parameters: tuple[np.ndarray, ...] = ()
    counts: tuple = ()


def init(data, model, streams, engine, start=automatic):
    return State(*gibbs.init(data, model, streams, engine, start))


def step(state, data, model, streams, engine):
    inner = gibbs.State(*state)._replace(sweep=2 * state.sweep)
    for _ in range(2):
        inner, info = gibbs.step(inner, data, model, streams, engine)
    return State(*inner._replace(sweep=state.sweep + 1)), info


METHOD = Method(
    "two-sweeps",
    "samples the posterior, two sweeps at a time.",
    chains.fit,
    sys.modules[__name__],
    samples=True,
    calibrated=True,
    self_loops=True,
    any_prior=True,
    learned_shapes=True,
)
