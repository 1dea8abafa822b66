"""Every theorem and proposition of the papers, checked numerically."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import gammaln, ive, roots_laguerre
from scipy.stats import poisson

from countveil.distributions import Bessel, Skellam, TwoSidedGeometric
from countveil.laws.noise.two_sided_geometric import formulas
from papers import style
from papers.bench import Bench, Study
from papers.claims import Verdict, verdict

ABOUT = "the theorems and propositions of all papers, numerically"
NEEDS = ""
ROUNDING = 1e-9  # of doubles in sums of a few hundred terms
ALPHAS = (0.1, np.exp(-1.0), 0.7)
NODES = 150  # of the quadrature: enough for sums correct to ROUNDING


class Plan(NamedTuple):
    """How many random cases."""

    pairs: int
    grid: int


FULL, QUICK = Plan(20000, 400), Plan(2000, 100)


class Check(NamedTuple):
    """A statement with the worst deviation from it that was found."""

    statement: str
    cases: int
    worst: float
    allowed: float

    @property
    def holds(self) -> bool:
        """Whether nothing deviates by more than is allowed."""
        return bool(self.worst <= self.allowed)


def run(bench: Bench, plan: Plan) -> Study:
    """All checks, and three pictures of them."""
    losses = privacy_losses(bench.rng(1), plan.pairs)
    orders, arguments, mean, mode = bessel_moments(plan.grid)
    checks = [
        privacy_bound(losses), privacy_is_tight(losses), randomised(1.0), bessel_and_skellam(2.0, plan.grid // 4),
        exponential_family(plan.grid // 4), optimal_is_bessel(bench.rng(2), plan.grid // 4),
        mean_near_mode(mean, mode), tight_bounds(mean, mode), neighbours(mean, mode),
        ratio_bounds(orders, arguments, mean),
    ]  # fmt: skip
    misprints = [
        ("alpha/(1-alpha) in the randomised Skellam theorem, read as a rate", randomised_by_rate()),
        ("2 sqrt(2 l1 l2) in the Skellam-Bessel theorem", bessel_and_skellam(np.sqrt(8.0), plan.grid // 4)),
    ]
    rows = [each._asdict() | {"holds": each.holds} for each in checks]
    rows += [each._asdict() | {"statement": f"as printed: {name}", "holds": each.holds} for name, each in misprints]
    return Study(pd.DataFrame(rows), verdicts(checks, misprints), draw(losses, mean, mode))


def verdicts(checks: list[Check], misprints: list[tuple[str, Check]]) -> list[Verdict]:
    """One for each statement; a formula that is misprinted is judged as printed."""
    found = [
        verdict(each.statement, each.holds, f"{each.cases:,} cases; worst {each.worst:.2g}, allowed {each.allowed:.2g}")
        for each in checks
    ]
    found += [
        verdict(
            f"As printed: {name}", each.holds, f"off by {each.worst:.2g}: {'as is' if each.holds else 'a misprint'}"
        )
        for name, each in misprints
    ]
    return found


def privacy_losses(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Random pairs of observations at L1 distances 1 to 10: the largest log ratio of an output's probabilities.

    Outputs are random, and the first observation itself, where the loss is the largest.
    """
    rows = []
    for _ in range(n):
        alpha, d, distance = float(rng.choice(ALPHAS)), int(rng.integers(1, 8)), int(rng.integers(1, 11))
        y = rng.integers(0, 30, d)
        other = y + rng.multinomial(distance, np.full(d, 1.0 / d)) * rng.choice([-1, 1], d)
        outputs = np.vstack([y, y[None] + rng.integers(-20, 21, (20, d))])
        law = TwoSidedGeometric(alpha)
        loss = law.logpmf(outputs - y).sum(axis=1) - law.logpmf(outputs - other).sum(axis=1)
        rows.append((alpha, distance, float(np.abs(loss).max()), distance * np.log(1.0 / alpha)))
    return pd.DataFrame(rows, columns=["alpha", "distance", "loss", "epsilon"])


def privacy_bound(losses: pd.DataFrame) -> Check:
    """Whether no loss exceeds N ln(1/alpha)."""
    over = (losses["loss"] / losses["epsilon"] - 1.0).max()
    return Check("The geometric mechanism is (N, N ln(1/alpha))-private, for every N", len(losses), over, ROUNDING)


def privacy_is_tight(losses: pd.DataFrame) -> Check:
    """Whether every loss reaches it, at the output that equals an observation."""
    under = (1.0 - losses["loss"] / losses["epsilon"]).max()
    return Check(
        "... and its epsilon is the smallest possible (not claimed in the papers)", len(losses), under, ROUNDING
    )


def skellam_mixture(scale: float, k: np.ndarray) -> np.ndarray:
    """P(k) of Skellam(l1, l2) with exponential l1, l2 of mean scale, by Gauss-Laguerre quadrature."""
    nodes, weights = roots_laguerre(NODES)
    keep = weights > 0.0
    rates = nodes[keep] / (1.0 + 1.0 / scale)  # exp(-l) of the Skellam law goes into the weight
    one, two = np.meshgrid(rates, rates)
    log_weight = np.log(weights[keep])
    log_mass = log_weight[:, None] + log_weight[None, :] - 2.0 * np.log(scale + 1.0) + one + two
    return np.array([np.exp(Skellam(one, two).logpmf(i) + log_mass).sum() for i in k])


def randomised(power: float) -> Check:
    """Whether exponential rates of mean (alpha/(1-alpha))^power make Skellam noise two-sided geometric."""
    k, worst = np.arange(-15, 16), 0.0
    for alpha in ALPHAS:
        found = skellam_mixture(formulas.mean_over_positive(alpha) ** power, k)
        worst = max(worst, float(np.abs(found - TwoSidedGeometric(alpha).pmf(k)).max()))
    statement = "Skellam noise with exponential rates of mean alpha/(1-alpha) is two-sided geometric noise"
    return Check(statement, len(ALPHAS) * len(k), worst, ROUNDING)


def randomised_by_rate() -> Check:
    """The same with alpha/(1-alpha) as the exponentials' rate."""
    return randomised(-1.0)


def bessel_and_skellam(factor: float, n: int) -> Check:
    """Whether P(y1) P(y2) = Bessel(min; |difference|, factor sqrt(l1 l2)) Skellam(difference)."""
    rates = np.geomspace(0.05, 40.0, max(4, int(np.sqrt(n))))
    worst, cases, y = 0.0, 0, np.arange(30)
    one, two = np.meshgrid(y, y)
    for l1 in rates:
        for l2 in rates:
            joint = poisson.logpmf(one, l1) + poisson.logpmf(two, l2)
            other = Bessel(np.abs(one - two), factor * np.sqrt(l1 * l2)).logpmf(np.minimum(one, two))
            other = other + Skellam(l1, l2).logpmf(one - two)
            worst, cases = max(worst, float(np.abs(np.exp(joint) - np.exp(other)).max())), cases + joint.size
    statement = "The difference of two Poisson counts is Skellam, and their minimum given it Bessel with 2 sqrt(l1 l2)"
    return Check(statement, cases, worst, ROUNDING)


def exponential_family(n: int) -> Check:
    """Whether log Bessel(m) = log h(m) + (2m + nu) log(a/2) - log I_nu(a)."""
    m, worst, cases = np.arange(60), 0.0, 0
    for order in (0, 1, 2, 5, 20, 60):
        for a in np.geomspace(0.05, 80.0, max(4, n)):
            log_norm = np.log(ive(order, a)) + a
            if not np.isfinite(log_norm):
                continue
            form = -gammaln(m + 1.0) - gammaln(m + order + 1.0) + (2 * m + order) * np.log(a / 2.0) - log_norm
            worst = max(worst, float(np.abs(np.exp(form) - Bessel(order, a).pmf(m)).max()))
            cases += m.size
    statement = "For a fixed order the Bessel law is an exponential family with statistic 2m + nu and log(a/2)"
    return Check(statement, cases, worst, ROUNDING)


def optimal_is_bessel(rng: np.random.Generator, n: int) -> Check:
    """Whether exp E log P(m, ...) is Bessel(|r|, 2 sqrt(G[l2] G[l1 + mu])), for random laws of the rates."""
    m, worst = np.arange(400), 0.0
    for _ in range(n):
        report = int(rng.integers(-20, 21))
        plus, minus = rng.gamma(rng.uniform(0.5, 5.0), 2.0, (2, 50))  # 50 equally likely values each
        up, down = m + max(report, 0), m + max(-report, 0)
        log_q = sum(poisson.logpmf(up, a) for a in plus) / 50 + sum(poisson.logpmf(down, b) for b in minus) / 50
        q = np.exp(log_q - log_q.max())
        argument = 2.0 * np.exp(0.5 * (np.log(plus).mean() + np.log(minus).mean()))
        worst = max(worst, float(np.abs(q / q.sum() - Bessel(abs(report), argument).pmf(m)).max()))
    return Check("The optimal factor of m in mean-field inference is a Bessel law", n * m.size, worst, ROUNDING)


def bessel_moments(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Orders, arguments, means and modes on a grid, (orders, arguments)."""
    orders = np.unique(np.geomspace(1, 1000, n).astype(np.int64) - 1)[:, None]
    arguments = np.geomspace(0.01, 3000.0, 5 * n)[None, :]
    law = Bessel(orders, arguments)
    return orders, arguments, law.mean(), law.mode()


def mean_near_mode(mean: np.ndarray, mode: np.ndarray) -> Check:
    """|mean - mode| <= 1."""
    worst = float(np.abs(mean - mode).max())
    return Check("Mean and mode of a Bessel law are at most 1 apart", mean.size, worst, 1.0)


def tight_bounds(mean: np.ndarray, mode: np.ndarray) -> Check:
    """-1/2 <= mean - mode < 1, as the proof has it; the deviation beyond these."""
    beyond = max(float((mode - mean).max()) - 0.5, float((mean - mode).max()) - 1.0)
    statement = "... and the proof's closer bounds: the mean is less than 1 above the mode, at most 1/2 below"
    return Check(statement, mean.size, beyond, 0.0)


def neighbours(mean: np.ndarray, mode: np.ndarray) -> Check:
    """Whether the mode is the mean rounded down or up; the share of cases in which it is neither."""
    neither = (mode != np.floor(mean)) & (mode != np.ceil(mean))
    return Check("... the mode is one of the two whole numbers next to the mean", mean.size, float(neither.mean()), 0.0)


def ratio_bounds(orders: np.ndarray, arguments: np.ndarray, mean: np.ndarray) -> Check:
    """Devroye's bounds on the mean, from which the proof starts; relative deviation."""
    upper = (np.sqrt(arguments**2 + orders**2) - orders) / 2.0
    lower = (np.sqrt(arguments**2 + (orders + 1.0) ** 2) - (orders + 1.0)) / 2.0
    lower, upper = (arguments**2 / 4.0 / (bound + shift) for bound, shift in ((lower, orders + 1.0), (upper, orders)))
    beyond = max(float((mean / upper - 1.0).max()), float((1.0 - mean / lower).max()))
    return Check("... the bounds on the mean that its proof starts from", mean.size, beyond, ROUNDING)


def draw(losses: pd.DataFrame, mean: np.ndarray, mode: np.ndarray) -> Any:
    """Privacy loss against its bound; randomised Skellam against geometric; mean minus mode of Bessel laws."""
    drawn = style.figure(12.0, 3.6)
    first, second, third = drawn.subplots(1, 3)
    colours = ("#0072B2", "#D55E00", "#009E73")
    distances = np.arange(1, 11)
    for alpha, colour, marker in zip(ALPHAS, colours, "o^D", strict=True):
        rows = losses[losses["alpha"] == alpha].groupby("distance")["loss"].max()
        first.plot(rows.index, rows, marker, color=colour, label=f"alpha = {alpha:.2f}")
        first.plot(distances, distances * np.log(1.0 / alpha), color=colour, linewidth=1)
        k = np.arange(-12, 13)
        second.semilogy(k, TwoSidedGeometric(alpha).pmf(k), color=colour, linewidth=1)
        second.semilogy(k, skellam_mixture(formulas.mean_over_positive(alpha), k), marker, color=colour, markersize=5)
    style.tidy(
        first, "L1 distance N of two observations", "largest log ratio found", "privacy loss; lines: N ln(1/alpha)"
    )
    style.tidy(second, "noise", "probability", "exponentially randomised Skellam;\nlines: two-sided geometric")
    shown = mean.ravel() < 60.0
    third.plot(mean.ravel()[shown], (mean - mode).ravel()[shown], ".", color="#0072B2", markersize=1.5, rasterized=True)
    for bound in (-0.5, 1.0):
        third.axhline(bound, color="black", linestyle="--", linewidth=1)
    style.tidy(third, "mean of a Bessel law", "mean minus mode", "Bessel laws; dashed: the proof's bounds")
    style.legend(drawn)
    return drawn
