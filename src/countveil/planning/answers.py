"""What a simulation says: means with their errors, participants for a target, and where naive misleads."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table

from countveil.common.console import ProgressWatcher, console, error_console
from countveil.common.files import write_csv
from countveil.planning.contenders import COLUMN_MEANS, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS, ZERO
from countveil.planning.simulate import MEASURES, NO_NOISE, Grid, heading, simulate
from countveil.planning.truths import Source
from countveil.plotting.style import GREEN, METHODS, legend_below, new_figure, tidy
from countveil.privacy._archive import replacing

ERRORS = 2.0
"""A difference must exceed zero by this many standard errors to count."""
SMALL = 0.05
"""Relative differences up to this are not reported."""
LOW_COVERAGE = 0.75
"""A coverage of the middle 90% of draws below this is reported; short chains alone bring it somewhat below 0.9."""
TOPICS_LOST = 0.5
"""With a larger topic error, more than half of a topic is wrong."""
GOALS = ("mae", "mae_of_rates", "log_score", "topic_error", "topic_cosine", "interval_width", "share_width")


class Target(NamedTuple):
    """What the study is to reach: a measure and its value."""

    measure: str
    value: float


def read_target(text: str) -> Target:
    """A target from MEASURE:VALUE.

    Raises:
        ValueError: no colon, a measure that is none of GOALS, a value that is not a finite number.
    """
    measure, separator, value = text.partition(":")
    if not separator or measure not in GOALS:
        raise ValueError(f"target must be MEASURE:VALUE with one of {', '.join(GOALS)}, got {text!r}")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"target must have a finite number after the colon, got {text!r}")
    return Target(measure, number)


def summary(fits: pd.DataFrame) -> pd.DataFrame:
    """One row per level, number of rows and method: mean and standard error of every measure over replicates."""
    groups = fits.groupby(["level", "precision", "epsilon", "rows", "method"], sort=False)
    columns = {"replicates": groups.size()}
    for measure in (*MEASURES, "seconds"):
        columns[measure] = groups[measure].mean()
        columns[f"{measure}_error"] = groups[measure].std(ddof=1) / np.sqrt(groups[measure].count())
    found = pd.DataFrame(columns).reset_index()
    order = {level: place for place, level in enumerate(found["level"].unique())}
    found["place"] = found["level"].map(order)
    return found.sort_values(["place", "rows"], kind="stable").drop(columns="place").reset_index(drop=True)


def participants(found: pd.DataFrame, target: Target) -> list[str]:
    """For each level, how many rows our fit needs for the target, between the sizes that were simulated.

    Interpolated in the logarithm of the rows; the range is where the curve moved by ERRORS standard errors
    towards and away from the target crosses it. Nothing is said beyond the simulated sizes.
    """
    lines = []
    for level in found["level"].unique():
        rows = _of(found, level, OURS.name)
        if rows.empty:
            continue
        sizes, sign = rows["rows"].to_numpy(dtype=float), -1.0 if MEASURES[target.measure] else 1.0
        excess = sign * (rows[target.measure].to_numpy() - target.value)
        margin = ERRORS * rows[f"{target.measure}_error"].to_numpy()
        if np.isnan(excess).any():
            lines.append(f"{level}: not measured in this simulation")
            continue
        middle, few, many = (_crossing(sizes, excess + shift) for shift in (0.0, -margin, margin))
        lines.append(f"{level}: {_in_words(middle, few, many, sizes)}")
    return lines


def _crossing(sizes: np.ndarray, excess: np.ndarray) -> float:
    """The size from which on the excess is at most zero: 0 if at all sizes, infinity if not at the last."""
    above = np.flatnonzero(excess > 0.0)
    if above.size == 0:
        return 0.0
    last = int(above[-1])
    if last == len(sizes) - 1:
        return math.inf
    share = excess[last] / (excess[last] - excess[last + 1])
    low, high = np.log(sizes[last : last + 2])
    return float(np.exp(low + share * (high - low)))


def _in_words(middle: float, few: float, many: float, sizes: np.ndarray) -> str:
    least, most = (f"{size:.0f}" for size in (sizes[0], sizes[-1]))
    bounds = [
        f"fewer than {least}" if size == 0.0 else f"more than {most}" if math.isinf(size) else f"{size:.0f}"
        for size in (few, many)
    ]
    between = f" (simulation error: {bounds[0]} to {bounds[1]})" if bounds[0] != bounds[1] else ""
    if middle == 0.0:
        return f"{least} participants are enough, and maybe fewer{between}"
    if math.isinf(middle):
        return f"not reached with {most} participants{between}"
    return f"about {middle:.0f} participants{between}"


def misleads(found: pd.DataFrame) -> list[str]:
    """For each level and size, in plain words: is the naive way misleading, and can anybody learn anything?"""
    lines = []
    for level, rows in found.loc[found["method"] == NAIVE.name, ["level", "rows"]].itertuples(index=False):
        here = found[(found["level"] == level) & (found["rows"] == rows)].set_index("method")
        lines.append(f"{level}, {rows} rows: {_verdict(here)}")
    return lines


def _verdict(here: pd.DataFrame) -> str:
    measure = "mae" if np.isnan(here.loc[OURS.name, "mae_of_rates"]) else "mae_of_rates"
    ours, naive, squares = (here.loc[name] for name in (OURS.name, NAIVE.name, LEAST_SQUARES.name))
    errors = f"{naive[measure]:.3g} per cell against {ours[measure]:.3g} (least squares {squares[measure]:.3g})"
    off = naive["total"]
    said = [f"its error of the rates is {errors}"]
    if abs(off - 1.0) > SMALL:
        said.append(f"it sees {off:.2g} times the true number of counts")
    if naive["coverage"] < LOW_COVERAGE:
        said.append(
            f"the middle 90% of its draws covers {naive['coverage']:.0%} of the true rates (ours "
            f"{ours['coverage']:.0%})"
        )
    if _worse(naive, squares, measure):
        head = "NAIVE MISLEADS, worse than ours and than least squares"
        head = head if _worse(naive, ours, measure) else "NAIVE MISLEADS, worse than least squares"
    elif _worse(naive, ours, measure):
        head = "NAIVE MISLEADS, worse than ours"
    elif len(said) > 1:
        head = "naive is no worse on the mean error, but do not trust it"
    else:
        head = "naive does about as well"
    line = f"{head}: {'; '.join(said)}."
    if not _worse(here.loc[COLUMN_MEANS.name], ours, "log_score"):
        line += " Ours says no more about a row than the words' means over all rows: too much noise, or too few rows."
    if ours["topic_error"] > TOPICS_LOST:
        line += (
            " Do not expect ours to find the topics: more than half of a topic is wrong "
            f"(topic error {ours['topic_error']:.2g})."
        )
    return line


def _worse(one: pd.Series, other: pd.Series, measure: str) -> bool:
    """Whether one is worse than the other, by more than SMALL of it and than ERRORS standard errors."""
    gap = one[measure] - other[measure]
    gap = -gap if MEASURES[measure] else gap
    error = np.hypot(one[f"{measure}_error"], other[f"{measure}_error"])
    least = 0.0 if measure == "log_score" else SMALL * abs(other[measure])
    return bool(gap > ERRORS * error and gap > least)


def _of(found: pd.DataFrame, level: str, method: str) -> pd.DataFrame:
    return found[(found["level"] == level) & (found["method"] == method)].sort_values("rows")


# The plan from beginning to end: simulate, print what it says, draw its figure, and write its files.

HEADINGS = {
    "mae": "MAE to\ncounts",
    "mae_of_rates": "MAE to\nrates",
    "log_score": "log score\nper word",
    "topic_error": "topic\nerror",
    "interval_width": "width of\ndraws",
    "coverage": "cover-\nage",
    "total": "total\n/ true",
}
FILES = ("plan.csv", "fits.csv", "plan.png", "plan.svg")


def present(grid: Grid, source: Source, targets: Sequence[Target], output: Path, **settings: Any) -> pd.DataFrame:
    """Simulate, print and write FILES to ``output``, replacing those of an earlier plan; returns every fit.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
        ValueError: as ``simulate``.
        OSError: ``output`` cannot be written to.
    """
    output.mkdir(parents=True, exist_ok=True)
    with ProgressWatcher(error_console()) as watcher:
        fits = simulate(grid, source, watcher, **settings)
        watcher.stage("simulated; writing files")
        found = summary(fits)
        written = write_files(fits, found, targets, output)
    screen = console()
    screen.print(f"Simulation: {source.about}. Nothing here is a release.", highlight=False)
    screen.print(plan_table(found))
    screen.print(
        "MAE: mean absolute error per cell. Topic error: total variation distance to the "
        "true topics, matched. Width of draws: of the range of the middle 90% of a rate's draws. Coverage: "
        "share of true rates inside that range; countveil's can be some points below 90%, since a plan's chains are "
        "short. "
        "Total / true: the sum of a "
        "method's rates over that of the true counts. Rates of zero are scored as 0.001. Least squares "
        "is given signed reports, which a study that cuts reports at zero does not have, and zeros where a count has "
        "no report. Predicting zero everywhere "
        f"would have an MAE to counts of {found.loc[found['method'] == ZERO.name, 'mae'].mean():.3f}.\n",
        highlight=False,
    )  # fmt: skip
    screen.print("Where would treating reports as true counts (naive) mislead?", style="bold")
    for line in misleads(found):
        screen.print(f"  {line}", highlight=False)
    for target in targets:
        screen.print(f"How many participants for {target.measure} {target.value:g}?", style="bold")
        for line in participants(found, target):
            screen.print(f"  {line}", highlight=False)
    screen.print("Wrote " + ", ".join(str(path) for path in written), highlight=False, soft_wrap=True)
    return fits


def write_files(fits: pd.DataFrame, found: pd.DataFrame, targets: Sequence[Target], output: Path) -> list[Path]:
    """The table, every fit and the figure, each replaced in one step."""
    table, every, png, svg = (output / name for name in FILES)
    for frame, path in ((found, table), (fits, every)):
        write_csv(frame, path)
    with replacing(png) as first, replacing(svg) as second:
        save_figure(found, targets, {"png": first, "svg": second})
    return [table, every, png, svg]


def plan_table(found: pd.DataFrame) -> Table:
    """Rows: levels, sizes and methods. Cells: mean and standard error over replicates."""
    shown = {measure: heading for measure, heading in HEADINGS.items() if found[measure].notna().any()}
    table = Table(
        title=f"Mean ± standard error over {int(found['replicates'].max())} simulated studies",
        title_justify="left", header_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
    )  # fmt: skip
    of_epsilon = all(heading(level) != level for level in found["level"] if level != NO_NOISE)
    for title in ("N:epsilon" if of_epsilon else "level", "rows"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("method", no_wrap=True)
    for title in shown.values():
        table.add_column(title, justify="right", no_wrap=True)
    kept = found[~found["method"].isin([COLUMN_MEANS.name, ZERO.name])]
    for level, group in kept.groupby("level", sort=False):
        before = None
        for place, (_, row) in enumerate(group.iterrows()):
            size = "" if row["rows"] == before else str(row["rows"])
            cells = [_cell(row, measure) for measure in shown]
            label = str(level) if place == 0 else ""
            table.add_row(label, size, str(row["method"]), *cells, end_section=place == len(group) - 1)
            before = row["rows"]
    return table


def _cell(row: pd.Series, measure: str) -> str:
    mean, error = row[measure], row[f"{measure}_error"]
    if np.isnan(mean):
        return "-"
    if measure in ("coverage", "total"):
        return f"{mean:.0%}" if measure == "coverage" else f"{mean:.2f}"
    digits = 3 if abs(mean) < 10.0 else 2
    return f"{mean:.{digits}f}±{error:.{digits}f}".replace("±0.", "±.")


PANELS = {
    "mae_of_rates": "error of the rates per cell\n(lower is better)",
    "mae": "error against true counts per cell\n(lower is better)",
    "log_score": "log score per word\n(higher is better)",
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
    legend_below(figure)
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
