"""The plan's figure: a row of panels for each level, a column for each measure, error bars of the simulation."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from countveil.planning.answers import ERRORS, Target
from countveil.planning.contenders import LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS
from countveil.planning.protected import heading
from countveil.planning.simulate import NO_NOISE
from countveil.plotting.style import GREEN, METHODS, new_figure, tidy

PANELS = {
    "mae_of_rates": "error of the rates per cell\n(lower is better)",
    "mae": "error against true counts per cell\n(lower is better)",
    "log_score": "log score per token\n(higher is better)",
    "topic_error": "topic error\n(lower is better)",
    "interval_width": "width of the middle 90%\nof a rate's draws",
}
SHOWN = (OURS.name, LEAST_SQUARES.name, NAIVE.name)


def save_figure(found: pd.DataFrame, targets: Iterable[Target], paths: dict[str, Path]) -> None:
    """Write the figure of a ``summary`` to each of the paths, by format (png, svg).

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    levels = [level for level in found["level"].unique() if level != NO_NOISE]
    panels = {measure: label for measure, label in PANELS.items() if found[measure].notna().any()}
    figure = new_figure(2.9 * len(panels), 0.9 + 2.3 * len(levels))
    grid = figure.subplots(len(levels), len(panels), sharex=True, squeeze=False)
    for level, row in zip(levels, grid, strict=True):
        for measure, axes in zip(panels, row, strict=True):
            _panel(axes, found, level, measure)
            for target in targets:
                if target.measure == measure:
                    axes.axhline(target.value, color=GREEN, linewidth=1.2, linestyle="-.", label="target")
        row[0].set_ylabel(heading(level))
    for top, bottom, label in zip(grid[0], grid[-1], panels.values(), strict=True):
        top.set_title(label, fontsize=9)
        bottom.set_xlabel("participants")
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False
    )
    figure.suptitle(
        f"Simulated studies: means over {int(found['replicates'].max())} replicates, "
        f"bars of {ERRORS:g} standard errors",
        fontsize=11,
    )
    import matplotlib as mpl

    for kind, path in paths.items():
        with mpl.rc_context({"svg.hashsalt": "countveil"}):
            figure.savefig(path, dpi=150, format=kind, metadata={"Date": None} if kind == "svg" else None)


def _panel(axes: Any, found: pd.DataFrame, level: str, measure: str) -> None:
    sizes = sorted(found["rows"].unique())
    for place, method in enumerate(SHOWN):
        rows = found[(found["level"] == level) & (found["method"] == method)].sort_values("rows")
        if rows[measure].isna().all():
            continue
        colour, marker, line = METHODS[method]
        axes.errorbar(
            rows["rows"] * (1.0 + 0.015 * (place - 1)), rows[measure], ERRORS * rows[f"{measure}_error"],
            color=colour, marker=marker, linestyle=line, capsize=3, markersize=5, linewidth=1.5, label=method,
        )  # fmt: skip
    clean = found[found["method"] == TRUE_COUNTS].sort_values("rows")
    if not clean[measure].isna().all():
        axes.plot(
            clean["rows"], clean[measure], color="black", linestyle="--", marker="_", linewidth=1.2,
            label=f"{TRUE_COUNTS} (no noise)",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size}" for size in sizes])
    axes.set_xticks([], minor=True)
    axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
    if not (found[measure] < 0.0).any():
        axes.set_ylim(bottom=0.0)
    tidy(axes)
