"""Components over time as the page shows them: their activity, seasons, where activity goes, and forecasts."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.fit import DynamicModel
from countveil.fit.base import FactorizationEstimator
from countveil.fit.forecasts import Forecast
from countveil.fit.naming import titled
from countveil.inference.matching import STABLE
from countveil.plotting import activity, forecast, seasons, transitions
from countveil.report.pictures import Picture, picture
from countveil.report.sections import percent

SHOWN = 5  # components whose activity is drawn
FANS = 4  # things whose forecast is drawn
BEFORE = 24  # steps of the data that a fan has at least
LEAST = 0.02  # share of activity that is worth a word


class Dynamics(NamedTuple):
    """A picture of activity, of seasons and of transitions, rows of (component, what stays, where the rest goes), fans.

    The forecast's numbers are rows of (step, one count for each thing in ``fanned``).
    """

    activity: Picture | None
    seasons: Picture | None
    graph: Picture | None
    rows: list[tuple[str, str, str]]
    along: str  # the axis of the fans' things
    fans: list[Picture]
    fanned: list[str]
    numbers: list[tuple[str, list[str]]]


def dynamics_of(fit: FactorizationEstimator, ahead: Forecast | None) -> Dynamics | None:
    """What the page says of a fit over time; None of another.

    Raises:
        ValueError: a forecast of another fit.
    """
    if not isinstance(fit, DynamicModel):
        if ahead is not None:
            raise ValueError(f"forecast must be None for a {type(fit).__name__}, which has no time steps, got one")
        return None
    known = fit.parts.support(axis=fit.time_axis)
    stable = known[known["support"] > STABLE].sort_values("prevalence", ascending=False, kind="stable")
    numbers = [int(k) for k in stable["component"]]
    return Dynamics(
        activity_picture(fit, numbers[:SHOWN]) if numbers else None,
        seasons_picture(fit, numbers[:SHOWN]) if numbers and fit.season_ is not None else None,
        graph_picture(fit) if numbers else None,
        rows_of(fit, numbers),
        *fans_of(fit, ahead),
    )


def activity_picture(fit: DynamicModel, numbers: list[int]) -> Picture:
    """Expected counts of the largest components by step."""
    first, *_, last = fit._reader.axes[fit.time_axis].tolist()
    said = ", ".join(f"component {k}" for k in numbers)
    alt = f"Expected counts in each {fit.time_axis} step from {first} to {last}, one curve each for {said}."
    return picture(lambda ax: activity(fit, numbers, ax=ax), alt, 6.6, 3.2)


def seasons_picture(fit: DynamicModel, numbers: list[int]) -> Picture:
    """What the largest components are multiplied by in each step of the season."""
    table = fit.seasons()
    said = []
    for k in numbers:
        own = table[table["component"] == k].set_index("season")["factor"]
        said.append(f"component {k} is highest in {own.idxmax()} ({own.max():.2f}), lowest in {own.idxmin()}")
    alt = f"Seasonal factors, one curve each: {'; '.join(said)}."
    return picture(lambda ax: seasons(fit, numbers, ax=ax), alt, 6.6, 3.2)


def graph_picture(fit: DynamicModel) -> Picture:
    """Where activity goes."""
    alt = (
        "Components as circles, with arrows to those that their activity goes to in the next step. The table has the "
        "same numbers in words."
    )
    return picture(lambda ax: transitions(fit, least=LEAST, ax=ax), alt, 7.0, 5.4)


def rows_of(fit: DynamicModel, numbers: list[int]) -> list[tuple[str, str, str]]:
    """(component, what stays, where the rest goes) of these components, shares with their intervals."""
    table, names = fit.transitions(), fit._reader.names_of(fit.time_axis)
    table = table[table["component"].isin(numbers)]
    found = []
    for k in numbers:
        own = table[table["previous_component"] == k].sort_values("share", ascending=False, kind="stable")
        stays, goes = own[own["component"] == k], own[(own["component"] != k) & (own["share"] >= LEAST)]
        said = "; ".join(f"{row.component}: {share_of(row)}" for row in goes.itertuples())
        kept = share_of(next(stays.itertuples())) if len(stays) else "–"
        found.append((titled("Component", k, names.get(k, "")), kept, said or f"nowhere, above {percent(LEAST)}"))
    return found


def share_of(row: Any) -> str:
    """A share with its interval, if it has one."""
    ends = f" ({percent(row.lower)} to {percent(row.upper)})" if hasattr(row, "lower") else ""
    return f"{percent(row.share)}{ends}"


def fans_of(
    fit: DynamicModel, ahead: Forecast | None
) -> tuple[str, list[Picture], list[str], list[tuple[str, list[str]]]]:
    """(axis, pictures, labels, numbers) of the things with the largest forecasts along the last axis but time."""
    others = [axis for axis in fit._reader.axes if axis != fit.time_axis]
    along = others[-1]
    if ahead is None:
        return along, [], [], []
    check_own(fit, ahead, others)
    sums = ahead.rates.sum([dim for dim in ahead.rates.dims if dim != along]).to_numpy()
    labels = [fit._reader.axes[along].tolist()[i] for i in np.argsort(-sums, kind="stable")[:FANS]]
    columns = [counts_ahead(fit, ahead, label, along) for label in labels]
    steps = ahead.counts[fit.time_axis].to_numpy()
    numbers = [(str(step), [column[i] for column in columns]) for i, step in enumerate(steps)]
    fans = [fan_picture(fit, ahead, label, along) for label in labels]
    return along, fans, [str(label) for label in labels], numbers


def counts_ahead(fit: DynamicModel, ahead: Forecast, label: object, along: str) -> list[str]:
    """The forecast count of one thing in each new step, with its interval where there is one."""
    draws = draws_ahead(fit, ahead, label, along)
    low, median, high = np.quantile(draws, (0.05, 0.5, 0.95), axis=0, method="inverted_cdf")
    return [
        f"{m:,.0f}" + ("" if ahead.why_no_intervals else f" ({a:,.0f} to {b:,.0f})")
        for a, m, b in zip(low, median, high, strict=True)
    ]


def draws_ahead(fit: DynamicModel, ahead: Forecast, label: object, along: str) -> np.ndarray:
    """(draw, new step) the counts of one thing, summed over all axes but time."""
    sums = ahead.counts.sum([dim for dim in ahead.counts.dims if dim not in ("draw", along, fit.time_axis)])
    own = sums.isel({along: fit._reader.axes[along].tolist().index(label)})
    return own.transpose("draw", fit.time_axis).to_numpy()


def fan_picture(fit: DynamicModel, ahead: Forecast, label: object, along: str) -> Picture:
    """Counts of one thing until now, and those that may come."""
    alt = f"{along} {label}: expected counts of the steps before, and a fan chart of the forecast counts below."
    last = max(BEFORE, 3 * ahead.counts.sizes[fit.time_axis])
    return picture(lambda ax: forecast(fit, ahead, label, along=along, last=last, ax=ax), alt, 3.6, 2.7)


def check_own(fit: DynamicModel, ahead: Forecast, others: list[str]) -> None:
    """Refuse a forecast that is not of this fit."""
    dims = {str(dim) for dim in ahead.counts.dims}
    known = fit._reader.axes
    if dims != {"draw", *known}:
        raise ValueError(f"forecast must come from this fit, over {list(known)}, got axes {sorted(dims - {'draw'})}")
    for axis in others:
        if not pd.Index(ahead.counts[axis].to_numpy()).equals(pd.Index(known[axis])):
            got = f"{ahead.counts[axis].to_numpy().tolist()!r:.60} and not {list(known[axis])!r:.60}"
            raise ValueError(f"forecast must have the labels of the fit along {axis!r}, got {got}")
