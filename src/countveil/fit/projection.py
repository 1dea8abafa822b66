"""New rows given the fitted columns: ``transform`` for models whose rows have a factor of their own."""

from typing import Any

import numpy as np
import xarray as xr
from sklearn.base import TransformerMixin

from countveil.data.observations import Observations
from countveil.engines.blas import one_blas_thread
from countveil.engines.opening import opened
from countveil.fit.checks import check_labels_of_fit
from countveil.inference.algorithm import engine_or_threads
from countveil.inference.mixture import places, unweighted
from countveil.inference.project import MOST_DRAWS, project_rows
from countveil.kernels.gamma import SMALLEST
from countveil.laws.counts.protocol import in_counts
from countveil.models.factorization import Factor
from countveil.models.layout import latent_groups
from countveil.models.priors import LearnedShapePrior, RowPrior


class RowProjection(TransformerMixin):
    """Adds ``transform`` and ``fit_transform``."""

    def transform(self: Any, X: Any) -> np.ndarray:
        """(D, K) expected counts from each component, for new rows given the fitted columns.

        The new rows have reports of their own and, if their release says so, noise levels of their own. With exposures
        by cell these are expected counts of cells with exposure 1 each. Of chains that
        differ, those are taken that have all components of the heaviest one.

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
        if getattr(observations, "totals", None) is not None:
            raise ValueError("X must have no totals for transform, which treats each row separately")
        if (self.exposure_matrix is None) != (observations.exposure is None):
            its = "no exposure by cell" if self.exposure_matrix is None else "an exposure by cell"
            raise ValueError(f"X must have {its} for transform, as the data of the fit, got another")
        self._check_columns(observations)
        factor = model.factors[model.row_factor]
        rates, priors = row_priors(unweighted(tree), factor)
        every = self._draws_alike()
        chosen = [every[i] for i in np.unique(np.linspace(0, len(every) - 1, MOST_DRAWS).astype(int))]
        wanted = {s for s, _ in chosen}
        draws = {s: draw for s, draw in enumerate(self._draws_of_chains()) if s in wanted}
        phi = [draws[s][0][1][:, order] for s, order in chosen]
        parameters = [draws[s][1] for s, _ in chosen]
        laws = [observations.law(model.likelihood, own) for own in parameters]
        sizes = [
            growth(in_counts(model.likelihood, np.ones((1, 1)), each, own)[1], each)
            for each, own in zip(phi, parameters, strict=True)
        ]
        own_rates = np.stack([rates[s] if rates.shape[1] == 1 else rates[s, order] for s, order in chosen])
        threads = self._n_threads(observations)
        with (
            one_blas_thread(),
            opened(self.engine, None, threads) as given,
            engine_or_threads(given, threads) as engine,
        ):
            own_priors = [priors[s] for s, _ in chosen]
            return project_rows(observations, phi, own_rates, own_priors, laws, sizes, self.seed_, engine)

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
        likelihood, total, every = self.model_.likelihood, 0.0, self._draws_alike()
        orders: dict[int, list[np.ndarray]] = {}
        for s, order in every:
            orders.setdefault(s, []).append(order)
        for s, ((theta, phi), own) in enumerate(self._draws_of_chains()):
            for order in orders.get(s, []):
                theta_in_counts, scaled = in_counts(likelihood, theta, phi, own)
                total = total + (theta_in_counts * growth(scaled, phi))[:, order]
        return np.asarray(total / len(every))

    def _draws_alike(self: Any) -> list[tuple[int, np.ndarray]]:
        """The mixture of the chains that have the same components: numbers of draws, and the order (K,) of each.

        Draws are numbered chain after chain, as without weights.
        """
        n_draws = self.posterior["posterior"].sizes["draw"]
        same = self._alike(latent_groups(self.model_)[self.model_.spec.latent[0]])
        weights = self.weights_[[chain for chain, _ in same]]
        kept = places(weights / weights.sum(), [n_draws] * len(same))
        return [
            (chain * n_draws + int(s), order)
            for (chain, order), own in zip(same, kept, strict=True)
            for s in own
        ]


def row_priors(tree: xr.DataTree, factor: Factor) -> tuple[np.ndarray, list[RowPrior]]:
    """(rates (C S, K), the prior of new rows) of every draw, chain after chain.

    Raises:
        ValueError: the prior does not say what new rows are.
    """
    prior, draws = factor.prior, tree["posterior"]
    if not isinstance(prior, RowPrior | LearnedShapePrior) or f"{factor.name}_rate" not in draws:
        raise ValueError(
            "transform needs a prior that reports rates and has the methods of RowPrior, got one of kind "
            f"{prior.kind!r} for {factor.name!r}"
        )
    rates = draws[f"{factor.name}_rate"].to_numpy()
    rates = rates.reshape(rates.shape[0] * rates.shape[1], -1)
    if isinstance(prior, LearnedShapePrior):
        return rates, [prior.at(shape) for shape in draws[f"{factor.name}_shape"].to_numpy().flat]
    return rates, [prior] * len(rates)


def growth(scaled: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """(K,) by how much the sums of components (V, K) have grown."""
    return np.asarray(scaled.sum(axis=0) / np.maximum(phi.sum(axis=0), SMALLEST))
