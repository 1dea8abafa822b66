"""How the rest of the library reads a fit: its draws and data in matrix form, and its components in every chain.

Whatever the einsum of a model, its rates are theta @ phi.T for two matrices (mathematics, section 6): some axes of the
data make the rows, all others the columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from countveil.data.observations import Observations
from countveil.fit.component_tables import Chain, component_counts, mixture, shares_of
from countveil.fit.naming import Names, Places, merged_kept, names_kept, places_of, together, united, with_names
from countveil.fit.parameters import check_labels_of_fit
from countveil.inference import posterior as posteriors
from countveil.inference.matching import STABLE, Matched, alike, matched, numbered, places, unweighted, weights_of
from countveil.inference.methods import METHODS
from countveil.inference.row_gammas import check_draws
from countveil.laws.counts.given_reports import Draw
from countveil.models.factorization import Factor, Factorization
from countveil.models.layout import Layout, Part, default_part, latent_groups, listable, n_anchored, normalised, pinned

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator


class Network(NamedTuple):
    """Communities of the actors of a square matrix of counts."""

    part: Part  # what a community is called
    actors: np.ndarray  # (actors,) names, or numbers
    memberships: np.ndarray  # (actors, C) posterior mean of each actor's share of a community
    block_draws: np.ndarray  # (n, C, C) expected counts from community to community in every draw
    blocks: np.ndarray  # (C, C) their posterior mean
    directed: bool
    self_loops: bool  # whether counts of actors with themselves are part of the data


def network_of(
    tree: xr.DataTree,
    model: Factorization,
    layout: Layout,
    parts: tuple[Part, ...],
    chains: Sequence[tuple[int, np.ndarray]],
) -> Network | None:
    """The network that was fitted; None unless one factor of actors is used on both sides of one factor of communities.

    The rate of (i, j) is sum_cd theta_ic pi_cd theta_jd, and theta's components sum to one. ``chains`` are those that
    have the same communities, each with the order (C,) that numbers them alike.
    """
    spec, shared = model.spec, model.shared_factor
    if shared is None or model.shared not in normalised(model) or len(spec.output) != 2:
        return None
    others = [factor for factor in model.factors if factor is not shared]
    if len(others) != 1 or len(spec.latent) != 2 or set(others[0].axes) != set(spec.latent):
        return None
    first, second = (next(term for term in spec.terms if axis in term).replace(axis, "") for axis in spec.output)
    draws = tree["posterior"].dataset
    actor, community = layout.dims_of_factor(shared.name, spec.output[0] + first, shared=True)
    theta = draws[shared.name].transpose("chain", "draw", actor, community).to_numpy()
    counts = component_counts(unweighted(tree), model, layout, first + second)
    counts = counts.reshape(*theta.shape[:2], *counts.shape[1:])
    weights = weights_of(tree)[[c for c, _ in chains]]
    kept = places(weights / weights.sum(), [theta.shape[1]] * len(chains))
    taken = [(c, order, own) for (c, order), own in zip(chains, kept, strict=True) if own.size]
    blocks = np.concatenate([counts[c][own][:, order][:, :, order] for c, order, own in taken])
    totals = [theta[c][own].sum(axis=0, dtype=np.float64)[:, order] for c, order, own in taken]
    return Network(
        parts[0],
        draws[actor].to_numpy(),
        np.sum(totals, axis=0) / len(blocks),
        blocks,
        blocks.mean(axis=0),
        directed=not others[0].symmetric,
        self_loops=model.self_loops,
    )


DRAWS_AT_ONCE = 64  # whose components are weighted together
NAMED = MappingProxyType({"component": "name"})


class Listed(NamedTuple):
    """An axis along which components are listed: the factor that holds them, and which components they are."""

    factor: Factor
    component: str  # dimension of the components in the factor
    group: str  # latent axis by which ``latent_groups`` names them
    axes: str  # the axis and the latent axis of the components, as the model has them


class FitReader:
    """A fit without the names of its factors, for reports, pictures, predictions and comparisons of every model.

    Every fit makes one when asked, as ``_reader``. A model that names its parts in its layout is shown by all that read
    a fit in this way alone.
    """

    def __init__(self, fit: "FactorizationEstimator") -> None:
        self.fit = fit

    @property
    def why_no_intervals(self) -> str:
        """Why tables, figures and pages of this fit have no intervals; empty where their intervals are calibrated."""
        return why_none(self.fit.posterior.attrs)

    @property
    def axes(self) -> dict[str, np.ndarray]:
        """The axes of the data by name, in order, each with the labels of its entries, or their numbers."""
        tree, model, layout = self.fit._fitted()
        return {dim: tree["posterior"][dim].to_numpy() for dim in layout.dims_of(model.spec.output)}

    def own_data(self, name: str, X: Any) -> Observations:
        """What ``_observed`` gives of data over the fit's own cells, which an argument of this name holds.

        Raises:
            TypeError: data without a noise level (a bare array, and no ``alpha``).
            ValueError: data that the model refuses, of another shape, or with other labels or labels in another order.
        """
        axes = self.axes
        shape, found = tuple(len(names) for names in axes.values()), self.fit._observed(X)
        if found.mode_shape != shape:
            raise ValueError(
                f"{name} must hold the cells of the fit, {' x '.join(axes)} = {shape}, got {found.mode_shape}"
            )
        check_labels_of_fit(f"{name} must have the labels of the fit in their order", axes, found.labels)
        return self.exposed(name, found)

    def exposed(self, name: str, observed: Observations) -> Observations:
        """What ``_observed`` gave of the fit's own cells, with the exposures by cell that the fit has, if any.

        Raises:
            ValueError: the data have exposures by cell of their own, which are others.
        """
        matrix = self.exposure_matrix
        if matrix is None:
            if observed.exposure is not None:
                raise ValueError(
                    f"{name} must have no exposure by cell, because the fitted data have none, got one: leave it out"
                )
            return observed
        exposure = posteriors.rate_array(matrix, *self.fit._fitted()).to_numpy().reshape(observed.shape)
        if observed.exposure is not None and not np.array_equal(observed.exposure, exposure):
            d, v = np.argwhere(observed.exposure != exposure)[0]
            raise ValueError(
                f"{name} must have the exposure of the fit, or none, got {observed.exposure[d, v]:g} at index "
                f"({d}, {v}), where the fit has {exposure[d, v]:g}"
            )
        return observed.exposed_as(exposure)

    def draws(self) -> Iterator[Draw]:
        """Every draw, chain after chain: (theta (rows, K), phi (columns, K)), and the likelihood's own parameters.

        Its rates are theta @ phi.T. Of each chain there are as many draws as its weight says, some of them repeatedly:
        as many in all as all chains have.
        """
        return posteriors.matrix_draws(*self.fit._fitted())

    def even_draws(self, most: int) -> Iterator[Draw]:
        """At most this many of ``draws``, evenly spread."""
        tree, model, layout = self.fit._fitted()
        return posteriors.matrix_draws(tree, model, layout, posteriors.evenly(posteriors.n_draws(tree), most))

    def draws_of_chains(self) -> Iterator[Draw]:
        """``draws``, where every chain has its own draws whatever its weight."""
        tree, model, layout = self.fit._fitted()
        return posteriors.matrix_draws(unweighted(tree), model, layout)

    @property
    def exposure_matrix(self) -> np.ndarray | None:
        """Exposures by cell over the rows and columns of ``draws``, whose rates are for one unit of them.

        None where the data had none, or offsets said the same.
        """
        return posteriors.exposure_of(self.fit.posterior, self.matrix_shape)

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """(rows, columns) of the rates in ``draws``."""
        _, model, _ = self.fit._fitted()
        return model.rows.shape[0], model.columns.shape[0]

    def data_matrix(self, observed: Observations) -> Observations:
        """What ``_observed`` gave, over the rows and columns of ``draws``."""
        rows, columns = self.sides()
        return observed.matricized(rows, columns)

    def as_matrix(self, values: Any) -> np.ndarray:
        """An array over the axes of the data, such as ``rate()``, over the rows and columns of ``draws``."""
        rows, columns = self.sides()
        return np.asarray(values).transpose([*rows, *columns]).reshape(self.matrix_shape)

    def matrix_places(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(row, column) in ``draws`` of cells (n, axes) given by their numbers along the axes of the data."""
        shape = [len(names) for names in self.axes.values()]
        found = [
            np.ravel_multi_index([places[:, a] for a in side], [shape[a] for a in side])
            if side
            else np.zeros(len(places), dtype=np.int64)
            for side in self.sides()
        ]
        return found[0], found[1]

    def places_of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The cells (n, axes) that ``matrix_places`` gave these rows and columns."""
        shape = [len(names) for names in self.axes.values()]
        places = np.zeros((len(rows), len(shape)), dtype=np.int64)
        for side, numbers in zip(self.sides(), (rows, columns), strict=True):
            if side:
                places[:, side] = np.stack(np.unravel_index(numbers, [shape[a] for a in side]), axis=1)
        return places

    def sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Positions of the rows' axes among those of the data, and of the columns'."""
        return self.fit._fitted()[1].matrix_axes

    @property
    def kinds(self) -> tuple[Part, ...]:
        """Every kind of component whose members can be listed: one for most models, none for some einsums."""
        return tuple(self.kinds_by_group().values())

    @property
    def member_axes(self) -> tuple[str, ...]:
        """Every axis along which the members of components can be listed, including those that no report lists."""
        return tuple(self.listed())

    def names_of(self, axis: str | None = None) -> Names:
        """The names that ``parts.relabel`` gave, by number; arguments and errors as there."""
        return names_kept(self.fit.posterior, self.group_along(axis))

    def member_spread(self, axis: str) -> np.ndarray:
        """(K,) how far draws of each component, in one half of a chain, lie from the mean of the other half.

        The distance is total variation along the axis: half the sum of absolute differences of shares, from 0 (the
        same) to 1 (no member in common). Were the truth one more draw of the chain, this would be the expected error of
        the component's mean. A chain in a poor mode errs by more (docs/evidence.md has measurements). Of
        each chain at most 200 draws are compared, evenly spread.

        Raises:
            ValueError: an axis along which nothing can be listed.
        """
        draws = self.shares(axis).transpose("chain", "draw", self.listed_along(axis).component, axis)
        return posteriors.spread(draws.isel(draw=posteriors.evenly(draws.sizes["draw"])).to_numpy())

    def unshared(self) -> list[Part]:
        """The kinds of components of which chains with more than half of the weight have none in common."""
        if len(self.fit.weights_) < 2:
            return []
        return [
            part
            for group, part in self.kinds_by_group().items()
            if max(each.support for each in self.matches(group)) <= STABLE
        ]

    def member_means(self, axis: str) -> np.ndarray:
        """(K, n) posterior mean of each component over the entries of an axis, as shares that sum to one.

        Of components as they were drawn, whatever tables count as one.

        Raises:
            ValueError: an axis along which nothing can be listed.
        """
        group = self.listed_along(axis).group
        chains, own = mixture(self.drawn_chains_along(axis)), self.unmerged(group)[: self.n_components(group)]
        means = [shares_of(chains, found).mean(axis=0, dtype=np.float64) for found in own]
        return np.asarray(means / np.maximum(np.sum(means, axis=1, keepdims=True), 1e-300))

    @property
    def network(self) -> Network | None:
        """Communities of actors, and the expected counts between them; None for a fit of anything but a network.

        Of chains that differ, those are taken that have all communities of the heaviest one.
        """
        tree, model, layout = self.fit._fitted()
        parts = self.kinds_by_group()
        same = self.chains_alike(next(iter(parts))) if parts else []
        return network_of(tree, model, layout, tuple(parts.values()), same)

    def data_in_words(self) -> str:
        """The sizes of the data's axes, with their names."""
        network, plurals = self.network, self.fit._fitted()[2].plurals
        if network is not None:
            return f"{len(network.actors):,} actors and their {'' if network.directed else 'un'}directed contacts"
        return " × ".join(f"{len(names):,} {plurals.get(dim, dim)}" for dim, names in self.axes.items())

    def labelled(
        self, table: pd.DataFrame, group: str, uncalibrated: bool, columns: Mapping[str, str] = NAMED
    ) -> pd.DataFrame:
        """A table with the names of its components, and with intervals where they are calibrated."""
        table = with_names(table, names_kept(self.fit.posterior, group), columns)
        return as_calibrated(table, self.why_no_intervals, uncalibrated)

    def group_along(self, axis: str | None) -> str:
        """The kind of components along an axis, or the first kind; raises ValueError."""
        if axis is not None:
            return self.listed_along(axis).group
        parts = self.kinds_by_group()
        if not parts:
            raise ValueError(
                f"the model must have components whose members can be listed, got {self.fit.model_.spec.text!r}"
            )
        return next(iter(parts))

    def kinds_by_group(self) -> dict[str, Part]:
        """The kinds in ``kinds``, each under the latent axis by which ``latent_groups`` names it."""
        _, model, layout = self.fit._fitted()
        groups, listed, found = latent_groups(model), self.listed(), {}
        for group in dict.fromkeys(groups.values()):
            axes = tuple(axis for axis, each in listed.items() if each.group == group)
            if axes:
                part = layout.parts.get(group) or default_part(name_of(group, groups, layout))
                found[group] = part._replace(axes=part.axes or axes)
        return found

    def listed(self) -> dict[str, Listed]:
        """Axes along which components can be listed, by the names that their factors use."""
        _, model, layout = self.fit._fitted()
        groups, found = latent_groups(model), {}
        for axis, factor in listable(model).items():
            latent = factor.axes.replace(axis, "")
            (dim,) = layout.dims_of_factor(factor.name, axis, factor is model.shared_factor)
            found[dim] = Listed(factor, layout.dims[latent], groups[latent], axis + latent)
        return found

    def listed_along(self, axis: str) -> Listed:
        """How components are listed along an axis; raises ValueError."""
        found = self.listed()
        if axis not in found:
            raise ValueError(f"axis must be one of {list(found)}, got {axis!r}")
        return found[axis]

    def matches(self, group: str) -> list[Matched]:
        """What all chains found of a kind of components, as tables have it: with those together that count as one."""
        found, sets = self.unmerged(group), merged_kept(self.fit.posterior, group)
        return united(found, sets, self.fit.weights_) if sets else found

    def merged_places(self, group: str) -> Places:
        """Where components are, in each chain, that count as one."""
        return places_of(self.unmerged(group), merged_kept(self.fit.posterior, group), len(self.fit.weights_))

    def unmerged(self, group: str) -> list[Matched]:
        """What all chains found of a kind of components: first those of the heaviest chain, by their numbers."""
        key = group, self.fit.weights_.tobytes()
        if key not in self.fit._matched and pinned(self.fit.model_, group):
            self.fit._matched[key] = numbered(self.fit.weights_, self.n_components(group))
        elif key not in self.fit._matched:
            self.fit._matched[key] = matched(
                self.chain_means(group), self.fit.weights_, n_anchored(self.fit.model_, group)
            )
        return self.fit._matched[key]

    def numbered(self, group: str) -> list[tuple[int, Matched]]:
        """The model's components with their numbers: those of the heaviest chain, and which other chains have them."""
        found = self.matches(group)[: self.n_components(group)]
        return [(number, one) for number, one in enumerate(found) if one.chains.size]

    def n_components(self, group: str) -> int:
        """How many components of a kind the model has."""
        model = self.fit.model_
        return int((model.rows.sizes | model.columns.sizes)[group])

    def chains_alike(self, group: str) -> list[tuple[int, np.ndarray]]:
        """Chains that have all components of the heaviest, with the order that numbers them as it does.

        All chains where components cannot be listed, by the numbers that they have in the posterior.
        """
        if group not in self.kinds_by_group():
            order = np.arange(self.n_components(group))
            return [(c, order) for c in range(self.fit.posterior["posterior"].sizes["chain"])]
        return alike(self.unmerged(group), self.n_components(group))

    def chain_means(self, group: str) -> list[list[np.ndarray]]:
        """Of each chain, along each axis that lists a kind of components, its means (K, n) as shares."""
        along = []
        for axis in self.kinds_by_group()[group].axes:
            means = [chain.mean(axis=0, dtype=np.float64) for chain in self.draws_along(axis)]
            along.append([each / np.maximum(each.sum(axis=1, keepdims=True), 1e-300) for each in means])
        return [list(each) for each in zip(*along, strict=True)]

    def draws_along(self, axis: str) -> np.ndarray:
        """(C, S, K, n) every draw's shares of the components' expected counts along an axis."""
        component = self.listed_along(axis).component
        return self.shares(axis).transpose("chain", "draw", component, axis).to_numpy()

    def names_along(self, axis: str) -> np.ndarray:
        """The labels of an axis along which components are listed, or its numbers."""
        return self.fit.posterior["posterior"][axis].to_numpy()

    def chains_along(self, axis: str) -> list[Chain]:
        """Every chain's components along an axis, with those together that count as one; raises ValueError."""
        places = self.merged_places(self.listed_along(axis).group)
        return [together(*each) for each in zip(self.drawn_chains_along(axis), places, strict=True)]

    def drawn_chains_along(self, axis: str) -> list[Chain]:
        """Every chain's components along an axis; raises ValueError for one along which nothing can be listed."""
        sizes = self.sizes_by_chain_of(self.listed_along(axis).group)
        return [each._replace(shares=own) for each, own in zip(sizes, self.draws_along(axis), strict=True)]

    def chains_of(self, group: str) -> list[Chain]:
        """Every chain's components by their sizes alone, with those together that count as one."""
        sizes = self.sizes_by_chain_of(group)
        return [together(*each) for each in zip(sizes, self.merged_places(group), strict=True)]

    def sizes_by_chain_of(self, group: str) -> list[Chain]:
        """Every chain's components as they were drawn, by their sizes alone."""
        tree = self.fit.posterior
        draws, sizes = tree["posterior"].sizes, self.sizes_of_chains(group)
        shares = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1e-300)
        shares = shares.reshape(draws["chain"], draws["draw"], -1)
        return [Chain(each, each, weight) for each, weight in zip(shares, self.fit.weights_.tolist(), strict=True)]

    def shares(self, axis: str) -> xr.DataArray:
        """Every draw's shares of the components' expected counts along an axis; they sum to one over it."""
        each = self.listed_along(axis)
        draws = self.in_counts(each)
        if not self.varies(each) and any(
            each.factor is self.fit.model_.factors[f] for f in normalised(self.fit.model_)
        ):
            return draws
        return draws / draws.sum(axis).clip(min=np.finfo(np.float32).tiny)

    def varies(self, each: Listed) -> bool:
        """Whether the mean size of the parts that counts come in, or exposures by cell, vary along a listed axis.

        For a factor that is used twice it does not: only one of its uses would be weighted by it.
        """
        uses = sum(self.fit.model_.factors[f] is each.factor for f in self.fit.model_.spec.factor_of_term)
        exposed = self.exposure_matrix is not None or self.fit.model_.level is not None
        return (exposed or each.axes[0] in posteriors.axes_of_parts(self.fit.model_)) and uses == 1

    def in_counts(self, each: Listed) -> xr.DataArray:
        """Every draw's components along an axis, proportional to their expected counts."""
        tree, model, layout = self.fit._fitted()
        check_draws(tree, each.factor.name)
        draws = tree["posterior"].dataset[each.factor.name]
        if not self.varies(each):
            return draws
        order = [1 + each.axes.index(a) for a in layout.axes[each.factor.name]]
        found = draws.copy(data=np.empty_like(draws))
        for chain in range(draws.sizes["chain"]):
            for first in range(0, draws.sizes["draw"], DRAWS_AT_ONCE):
                some = {"chain": [chain], "draw": slice(first, first + DRAWS_AT_ONCE)}
                part = xr.DataTree.from_dict(
                    {"posterior": tree["posterior"].dataset.isel(some), "constant_data": tree["constant_data"]}
                )
                found[some] = component_counts(part, model, layout, each.axes).transpose(0, *order)[None]
        return found

    def sizes_of_chains(self, group: str) -> np.ndarray:
        """(C S, K) expected counts of each component of a group of latent axes, summed over the uses of a factor."""
        tree, model, layout = self.fit._fitted()
        tied = [a for a, first in latent_groups(model).items() if first == group]
        return np.asarray(sum(component_counts(unweighted(tree), model, layout, a) for a in tied))


def name_of(group: str, groups: dict[str, str], layout: Layout) -> str:
    """What components are called: the name of their dimension, if it is a word."""
    dim = layout.dims[group]
    if len(dim) > 1:
        return dim
    return "component" if len(set(groups.values())) == 1 else f"component {dim}"


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


def weights_in_words(fit: "FactorizationEstimator") -> str:
    """The chains' weights as a list; empty where they are equal."""
    weights = fit.weights_
    return "" if np.ptp(weights) == 0.0 else ", ".join(f"{weight:.2f}" for weight in weights)
