"""Rows that arrive over time: ``partial_fit`` for models whose rows have a factor of their own."""

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from countveil.fit.base import Given
from countveil.inference.compiling import compiling_told
from countveil.inference.continuing import Stream, restore
from countveil.inference.methods import METHODS, go_on, those


def learns_from_batches(estimator: Any) -> bool:
    """Whether the estimator's method learns from batches.

    Raises:
        AttributeError: it does not.
    """
    method = METHODS.get(estimator.method)
    if method is None or not method.batches:
        raise AttributeError(f"partial_fit goes with {those('batches')}, got method {estimator.method!r}")
    return True


class RowStream:
    """Adds ``partial_fit``, which an estimator has if its method learns from batches."""

    @available_if(learns_from_batches)
    def partial_fit(self: Any, X: Any, y: None = None) -> Any:
        """Learn from rows that arrive over time: one pass over X in batches of ``batch_rows`` (``method="svi"``).

        The first call, if no fit by "svi" came before, starts from its own rows: make it a large one, since
        topics found in few noisy rows are slow to correct. Later calls go on from there, also after ``fit`` and
        after ``load``; with the same calls and seed the result is the same, saved in between or not. Every row
        counts as a new one, so show rows once (or set ``total_rows``). Results about rows, such as
        ``posterior``, ``rate`` and ``diagnostics``, cover those of the last call; columns are learned from all.
        Every call makes ``draws`` draws.

        Raises:
            AttributeError: a method other than "svi".
            TypeError: data without a noise level (a bare array, and no ``alpha``).
            ValueError: a parameter out of range, data or a model that the method does not accept, or columns, a number
                of components or column offsets other than those of the first call.
        """
        self._check_parameters()
        given = self._given(X)
        before = restore(self.posterior_, self.model_) if hasattr(self, "posterior_") else None
        if before is None:
            self._settle_seed()
        else:
            self._check_goes_on(given, before)
            given = given._replace(model=self.model_.with_rows(given.data.shape[0]))
        rows_seen = given.data.shape[0] + (0 if before is None else before.rows_seen)
        total_rows = rows_seen if self.total_rows is None else self.total_rows
        with compiling_told(self.progress):
            earlier = None if before is None else (before.state, before.total_rows)
            settings = self._settings(
                None, given, None if before is None else "auto"
            )  # later rows have begun
            found = go_on(self.method, given.data, given.model, settings, earlier, total_rows)
        self._adopt_fit(found, given, rows_seen, total_rows)
        return self

    def _check_goes_on(self: Any, given: Given, before: Stream) -> None:
        """Refuse rows that do not match those before them."""
        self._check_columns(given.first)
        spec, axis = given.model.spec, given.model.spec.latent
        fitted, now = self.model_.columns.sizes[axis], given.model.columns.sizes[axis]
        if fitted != now:
            name = next(p for p in ("n_topics", "n_components") if hasattr(self, p))
            raise ValueError(f"{name} must be the {fitted} of the first rows, got {now}")
        if spec != self.model_.spec:
            raise ValueError(f"the model must be the first rows' {self.model_.spec}, got {spec}")
        if (given.first.column_labels is None) == hasattr(self, "feature_names_in_"):
            raise ValueError(
                "X must name its columns if and only if the first rows did, got "
                + ("no names" if given.first.column_labels is None else "names")
            )
        if not np.array_equal(given.first.prior_scale_v, before.prior_scale_v):
            raise ValueError("X must have the column_offset of the first rows, got another")
