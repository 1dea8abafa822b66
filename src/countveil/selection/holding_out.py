"""hold_out: data in two parts, one to fit models to and one that they do not see."""

import secrets
from typing import Any

import numpy as np

from countveil.data.matrices import check_integer
from countveil.data.observations import Observations
from countveil.data.release_files import ReleaseFiles
from countveil.data.reports import observations_of
from countveil.inference.folds import Cells, is_mirrored

MAX_CELLS = 50_000_000  # of the data: the part that is held out names every cell that is not in it


def hold_out(data: Any, share: float = 0.1, seed: int | None = None) -> tuple[Observations, Observations]:
    """(training, held_out): the data without a random share of the cells that were seen, and these cells alone.

    Cells of one part are masked in the other. Both cells of a pair go together in undirected networks, and in matrices
    that report the same on both sides of the diagonal.

    Args:
        data: a ``Release``, ``PrivatizedCounts``, or what else ``fit`` takes with a noise level of its own.
        share: of the cells, between 0 and 1.
        seed: whole number of at most 40 digits; None takes one from the operating system.

    Raises:
        TypeError: data without a noise level.
        ValueError: a share that is not between 0 and 1, or that leaves a part without cells; too large data.
    """
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0.0 < share < 1.0:
        raise ValueError(f"share must be a number between 0 and 1, got {share!r}")
    if seed is not None:
        check_integer("seed", seed, 0, 10**40 - 1)
    observed = data.unpacked() if isinstance(data, ReleaseFiles) else observations_of(data)
    n_rows, n_columns = observed.shape
    if n_rows * n_columns > MAX_CELLS:
        raise ValueError(f"data must have at most {MAX_CELLS:,} cells, got {n_rows:,} x {n_columns:,}")
    seen = seen_cells(observed)
    pairs = observed.directed is False or is_mirrored(observed)
    if pairs:
        seen = Cells(*(part[seen.rows <= seen.columns] for part in seen))
    rng = np.random.default_rng(secrets.randbits(63) if seed is None else int(seed))
    n_held = round(share * seen.size)
    if not 0 < n_held < seen.size:
        raise ValueError(f"share must leave cells in both parts, got {share} of {seen.size} cells")
    held = np.zeros(seen.size, dtype=bool)
    held[rng.permutation(seen.size)[:n_held]] = True
    parts = [Cells(seen.rows[chosen], seen.columns[chosen]) for chosen in (held, ~held)]
    hidden, kept = (part.both_directions() if pairs else part for part in parts)
    return observed.hide(*hidden), observed.hide(*kept)


def seen_cells(observed: Observations) -> Cells:
    """The cells that are not masked, row after row."""
    every = np.arange(observed.shape[0] * observed.shape[1])
    rows, columns = np.divmod(every, observed.shape[1])
    seen = observed.cells(rows, columns)[0] >= 0
    return Cells(rows[seen], columns[seen])
