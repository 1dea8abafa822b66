"""Communities of actors by annealing: groups whose blocks explain most of the debiased reports.

An embedding loses communities whose eigenvalues are within those of noise, such as the parts of an undirected core's
periphery. What blocks explain of the same matrix L (see ``embedding`` and mathematics, equation 10.5) still tells them
apart: actors change their groups at random, first freely, then less and less. The best of several runs is taken; one of
them begins at the embedding's grouping.
"""

from functools import partial
from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference.tuning import GROUPINGS, note_race
from countveil.kernels import grouping
from countveil.kernels import start as kernels

RUNS = 4  # from random groups; of 16, 8 to 16 reached the best ones on planted networks at level 3, 0 to 11 at level 1
SWEEPS, LAST_SWEEPS = 80, 4  # over all actors, and then without chance
HOT, COLD = (
    2.0,
    0.3,
)  # in units of the log-likelihood; from 4, or to 0.1, fewer runs reached the best groups at level 3
STILL = 1e-3  # a temperature at which actors go to the best group
VISITS, FEWEST_SWEEPS = 1 << 28, 10  # of cells, in all runs: about a second; more actors are not annealed
SMALLEST = 1e-12  # instead of a variance or a degree of zero


def annealed(
    observations: Observations, theta: np.ndarray, directed: bool, rng: np.random.Generator, engine: Engine
) -> np.ndarray:
    """Hard memberships (I, C) times the actors' sizes, better than theta, which has the same form.

    They are theta itself if it has one community, or more actors than can be annealed.
    """
    n, n_groups = theta.shape
    sweeps = min(SWEEPS, VISITS // ((RUNS + 1) * n * n))
    if n_groups == 1 or n <= n_groups or sweeps < FEWEST_SWEEPS:
        return theta
    size, group = theta.sum(axis=1), theta.argmax(axis=1)
    cells, square = scaled(debiased(observations, directed, engine), size, directed)
    hot = np.geomspace(HOT, COLD, sweeps)
    begun = [(group, hot[-1:])] + [(rng.integers(0, n_groups, n), hot) for _ in range(RUNS)]
    runs = [
        (first.copy(), np.append(warm, np.full(LAST_SWEEPS, STILL)), rng.random((len(warm) + LAST_SWEEPS, n)))
        for first, warm in begun
    ]
    anneal = partial(run, cells, np.ascontiguousarray(cells.T), square, n_groups)
    explained = list(engine.map(anneal, *zip(*runs, strict=True)))
    best = int(np.argmax(explained))
    note_race(GROUPINGS, explained, best)
    return np.asarray((runs[best][0][:, None] == np.arange(n_groups)) * size[:, None])


def run(
    sent: np.ndarray,
    received: np.ndarray,
    square: np.ndarray,
    n_groups: int,
    group: np.ndarray,
    temperatures: np.ndarray,
    uniforms: np.ndarray,
) -> float:
    """What the blocks of the new groups explain; the groups are changed in place."""
    return float(grouping.anneal(sent, received, square, group, n_groups, temperatures, uniforms))


def debiased(observations: Observations, directed: bool, engine: Engine) -> np.ndarray:
    """(I, I) debiased reports between actors, summed over the rest of a cell, and over directions if these are one."""
    (found,), _ = engine.over_rows(
        debias_block, observations, (observations.noise.kernel, observations.shape)
    )
    return found if directed else found + found.T


def debias_block(block: Block, noise: tuple[Any, ...], shape: tuple[int, int]) -> tuple[Arrays, Arrays]:
    """The block's rows."""
    cells = np.empty((block.n_rows, shape[1]))
    kernels.debias(noise, block.entries, cells)
    return (cells.reshape(block.n_rows, shape[0], -1).sum(axis=2),), ()


def scaled(cells: np.ndarray, size: np.ndarray, directed: bool) -> tuple[np.ndarray, np.ndarray]:
    """(cells of L times both actors' weights, squares of the weights), scaled so that what blocks explain has a unit.

    L_ij = T_ij / sqrt(s_i s_j), where s is an actor's size plus the mean size, and has the mean w_i w_j rate_cd with
    the weights w_i = size_i / sqrt(s_i). The unit is that of a log-likelihood: L is divided by its standard deviation,
    and counts once where direction does not. Squares have the mean 1, which changes nothing else.
    """
    increased = np.maximum(size + size.mean(), SMALLEST)
    root, between = np.sqrt(increased), ~np.eye(len(size), dtype=bool)
    variance = max(float((cells / np.outer(root, root))[between].var()), SMALLEST)
    weight, square = size / increased, size**2 / increased
    unit = max(float(square.mean()), SMALLEST) * np.sqrt(variance * (1.0 if directed else 2.0))
    return cells * np.outer(weight, weight) / unit, square / square.mean()
