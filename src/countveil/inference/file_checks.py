"""A posterior from a file: whether its arrays are those of its model, so that every reader finds what it expects."""

from typing import Any

import numpy as np
import xarray as xr

from countveil.inference.methods import METHODS
from countveil.inference.posterior import noise_of
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout

MOST_NAME = 40


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
            f"must {'not ' if samples else ''}hold the group optimisation, being a fit by {tree.attrs['method']}"
        )
    draws, sizes = tree["posterior"], model.rows.sizes | model.columns.sizes
    lead = {name: draws.sizes[name] for name in ("chain", "draw")}
    for factor in model.factors:
        letters = layout.axes[factor.name]
        dims = layout.dims_of_factor(factor.name, letters, factor is model.shared_factor)
        wanted = lead | {dim: sizes[letter] for dim, letter in zip(dims, letters, strict=True)}
        check_array(draws, factor.name, wanted)
    for axis in model.spec.output:
        check_array(draws, layout.dims[axis], {layout.dims[axis]: sizes[axis]})
    check_parameters(draws, model, layout, lead)
    check_array(tree["sample_stats"], "total_rate", lead)
    check_level(tree, model)
    if "optimisation" in tree.children:
        check_optimisation(tree, model)
    else:
        check_array(tree["sample_stats"], "log_likelihood", lead)


def check_parameters(draws: Any, model: Factorization, layout: Layout, lead: dict[str, int]) -> None:
    """Refuse parameters of the likelihood over other axes, or out of their range."""
    sizes = model.rows.sizes | model.columns.sizes
    sides = {"all": "", "row": model.rows.observed, "column": model.columns.observed}
    for name, kind in model.likelihood.parameter_axes.items():
        check_array(draws, name, lead | {layout.dims[a]: sizes[a] for a in sides[kind]})
        least, most = model.likelihood.range_of(name)
        values = draws[name].to_numpy()
        if not ((values >= least) & (values <= most)).all():
            raise ValueError(f"must hold {name} from {least} to {most}, got another")


def check_array(group: Any, name: str, wanted: dict[str, int]) -> None:
    """Refuse an array that is missing or has other axes, or an axis that has labels of another type or twice."""
    if name not in group:
        raise ValueError(f"must hold {name} in the group {group.name}, got none")
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
        raise ValueError(
            f"must hold {noise.level} for each of {rows} rows, got {level.size} of {level.dtype}"
        )
    if not np.all((level >= 0) & (level < noise.levels_below)):
        raise ValueError(f"must hold {noise.level} from 0 to below {noise.levels_below}, got another")


def check_optimisation(tree: xr.DataTree, model: Factorization) -> None:
    """Refuse means of other shapes than the factors', and a verdict that is not there."""
    found = tree["optimisation"]
    for factor in model.factors:
        values = found[f"{factor.name}_mean"]
        if values.shape != factor.shape or values.dtype.kind != "f":
            raise ValueError(
                f"must hold the mean of {factor.name} of shape {factor.shape}, got {values.shape}"
            )
    for name, value in (
        ("converged", found.attrs["converged"]),
        ("signal_share", tree.attrs["signal_share"]),
    ):
        if not isinstance(value, int | float | np.integer | np.floating):
            raise ValueError(f"must state {name} as a number, got {type(value).__name__}")
    if "iteration" not in found.sizes:
        raise ValueError("must hold the objective of each iteration, got none")
