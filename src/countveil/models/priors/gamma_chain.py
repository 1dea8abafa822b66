"""Gamma chains: a factor over time whose steps depend on the step before (Schein, Zhou and Wallach 2016)."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import gammaln

from countveil.kernels.dynamics import move_seasons, pass_backwards, pass_forwards, seat
from countveil.kernels.random import SMALLEST
from countveil.laws.counts.slices import draw_on_slices
from countveil.models.priors.prior import Conditional, Factor, Prior, Reported, Scale, check_values

EPSILON = 0.1  # shape and rate of broad gamma priors, as published
TOTAL = 10.0  # gamma_0, the shape of the sum of all sizes nu, as in the published code
IMMIGRATION = 0.02  # the prior mean of epsilon, what enters in each step: without it, what died out never comes back
STEADINESS = 2.0  # standard deviation of log s, around zero
CONCENTRATION, SPREAD = 4.0, 1.0  # the median of c, and the standard deviation of its logarithm
RANGE = 25.0  # how far the logarithm of the scale may be from that of the mean
BOUNDS = np.log(1e-4), np.log(1e6)  # of the logarithm of s
WIDTH = 0.5  # of the first slices
SMOOTH = 0.01  # share of its usual scale at which a chain with a season begins
SHRINKAGE = 0.2  # weight of a flat season there, where the season of the start has weight 1
SUM_TOLERANCE = 1e-6  # of the columns of a transition matrix in a file


class Chain(NamedTuple):
    """A chain's hyperparameters (mathematics, section 17)."""

    transition: np.ndarray  # (K, K) Pi: to a component, from a component; columns sum to one
    sizes: np.ndarray  # (K,) nu
    stay: float  # xi
    rate: float  # beta
    scale: float  # m
    volume: np.ndarray  # (T,) g_t, or (1,) one if steady
    steadiness: float  # s
    seasons: np.ndarray | None = None  # (S, K) psi, of which step t has row t mod S
    concentration: float = 1.0  # c
    immigration: float = IMMIGRATION  # epsilon


class Unscaled(NamedTuple):
    """What the update of a chain is about, with the chain's scale taken out."""

    theta: np.ndarray  # (T, K)
    counts: np.ndarray  # (T, K)
    exposure: np.ndarray  # (T, K) of theta


class Tables(NamedTuple):
    """What the pass backwards leaves."""

    between: np.ndarray  # (K, K) tables of each component (row) that came from each (column)
    first: np.ndarray  # (K,) of the first step
    totals: np.ndarray  # (T, K) counts and the next step's tables
    rate: np.ndarray  # (T,) of the conditional gammas of theta
    zeta: float  # of the first step
    entered: float  # tables that came from no component
    later_zeta: float  # K times the sum of zeta_t over all steps but the first


@dataclass(frozen=True)
class GammaChainPrior(Prior):
    """A factor (T, K) x_tk = m g_t theta_tk with theta_t ~ Gamma(Pi theta_(t-1) + epsilon, 1), theta_0 ~ Gamma(nu, 1).

    Columns of Pi have Dirichlet priors that shrink the model to as few components as it needs: nu_j nu_k off the
    diagonal and xi nu_k on it, with nu_k ~ Gamma(10 / K, beta). Epsilon has an exponential prior. The scale m, whose
    prior is about ``mean``, says how smooth a chain is: steps of theta have variance theta. If not ``steady``, each
    step has a volume of its own, g_t ~ Gamma(s, s). With a ``season`` of S steps, x_tk is multiplied by
    psi_sk ~ Gamma(c, c), s = t mod S (mathematics, section 17).
    """

    mean: float
    steady: bool
    season: int | None = None

    kind: ClassVar[str] = "gamma-chain"
    from_data: ClassVar[tuple[str, ...]] = ("mean",)
    holds_size: ClassVar[bool] = True  # transitions are between expected counts

    def start(self, factor: Factor) -> np.ndarray:
        """Components that mostly stay as they are, at the scale ``mean``."""
        return self.started(*factor.shape)

    def started(self, n_steps: int, n_components: int) -> np.ndarray:
        """Hyperparameters of a chain of this size."""
        transition = np.full((n_components, n_components), 0.2 / n_components)
        transition[np.diag_indices(n_components)] += 0.8
        volume = np.ones(1 if self.steady else n_steps)
        seasons = None if self.season is None else np.ones((self.season, n_components))
        return packed(Chain(transition, np.ones(n_components), 1.0, 1.0, self.mean, volume, 1.0, seasons))

    def begin(self, factor: Factor, value: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """With a season: at the season of the start, smooth, and without any other change over time.

        A chain that begins rough explains the season by components that pass their activity around the year, and does
        not find the factors in hundreds of sweeps. A chain that begins smooth becomes as rough as the data ask for.
        Steps without data are left out, since a start is next to zero there.
        """
        hypers = self.start(factor)
        if self.season is None:
            return value, hypers
        known, season = value[seen], np.flatnonzero(seen) % self.season
        level = np.maximum(known.mean(axis=0), SMALLEST)
        seasons = np.ones((self.season, level.size))
        for s in np.unique(season):
            seasons[s] = known[season == s].mean(axis=0) / level
        seasons += SHRINKAGE
        chain = self.chain_of(hypers, factor.shape)
        chain = chain._replace(scale=SMOOTH * self.mean, seasons=np.maximum(seasons / seasons.mean(axis=0), SMALLEST))
        return np.maximum(in_season(chain, np.tile(level, (len(value), 1))), SMALLEST), packed(chain)

    def draw(
        self, factor: Factor, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """The factor and all hyperparameters."""
        return self.draw_chain(hypers, given, rng)

    def draw_chain(
        self, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tables with theta integrated out, Pi and sizes, theta, then the scale."""
        value, count, exposure = given[1:]
        chain, offset = self.chain_of(hypers, value.shape), offsets(given.scale, len(value))
        unit = units(chain, offset)
        unscaled = Unscaled(np.maximum(value / unit, SMALLEST), count, exposure * unit)
        tables = draw_tables(chain, unscaled, rng)
        chain = draw_immigration(draw_transitions(chain, tables, rng), tables, rng)
        theta = np.empty(value.shape)
        pass_forwards(tables.totals, tables.rate, chain.transition, chain.sizes, chain.immigration, theta, rng)
        known = exposure * offset[:, None]
        chain = self.draw_scale(chain, theta, count, in_season(chain, known), rng)
        chain = draw_seasons(chain, theta, count, known, rng)
        x = theta * units(chain, offset)
        cut = (theta <= SMALLEST) | (x <= SMALLEST)
        x = np.maximum(x, SMALLEST)
        chain = self.draw_scale_given_value(chain, x, cut, offset, rng)
        return x, packed(draw_seasons_given_value(chain, x, cut, offset, rng))

    def draw_scale(
        self, chain: Chain, theta: np.ndarray, count: np.ndarray, exposure: np.ndarray, rng: np.random.Generator
    ) -> Chain:
        """Scale, volumes and their steadiness given theta; exposures are those of scale times volume times theta."""
        counts, sums = count.sum(axis=1), (exposure * theta).sum(axis=1)
        rate = EPSILON / self.mean + (chain.volume * sums).sum()
        scale = max(rng.standard_gamma(EPSILON + counts.sum()) / rate, SMALLEST)
        if self.steady:
            return chain._replace(scale=scale)
        s = chain.steadiness
        volume = np.maximum(rng.standard_gamma(s + counts) / (s + scale * sums), SMALLEST)
        log_s = draw_on_slices(lambda x: log_steadiness(x, volume), np.array([np.log(s)]), BOUNDS, rng, WIDTH)
        return chain._replace(scale=scale, volume=volume, steadiness=float(np.exp(log_s[0])))

    def resized(self, factor: Factor, hypers: np.ndarray, times: float) -> tuple[np.ndarray, float] | None:
        """The scale m, multiplied by the number: theta stays, and with it the density of the factor."""
        chain = self.chain_of(hypers, factor.shape)
        change = EPSILON * np.log(times) - EPSILON / self.mean * chain.scale * (times - 1.0)
        return packed(chain._replace(scale=chain.scale * times)), float(change)

    def draw_scale_given_value(
        self, chain: Chain, value: np.ndarray, cut: np.ndarray, offset: np.ndarray, rng: np.random.Generator
    ) -> Chain:
        """The scale given x = m g theta, on a slice: it moves where the chain is as smooth as x is.

        Given theta it hardly moves, since x would have to. Entries that were ``cut`` stand for all below them.
        """
        x = value / units(chain._replace(scale=1.0), offset)
        shapes = x[:-1] @ chain.transition.T
        middle = np.log(self.mean)

        def log_density(log_m: np.ndarray) -> np.ndarray:
            prior = EPSILON * log_m - EPSILON / self.mean * np.exp(log_m)
            moved = [chain._replace(scale=float(each)) for each in np.exp(log_m)]
            chains = [log_chain(x, cut, shapes, each) for each in moved]
            return np.asarray(prior + chains)

        bounds = middle - RANGE, middle + RANGE
        now = np.clip([np.log(chain.scale)], *bounds)
        return chain._replace(scale=float(np.exp(draw_on_slices(log_density, now, bounds, rng, WIDTH)[0])))

    def chain_of(self, hypers: np.ndarray, shape: tuple[int, ...]) -> Chain:
        """Hyperparameters by name."""
        k = shape[1]
        transition, sizes, rest = np.split(hypers, [k * k, k * k + k])
        stay, rate, scale, steadiness, immigration = (float(each) for each in rest[:5])
        pi, volume = np.ascontiguousarray(transition.reshape(k, k)), rest[5:]
        chain = Chain(pi, sizes.copy(), stay, rate, scale, volume, steadiness, immigration=immigration)
        if self.season is None:
            return chain
        volume, (concentration,), seasons = np.split(volume, [-self.season * k - 1, -self.season * k])
        return chain._replace(volume=volume, seasons=seasons.reshape(-1, k).copy(), concentration=float(concentration))

    def reported(self, factor: Factor, hypers: np.ndarray) -> Reported:
        """Transition matrix, importance nu, immigration, volume m g_t; and if not steady, the usual one, m, and s.

        With a season, also psi of each step and component, in which no step is left out: a season has S steps at most.
        """
        (n_steps, k), lead = factor.shape, hypers.shape[:2]
        if self.season is not None:
            end = hypers.shape[2] - self.season * k
            seasons = hypers[:, :, end:].reshape(*lead, self.season, k)[:, :, np.arange(n_steps) % self.season]
            others = replace(self, season=None).reported(factor, hypers[:, :, : end - 1])
            return others | {"season": ((0, 1), seasons)}
        transition, sizes, rest = np.split(hypers, [k * k, k * k + k], axis=2)
        volume = rest[:, :, 2:3] * rest[:, :, 5:]
        found: Reported = {"transition": ((1, 1), transition.reshape(*lead, k, k)), "importance": ((1,), sizes)}
        found["immigration"] = ((), rest[:, :, 4])
        if self.steady:
            return found | {"volume": ((), volume[:, :, 0])}
        own = {"usual_volume": ((), rest[:, :, 2]), "steadiness": ((), rest[:, :, 3])}
        return found | {"volume": ((0,), volume)} | own

    def check_reported(self, name: str, values: np.ndarray) -> None:
        """Numbers from 0 on, volumes and single ones positive, and the columns of a transition matrix sum to one."""
        finite = (values >= 0.0) & (values < np.inf)
        check_values(f"must hold {name} of finite numbers, 0 or more", values, finite)
        if name == "transition":
            sums = values.sum(axis=2)
            whole = np.abs(sums - 1.0) <= SUM_TOLERANCE
            check_values(f"must hold {name} with columns that sum to 1", sums, whole)
        if values.ndim == 2 or name == "volume":
            check_values(f"must hold positive {name}", values, values > 0.0)

    def describe(self) -> str:
        """Steps, volumes and seasons."""
        steady = "" if self.steady else ", and every step has a volume of its own"
        season = "" if self.season is None else f", times a gamma factor for each of {self.season} seasons"
        return f"A gamma chain: each step depends on the step before{steady}{season} (mathematics, section 17)."

    def facts(self) -> dict[str, Any]:
        """The mean, whether it is steady, and the steps of a season, if there is one."""
        found = {"kind": self.kind, "mean": self.mean, "steady": self.steady}
        return found if self.season is None else found | {"season": self.season}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """The prior that ``facts`` described."""
        return cls(facts["mean"], facts["steady"], facts.get("season"))


def packed(chain: Chain) -> np.ndarray:
    """Hyperparameters as one vector."""
    numbers = [chain.stay, chain.rate, chain.scale, chain.steadiness, chain.immigration]
    found = np.concatenate([chain.transition.ravel(), chain.sizes, numbers, chain.volume])
    if chain.seasons is None:
        return found
    return np.concatenate([found, [chain.concentration], chain.seasons.ravel()])


def units(chain: Chain, offset: np.ndarray) -> np.ndarray:
    """(T, 1) what theta is multiplied by, or (T, K) with a season."""
    return in_season(chain, (chain.scale * chain.volume * offset)[:, None])


def in_season(chain: Chain, values: np.ndarray) -> np.ndarray:
    """Numbers of steps (T, ...), each multiplied by its season."""
    if chain.seasons is None:
        return values
    found: np.ndarray = values * chain.seasons[np.arange(len(values)) % len(chain.seasons)]
    return found


def draw_seasons(
    chain: Chain, theta: np.ndarray, count: np.ndarray, exposure: np.ndarray, rng: np.random.Generator
) -> Chain:
    """psi given theta, then c on a slice (mathematics, equation 17.13); exposures (T, K) are those of m g theta psi."""
    if chain.seasons is None:
        return chain
    c, n_seasons = chain.concentration, len(chain.seasons)
    rates = exposure * theta * (chain.scale * chain.volume)[:, None]
    counts, sums = (np.array([each[s::n_seasons].sum(axis=0) for s in range(n_seasons)]) for each in (count, rates))
    seasons = np.maximum(rng.standard_gamma(c + counts) / (c + sums), SMALLEST)
    log_c = draw_on_slices(lambda x: log_concentration(x, seasons), np.array([np.log(c)]), BOUNDS, rng, WIDTH)
    return chain._replace(seasons=seasons, concentration=float(np.exp(log_c[0])))


def draw_seasons_given_value(
    chain: Chain, value: np.ndarray, cut: np.ndarray, offset: np.ndarray, rng: np.random.Generator
) -> Chain:
    """psi given x = m g psi theta: it moves where the chain is as smooth as x is, as the scale does."""
    if chain.seasons is None:
        return chain
    theta, seasons = value / units(chain, offset), chain.seasons.copy()
    move_seasons(theta, cut, chain.transition, chain.sizes, chain.immigration, chain.concentration, seasons, rng)
    return chain._replace(seasons=np.maximum(seasons, SMALLEST))


def offsets(scale: Scale, n_steps: int) -> np.ndarray:
    """(T,) known offsets of the steps, from what prior rates are multiplied by."""
    found: np.ndarray = np.broadcast_to(1.0 / np.asarray(scale, dtype=float), (n_steps, 1))[:, 0]
    return found


def draw_tables(chain: Chain, given: Unscaled, rng: np.random.Generator) -> Tables:
    """Counts made whole to one exposure E_t per step, and the pass backwards over them (mathematics, equation 17.3).

    Exposures differ from component to component, by the cells whose reports are not positive. Counts
    n'_tk ~ Poisson((E_t - e_tk) theta_tk) make up for what they lack to the largest (mathematics, equation 17.2).
    """
    n_steps, k = given.theta.shape
    whole_exposure = given.exposure.max(axis=1)
    lack = whole_exposure[:, None] - given.exposure
    whole = given.counts + rng.poisson(lack * given.theta)
    zeta, rate = np.zeros(n_steps + 1), np.empty(n_steps)
    for t in range(n_steps - 1, -1, -1):
        rate[t] = 1.0 + whole_exposure[t] + zeta[t + 1]
        zeta[t] = np.log1p(whole_exposure[t] + zeta[t + 1])
    between, first, totals = np.zeros((k, k)), np.zeros(k), np.zeros((n_steps, k))
    pi, entering = chain.transition, chain.immigration
    entered = pass_backwards(whole, given.theta, pi, chain.sizes, entering, between, first, totals, rng)
    return Tables(between, first, totals, rate, float(zeta[0]), entered, k * float(zeta[1:].sum()))


def draw_immigration(chain: Chain, tables: Tables, rng: np.random.Generator) -> Chain:
    """epsilon given the tables, with theta integrated out, under an exponential prior (mathematics, equation 17.3).

    In each component and step but the first, the number of tables that entered is Poisson(epsilon zeta_t).
    """
    drawn = rng.standard_gamma(1.0 + tables.entered) / (1.0 / IMMIGRATION + tables.later_zeta)
    return chain._replace(immigration=max(float(drawn), SMALLEST))


def draw_transitions(chain: Chain, tables: Tables, rng: np.random.Generator) -> Chain:
    """Pi, nu, xi and beta given the tables, with theta integrated out (mathematics, equations 17.4 and 17.5)."""
    n = len(chain.sizes)
    prior = dirichlet_of(chain.sizes, chain.stay)
    arrived = tables.between.sum(axis=0)
    miss = np.zeros(n)  # -log(1 - q_k)
    seen = arrived > 0
    if seen.any():
        miss[seen] = minus_log_one_minus_beta(arrived[seen], prior.sum(axis=0)[seen], rng)
    origins = np.empty((n, n))
    seat(tables.between.ravel(), prior.ravel(), rng, origins.ravel())
    own = np.diagonal(origins)
    rate = max(rng.standard_gamma(EPSILON + TOTAL) / (EPSILON + chain.sizes.sum()), SMALLEST)
    stay = rng.standard_gamma(EPSILON + own.sum()) / (EPSILON + chain.sizes @ miss)
    stay = max(stay, SMALLEST)
    sizes = chain.sizes.copy()
    counted = origins.sum(axis=0) + origins.sum(axis=1) - own + tables.first
    for k in range(n):
        others = sizes.sum() - sizes[k]
        exposure = miss[k] * (stay + others) + (miss @ sizes - miss[k] * sizes[k]) + tables.zeta
        sizes[k] = max(rng.standard_gamma(TOTAL / n + counted[k]) / (rate + exposure), SMALLEST)
    shares = np.maximum(rng.standard_gamma(dirichlet_of(sizes, stay) + tables.between), SMALLEST)
    return chain._replace(transition=shares / shares.sum(axis=0), sizes=sizes, stay=stay, rate=rate)


def dirichlet_of(sizes: np.ndarray, stay: float) -> np.ndarray:
    """(K, K) parameters of the columns of Pi: nu_j nu_k, and xi nu_k where j = k (mathematics, equation 17.4)."""
    found = np.outer(sizes, sizes)
    found[np.diag_indices(len(sizes))] = stay * sizes
    return np.maximum(found, SMALLEST)


def minus_log_one_minus_beta(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """-log(1 - q) for q ~ Beta(a, b), without the loss of digits where b is small: 1 - q may be tiny.

    1 - q ~ Beta(b, a) = G_b / (G_b + G_a), and log G_b = log G_(b+1) + log(U) / b.
    """
    log_b = np.log(rng.standard_gamma(b + 1.0)) + np.log1p(-rng.random(b.shape)) / b
    log_a = np.log(rng.standard_gamma(a + 1.0)) + np.log1p(-rng.random(a.shape)) / a
    found: np.ndarray = np.logaddexp(log_a - log_b, 0.0)
    return found


def log_steadiness(log_s: np.ndarray, volume: np.ndarray) -> np.ndarray:
    """(n,) log-densities of log s given volumes g_t ~ Gamma(s, s), up to a constant."""
    s, logs, total = np.exp(log_s), np.log(volume).sum(), volume.sum()
    found: np.ndarray = -0.5 * (log_s / STEADINESS) ** 2
    return found + volume.size * (s * log_s - gammaln(s)) + (s - 1.0) * logs - s * total


def log_concentration(log_c: np.ndarray, seasons: np.ndarray) -> np.ndarray:
    """(n,) log-densities of log c given psi ~ Gamma(c, c), up to a constant: as of the steadiness, under its prior."""
    prior = -0.5 * ((log_c - np.log(CONCENTRATION)) / SPREAD) ** 2
    found: np.ndarray = prior + 0.5 * (log_c / STEADINESS) ** 2 + log_steadiness(log_c, seasons)
    return found


def log_chain(x: np.ndarray, cut: np.ndarray, shapes: np.ndarray, chain: Chain) -> float:
    """log p(x) of theta = x / m in a chain, up to a constant; shapes (T - 1, K) are m Pi theta of the steps before.

    This is (17.8). An entry that was ``cut`` at the smallest number stands for all below (mathematics, equation 18.4).
    """
    a = np.maximum(np.concatenate([chain.sizes[None], shapes / chain.scale + chain.immigration]), SMALLEST)
    log_theta = np.log(x) - np.log(chain.scale)
    found = a * log_theta - gammaln(a) - np.where(cut, np.log(a), x / chain.scale)
    return float(found.sum())
