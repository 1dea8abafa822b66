"""Slice sampling of many numbers at once, each with a density of its own (Neal 2003, stepping out and shrinking)."""

from collections.abc import Callable

import numpy as np

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


def no_slice(level: float, now: float) -> FloatingPointError:
    """What is raised where no density is above a level."""
    return FloatingPointError(f"the log-density must be a number, got {level:g} at {now:g}")
