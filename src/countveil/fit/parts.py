"""What a fit's components are, and which chains have them, in words and tables laid out alike for every model."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import xarray as xr

from countveil.common.parameters import check_integer
from countveil.fit.component_tables import (
    Chain,
    by_support,
    component_counts,
    entries_table,
    mixture,
    shares_of,
    sizes_table,
    weights_of_chains,
)
from countveil.fit.merging import Places, merged_kept, places_of, together, united
from countveil.fit.naming import Names, changed, keep_names, names_kept, with_names
from countveil.fit.networks import Network, network_of
from countveil.fit.parameters import check_interval
from countveil.fit.reading import Readable, as_calibrated
from countveil.inference import posterior as posteriors
from countveil.inference.matching import STABLE, Matched, alike, matched, numbered, unweighted
from countveil.inference.row_gammas import check_draws
from countveil.models.factorization import Factor
from countveil.models.layout import (
    Layout,
    Part,
    default_part,
    latent_groups,
    listable,
    n_anchored,
    normalised,
    pinned,
)

UNDETERMINED = 0.5
"""Spread of a component that the data do not determine: half of it differs from draw to draw."""
DRAWS_AT_ONCE = 64  # whose components are weighted together
NAMED = MappingProxyType({"component": "name"})
COLUMNS = ["component", "prevalence", "rank", "member", "probability", "lower", "upper"]


class Listed(NamedTuple):
    """An axis along which components are listed: the factor that holds them, and which components they are."""

    factor: Factor
    component: str  # dimension of the components in the factor
    group: str  # latent axis by which ``latent_groups`` names them
    axes: str  # the axis and the latent axis of the components, as the model has them


class HasParts(Readable):
    """Topics, communities or components: what they are called, how large they are, and who their members are.

    Reports, pictures and the command line read a fit by these alone, so that a model that names its parts
    in its layout is shown by all of them.
    """

    _matched: dict[Any, list[Matched]]  # of the posterior that was adopted

    @property
    def parts(self) -> tuple[Part, ...]:
        """Every kind of component whose members can be listed: one for most models, none for some einsums."""
        return tuple(self._parts_by_group().values())

    @property
    def member_axes(self) -> tuple[str, ...]:
        """Every axis along which the members of components can be listed, including those that no report lists."""
        return tuple(self._listed())

    def members(
        self, axis: str, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """The n largest entries of each component along an axis, with equal-tailed intervals.

        Columns: component, prevalence (its share of all expected counts), rank, member, probability (the member's share
        of the component's expected counts along the axis), lower, upper.

        A fit whose intervals are not calibrated (``why_no_intervals`` says why) has no lower and upper. With
        ``uncalibrated`` it has uncalibrated_lower and uncalibrated_upper: quantiles of its draws, which hold the truth
        far less often than ``interval``.

        Raises:
            ValueError: an axis along which nothing can be listed; n or interval out of range.
        """
        check_integer("n", n, 1)
        check_interval(interval)
        chains, names = mixture(self._chains_along(axis)), self._names_along(axis)
        group = self._listed_along(axis).group
        found = entries_table(chains, names, self._own(group), n, interval).drop(columns="support")
        return self._finished(found, group, uncalibrated)

    def prevalences(
        self, interval: float = 0.9, *, axis: str | None = None, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """Each component's share of all expected counts, with equal-tailed intervals.

        Columns: the components' name (topic, community, component), prevalence, lower, upper; without intervals as in
        ``members``.

        Args:
            interval: probability of the intervals.
            axis: with several kinds of components, an axis of the kind that is meant; the first kind by default.
            uncalibrated: as in ``members``.

        Raises:
            ValueError: an interval out of range; an axis along which nothing can be listed; a model without
                components that can be listed.
        """
        check_interval(interval)
        group = self._group_along(axis)
        found = sizes_table(mixture(self._chains_of(group)), self._own(group), interval)
        found = self._finished(found.drop(columns="support"), group, uncalibrated)
        return found.rename(columns={"component": self._parts_by_group()[group].one})

    def relabel(self, names: Mapping[int, str | None], *, axis: str | None = None) -> Self:
        """Give components names, which tables, pages, figures and the file of the fit show from then on.

        Tables with a component's number get a column ``name`` beside it, empty for a component without one. Names stay
        with the numbers of this fit; another fit has none. The fit itself is changed, and returned.

        Args:
            names: a name for each of some numbers, such as ``{3: "trade"}``; None takes a name away.
            axis: with several kinds of components, an axis of the kind that is meant; the first kind by default.

        Raises:
            TypeError: names that are no dict.
            ValueError: a number that no component has, a name that is no line of text, or the same name twice; an axis
                along which nothing can be listed.
        """
        group = self._group_along(axis)
        known = range(len(self._matches(group)))
        keep_names(self.posterior, group, changed(names_kept(self.posterior, group), names, known))
        return self

    def names_of(self, axis: str | None = None) -> Names:
        """The names that ``relabel`` gave, by number; arguments and errors as there."""
        return names_kept(self.posterior, self._group_along(axis))

    def member_spread(self, axis: str) -> np.ndarray:
        """(K,) how far draws of each component, in one half of a chain, lie from the mean of the other half.

        The distance is total variation along the axis: half the sum of absolute differences of shares, from 0 (the
        same) to 1 (no member in common). Were the truth one more draw of the chain, this would be the expected error of
        the component's mean. A chain in a poor mode errs by more (docs/evidence.md has measurements). Of
        each chain at most 200 draws are compared, evenly spread.

        Raises:
            ValueError: an axis along which nothing can be listed.
        """
        draws = self._shares(axis).transpose("chain", "draw", self._listed_along(axis).component, axis)
        return posteriors.spread(draws.isel(draw=posteriors.evenly(draws.sizes["draw"])).to_numpy())

    def undetermined(self) -> dict[Part, tuple[int, int]]:
        """How many components of each kind the data do not determine, and how many there are.

        Such a component's ``member_spread`` is above ``UNDETERMINED`` along every axis along which its kind is listed.
        """
        found = {}
        for part in self.parts:
            least = np.min([self.member_spread(axis) for axis in part.axes], axis=0)
            found[part] = int((least > UNDETERMINED).sum()), least.size
        return found

    def unshared(self) -> list[Part]:
        """The kinds of components of which chains with more than half of the weight have none in common."""
        if len(self.weights_) < 2:
            return []
        return [
            part
            for group, part in self._parts_by_group().items()
            if max(each.support for each in self._matches(group)) <= STABLE
        ]

    def member_means(self, axis: str) -> np.ndarray:
        """(K, n) posterior mean of each component over the entries of an axis, as shares that sum to one.

        Of components as they were drawn, whatever tables count as one.

        Raises:
            ValueError: an axis along which nothing can be listed.
        """
        group = self._listed_along(axis).group
        chains, own = mixture(self._drawn_chains_along(axis)), self._found(group)[: self._n_components(group)]
        means = [shares_of(chains, found).mean(axis=0, dtype=np.float64) for found in own]
        return np.asarray(means / np.maximum(np.sum(means, axis=1, keepdims=True), 1e-300))

    @property
    def network(self) -> Network | None:
        """Communities of actors, and the expected counts between them; None for a fit of anything but a network.

        Of chains that differ, those are taken that have all communities of the heaviest one.
        """
        tree, model, layout = self._fitted()
        parts = self._parts_by_group()
        same = self._alike(next(iter(parts))) if parts else []
        return network_of(tree, model, layout, tuple(parts.values()), same)

    def data_in_words(self) -> str:
        """The sizes of the data's axes, with their names."""
        network, plurals = self.network, self._fitted()[2].plurals
        if network is not None:
            return f"{len(network.actors):,} actors and their {'' if network.directed else 'un'}directed contacts"
        return " × ".join(f"{len(names):,} {plurals.get(dim, dim)}" for dim, names in self.axes.items())

    def _finished(
        self, table: pd.DataFrame, group: str, uncalibrated: bool, columns: Mapping[str, str] = NAMED
    ) -> pd.DataFrame:
        """A table with the names of its components, and with intervals where they are calibrated."""
        table = with_names(table, names_kept(self.posterior, group), columns)
        return as_calibrated(table, self.why_no_intervals, uncalibrated)

    def _group_along(self, axis: str | None) -> str:
        """The kind of components along an axis, or the first kind; raises ValueError."""
        if axis is not None:
            return self._listed_along(axis).group
        parts = self._parts_by_group()
        if not parts:
            raise ValueError(
                f"the model must have components whose members can be listed, got {self.model_.spec.text!r}"
            )
        return next(iter(parts))

    def _parts_by_group(self) -> dict[str, Part]:
        """The kinds in ``parts``, each under the latent axis by which ``latent_groups`` names it."""
        _, model, layout = self._fitted()
        groups, listed, found = latent_groups(model), self._listed(), {}
        for group in dict.fromkeys(groups.values()):
            axes = tuple(axis for axis, each in listed.items() if each.group == group)
            if axes:
                part = layout.parts.get(group) or default_part(name_of(group, groups, layout))
                found[group] = part._replace(axes=part.axes or axes)
        return found

    def _listed(self) -> dict[str, Listed]:
        """Axes along which components can be listed, by the names that their factors use."""
        _, model, layout = self._fitted()
        groups, found = latent_groups(model), {}
        for axis, factor in listable(model).items():
            latent = factor.axes.replace(axis, "")
            (dim,) = layout.dims_of_factor(factor.name, axis, factor is model.shared_factor)
            found[dim] = Listed(factor, layout.dims[latent], groups[latent], axis + latent)
        return found

    def _listed_along(self, axis: str) -> Listed:
        """How components are listed along an axis; raises ValueError."""
        found = self._listed()
        if axis not in found:
            raise ValueError(f"axis must be one of {list(found)}, got {axis!r}")
        return found[axis]

    def _matches(self, group: str) -> list[Matched]:
        """What all chains found of a kind of components, as tables have it: with those together that count as one."""
        found, sets = self._found(group), merged_kept(self.posterior, group)
        return united(found, sets, self.weights_) if sets else found

    def _merged_places(self, group: str) -> Places:
        """Where components are, in each chain, that count as one."""
        return places_of(self._found(group), merged_kept(self.posterior, group), len(self.weights_))

    def _found(self, group: str) -> list[Matched]:
        """What all chains found of a kind of components: first those of the heaviest chain, by their numbers."""
        key = group, self.weights_.tobytes()
        if key not in self._matched and pinned(self.model_, group):
            self._matched[key] = numbered(self.weights_, self._n_components(group))
        elif key not in self._matched:
            self._matched[key] = matched(
                self._chain_means(group), self.weights_, n_anchored(self.model_, group)
            )
        return self._matched[key]

    def _own(self, group: str) -> list[tuple[int, Matched]]:
        """The model's components with their numbers: those of the heaviest chain, and which other chains have them."""
        found = self._matches(group)[: self._n_components(group)]
        return [(number, one) for number, one in enumerate(found) if one.chains.size]

    def _n_components(self, group: str) -> int:
        """How many components of a kind the model has."""
        model = self.model_
        return int((model.rows.sizes | model.columns.sizes)[group])

    def _alike(self, group: str) -> list[tuple[int, np.ndarray]]:
        """Chains that have all components of the heaviest, with the order that numbers them as it does.

        All chains where components cannot be listed, by the numbers that they have in the posterior.
        """
        if group not in self._parts_by_group():
            order = np.arange(self._n_components(group))
            return [(c, order) for c in range(self.posterior["posterior"].sizes["chain"])]
        return alike(self._found(group), self._n_components(group))

    def _chain_means(self, group: str) -> list[list[np.ndarray]]:
        """Of each chain, along each axis that lists a kind of components, its means (K, n) as shares."""
        along = []
        for axis in self._parts_by_group()[group].axes:
            means = [chain.mean(axis=0, dtype=np.float64) for chain in self._draws_along(axis)]
            along.append([each / np.maximum(each.sum(axis=1, keepdims=True), 1e-300) for each in means])
        return [list(each) for each in zip(*along, strict=True)]

    def _draws_along(self, axis: str) -> np.ndarray:
        """(C, S, K, n) every draw's shares of the components' expected counts along an axis."""
        component = self._listed_along(axis).component
        return self._shares(axis).transpose("chain", "draw", component, axis).to_numpy()

    def _names_along(self, axis: str) -> np.ndarray:
        return self.posterior["posterior"][axis].to_numpy()

    def _chains_along(self, axis: str) -> list[Chain]:
        """Every chain's components along an axis, with those together that count as one; raises ValueError."""
        places = self._merged_places(self._listed_along(axis).group)
        return [together(*each) for each in zip(self._drawn_chains_along(axis), places, strict=True)]

    def _drawn_chains_along(self, axis: str) -> list[Chain]:
        """Every chain's components along an axis; raises ValueError for one along which nothing can be listed."""
        sizes = self._sizes_by_chain_of(self._listed_along(axis).group)
        return [each._replace(shares=own) for each, own in zip(sizes, self._draws_along(axis), strict=True)]

    def _chains_of(self, group: str) -> list[Chain]:
        """Every chain's components by their sizes alone, with those together that count as one."""
        sizes = self._sizes_by_chain_of(group)
        return [together(*each) for each in zip(sizes, self._merged_places(group), strict=True)]

    def _sizes_by_chain_of(self, group: str) -> list[Chain]:
        """Every chain's components as they were drawn, by their sizes alone."""
        tree = self.posterior
        draws, sizes = tree["posterior"].sizes, self._sizes_of_chains(group)
        shares = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1e-300)
        shares = shares.reshape(draws["chain"], draws["draw"], -1)
        return [
            Chain(each, each, weight) for each, weight in zip(shares, self.weights_.tolist(), strict=True)
        ]

    def _shares(self, axis: str) -> xr.DataArray:
        """Every draw's shares of the components' expected counts along an axis; they sum to one over it."""
        each = self._listed_along(axis)
        draws = self._in_counts(each)
        if not self._varies(each) and any(
            each.factor is self.model_.factors[f] for f in normalised(self.model_)
        ):
            return draws
        return draws / draws.sum(axis).clip(min=np.finfo(np.float32).tiny)

    def _varies(self, each: Listed) -> bool:
        """Whether the mean size of the parts that counts come in, or exposures by cell, vary along a listed axis.

        For a factor that is used twice it does not: only one of its uses would be weighted by it.
        """
        uses = sum(self.model_.factors[f] is each.factor for f in self.model_.spec.factor_of_term)
        exposed = self.exposure_matrix is not None
        return (exposed or each.axes[0] in posteriors.axes_of_parts(self.model_)) and uses == 1

    def _in_counts(self, each: Listed) -> xr.DataArray:
        """Every draw's components along an axis, proportional to their expected counts."""
        tree, model, layout = self._fitted()
        check_draws(tree, each.factor.name)
        draws = tree["posterior"].dataset[each.factor.name]
        if not self._varies(each):
            return draws
        order = [1 + each.axes.index(a) for a in layout.axes[each.factor.name]]
        found = draws.copy(data=np.empty_like(draws))
        for chain in range(draws.sizes["chain"]):
            for first in range(0, draws.sizes["draw"], DRAWS_AT_ONCE):
                some = {"chain": [chain], "draw": slice(first, first + DRAWS_AT_ONCE)}
                part = xr.DataTree.from_dict(
                    {
                        "posterior": tree["posterior"].dataset.isel(some),
                        "constant_data": tree["constant_data"],
                    }
                )
                found[some] = component_counts(part, model, layout, each.axes).transpose(0, *order)[None]
        return found

    def _sizes_of_chains(self, group: str) -> np.ndarray:
        """(C S, K) expected counts of each component of a group of latent axes, summed over the uses of a factor."""
        tree, model, layout = self._fitted()
        tied = [a for a, first in latent_groups(model).items() if first == group]
        return np.asarray(sum(component_counts(unweighted(tree), model, layout, a) for a in tied))


def name_of(group: str, groups: dict[str, str], layout: Layout) -> str:
    """What components are called: the name of their dimension, if it is a word."""
    dim = layout.dims[group]
    if len(dim) > 1:
        return dim
    return "component" if len(set(groups.values())) == 1 else f"component {dim}"


class HasSupport(HasParts):
    """Adds ``supported`` and ``support`` to a fit whose components can be listed."""

    def supported(
        self, axis: str, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """The components that the chains found, the best supported first, with their n largest entries along an axis.

        Chains of one fit may find different components. Two chains have the same one if it overlaps by at least half
        along every axis along which its kind is listed. Its support is the weight of the chains that have it
        (``weights_``); where chains count alike, this is their share, and about the chance that another fit of the same
        data would have it, too. Everything else is within these chains, and never
        an average over components that differ.

        Columns: component (the model's own numbers, which all tables share; those that the heaviest chain does not have
        are numbered from there on), support (NaN in a fit of one chain, which cannot say), prevalence (its share of all
        expected counts), rank, member, probability (the member's share of the component), lower, upper. Within the same
        support the largest come first. Where intervals are not calibrated: as in ``members``.

        Raises:
            ValueError: an axis along which nothing can be listed; n or interval out of range.
        """
        table = self._supported_together([self], np.ones(1), axis, n, interval, uncalibrated)
        return with_names(table, self.names_of(axis), NAMED)

    @staticmethod
    def _supported_together(
        fits: Sequence["HasSupport"],
        weights: np.ndarray,
        axis: str,
        n: int,
        within: float,
        uncalibrated: bool,
    ) -> pd.DataFrame:
        """``supported`` of the chains of several fits of the same cells, each fit with its weight (F,).

        within is the probability of the intervals.
        """
        check_integer("n", n, 1)
        check_interval(within)
        chains, means = [], []
        groups = [fit._listed_along(axis).group for fit in fits]
        for fit, weight, group in zip(fits, weights.tolist(), groups, strict=True):
            chains += [each._replace(weight=weight * each.weight) for each in fit._chains_along(axis)]
            means += fit._chain_means(group)
        if len(fits) == 1:
            found = fits[0]._matches(groups[0])
        elif any(merged_kept(fit.posterior, group) for fit, group in zip(fits, groups, strict=True)):
            raise ValueError("fits with merged components cannot be listed together: unmerge them first")
        elif all(pinned(fit.model_, group) for fit, group in zip(fits, groups, strict=True)):
            found = numbered(weights_of_chains(chains), fits[0]._n_components(groups[0]))
        else:
            found = matched(means, weights_of_chains(chains), n_anchored_alike(fits, groups))
        drawn = mixture(chains)
        table = entries_table(drawn, fits[0]._names_along(axis), by_support(drawn, found), n, within)
        if len(chains) < 2:
            table["support"] = np.nan
        why = next((fit.why_no_intervals for fit in fits if fit.why_no_intervals), "")
        return as_calibrated(table, why, uncalibrated)

    def support(
        self, interval: float = 0.9, *, axis: str | None = None, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """The support and the prevalence of every component that a chain found, in the order of ``supported``.

        Columns: component, support, prevalence, lower, upper. Arguments and errors as for ``prevalence``.
        """
        check_interval(interval)
        group = self._group_along(axis)
        chains = mixture(self._chains_of(group))
        table = sizes_table(chains, by_support(chains, self._matches(group)), interval)
        if len(chains) < 2:
            table["support"] = np.nan
        return self._finished(table, group, uncalibrated)


def n_anchored_alike(fits: Sequence[HasSupport], groups: Sequence[str]) -> int:
    """How many components are known by their numbers in all fits, if these are the same with the same seeds; else 0."""
    seeds = [list((getattr(fit, "seeds_", None) or {}).items()) for fit in fits]
    numbers = {n_anchored(fit.model_, group) for fit, group in zip(fits, groups, strict=True)}
    same = all(own == seeds[0] for own in seeds) and len(numbers) == 1
    return numbers.pop() if same else 0
