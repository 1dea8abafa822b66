"""Covariates that releases carry, once their rows are put together: of the people of several waves, of joined rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from countveil.data.covariates import covariates_of
from countveil.privacy import Release
from countveil.privacy.names import identity, spelt_alike


def of_people(release: Release, people: Sequence[str]) -> tuple[pd.DataFrame | None, dict[str, int]]:
    """A row for each person, of what they stated alike in all their waves; and what they did not, of how many people.

    None where the release has no covariates.
    """
    stated = covariates_of(release)
    if stated is None:
        return None, {}
    stated.index = pd.Index(spelt_alike(map(str, stated.index)))
    each = stated.groupby(level=0, sort=False)
    varying = (each.nunique() > 1).sum()
    differing = {str(name): int(number) for name, number in varying.items() if number}
    first = stated[~stated.index.duplicated()].loc[list(people)]
    return first.drop(columns=list(differing)), differing


def of_all(releases: Sequence[Release], rows: Sequence[str] | None, n_rows: int) -> pd.DataFrame | None:
    """A row for each of the joined ones, with every covariate of any release; missing where none states it.

    Rows go by their labels, or by position where ``rows`` is None. None where no release has covariates.

    Raises:
        ValueError: a covariate that is a number in one release and one of some values in another, or that two releases
            state otherwise of the same row; it is named.
    """
    index = pd.RangeIndex(n_rows) if rows is None else pd.Index(list(rows))
    spelt = {identity(name): name for name in rows or ()}
    columns: dict[str, pd.Series] = {}
    for release in releases:
        stated = covariates_of(release)
        if stated is None:
            continue
        if rows is not None:
            stated.index = pd.Index([spelt[identity(str(name))] for name in stated.index])
        for name in stated.columns:
            here = stated[name].reindex(index)
            columns[name] = both(name, columns[name], here) if name in columns else here
    return pd.DataFrame(columns, index=index) if columns else None


def both(name: Any, one: pd.Series, other: pd.Series) -> pd.Series:
    """What either release states of each row; raises ValueError where they differ."""
    kinds = [isinstance(each.dtype, pd.CategoricalDtype) for each in (one, other)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"releases must have one kind of covariate {name!r}, got numbers in some and values in others"
        )
    texts = [each.astype(object) for each in (one, other)]
    known = [each.notna().to_numpy() for each in (one, other)]
    differ = known[0] & known[1] & (texts[0].to_numpy() != texts[1].to_numpy())
    if differ.any():
        place = int(np.flatnonzero(differ)[0])
        first, second = (each.iloc[place] for each in texts)
        raise ValueError(
            f"releases must state the same covariate {name!r} of a row, got {first!r} and {second!r} of "
            f"{one.index[place]!r}"
        )
    joint = texts[0].where(known[0], texts[1])
    if not kinds[0]:
        return joint.astype(np.float64)
    values = dict.fromkeys([*one.cat.categories, *other.cat.categories])
    return pd.Series(pd.Categorical(joint, list(values)), index=one.index)
