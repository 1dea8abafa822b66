"""Names that an analyst gives to components, and which of them count as one: both kept in the fit and its file.

Tables put components that count as one together draw by draw.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from countveil.fit.component_tables import Chain
from countveil.inference.matching import Matched
from countveil.privacy import _fields
from countveil.privacy._text import plain

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
        raise ValueError(f"numbers must contain at least two different numbers, got {wanted}")
    joined = [each for each in sets if set(each) & set(wanted)]
    one = sorted({int(number) for number in wanted}.union(*joined))
    return sorted([*(each for each in sets if each not in joined), one])


def stated_by_group(tree: xr.DataTree, key: str, what: str, most: Mapping[str, int]) -> dict[str, Any]:
    """What an attribute of a fit states in JSON of groups of components; raises ValueError for other groups."""
    stated = tree.attrs.get(key, "{}")
    every = json.loads(stated) if isinstance(stated, str) else None
    if not isinstance(every, dict) or not set(every) <= set(most):
        raise ValueError(f"must state {what} of {sorted(most)}, got {stated!r:.40}")
    return every


def check_merged_kept(tree: xr.DataTree, most: Mapping[str, int]) -> None:
    """Refuse sets that no fit keeps; ``most`` is how many components of each group there may be.

    Raises:
        ValueError: the rule, and what was found.
    """
    for group, sets in stated_by_group(tree, MERGED, "merged components", most).items():
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
            said.append(f"{part.many.capitalize()} {', '.join(first)} and {last} count as {part.one} {numbers[0]}.")
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
        first = dict(zip(found[numbers[0]].chains.tolist(), found[numbers[0]].components.tolist(), strict=True))
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


NAMES = "names"  # of the fact that keeps them
LONGEST_NAME = 200
MOST_BYTES = 1 << 20  # of a file of names
LEADING = 3  # members by which a file of names knows a component again

Names = dict[int, str]  # of the components of one kind, by number


def names_kept(tree: xr.DataTree, group: str) -> Names:
    """The names of the components of a group of latent axes."""
    found = json.loads(tree.attrs.get(NAMES, "{}")).get(group, {})
    return {int(number): name for number, name in found.items()}


def keep_names(tree: xr.DataTree, group: str, names: Names) -> None:
    """Give the components of a group these names, in place of those that it had."""
    every = json.loads(tree.attrs.get(NAMES, "{}")) | {group: {str(k): names[k] for k in sorted(names)}}
    tree.attrs[NAMES] = json.dumps(every)


def changed(names: Names, wanted: Mapping[int, str | None], numbers: range) -> Names:
    """Names after some were given, or taken away by None.

    Raises:
        TypeError: no mapping.
        ValueError: a number that no component has, a name that is no line of text, or the same name twice.
    """
    if not isinstance(wanted, Mapping):
        raise TypeError(f"names must map numbers to names, got {type(wanted).__name__}")
    found = dict(names)
    for number, name in wanted.items():
        whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if not whole or number not in numbers:
            raise ValueError(f"names must be for numbers from 0 to {numbers[-1]}, got {number!r}")
        found.pop(int(number), None)
        if name is not None:
            check_name(name)
            found[int(number)] = name
    twice = sorted({name for name in found.values() if list(found.values()).count(name) > 1})
    if twice:
        raise ValueError(f"names must differ from each other, got {twice[0]!r} twice")
    return found


def check_name(name: Any) -> None:
    """Refuse what is not a line of text of some characters, at most ``LONGEST_NAME``; raises ValueError."""
    good = isinstance(name, str) and name.strip() == name != "" and name.isprintable()
    if not good or len(name) > LONGEST_NAME:
        raise ValueError(f"names must be lines of 1 to {LONGEST_NAME} characters, got {name!r:.40}")


def leading(fit: Any, axis: str) -> dict[int, str]:
    """The most probable members of each component along an axis, by the component's number, as plain text."""
    table = fit.parts.supported(axis, min(LEADING, len(fit.posterior["posterior"][axis])))
    return {
        int(number): plain(", ".join(map(str, rows["member"])))
        for number, rows in table.groupby("component", sort=False)
    }


def relabel_from(fit: Any, path: str | os.PathLike[str]) -> None:
    """Give the components of a fit the names that the page of ``countveil browse`` saved; see ``parts.relabel``.

    The file is JSON, ``{"topic": {"3": {"leading": "tax, bank, rate", "name": "economy"}}}``; the name null takes a
    name away.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file in another form, names that ``parts.relabel`` refuses, or names of another fit's components.
    """
    name = os.fspath(path)
    stated = _fields.parse(_fields.read_bytes(path, MOST_BYTES), name)
    axes = {part.one: part.axes[0] for part in fit._reader.kinds}
    for one, names in stated.items():
        if one not in axes:
            known = ", ".join(axes) or "none"
            raise ValueError(f"{name} must name components of the fit ({known}), got {one!r:.40}")
        try:
            wanted = names_by_number(names, leading(fit, axes[one]), one)
            fit.parts.relabel(wanted, axis=axes[one])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def names_by_number(names: Any, leaders: Mapping[int, str], one: str) -> dict[int, str | None]:
    """The names of a file by number, once their components are those of the fit; raises ValueError."""
    if not isinstance(names, dict):
        raise ValueError(f"must map the number of each {one} to its name, got {type(names).__name__}")
    found = {}
    for number, each in names.items():
        if not (isinstance(each, dict) and each.keys() == {"leading", "name"}):
            raise ValueError(f'{one} {number!r:.20} must have "leading" and "name", got {each!r:.40}')
        here = leaders.get(int(number)) if number.isascii() and number.isdecimal() and len(number) < 10 else None
        if here != each["leading"]:
            raise ValueError(
                f"names must be from this fit, got {one} {number!r:.20} led by {each['leading']!r:.80}, here by "
                f"{here!r:.80}: save the names from a page of this fit"
            )
        found[int(number)] = each["name"]
    return found


def check_names_kept(tree: xr.DataTree, most: Mapping[str, int]) -> None:
    """Refuse names that no fit keeps; ``most`` is how many components of each group there may be.

    Raises:
        ValueError: the rule, and what was found.
    """
    for group, names in stated_by_group(tree, NAMES, "names of the components", most).items():
        if not isinstance(names, dict) or not all(k.isascii() and k.isdecimal() for k in names):
            raise ValueError(f"must state names by number, got {names!r:.40}")
        try:
            changed({}, {int(number): name or "" for number, name in names.items()}, range(most[group]))
        except ValueError as error:
            raise ValueError(f"must keep names that components can have: {error}") from None


def with_names(table: pd.DataFrame, names: Names, columns: Mapping[str, str]) -> pd.DataFrame:
    """A table with the names of the numbers in some columns, each beside its own; as it is where there are none.

    A component without a name has an empty one. ``columns`` says what the column of the names is called.
    """
    if not names:
        return table
    table = table.copy()
    for numbers, called in columns.items():
        table.insert(table.columns.get_loc(numbers) + 1, called, [names.get(k, "") for k in table[numbers]])
    return table


def titled(one: str, number: Any, name: str = "") -> str:
    """What a component is called in a heading: "topic 3", or "topic 3: trade"."""
    return f"{one} {number}: {name}" if name else f"{one} {number}"
