"""Releases for research: the right noise from a seeded generator, which protects nobody."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from countveil.privacy import PrivacyLevel, Release, _counts, network
from countveil.privacy.privatize import read_levels, read_truncate, release


def simulate_release(
    counts: Any,
    level: PrivacyLevel | Sequence[PrivacyLevel],
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

    G1 is drawn for the whole array, then G2, by ``rng.geometric(1 - alpha) - 1``. Counts, level, truncation,
    labels and ``directed`` are as in ``privatize``, and so are the errors; TypeError if ``rng`` is no NumPy Generator.
    The noise follows a floating-point approximation of the law and is as secret as the seed: for research
    on counts that need no protection. Source: Schein et al. (2019), Theorem 1 (the law); Ghosh et al. (2012).
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    table = _counts.read(counts, row_labels, column_labels, vocabulary)
    network.check_counts(table, directed)
    levels = read_levels(level, table.shape[0], table.labels[0])
    truncate = read_truncate(truncate, table)
    noise = _noise(levels, (table.shape[0], math.prod(table.shape[1:])), rng)
    made = release(table, levels, truncate, lambda start, stop: noise[start:stop], simulated=True)
    return network.recorded(made, directed)


def _noise(
    levels: PrivacyLevel | tuple[PrivacyLevel, ...], shape: tuple[int, int], rng: np.random.Generator
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Seeded noise of shape (rows, cells in a row)."""
    per_row = (levels,) if isinstance(levels, PrivacyLevel) else levels
    success = np.array([[-math.expm1(-min(float(level.rate), 1000.0))] for level in per_row])
    first = rng.geometric(np.broadcast_to(success, shape)) - 1
    second = rng.geometric(np.broadcast_to(success, shape)) - 1
    return first - second
