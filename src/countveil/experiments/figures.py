"""The demos' figures: every metric against epsilon/N with its spread over noise draws, and matrices as heat maps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countveil.experiments.demo import NO_NOISE
from countveil.experiments.exhibits import summary
from countveil.planning.contenders import TRUE_COUNTS, ZERO
from countveil.plotting.style import HEAT, METHODS, legend_below, new_figure, tidy

PANELS = {
    "log_score": "log score per word\n(higher is better)",
    "mae": "mean absolute error\n(lower is better)",
    "npmi": "NPMI of the 10 most relevant words\n(higher is better)",
}


def save_figure(fits: pd.DataFrame, path: Path) -> None:
    """Write the figure as a PNG; least to largest of the noise draws as bars.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    figure, found = new_figure(11.0, 4.2), summary(fits)
    for axes, (metric, label) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        _panel(axes, found, metric)
        axes.set_ylabel(label)
        axes.set_xlabel("epsilon/N (more noise to the left)")
        tidy(axes)
    legend_below(figure)
    draws = int(found["draws"].max())
    figure.suptitle(
        f"What is recovered of the true counts; bars span {draws} noise draws" if draws > 1
        else "What is recovered of the true counts; one noise draw",
        fontsize=11,
    )  # fmt: skip
    figure.savefig(path, dpi=150, format="png")


def _panel(axes: Any, found: pd.DataFrame, metric: str) -> None:
    levels = [level for level in found["level"].unique() if level != NO_NOISE]
    order = sorted(levels, key=float)
    ticks = np.arange(len(order), dtype=float)
    for place, (method, (colour, marker, line)) in enumerate(METHODS.items()):
        rows = found[found["method"] == method].set_index("level").reindex(order)
        mean = rows[f"{metric}_mean"].to_numpy()
        if np.isnan(mean).all():
            continue
        ends = np.abs(np.stack([rows[f"{metric}_min"], rows[f"{metric}_max"]]) - mean)
        axes.errorbar(
            ticks + 0.05 * (place - 1.5), mean, yerr=ends, color=colour, marker=marker, linestyle=line,
            capsize=3, markersize=6, linewidth=1.6, label=method,
        )  # fmt: skip
    for method, line in ((TRUE_COUNTS, "--"), (ZERO.name, ":")):
        value = found.loc[(found["method"] == method) & (found["level"] == NO_NOISE), f"{metric}_mean"]
        if len(value) and np.isfinite(value.iloc[0]):
            axes.axhline(value.iloc[0], color="black", linestyle=line, linewidth=1.2, label=f"{method} (no noise)")
    axes.set_xticks(ticks, order)
    axes.set_xlim(-0.4, len(order) - 0.6)


SPREAD = 0.25
"""Counts are coloured by log(1 + count / SPREAD), so that rates well below one can be told apart."""


def save_heatmaps(panels: Mapping[str, np.ndarray], names: Sequence[str], most: float, path: Path) -> None:
    """Write the panels, (people, people) matrices by title, as a PNG; colours run from 0 to ``most``.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    from matplotlib.colors import FuncNorm

    figure = new_figure(13.0, 4.1)
    norm = FuncNorm((compressed, expanded), vmin=0.0, vmax=most)
    axes = figure.subplots(1, len(panels))
    image: Any = None
    for place, (title, matrix) in zip(axes, panels.items(), strict=True):
        image = place.imshow(matrix, cmap=HEAT, norm=norm, interpolation="nearest")
        place.set_title(title, fontsize=9)
        place.set_xticks([])
        place.set_yticks([])
    step = 4
    axes[0].set_yticks(range(0, len(names), step), names[::step], fontsize=6)
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.4, aspect=40, ticks=[0, 1, 3, 10, 30])
    bar.set_label("chapters in which two people both appear (counts or estimated rates)", fontsize=9)
    figure.suptitle(
        f"{len(names)} people of Les Misérables, ordered by the communities that countveil found", fontsize=11
    )
    figure.savefig(path, dpi=150, format="png")


def compressed(count: Any) -> Any:
    """The colour scale."""
    return np.log1p(np.asarray(count) / SPREAD)


def expanded(value: Any) -> Any:
    """Its inverse."""
    return SPREAD * np.expm1(value)
