"""Components that an analyst counts as one: kept in the fit and its file, and put together draw by draw for tables."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from countveil.fit.component_tables import Chain
from countveil.inference.matching import Matched

MERGED = "merged"  # of the fact that keeps them

Sets = list[list[int]]  # of numbers that count as one, which has the smallest of each
Places = list[list[np.ndarray]]  # of each chain, the numbers that its own components of every set have there


def merged_kept(tree: xr.DataTree, group: str) -> Sets:
    """The components of a group of latent axes that count as one."""
    found: Sets = json.loads(tree.attrs.get(MERGED, "{}")).get(group, [])
    return found


def keep_merged(tree: xr.DataTree, group: str, sets: Sets) -> None:
    """Count these as one, and no others."""
    tree.attrs[MERGED] = json.dumps(json.loads(tree.attrs.get(MERGED, "{}")) | {group: sets})


def with_another(sets: Sets, numbers: Iterable[Any], most: int) -> Sets:
    """Sets after some numbers below ``most`` were put together, with whatever they count as one already.

    Raises:
        ValueError: fewer than two different numbers, or a number that no component has.
    """
    wanted = list(numbers)
    for number in wanted:
        whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if not whole or not 0 <= number < most:
            raise ValueError(f"numbers must be from 0 to {most - 1}, got {number!r}")
    if len(set(wanted)) < 2:
        raise ValueError(f"numbers must be two different ones at least, got {wanted}")
    joined = [each for each in sets if set(each) & set(wanted)]
    one = sorted({int(number) for number in wanted}.union(*joined))
    return sorted([*(each for each in sets if each not in joined), one])


def check_merged_kept(tree: xr.DataTree, most: Mapping[str, int]) -> None:
    """Refuse sets that no fit keeps; ``most`` is how many components of each group there may be.

    Raises:
        ValueError: the rule, and what was found.
    """
    stated = tree.attrs.get(MERGED, "{}")
    every = json.loads(stated) if isinstance(stated, str) else None
    if not isinstance(every, dict) or not set(every) <= set(most):
        raise ValueError(f"must state merged components of {sorted(most)}, got {stated!r:.40}")
    for group, sets in every.items():
        found: Sets = []
        for numbers in sets if isinstance(sets, list) else [None]:
            if not isinstance(numbers, list):
                raise ValueError(f"must state merged components as lists of numbers, got {sets!r:.40}")
            found = with_another(found, numbers, most[group])
        if found != sets:
            raise ValueError(f"must state merged components in order and apart, got {sets!r:.40}")


def merged_in_words(fit: Any) -> str:
    """What counts as one, such as "Topics 1 and 4 count as topic 1."; empty where nothing was merged."""
    said = []
    for group, part in fit._reader.kinds_by_group().items():
        for numbers in merged_kept(fit.posterior, group):
            *first, last = map(str, numbers)
            said.append(
                f"{part.many.capitalize()} {', '.join(first)} and {last} count as {part.one} {numbers[0]}."
            )
    return " ".join(said)


def places_of(found: Sequence[Matched], sets: Sets, n_chains: int) -> Places:
    """Where each set is in each chain; nowhere in a chain that lacks one of its components."""
    own = [dict(zip(one.chains.tolist(), one.components.tolist(), strict=True)) for one in found]
    places: Places = [[] for _ in range(n_chains)]
    for numbers in sets:
        for chain in set.intersection(*(set(own[number]) for number in numbers)):
            places[chain].append(np.array([own[number][chain] for number in numbers]))
    return places


def united(found: Sequence[Matched], sets: Sets, weights: np.ndarray) -> list[Matched]:
    """What chains found, with every set as one, in the chains that have all of it; no chain has the rest of it."""
    found, nowhere = list(found), Matched(np.zeros(0, np.int64), np.zeros(0, np.int64), 0.0)
    for numbers in sets:
        chains = sorted(set.intersection(*(set(found[number].chains.tolist()) for number in numbers)))
        first = dict(
            zip(found[numbers[0]].chains.tolist(), found[numbers[0]].components.tolist(), strict=True)
        )
        components = np.array([first[chain] for chain in chains], dtype=np.int64)
        one = Matched(np.array(chains, dtype=np.int64), components, float(weights[chains].sum()))
        for number in numbers:
            found[number] = one if number == numbers[0] else nowhere
    return found


def summed(values: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """Values (..., K) of one chain, those of every set summed at its first place, and zero at the others."""
    if not places:
        return values
    new = values.copy()
    for own in places:
        new[..., own[0]], new[..., own[1:]] = values[..., own].sum(axis=-1), 0.0
    return new


def together(chain: Chain, places: Sequence[np.ndarray]) -> Chain:
    """A chain with every set as one component: its size is the sum, its shares along an axis are weighted by sizes."""
    if not places:
        return chain
    if chain.shares.ndim == 2:  # which are the sizes
        return chain._replace(shares=summed(chain.shares, places), sizes=summed(chain.sizes, places))
    shares = chain.shares.copy()
    for own in places:
        sizes = np.maximum(chain.sizes[:, own], 1e-300)
        weights = sizes / sizes.sum(axis=1, keepdims=True)
        shares[:, own[0]] = np.einsum("sk,skn->sn", weights, chain.shares[:, own])
    return chain._replace(shares=shares, sizes=summed(chain.sizes, places))
