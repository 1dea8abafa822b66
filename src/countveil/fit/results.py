"""The results of every fit: its posterior, rates, diagnostics, scores, predictions, and its file."""

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from countveil.common import fit_files
from countveil.common.files import make_room
from countveil.fit.choosing import choice_in_words, keep_choice
from countveil.fit.naming import check_merged_kept, check_names_kept
from countveil.fit.parameters import check_interval
from countveil.fit.predicting import mask_of
from countveil.fit.predictive_checks import has_check
from countveil.fit.reading import as_calibrated
from countveil.fit.totals import SETTLED, doubt_of, lack_of_data, totals_together
from countveil.inference import compact, tuning
from countveil.inference import posterior as posteriors
from countveil.inference.diagnostics import (
    Diagnostics,
    State,
    Totals,
    diagnose,
    diagnose_optimiser,
    undetermined_in_words,
    unshared_in_words,
)
from countveil.inference.file_checks import check_model, check_tree
from countveil.inference.matching import GROUP
from countveil.inference.methods import METHODS, from_file, method_of
from countveil.inference.posterior import mechanism_kept, share_kept, totals_kept
from countveil.inference.predict import log_predictive as mean_of_draws
from countveil.inference.predict import pointwise_log_likelihood
from countveil.laws.counts import NegativeBinomial
from countveil.models.einsum import axis_sizes
from countveil.models.factorization import check_digests, model_of
from countveil.models.layout import latent_groups
from countveil.privacy._archive import replacing

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

F = TypeVar("F", bound="FactorizationEstimator")

FILE_OVERHEAD = 1 << 20  # bytes of a file besides arrays, at most: names, labels and indices
DISPERSION_COLUMNS = ["p", "lower", "upper", "variance_over_mean"]


def dispersions(fit: "FactorizationEstimator", interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
    """The posterior mean of p with its interval, and of 1 / (1 - p), the variance of counts over their mean.

    Columns: the axis or axes that p varies along, if any; p, lower, upper, variance_over_mean. Where intervals are
    not calibrated: as in ``parts.members``. A p that is known has no interval.

    Raises:
        ValueError: a fit with another likelihood, or an interval out of range.
    """
    check_interval(interval)
    tree, model, _ = fit._fitted()
    likelihood: Any = model.likelihood
    if likelihood.name != NegativeBinomial.name:
        raise ValueError(
            f"dispersions require likelihood {NegativeBinomial.name!r}, got a fit with {likelihood.name!r}"
        )
    if not likelihood.parameter_axes:
        p = float(likelihood.dispersion)
        return pd.DataFrame({"p": [p], "variance_over_mean": [1.0 / (1.0 - p)]})
    posterior, draws = tree["posterior"].dataset, posteriors.flat_draws(tree, "p")
    dims = [str(dim) for dim in posterior["p"].dims if dim not in ("chain", "draw")]
    tail = (1.0 - interval) / 2.0
    lower, upper = np.quantile(draws, [tail, 1.0 - tail], axis=0)
    values = draws.mean(axis=0), lower, upper, (1.0 / (1.0 - draws)).mean(axis=0)
    labels = [posterior[dim].to_numpy() for dim in dims]
    places = np.indices([len(names) for names in labels]).reshape(len(labels), draws[0].size)
    found = {dim: names[place] for dim, names, place in zip(dims, labels, places, strict=True)}
    table = pd.DataFrame(found | dict(zip(DISPERSION_COLUMNS, map(np.ravel, values), strict=True)))
    return as_calibrated(table, fit._reader.why_no_intervals, uncalibrated)


def rate(fit: "FactorizationEstimator") -> xr.DataArray:
    """The expected true count of each cell in data like these: a posterior mean."""
    return posteriors.mean_rate(*fit._fitted())


def diagnostics(fit: "FactorizationEstimator") -> Diagnostics:
    """Whether to trust the fit, in words, with the numbers behind it.

    For a sampler R-hat, nested R-hat and effective sample sizes of the log-likelihood and of rates, and how many
    components the data do not determine; for an optimiser whether it converged, and whether it explains the
    positive reports and their sum. For both whether the reports are consistent with the mechanism that is stated
    for them, contradict it, or cannot say, and whether the fit's total is that of the reports.
    """
    return doubted_if_naive(fit, with_doubts(fit, diagnosed(fit)))


def doubted_if_naive(fit: "FactorizationEstimator", found: Diagnostics) -> Diagnostics:
    """The diagnostics, with what speaks against every naive fit."""
    naive = fit.posterior.attrs["observations"] == "naive"
    return found.doubted(["This fit treats the reports as true counts."]) if naive else found


def with_doubts(fit: "FactorizationEstimator", found: Diagnostics) -> Diagnostics:
    """The diagnostics, with what the mechanism check and the totals say against the fit."""
    mechanism, sums = mechanism_kept(fit.posterior), totals(fit)
    wrong = [] if mechanism is None else list(mechanism.found)
    doubt = "" if sums is None else doubt_of(sums, fit)
    if sums is not None and not wrong and (lack := lack_of_data(sums, fit)):
        wrong = [lack]
    if doubt and found.state in SETTLED and not wrong:
        wrong, doubt = [doubt], ""
    wrong += [] if mechanism is None else mechanism.misfits
    stated = mechanism if fit.posterior.attrs["observations"] == "private" else None  # true counts have none
    said = "" if stated is None or stated.found else str(stated)
    excepted = [] if mechanism is None or wrong else [*mechanism.outlying, *mechanism.sums]
    also = [*excepted, doubt, said, unchecked_in_words(fit, found), choice_in_words(fit)]
    return found._replace(mechanism=stated).doubted(wrong, also)


def unchecked_in_words(fit: "FactorizationEstimator", found: Diagnostics) -> str:
    """That only a page compares a fit with its data, if that is so and matters."""
    private = fit.posterior.attrs["observations"] == "private"
    if not private or found.state not in SETTLED or fit._reader.why_no_intervals or has_check(fit):
        return ""
    return "This verdict does not compare the fit with its reports: countveil report does."


def totals(fit: "FactorizationEstimator") -> Totals | None:
    """The sum of all true counts that were seen, as the fit expects it and as the reports have it without a model.

    None where the data were not in memory.
    """
    return totals_kept(fit.posterior)


def totals_of_fits(fits: "Sequence[FactorizationEstimator]", weights: np.ndarray, X: Any) -> Totals:
    """The totals of the cells that are seen in X by several fits of the same cells, each with its weight (F,)."""
    return totals_together(fits, weights, [fit._reader.data_matrix(fit._reader.own_data("X", X)) for fit in fits])


def diagnosed(fit: "FactorizationEstimator") -> Diagnostics:
    """How the method went, and what components are determined."""
    tree = fit.posterior
    if "optimisation" in tree.children:
        found, sums = tree["optimisation"], totals(fit)
        return diagnose_optimiser(
            METHODS[tree.attrs["method"]].starved,
            bool(found.attrs["converged"]),
            found.sizes["iteration"],
            share_kept(tree),
            None if sums is None else sums.share,
        )
    unshared = fit._reader.unshared()
    sampled = diagnose(posteriors.label_free(*fit._fitted()), fit.weights_, not unshared)
    lost = {part: found for part, found in fit.parts.undetermined().items() if found[0]}
    state = State.UNSAFE if any(n == total for n, total in lost.values()) else sampled.state
    doubts = [unshared_in_words(part.one, part.many) for part in unshared]
    doubts += [
        undetermined_in_words(part.one, part.many, *found) for part, found in lost.items() if part not in unshared
    ]
    told = tuning.chains_of(tree, fit.weights_), tuning.starts_of(tree), tuning.moves_of(tree)
    return Diagnostics(sampled.table, " ".join([sampled.verdict, *doubts]), state, *told)


def log_predictive(fit: "FactorizationEstimator", X: Any, cells: Any = None) -> xr.DataArray:
    """Log predictive density of max(report, 0) in each cell of X, averaged over draws, (cell,).

    X holds the reports of the fit's own rows; cells is a boolean mask of those to score (all that are seen in X
    by default): for a held-out comparison pass the mask of the cells that were hidden from the fit. A pair of an
    undirected network is one cell, whichever side of the diagonal is chosen.

    Raises:
        ValueError: X, or a table of cells, not of the fit's shape or with other labels; a cell that is masked in X.
    """
    weighted = GROUP in fit.posterior.children
    return mean_of_draws(log_likelihood(fit, X, cells), fit.weights_ if weighted else None)


def log_likelihood(fit: "FactorizationEstimator", X: Any, cells: Any = None) -> xr.DataArray:
    """log P(max(report, 0)) in each cell under every draw, (chain, draw, cell): for LOO, as ArviZ takes it.

    Arguments and errors as for ``log_predictive``.
    """
    draws, dims = fit.posterior["posterior"], tuple(fit._reader.axes)
    observations = fit._reader.data_matrix(fit._reader.own_data("X", X))
    wanted = mask_of(fit, cells)
    if wanted is None:
        every = np.arange(observations.shape[0] * observations.shape[1])
        rows, columns = every // observations.shape[1], every % observations.shape[1]
        seen = observations.cells(rows, columns)[0] >= 0
        rows, columns = rows[seen], columns[seen]
    else:
        rows, columns = np.nonzero(wanted)
    scores = pointwise_log_likelihood(fit._reader.draws_of_chains(), observations, fit.model_.likelihood, rows, columns)
    places = fit._reader.places_of(rows, columns)
    coordinates: dict[str, Any] = {name: draws[name].to_numpy() for name in ("chain", "draw")}
    for a, dim in enumerate(dims):
        coordinates[dim] = ("cell", draws[dim].to_numpy()[places[:, a]])
    values = scores.reshape(draws.sizes["chain"], draws.sizes["draw"], -1)
    return xr.DataArray(values, dims=("chain", "draw", "cell"), coords=coordinates, name="log_likelihood")


def save(fit: "FactorizationEstimator", path: str | os.PathLike[str], *, exact: bool = False) -> None:
    """Write the fit to one netCDF file that ArviZ and xarray read; atomically, and never a true count.

    If draws of factors take more than 8 MB and chains have 100 draws or more, they are rounded in the file, each
    by at most 1/32 of the standard deviation of its entry, and packed to about a quarter. ``exact`` keeps them bit
    for bit, unpacked.

    Raises:
        OSError: the file cannot be written, as on a full disk; what was there before stays.
    """
    needed = fit.posterior.nbytes + FILE_OVERHEAD
    with replacing(path) as temporary:
        make_room(temporary, needed, path)
        compact.write(fit.posterior, temporary, exact)
        fit_files.seal(temporary)


def check_file(fit: "FactorizationEstimator", tree: xr.DataTree) -> None:
    """Refuse a model other than the parameters', and arrays that are not those of the model."""
    spec = fit.model_.spec
    wanted = fit._spec(len(spec.output))
    if spec != wanted:
        raise ValueError(f"must be of the model {wanted.text}, got {spec.text!r:.40}")
    own, stated = method_of(fit.method).name, tree.attrs["method"]
    if own != stated:
        raise ValueError(f"must state one method, got {own!r:.40} and {stated!r:.40}")
    sizes = fit.model_.rows.sizes | fit.model_.columns.sizes
    asked = axis_sizes(spec, [sizes[axis] for axis in spec.output], fit._ranks(spec))
    check_model(fit.model_, fit._model(spec, asked, 1.0))
    check_tree(tree, fit.model_, fit._layout(spec))
    n_chains = tree["posterior"].sizes["chain"]
    groups = set(latent_groups(fit.model_).values())
    most = {group: n_chains * fit._reader.n_components(group) for group in groups}
    check_names_kept(tree, most)
    check_merged_kept(tree, most if fit._merges else {})


def read(kind: type[F], path: str | os.PathLike[str]) -> F:
    """A fit of this kind from its file; raises as its ``load``."""
    with fit_files.opened(path) as (name, file):
        if name != kind.__name__:
            raise ValueError(f"{path} must hold a fit of {kind.__name__}, got one of {name}: cv.load(path) reads any")
        with fit_files.faults(path), xr.open_datatree(file, engine="h5netcdf", phony_dims="sort") as opened:
            tree = opened.load()
    with fit_files.faults(path):
        return from_tree(kind, compact.unpacked(tree))


def from_tree(kind: type[F], tree: xr.DataTree) -> F:
    """The fit that a file holds; raises ValueError for facts that make no sense, alone or together."""
    facts = tree.attrs
    parameters = json.loads(facts["parameters"])
    parameters["method"] = from_file(parameters.get("method"))
    fit = kind(**parameters)
    fit.seed_, fit.fit_seconds_ = int(facts["seed"]), float(facts["seconds"])
    fit.interrupted_ = bool(facts["interrupted"])
    fit._check_parameters()
    engine = getattr(fit, "engine", None)
    if engine is not None:
        raise ValueError(f"must not say where to compute, got engine {engine!r:.40}")
    model = json.loads(facts["model"])
    fit.model_ = fit._restored(tree, model_of(model))
    check_digests(model, fit.model_)
    keep_choice(fit, fit.model_)
    check_file(fit, tree)
    fit._adopt(tree)
    return fit
