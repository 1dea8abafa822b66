"""How each chain began and was tuned, as small tables of a page."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from countveil.fit.base import FactorizationEstimator

MOST_ROWS = 40  # of a table; longer ones stay in ``fit.diagnostics()``
HEADS = {
    "chain": "chain",
    "starts": "starts to choose from",
    "start": "start taken",
    "log_likelihood_start": "log-likelihood at the start",
    "log_likelihood_tuned": "after tuning",
    "log_likelihood_mean": "mean of the draws",
    "log_likelihood_last": "last draw",
    "weight": "weight",
    "race": "kind",
    "rounds": "rounds",
    "score": "score",
    "taken": "taken",
    "move": "move",
    "sweep": "ended after sweep",
    "kind": "what it did",
    "before": "components before merging",
    "after": "after",
    "log_likelihood": "log-likelihood then",
    "gain": "gain",
}
"""Columns of the diagnostics' tables, in words."""


class Listing(NamedTuple):
    """A table with a caption."""

    caption: str
    heads: list[str]
    rows: list[list[str]]


def listings(fit: FactorizationEstimator) -> list[Listing]:
    """Chains, the starts that they chose among and their moves, as far as the fit has these and they are short."""
    found = fit.diagnostics()
    tables = (("Chains", found.chains), ("Starts", found.starts), ("Moves", found.moves))
    return [
        Listing(
            caption,
            [HEADS.get(name, name.replace("_", " ")) for name in table],
            [[cell(name, value) for name, value in row.items()] for _, row in table.iterrows()],
        )
        for caption, table in tables
        if table is not None and 0 < len(table) <= MOST_ROWS
    ]


def cell(name: str, value: object) -> str:
    """A value in words or with as many digits as it needs."""
    if pd.isna(value):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if not isinstance(value, int | float | np.number):
        return str(value)
    whole = name.startswith("log_likelihood") or name == "gain" or float(value).is_integer()
    return f"{float(value):.0f}" if whole else f"{float(value):.3g}"
