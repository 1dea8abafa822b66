"""The draws of all chains together, as many of each chain as its weight says.

Chains with weights w_c and S draws each make a mixture of C S draws: about w_c C S of chain c, evenly spread over it,
or repeated where that is more than it has. Whatever averages over draws, or takes quantiles of them, does so over
these. With equal weights they are all draws, chain after chain.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

GROUP = "chains"  # of a fit's tree; not there where weights are equal
ROUNDING = 1e-9  # of a number of draws


def keep_weights(tree: xr.DataTree, weights: np.ndarray) -> None:
    """Give the chains of a fit these weights (C,)."""
    coordinates = {"chain": tree["posterior"]["chain"].to_numpy()}
    tree[GROUP] = xr.Dataset({"weight": ("chain", np.asarray(weights, dtype=np.float64))}, coords=coordinates)


def weights_of(tree: xr.DataTree) -> np.ndarray:
    """(C,) weights of the chains, with sum one; equal where a fit has none, or only chains without weight are left."""
    n_chains = tree["posterior"].sizes["chain"]
    weights = tree[GROUP]["weight"].to_numpy() if GROUP in tree.children else np.ones(n_chains)
    if not weights.sum() > 0.0:
        weights = np.ones(n_chains)
    return np.asarray(weights / weights.sum())


def apportioned(weights: np.ndarray, total: int) -> np.ndarray:
    """(C,) whole numbers with this sum, in proportion to weights with sum one, by largest remainders."""
    wanted = weights * total
    found = np.floor(wanted + ROUNDING).astype(np.int64)
    order = np.argsort(-(wanted - found), kind="stable")
    found[order[: total - found.sum()]] += 1
    return found


def places(weights: np.ndarray, lengths: Sequence[int]) -> list[np.ndarray]:
    """Which draws of each chain a mixture has, as many in all as chains of these lengths (C,) have together."""
    counts = apportioned(weights, sum(lengths))
    return [
        ((np.arange(n) + 0.5) * length / max(n, 1)).astype(np.int64)
        for n, length in zip(counts, lengths, strict=True)
    ]


def members(weights: np.ndarray, n_draws: int) -> np.ndarray:
    """(C S,) numbers of the mixture's draws among those of all chains, chain after chain, with S of each."""
    found = places(weights, [n_draws] * weights.size)
    return np.concatenate([chain * n_draws + place for chain, place in enumerate(found)])


def members_of(tree: xr.DataTree) -> np.ndarray | None:
    """The numbers of a fit's mixture, as ``members`` has them; None where they are all draws in order."""
    if GROUP not in tree.children:
        return None
    return members(weights_of(tree), tree["posterior"].sizes["draw"])


def halves(tree: xr.DataTree) -> tuple[np.ndarray, np.ndarray]:
    """(C S,) the chain of each draw of a fit's mixture, and whether it is of that chain's later half."""
    n_draws = tree["posterior"].sizes["draw"]
    chain, place = np.divmod(members(weights_of(tree), n_draws), n_draws)
    return chain, place >= n_draws // 2


def pooled(tree: xr.DataTree, values: np.ndarray) -> np.ndarray:
    """(C S, ...) what values (C, S, ...) of every draw are in the mixture of a fit's chains."""
    flat, numbers = values.reshape(-1, *values.shape[2:]), members_of(tree)
    return flat if numbers is None else flat[numbers]


def mean_over_draws(tree: xr.DataTree, draws: xr.DataArray) -> xr.DataArray:
    """The mean over the mixture, in double precision, of an array with the axes chain and draw."""
    numbers = members_of(tree)
    if numbers is None:
        return draws.mean(("chain", "draw"), dtype=np.float64)
    ordered = draws.transpose("chain", "draw", ...)
    values = ordered.to_numpy().reshape(numbers.size, *ordered.shape[2:])
    times = np.bincount(numbers, minlength=numbers.size)
    total = np.zeros(ordered.shape[2:])
    for s in np.flatnonzero(times):
        total += times[s] * values[s].astype(np.float64)
    return ordered.isel(chain=0, draw=0, drop=True).copy(data=total / numbers.size)


def unweighted(tree: xr.DataTree) -> xr.DataTree:
    """The same fit with chains of equal weight: for what looks at every chain by itself."""
    if GROUP not in tree.children:
        return tree
    others = {name: child for name, child in tree.children.items() if name != GROUP}
    found = xr.DataTree.from_dict({name: child.dataset for name, child in others.items()})
    found.attrs.update(tree.attrs)
    return found
