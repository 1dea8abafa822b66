"""Does countveil plan-trend predict? Its probabilities beside those of simulated studies in waves.

python benchmarks/trend.py                              # the table of benchmarks/results
python benchmarks/trend.py --models 20                  # what dynamic models make of changes planned to 80%

Every simulated study draws counts and noise, adds up the change of each person (of the least squares line through
the waves), and takes the interval from how these changes differ between people, as an analyst would. "Cut at zero":
reports of 0 count as the mean of what was cut. "No change": how often one is seen that is not there, which should be
5%.
"""

import argparse
import math
from statistics import NormalDist

import numpy as np

import countveil as cv
from countveil.data.simulation import simulate_release
from countveil.fit.component_tables import component_counts
from countveil.inference.matching import unweighted
from countveil.planning import Trend, plan_trend
from countveil.privacy import PrivacyLevel

ONE_TO_ONE, TEN_TO_ONE = PrivacyLevel(1, 1), PrivacyLevel(1, 10)
CASES = {
    "400 people": Trend(ONE_TO_ONE, 400, 3, 2.0, 0.2),
    "a decrease": Trend(ONE_TO_ONE, 400, 3, 2.0, -0.2),
    "10 waves": Trend(ONE_TO_ONE, 150, 10, 2.0, 0.03, per_wave=True),
    "strong noise": Trend(TEN_TO_ONE, 1000, 3, 5.0, 0.3),
    "sum of 10 counts": Trend(ONE_TO_ONE, 400, 3, 20.0, 0.06, counts=10),
    "in bursts": Trend(ONE_TO_ONE, 400, 3, 2.0, 0.2, variance_over_mean=3.0),
    "people differ": Trend(ONE_TO_ONE, 400, 3, 2.0, 0.2, spread=1.0),
    "100 people": Trend(ONE_TO_ONE, 100, 3, 2.0, 0.4),
    "30 people": Trend(ONE_TO_ONE, 30, 3, 2.0, 0.75),
    "10 people": Trend(ONE_TO_ONE, 10, 3, 2.0, 1.4),
    "a total of 20": Trend(ONE_TO_ONE, 400, 3, 0.05, 4.0),
    "a total of 20, little noise": Trend(PrivacyLevel(5, 1), 400, 3, 0.05, 1.0),
    "a total of 6, little noise": Trend(PrivacyLevel(5, 1), 120, 3, 0.05, 2.0),
    "a total of 1, little noise": Trend(PrivacyLevel(5, 1), 20, 3, 0.05, 6.0),
    "400 people, strong bursts": Trend(ONE_TO_ONE, 400, 3, 2.0, 0.5, variance_over_mean=10.0),
    "100 people, strong bursts": Trend(ONE_TO_ONE, 100, 3, 2.0, 1.0, variance_over_mean=10.0),
    "30 people, strong bursts": Trend(ONE_TO_ONE, 30, 3, 2.0, 2.0, variance_over_mean=10.0),
    "100 people differ much": Trend(ONE_TO_ONE, 100, 3, 2.0, 0.4, spread=2.0),
    "30 people differ much": Trend(ONE_TO_ONE, 30, 3, 2.0, 0.8, spread=2.0),
}


def changes(trend: Trend, studies: int, truncate: bool, rng: np.random.Generator) -> np.ndarray:
    """(studies, P) the change of each person's reports, from first to last wave, of the line through them."""
    shape = (studies * trend.people, trend.waves)
    means = np.broadcast_to(trend.means, shape)
    if trend.spread:
        means = means * rng.gamma(trend.spread**-2, trend.spread**2, (shape[0], 1))
    excess = trend.variance_over_mean - 1.0
    if excess:
        means = rng.gamma(means / excess, excess)
    counts = np.zeros((*shape, trend.counts), dtype=np.int64)
    counts[...] = rng.poisson(means[..., None] / trend.counts, counts.shape)
    release = simulate_release(counts.reshape(shape[0], -1), trend.level, rng, truncate=truncate)
    reports = release.reports.astype(float)
    if truncate:
        reports[reports == 0.0] = -1.0 / math.expm1(float(trend.level.rate))  # the mean of a report that was cut
    sums = reports.reshape(counts.shape).sum(axis=2)
    steps = np.arange(trend.waves) - (trend.waves - 1) / 2
    return (sums @ steps * (trend.waves - 1) / (steps @ steps)).reshape(studies, trend.people)


def seen(each: np.ndarray, sign: float, interval: float) -> float:
    """The share of studies in whose interval of the total change all is on this side of zero."""
    z = NormalDist().inv_cdf((1 + interval) / 2)
    error = each.std(axis=1, ddof=1) * math.sqrt(each.shape[1])
    return float(np.mean(sign * each.sum(axis=1) > z * error))


def planned_change(trend: Trend) -> float:
    """The increase that is seen with a probability of 80%."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        enough = plan_trend(trend._replace(change=middle)).probability >= 0.8
        low, high = (low, middle) if enough else (middle, high)
    return high


def modelled(trend: Trend, n_words: int, seed: int) -> tuple[float, bool, bool]:
    """Of one study in which one word's rates change: the share of the change that a ``DynamicModel`` shows, whether its
    90% interval holds the change, and whether it excludes zero."""
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.ones(3), trend.people) @ rng.gamma(1.0, 1.0, (3, n_words))
    rates *= trend.mean / rates.mean(axis=0)
    waves = np.repeat(rates[:, None], trend.waves, axis=1)
    waves[:, :, 0] *= trend.means / trend.mean
    counts = rng.poisson(waves)
    release = simulate_release(counts.reshape(trend.people, -1), trend.level, rng, truncate=False)
    data = cv.Reports(release.reports.reshape(counts.shape), trend.level.mechanism, simulated=True)
    fit = cv.DynamicModel(
        4, modes=["person", "wave", "word"], time="wave", chains=2, tune=300, draws=300, seed=seed, progress=False
    ).fit(data)
    tree, model, layout = fit._fitted()
    axes = {layout.dims[axis]: axis for axis in model.spec.output}
    sums = component_counts(unweighted(tree), model, layout, axes["wave"] + axes["word"])
    change, true = sums[:, -1, 0] - sums[:, 0, 0], np.ptp(waves[:, [0, -1], 0].sum(axis=0))
    lower, upper = np.quantile(change, [0.05, 0.95])
    return float(change.mean() / true), bool(lower <= true <= upper), bool(lower > 0.0)


def main() -> None:
    """Print a row for each case, or what models make of a planned change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--models", type=int, default=0)
    options = parser.parse_args()
    if options.models:
        asked = Trend(ONE_TO_ONE, 100, 3, 2.0, 1.0)
        asked = asked._replace(change=planned_change(asked))
        shown, held, positive = np.mean([modelled(asked, 10, seed) for seed in range(options.models)], axis=0)
        print(f"{options.models} studies, 100 people, 3 waves, 10 words, {asked.change:+.0%} of one of them: ", end="")
        print(f"shown {shown:.2f} of the change; held by {held:.0%} of the intervals; {positive:.0%} exclude zero")
        return
    print("| | N:epsilon | people, waves | per person | planned | simulated | cut at zero | no change |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, trend in CASES.items():
        rng, sign = np.random.default_rng(1), math.copysign(1.0, trend.change)
        signed, cut, none = (
            np.mean(
                [seen(changes(*case, rng), sign, 0.9) for case in [(asked, 100, truncate)] * (options.studies // 100)]
            )
            for asked, truncate in ((trend, False), (trend, True), (trend._replace(change=0.0), False))
        )
        print(
            f"| {name} | {trend.level.spelt()} | {trend.people}, {trend.waves} | {trend.means[0]:.3g} to "
            f"{trend.means[-1]:.3g} | {plan_trend(trend).probability:.1%} | {signed:.1%} | {cut:.1%} | {none:.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
