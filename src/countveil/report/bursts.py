"""How dispersed the counts of a fit are, in words and as rows of the page."""

from typing import NamedTuple

import pandas as pd

from countveil.fit.base import FactorizationEstimator
from countveil.fit.dispersions import COLUMNS
from countveil.laws.counts import NegativeBinomial

SHOWN = 8  # of many dispersions, those with the largest p


class Bursts(NamedTuple):
    """What is said of a fit with negative binomial counts, and rows of (name, p with its interval, variance / mean)."""

    said: str
    axis: str  # what the rows are of; empty where there is one p
    rows: list[tuple[str, str, str]]


def bursts_of(fit: FactorizationEstimator) -> Bursts | None:
    """The dispersions of a fit; None if its counts are Poisson."""
    if fit.model_.likelihood.name != NegativeBinomial.name:
        return None
    table, poisson = fit.dispersions(), "for a Poisson count the two are equal"
    if len(table) == 1:
        row = table.iloc[0]
        known = "" if fit.model_.likelihood.parameter_axes else ", which was given"
        ratio = f"{row['variance_over_mean']:.3g} times its mean"
        said = f"The dispersion p is {p_of(row)}{known}: the variance of a count is {ratio}; {poisson}."
        return Bursts(said, "", [])
    axes = [name for name in table.columns if name not in COLUMNS]
    most = table.sort_values("p", ascending=False, kind="stable").head(SHOWN)
    least, middle, greatest = (f"{value:.2f}" for value in table["p"].quantile([0.0, 0.5, 1.0]))
    said = (
        f"Each {' and '.join(axes)} has its own dispersion p, from {least} to {greatest}, median {middle}. "
        f"The variance of a count is 1 / (1 - p) times its mean; {poisson}. The largest are listed."
    )
    return Bursts(said, " and ".join(axes), [row_of(row, axes) for _, row in most.iterrows()])


def row_of(row: pd.Series, axes: list[str]) -> tuple[str, str, str]:
    """The label, p and the ratio of variance and mean."""
    return ", ".join(str(row[axis]) for axis in axes), p_of(row), f"{row['variance_over_mean']:.3g}"


def p_of(row: pd.Series) -> str:
    """p with its interval, if it has one."""
    ends = f" ({row['lower']:.2f} to {row['upper']:.2f})" if "lower" in row else ""
    return f"{row['p']:.2f}{ends}"
