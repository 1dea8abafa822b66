"""A fit of any kind from its file, and the reports that it was made of."""

import os
from pathlib import Path
from typing import TypeVar

import numpy as np
import xarray as xr

from countveil.data.observations import Observations, PrivatizedCounts
from countveil.estimators import BlockModel, PoissonFactorization, TensorModel, TopicModel
from countveil.estimators.base import FactorizationEstimator
from countveil.privacy import Release

Data = TypeVar("Data", bound=Observations)

KINDS: dict[str, type[FactorizationEstimator]] = {
    kind.__name__: kind for kind in (TopicModel, BlockModel, TensorModel, PoissonFactorization)
}


def load_fit(path: str | os.PathLike[str]) -> FactorizationEstimator:
    """A fit written by ``save``, whichever model it is of.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a fit of countveil.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no fit at {path}")
    try:
        with xr.open_datatree(path, engine="h5netcdf", phony_dims="sort") as opened:
            kind = str(opened.attrs.get("estimator"))
    except OSError as error:
        raise ValueError(f"{path} is not a fit saved by countveil: {error}") from error
    if kind not in KINDS:
        raise ValueError(f"{path} is not a fit saved by countveil: no model is called {kind!r}")
    return KINDS[kind].load(path)


def observed(fit: FactorizationEstimator, release: Release) -> Observations:
    """The release as the fit sees it, in the matrix form of its model.

    Raises:
        ValueError: a release of another shape, other labels or other noise levels than the fit's.
    """
    tree, model, layout = fit._fitted()
    dims = layout.dims_of(model.spec.output)
    draws = tree["posterior"]
    shape = tuple(int(draws.sizes[dim]) for dim in dims)
    data = in_shape_of(fit, PrivatizedCounts.from_release(release))
    if data.mode_shape != shape:
        raise ValueError(
            f"release must be the one that was fitted, {' x '.join(dims)} = {shape}, got {data.mode_shape}"
        )
    for dim, names in zip(dims, data.labels, strict=True):
        known = draws[dim].to_numpy()
        if names is not None and known.dtype.kind in "OUT" and list(names) != known.tolist():
            raise ValueError(f"release must be the one that was fitted, got other labels along {dim}")
    seen = fit._observe(data)
    assert isinstance(seen, Observations)
    axes = [tuple(model.spec.output.index(a) for a in side.observed) for side in (model.rows, model.columns)]
    found = seen.matricized(axes[0], axes[1])
    kept = tree["constant_data"]["alpha"].to_numpy()
    if tree.attrs["observations"] == "private" and not np.allclose(
        np.sort(np.unique(kept)), np.sort(np.unique(found.level_d)), rtol=1e-9
    ):
        raise ValueError("release must be the one that was fitted, got other noise levels")
    return found


def in_shape_of(
    fit: FactorizationEstimator, data: Data, labels: list[list[str] | None] | None = None
) -> Data:
    """The reports of a release, folded into a tensor, with labels for its axes, where the fit is of one.

    Raises:
        ValueError: a matrix that cannot be folded into the fit's shape.
    """
    tree, model, layout = fit._fitted()
    shape = tuple(int(tree["posterior"].sizes[dim]) for dim in layout.dims_of(model.spec.output))
    if len(shape) == 2 or data.mode_shape == shape:
        return data
    if data.shape != (shape[0], int(np.prod(shape[1:]))):
        raise ValueError(f"release must be the one that was fitted, {shape} in all, got {data.shape}")
    return data.folded(shape, labels)
