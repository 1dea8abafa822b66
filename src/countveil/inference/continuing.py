"""What stochastic variational inference needs when more rows come: kept with the posterior, also on disk."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from countveil.inference import svi
from countveil.models.factorization import Factorization

GROUP = "stream"
PARTS = ("shapes", "rates", "hypers")


class Stream(NamedTuple):
    """The global parameters, and the rows that they represent."""

    state: svi.State
    prior_scale_v: np.ndarray  # (V,)
    rows_seen: int
    total_rows: int  # rows that the state represents


def store(tree: xr.DataTree, model: Factorization, stream: Stream) -> None:
    """Add the stream to a posterior's tree."""
    variables: dict[str, Any] = {"prior_scale": ("column", stream.prior_scale_v)}
    for part in PARTS:
        for factor, values in zip(model.factors, getattr(stream.state, part), strict=True):
            name = f"{factor.name}_{part}"
            variables[name] = ([f"{name}_{i}" for i in range(np.ndim(values))], values)
    numbers = {
        "updates": stream.state.updates,
        "rows_seen": stream.rows_seen,
        "total_rows": stream.total_rows,
    }
    tree[GROUP] = xr.Dataset(variables, attrs=numbers)


def restore(tree: xr.DataTree, model: Factorization) -> Stream | None:
    """The stream of a posterior's tree; None if there is none."""
    if GROUP not in tree.children:
        return None
    found = tree[GROUP]
    parts = {
        part: tuple(found[f"{factor.name}_{part}"].to_numpy() for factor in model.factors) for part in PARTS
    }
    return Stream(
        svi.State(**parts, updates=int(found.attrs["updates"])),
        found["prior_scale"].to_numpy(),
        int(found.attrs["rows_seen"]),
        int(found.attrs["total_rows"]),
    )
