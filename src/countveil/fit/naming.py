"""Names that an analyst gives to components: kept in the fit and its file, and shown beside their numbers."""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from countveil.privacy import _fields
from countveil.privacy._text import plain

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
            raise ValueError(f"names must be of numbers from 0 to {numbers[-1]}, got {number!r}")
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
        here = (
            leaders.get(int(number)) if number.isascii() and number.isdecimal() and len(number) < 10 else None
        )
        if here != each["leading"]:
            raise ValueError(
                f"names must be of this fit, got {one} {number!r:.20} led by {each['leading']!r:.80}, here by "
                f"{here!r:.80}: save the names from a page of this fit"
            )
        found[int(number)] = each["name"]
    return found


def check_names_kept(tree: xr.DataTree, most: Mapping[str, int]) -> None:
    """Refuse names that no fit keeps; ``most`` is how many components of each group there may be.

    Raises:
        ValueError: the rule, and what was found.
    """
    stated = tree.attrs.get(NAMES, "{}")
    every = json.loads(stated) if isinstance(stated, str) else None
    if not isinstance(every, dict) or not set(every) <= set(most):
        raise ValueError(f"must state names of the components of {sorted(most)}, got {stated!r:.40}")
    for group, names in every.items():
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
