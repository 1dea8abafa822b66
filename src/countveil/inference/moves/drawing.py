"""The counts of each component where sweeps go by tokens: drawn, in the time of a sweep, instead of expected."""

from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Engine
from countveil.inference import burst_tokens, tokens
from countveil.inference.moves.merging import Counts
from countveil.inference.streams import Streams
from countveil.laws.noise.two_sided_geometric.law import TwoSidedGeometricPoisson

DRAWS = 2  # whose mean is taken
FIRST = 1 << 40  # their number among the sweeps, far beyond all others


def drawn_counts(
    observations: Observations,
    law: tuple[Any, ...],
    theta: np.ndarray,
    phi: np.ndarray,
    tally_size: int,
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> Counts:
    """Means of a few draws of the counts (of bursts, where counts come in bursts) given theta (D, K) and phi (V, K)."""
    ones, found = np.ones_like(theta), []
    for number in range(FIRST + sweep * DRAWS, FIRST + (sweep + 1) * DRAWS):
        if isinstance(law, TwoSidedGeometricPoisson):
            drawn = tokens.sweep_rows(observations, theta, phi, (ones, ones), streams, number, engine)
            found.append(drawn[1:3])
        else:
            bursts = burst_tokens.sweep_rows(
                observations, law, theta, phi, (ones, ones), tally_size, streams, number, engine
            )
            found.append(bursts[1:3])
    rows, columns = (np.mean(each, axis=0) for each in zip(*found, strict=True))
    return Counts(np.ascontiguousarray(rows.T), np.ascontiguousarray(columns.T))
