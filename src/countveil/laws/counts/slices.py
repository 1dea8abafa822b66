"""Many functions at once, each of a number of its own: slice sampling (Neal 2003), and their greatest values."""

import math
from collections.abc import Callable

import numpy as np

STEPS, SCALES = 3, (0.03, 3.0)  # of Metropolis
WIDTH = 1.0  # about as wide as slices are, or a few times less


def draw_on_slices(
    log_density: Callable[[np.ndarray], np.ndarray],
    now: np.ndarray,
    bounds: tuple[float, float],
    rng: np.random.Generator,
    width: float = WIDTH,
) -> np.ndarray:
    """New values (n,) that leave each density as it is; ``log_density`` takes and returns (n,) numbers.

    Densities are zero outside of ``bounds``; values are between them.

    Raises:
        FloatingPointError: a density that is not a number, or infinite, at its present value: no slice would end.
    """
    if now.shape == (1,):
        return np.array([draw_on_one(lambda x: log_density(np.array([x]))[0], now[0], bounds, rng, width)])
    least, most = bounds
    level = log_density(now) - rng.standard_exponential(now.shape)
    wrong = ~(level < np.inf)
    if wrong.any():
        raise no_slice(level[wrong][0], now[wrong][0])
    low = now - width * rng.random(now.shape)
    low, high = np.maximum(low, least), np.minimum(low + width, most)
    for end, step, limit in ((low, -width, least), (high, width, most)):
        outward = (end != limit) & (log_density(end) > level)
        while outward.any():
            end[outward] = np.clip(end[outward] + step, least, most)
            outward &= (end != limit) & (log_density(end) > level)
    new = now.copy()
    left = np.ones(now.shape, dtype=bool)
    while left.any():
        tried = low + (high - low) * rng.random(now.shape)
        accepted = log_density(tried) > level
        new[left & accepted] = tried[left & accepted]
        left &= ~accepted & (low < high)
        below = left & (tried < now)
        low[below] = tried[below]
        above = left & ~below
        high[above] = tried[above]
    return new


def draw_on_one(
    log_density: Callable[[float], float],
    now: float,
    bounds: tuple[float, float],
    rng: np.random.Generator,
    width: float,
) -> float:
    """The same for one number, from the same random numbers: operations on arrays of one take most of the time."""
    least, most = bounds
    level = log_density(now) - rng.standard_exponential()
    if not level < np.inf:
        raise no_slice(level, now)
    begin = now - width * rng.random()
    low, high = max(begin, least), min(begin + width, most)
    while low != least and log_density(low) > level:
        low = max(low - width, least)
    while high != most and log_density(high) > level:
        high = min(high + width, most)
    while True:
        tried = low + (high - low) * rng.random()
        if log_density(tried) > level:
            return tried
        if not low < high:
            return now
        low, high = (tried, high) if tried < now else (low, tried)


def draw_by_steps(
    log_density: Callable[[np.ndarray], np.ndarray],
    now: np.ndarray,
    bounds: tuple[float, float],
    rng: np.random.Generator,
) -> np.ndarray:
    """New values (n,) by STEPS Metropolis steps, which leave each density as it is.

    Each step of each number has a scale of its own, drawn from SCALES whatever the state, so that none has to be tuned.
    A pass over the data serves all numbers, and slices would take as many passes as the slowest of them needs.

    Raises:
        FloatingPointError: a density that is not a number, or infinite, at its present value.
    """
    here = log_density(now)
    if not (here < np.inf).all():
        wrong = ~(here < np.inf)
        raise no_slice(here[wrong][0], now[wrong][0])
    for _ in range(STEPS):
        scale = np.exp(rng.uniform(math.log(SCALES[0]), math.log(SCALES[1]), now.shape))
        tried = now + scale * rng.standard_normal(now.shape)
        within = (bounds[0] <= tried) & (tried <= bounds[1])
        there = log_density(np.where(within, tried, now))
        accepted = within & (there - here > -rng.standard_exponential(now.shape))
        now, here = np.where(accepted, tried, now), np.where(accepted, there, here)
    return now


def no_slice(level: float, now: float) -> FloatingPointError:
    """What is raised where no density is above a level."""
    return FloatingPointError(f"the log-density must be a number, got {level:g} at {now:g}")


GRID = 41  # points; the greatest value is found if no peak is narrower than their distance
SECTIONS = 40  # which leave 4e-9 of two distances
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def greatest_within(
    function: Callable[[np.ndarray], np.ndarray], now: np.ndarray, bounds: tuple[float, float]
) -> np.ndarray:
    """Arguments (n,) within bounds at which a function from (n,) to (n,) numbers is greatest; never less than now."""
    points = np.linspace(*bounds, GRID)
    best = np.argmax([function(np.full(now.shape, point)) for point in points], axis=0)
    low, high = points[np.maximum(best - 1, 0)], points[np.minimum(best + 1, GRID - 1)]
    for _ in range(SECTIONS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        falls = function(left) >= function(right)
        low, high = np.where(falls, low, left), np.where(falls, right, high)
    found = (low + high) / 2.0
    return np.where(function(found) >= function(now), found, now)
