"""Components with their support: what several chains found alike, and what only some of them found."""

from typing import Any

import numpy as np
import pandas as pd

from countveil.estimators.checks import check_integer, check_interval
from countveil.estimators.intervals import as_calibrated
from countveil.estimators.parts import HasParts
from countveil.inference.matching import Matched, matched


class HasSupport(HasParts):
    """Adds ``supported`` to a fit whose components can be listed."""

    def supported(
        self, axis: str, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """The components that the chains found, the best supported first, with their n largest entries along an axis.

        Chains of one fit may find different components. Two chains have the same one if it overlaps by at least half
        along the axis. Its support is the share of the chains that have it: about the chance that another fit of the
        same data would have it, too. Everything else is within these chains, and never an average over components that
        differ.

        Columns: component (numbered from the best supported on; within the same support the largest first), support
        (NaN in a fit of one chain, which cannot say), prevalence (its share of all expected counts), rank, member,
        probability (the member's share of the component), lower, upper. Where intervals are not calibrated: as in
        ``members``.

        Raises:
            ValueError: an axis along which nothing can be listed; n or interval out of range.
        """
        check_integer("n", n, 1)
        check_interval(interval)
        each = self._listed_along(axis)
        draws = self._shares(axis).transpose("chain", "draw", each.component, axis)
        shares, names = draws.to_numpy(), draws[axis].to_numpy()
        n_chains, n_draws = shares.shape[:2]
        sizes = self._sizes(each.group).reshape(n_chains, n_draws, -1)
        sizes = sizes / np.maximum(sizes.sum(axis=2, keepdims=True), 1e-300)
        means = shares.mean(axis=1, dtype=np.float64)
        found = matched(
            means / np.maximum(means.sum(axis=2, keepdims=True), 1e-300), np.full(n_chains, 1 / n_chains)
        )
        tails = 0.5 - 0.5 * interval, 0.5 + 0.5 * interval
        rows = [described(each, shares, sizes, names, n, tails) for each in found]
        rows.sort(key=lambda one: (-one[0]["support"], -one[0]["prevalence"]))
        table = pd.DataFrame([{"component": i} | row for i, one in enumerate(rows) for row in one])
        if n_chains < 2:
            table["support"] = np.nan
        return as_calibrated(table, self.why_no_intervals, uncalibrated)


def described(
    found: Matched,
    shares: np.ndarray,
    sizes: np.ndarray,
    names: np.ndarray,
    n: int,
    tails: tuple[float, float],
) -> list[dict[str, Any]]:
    """A row for each of the n largest entries of what some chains have: from the draws of these chains alone."""
    pairs = list(zip(found.chains, found.components, strict=True))
    own = np.concatenate([shares[chain, :, k] for chain, k in pairs]).astype(np.float64)
    size = np.concatenate([sizes[chain, :, k] for chain, k in pairs])
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
