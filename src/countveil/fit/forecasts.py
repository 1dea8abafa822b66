"""Forecasts of a dynamic model: its chain run on, counts drawn from it, and what they say of each cell."""

import math
import warnings
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from countveil.data.matrices import check_whole_counts
from countveil.data.observations import Observations
from countveil.fit.component_tables import tails
from countveil.fit.parameters import check_interval
from countveil.fit.reading import ENDS
from countveil.fit.time_labels import continued
from countveil.inference import posterior as posteriors
from countveil.inference.identify import SMALLEST
from countveil.kernels.entries import MASKED
from countveil.kernels.report_kernels import GUESS, LEAST, MOST
from countveil.laws.counts import Likelihood, Parameters
from countveil.laws.noise import AnyMechanismNoise
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout
from countveil.models.priors.gamma_chain import GammaChainPrior
from countveil.models.priors.levels import PERSISTENCE, SMOOTHNESS
from countveil.privacy._memory import available_memory, in_words

BYTES_PER_CELL = 32  # of a draw: its rate, its count, and both again while they are made


class Forecast(NamedTuple):
    """Time steps that come after those of a fit's data.

    Attributes:
        rates: expected counts, (draw, and the data's axes with the new time steps).
        counts: true counts that may come, drawn from the rates, likewise.
        likelihood: the law of a count given its rate.
        parameters: the likelihood's own parameters in each draw, which broadcast against the axes of the data.
        time: the name of the axis of time.
        why_no_intervals: why the table has no intervals; empty where it has.
    """

    rates: xr.DataArray
    counts: xr.DataArray
    likelihood: Likelihood
    parameters: list[Parameters]
    time: str
    why_no_intervals: str

    def table(self, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The mean, the median and an equal-tailed interval of each new count.

        Columns: the data's axes, mean (of the rates), median, lower, upper; the last three are counts. Where intervals
        are not calibrated: as in ``parts.members``.

        Raises:
            ValueError: an interval out of range.
        """
        check_interval(interval)
        low, high = tails(interval)
        levels, values = (low, 0.5, high), self.counts.to_numpy()
        lower, median, upper = np.quantile(values, levels, axis=0, method="inverted_cdf").astype(np.int64)
        found = self.rates.mean("draw").to_dataset(name="mean")
        for name, each in (("median", median), ("lower", lower), ("upper", upper)):
            found[name] = (found["mean"].dims, each)
        table = found.to_dataframe().reset_index()
        if not self.why_no_intervals:
            return table
        return table.rename(columns=ENDS) if uncalibrated else table.drop(columns=list(ENDS))

    def log_predictive(self, counts: Any) -> xr.DataArray:
        """log P(count) of each count that came, averaged over draws, over the data's axes: the score of a forecast.

        Raises:
            ValueError: counts of another shape than the forecast, or that are no whole numbers from 0 on.
        """
        came, shape = np.asarray(counts), self.rates.shape[1:]
        if came.shape != shape:
            raise ValueError(f"counts must have the shape of the forecast {shape}, got {came.shape}")
        check_whole_counts("counts", came)
        total = np.full(shape, -np.inf)
        for rates, own in zip(self.rates.to_numpy(), self.parameters, strict=True):
            parts = rates / self.likelihood.mean(1.0, own)
            np.logaddexp(total, self.likelihood.log_mass(came, parts, own), out=total)
        found = self.rates.isel(draw=0, drop=True).copy(data=total - np.log(len(self.parameters)))
        return found.rename("log_predictive")


def simulated(
    fitted: tuple[xr.DataTree, Factorization, Layout],
    factor: str,
    steps: int,
    most: int,
    rng: np.random.Generator,
    day_first: bool | None = None,
) -> tuple[xr.DataArray, xr.DataArray, Likelihood, list[Parameters]]:
    """The first fields of a ``Forecast``: new steps of the factor over time."""
    tree, model, layout = fitted
    f = model.spec.names.index(factor)
    time = model.factors[f].axes[0]
    check_parameters(model, time)
    if posteriors.exposure_of(tree, (model.rows.shape[0], model.columns.shape[0])) is not None:
        raise ValueError(
            "forecast needs data without an exposure by cell, since the exposure of future cells is not known, got a "
            "fit with one: multiply its rates per unit of exposure, from posterior, by the future exposure"
        )
    names = {layout.dims[a]: tree["posterior"][layout.dims[a]].to_numpy() for a in model.spec.output}
    kept = posteriors.evenly(posteriors.n_draws(tree), most)
    shape = tuple(steps if name == layout.dims[time] else len(own) for name, own in names.items())
    check_room(len(kept) * prod(shape))
    names[layout.dims[time]] = posteriors.labels_or_numbers(
        continued(list(names[layout.dims[time]]), steps, day_first), steps
    )
    prior = model.factors[f].prior
    assert isinstance(prior, GammaChainPrior)
    chains, (persistence, smoothness) = chain_draws(tree, prior.season), level_draws(tree, model)

    def later(factors: list[np.ndarray], s: int) -> None:
        factors[f] = run_on(factors[f][-1], {name: values[s] for name, values in chains.items()}, steps, rng)
        if model.level is not None:
            place = model.spec.output.index(time)
            last = factors[model.level].take(-1, axis=place)
            onward = levels_on(last, persistence[s], smoothness[s], steps, rng)
            factors[model.level] = np.moveaxis(onward, 0, place)

    rates, counts, spreads = drawn(fitted, later, kept, shape, rng)
    dims = ("draw", *names)
    coords: dict[str, Any] = {"draw": kept} | names
    return (
        xr.DataArray(rates, dims=dims, coords=coords, name="rates"),
        xr.DataArray(counts, dims=dims, coords=coords, name="counts"),
        model.likelihood,
        spreads,
    )


def drawn(
    fitted: tuple[xr.DataTree, Factorization, Layout],
    change: Callable[[list[np.ndarray], int], None],
    kept: np.ndarray,
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, list[Parameters]]:
    """(rates, counts, parameters) of draws ``kept``; ``change`` gives the factors of a draw other steps, in place."""
    tree, model, layout = fitted
    chosen = set(kept.tolist())
    spreads: list[Parameters] = []
    rates, counts = np.empty((len(kept), *shape)), np.empty((len(kept), *shape), dtype=np.int64)
    draws = zip(posteriors.factor_draws(tree, model, layout), posteriors.parameter_draws(tree, model), strict=False)
    for s, (factors, parameters) in enumerate(draws):
        if s not in chosen:
            continue
        change(factors, s)
        parts = np.einsum(model.spec.text, *factors, optimize="greedy")
        spread = over_cells(model, parameters)
        rates[len(spreads)] = model.likelihood.mean(parts, spread)
        counts[len(spreads)] = model.likelihood.sample(parts, rng, spread)
        spreads.append(spread)
    return rates, counts, spreads


def middle_of_step(
    fitted: tuple[xr.DataTree, Factorization, Layout], factor: str, step: int, most: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The median of each count of a step of the data that was masked, and its mean, over the data's other axes."""
    tree, model, _ = fitted
    f = model.spec.names.index(factor)
    time = model.factors[f].axes[0]
    kept = posteriors.evenly(posteriors.n_draws(tree), most)
    sizes = model.rows.sizes | model.columns.sizes
    shape = tuple(1 if a == time else sizes[a] for a in model.spec.output)
    check_room(len(kept) * prod(shape))
    place = model.spec.output.index(time)

    def of_step(factors: list[np.ndarray], s: int) -> None:
        factors[f] = factors[f][step : step + 1]
        if model.level is not None:
            factors[model.level] = factors[model.level].take([step], axis=place)

    rates, counts, _ = drawn(fitted, of_step, kept, shape, rng)
    median = np.quantile(counts, 0.5, axis=0, method="inverted_cdf")
    return median.squeeze(place), rates.mean(axis=0).squeeze(place)


def chain_draws(tree: xr.DataTree, n_seasons: int | None) -> dict[str, np.ndarray]:
    """Every draw of the chain's hyperparameters that forecasts need; of seasons, those of the last ``n_seasons``."""
    names = ["transition", "immigration", "volume"]
    names += [name for name in ("usual_volume", "steadiness") if name in tree["posterior"]]
    found = {name: posteriors.flat_draws(tree, name) for name in names}
    if n_seasons is None:
        return found
    return found | {"season": posteriors.flat_draws(tree, "season")[:, -n_seasons:]}


def level_draws(tree: xr.DataTree, model: Factorization) -> tuple[np.ndarray, np.ndarray]:
    """Every draw of the levels' persistence and smoothness; empty without levels."""
    if model.level is None:
        return np.empty(0), np.empty(0)
    name = model.factors[model.level].name
    return (posteriors.flat_draws(tree, f"{name}{PERSISTENCE}"), posteriors.flat_draws(tree, f"{name}{SMOOTHNESS}"))


def levels_on(
    last: np.ndarray, persistence: float, smoothness: np.ndarray, steps: int, rng: np.random.Generator
) -> np.ndarray:
    """(steps, ...) levels after the last ones (...), by (17.15)."""
    found = np.empty((steps, *last.shape))
    for step in range(steps):
        mean = 1.0 + persistence * (last - 1.0)
        found[step] = last = rng.standard_gamma(smoothness * mean) / smoothness
    return found


def run_on(last: np.ndarray, chain: dict[str, np.ndarray], steps: int, rng: np.random.Generator) -> np.ndarray:
    """(steps, K) activity after the last step's (K,), by (17.1) and (17.12); ``season`` is that of the last S steps."""
    if "season" in chain:
        seasons = chain["season"]
        without = {name: values for name, values in chain.items() if name != "season"}
        seen = last > SMALLEST  # an activity that was cut there says nothing of what is divided by its season
        found = run_on(np.where(seen, last / seasons[-1], 0.0), without, steps, rng)
        return found * seasons[np.arange(steps) % len(seasons)]
    volume, found = np.ravel(chain["volume"]), np.empty((steps, last.size))
    theta, later = last / volume[-1], np.full(steps, volume[-1])
    if "steadiness" in chain:
        s = float(chain["steadiness"])
        later = float(chain["usual_volume"]) * rng.gamma(s, 1.0 / s, steps)
    for step in range(steps):
        theta = rng.standard_gamma(chain["transition"] @ theta + chain["immigration"])
        found[step] = later[step] * theta
    return found


def check_parameters(model: Factorization, time: str) -> None:
    """Refuse a likelihood whose parameters vary along time: nothing is known of those of new steps."""
    for name, kind in model.likelihood.parameter_axes.items():
        if kind != "all" and time in getattr(model, f"{kind}s").observed:
            raise ValueError(
                f"forecasts need a {name} that does not vary along time, got one for each {kind} of the data"
            )


def over_cells(model: Factorization, parameters: Parameters) -> Parameters:
    """The likelihood's parameters, each of a shape that broadcasts against the data's axes."""
    found = []
    for kind, values in zip(model.likelihood.parameter_axes.values(), parameters, strict=True):
        axes = "" if kind == "all" else getattr(model, f"{kind}s").observed
        sizes = model.rows.sizes | model.columns.sizes
        folded = np.reshape(values, [sizes[a] for a in axes])
        order = [a for a in model.spec.output if a in axes]
        shape = [sizes[a] if a in axes else 1 for a in model.spec.output]
        found.append(folded.transpose([axes.index(a) for a in order]).reshape(shape))
    return tuple(found)


def check_room(cells: int) -> None:
    """Refuse more cells of draws than fit in memory; raises MemoryError."""
    available = available_memory()
    if available is not None and cells * BYTES_PER_CELL > available:
        raise MemoryError(
            f"draws of all cells must fit in memory: they need {in_words(cells * BYTES_PER_CELL)}, "
            f"{in_words(available)} are available; take fewer draws= or steps"
        )


# Forecasts against rules of thumb: the last steps of the data, each forecast from those before it.

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
        ValueError: reports that have no unbiased estimate, such as hidden counts, among those that were seen.
    """
    rows, columns = (each.ravel() for each in np.indices(data.shape))
    reports, level = data.cells(rows, columns)
    shows_all = False
    if isinstance(data.noise, AnyMechanismNoise):
        seen = data.noise.kernel.whole_cj[reports[reports != MASKED]]
        shows_all = bool((seen[:, LEAST] == seen[:, MOST]).all())  # as when the rule hid no count
    if not (data.noise.unbiased or shows_all):
        raise ValueError(
            "data must have reports with an unbiased estimate of each count to compare forecasts, got "
            f"{data.noise.in_words(data.cell_level)}: compare models by held-out reports instead (cv.compare)"
        )
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
