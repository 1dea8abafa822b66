"""The greatest values of many functions at once, each of a number of its own: a grid, then golden sections."""

from collections.abc import Callable

import numpy as np

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
