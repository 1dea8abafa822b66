"""Models beside each other: how much worse than the best they predict held-out reports."""

from typing import Any

import numpy as np
import pandas as pd

from countveil.plotting import style


def differences(table: pd.DataFrame, *, ax: Any = None) -> Any:
    """Differences of models' scores from the best one, with bars of two standard errors; returns the axes.

    Args:
        table: that of ``compare``, with the columns model, difference and standard_error.
        ax: axes to draw on; new ones by default, as high as they need to be.

    Raises:
        ValueError: a table without these columns.
    """
    absent = [name for name in ("model", "difference", "standard_error") if name not in table]
    if absent:
        raise ValueError(
            f"table must have the columns model, difference and standard_error, got no {absent[0]}"
        )
    ax = style.axes_for(ax, 6.4, 0.9 + 0.28 * len(table))
    y, middle = np.arange(len(table)), table["difference"].to_numpy(dtype=float)
    error = table["standard_error"].to_numpy(dtype=float)
    ax.axvline(0.0, color=style.GREY, linewidth=1.0, linestyle="--")
    ax.errorbar(
        middle, y, xerr=2.0 * error, color=style.BLUE, marker="o", linestyle="none",
        capsize=3, markersize=6, linewidth=1.6,
    )  # fmt: skip
    ax.set_yticks(y, [style.plain(name, 40) for name in table["model"]], fontsize=8)
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlabel(
        "difference from the best, log score per 1,000 held-out cells (bars: 2 standard errors)", fontsize=8
    )
    style.tidy(ax, "x")
    return ax
