"""What a simulation says: means with their errors, participants for a target, and where naive misleads."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from countveil.planning.contenders import COLUMN_MEANS, LEAST_SQUARES, NAIVE, OURS
from countveil.planning.simulate import MEASURES

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
