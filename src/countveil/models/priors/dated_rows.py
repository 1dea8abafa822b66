"""Gamma priors of rows that have a date: what is expected of a row's components is a gamma chain over the dates."""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import gammaln

from countveil.kernels.dynamics import seat
from countveil.kernels.random import SMALLEST
from countveil.laws.counts.slices import draw_on_slices
from countveil.models.priors import gamma_chain
from countveil.models.priors.gamma_chain import RANGE, WIDTH, GammaChainPrior
from countveil.models.priors.gamma_chain import packed as packed_chain
from countveil.models.priors.prior import Conditional, Factor, Prior, Reported, Scale, check_values

STEPS, OVER_TIME = "time", "_over_time"  # the dimension of dates, and the end of the name of their chain
RATE_SHAPE = 0.5  # of the broad gamma priors of rows' rates
LEVEL_SHAPE = 0.1  # of the prior of these priors' rate: with a known one, rows of a date would be as alike as it says


class Dated(NamedTuple):
    """The hyperparameters of rows with dates (mathematics, equation 17.9)."""

    chain: np.ndarray  # as ``GammaChainPrior`` keeps them
    x: np.ndarray  # (T, K) the chain
    rate: np.ndarray  # (D,) b_d
    level: float  # c, the rate of the rates' prior


@dataclass(frozen=True)
class DatedRowsPrior(Prior):
    """A factor (D, K) of entries Gamma(x_tk, b_d), where t is the date of row d and x is a steady gamma chain.

    The share of a component in a row of date t is expected to be x_tk / sum_j x_tj, and the sum over j says how alike
    rows of one date are. Rates b_d ~ Gamma(0.5, c) leave the sizes of rows to the rows. Chains are about ``mean``, and
    c ~ Gamma(0.1, 0.1 / c_0) with c_0 = 0.5 ``size`` / (K ``mean``), at which rows are of ``size`` (mathematics,
    equation 17.9).
    """

    mean: float
    size: float
    step: np.ndarray  # (D,) the number of each row's date, from 0
    n_steps: int

    kind: ClassVar[str] = "gamma-with-dates"
    needs: ClassVar[str | None] = "dates"
    from_data: ClassVar[tuple[str, ...]] = ("size",)

    @property
    def over_dates(self) -> GammaChainPrior:
        """The prior of x."""
        return GammaChainPrior(self.mean, True)

    def usual_level(self, n_components: int) -> float:
        """c_0: with chains of ``mean``, rows are of ``size``."""
        return RATE_SHAPE * self.size / (n_components * self.mean)

    def start(self, factor: Factor) -> np.ndarray:
        """A chain that stays at ``mean``, and rates at which rows are of size ``size``."""
        n_rows, k = factor.shape
        x = np.full((self.n_steps, k), self.mean)
        level = self.usual_level(k)
        rate = np.full(n_rows, RATE_SHAPE / level)
        return packed(Dated(self.over_dates.started(self.n_steps, k), x, rate, level))

    def draw(
        self, factor: Factor, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rates given the factor; tables and the chain with the factor integrated out; then the factor."""
        scale, value, count, exposure = given
        dated, scales = self.dated_of(hypers, factor.shape), row_scales(scale, factor.shape[0])
        dated = dated._replace(rate=self.draw_rates(dated, scales, value, rng))
        dated = dated._replace(level=self.draw_level(dated, rng))
        seated, lost = self.tables(dated, scales, count, exposure, rng)
        of_dates = Conditional(1.0, dated.x, seated, lost)
        x, chain = self.over_dates.draw_chain(dated.chain, of_dates, rng)
        dated = self.rescaled(dated._replace(x=x, chain=chain), scales, count, exposure, rng)
        return self.draw_rows(dated, scales, count, exposure, rng), packed(dated)

    def draw_rates(self, dated: Dated, scales: np.ndarray, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(D,) b_d | theta, x ~ Gamma(0.5 + sum_k x_tk, c + s_d sum_k theta_dk)."""
        shape = RATE_SHAPE + dated.x.sum(axis=1)[self.step]
        rate = dated.level + scales * value.sum(axis=1)
        return np.maximum(rng.standard_gamma(shape) / rate, SMALLEST)

    def draw_level(self, dated: Dated, rng: np.random.Generator) -> float:
        """c | b ~ Gamma(0.1 + 0.5 D, 0.1 / c_0 + sum_d b_d)."""
        rate = LEVEL_SHAPE / self.usual_level(dated.x.shape[1]) + dated.rate.sum()
        return max(float(rng.standard_gamma(LEVEL_SHAPE + RATE_SHAPE * dated.rate.size) / rate), SMALLEST)

    def tables(
        self, dated: Dated, scales: np.ndarray, count: np.ndarray, exposure: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """(T, K) tables CRT(n_dk, x_tk) of all rows of a date, and their exposures to x, the sums of log(1 + e / b)."""
        tables, lost = np.empty(count.shape), np.log1p(exposure / (dated.rate * scales)[:, None])
        seat(np.ascontiguousarray(count).ravel(), dated.x[self.step].ravel(), rng, tables.ravel())
        return self.by_date(tables), self.by_date(lost)

    def rescaled(
        self, dated: Dated, scales: np.ndarray, count: np.ndarray, exposure: np.ndarray, rng: np.random.Generator
    ) -> Dated:
        """x, b and the chain's scale times a number, and c divided by it, on a slice with the factor summed out.

        One by one they move slowly, since b_d says how large x is, and x how large b_d (mathematics, equation 17.10).
        """
        chain, e = self.over_dates.chain_of(dated.chain, dated.x.shape), gamma_chain.EPSILON
        x, rate, usual = dated.x[self.step], dated.rate * scales, self.usual_level(dated.x.shape[1])

        def log_density(log_times: np.ndarray) -> np.ndarray:
            times = np.exp(log_times)
            prior = (e - LEVEL_SHAPE) * log_times
            prior -= e / self.mean * chain.scale * times + LEVEL_SHAPE / usual * dated.level / times
            return prior + [log_mass_of_rows(count, each * x, each * rate, exposure) for each in times]

        drawn = draw_on_slices(log_density, np.zeros(1), (-RANGE, RANGE), rng, WIDTH)
        times = float(np.exp(drawn[0]))
        chain = chain._replace(scale=max(chain.scale * times, SMALLEST))
        x, rate = (np.maximum(times * each, SMALLEST) for each in (dated.x, dated.rate))
        return Dated(packed_chain(chain), x, rate, max(dated.level / times, SMALLEST))

    def by_date(self, values: np.ndarray) -> np.ndarray:
        """(T, K) sums over the rows of each date; a date without rows has zeros."""
        found = np.zeros((self.n_steps, values.shape[1]))
        np.add.at(found, self.step, values)
        return found

    def draw_rows(
        self, dated: Dated, scales: np.ndarray, count: np.ndarray, exposure: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """(D, K) Gamma(x_tk + n_dk, b_d + e_dk)."""
        rate = (dated.rate * scales)[:, None] + exposure
        return np.maximum(rng.standard_gamma(dated.x[self.step] + count) / rate, SMALLEST)

    def dated_of(self, hypers: np.ndarray, shape: tuple[int, ...]) -> Dated:
        """Hyperparameters by name."""
        n_rows, k = shape
        end = hypers.size - n_rows - 1
        chain, x, rate = np.split(hypers[:-1], [end - self.n_steps * k, end])
        return Dated(chain, x.reshape(self.n_steps, k), rate, float(hypers[-1]))

    def reported(self, factor: Factor, hypers: np.ndarray) -> Reported:
        """The chain x (C, S, T, K): a component's expected share at a date is x_tk / sum_j x_tj."""
        n_rows, k = factor.shape
        end = hypers.shape[2] - n_rows - 1
        x = hypers[:, :, end - self.n_steps * k : end].reshape(*hypers.shape[:2], self.n_steps, k)
        return {OVER_TIME: ((STEPS, 1), x)}

    def summaries(self, factor: Factor, hypers: np.ndarray) -> list[np.ndarray]:
        """Sums of the chain over components."""
        return [np.array(self.reported(factor, hypers)[OVER_TIME][1]).sum(axis=3)]

    def check_reported(self, name: str, values: np.ndarray) -> None:
        """The chain is positive."""
        check_values(f"must hold positive numbers at {name}", values, (values > 0.0) & (values < np.inf))

    @property
    def stated(self) -> tuple[str, ...]:
        """The dates themselves come with the data."""
        return ("mean", "n_steps")

    def describe(self) -> str:
        """The chain, and rates."""
        chain = f"Gammas whose shapes are a gamma chain over {self.n_steps} steps of time"
        return f"{chain}, with a learned rate for each row (mathematics, section 17)."

    def facts(self) -> dict[str, Any]:
        """Everything except the dates of rows: of these, a digest."""
        digest = hashlib.sha256(np.ascontiguousarray(self.step, dtype=np.int64).data).hexdigest()
        found = {"mean": self.mean, "size": self.size, "n_steps": self.n_steps}
        return {"kind": self.kind, **found, "dates": digest}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """The prior that ``facts`` described, with a single row of the first date, which its reader replaces."""
        return cls(facts["mean"], facts["size"], np.zeros(1, dtype=np.int64), facts["n_steps"])


def log_mass_of_rows(count: np.ndarray, x: np.ndarray, rate: np.ndarray, exposure: np.ndarray) -> float:
    """log p(n | x, b) of counts (D, K) with the rows (D, K) summed out, up to a constant; ``rate`` is (D,)."""
    seen, b = count > 0.0, rate[:, None]
    rising = gammaln(x[seen] + count[seen]) - gammaln(x[seen])
    return float(rising.sum() - (x * np.log1p(exposure / b) + count * np.log(b + exposure)).sum())


def packed(dated: Dated) -> np.ndarray:
    """Hyperparameters as one vector."""
    return np.concatenate([dated.chain, dated.x.ravel(), dated.rate, [dated.level]])


def row_scales(scale: Scale, n_rows: int) -> np.ndarray:
    """(D,) what the rates of rows are multiplied by."""
    found: np.ndarray = np.broadcast_to(np.asarray(scale, dtype=float), (n_rows, 1))[:, 0]
    return found
