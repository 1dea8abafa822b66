"""The figure of the demo of communities: matrices as heat maps on one colour scale, side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from countveil.plotting.style import HEAT, new_figure

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
