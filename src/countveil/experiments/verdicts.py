"""What the demo's numbers come to, worked out from the numbers."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

HIGHER_IS_BETTER = {"log_score": True, "mae": False, "npmi": True}
TITLES = {"log_score": "log score", "mae": "MAE", "npmi": "NPMI of relevant words"}


class Verdict(NamedTuple):
    """A claim, whether it holds, and its numbers level by level."""

    claim: str
    holds: bool
    numbers: str


def verdicts(fits: pd.DataFrame, ours: str, naive: str, rival: str) -> list[Verdict]:
    """Ours against the naive way and against the strong rival, on every metric and at every level.

    fits has one row per fit: level, draw, method and the metrics. Ahead means a better mean over the noise
    draws. On NPMI ours need not be ahead of the rival, but must not be behind it by more than the spread of
    the draws: by more than sqrt(sd_ours^2 + sd_rival^2), sample standard deviations over the draws.
    """
    found = [_compare(fits, ours, naive, metric, _ahead, "ahead of") for metric in HIGHER_IS_BETTER]
    found += [_compare(fits, ours, rival, metric, _ahead, "ahead of") for metric in ("log_score", "mae")]
    found.append(_compare(fits, ours, rival, "npmi", _not_behind, "not behind"))
    return found


def _compare(
    fits: pd.DataFrame,
    ours: str,
    other: str,
    metric: str,
    rule: Callable[[np.ndarray, np.ndarray], bool],
    words: str,
) -> Verdict:
    holds, parts = [], []
    for level in fits.loc[fits["method"] == ours, "level"].unique():
        mine, theirs = (_signed(fits, level, method, metric) for method in (ours, other))
        holds.append(rule(mine, theirs))
        sign = 1.0 if HIGHER_IS_BETTER[metric] else -1.0
        means = [sign * values.mean() for values in (mine, theirs)]
        parts.append(
            f"{level}: {means[0]:.3f} against {means[1]:.3f} ({int((mine > theirs).sum())} of {len(mine)})"
            + ("" if holds[-1] else " NO")
        )
    claim = f"{ours} {words} {other} on {TITLES[metric]} at every level"
    return Verdict(claim, bool(holds) and all(holds), "; ".join(parts))


def _signed(fits: pd.DataFrame, level: str, method: str, metric: str) -> np.ndarray:
    """A metric's values over the noise draws, in the draws' order, turned so that higher is better."""
    chosen = fits[(fits["level"] == level) & (fits["method"] == method)].sort_values("draw")
    values = chosen[metric].to_numpy(dtype=np.float64)
    return values if HIGHER_IS_BETTER[metric] else -values


def _ahead(mine: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(mine.mean() > theirs.mean())


def _not_behind(mine: np.ndarray, theirs: np.ndarray) -> bool:
    spread = 0.0 if len(mine) < 2 else np.hypot(mine.std(ddof=1), theirs.std(ddof=1))
    return bool(mine.mean() >= theirs.mean() - spread)
