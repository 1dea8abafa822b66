"""What a paper claims, and whether the numbers bear it out."""

from typing import NamedTuple

import numpy as np
import pandas as pd

HOLDS, FAILS, UNTESTED = "holds", "does not hold", "not tested"


class Verdict(NamedTuple):
    """A claim in our words, what became of it, and the numbers behind that."""

    claim: str
    outcome: str
    measured: str


def verdict(claim: str, holds: bool, measured: str) -> Verdict:
    """A claim that was tested."""
    return Verdict(claim, HOLDS if holds else FAILS, measured)


def untested(claim: str, why: str) -> Verdict:
    """A claim that was not."""
    return Verdict(claim, UNTESTED, why)


class Comparison(NamedTuple):
    """Two methods on one metric: ``first`` is claimed to be the better, in at least ``share`` of all settings."""

    metric: str
    first: str
    second: str
    higher: bool = False
    share: float = 1.0


def compared(claim: str, fits: pd.DataFrame, setting: list[str], comparison: Comparison) -> Verdict:
    """A claim that one method is better than another, setting by setting.

    fits has a row per fit: the columns of ``setting``, ``draw``, ``method`` and the metric. In a setting the first is
    the better if its mean over the draws is. A method that sees no noise has one setting: it is compared with all of
    those that agree in the columns in which it has values. NaN (no such value) leaves a setting out.
    """
    parts, better = [], []
    first = fits[fits["method"] == comparison.first]
    for key, rows in first.groupby(setting, sort=False):
        names = key if isinstance(key, tuple) else (key,)
        other = _rows_of(fits, comparison.second, dict(zip(setting, names, strict=True)))
        means = rows[comparison.metric].mean(), other[comparison.metric].mean()
        if np.isnan(means).any():
            continue
        better.append(means[0] > means[1] if comparison.higher else means[0] < means[1])
        label = ", ".join(f"{column} {value}" for column, value in zip(setting, names, strict=True))
        parts.append(f"{label}: {means[0]:.3g} against {means[1]:.3g}" + ("" if better[-1] else " NO"))
    if not better:
        return untested(claim, f"no fit of {comparison.first} to compare with one of {comparison.second}")
    enough = sum(better) >= comparison.share * len(better)
    return verdict(claim, enough, f"in {sum(better)} of {len(better)} settings. " + "; ".join(parts))


def _rows_of(fits: pd.DataFrame, method: str, setting: dict[str, object]) -> pd.DataFrame:
    """A method's fits in a setting; a column in which it has no value at all does not count."""
    rows = fits[fits["method"] == method]
    for column, value in setting.items():
        if rows[column].notna().any():
            rows = rows[rows[column] == value]
    return rows
