"""Components with their support: what several chains found alike, and what only some of them found."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.estimators.checks import check_integer, check_interval
from countveil.estimators.intervals import as_calibrated
from countveil.estimators.parts import HasParts
from countveil.inference.matching import Matched, matched
from countveil.inference.mixture import places


class Chain(NamedTuple):
    """One chain's draws of its components."""

    shares: np.ndarray  # (S, K, n) of each component along an axis
    sizes: np.ndarray  # (S, K) of all expected counts
    weight: float

    @property
    def means(self) -> np.ndarray:
        """(K, n) the mean of each component, with sum one."""
        found = self.shares.mean(axis=0, dtype=np.float64)
        return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))

    def taken(self, draws: np.ndarray) -> "Chain":
        """These draws of the chain, as often as they are listed."""
        if np.array_equal(draws, np.arange(len(self.shares))):
            return self
        return self._replace(shares=self.shares[draws], sizes=self.sizes[draws])


class HasSupport(HasParts):
    """Adds ``supported`` to a fit whose components can be listed."""

    def supported(
        self, axis: str, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """The components that the chains found, the best supported first, with their n largest entries along an axis.

        Chains of one fit may find different components. Two chains have the same one if it overlaps by at least half
        along the axis. Its support is the weight of the chains that have it (``weights_``); where chains count alike,
        this is their share, and about the chance that another fit of the same data would have it, too. Everything else
        is within these chains, and never an average over components that differ.

        Columns: component (numbered from the best supported on; within the same support the largest first), support
        (NaN in a fit of one chain, which cannot say), prevalence (its share of all expected counts), rank, member,
        probability (the member's share of the component), lower, upper. Where intervals are not calibrated: as in
        ``members``.

        Raises:
            ValueError: an axis along which nothing can be listed; n or interval out of range.
        """
        return self._supported_together([self], np.ones(1), axis, n, interval, uncalibrated)

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
        chains = [
            chain
            for fit, weight in zip(fits, weights, strict=True)
            for chain in fit._chains_along(axis, float(weight))
        ]
        names = fits[0]._shares(axis)[axis].to_numpy()
        tails = 0.5 - 0.5 * within, 0.5 + 0.5 * within
        of_chains = np.array([chain.weight for chain in chains])
        found = matched([chain.means for chain in chains], of_chains)
        kept = places(of_chains, [len(chain.shares) for chain in chains])
        mixture = [chain.taken(draws) for chain, draws in zip(chains, kept, strict=True)]
        in_mixture = [each for each in found if any(len(mixture[c].shares) for c in each.chains)]
        rows = [described(each, mixture, names, n, tails) for each in in_mixture]
        rows.sort(key=lambda one: (-one[0]["support"], -one[0]["prevalence"]))
        table = pd.DataFrame([{"component": i} | row for i, one in enumerate(rows) for row in one])
        if len(chains) < 2:
            table["support"] = np.nan
        why = next((fit.why_no_intervals for fit in fits if fit.why_no_intervals), "")
        return as_calibrated(table, why, uncalibrated)

    def _chains_along(self, axis: str, weight: float) -> list[Chain]:
        """Every chain's own components along an axis; their weights have this sum."""
        each = self._listed_along(axis)
        shares = self._shares(axis).transpose("chain", "draw", each.component, axis).to_numpy()
        sizes = self._sizes_of_chains(each.group).reshape(*shares.shape[:2], -1)
        sizes = sizes / np.maximum(sizes.sum(axis=2, keepdims=True), 1e-300)
        weights = weight * self.weights_
        return [Chain(*own) for own in zip(shares, sizes, weights.tolist(), strict=True)]


def described(
    found: Matched, chains: Sequence[Chain], names: np.ndarray, n: int, tails: tuple[float, float]
) -> list[dict[str, Any]]:
    """A row for each of the n largest entries of what some chains have: from the draws of these chains alone."""
    pairs = list(zip(found.chains, found.components, strict=True))
    own = np.concatenate([chains[c].shares[:, k] for c, k in pairs]).astype(np.float64)
    size = np.concatenate([chains[c].sizes[:, k] for c, k in pairs])
    mean = own.mean(axis=0)
    top = np.argsort(-mean, kind="stable")[:n]
    lower, upper = np.quantile(own[:, top], tails, axis=0)
    common = {"support": found.support, "prevalence": size.mean()}
    return [
        common
        | {
            "rank": rank,
            "member": names[v],
            "probability": mean[v],
            "lower": lower[rank - 1],
            "upper": upper[rank - 1],
        }
        for rank, v in enumerate(top, start=1)
    ]
