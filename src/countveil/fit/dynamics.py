"""DynamicModel: components of counts over time, only ever seen through noise."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from countveil.common.parameters import Flag, WholeOrAuto, check_flag, check_integer, declared
from countveil.data.dates import SHOWN, TimeSteps, UnclearOrderError, dates_of, months_of, numbers_of, steps_in_time
from countveil.data.observations import Observations
from countveil.fit.base import FactorizationEstimator, Given
from countveil.fit.choosing import chosen_likelihood, own_choice, size_of
from countveil.fit.component_tables import Chain, component_counts, mixture, shares_of, tails
from countveil.fit.forecasts import (
    LAST,
    SEASONAL,
    THREE,
    Forecast,
    ForecastCheck,
    check_parameters,
    compared,
    fitted_quietly,
    middle_of_step,
    simulated,
)
from countveil.fit.parameters import check_interval
from countveil.fit.reading import as_calibrated
from countveil.fit.time_labels import AUTO, SHORTEST, Season, named_seasons, season_of
from countveil.inference.matching import places, unweighted
from countveil.inference.methods import METHODS
from countveil.models.einsum import Spec, parse_spec
from countveil.models.factorization import Factorization, factorization
from countveil.models.layout import PREVIOUS, Layout, checked_modes
from countveil.models.priors import DirichletPrior, GammaChainPrior, LevelPrior, Prior
from countveil.models.priors.levels import PERSISTENCE, SMOOTHNESS
from countveil.privacy import Release

AXES = "abcdefghij"
ACTIVITY = "activity"  # the factor over time
LEVEL = "level"  # the factor of every cell
USUAL = 10  # components
BACKGROUND = 1.0  # concentration of the component that is spread over all things
TRY_LEVELS = "Try levels=True (--levels)."
UNDATED = "Time steps are in the order of the data, because their labels are not dates"
REPORTED = ("transition", "importance", "immigration", "volume", "usual_volume", "steadiness", "season")
OF_LEVELS = (LEVEL, f"{LEVEL}{PERSISTENCE}", f"{LEVEL}{SMOOTHNESS}")
TAKEN = ("component", f"{PREVIOUS}component", ACTIVITY, *OF_LEVELS, *REPORTED)


@declared
class DynamicModel(FactorizationEstimator):
    """Components of counts over time that was only ever seen through noise: a Poisson-gamma dynamical system.

    Counts of time step t have the rates sum_k x_tk f_vk .., where every f_k is a distribution over things, and the
    activity x_t of the components depends on that of the step before, x_t ~ Gamma(Pi x_(t-1) + epsilon), up to a scale
    that is learned, as epsilon is (Schein, Zhou and Wallach 2016). Components that the data do not need die out. Time
    is the first axis of the data, unless ``time`` says another one. Steps whose labels are dates are put in order, and
    those that a regular series lacks are added as masked ones; a warning names them.

    Args:
        n_components: number of components K at most, or "auto", as for ``TopicModel``. None is 10, or the number
            of series if that is smaller, but at least 2 with a background.
        modes: names of the data's axes; by default time and item, or time, mode1, mode2, ...
        time: the axis of time, by its name among modes or its number; None is the one called "time", or the first.
        steady: whether all steps have the same volume. If not, each has its own, independent of its neighbours, and
            how much volumes differ is learned.
        day_first: whether dates such as 1/2/2020 begin with the day; None if the labels show it.
        season: after how many steps the year, or another cycle, begins again: 12 for months. Each component then has a
            factor for each step of the season, whose mean is about one. "auto" finds it in dates: 7 days, or the weeks
            (52), months or quarters of a year.
        background: whether one of the components is spread over all things, and takes what belongs to no other, as
            where counts come that were never seen before. It is one of the ``n_components``, and number 0 of them.
        levels: whether each item, a cell of all axes but time, also has its own level, which multiplies its rates. A
            level follows its last value and returns to one in the long run. Only "gibbs" fits levels.
        **options: the options of all models, listed by the reference and ``help``. ``prior_shape`` is the concentration
            of the components' distributions; ``prior_rate`` has to be None; ``method`` is "gibbs" or "augmented-gibbs".

    Attributes:
        posterior: "activity" with dims (time, component), the components' expected counts in each step; one variable
            per other mode, "factor_<mode>"; "transition" (component, previous_component), whose columns sum to one;
            "importance" (component), which is small for components that the data do not need; "immigration",
            what each component gains in each step, in units of the volume; "volume", which is over time unless the
            model is steady, beside "usual_volume" and "steadiness"; with a season, "season" (time, component), its
            factor in each step, by which the activity is multiplied; with levels, "level" over all axes of the data, by
            which the rates that "activity" gives are multiplied, "level_smoothness" over all axes but time, and
            "level_persistence".
    """

    n_components: Annotated[int | str | None, WholeOrAuto(none=True)] = None
    _: KW_ONLY
    modes: Sequence[str] | None = None
    time: str | int | None = None
    steady: Annotated[bool, Flag()] = False
    day_first: bool | None = None
    season: Annotated[int | str | None, Season()] = None
    background: Annotated[bool, Flag()] = False
    levels: Annotated[bool, Flag()] = False

    _sized_by: ClassVar[tuple[str, str] | None] = "n_components", "k"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        samplers = tuple(
            name for name, method in METHODS.items() if method.samples and (method.exposures or not self.levels)
        )
        if self._method.name not in samplers:
            what = "with levels" if self.levels else "for a chain in time"
            raise ValueError(f"method must be one of {samplers} {what}, got {self._method.name!r}")
        if self.day_first is not None:
            check_flag("day_first", self.day_first)
        if self.background and self.n_components == 1:
            raise ValueError(
                "background must be False for one component, since the background is a component, got True"
            )
        if self.prior_rate is not None:
            raise ValueError(
                f"prior_rate must be None, since components sum to one and time has a chain, got {self.prior_rate}"
            )

    def _given(self, X: Any, **of_rows: Any) -> Given:
        if isinstance(X, Release) and X.extras.waves is not None:
            raise ValueError("data must have an axis of time, got a release in waves: cv.by_wave(release) gives it one")
        data, note = self.in_time(X)
        if note and not note.startswith(UNDATED):  # which is usual, as for waves: only commands print it
            warnings.warn(note, stacklevel=3)
        axis = self._time(len(data.mode_shape))
        self._season = season_of(self.season, data.labels[axis], self.day_first)
        if self.n_components is None:
            self.n_components_ = self._usual_size(data.mode_shape)
        if self.levels and data.totals is not None:
            raise ValueError(
                f"levels must be False for data with known totals, got True with {data.totals.size}: leave out levels "
                "(--levels)"
            )
        given = super()._given(data, **of_rows)
        if not ((given.first.prior_scale_d == 1.0).all() and (given.first.prior_scale_v == 1.0).all()):
            raise ValueError(
                f"row_offset and column_offset must be left out for {type(self).__name__}, which learns the volume of "
                "each step, got offsets"
            )
        return given

    def _observe(self, X: Any) -> Observations:
        """Data as inference sees them: with their time steps in order, those that are missing masked."""
        return self.in_time(X)[0]

    def in_time(self, X: Any) -> tuple[Observations, str]:
        """Data with their time steps in order, those that are missing masked; and what was changed, in words.

        Raises:
            TypeError, ValueError: as ``fit``.
        """
        data = super()._observe(X)
        data = data if isinstance(data, Observations) else data.unpacked()
        steps = self._time_steps(data)
        if steps is None:
            labels = data.labels[self._time(len(data.mode_shape))]
            return data, "" if labels is None else doubt_of_order(labels)
        if np.array_equal(steps.places, np.arange(len(steps.labels))):
            return data, steps.note
        return data.with_steps(self._time(len(data.mode_shape)), steps.places, steps.labels), steps.note

    def _time_steps(self, data: Observations) -> TimeSteps | None:
        """The steps of time, if their labels are dates.

        Raises:
            ValueError: dates that cannot be put in order, or dates only along an axis that is not said to be time.
        """
        axis = self._time(len(data.mode_shape))
        labels = data.labels[axis]
        found = None if labels is None else steps_in_time(labels, self.day_first)
        if found is not None or self.time is not None or "time" in (self.modes or ()):
            return found
        for other, names in enumerate(data.labels):
            if other != axis and names is not None and has_dates(names):
                raise ValueError(
                    f"time must be stated if only the labels of axis {other} are dates ({names[0]}, ...), got None: "
                    f"time={other} (--time {other}), or time={axis} (--time {axis}) if axis {axis} is time"
                )
        return found

    def _makers(self) -> dict[str, Callable[[], pd.DataFrame]]:
        others = [name for name in self._reader.axes if name != self.time_axis]
        found = super()._makers() | {"activity": self.activity, "transitions": self.transitions}
        found |= {f"trend_by_{name}": partial(self.trend, name) for name in others}
        return found if self.season_ is None else found | {"seasons": self.seasons}

    def _least_size(self) -> int:
        return 2 if self.background else 1

    def _usual_size(self, shape: tuple[int, ...]) -> int:
        """Components where none are given: each series can have one of its own."""
        n_series = math.prod(shape) // shape[self._time(len(shape))]
        return max(min(USUAL, n_series), self._least_size())

    def _spec(self, n_modes: int) -> Spec:
        if n_modes > len(AXES):
            raise ValueError(f"data must have at most {len(AXES)} axes, got {n_modes}")
        axes, names, time = AXES[:n_modes], self._modes(n_modes), self._time(n_modes)
        terms = [f"{a}k" for a in axes]
        factors = [ACTIVITY if i == time else f"factor_{name}" for i, name in enumerate(names)]
        if self.levels:
            terms.append(axes)
            factors.append(LEVEL)
        return parse_spec(f"{','.join(terms)}->{axes}", names=factors)

    def _modes(self, n_modes: int) -> list[str]:
        """Names of the data's axes."""
        if self.modes is None:
            if isinstance(self.time, str) and self.time != "time":
                raise ValueError(
                    f"time must be one of modes, or a number, got {self.time!r} without modes: give modes="
                )
            time = self._place(n_modes)
            others = ["item"] if n_modes == 2 else [f"mode{i}" for i in range(n_modes) if i != time]
            others.insert(time, "time")
            return others
        return checked_modes(self.modes, n_modes, *TAKEN)

    def _time(self, n_modes: int) -> int:
        """Which axis is time."""
        if not isinstance(self.time, str):
            names = self._modes(n_modes)
            return names.index("time") if self.time is None and "time" in names else self._place(n_modes)
        names = self._modes(n_modes)
        if self.time not in names:
            raise ValueError(f"time must be one of {names}, or a number, got {self.time!r}")
        return names.index(self.time)

    def _place(self, n_modes: int) -> int:
        """The axis of time where it is given by its number, or by nothing."""
        if self.time is None or isinstance(self.time, str):
            return 0
        check_integer("time", self.time, 0)
        if self.time >= n_modes:
            raise ValueError(f"time must be an axis of the data from 0 to {n_modes - 1}, got {self.time}")
        return int(self.time)

    def _ranks(self, spec: Spec) -> dict[str, int]:
        return {"k": size_of(self)}

    def _layout(self, spec: Spec) -> Layout:
        n_modes = len(spec.output)
        dims = dict(zip(spec.output, self._modes(n_modes), strict=True)) | {"k": "component"}
        return Layout(dims, dict(zip(spec.names, spec.factor_axes, strict=True)))

    def _model(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> Factorization:
        known = self.prior_shape
        shape = None if known is None or isinstance(known, str) else float(known)
        others: Prior = DirichletPrior(shape, BACKGROUND if self.background else None)
        time = spec.factor_axes[spec.names.index(ACTIVITY)][0]
        cells = float(np.prod([sizes[a] for a in spec.output if a != time]))
        mean = max(mean_count, 1e-8) * cells / sizes["k"]
        chain = GammaChainPrior(mean, self.steady, self._season_steps(sizes[time]))
        priors = {name: chain if name == ACTIVITY else others for name in spec.names}
        if self.levels:
            priors[LEVEL] = LevelPrior(spec.output.index(time))
        return factorization(spec, sizes, priors, likelihood=chosen_likelihood(self))

    def _season_steps(self, n_steps: int) -> int | None:
        """The steps of a season: as it was given, or found in the data of a fit, or in its file; raises ValueError."""
        found: Any = self.season
        if found == AUTO:
            found = self._season if hasattr(self, "_season") else self.season_
        if found is None:
            return None
        check_integer("season", found, SHORTEST)
        if found > n_steps:
            raise ValueError(
                f"season must be at most the number of time steps, {n_steps}, got {found}: season=None (leave out "
                "--season), or a shorter one"
            )
        return int(found)

    @property
    def season_(self) -> int | None:
        """How many steps the fit's season has; None without one."""
        prior = self.model_.factors[self.model_.spec.names.index(ACTIVITY)].prior
        assert isinstance(prior, GammaChainPrior)
        return prior.season

    @property
    def time_axis(self) -> str:
        """The name of the axis of time."""
        _, model, layout = self._fitted()
        return layout.dims[model.spec.factor_axes[model.spec.names.index(ACTIVITY)][0]]

    def activity(self, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Expected counts of each component in each time step, masked ones included, with equal-tailed intervals.

        Columns: component, the axis of time, rate, lower, upper. Where intervals are not calibrated: as in
        ``parts.members``.
        """
        check_interval(interval)
        tree, model, layout = self._fitted()
        time, (group, names) = self.time_axis, (model.spec.latent, self._reader.axes[self.time_axis])
        letter = next(a for a, dim in layout.dims.items() if dim == time)
        counts = component_counts(unweighted(tree), model, layout, letter + group)
        by_chain = counts.swapaxes(1, 2).reshape(len(self.weights_), -1, counts.shape[2], counts.shape[1])
        given = zip(by_chain, self.weights_.tolist(), strict=True)
        chains = mixture([Chain(own, own.sum(axis=2), weight) for own, weight in given])
        tables = []
        for number, found in self._reader.numbered(group):
            draws = shares_of(chains, found)
            lower, upper = np.quantile(draws, tails(interval), axis=0)
            columns = {"component": number, time: names, "rate": draws.mean(axis=0), "lower": lower, "upper": upper}
            tables.append(pd.DataFrame(columns))
        return as_calibrated(pd.concat(tables, ignore_index=True), self._reader.why_no_intervals, uncalibrated)

    def trend(self, along: str | None = None, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Expected counts in each time step along another axis, summed over all others, masked cells included.

        sum over components k and all other axes of x_tk f_vk ..

        Unlike components, these sums are the same thing in all chains. Columns: the axis of time, ``along``, rate,
        lower, upper, with equal-tailed intervals; where they are not calibrated: as in ``parts.members``.

        Args:
            along: the name of an axis that is not time; None is the last such.

        Raises:
            ValueError: another name.
        """
        check_interval(interval)
        tree, model, layout = self._fitted()
        letters = {layout.dims[a]: a for a in model.spec.output}
        time = self.time_axis
        others = [name for name in letters if name != time]
        along = others[-1] if along is None else along
        if along not in others:
            raise ValueError(f"along must be one of {others}, got {along!r}")
        sums = component_counts(unweighted(tree), model, layout, letters[time] + letters[along])
        by_chain = sums.reshape(len(self.weights_), -1, *sums.shape[1:])
        kept = places(self.weights_, [by_chain.shape[1]] * len(by_chain))
        draws = np.concatenate([own[rows] for own, rows in zip(by_chain, kept, strict=True)])
        lower, upper = np.quantile(draws, tails(interval), axis=0)
        cells = pd.MultiIndex.from_product(
            [self._reader.axes[time], self._reader.axes[along]], names=[time, along]
        ).to_frame(index=False)
        found = cells.assign(rate=draws.mean(axis=0).ravel(), lower=lower.ravel(), upper=upper.ravel())
        return as_calibrated(found, self._reader.why_no_intervals, uncalibrated)

    def transitions(self, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """What share of a component's activity goes to each component in the next step, with equal-tailed intervals.

        Columns: previous_component, component, share, lower, upper; a pair that no chain has is left out. Where
        intervals are not calibrated: as in ``parts.members``.
        """
        check_interval(interval)
        draws = self.posterior["posterior"]["transition"].to_numpy()
        own = self._reader.numbered(self.model_.spec.latent)
        kept, rows = places(self.weights_, [draws.shape[1]] * draws.shape[0]), []
        for number, one in own:
            place = dict(zip(one.chains, one.components, strict=True))
            for to, other in own:
                both = [
                    draws[c, kept[c], k, place[c]]
                    for c, k in zip(other.chains, other.components, strict=True)
                    if c in place
                ]
                values = np.concatenate(both) if both else np.empty(0)
                if values.size:
                    rows.append((number, to, values.mean(), *np.quantile(values, tails(interval))))
        columns = [f"{PREVIOUS}component", "component", "share", "lower", "upper"]
        table = pd.DataFrame(rows, columns=columns)
        return as_calibrated(table, self._reader.why_no_intervals, uncalibrated)

    def seasons(self, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """What each component's activity is multiplied by in each step of the season, with equal-tailed intervals.

        Factors of a component have mean one. Columns: component, season, factor, lower, upper. Steps of the season are
        Jan to Dec, Q1 to Q4 or Mon to Sun, as dates show them, or else numbers from 1, which is the first step. Where
        intervals are not calibrated: as in ``parts.members``.

        Raises:
            ValueError: a fit without a season.
        """
        check_interval(interval)
        n_seasons = self.season_
        if n_seasons is None:
            raise ValueError("season must be given to the model for a table of seasons, got None")
        draws = self.posterior["posterior"]["season"].to_numpy()[:, :, :n_seasons]
        draws = draws / draws.mean(axis=2, keepdims=True)
        names, order = named_seasons(self._reader.axes[self.time_axis].tolist(), n_seasons, self.day_first)
        kept, tables = places(self.weights_, [draws.shape[1]] * draws.shape[0]), []
        for number, one in self._reader.numbered(self.model_.spec.latent):
            values = [draws[c, kept[c], :, k] for c, k in zip(one.chains, one.components, strict=True)]
            several = np.concatenate(values)[:, order]
            lower, upper = np.quantile(several, tails(interval), axis=0)
            columns = {"component": number, "season": names, "factor": several.mean(axis=0)}
            tables.append(pd.DataFrame(columns | {"lower": lower, "upper": upper}))
        return as_calibrated(pd.concat(tables, ignore_index=True), self._reader.why_no_intervals, uncalibrated)

    def forecast(self, steps: int, rng: np.random.Generator | None = None, *, draws: int = 500) -> Forecast:
        """The time steps after those of the data: the chain run on from draws of the posterior, and counts from it.

        Args:
            steps: how many.
            rng: a generator; None makes one from the fit's seed, so that the same fit has the same forecast.
            draws: how many draws of the posterior to go on from, evenly spread, at most all of them.

        Raises:
            TypeError: rng is not a Generator.
            ValueError: steps or draws below one, or steps after the year 2262; a likelihood whose parameters vary
                along time.
            MemoryError: the draws of all cells do not fit in memory.
        """
        check_integer("steps", steps, 1)
        check_integer("draws", draws, 1)
        if rng is None:
            rng = np.random.default_rng([self.seed_, steps])
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
        found = simulated(self._fitted(), ACTIVITY, steps, draws, rng, self.day_first)
        return Forecast(*found, self.time_axis, self._reader.why_no_intervals)

    def check_forecasts(self, X: Any, steps: int = 12, *, draws: int = 500) -> ForecastCheck:
        """Whether forecasts are better than rules of thumb: the last steps, each forecast from the reports before it.

        The model is fitted anew for each step, with its own settings. Rules are the last value, the same step of the
        last season (where the fit has one, or dates show one) and the mean of the last three. Only reports are needed:
        noise adds the same to the squared error of all forecasts.

        Args:
            X: the data that were fitted.
            steps: how many of the last steps to forecast, from 2 on.
            draws: of the posterior for each forecast, at most.

        Raises:
            ValueError: other data; too many steps; reports without an unbiased estimate of their count, or with
                exposures or totals; a likelihood whose parameters vary along time.
        """
        check_integer("check", steps, 2)
        check_integer("draws", draws, 1)
        data, time = self._reader.own_data("X", X), self.time_axis
        _, model, layout = self._fitted()
        check_parameters(model, next(a for a, dim in layout.dims.items() if dim == time))
        if data.exposure is not None or data.totals is not None:
            given = "an exposure by cell" if data.exposure is not None else "known totals"
            raise ValueError(
                f"X must have no exposure by cell and no totals to check forecasts, got {given}: compare models by "
                "held-out reports instead (cv.compare)"
            )
        names = [str(name) for name in self._reader.axes[time]]
        n_seasons = self.season_
        if n_seasons is None:
            try:
                n_seasons = season_of(AUTO, names, self.day_first)
            except ValueError:  # labels that show no season
                n_seasons = None
        axis = list(self._reader.axes).index(time)
        if n_seasons is not None and len(names) - steps < n_seasons and self.season is None:
            n_seasons = None
        again = clone(self).set_params(**own_choice(self), season=self.season_, seed=self.seed_, start="auto")
        rng = np.random.default_rng([self.seed_, steps])

        def forecast(known: Observations, step: int) -> tuple[np.ndarray, np.ndarray]:
            return middle_of_step(fitted_quietly(again, known)._fitted(), ACTIVITY, step, draws, rng)

        levels = TRY_LEVELS if not self.levels and self._method.exposures else ""
        season = f"Try season={n_seasons} (--season {n_seasons})." if self.season_ is None else levels
        return compared(data, axis, steps, n_seasons, forecast, {LAST: levels, THREE: levels, SEASONAL: season})


def has_dates(labels: Sequence[str]) -> bool:
    """Whether labels are dates, in which the day or the month may come first."""
    try:
        texts = [text.strip() for text in labels]
        return len(labels) > 1 and (dates_of(texts) or months_of(texts)) is not None
    except UnclearOrderError:
        return True
    except ValueError:
        return False


def doubt_of_order(labels: Sequence[str]) -> str:
    """What to say of time steps whose labels show no order; empty where numbers in them go up."""
    numbers = numbers_of(labels)
    if len(set(labels)) < 2 or (numbers is not None and numbers == sorted(numbers)):
        return ""
    shown = ", ".join(labels[:SHOWN]) + (", .." if len(labels) > SHOWN else "")
    return f"{UNDATED}: {shown}."
