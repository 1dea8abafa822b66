"""Rows of the data (documents) by components: what each is made of. The one place that asks a fit's draws for it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from countveil.fit.base import FactorizationEstimator
from countveil.fit.component_tables import by_support, component_counts, mixture, tails
from countveil.privacy._text import plain
from countveil.report.browse.listings import short
from countveil.report.sections import is_numbered

HIDDEN, NUMBERS, LABELS = CHOICES = ("hidden", "numbers", "labels")
MOST_ROWS = 2_000  # of more only those are kept that a component is largest in
TOP_ROWS = 20  # of each component
SHARES_OF_A_ROW = 6  # the largest
AT_ONCE = 256


class RowShares(NamedTuple):
    """Every row's shares (n, K, 3) of components: mean, lower, upper, or (n, K, 1); its expected counts (n,)."""

    values: np.ndarray
    size: np.ndarray


def rows_axis(fit: FactorizationEstimator) -> str | None:
    """The axis of the rows, if the fit's first kind of component is listed along others alone; else None."""
    first = next(iter(fit._reader.axes))
    listed = [axis for part in fit._reader.kinds for axis in part.axes]
    return first if listed and first not in listed and first in fit._reader.member_axes else None


def row_shares(fit: FactorizationEstimator, axis: str, interval: float = 0.9) -> RowShares:
    """Shares of each row's expected counts by component, in the order of ``support``.

    share_dk = n_dk / sum_j n_dj, n_dk the expected counts of component k in row d; each component is averaged over the
    chains that have it, so shares of a row add up to one only where the chains agree.
    """
    group = fit._reader.listed_along(axis).group
    chains = mixture(fit._reader.chains_along(axis))
    found = [one for _, one in by_support(chains, fit._reader.matches(group))]
    n, expected = len(fit._reader.axes[axis]), mean_of_rows(fit)
    probabilities = [] if fit._reader.why_no_intervals else tails(interval)
    values = np.empty((n, len(found), 1 + len(probabilities)))
    for start in range(0, n, AT_ONCE):
        some = slice(start, start + AT_ONCE)
        by_chain = [parts_of(chain.shares[:, :, some], chain.sizes) for chain in chains]
        for i, one in enumerate(found):
            own = np.concatenate([by_chain[c][:, k] for c, k in zip(one.chains, one.components, strict=True)])
            values[some, i, 0] = own.mean(axis=0)
            if probabilities:
                values[some, i, 1:] = np.quantile(own, probabilities, axis=0).T
    return RowShares(values, expected)


def parts_of(shares: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(S, K, n) what rows are made of, from the components' shares over rows (S, K, n) and their sizes (S, K)."""
    counts = shares * sizes[:, :, None]
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300))


def mean_of_rows(fit: FactorizationEstimator) -> np.ndarray:
    """(n,) expected counts of each row of the first axis."""
    return np.asarray(component_counts(*fit._fitted(), fit.model_.spec.output[0]).mean(axis=0))


def rows_of(fit: FactorizationEstimator, shown: str, plurals: Mapping[str, str]) -> dict[str, Any] | None:
    """The rows as the page has them, with numbers or labels; None if they are hidden or the model lists them itself."""
    axis = rows_axis(fit)
    if shown == HIDDEN or axis is None:
        return None
    found, names = row_shares(fit, axis), fit._reader.axes[axis]
    mean = found.values[:, :, 0]
    top = np.argsort(-mean, axis=0, kind="stable")[:TOP_ROWS].T
    kept = np.arange(len(names)) if len(names) <= MOST_ROWS else np.unique(top)
    place = np.full(len(names), -1)
    place[kept] = np.arange(kept.size)
    named = shown == LABELS and not is_numbered(fit, axis)
    best = np.argsort(-mean[kept], axis=1, kind="stable")[:, :SHARES_OF_A_ROW]
    entries = [[[int(k), *short(found.values[d, k])] for k in own] for d, own in zip(kept, best, strict=True)]
    # The component that a row is listed for is among its shares.
    for k, members in enumerate(place[top].tolist()):
        for d in members:
            if k not in best[d]:
                entries[d].append([k, *short(found.values[kept[d], k])])
    return {
        "axis": axis,
        "plural": plurals.get(axis, f"{axis}s"),
        "labels": [plain(str(names[d])) if named else f"{axis} {d}" for d in kept],
        "left": len(names) - int(kept.size),
        "entries": entries,
        "size": short(found.size[kept]),
        "top": place[top].tolist(),
    }
