"""What readers of a fit start from: its posterior, the axes of its data, and its rates and data in matrix form.

Whatever the einsum of a model, its rates are theta @ phi.T for two matrices (mathematics, section 6): some axes of the
data make the rows, all others the columns.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from sklearn.exceptions import NotFittedError

from countveil.data.observations import Observations
from countveil.data.release_files import ReleaseFiles
from countveil.fit.parameters import check_labels_of_fit
from countveil.inference import posterior as posteriors
from countveil.inference.matching import weights_of
from countveil.inference.methods import METHODS
from countveil.laws.counts import Parameters
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout
from countveil.models.spec import Spec


class Readable:
    """A fit's draws and data without the names of its factors; its estimator sets ``posterior_`` and ``model_``."""

    model_: Factorization

    def _layout(self, spec: Spec) -> Layout:
        """What axes, factors and components are called outside."""
        raise NotImplementedError

    def _observe(self, X: Any) -> Observations | ReleaseFiles:
        """Data as inference sees them."""
        raise NotImplementedError

    @property
    def posterior(self) -> xr.DataTree:
        """All draws; raises NotFittedError before ``fit``."""
        if not hasattr(self, "posterior_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit with a release first"
            )
        return self.posterior_

    @property
    def why_no_intervals(self) -> str:
        """Why tables, figures and pages of this fit have no intervals; empty where their intervals are calibrated."""
        return why_none(self.posterior.attrs)

    @property
    def weights_(self) -> np.ndarray:
        """(chain,) weights of the chains, with sum one: of each, whatever is said of all draws takes as many."""
        return weights_of(self.posterior)

    def _fitted(self) -> tuple[xr.DataTree, Factorization, Layout]:
        """The posterior, and what its variables are."""
        tree = self.posterior
        return tree, self.model_, self._layout(self.model_.spec)

    @property
    def axes(self) -> dict[str, np.ndarray]:
        """The axes of the data by name, in order, each with the labels of its entries, or their numbers."""
        tree, model, layout = self._fitted()
        return {dim: tree["posterior"][dim].to_numpy() for dim in layout.dims_of(model.spec.output)}

    def observe(self, X: Any) -> Observations:
        """Data as the model sees them: cells that are not part of them, such as self-loops, are masked.

        Raises:
            TypeError: data without a noise level (a bare array, and no ``alpha``).
            ValueError: data that the model refuses.
        """
        found = self._observe(X)
        return found.unpacked() if isinstance(found, ReleaseFiles) else found

    def own_data(self, name: str, X: Any) -> Observations:
        """What ``observe`` gives of data over the fit's own cells, which an argument of this name holds.

        Raises:
            TypeError: data without a noise level (a bare array, and no ``alpha``).
            ValueError: data that the model refuses, of another shape, or with other labels or labels in another order.
        """
        axes = self.axes
        shape, found = tuple(len(names) for names in axes.values()), self.observe(X)
        if found.mode_shape != shape:
            raise ValueError(
                f"{name} must hold the cells of the fit, {' x '.join(axes)} = {shape}, got {found.mode_shape}"
            )
        check_labels_of_fit(f"{name} must have the labels of the fit in their order", axes, found.labels)
        return self.exposed(name, found)

    def exposed(self, name: str, observed: Observations) -> Observations:
        """What ``observe`` gave of the fit's own cells, with the exposures by cell that the fit has, if any.

        Raises:
            ValueError: the data have exposures by cell of their own, which are others.
        """
        matrix = self.exposure_matrix
        if matrix is None:
            if observed.exposure is not None:
                raise ValueError(f"{name} must have no exposure by cell, because the fitted data have none")
            return observed
        exposure = posteriors.rate_array(matrix, *self._fitted()).to_numpy().reshape(observed.shape)
        if observed.exposure is not None and not np.array_equal(observed.exposure, exposure):
            raise ValueError(f"{name} must have the exposure of the fit, or none, got another")
        return observed.exposed_as(exposure)

    def matrix_draws(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(theta (rows, K), phi (columns, K)) of every draw, chain after chain; theta @ phi.T are its rates.

        Of each chain there are as many as its weight says, some of them repeatedly: as many in all as all chains have.
        """
        tree, model, layout = self._fitted()
        for factors in posteriors.factor_draws(tree, model, layout):
            yield model.matrices(factors)

    def parameter_draws(self) -> Iterator[Parameters]:
        """The likelihood's own parameters in every draw, beside ``matrix_draws``; endless where it has none."""
        tree, model, _ = self._fitted()
        return posteriors.parameter_draws(tree, model)

    def even_draws(self, most: int) -> Iterator[tuple[tuple[np.ndarray, np.ndarray], Parameters]]:
        """``matrix_draws`` beside ``parameter_draws``, at most this many of them, evenly spread."""
        tree, model, layout = self._fitted()
        kept = posteriors.evenly(posteriors.n_draws(tree), most).tolist()
        factors = (model.matrices(each) for each in posteriors.factor_draws(tree, model, layout, kept))
        wanted = set(kept)
        parameters = (own for s, own in enumerate(self.parameter_draws()) if s in wanted)
        return zip(factors, parameters, strict=False)

    @property
    def exposure_matrix(self) -> np.ndarray | None:
        """Exposures by cell over the rows and columns of ``matrix_draws``, whose rates are for one unit of them.

        None where the data had none, or offsets said the same.
        """
        return posteriors.exposure_of(self.posterior, self.matrix_shape)

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """(rows, columns) of the rates in ``matrix_draws``."""
        _, model, _ = self._fitted()
        return model.rows.shape[0], model.columns.shape[0]

    def data_matrix(self, observed: Observations) -> Observations:
        """What ``observe`` gave, over the rows and columns of ``matrix_draws``."""
        rows, columns = self._sides()
        return observed.matricized(rows, columns)

    def as_matrix(self, values: Any) -> np.ndarray:
        """An array over the axes of the data, such as ``rate()``, over the rows and columns of ``matrix_draws``."""
        rows, columns = self._sides()
        return np.asarray(values).transpose([*rows, *columns]).reshape(self.matrix_shape)

    def matrix_places(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(row, column) in ``matrix_draws`` of cells (n, axes) given by their numbers along the axes of the data."""
        shape = [len(names) for names in self.axes.values()]
        found = [
            np.ravel_multi_index([places[:, a] for a in side], [shape[a] for a in side])
            if side
            else np.zeros(len(places), dtype=np.int64)
            for side in self._sides()
        ]
        return found[0], found[1]

    def places_of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The cells (n, axes) that ``matrix_places`` gave these rows and columns."""
        shape = [len(names) for names in self.axes.values()]
        places = np.zeros((len(rows), len(shape)), dtype=np.int64)
        for side, numbers in zip(self._sides(), (rows, columns), strict=True):
            if side:
                places[:, side] = np.stack(np.unravel_index(numbers, [shape[a] for a in side]), axis=1)
        return places

    def _sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Positions of the rows' axes among those of the data, and of the columns'."""
        return self._fitted()[1].matrix_axes


ENDS = {"lower": "uncalibrated_lower", "upper": "uncalibrated_upper"}


def why_none(facts: Mapping[Any, Any]) -> str:
    """Why a fit with these facts, which its file keeps, has no intervals; empty if it has calibrated ones."""
    if facts.get("observations") == "naive":
        return "those of a naive fit do not hold the truth"
    method = METHODS.get(str(facts["method"]))
    if method is None or not method.calibrated:
        return f"those of method {facts['method']!r} are not calibrated"
    return ""


def as_calibrated(table: pd.DataFrame, why: str, uncalibrated: bool) -> pd.DataFrame:
    """A table with its intervals where nothing speaks against them, else without, or under a name that says so."""
    if not why:
        return table
    return table.rename(columns=ENDS) if uncalibrated else table.drop(columns=list(ENDS))
