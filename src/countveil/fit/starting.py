"""Where a fit is told to begin: by a name, at another fit, or at factors by name."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from countveil.common.parameters import check_choice
from countveil.data.labels import is_default, texts_of
from countveil.inference import dispersion
from countveil.inference.em import refined
from countveil.inference.starts import Start, automatic, least_squares, spectral
from countveil.inference.starts.given import Given
from countveil.models.factorization import Factor, Factorization
from countveil.models.layout import HYPERS, Layout, latent_groups

STARTS: dict[str, Start] = {"auto": automatic, "least-squares": least_squares, "spectral": spectral, "em": refined}
"""Where fits begin, by the names that users write."""

LARGEST = 1e17  # no count that is taken is as large
RTOL, ATOL = 1e-4, 1e-140  # of means of many draws of one value in float32, which holds no 1e-150

Labels = Sequence[Sequence[Any] | None]  # of each output axis


class Beginning(NamedTuple):
    """The name of a start, a fit, or a mapping from factors' names to arrays."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if isinstance(value, str):
            check_choice(name, value, tuple(STARTS))
        elif isinstance(value, Mapping):
            if not value:
                raise ValueError(f"{name} must hold at least one factor, got an empty mapping")
        elif not hasattr(value, "posterior_"):
            raise ValueError(
                f"{name} must be one of {list(STARTS)}, a fit, or a mapping from factors' names to arrays, got "
                f"{type(value).__name__}{' that is not fitted' if hasattr(value, 'fit') else ''}"
            )


def start_of(value: Any, model: Factorization, layout: Layout, labels: Labels) -> Start:
    """What ``start=`` stands for.

    A mapping has some or all of the posterior's factors, as DataArrays with its dimensions, or as plain arrays with
    their axes in its order. Entries of DataArrays and DataFrames are matched by labels where both sides have them. A
    fit that samples gives each chain the last draw of one of its own chains, at random; other fits give the means of
    their draws.

    Raises:
        ValueError: unknown names, dimensions or sizes; other values of a factor that is fixed; labels that are
            repeated, or none of which the data have; numbers that are negative, huge or not finite; more components
            than the model has, or of different numbers.
    """
    if isinstance(value, str):
        return STARTS[value]
    if isinstance(value, Mapping):
        return Given((arranged(value, model, layout, labels),))
    sets = tuple(arranged(values, model, layout, labels) for values in sets_of(value))
    dims = [layout.dims[axis] for axis in model.spec.output]
    p_of_sets = dispersion_of(value)
    if p_of_sets is None:
        return Given(sets)
    pairs = zip(sets, p_of_sets, strict=True)
    return Given(tuple(of_counts(each, p_along(p, dims, labels), model) for each, p in pairs))


def dispersion_of(fit: Any) -> list[xr.DataArray] | None:
    """The dispersion p of each set of factors that a fit gives; None where counts are Poisson or p is known."""
    if not dispersion.learns_p(fit.model_):
        return None
    draws = fit.posterior["posterior"].dataset["p"]
    if "optimisation" in fit.posterior.children:
        return [draws.mean(("chain", "draw"))]
    return [draws.isel(chain=chain, draw=-1) for chain in range(draws.sizes["chain"])]


def p_along(p: xr.DataArray, dims: Sequence[str], labels: Labels) -> np.ndarray:
    """p in the order of the data's labels; a row or column that the fit did not have gets the median p."""
    for dim, names in zip(dims, labels, strict=True):
        if names is not None and dim in p.dims:
            p = p.reindex({dim: list(names)}, fill_value=float(p.median()))
    return np.asarray(p.to_numpy())


def of_counts(
    factors: tuple[np.ndarray | None, ...], p: np.ndarray, model: Factorization
) -> tuple[np.ndarray | None, ...]:
    """The factors, so that rates are expected counts where they were of bursts, as a start has to give.

    They stay as they are where some are missing, or where p is of another number of rows or columns.
    """
    whole = [value for value in factors if value is not None]
    if len(whole) < len(factors) or not dispersion.learns_p(model):
        return factors
    if p.size not in (1, model.initial_parameters()[0].size):
        return factors
    return dispersion.counts_of(model, whole, p)


def sets_of(fit: Any) -> list[Mapping[str, xr.DataArray]]:
    """Sets of factors that a fit's chains begin at; parameters of its likelihood are left out."""
    tree = fit.posterior
    level = fit.model_.level
    factors = fit.model_.factors[:level]  # levels, which come last, begin at one
    draws = tree["posterior"].dataset[[factor.name for factor in factors]]
    if "optimisation" in tree.children:
        means = draws.mean(("chain", "draw"))
        return [{str(name): means[name] for name in means.data_vars}]
    last = draws.isel(draw=-1)
    return [{str(name): last[name].isel(chain=c) for name in last.data_vars} for c in range(draws.sizes["chain"])]


def arranged(
    values: Mapping[str, Any], model: Factorization, layout: Layout, labels: Labels
) -> tuple[np.ndarray | None, ...]:
    """The factors in the model's order and with its axes; None for those that are missing or fixed."""
    names = [factor.name for factor in model.factors[: model.level]]  # levels, which come last, begin at one
    unknown = [name for name in values if {name, *map(f"{name}".removesuffix, HYPERS)}.isdisjoint(names)]
    if unknown:
        raise ValueError(f"start's factors must be called {names}, got {unknown[0]!r}")
    if not any(name in values for name in names):
        raise ValueError(f"start must hold at least one of {names}, got {list(values)}")
    of_axis = dict(zip(model.spec.output, labels, strict=True))
    given = tuple(
        one_factor(values[factor.name], factor, model, layout, of_axis) if factor.name in values else None
        for factor in model.factors
    )
    check_fixed(given, model)
    found = tuple(
        None if factor.fixed is not None else value for factor, value in zip(model.factors, given, strict=True)
    )
    check_components(found, model, layout)
    return found


def check_fixed(factors: tuple[np.ndarray | None, ...], model: Factorization) -> None:
    """Refuse values of a fixed factor, except those that it is fixed at; raises ValueError."""
    for factor, value in zip(model.factors, factors, strict=True):
        if value is None or factor.fixed is None:
            continue
        same = value.shape == factor.fixed.shape and np.allclose(value, factor.fixed, RTOL, ATOL)
        if not same:
            raise ValueError(
                f"start must leave out factors that are fixed, got {factor.name!r} with values other than the fixed "
                "ones; of an earlier fit, pass a mapping without it"
            )


def check_another(model: Any) -> None:
    """Refuse a model that starts at itself, directly or by way of any number of fits.

    Raises:
        ValueError: such a start.
    """
    seen: list[Any] = []
    value = model.start
    while not isinstance(value, str | Mapping) and all(value is not each for each in seen):
        if value is model:
            raise ValueError(
                "start must be another fit, got the model itself"
                + (", where an earlier one starts" if seen else "")
                + ": make a new model that starts at this one"
            )
        seen.append(value)
        value = getattr(value, "start", None)


def check_components(factors: tuple[np.ndarray | None, ...], model: Factorization, layout: Layout) -> None:
    """Refuse factors that do not have the same number of components; raises ValueError."""
    groups, sizes = latent_groups(model), dict[str, tuple[str, int]]()
    for factor, value in zip(model.factors, factors, strict=True):
        for i, axis in enumerate(factor.axes):
            if value is None or axis not in groups:
                continue
            name, size = sizes.setdefault(groups[axis], (factor.name, value.shape[i]))
            if size != value.shape[i]:
                raise ValueError(
                    f"start's factors must have the same number along {layout.dims[axis]!r}, got {size} in {name} "
                    f"and {value.shape[i]} in {factor.name}"
                )


def one_factor(
    value: Any, factor: Factor, model: Factorization, layout: Layout, labels: Mapping[str, Sequence[Any] | None]
) -> np.ndarray:
    """A factor with the model's axes, its observed entries matched to the labels of the data."""
    wanted = layout.axes[factor.name]
    dims = layout.dims_of_factor(factor.name, wanted, factor is model.shared_factor)
    name = f"start's {factor.name}"
    if isinstance(value, pd.DataFrame) and len(dims) == 2:
        value = with_labels(value, dims)
    if isinstance(value, xr.DataArray):
        if set(value.dims) != set(dims):
            raise ValueError(f"{name} must have the dimensions {list(dims)}, got {list(value.dims)}")
        value = value.transpose(*dims)
    if np.iscomplexobj(value):
        raise ValueError(f"{name} must hold real numbers, got complex ones")
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != len(dims):
        raise ValueError(f"{name} must have the axes {list(dims)}, got an array of shape {array.shape}")
    if not (np.isfinite(array).all() and (array >= 0.0).all()):
        bad = array[~(np.isfinite(array) & (array >= 0.0))].flat[0]
        raise ValueError(f"{name} must be finite and not negative, got {bad}")
    if (array > LARGEST).any():
        raise ValueError(f"{name} must be at most {LARGEST:g}, got {array.max():g}")
    for i, (axis, dim) in enumerate(zip(wanted, dims, strict=True)):
        size = factor.shape[factor.axes.index(axis)]
        if axis in model.spec.latent:
            if not 0 < array.shape[i] <= size:
                raise ValueError(f"{name} must have 1 to {size} entries along {dim!r}, got {array.shape[i]}")
            continue
        names = labels.get(axis)
        if isinstance(value, xr.DataArray) and dim in value.coords and names is not None:
            have = list(value.coords[dim].to_numpy())
            if len(set(have)) < len(have):
                twice = next(label for label in have if have.count(label) > 1)
                raise ValueError(f"{name} must have every label along {dim!r} once, got {str(twice)!r:.60} twice")
            if not set(have).intersection(names):
                raise ValueError(
                    f"{name} must share labels along {dim!r} with the data ({names[0]!r:.40}, ...), got "
                    f"{str(have[0])!r:.40}, ..."
                )
            array = matched(array, i, have, list(names))
        elif array.shape[i] != size:
            raise ValueError(f"{name} must have {size} entries along {dim!r}, got {array.shape[i]}")
    return np.ascontiguousarray(array.transpose([wanted.index(a) for a in factor.axes]))


def with_labels(frame: pd.DataFrame, dims: Sequence[str]) -> xr.DataArray:
    """A table with its labels as coordinates; pandas' default numbering is none."""
    pairs = zip(dims, frame.axes, strict=True)
    coords = {dim: np.array(texts_of(index), dtype=object) for dim, index in pairs if not is_default(index)}
    return xr.DataArray(frame.to_numpy(), dims=dims, coords=coords)


def matched(array: np.ndarray, axis: int, have: list[Any], want: list[Any]) -> np.ndarray:
    """The array with the wanted labels along an axis; a label that it does not have gets the mean of all."""
    place = {label: i for i, label in enumerate(have)}
    missing = array.mean(axis=axis, keepdims=True)
    extended = np.concatenate([array, missing], axis=axis)
    return extended.take([place.get(label, len(have)) for label in want], axis=axis)
