"""Forecasts against rules of thumb: the last steps of the data, each forecast from those before it."""

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.data.observations import Observations
from countveil.kernels.entries import MASKED
from countveil.kernels.report_kernels import GUESS
from countveil.laws.noise import AnyMechanismNoise

MODEL, MEAN = "model, median", "model, mean"
LAST, SEASONAL, THREE = "last value", "same step of the last season", "mean of the last three"
CLEAR = 2.0  # standard errors beyond which a difference is one


class ForecastCheck(NamedTuple):
    """How forecasts of single counts did one step ahead.

    Attributes:
        table: forecast, error, difference, standard_error. ``error`` is the root mean squared difference from the true
            counts: the part of the noise in the reports that were forecast is taken out, so it is an estimate, NaN if
            negative. ``difference`` is the mean squared error minus that of the first line, the model's median, which
            needs no such correction; its standard error is over the steps.
        steps: how many were forecast.
        verdict: which forecast to use, in a sentence.
    """

    table: pd.DataFrame
    steps: int
    verdict: str


def estimates_of(data: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Unbiased estimates of the counts by their reports, NaN where masked, and their variances, over the data's axes.

    Raises:
        ValueError: reports that have no unbiased estimate, such as hidden counts.
    """
    if not data.noise.unbiased:
        raise ValueError(
            "data must have reports with an unbiased estimate of each count to compare forecasts, got "
            f"{data.noise.in_words(data.cell_level)}: compare models by held-out reports instead (cv.compare)"
        )
    rows, columns = (each.ravel() for each in np.indices(data.shape))
    reports, level = data.cells(rows, columns)
    if isinstance(data.noise, AnyMechanismNoise):
        found = data.noise.kernel.real_cj[np.maximum(reports, 0), GUESS]
    else:
        found = np.where(reports > 0, reports, -data.noise.bias(level))
    variance = data.noise.variance(reports, level)
    found = np.where(reports == MASKED, np.nan, found)
    return found.reshape(data.mode_shape), np.asarray(variance, dtype=float).reshape(data.mode_shape)


def rules_of(known: np.ndarray, n_seasons: int | None) -> dict[str, np.ndarray]:
    """Forecasts of the next step by estimates (T, cells) of the steps before; NaN where none was seen.

    Steps that are masked are passed over; a season looks back to the last one in which the step was seen.
    """
    found = {LAST: mean_of_last(known, 1)}
    if n_seasons is not None:
        found[SEASONAL] = mean_of_last(known[::-1][n_seasons - 1 :: n_seasons][::-1], 1)
    return found | {THREE: mean_of_last(known, 3)}


def mean_of_last(known: np.ndarray, most: int) -> np.ndarray:
    """(cells,) means of the last ``most`` values that were seen, at least zero; NaN where there is none."""
    seen = ~np.isnan(known)
    back = np.cumsum(seen[::-1], axis=0)[::-1]  # 1 for the last one that was seen
    used = seen & (back <= most)
    number = used.sum(axis=0)
    sums = np.where(used, known, 0.0).sum(axis=0)
    return np.where(number > 0, np.maximum(sums / np.maximum(number, 1), 0.0), np.nan)


def compared(
    data: Observations,
    axis: int,
    steps: int,
    n_seasons: int | None,
    forecast: Callable[[Observations, int], tuple[np.ndarray, np.ndarray]],
    remedies: Mapping[str, str] | None = None,
) -> ForecastCheck:
    """The last ``steps`` steps along an axis, each forecast one step ahead.

    ``forecast`` returns the median and the mean of every count of a step, given data in which that step and all later
    ones are masked. The verdict ends with the remedy of the best rule if that is clearly better.

    Raises:
        ValueError: too many steps, data without unbiased estimates or with totals.
    """
    estimates, variance = (np.moveaxis(each, axis, 0) for each in estimates_of(data))
    n_steps, least = len(estimates), max(3, n_seasons or 0)
    if not 2 <= steps <= n_steps - least:
        raise ValueError(
            f"check must be from 2 to {n_steps - least}, so that {least} of {n_steps} steps come before those that are "
            f"forecast, got {steps}"
        )
    estimates, variance = estimates.reshape(n_steps, -1), variance.reshape(n_steps, -1)
    number = np.indices(data.mode_shape)[axis].reshape(data.shape)
    losses: dict[str, list[float]] = {}
    noise = []
    for step in range(n_steps - steps, n_steps):
        rules = rules_of(estimates[:step], n_seasons)
        seen = ~np.isnan(estimates[step]) & np.all([~np.isnan(each) for each in rules.values()], axis=0)
        if not seen.any():
            continue
        median, mean = forecast(data.hide(*np.nonzero(number >= step)), step)
        for name, values in {MODEL: median.ravel(), MEAN: mean.ravel(), **rules}.items():
            loss = ((estimates[step] - values)[seen] ** 2).mean()
            losses.setdefault(name, []).append(float(loss))
        noise.append(float(variance[step][seen].mean()))
    if len(noise) < 2:
        raise ValueError(f"check must have at least two steps with reports, got {len(noise)} of {steps}")
    return judged(pd.DataFrame(losses), float(np.mean(noise)), remedies or {})


def judged(losses: pd.DataFrame, noise: float, remedies: Mapping[str, str]) -> ForecastCheck:
    """From mean squared differences (steps, forecasts) from the reports, of which ``noise`` is due to their noise."""
    squared, away = losses.mean() - noise, losses.sub(losses[MODEL], axis=0)
    table = pd.DataFrame(
        {
            "forecast": losses.columns,
            "error": np.sqrt(squared.where(squared >= 0.0)).to_numpy(),
            "difference": away.mean().to_numpy(),
            "standard_error": (away.std(ddof=1) / math.sqrt(len(losses))).to_numpy(),
        }
    )
    rules = [name for name in losses.columns if name not in (MODEL, MEAN)]
    model, rule = losses[[MODEL, MEAN]].mean().idxmin(), losses[rules].mean().idxmin()
    better, other = (model, rule) if losses[model].mean() < losses[rule].mean() else (rule, model)
    gap = losses[other] - losses[better]
    errors = dict(zip(table["forecast"], table["error"], strict=True))
    numbers = f"error {words(errors[better])} ({better}) against {words(errors[other])} ({other})"
    remedy = remedies.get(rule, "")
    use = f"Use the {rule}" if better == rule else f"Use the model's {model.split(', ')[1]}"
    if gap.mean() <= CLEAR * gap.std(ddof=1) / math.sqrt(len(losses)):
        use, remedy = f"No clear difference between the model and the {rule}", ""
    verdict = f"{use}: {numbers}, {len(losses)} steps."
    return ForecastCheck(table, len(losses), f"{verdict} {remedy}" if remedy and better == rule else verdict)


def words(error: float) -> str:
    """An error for people."""
    return "about 0" if math.isnan(error) else f"{error:.3g}"


def fitted_quietly(model: Any, data: Observations) -> Any:
    """The model fitted to the data, without warnings about its chains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(data)
