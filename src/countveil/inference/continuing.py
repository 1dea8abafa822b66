"""What stochastic variational inference goes on from when more rows come: kept with the posterior, also on disk."""

import json
from typing import NamedTuple

import numpy as np
import xarray as xr

from countveil.inference import svi
from countveil.models.matrix import GammaPrior, MatrixModel

GROUP = "stream"


class Stream(NamedTuple):
    """The global parameters, the model, and which rows they speak for."""

    state: svi.State
    model: MatrixModel
    prior_scale_v: np.ndarray  # (V,)
    rows_seen: int
    total_rows: int  # rows that the state speaks for


def store(tree: xr.DataTree, stream: Stream) -> None:
    """Add the stream to a posterior's tree."""
    s = stream.state
    tree[GROUP] = xr.Dataset(
        {
            "phi_shape": (("word", "component"), s.phi_shape),
            "phi_rate": (("word", "component"), s.phi_rate),
            "theta_hyper": (("parameter", "component"), s.theta_hyper),
            "phi_hyper": (("parameter", "component"), s.phi_hyper),
            "prior_scale": (("word",), stream.prior_scale_v),
        },
        attrs={
            "updates": s.updates,
            "rows_seen": stream.rows_seen,
            "total_rows": stream.total_rows,
            "model": json.dumps(stream.model, default=np.generic.item),
        },
    )


def restore(tree: xr.DataTree) -> Stream | None:
    """The stream of a posterior's tree; None where it has none."""
    if GROUP not in tree.children:
        return None
    found = tree[GROUP]
    parameters = {
        name: found[name].to_numpy() for name in ("phi_shape", "phi_rate", "theta_hyper", "phi_hyper")
    }
    n_components, row_prior, column_prior = json.loads(found.attrs["model"])
    return Stream(
        svi.State(**parameters, updates=int(found.attrs["updates"])),
        MatrixModel(n_components, GammaPrior(*row_prior), GammaPrior(*column_prior)),
        found["prior_scale"].to_numpy(),
        int(found.attrs["rows_seen"]),
        int(found.attrs["total_rows"]),
    )
