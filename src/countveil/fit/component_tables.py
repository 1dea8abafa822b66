"""Tables of components, each from the draws of the chains that have it: no average over components that differ."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.inference.matching import Matched
from countveil.inference.mixture import places


class Chain(NamedTuple):
    """One chain's draws of its components."""

    shares: (
        np.ndarray
    )  # (S, K, n) of each component's expected counts along an axis; empty where only sizes matter
    sizes: np.ndarray  # (S, K) shares of all expected counts
    weight: float


def mixture(chains: Sequence[Chain]) -> list[Chain]:
    """Of each chain as many draws as its weight says."""
    kept = places(weights_of_chains(chains), [len(chain.sizes) for chain in chains])
    return [taken(chain, draws) for chain, draws in zip(chains, kept, strict=True)]


def weights_of_chains(chains: Sequence[Chain]) -> np.ndarray:
    """(C,) weights with sum one."""
    return np.array([chain.weight for chain in chains])


def taken(chain: Chain, draws: np.ndarray) -> Chain:
    """These draws of a chain, as often as they are listed."""
    if np.array_equal(draws, np.arange(len(chain.sizes))):
        return chain
    return Chain(chain.shares[draws], chain.sizes[draws], chain.weight)


def shares_of(chains: Sequence[Chain], found: Matched) -> np.ndarray:
    """(draws, n) one component's shares of its expected counts, in the chains that have it."""
    return np.concatenate(
        [chains[c].shares[:, k] for c, k in zip(found.chains, found.components, strict=True)]
    )


def sizes_of(chains: Sequence[Chain], found: Matched) -> np.ndarray:
    """(draws,) one component's share of all expected counts, in the chains that have it."""
    return np.concatenate(
        [chains[c].sizes[:, k] for c, k in zip(found.chains, found.components, strict=True)]
    )


def entries_table(
    chains: Sequence[Chain],
    names: np.ndarray,
    components: Sequence[tuple[int, Matched]],
    n: int,
    interval: float,
) -> pd.DataFrame:
    """The n largest entries of numbered components, with equal-tailed intervals.

    Columns: component, support, prevalence, rank, member, probability, lower, upper.
    """
    rows: list[tuple[Any, ...]] = []
    for number, found in components:
        shares, size = shares_of(chains, found), sizes_of(chains, found).mean()
        mean = shares.mean(axis=0, dtype=np.float64)
        top = np.argsort(-mean, kind="stable")[:n]
        lower, upper = np.quantile(shares[:, top], tails(interval), axis=0)
        rows += [
            (number, found.support, size, rank + 1, names[v], mean[v], lower[rank], upper[rank])
            for rank, v in enumerate(top)
        ]
    columns = ["component", "support", "prevalence", "rank", "member", "probability", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def sizes_table(
    chains: Sequence[Chain], components: Sequence[tuple[int, Matched]], interval: float
) -> pd.DataFrame:
    """Shares of all expected counts of numbered components; columns component, support, prevalence, lower, upper."""
    rows = []
    for number, found in components:
        own = sizes_of(chains, found)
        rows.append((number, found.support, own.mean(), *np.quantile(own, tails(interval))))
    return pd.DataFrame(rows, columns=["component", "support", "prevalence", "lower", "upper"])


def by_support(chains: Sequence[Chain], found: Sequence[Matched]) -> list[tuple[int, Matched]]:
    """Components of a mixture with their numbers, the best supported first, within the same support the largest."""
    drawn = [(i, one) for i, one in enumerate(found) if any(len(chains[c].sizes) for c in one.chains)]
    return sorted(drawn, key=lambda each: (-round(each[1].support, 9), -sizes_of(chains, each[1]).mean()))


def tails(interval: float) -> list[float]:
    """Probabilities of the ends of an equal-tailed interval."""
    return [(1.0 - interval) / 2.0, 1.0 - (1.0 - interval) / 2.0]
