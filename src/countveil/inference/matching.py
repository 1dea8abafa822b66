"""Which components of several chains are the same one, and the draws of all chains together by their weights."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.optimize import linear_sum_assignment

LEAST_OVERLAP = 0.5
"""Two components are the same one if they share at least this much along every axis: sum_v min(p_v, q_v)."""

STABLE = 0.5
"""A component is called stable if chains with more than half of the weight have it."""

Pairs = list[tuple[int, int]]  # numbers of a chain and of its component


class Matched(NamedTuple):
    """Components of several chains that are the same one."""

    chains: np.ndarray  # (m,) the chains that have it, in their order
    components: np.ndarray  # (m,) its number in each of these chains
    support: float  # sum of the weights of these chains


def matched(means: Sequence[Sequence[np.ndarray]], weights: np.ndarray, n_anchored: int = 0) -> list[Matched]:
    """Every component that any chain has; every component of a chain is in one of them.

    The first K are those of the heaviest chain, by their numbers there. The other chains come in by falling weight. The
    components of each are assigned to what the chains before it have, by the Hungarian method so that overlaps are
    largest together, and those that overlap by less than ``LEAST_OVERLAP`` stay by themselves.

    Args:
        means: of each of C chains, and along each axis i, its mean components (K_c, V_i) as shares over V_i entries.
        weights: (C,) of the chains, with sum one; a chain without weight supports nothing, but is matched.
        n_anchored: this many components, the first of every chain, can be the same one by the same number alone.
    """
    found: list[Pairs] = []
    centres = [np.zeros((0, each.shape[1])) for each in means[0]]
    for chain in np.argsort(-weights, kind="stable"):
        own = means[chain]
        overlaps = np.min([overlap(*pair) for pair in zip(centres, own, strict=True)], axis=0)
        kinds = np.array([min(members[0][1], n_anchored) for members in found], dtype=np.int64)
        overlaps[kinds[:, None] != np.minimum(np.arange(len(own[0])), n_anchored)] = 0.0
        rows, columns = linear_sum_assignment(overlaps, maximize=True)
        same = overlaps[rows, columns] >= LEAST_OVERLAP
        places = dict(zip(columns[same].tolist(), rows[same].tolist(), strict=True))
        for k in range(len(own[0])):
            if k in places:
                found[places[k]].append((int(chain), k))
            else:
                found.append([(int(chain), k)])
        centres = [
            np.stack([centre(along, weights, members) for members in found]) for along in zip(*means, strict=True)
        ]
    return [in_one(weights, members) for members in found]


def numbered(weights: np.ndarray, n_components: int) -> list[Matched]:
    """Components that are the same by their numbers in all chains (C,), as a fixed factor makes them."""
    chains = np.arange(weights.size)
    return [Matched(chains, np.full(weights.size, k), float(weights.sum())) for k in range(n_components)]


def overlap(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(M, K) sum_v min(p_v, q_v) of every pair of shares: one less their total variation distance."""
    return np.array([np.minimum(p, other).sum(axis=1) for p in one]).reshape(len(one), len(other))


def centre(means: Sequence[np.ndarray], weights: np.ndarray, members: Pairs) -> np.ndarray:
    """(V,) weighted mean of some chains' components; the plain mean of chains without weight."""
    chains = np.array([chain for chain, _ in members])
    own = weights[chains] if weights[chains].sum() > 0.0 else np.ones(len(chains))
    each = np.stack([means[chain][k] for chain, k in members])
    return np.asarray(np.average(each, axis=0, weights=own))


def in_one(weights: np.ndarray, members: Pairs) -> Matched:
    """Components of some chains as one."""
    chains, components = np.transpose(sorted(members))
    return Matched(chains, components, float(weights[chains].sum()))


def alike(found: Sequence[Matched], n_components: int) -> list[tuple[int, np.ndarray]]:
    """The chains that have all components of the heaviest, each with the order (K,) that numbers them as it does."""
    every = [dict(zip(each.chains.tolist(), each.components.tolist(), strict=True)) for each in found[:n_components]]
    chains = sorted(set.intersection(*(set(own) for own in every)))
    return [(chain, np.array([own[chain] for own in every])) for chain in chains]


# The draws of all chains together, as many of each chain as its weight says.
#
# Chains with weights w_c and S draws each make a mixture of C S draws: about w_c C S of chain c, evenly
# spread over it, or repeated where that is more than it has. Whatever averages over draws, or takes quantiles
# of them, does so over these. With equal weights they are all draws, chain after chain.

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
        ((np.arange(n) + 0.5) * length / max(n, 1)).astype(np.int64) for n, length in zip(counts, lengths, strict=True)
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


def unweighted(tree: xr.DataTree) -> xr.DataTree:
    """The same fit with chains of equal weight: for what looks at every chain by itself."""
    if GROUP not in tree.children:
        return tree
    others = {name: child for name, child in tree.children.items() if name != GROUP}
    found = xr.DataTree.from_dict({name: child.dataset for name, child in others.items()})
    found.attrs.update(tree.attrs)
    return found
