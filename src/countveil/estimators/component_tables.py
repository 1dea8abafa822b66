"""Tables of components, each from the draws of the chains that have it: no average over components that differ."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.inference.matching import Matched


class Drawn(NamedTuple):
    """Every draw of the components of one kind, along an axis."""

    shares: np.ndarray  # (C, S, K, V) of each component's expected counts
    sizes: np.ndarray  # (C, S, K) shares of all expected counts
    names: np.ndarray  # (V,) of the entries


def pooled(values: np.ndarray, found: Matched) -> np.ndarray:
    """(n, ...) the draws of one component, from values (C, S, K, ...) of all chains."""
    pairs = zip(found.chains, found.components, strict=True)
    return np.concatenate([values[chain, :, k] for chain, k in pairs])


def entries_table(
    drawn: Drawn, components: Sequence[tuple[int, Matched]], n: int, interval: float
) -> pd.DataFrame:
    """The n largest entries of numbered components, with equal-tailed intervals.

    Columns: component, support, prevalence, rank, member, probability, lower, upper.
    """
    rows: list[tuple[Any, ...]] = []
    for number, found in components:
        shares, size = pooled(drawn.shares, found), pooled(drawn.sizes, found).mean()
        mean = shares.mean(axis=0, dtype=np.float64)
        top = np.argsort(-mean, kind="stable")[:n]
        lower, upper = np.quantile(shares[:, top], tails(interval), axis=0)
        rows += [
            (number, found.support, size, rank + 1, drawn.names[v], mean[v], lower[rank], upper[rank])
            for rank, v in enumerate(top)
        ]
    columns = ["component", "support", "prevalence", "rank", "member", "probability", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def sizes_table(
    sizes: np.ndarray, components: Sequence[tuple[int, Matched]], interval: float
) -> pd.DataFrame:
    """Shares of all expected counts, from sizes (C, S, K); columns component, support, prevalence, lower, upper."""
    rows = []
    for number, found in components:
        own = pooled(sizes, found)
        rows.append((number, found.support, own.mean(), *np.quantile(own, tails(interval))))
    return pd.DataFrame(rows, columns=["component", "support", "prevalence", "lower", "upper"])


def tails(interval: float) -> list[float]:
    """Probabilities of the ends of an equal-tailed interval."""
    return [(1.0 - interval) / 2.0, 1.0 - (1.0 - interval) / 2.0]
