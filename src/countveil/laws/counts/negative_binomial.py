"""Negative binomial counts, which come in bursts; each burst is allocated to a component by itself.

    bursts ~ Poisson(rate),   count ~ NB(s, p) with s = rate / q,   q = -log(1 - p)

so that the rate is that of bursts, whose sizes have a logarithmic distribution with parameter p (mathematics, section
13). The dispersion p is one number for all cells, one per column, or one per row. It is learned, with a uniform prior
if there is one, and otherwise with a beta prior that is learned too; or it is known.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import betainc, betaln, expit, logit

from countveil.kernels import general, tokens, windows
from countveil.kernels.compiled import elementwise, subroutine
from countveil.kernels.hyperparameters import dispersion_given_bursts
from countveil.kernels.law import provides
from countveil.kernels.negative_binomial import draw_bursts, expected_bursts, negative_binomial_logpmf
from countveil.kernels.random import SMALLEST
from countveil.laws.counts.protocol import Parameters, Unseen
from countveil.laws.counts.slices import draw_on_slices, greatest_within

NONE = np.empty(0)
DISPERSIONS = {"global": "all", "column": "column", "row": "row"}
START = 0.5
LOGITS = -20.0, 20.0  # of p: beyond, 1 - p has lost half of its digits
LOG_CONCENTRATIONS = -5.0, 12.0
CONCENTRATION = 2.0, 0.2  # gamma prior (shape, rate) of the learned beta prior's concentration


class NegativeBinomialCounts(NamedTuple):
    """Negative binomial counts for compiled loops: with one p for all cells, for each row or for each column.

    One class for all three, so that loops are compiled once.
    """

    parameters: tuple[np.ndarray, ...] = ()  # every p; what their prior is, loops need not know
    q: np.ndarray = NONE  # -log(1 - p) of every p
    by_row: int = 0  # 1 if every row has a p of its own, else 0
    by_column: int = 0  # the same of columns
    first_row: int = 0  # of the block that a loop works on


class NegativeBinomialCell(NamedTuple):
    """The counts of one cell."""

    p: float
    q: float  # -log(1 - p)


COUNTS: Mapping[str, Any] = {
    "global": NegativeBinomialCounts(),
    "column": NegativeBinomialCounts(by_column=1),
    "row": NegativeBinomialCounts(by_row=1),
}


class NegativeBinomial:
    """The negative binomial likelihood.

    Args:
        dispersion: what has a p of its own: "global" (all cells share one), "column" or "row"; or p itself, if it is
            known, from 0 to below 1.

    Raises:
        ValueError: another dispersion.
    """

    name: ClassVar[str] = "negative-binomial"

    def __init__(self, dispersion: str | float = "global") -> None:
        self.dispersion = dispersion
        if isinstance(dispersion, str):
            if dispersion not in DISPERSIONS:
                raise ValueError(f"dispersion must be one of {list(DISPERSIONS)} or a number, got {dispersion!r:.60}")
            self.counts = COUNTS[dispersion]
        else:
            least, most = expit(LOGITS)
            known = isinstance(dispersion, int | float | np.number) and not isinstance(dispersion, bool)
            if not known or not least <= dispersion <= most:
                raise ValueError(
                    f"dispersion must be one of {list(DISPERSIONS)} or a number from {least:.4g} to 1 - {least:.4g}, "
                    f"got {dispersion!r:.60}"
                )
            self.dispersion = float(dispersion)
            self.counts = NegativeBinomialCounts()
            self.counts = self.counts_given((np.array([self.dispersion]),))

    def __repr__(self) -> str:
        """Its name and dispersion."""
        return f"{self.name}, dispersion {self.dispersion}"

    @property
    def settings(self) -> Mapping[str, Any]:
        """What ``with_settings`` takes."""
        return {"dispersion": self.dispersion}

    def with_settings(self, **settings: Any) -> "NegativeBinomial":
        """The same likelihood with another dispersion."""
        return NegativeBinomial(**settings)

    @property
    def parameter_axes(self) -> Mapping[str, str]:
        """p, unless it is known; and the mean and concentration of its prior, unless there is only one p."""
        if not isinstance(self.dispersion, str):
            return MappingProxyType({})
        shared = {} if self.dispersion == "global" else {"p_mean": "all", "p_concentration": "all"}
        return MappingProxyType({"p": DISPERSIONS[self.dispersion], **shared})

    def range_of(self, name: str) -> tuple[float, float]:
        """The bounds within which a parameter is drawn."""
        bounds = np.exp(LOG_CONCENTRATIONS) if name == "p_concentration" else expit(LOGITS)
        return float(bounds[0]) * (1.0 - 1e-9), float(bounds[1]) * (1.0 + 1e-9)

    def counts_given(self, parameters: Parameters) -> Any:
        """``counts`` with every p and q; loops are compiled for arrays that can be written to."""
        p = np.require(parameters[0], requirements=["C", "W"])
        return self.counts._replace(parameters=(p,), q=-np.log1p(-p))

    def p_of(self, parameters: Parameters) -> Any:
        """p, from the parameters or as it is known."""
        return parameters[0] if parameters else float(self.dispersion)

    def exposure(self, ratio: Any, parameters: Parameters = ()) -> Any:
        """1 - log(1 - p ratio) / log(1 - p) (13.2)."""
        p = self.p_of(parameters)
        return np.log1p(-p * (1.0 - ratio) / (1.0 - p * ratio)) / np.log1p(-p)

    def mean(self, rate: Any, parameters: Parameters = ()) -> Any:
        """s p / (1 - p)."""
        p = self.p_of(parameters)
        return rate * p / (-np.log1p(-p) * (1.0 - p))

    def log_mass(self, count: Any, rate: Any, parameters: Parameters = ()) -> Any:
        """log NB(count; s, p) (13.1)."""
        p = self.p_of(parameters)
        return log_masses(np.asarray(count, dtype=np.int64), np.maximum(rate, SMALLEST) / -np.log1p(-p), p)

    def sample(self, rate: np.ndarray, rng: np.random.Generator, parameters: Parameters = ()) -> np.ndarray:
        """Negative binomial counts."""
        p = self.p_of(parameters)
        return rng.negative_binomial(np.maximum(rate, SMALLEST) / -np.log1p(-p), 1.0 - p)

    def start(self, shape: tuple[int, int]) -> Parameters:
        """Every p and its prior's mean at the middle."""
        sizes = {"all": 1, "row": shape[0], "column": shape[1]}
        values = {"p": START, "p_mean": START, "p_concentration": CONCENTRATION[0] / CONCENTRATION[1]}
        return tuple(np.full(sizes[axis], values[name]) for name, axis in self.parameter_axes.items())

    def tally_size(self, shape: tuple[int, int]) -> int:
        """Counts and bursts for each p."""
        return 2 * len(self.start(shape)[0]) if self.parameter_axes else 0

    def update(self, parameters: Parameters, tally: np.ndarray, unseen: Unseen, rng: np.random.Generator) -> Parameters:
        """Slices of (13.6), and then of the prior's mean and concentration given every p."""
        if not parameters:
            return parameters
        counts, bursts = tally.reshape(2, -1)
        mean, concentration = parameters[1:] or (np.array([0.5]), np.array([2.0]))  # uniform

        def density(logits: np.ndarray) -> np.ndarray:
            return log_density(logits, counts, bursts, unseen, mean * concentration, (1.0 - mean) * concentration)

        logits = draw_on_slices(density, np.clip(logit(parameters[0]), *LOGITS), LOGITS, rng)
        if len(parameters) == 1:
            return (expit(logits),)
        return (expit(logits), *draw_prior(logits, mean, concentration, rng))

    def maximised(self, parameters: Parameters, tally: np.ndarray, unseen: Unseen, penalised: np.ndarray) -> Parameters:
        """Where (13.6) without a prior is greatest; then the mean and concentration that describe all p."""
        if not parameters:
            return parameters
        counts, bursts = tally.reshape(2, -1)

        def expected(logits: np.ndarray) -> np.ndarray:
            of_counts = penalised * np.exp(logits) / np.logaddexp(0.0, logits)
            return log_density(logits, counts, bursts, unseen, 0.0, 0.0) - of_counts

        logits = greatest_within(expected, np.clip(logit(parameters[0]), *LOGITS), LOGITS)
        p = expit(logits)
        return (p,) if len(parameters) == 1 else (p, *described(p))


def log_density(
    logits: np.ndarray, counts: np.ndarray, bursts: np.ndarray, unseen: Unseen, a: Any, b: Any
) -> np.ndarray:
    """log P(logit p | counts, bursts, rates of unseen cells), up to a constant, with a Beta(a, b) prior (13.6)."""
    a, b = float(np.squeeze(a)), float(np.squeeze(b))
    return dispersion_given_bursts(logits, counts, bursts, unseen.ratio, unseen.rate, a, b)


def draw_prior(
    logits: np.ndarray, mean: np.ndarray, concentration: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Slices of the mean and then the concentration of the beta prior, given all logits of p."""
    log_p, log_rest, n = -np.logaddexp(0.0, -logits).sum(), -np.logaddexp(0.0, logits).sum(), logits.size
    shape, rate = CONCENTRATION

    def density(of_mean: np.ndarray, log_size: np.ndarray) -> np.ndarray:
        m, size = expit(of_mean), np.exp(log_size)
        seen = size * (m * log_p + (1.0 - m) * log_rest) - n * log_beta_within(m * size, (1.0 - m) * size)
        prior = np.log(m) + np.log1p(-m) + shape * log_size - rate * size  # of logit m and of log size
        return np.asarray(seen + prior)

    size = np.log(concentration)
    at = draw_on_slices(lambda x: density(x, size), logit(mean), LOGITS, rng)
    size = draw_on_slices(lambda x: density(at, x), size, LOG_CONCENTRATIONS, rng)
    return expit(at), np.exp(size)


def described(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean and concentration of the beta distribution with the mean and variance of all p, within their ranges."""
    mean = np.clip(p.mean(), *expit(LOGITS))
    size = mean * (1.0 - mean) / max(p.var(), 1e-300) - 1.0
    return np.array([mean]), np.array([np.clip(size, *np.exp(LOG_CONCENTRATIONS))])


def log_beta_within(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """log of the integral of p^(a - 1) (1 - p)^(b - 1) over the range of p."""
    least, most = expit(LOGITS)
    inside = betainc(a, b, most) - betainc(a, b, least)
    return np.asarray(betaln(a, b) + np.log(np.maximum(inside, 1e-300)))


@elementwise
def log_masses(count: Any, s: Any, p: Any) -> Any:
    """log NB(count; s, p), of arrays."""
    return negative_binomial_logpmf(count, s, p)


@subroutine
def place_of(likelihood: Any, row: Any, column: Any) -> Any:
    """The place of a cell's p among all of them; rows are counted from the block's first."""
    return likelihood.by_row * (likelihood.first_row + row) + likelihood.by_column * column


@provides(general.likelihood_at, NegativeBinomialCounts)
def of_cell(likelihood: Any, row: Any, column: Any) -> Any:
    """The cell's p and q."""
    place = place_of(likelihood, row, column)
    return NegativeBinomialCell(likelihood.parameters[0][place], likelihood.q[place])


@provides(general.add_to_tally, NegativeBinomialCounts)
def add_to_counts_and_bursts(likelihood: Any, row: Any, column: Any, count: Any, parts: Any, tally: Any) -> Any:
    """Counts of every p, then bursts of every p."""
    place = place_of(likelihood, row, column)
    tally[place] += count
    tally[tally.size // 2 + place] += parts


@provides(general.log_mass, NegativeBinomialCell)
def log_mass(likelihood: Any, count: Any, rate: Any) -> Any:
    """log NB(count; s, p) (13.1)."""
    return negative_binomial_logpmf(count, rate / likelihood.q, likelihood.p)


@provides(general.draw_parts, NegativeBinomialCell)
def draw_parts(likelihood: Any, count: Any, rate: Any, rng: Any) -> Any:
    """The bursts of the count (13.4)."""
    return draw_bursts(count, rate / likelihood.q, rng)


@provides(general.expected_parts, NegativeBinomialCell)
def expected_parts(likelihood: Any, count: Any, rate: Any) -> Any:
    """The mean number of bursts (13.4)."""
    return expected_bursts(count, rate / likelihood.q)


@provides(windows.mass_ratio, NegativeBinomialCell)
def mass_ratio(likelihood: Any, count: Any, rate: Any) -> Any:
    """p (s + count) / (count + 1)."""
    return likelihood.p * (rate / likelihood.q + count) / (count + 1.0)


@provides(windows.mean_count, NegativeBinomialCell)
def mean_count(likelihood: Any, rate: Any) -> Any:
    """s p / (1 - p)."""
    return rate / likelihood.q * likelihood.p / (1.0 - likelihood.p)


@provides(windows.can_tilt, NegativeBinomialCell)
def can_tilt(likelihood: Any, ratio: Any) -> Any:
    """Where p ratio is below 1."""
    return likelihood.p * ratio < 1.0 - 1e-9


@provides(windows.draw_unseen, NegativeBinomialCell)
def draw_unseen(likelihood: Any, rate: Any, rng: Any) -> Any:
    """A Poisson count whose mean is gamma distributed."""
    return rng.poisson(rng.gamma(rate / likelihood.q, likelihood.p / (1.0 - likelihood.p)))


@provides(tokens.part_size, NegativeBinomialCell)
def part_size(likelihood, noise, place, level, chance, uniform, left, codes, rng):  # type: ignore[no-untyped-def]
    """Of a burst."""
    return tokens.burst_size(noise, likelihood.p, place, level, chance, uniform, left, codes, rng)


@provides(windows.mode_of_counts, NegativeBinomialCell)
def mode_of_counts(likelihood: Any, rate: Any) -> Any:
    """(s - 1) p / (1 - p), rounded down, or 0."""
    return np.floor(max(rate / likelihood.q - 1.0, 0.0) * likelihood.p / (1.0 - likelihood.p))


@provides(windows.has_one_mode, NegativeBinomialCell)
def has_one_mode(likelihood: Any, rate: Any) -> Any:
    """Where s is at least 1."""
    return rate >= likelihood.q


@provides(general.parts_exposure, NegativeBinomialCell)
def parts_exposure(likelihood: Any, ratio: Any) -> Any:
    """1 - log(1 - p ratio) / log(1 - p) (13.2)."""
    p = likelihood.p
    return np.log1p(-p * (1.0 - ratio) / (1.0 - p * ratio)) / -likelihood.q
