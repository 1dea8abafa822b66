"""Poisson counts: P(count | rate) = rate^count e^-rate / count!; each unit is allocated to a component by itself."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from countveil.kernels import general, tokens, windows
from countveil.kernels.law import provides
from countveil.kernels.poisson import poisson_logpmf
from countveil.laws.counts.protocol import Parameters, Unseen

SMALLEST_RATE = 1e-300


class PoissonCounts(NamedTuple):
    """Poisson counts, for compiled loops."""

    parameters: tuple[()] = ()


class Poisson:
    """The Poisson likelihood."""

    name: ClassVar[str] = "poisson"
    parameter_axes: Mapping[str, str] = MappingProxyType({})
    settings: Mapping[str, Any] = MappingProxyType({})
    counts = PoissonCounts()

    def __repr__(self) -> str:
        """Its name."""
        return self.name

    def with_settings(self, **settings: Any) -> "Poisson":
        """Itself: it has no settings."""
        return self

    def range_of(self, name: str) -> tuple[float, float]:
        """No parameters."""
        raise KeyError(name)

    def exposure(self, ratio: Any, parameters: Parameters = ()) -> Any:
        """1 - ratio, since the sum over counts of P(count | rate) ratio^count is e^-((1 - ratio) rate)."""
        return 1.0 - ratio

    def mean(self, rate: Any, parameters: Parameters = ()) -> Any:
        """The rate."""
        return rate

    def log_mass(self, count: Any, rate: Any, parameters: Parameters = ()) -> Any:
        """count log rate - rate - log count!."""
        return count * np.log(np.maximum(rate, SMALLEST_RATE)) - rate - gammaln(count + 1.0)

    def sample(self, rate: np.ndarray, rng: np.random.Generator, parameters: Parameters = ()) -> np.ndarray:
        """Poisson counts."""
        return rng.poisson(rate)

    def start(self, shape: tuple[int, int]) -> Parameters:
        """No parameters."""
        return ()

    def tally_size(self, shape: tuple[int, int]) -> int:
        """Nothing to tally."""
        return 0

    def update(self, parameters: Parameters, tally: np.ndarray, unseen: Unseen, rng: np.random.Generator) -> Parameters:
        """No parameters."""
        return parameters

    def maximised(self, parameters: Parameters, tally: np.ndarray, unseen: Unseen, penalised: np.ndarray) -> Parameters:
        """No parameters."""
        return parameters


@provides(general.log_mass, PoissonCounts)
def log_mass(likelihood: Any, count: Any, rate: Any) -> Any:
    """log P(count | rate)."""
    return poisson_logpmf(count, rate)


@provides(general.draw_parts, PoissonCounts)
def draw_parts(likelihood: Any, count: Any, rate: Any, rng: Any) -> Any:
    """All units."""
    return count


@provides(general.add_to_tally, PoissonCounts)
def add_to_tally(likelihood: Any, row: Any, column: Any, count: Any, parts: Any, tally: Any) -> Any:
    """Nothing: there are no parameters."""


@provides(general.expected_parts, PoissonCounts)
def expected_parts(likelihood: Any, count: Any, rate: Any) -> Any:
    """All units."""
    return float(count)


@provides(windows.mass_ratio, PoissonCounts)
def mass_ratio(likelihood: Any, count: Any, rate: Any) -> Any:
    """rate / (count + 1)."""
    return rate / (count + 1.0)


@provides(windows.mean_count, PoissonCounts)
def mean_count(likelihood: Any, rate: Any) -> Any:
    """The rate."""
    return rate


@provides(windows.can_tilt, PoissonCounts)
def can_tilt(likelihood: Any, ratio: Any) -> Any:
    """By any ratio that is a number."""
    return ratio >= 0.0


@provides(windows.draw_unseen, PoissonCounts)
def draw_unseen(likelihood: Any, rate: Any, rng: Any) -> Any:
    """A Poisson count."""
    return rng.poisson(rate)


@provides(tokens.part_size, PoissonCounts)
def part_size(likelihood, noise, place, level, chance, uniform, left, codes, rng):  # type: ignore[no-untyped-def]
    """1."""
    return 1


@provides(windows.mode_of_counts, PoissonCounts)
def mode_of_counts(likelihood: Any, rate: Any) -> Any:
    """The rate, rounded down."""
    return np.floor(rate)


@provides(windows.has_one_mode, PoissonCounts)
def has_one_mode(likelihood: Any, rate: Any) -> Any:
    """Always."""
    return True


@provides(general.parts_exposure, PoissonCounts)
def parts_exposure(likelihood: Any, ratio: Any) -> Any:
    """1 - ratio."""
    return 1.0 - ratio
