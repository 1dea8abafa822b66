"""New rows given the fitted columns: ``transform`` for models whose rows have a factor of their own."""

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from countveil.data.observations import Observations
from countveil.engines.blas import one_blas_thread
from countveil.engines.opening import opened
from countveil.engines.threads import available_threads
from countveil.estimators.checks import check_labels_of_fit
from countveil.inference import posterior as posteriors
from countveil.inference.algorithm import engine_or_threads
from countveil.inference.project import MOST_DRAWS, project_rows
from countveil.kernels.gamma import SMALLEST
from countveil.likelihoods.laws import law_of
from countveil.likelihoods.protocol import in_counts
from countveil.models.priors import RowPrior


class RowProjection(TransformerMixin):
    """Adds ``transform`` and ``fit_transform``."""

    def transform(self: Any, X: Any) -> np.ndarray:
        """(D, K) expected counts from each component, for new rows given the fitted columns.

        The new rows have reports of their own and, if their release says so, noise levels of their own.

        Raises:
            NotFittedError: before ``fit``.
            ValueError: X with other columns than the fit's, a dispersion by row, or a prior of the rows that does not
                say what new rows are.
        """
        tree, model, _ = self._fitted()
        if "row" in model.likelihood.parameter_axes.values():
            raise ValueError(
                "transform needs a dispersion that new rows have too, got one of each fitted row"
            )
        observations = self._observe(X)
        self._check_columns(observations)
        factor = model.factors[model.row_factor]
        prior, name = factor.prior, f"{factor.name}_rate"
        if not isinstance(prior, RowPrior) or name not in tree["posterior"]:
            raise ValueError(
                "transform needs a prior that reports rates and has the methods of RowPrior, got one of kind "
                f"{prior.kind!r} for {factor.name!r}"
            )
        rates = posteriors.flat_draws(tree, name)
        rates = rates.reshape(len(rates), -1)
        chosen = np.unique(np.linspace(0, len(rates) - 1, MOST_DRAWS).astype(int))
        wanted = set(chosen.tolist())
        draws = zip(range(len(rates)), self.matrix_draws(), self.parameter_draws(), strict=False)
        phi, parameters = zip(*((pair[1], own) for s, pair, own in draws if s in wanted), strict=True)
        laws = [law_of(observations.noise, model.likelihood, own) for own in parameters]
        sizes = [
            growth(in_counts(model.likelihood, np.ones((1, 1)), each, own)[1], each)
            for each, own in zip(phi, parameters, strict=True)
        ]
        threads = available_threads() if self.threads is None else self.threads
        with (
            one_blas_thread(),
            opened(self.engine, None, threads) as given,
            engine_or_threads(given, threads) as engine,
        ):
            return project_rows(
                observations, list(phi), rates[chosen], prior, laws, sizes, self.seed_, engine
            )

    def _check_columns(self: Any, observations: Observations) -> None:
        wanted = tuple(self.posterior["posterior"].sizes[d] for d in self._column_dims())
        shape = observations.mode_shape[1:]
        if shape != wanted:
            raise ValueError(
                f"X has {observations.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: X must have the columns of the fit, "
                f"{' x '.join(map(str, wanted))}, got {' x '.join(map(str, shape))}"
            )
        columns = {dim: names for dim, names in self.axes.items() if dim in self._column_dims()}
        check_labels_of_fit(
            "X must have the columns of the fit in their order", columns, observations.labels[1:]
        )

    def _column_dims(self: Any) -> tuple[str, ...]:
        _, model, layout = self._fitted()
        return layout.dims_of(model.spec.output[1:])

    def fit_transform(self: Any, X: Any, y: None = None, **_: Any) -> np.ndarray:
        """Fit, and return the posterior mean of expected counts from each component (D, K) for the rows of the fit."""
        self.fit(X)
        likelihood, total, n = self.model_.likelihood, 0.0, 0
        for (theta, phi), parameters in zip(self.matrix_draws(), self.parameter_draws(), strict=False):
            theta, scaled = in_counts(likelihood, theta, phi, parameters)
            total, n = total + theta * growth(scaled, phi), n + 1
        return np.asarray(total / n)


def growth(scaled: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """(K,) by how much the sums of components (V, K) have grown."""
    return np.asarray(scaled.sum(axis=0) / np.maximum(phi.sum(axis=0), SMALLEST))
