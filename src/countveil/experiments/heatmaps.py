"""Pictures of a network as heat maps, the actors of a community side by side."""

from pathlib import Path
from typing import Any

import numpy as np

from countveil.experiments.communities import LEAST_SQUARES, NAIVE, OURS, Study
from countveil.plotting.style import HEAT, new_figure

SPREAD = (
    0.25  # counts are coloured by log(1 + count / SPREAD), so that rates well below one can be told apart
)


def save_heatmaps(study: Study, path: Path) -> None:
    """Write true counts, noisy reports and three fits of them as a PNG; one colour scale for all.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    from matplotlib.colors import FuncNorm

    figure = new_figure(13.0, 4.1)
    panels = {
        "true counts\n(nobody but the owners sees these)": study.counts,
        f"noisy reports, epsilon/N = {study.level}\n(all that is handed over; cut at zero)": study.reports,
        "naive\n(reports taken for true)": study.rates[NAIVE],
        "least squares\n(on signed reports)": study.rates[LEAST_SQUARES],
        "countveil\n(true counts unknown)": study.rates[OURS],
    }
    norm = FuncNorm((compressed, expanded), vmin=0.0, vmax=float(study.counts.max()))
    axes = figure.subplots(1, len(panels))
    image: Any = None
    for place, (title, matrix) in zip(axes, panels.items(), strict=True):
        image = place.imshow(
            matrix[np.ix_(study.order, study.order)], cmap=HEAT, norm=norm, interpolation="nearest"
        )
        place.set_title(title, fontsize=9)
        place.set_xticks([])
        place.set_yticks([])
    names = [study.people[i] for i in study.order]
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
