"""A posterior from a file: whether its model is that of its parameters, and its arrays those of its model."""

from typing import Any

import numpy as np
import xarray as xr

from countveil.common.fit_files import REMADE
from countveil.inference import matching, tuning
from countveil.inference.methods import METHODS
from countveil.inference.posterior import EXPOSURE, check_kept, noise_of
from countveil.inference.row_gammas import KEPT, check_stored, summarised
from countveil.inference.svi import GROUP, PARTS
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout
from countveil.models.priors.prior import Axes, Factor, Prior, check_values, same

SUM_TOLERANCE = 1e-6
MOST_COUNTED = 2**31 - 1  # sweeps, components or starts


def check_model(model: Factorization, wanted: Factorization) -> None:
    """Refuse a model that is not ``wanted``, which the fit's parameters give for some mean of the data.

    Raises:
        ValueError: the rule, and what was found.
    """
    facts = {
        "sizes": (model.rows.sizes | model.columns.sizes, wanted.rows.sizes | wanted.columns.sizes),
        "self_loops": (model.self_loops, wanted.self_loops),
        "likelihood": (model.likelihood.name, wanted.likelihood.name),
    }
    for name, (found, asked) in facts.items():
        if found != asked:
            raise ValueError(f"must be of the model of its parameters, with {name} {asked}, got {found!r:.80}")
    for factor, own in zip(model.factors, wanted.factors, strict=True):
        if not same(factor.fixed, own.fixed):
            raise ValueError(
                f"must fix {factor.name} as its parameters do, {own.fixed!s:.60}, got {factor.fixed!s:.60}"
            )
        check_prior(factor.name, factor.prior, own.prior)


def check_prior(name: str, prior: Prior, wanted: Prior) -> None:
    """Refuse a prior of another kind, or with other parameters."""
    rule = f"must have the prior of {name} that its parameters give"
    if prior.kind != wanted.kind:
        raise ValueError(f"{rule}, of kind {wanted.kind}, got {prior.kind}")
    prior.check_file(rule, wanted)


def check_tree(tree: xr.DataTree, model: Factorization, layout: Layout) -> None:
    """Refuse a tree that lacks an array of the model, or has it over other axes.

    Raises:
        ValueError: the rule, and what was found.
    """
    if tree.attrs["method"] not in METHODS:
        raise ValueError(f"must be of a method among {sorted(METHODS)}, got {tree.attrs['method']!r:.40}")
    samples = METHODS[tree.attrs["method"]].samples
    if samples == ("optimisation" in tree.children):
        raise ValueError(
            f"must {'not ' if samples else ''}hold the group optimisation in a fit by {tree.attrs['method']}"
        )
    check_kept(tree)
    draws, sizes = tree["posterior"], model.rows.sizes | model.columns.sizes
    lead = {name: draws.sizes[name] for name in ("chain", "draw")}
    for factor in model.factors:
        if summarised(tree, factor.name):
            check_stored(tree, model, layout)
            continue
        letters = layout.axes[factor.name]
        dims = layout.dims_of_factor(factor.name, letters, factor is model.shared_factor)
        wanted = lead | {dim: sizes[letter] for dim, letter in zip(dims, letters, strict=True)}
        check_array(draws, factor.name, wanted)
    for axis in model.spec.output:
        check_array(draws, layout.dims[axis], {layout.dims[axis]: sizes[axis]})
    check_parameters(draws, model, layout, lead)
    check_reported(draws, model, layout, lead)
    check_array(tree["sample_stats"], "total_rate", lead)
    check_level(tree, model)
    check_exposure(tree, model, layout)
    check_names(tree, model, layout)
    if matching.GROUP in tree.children:
        check_weights(tree)
    if tuning.GROUP in tree.children:
        check_tuning(tree)
    if "optimisation" in tree.children:
        check_optimisation(tree, model)
    else:
        check_array(tree["sample_stats"], "log_likelihood", lead)


def check_names(tree: xr.DataTree, model: Factorization, layout: Layout) -> None:
    """Refuse groups and arrays that no fit of the model has."""
    names = [factor.name for factor in model.factors]
    reported = reported_axes(model)
    own_dims = {a for _, axes in reported.values() for a in axes if a not in layout.dims}
    dims = {*layout.dims.values(), *layout.aliases.values()}
    lead = {"chain", "draw"}
    wanted = {
        "posterior": {*names, *(f"{name}_rate" for name in names), *reported, *model.likelihood.parameter_axes}
        | own_dims
        | lead
        | dims,
        "sample_stats": {"total_rate", "log_likelihood"} | lead,
        "constant_data": {noise_of(tree)[0].level, EXPOSURE} | dims,
        "optimisation": {"objective", *(f"{name}_mean" for name in names)} | dims,
    }
    needs = {model.factors[f].prior.needs for f in model.free}
    if "covariates" in needs:
        wanted["covariates"] = set(map(str, tree["covariates"].variables))  # which the formula is checked with
    if "dates" in needs:
        wanted["dates"] = {"step"} | dims
    if METHODS[tree.attrs["method"]].samples:
        wanted[matching.GROUP] = {"weight", "chain"}
        wanted[tuning.GROUP] = {"chain", *tuning.CHAIN_VARIABLES, "candidate_race"}
        wanted[tuning.GROUP] |= {f"move_{name}" for name in tuning.MOVE_VARIABLES}
        wanted[tuning.GROUP] |= {f"candidate_{name}" for name in tuning.CANDIDATE_VARIABLES}
    if any(summarised(tree, name) for name in names):
        row = names[model.row_factor or 0]
        wanted["posterior"] |= {f"{row}_total"}
        wanted["optimisation"] |= {f"{row}_{part}" for part in KEPT}
    if METHODS[tree.attrs["method"]].batches:
        wanted[GROUP] = {"prior_scale", *(f"{name}_{part}" for name in names for part in PARTS)}
    for path, group in tree.subtree_with_keys:
        if path != "." and path not in wanted:
            raise ValueError(f"must hold groups among {list(wanted)}, got {path!r:.40}")
        more = sorted(set(map(str, group.variables)) - wanted.get(path, set()))
        if more:
            raise ValueError(f"must hold the arrays of its model alone, got {more[0]!r:.40} in {path!r}")


def reported_axes(model: Factorization) -> dict[str, tuple[Factor, Axes]]:
    """What priors report: by name, the factor and the axes."""
    return {
        name: (factor, axes)
        for factor in (model.factors[f] for f in model.free)
        for name, (axes, _) in factor.reported(factor.prior.start(factor)[None, None]).items()
    }


def check_reported(draws: Any, model: Factorization, layout: Layout, lead: dict[str, int]) -> None:
    """Refuse what priors report over other axes, or of values that no chain draws."""
    sizes = model.rows.sizes | model.columns.sizes
    for name, (factor, axes) in reported_axes(model).items():
        start = factor.reported(factor.prior.start(factor)[None, None])[name][1]
        own = dict(zip(axes, start.shape[2:], strict=True))
        dims = layout.dims_reported(axes)
        wanted = {dim: sizes.get(a, own[a]) for dim, a in zip(dims, axes, strict=True)}
        check_array(draws, name, lead | wanted, f"; a fit of a version that did not learn it {REMADE}")
        factor.prior.check_reported(name, draws[name].to_numpy())


def check_weights(tree: xr.DataTree) -> None:
    """Refuse weights that are not one of each chain, from 0 to 1, with sum one."""
    group = tree[matching.GROUP]
    check_array(group, "weight", {"chain": tree["posterior"].sizes["chain"]})
    weights = group["weight"].to_numpy()
    if not (np.all((weights >= 0.0) & (weights <= 1.0)) and abs(weights.sum() - 1.0) < SUM_TOLERANCE):
        raise ValueError(f"must hold weights of chains from 0 to 1 with sum one, got sum {weights.sum():.3g}")


def check_tuning(tree: xr.DataTree) -> None:
    """Refuse records of how chains were tuned that are kept in part, or of numbers that no chain leaves."""
    group, chains = tree[tuning.GROUP], {"chain": tree["posterior"].sizes["chain"]}
    finite = -np.inf, np.inf
    check_numbers(group, "components", chains, (0, MOST_COUNTED), whole=True)
    for name in ("started", "tuned"):
        check_numbers(group, name, chains, finite)
    for dim, names in (("move", tuning.MOVE_VARIABLES), ("candidate", tuning.CANDIDATE_VARIABLES)):
        if not any(f"{dim}_{name}" in group for name in names):
            continue
        for name in names:
            whole = name not in ("score", "log_likelihood")
            bounds = (0 if name == "taken" else 1, 1 if name == "taken" else MOST_COUNTED) if whole else finite
            sizes = chains | {dim: group.sizes.get(dim, 0)}
            check_numbers(group, f"{dim}_{name}", sizes, bounds, whole, missing=not whole)
    if "candidate_number" not in group and "candidate_race" not in group:
        return
    races = group["candidate_race"]
    if races.dims != ("candidate",):
        raise ValueError(f"must hold candidate_race over ('candidate',), got {races.dims}")
    raced = races.to_numpy()
    check_values(f"must hold candidate_race among {list(tuning.RACES)}", raced, np.isin(raced, list(tuning.RACES)))
    last = group.isel(candidate=raced == raced[-1])
    taken = last["candidate_taken"].to_numpy().sum(axis=1)
    check_values("must hold candidate_taken with one of each chain's last starts", taken, taken == 1)


def check_numbers(
    group: Any,
    name: str,
    wanted: dict[str, int],
    bounds: tuple[float, float],
    whole: bool = False,
    missing: bool = False,
) -> None:
    """Refuse an array over other axes, or of numbers out of bounds, not whole, or NaN unless ``missing``."""
    check_array(group, name, wanted)
    if group[name].dims != tuple(wanted):
        raise ValueError(f"must hold {name} over {tuple(wanted)} in this order, got {group[name].dims}")
    values = group[name].to_numpy()
    if missing:
        values = values[~np.isnan(values)]
    right = np.isfinite(values) & (bounds[0] <= values) & (values <= bounds[1])
    if whole:
        right &= values == np.floor(values)
    kind = "whole" if whole else "finite"
    check_values(f"must hold {kind} numbers from {bounds[0]} to {bounds[1]} at {name}", values, right)


def check_parameters(draws: Any, model: Factorization, layout: Layout, lead: dict[str, int]) -> None:
    """Refuse parameters of the likelihood over other axes, or out of their range."""
    sizes = model.rows.sizes | model.columns.sizes
    sides = {"all": "", "row": model.rows.observed, "column": model.columns.observed}
    for name, kind in model.likelihood.parameter_axes.items():
        check_array(draws, name, lead | {layout.dims[a]: sizes[a] for a in sides[kind]})
        least, most = model.likelihood.range_of(name)
        values = draws[name].to_numpy()
        check_values(f"must hold {name} from {least} to {most}", values, (values >= least) & (values <= most))


def check_array(group: Any, name: str, wanted: dict[str, int], remedy: str = "") -> None:
    """Refuse an array that is missing or has other axes, or an axis that has labels of another type or twice."""
    if name not in group:
        raise ValueError(f"must hold {name} in the group {group.name}, got {sorted(map(str, group))!s:.200}{remedy}")
    found = group[name]
    if dict(found.sizes) != wanted:
        raise ValueError(f"must hold {name} over {wanted}, got {dict(found.sizes)}")
    if name in wanted and found.dtype.kind not in "iuOUTf":
        raise ValueError(f"must label {name} by text or numbers, got {found.dtype}")
    if name not in wanted and found.dtype.kind != "f":
        raise ValueError(f"must hold {name} as floating-point numbers, got {found.dtype}")


def check_level(tree: xr.DataTree, model: Factorization) -> None:
    """Refuse a noise level that is no number per row or per cell, or is out of range."""
    noise, level = noise_of(tree)
    rows, columns = model.rows.shape[0], model.columns.shape[0]
    if level.dtype.kind != "f" or level.size not in (rows, rows * columns):
        raise ValueError(f"must hold {noise.level} for each of {rows} rows, got {level.size} of {level.dtype}")
    if tree.attrs["observations"] != "private" and level.any():
        raise ValueError(f"must have no noise on {tree.attrs['observations']} counts, got {noise.level}")
    right = (level >= 0) & (level < noise.levels_below)
    check_values(f"must hold {noise.level} from 0 to below {noise.levels_below}", level, right)


def check_exposure(tree: xr.DataTree, model: Factorization, layout: Layout) -> None:
    """Refuse exposures by cell that are no positive numbers, or not one for each cell."""
    if EXPOSURE not in tree["constant_data"]:
        return
    sizes = model.rows.sizes | model.columns.sizes
    axes = model.rows.observed + model.columns.observed
    wanted = {dim: sizes[a] for dim, a in zip(layout.dims_of(axes), axes, strict=True)}
    check_array(tree["constant_data"], EXPOSURE, wanted)
    values = tree["constant_data"][EXPOSURE].to_numpy()
    check_values("must hold positive finite exposures", values, (values > 0.0) & (values < np.inf))


def check_optimisation(tree: xr.DataTree, model: Factorization) -> None:
    """Refuse means of other shapes than the factors', and a verdict that is not there."""
    found = tree["optimisation"]
    for factor in model.factors:
        if summarised(tree, factor.name):
            continue
        values = found[f"{factor.name}_mean"]
        if values.shape != factor.shape or values.dtype.kind != "f":
            raise ValueError(f"must hold the mean of {factor.name} of shape {factor.shape}, got {values.shape}")
    converged = found.attrs["converged"]
    if not isinstance(converged, int | float | np.integer | np.floating):
        raise ValueError(f"must state converged as a number, got {type(converged).__name__}")
    if noise_of(tree)[0].counts_positive and "signal_share" not in tree.attrs:
        raise ValueError("must state signal_share with reports of positive counts, got no signal_share")
    if "iteration" not in found.sizes:
        raise ValueError(f"must hold the objective over iteration, got axes {list(found.sizes)}")
    check_array(found, "objective", {"iteration": found.sizes["iteration"]})
