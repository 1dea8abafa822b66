"""``fit.parts``: topics, communities or components, and which chains have them, in tables alike for every model."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countveil.common.parameters import check_integer
from countveil.fit import layers
from countveil.fit.component_tables import by_support, entries_table, mixture, sizes_table, weights_of_chains
from countveil.fit.naming import (
    Names,
    changed,
    keep_merged,
    keep_names,
    merged_kept,
    names_kept,
    with_another,
    with_names,
)
from countveil.fit.parameters import check_interval
from countveil.fit.reading import NAMED, as_calibrated
from countveil.inference.matching import matched, numbered
from countveil.models.layout import Part, n_anchored, pinned

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

UNDETERMINED = 0.5
"""Spread of a component that the data do not determine: half of it differs from draw to draw."""


class Parts:
    """How large a fit's topics, communities or components are, who their members are, and how well they are supported.

    Components have the numbers of the fit's heaviest chain in all tables.
    """

    def __init__(self, fit: "FactorizationEstimator") -> None:
        self.fit, self.reader = fit, fit._reader

    @property
    def kinds(self) -> tuple[Part, ...]:
        """What each kind of component is called, and along which axes its members can be listed."""
        return self.reader.kinds

    def members(self, axis: str, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The n largest entries of each component along an axis, with equal-tailed intervals.

        Columns: component, prevalence (its share of all expected counts), rank, member, probability (the member's share
        of the component's expected counts along the axis), lower, upper.

        A fit whose intervals are not calibrated (``tables["fit"]`` says why) has no lower and upper. With
        ``uncalibrated`` it has uncalibrated_lower and uncalibrated_upper: quantiles of its draws, which hold the truth
        far less often than ``interval``.

        Raises:
            ValueError: an axis along which nothing can be listed; n or interval out of range.
        """
        check_integer("n", n, 1)
        check_interval(interval)
        chains, names = mixture(self.reader.chains_along(axis)), self.reader.names_along(axis)
        group = self.reader.listed_along(axis).group
        found = entries_table(chains, names, self.reader.numbered(group), n, interval).drop(columns="support")
        return self.reader.labelled(found, group, uncalibrated)

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
        group = self.reader.group_along(axis)
        found = sizes_table(mixture(self.reader.chains_of(group)), self.reader.numbered(group), interval)
        found = self.reader.labelled(found.drop(columns="support"), group, uncalibrated)
        return found.rename(columns={"component": self.reader.kinds_by_group()[group].one})

    def relabel(self, names: Mapping[int, str | None], *, axis: str | None = None) -> Any:
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
        group = self.reader.group_along(axis)
        known = range(len(self.reader.matches(group)))
        keep_names(self.fit.posterior, group, changed(names_kept(self.fit.posterior, group), names, known))
        return self.fit

    def names(self, axis: str | None = None) -> Names:
        """The names that ``relabel`` gave, by number; arguments and errors as there."""
        return self.reader.names_of(axis)

    def undetermined(self) -> dict[Part, tuple[int, int]]:
        """How many components of each kind the data do not determine, and how many there are.

        Such a component's ``member_spread`` is above ``UNDETERMINED`` along every axis along which its kind is listed.
        """
        found = {}
        for part in self.reader.kinds:
            least = np.min([self.reader.member_spread(axis) for axis in part.axes], axis=0)
            found[part] = int((least > UNDETERMINED).sum()), least.size
        return found

    def supported(self, axis: str, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
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
        table = supported_together([self.fit], np.ones(1), axis, n, interval, uncalibrated)
        return with_names(table, self.reader.names_of(axis), NAMED)

    def upper_topics(self, n: int = 5, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Topics of topics, layer by layer from the top, with their n largest topics in the layer below.

        Two chains have the same one if it gives at least half of itself to the same topics below. Its numbers come from
        the chains that have it, the weight of which is its support; a chain that lacks a topic below gives it nothing.
        Upper topics may trade places from draw to draw or from chain to chain. Intervals include this: one that goes
        from near 0 to near 1 shows that the share is undetermined, not that it varies.

        Columns: layer (2 is above the topics of words), topic (numbers of the heaviest chain, as everywhere), support
        (NaN in a fit of one chain), prevalence (its share of all expected words, where each document shares its words
        as it shares the layer), rank, member (the number of a topic of the layer below), leading (its name or its most
        probable words), probability (the member's share of the topic's expected words), lower, upper. Where intervals
        are not calibrated: as in ``members``.

        Raises:
            ValueError: a fit of a single layer; n or interval out of range.
        """
        return layers.table(self.fit, n, interval, uncalibrated)

    def support(self, interval: float = 0.9, *, axis: str | None = None, uncalibrated: bool = False) -> pd.DataFrame:
        """The support and the prevalence of every component that a chain found, in the order of ``supported``.

        Columns: component, support, prevalence, lower, upper. Arguments and errors as for ``prevalences``.
        """
        check_interval(interval)
        group = self.reader.group_along(axis)
        chains = mixture(self.reader.chains_of(group))
        table = sizes_table(chains, by_support(chains, self.reader.matches(group)), interval)
        if len(chains) < 2:
            table["support"] = np.nan
        return self.reader.labelled(table, group, uncalibrated)

    def merge(self, numbers: Iterable[int]) -> Any:
        """Count some topics as one, under the smallest of their numbers, in all tables, pages and figures from then on.

        A merged topic's share of a document, its prevalence, its expected shares and contrasts are sums over its
        topics, and the probability of a word is their mean, weighted by their sizes, in every draw. Its numbers come
        from the chains that have all of its topics, whose weight is its support. Topics that were merged already come
        along. The draws stay as they are, and so do rates, predictions and ``transform``. The fit itself is changed,
        and returned; its file keeps what was merged.

        Raises:
            ValueError: a fit of other components than topics; fewer than two topics, a number that no topic has, or
                topics that no chain with a weight has together.
        """
        if not self.fit._merges:
            raise ValueError(f"merge requires topics of a TopicModel, got a fit of {type(self.fit).__name__}")
        group = self.reader.group_along(None)
        found, before = self.reader.unmerged(group), merged_kept(self.fit.posterior, group)
        sets = with_another(before, numbers, len(found))
        own = next((each for each in sets if each not in before), None)
        if own is None:
            return self.fit
        together = set.intersection(*(set(found[number].chains.tolist()) for number in own))
        if not any(self.fit.weights_[chain] > 0.0 for chain in together):
            raise ValueError(f"numbers must be topics that a chain has together, got {own}")
        keep_merged(self.fit.posterior, group, sets)
        return self.fit

    def unmerge(self) -> Any:
        """Count all topics by themselves again; the fit itself is changed, and returned."""
        if self.merged():
            keep_merged(self.fit.posterior, self.reader.group_along(None), [])
        return self.fit

    def merged(self) -> list[list[int]]:
        """The numbers of topics that ``merge`` made count as one, set by set."""
        return merged_kept(self.fit.posterior, self.reader.group_along(None)) if self.fit._merges else []


def supported_together(
    fits: "Sequence[FactorizationEstimator]", weights: np.ndarray, axis: str, n: int, within: float, uncalibrated: bool
) -> pd.DataFrame:
    """``supported`` of the chains of several fits of the same cells, each fit with its weight (F,).

    within is the probability of the intervals.
    """
    check_integer("n", n, 1)
    check_interval(within)
    chains, means = [], []
    groups = [fit._reader.listed_along(axis).group for fit in fits]
    for fit, weight, group in zip(fits, weights.tolist(), groups, strict=True):
        chains += [each._replace(weight=weight * each.weight) for each in fit._reader.chains_along(axis)]
        means += fit._reader.chain_means(group)
    if len(fits) == 1:
        found = fits[0]._reader.matches(groups[0])
    elif any(merged_kept(fit.posterior, group) for fit, group in zip(fits, groups, strict=True)):
        raise ValueError(
            "fits must have no merged components to be listed together, got some: call fit.parts.unmerge() on each"
        )
    elif all(pinned(fit.model_, group) for fit, group in zip(fits, groups, strict=True)):
        found = numbered(weights_of_chains(chains), fits[0]._reader.n_components(groups[0]))
    else:
        found = matched(means, weights_of_chains(chains), n_anchored_alike(fits, groups))
    drawn = mixture(chains)
    table = entries_table(drawn, fits[0]._reader.names_along(axis), by_support(drawn, found), n, within)
    if len(chains) < 2:
        table["support"] = np.nan
    why = next((fit._reader.why_no_intervals for fit in fits if fit._reader.why_no_intervals), "")
    return as_calibrated(table, why, uncalibrated)


def n_anchored_alike(fits: "Sequence[FactorizationEstimator]", groups: Sequence[str]) -> int:
    """How many components are known by their numbers in all fits, if these are the same with the same seeds; else 0."""
    seeds = [list((getattr(fit, "seeds_", None) or {}).items()) for fit in fits]
    numbers = {n_anchored(fit.model_, group) for fit, group in zip(fits, groups, strict=True)}
    same = all(own == seeds[0] for own in seeds) and len(numbers) == 1
    return numbers.pop() if same else 0
