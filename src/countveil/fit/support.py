"""Components with their support: what several chains found alike, and what only some of them found."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from countveil.fit.checks import check_integer, check_interval
from countveil.fit.component_tables import (
    by_support,
    entries_table,
    mixture,
    sizes_table,
    weights_of_chains,
)
from countveil.fit.intervals import as_calibrated
from countveil.fit.merging import merged_kept
from countveil.fit.naming import with_names
from countveil.fit.parts import NAMED, HasParts
from countveil.inference.matching import matched, numbered
from countveil.models.layout import n_anchored, pinned


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
