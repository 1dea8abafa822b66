"""Rows that come later: ``transform`` and ``partial_fit``, for models whose rows have a factor of their own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import xarray as xr
from sklearn.utils.metaestimators import available_if

from countveil.data.observations import Observations
from countveil.engines.blocks import MAX_ROWS_PER_BLOCK, Arrays, Block, Engine, row_blocks
from countveil.engines.opening import opened
from countveil.engines.threads import one_blas_thread
from countveil.fit.parameters import check_labels_of_fit
from countveil.inference.algorithm import engine_or_threads
from countveil.inference.factors import filled
from countveil.inference.matching import places, unweighted
from countveil.inference.methods import METHODS, go_on, those
from countveil.inference.progress import compiling_told
from countveil.inference.streams import ROWS, Streams
from countveil.inference.svi import Stream, restore
from countveil.kernels import gibbs as kernels
from countveil.kernels.random import SMALLEST
from countveil.laws.counts.laws import in_block
from countveil.laws.counts.protocol import in_counts
from countveil.models.factorization import Factor
from countveil.models.layout import latent_groups
from countveil.models.priors import Prior

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator, Given

    class TransformerMixin:
        """As ``inference.algorithm.BaseEstimator``: what is used of scikit-learn's class, with types."""

        def set_output(self, *, transform: str | None = None) -> Self: ...  # noqa: D102
else:
    from sklearn.base import TransformerMixin as TransformerMixin


def transform(fit: Any, X: Any) -> np.ndarray:
    """(D, K) expected counts from each component, for new rows given the fitted columns.

    The new rows have reports of their own and, if their release says so, noise levels of their own. With exposures
    by cell these are expected counts of cells with exposure 1 each. Of chains that
    differ, those are taken that have all components of the heaviest one.

    Raises:
        NotFittedError: before ``fit``.
        ValueError: X with other columns than the fit's, a dispersion by row, or a prior of the rows that does not
            say what new rows are.
    """
    tree, model, _ = fit._fitted()
    if "row" in model.likelihood.parameter_axes.values():
        raise ValueError(
            "dispersion must be 'global', 'column' or a number for transform, since new rows have none, got 'row'"
        )
    observations = fit._observed(X)
    if observations.totals is not None:
        raise ValueError(
            f"X must have no totals for transform, which treats each row separately, got {observations.totals.in_words}"
        )
    if (fit._reader.exposure_matrix is None) != (observations.exposure is None):
        its = "no exposure by cell" if fit._reader.exposure_matrix is None else "an exposure by cell"
        got = "one" if observations.exposure is not None else "none"
        raise ValueError(f"X must have {its} for transform, as the data of the fit have, got {got}")
    check_columns(fit, observations)
    factor = model.factors[model.row_factor]
    prior = row_prior(unweighted(tree), factor)
    every = draws_alike(fit)
    chosen = [every[i] for i in np.unique(np.linspace(0, len(every) - 1, MOST_DRAWS).astype(int))]
    wanted = {s for s, _ in chosen}
    draws = {s: draw for s, draw in enumerate(fit._reader.draws_of_chains()) if s in wanted}
    phi = [draws[s][0][1][:, order] for s, order in chosen]
    parameters = [draws[s][1] for s, _ in chosen]
    laws = [observations.law(model.likelihood, own) for own in parameters]
    sizes = [
        growth(in_counts(model.likelihood, np.ones((1, 1)), each, own)[1], each)
        for each, own in zip(phi, parameters, strict=True)
    ]
    threads = fit._n_threads(observations)
    with one_blas_thread(), opened(fit.engine, None, threads) as given, engine_or_threads(given, threads) as engine:
        return project_rows(observations, phi, prior.of_draws(chosen), laws, sizes, fit.seed_, engine)


def check_columns(fit: "FactorizationEstimator", observations: Observations) -> None:
    """Refuse rows whose columns are not those of the fit; raises ValueError."""
    wanted = tuple(fit.posterior["posterior"].sizes[d] for d in column_dims(fit))
    shape = observations.mode_shape[1:]
    if shape != wanted:
        raise ValueError(
            f"X has {observations.shape[1]} features, but {type(fit).__name__} is expecting "
            f"{fit.n_features_in_} features as input: X must have the columns of the fit, "
            f"{' x '.join(map(str, wanted))}, got {' x '.join(map(str, shape))}"
        )
    columns = {dim: names for dim, names in fit._reader.axes.items() if dim in column_dims(fit)}
    check_labels_of_fit("X must have the columns of the fit in their order", columns, observations.labels[1:])


def column_dims(fit: "FactorizationEstimator") -> tuple[str, ...]:
    """The names of all axes of the data but the rows."""
    _, model, layout = fit._fitted()
    return layout.dims_of(model.spec.output[1:])


def fit_transform(fit: Any, X: Any, y: None = None, **_: Any) -> np.ndarray:
    """Fit, and return the posterior mean of expected counts from each component (D, K) for the rows of the fit."""
    fit.fit(X)
    likelihood, total, every = fit.model_.likelihood, 0.0, draws_alike(fit)
    orders: dict[int, list[np.ndarray]] = {}
    for s, order in every:
        orders.setdefault(s, []).append(order)
    for s, ((theta, phi), own) in enumerate(fit._reader.draws_of_chains()):
        for order in orders.get(s, []):
            theta_in_counts, scaled = in_counts(likelihood, theta, phi, own)
            total = total + (theta_in_counts * growth(scaled, phi))[:, order]
    return np.asarray(total / len(every))


def draws_alike(fit: "FactorizationEstimator") -> list[tuple[int, np.ndarray]]:
    """The mixture of the chains that have the same components: numbers of draws, and the order (K,) of each.

    Draws are numbered chain after chain, as without weights.
    """
    n_draws = fit.posterior["posterior"].sizes["draw"]
    same = fit._reader.chains_alike(latent_groups(fit.model_)[fit.model_.spec.latent[0]])
    weights = fit.weights_[[chain for chain, _ in same]]
    kept = places(weights / weights.sum(), [n_draws] * len(same))
    return [(chain * n_draws + int(s), order) for (chain, order), own in zip(same, kept, strict=True) for s in own]


class RowPrior(NamedTuple):
    """The prior of new rows in several draws."""

    prior: Prior
    rates: np.ndarray  # (S, K) or (S, 1)
    shapes: np.ndarray | None  # (S,) if the shape is learned

    def gamma(self, s: int, scale: Any) -> tuple[Any, Any]:
        """(shape, rate) of the entries of new rows in one of the draws."""
        shape = None if self.shapes is None else float(self.shapes[s])
        return self.prior.gamma_of_new_rows(self.rates[s], shape, scale)

    def of_draws(self, chosen: Sequence[tuple[int, np.ndarray]]) -> "RowPrior":
        """Some of the draws, each with its components in the given order."""
        kept = [s for s, _ in chosen]
        rates = self.rates[kept]
        if rates.shape[1] > 1:
            rates = np.stack([own[order] for own, (_, order) in zip(rates, chosen, strict=True)])
        return RowPrior(self.prior, rates, None if self.shapes is None else self.shapes[kept])


def row_prior(tree: xr.DataTree, factor: Factor) -> RowPrior:
    """The prior of new rows in every draw, chain after chain.

    Raises:
        ValueError: the prior has no law of new rows.
    """
    prior, draws = factor.prior, tree["posterior"]
    if not prior.new_rows or f"{factor.name}_rate" not in draws:
        raise ValueError(
            f"transform needs a prior that applies to new rows, got one of kind {prior.kind!r} for {factor.name!r}: "
            f"fit all rows together, or the new ones by TopicModel({factor.shape[1]}, known_topics=fit)"
        )
    rates = draws[f"{factor.name}_rate"].to_numpy()
    shapes = draws[f"{factor.name}_shape"].to_numpy().ravel() if prior.learns_shape else None
    return RowPrior(prior, rates.reshape(rates.shape[0] * rates.shape[1], -1), shapes)


def growth(scaled: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """(K,) by how much the sums of components (V, K) have grown."""
    return np.asarray(scaled.sum(axis=0) / np.maximum(phi.sum(axis=0), SMALLEST))


def learns_from_batches(estimator: Any) -> bool:
    """Whether the estimator's method learns from batches.

    Raises:
        AttributeError: it does not.
    """
    known = METHODS.get(estimator.method) if isinstance(estimator.method, str) else estimator.method
    if not getattr(known, "batches", False):
        raise AttributeError(f"partial_fit requires {those('batches')}, got method {estimator.method!r}")
    return True


@available_if(learns_from_batches)
def partial_fit(fit: Any, X: Any, y: None = None) -> Any:
    """Learn from rows that arrive over time: one pass over X in batches of ``batch_rows`` (``method="svi"``).

    The first call, if no fit by "svi" came before, starts from its own rows: make it a large one, since
    topics found in few noisy rows are slow to correct. Later calls go on from there, also after ``fit`` and
    after ``load``; with the same calls and seed the result is the same, saved in between or not. Every row
    counts as a new one, so show rows once, or state how many there are: ``method=cv.SVI(total_rows=10**6)``.
    Results about rows, such as ``posterior``, ``rate`` and ``diagnostics``, cover those of the last call; columns are
    learned from all. Every call makes ``draws`` draws.

    Raises:
        AttributeError: a method other than "svi".
        TypeError: data without a noise level (a bare array, and no ``alpha``).
        ValueError: a parameter out of range, data or a model that the method does not accept, or columns, a number
            of components or column offsets other than those of the first call.
    """
    fit._check_parameters()
    given = fit._given(X)
    before = restore(fit.posterior_, fit.model_) if hasattr(fit, "posterior_") else None
    if before is None:
        fit._settle_seed()
    else:
        check_goes_on(fit, given, before)
        given = given._replace(model=fit.model_.with_rows(given.data.shape[0]))
    rows_seen = given.data.shape[0] + (0 if before is None else before.rows_seen)
    asked = fit._method.total_rows
    total_rows = rows_seen if asked is None else asked
    with compiling_told(fit.progress):
        earlier = None if before is None else (before.state, before.total_rows)
        settings = fit._settings(None, given, None if before is None else "auto")  # later rows have begun
        found = go_on(fit._method, given.data, given.model, settings, earlier, total_rows)
    fit._adopt_fit(found, given, rows_seen, total_rows)
    return fit


def check_goes_on(fit: Any, given: "Given", before: Stream) -> None:
    """Refuse rows that do not match those before them."""
    check_columns(fit, given.first)
    spec, axis = given.model.spec, given.model.spec.latent
    fitted, now = fit.model_.columns.sizes[axis], given.model.columns.sizes[axis]
    if fitted != now:
        name = next(p for p in ("n_topics", "n_components") if hasattr(fit, p))
        raise ValueError(f"{name} must stay at {fitted}, as for the first rows, got {now}")
    if spec != fit.model_.spec:
        raise ValueError(f"the model must be that of the first rows, {fit.model_.spec}, got {spec}")
    if (given.first.column_labels is None) == hasattr(fit, "feature_names_in_"):
        raise ValueError(
            "X must name its columns if and only if the first rows did, got "
            + ("no names" if given.first.column_labels is None else "names")
        )
    if not np.array_equal(given.first.prior_scale_v, before.prior_scale_v):
        v = int(np.flatnonzero(given.first.prior_scale_v != before.prior_scale_v)[0])
        raise ValueError(
            f"X must have the column_offset of the first rows, {before.prior_scale_v[v]:g} in column {v}, "
            f"got {given.first.prior_scale_v[v]:g}"
        )


MOST_DRAWS = 100
SWEEPS_PER_DRAW = 10
PROJECTION_CHAIN = 2**31


def project_rows(
    observations: Observations,
    phi_draws: list[np.ndarray],
    prior: RowPrior,
    laws: Sequence[tuple[Any, ...]],
    sizes: Sequence[Any],
    seed: int,
    engine: Engine,
) -> np.ndarray:
    """Posterior mean (D, K) of new rows' theta, averaged over draws of phi (V, K) and of the prior.

    ``laws`` has the law of reports in each draw, ``sizes`` what theta is multiplied by. For each
    of up to 100 evenly spread draws, the rows' own Gibbs chain continues for ten sweeps given phi, and the last five
    are averaged. A row's result does not depend on the rows after it.
    """
    chosen = np.unique(np.linspace(0, len(phi_draws) - 1, MOST_DRAWS).astype(int))
    streams = Streams.of_chain(seed, PROJECTION_CHAIN)
    blocks = row_blocks(observations.shape[0], MAX_ROWS_PER_BLOCK)
    scale = observations.prior_scale_d[:, None]
    shape, rate = prior.gamma(chosen[0], 1.0)
    theta = filled((observations.shape[0], phi_draws[0].shape[1]), shape / rate) / scale
    total = np.zeros_like(theta)
    for turn, s in enumerate(chosen):
        phi = np.ascontiguousarray(np.maximum(phi_draws[s], SMALLEST, dtype=np.float64))
        shape, rate = (filled(theta.shape, x) for x in prior.gamma(s, scale))
        shared = (laws[s], phi, phi.sum(axis=0), streams, turn * SWEEPS_PER_DRAW)
        (theta, mean), _ = engine.over_rows(project_block, observations, shared, (theta, shape, rate), blocks)
        total += mean * sizes[s]
    return total / (len(chosen) * (SWEEPS_PER_DRAW - SWEEPS_PER_DRAW // 2))


def project_block(
    block: Block,
    law: tuple[Any, ...],
    phi: np.ndarray,
    phi_total: np.ndarray,
    streams: Streams,
    first_sweep: int,
    theta: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """(theta's rows after ten sweeps, the sum of the last five of them) at a fixed phi."""
    new, total = theta.copy(), np.zeros_like(theta)
    law, entries = in_block(law, block.entries, block.first_row)
    for inner in range(SWEEPS_PER_DRAW):
        sums = np.zeros(phi.shape), np.zeros(phi.shape), np.zeros((2, phi.shape[1])), np.empty(0)
        rng = streams.generator(first_sweep + inner, ROWS, block.number)
        kernels.sweep_rows(law, entries, new, phi, phi_total, shape, rate, sums, False, rng)
        if 2 * inner >= SWEEPS_PER_DRAW:
            total += new
    return (new, total), ()
