"""An algorithm that was added by its recipe: two sweeps of ``gibbs`` are one step."""

import sys
from typing import NamedTuple

import numpy as np

from countveil.common.parameters import declared
from countveil.inference import gibbs
from countveil.inference.run import Sampler
from countveil.inference.starts import automatic


class State(NamedTuple):
    """That of ``gibbs`` after twice as many sweeps."""

    factors: tuple[np.ndarray, ...]
    hypers: tuple[np.ndarray, ...]
    sweep: int
    parameters: tuple[np.ndarray, ...] = ()
    counts: tuple = ()


def init(plan, model, streams, engine, start=automatic):
    return State(*gibbs.init(plan, model, streams, engine, start))


def step(state, plan, model, streams, engine):
    inner = gibbs.State(*state)._replace(sweep=2 * state.sweep)
    for _ in range(2):
        inner, info = gibbs.step(inner, plan, model, streams, engine)
    return State(*inner._replace(sweep=state.sweep + 1)), info


@declared
class TwoSweeps(Sampler):
    """Samples the posterior, two sweeps at a time."""

    name = "two-sweeps"
    says = "samples the posterior, two sweeps at a time."
    algorithm = sys.modules[__name__]
    calibrated = True
    self_loops = True
    any_prior = True
    learned_shapes = True
