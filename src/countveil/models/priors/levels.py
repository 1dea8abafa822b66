"""Levels: a factor of every cell's rate, which follows its last value step by step."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from countveil.kernels.levels import draw_levels, move_persistence, move_smoothness
from countveil.models.priors.prior import Conditional, Factor, Prior, Reported, check_values

MIDDLE, SPREAD = 5.0, 1.5  # of the mean of log(s - 1) over items: mean and standard deviation
BETWEEN = 1.0  # standard deviation of log(s - 1) between items
MOST = 0.98  # the largest persistence: levels stay away from where a gamma variable underflows
START, SMOOTH = (0.8, 4.5)  # persistence and log(s - 1) at first: levels stay near one until components are found
FEW_CELLS, SHARES = (1024, 4)  # cells of whose levels all are drawn in a sweep; of more, those of every fourth item
PERSISTENCE, SMOOTHNESS = "_persistence", "_smoothness"  # ends of names of what is reported


@dataclass(frozen=True)
class LevelPrior(Prior):
    """Levels l_t of every item, l_t ~ Gamma(s (rho l_(t-1) + 1 - rho), s), the first one ~ Gamma(s, s).

    Items are the cells of all axes but ``time``, the number of that axis. Each has its own smoothness s, with
    log(s - 1) ~ Normal(b, 1) and b ~ Normal(5, 1.5^2). All share a persistence rho, uniform from 0 to .98. Levels go
    back to one in the long run, so that the other factors keep their size (mathematics, section 17).
    """

    time: int

    kind: ClassVar[str] = "levels"
    of_cells: ClassVar[bool] = True

    def start(self, factor: Factor) -> np.ndarray:
        """(2 + items,) persistence, b, log(s - 1) of every item."""
        n_items = int(np.prod(factor.shape)) // factor.shape[self.time]
        return np.concatenate([[START, SMOOTH], np.full(n_items, SMOOTH)])

    def draw(
        self, factor: Factor, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """The levels and smoothness of some items, and b; now and then the persistence, whose moves need all items."""
        count, exposure, level = (
            self.over_items(each) for each in (given.counts, np.maximum(given.exposures, 0.0), given.value)
        )
        rho, middle, log_n = float(hypers[0]), float(hypers[1]), hypers[2:].copy()
        every = 1 if level.size <= FEW_CELLS else min(SHARES, level.shape[1])
        items = np.arange(int(rng.integers(every)), level.shape[1], every)
        draw_levels(count, exposure, smoothness(log_n), rho, items, level, rng)
        for stretched in (False, True):
            move_smoothness(count, exposure, rho, middle, BETWEEN, stretched, items, log_n, level, rng)
        if rng.integers(every) == 0:
            stretched = bool(rng.integers(2))
            rho = move_persistence(count, exposure, smoothness(log_n), MOST, stretched, rho, level, rng)
        middle = draw_middle(log_n, rng)
        return self.as_factor(level, factor.shape), np.concatenate([[rho, middle], log_n])

    def over_items(self, values: np.ndarray) -> np.ndarray:
        """A copy (T, items)."""
        moved = np.moveaxis(values, self.time, 0)
        return np.array(moved.reshape(len(moved), -1), dtype=np.float64, order="C")

    def as_factor(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """An array (T, items) over the factor's axes."""
        others = [n for i, n in enumerate(shape) if i != self.time]
        return np.ascontiguousarray(np.moveaxis(values.reshape(len(values), *others), 0, self.time))

    def reported(self, factor: Factor, hypers: np.ndarray) -> Reported:
        """The persistence, and every item's smoothness."""
        axes = tuple(i for i in range(len(factor.shape)) if i != self.time)
        s = smoothness(hypers[:, :, 2:]).reshape(*hypers.shape[:2], *(factor.shape[i] for i in axes))
        return {PERSISTENCE: ((), hypers[:, :, 0]), SMOOTHNESS: (axes, s)}

    def summaries(self, factor: Factor, hypers: np.ndarray) -> list[np.ndarray]:
        """Persistence, and the mean of log s over items."""
        return [hypers[:, :, 0], mean_log(smoothness(hypers[:, :, 2:]))]

    def check_reported(self, name: str, values: np.ndarray) -> None:
        """A persistence is from 0 to its largest, a smoothness above one."""
        if name.endswith(PERSISTENCE):
            check_values(f"must hold {name} from 0 to {MOST:g}", values, (values >= 0.0) & (values <= MOST))
        else:
            check_values(f"must hold {name} of at least 1", values, (values >= 1.0) & (values < np.inf))

    def describe(self) -> str:
        """Levels in a sentence."""
        return (
            "A gamma chain for every item: its level follows its last value, and returns to one in the long run "
            "(mathematics, section 17)."
        )

    def facts(self) -> dict[str, Any]:
        """The axis of time."""
        return {"kind": self.kind, "time": self.time}


def smoothness(log_n: np.ndarray) -> np.ndarray:
    """s, from log(s - 1)."""
    return np.asarray(1.0 + np.exp(log_n))


def mean_log(s: np.ndarray) -> np.ndarray:
    """(C, S) the mean of log s over items, of draws (C, S, ...)."""
    return np.asarray(np.log(s).reshape(*s.shape[:2], -1).mean(axis=2))


def draw_middle(log_n: np.ndarray, rng: np.random.Generator) -> float:
    """b given the items' log(s - 1), a normal variable."""
    precision = SPREAD**-2 + log_n.size * BETWEEN**-2
    mean = (MIDDLE * SPREAD**-2 + log_n.sum() * BETWEEN**-2) / precision
    return float(rng.normal(mean, precision**-0.5))
