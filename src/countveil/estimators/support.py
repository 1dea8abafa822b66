"""Components with their support: what several chains found alike, and what only some of them found."""

import numpy as np
import pandas as pd

from countveil.estimators.checks import check_integer, check_interval
from countveil.estimators.component_tables import entries_table, pooled, sizes_table
from countveil.estimators.intervals import as_calibrated
from countveil.estimators.parts import HasParts
from countveil.inference.matching import Matched

STABLE = 0.5
"""A component is called stable if chains with more than half of the weight have it."""


class HasSupport(HasParts):
    """Adds ``supported`` and ``support`` to a fit whose components can be listed."""

    def supported(
        self, axis: str, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """The components that the chains found, the best supported first, with their n largest entries along an axis.

        Chains of one fit may find different components. Two chains have the same one if it overlaps by at least half
        along every axis along which its kind is listed. Its support is the share of the chains that have it: about the
        chance that another fit of the same data would have it, too. Everything else is within these chains, and never
        an average over components that differ.

        Columns: component (the model's own numbers, which all tables share; those that the heaviest chain does not have
        are numbered from there on), support (NaN in a fit of one chain, which cannot say), prevalence (its share of all
        expected counts), rank, member, probability (the member's share of the component), lower, upper. Within the same
        support the largest come first. Where intervals are not calibrated: as in ``members``.

        Raises:
            ValueError: an axis along which nothing can be listed; n or interval out of range.
        """
        check_integer("n", n, 1)
        check_interval(interval)
        drawn, group = self._draws_along(axis), self._listed_along(axis).group
        found = entries_table(drawn, self._by_support(group), n, interval)
        return as_calibrated(self._said(found), self.why_no_intervals, uncalibrated)

    def support(
        self, interval: float = 0.9, *, axis: str | None = None, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """The support and the prevalence of every component that a chain found, in the order of ``supported``.

        Columns: component, support, prevalence, lower, upper. Arguments and errors as for ``prevalence``.
        """
        check_interval(interval)
        group = self._group_along(axis)
        found = sizes_table(self._relative_sizes(group), self._by_support(group), interval)
        return as_calibrated(self._said(found), self.why_no_intervals, uncalibrated)

    def _by_support(self, group: str) -> list[tuple[int, Matched]]:
        """All components with their numbers, the best supported first, within the same support the largest."""
        sizes, found = self._relative_sizes(group), list(enumerate(self._matches(group)))
        return sorted(found, key=lambda one: (-round(one[1].support, 9), -pooled(sizes, one[1]).mean()))

    def _said(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table without the support that one chain cannot tell."""
        if self.posterior["posterior"].sizes["chain"] < 2:
            table["support"] = np.nan
        return table
