"""Two-sided geometric noise as Skellam noise with exponentially distributed rates: the preprint's figure 6."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chisquare

from countveil.distributions import Skellam, TwoSidedGeometric
from countveil.laws.noise.two_sided_geometric import formulas
from papers import style
from papers.bench import Bench, Study
from papers.claims import Verdict, verdict

ABOUT = "two-sided geometric noise as exponentially randomised Skellam noise"
NEEDS = ""
RATES = ((1.0, 1.0), (5.0, 1.0), (2.0, 8.0))
ALPHAS = (0.3, 0.6, 0.9)
FALSE_ALARM = 1e-4  # for all chi-square tests together
MIN_EXPECTED = 20  # draws in a cell of a test


class Plan(NamedTuple):
    """Draws for each noise level."""

    draws: int


FULL, QUICK = Plan(2_000_000), Plan(100_000)


def run(bench: Bench, plan: Plan) -> Study:
    """Draw noise through random rates, test it against the closed form, and compare tails."""
    rows, drawn = [], {}
    for place, alpha in enumerate(ALPHAS):
        rng = bench.rng(place)
        rates = rng.exponential(formulas.mean_over_positive(alpha), (2, plan.draws))
        noise = rng.poisson(rates[0]) - rng.poisson(rates[1])
        drawn[alpha] = noise
        rows.append(
            {
                "alpha": alpha, "draws": plan.draws, "p_value": fit_p_value(noise, alpha),
                "kurtosis": geometric_kurtosis(alpha), "kurtosis_of_skellam": skellam_kurtosis(alpha),
                "tail": float(TwoSidedGeometric(alpha).sf(far(alpha))),
                "tail_of_skellam": float(same_variance(alpha).sf(far(alpha))),
            }
        )  # fmt: skip
    table = pd.DataFrame(rows)
    return Study(table, verdicts(table), draw(drawn))


def same_variance(alpha: float) -> Skellam:
    """The symmetric Skellam law with the variance of two-sided geometric noise."""
    half = 0.5 * formulas.variance(alpha)
    return Skellam(half, half)


def far(alpha: float) -> int:
    """Five standard deviations."""
    return int(np.ceil(5.0 * TwoSidedGeometric(alpha).std()))


def geometric_kurtosis(alpha: float) -> float:
    """Excess kurtosis of two-sided geometric noise: 3 + (1 - alpha)^2 / (2 alpha)."""
    return 3.0 + 1.0 / formulas.variance(alpha)


def skellam_kurtosis(alpha: float) -> float:
    """Excess kurtosis of the Skellam law of the same variance: one over it."""
    return float(1.0 / same_variance(alpha).var())


def fit_p_value(noise: np.ndarray, alpha: float) -> float:
    """Chi-square test of draws against two-sided geometric noise; cells with few expected draws are pooled."""
    law, reach = TwoSidedGeometric(alpha), 0
    while law.pmf(reach + 1) * noise.size >= MIN_EXPECTED and law.sf(reach + 1) * noise.size >= MIN_EXPECTED:
        reach += 1
    k = np.arange(-reach, reach + 1)
    clipped = np.clip(noise, -reach - 1, reach + 1)
    observed = np.array([(clipped == i).sum() for i in range(-reach - 1, reach + 2)])
    expected = noise.size * np.concatenate([[law.cdf(-reach - 1)], law.pmf(k), [law.sf(reach)]])
    return float(chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """Three claims of the figure's caption."""
    skewed = Skellam(5.0, 1.0)
    k = np.arange(0, 40)
    lopsided = float(np.abs(skewed.pmf(k) - skewed.pmf(-k)).max())
    steps = [np.diff(TwoSidedGeometric(a).logpmf(k)) - np.log(a) for a in ALPHAS]
    laplace = max(float(np.abs(step).max()) for step in steps)
    least = float(table["p_value"].min())
    p_values = ", ".join(f"{row.alpha:g}: {row.p_value:.2g}" for row in table.itertuples())
    tails = ", ".join(
        f"alpha {row.alpha:g}: {row.tail:.1e} against {row.tail_of_skellam:.1e}" for row in table.itertuples()
    )
    return [
        verdict(
            "Skellam noise with exponentially distributed rates is two-sided geometric noise",
            least > FALSE_ALARM / len(table),
            f"{int(table['draws'].iloc[0]):,} draws per level; chi-square p-values by alpha {p_values}",
        ),
        verdict(
            "With fixed rates Skellam noise can be lopsided and centred away from zero; the geometric is neither",
            lopsided > 0.1 and float(skewed.mean()) != 0.0,
            f"Skellam(5, 1): mean {float(skewed.mean()):g}, P(k) and P(-k) up to {lopsided:.2f} apart",
        ),
        verdict(
            "Two-sided geometric noise has heavy tails, heavier than Skellam noise of the same variance",
            bool((table["tail"] > table["tail_of_skellam"]).all()),
            f"P(noise > 5 standard deviations) {tails}",
        ),
        verdict(
            "It is the Laplace law on whole numbers: every step away from zero has the same factor alpha",
            laplace < 1e-9,
            f"log steps equal log alpha to {laplace:.1e}",
        ),
    ]  # fmt: skip


def draw(drawn: dict[float, np.ndarray]) -> Any:
    """Skellam laws with fixed rates, and two-sided geometric laws with the draws that random rates gave."""
    figure = style.figure(10.0, 3.8)
    left, right = figure.subplots(1, 2)
    look = list(zip(("#0072B2", "#D55E00", "#009E73"), "o^D", strict=True))
    k = np.arange(-15, 16)
    for (one, two), (colour, marker) in zip(RATES, look, strict=True):
        left.plot(k, Skellam(one, two).pmf(k), marker=marker, color=colour, markersize=4, linewidth=1,
                  label=f"rates {one:g}, {two:g}")  # fmt: skip
    for (alpha, noise), (colour, marker) in zip(drawn.items(), look, strict=True):
        right.plot(k, TwoSidedGeometric(alpha).pmf(k), color=colour, linewidth=1)
        share = [(noise == i).mean() for i in k]
        right.plot(k, share, marker, color=colour, markersize=4, label=f"alpha = {alpha:g}")
    style.tidy(left, "noise", "probability", "Skellam laws with fixed rates")
    style.tidy(right, "noise", "probability",
               "markers: draws of Skellam noise with exponential rates\nlines: two-sided geometric laws")  # fmt: skip
    for axes in (left, right):
        axes.axvline(0, color="#aaaaaa", linewidth=0.8, zorder=0)
        axes.legend(frameon=False, fontsize=8)
    return figure
