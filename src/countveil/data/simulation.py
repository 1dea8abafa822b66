"""Releases for research: the right noise from a seeded generator, which protects nobody."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from countveil.privacy import PrivacyLevel, Release, _counts
from countveil.privacy.level import ConcentratedLevel, Level
from countveil.privacy.privatize import check_network, read_levels, read_truncate, recorded, release


def simulate_release(
    counts: Any,
    level: Level | Sequence[Level],
    rng: np.random.Generator,
    truncate: bool | None = None,
    *,
    row_labels: Iterable[Any] | None = None,
    column_labels: Iterable[Any] | None = None,
    vocabulary: Sequence[str] | None = None,
    directed: bool | None = None,
) -> Release:
    """A release as ``privatize`` would make it, with reproducible noise; marked as simulated.

        tau = G1 - G2,   G1, G2 independent,   P(G = j) = (1 - alpha) alpha^j

    G1 is drawn for the whole array, then G2, by ``rng.geometric(1 - alpha) - 1``. Discrete Gaussian noise is drawn by
    rejection of such noise, level by level in order of first use. Counts, level, truncation, labels and ``directed``
    are as in ``privatize``, and so are the errors; TypeError if ``rng`` is no NumPy Generator.
    The noise follows a floating-point approximation of the law and is as secret as the seed: for research
    on counts that need no protection. Source: Schein et al. (2019), Theorem 1 (the law); Ghosh et al. (2012).
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    table = _counts.read(counts, row_labels, column_labels, vocabulary)
    check_network(table, directed)
    levels = read_levels(level, table.shape[0], table.labels[0])
    truncate = read_truncate(truncate, table, levels)
    noise = _noise(levels, (table.shape[0], math.prod(table.shape[1:])), rng)
    made = release(table, levels, truncate, lambda start, stop: noise[start:stop], simulated=True)
    return recorded(made, directed)


def _noise(
    levels: Level | tuple[Level, ...], shape: tuple[int, int], rng: np.random.Generator
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Seeded noise of shape (rows, cells in a row)."""
    per_row = (levels,) if isinstance(levels, Level) else levels
    if isinstance(per_row[0], ConcentratedLevel):
        return _gaussian_noise(per_row, shape, rng)
    rates = [float(level.rate) for level in per_row if isinstance(level, PrivacyLevel)]
    success = np.array([[-math.expm1(-min(rate, 1000.0))] for rate in rates])
    first = rng.geometric(np.broadcast_to(success, shape)) - 1
    second = rng.geometric(np.broadcast_to(success, shape)) - 1
    return first - second


def _gaussian_noise(
    per_row: Sequence[Level], shape: tuple[int, int], rng: np.random.Generator
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The same for levels of rho: one for all rows, or one for each."""
    drawn = np.empty(shape, dtype=np.int64)
    for level in dict.fromkeys(per_row):
        rows = np.flatnonzero([each == level for each in per_row]) if len(per_row) > 1 else np.arange(shape[0])
        assert isinstance(level, ConcentratedLevel)
        drawn[rows] = _discrete_gaussian(float(level.mechanism.sigma), rows.size * shape[1], rng).reshape(rows.size, -1)
    return drawn


def _discrete_gaussian(sigma: float, size: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Two-sided geometric candidates, rejected as by Canonne, Kamath and Steinke (2020), Algorithm 3."""
    scale = math.floor(sigma) + 1
    success = -math.expm1(-1 / scale)
    found = np.empty(size, dtype=np.int64)
    left = np.arange(size)
    while left.size:
        candidates = rng.geometric(success, left.size) - rng.geometric(success, left.size)
        found[left] = candidates
        gap = (np.abs(candidates) - sigma**2 / scale) / sigma
        left = left[rng.random(left.size) >= np.exp(-0.5 * gap**2)]
    return found
