"""Which fits have intervals: those of methods whose intervals hold the truth about as often as they say."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from countveil.inference.methods import METHODS

ENDS = {"lower": "uncalibrated_lower", "upper": "uncalibrated_upper"}


def why_none(facts: Mapping[Any, Any]) -> str:
    """Why a fit with these facts, which its file keeps, has no intervals; empty if it has calibrated ones."""
    if facts.get("observations") == "naive":
        return "those of a naive fit do not hold the truth"
    method = METHODS.get(str(facts["method"]))
    if method is None or not method.calibrated:
        return f"those of method {facts['method']!r} are not calibrated"
    return ""


def as_calibrated(table: pd.DataFrame, why: str, uncalibrated: bool) -> pd.DataFrame:
    """A table with its intervals where nothing speaks against them, else without, or under a name that says so."""
    if not why:
        return table
    return table.rename(columns=ENDS) if uncalibrated else table.drop(columns=list(ENDS))
