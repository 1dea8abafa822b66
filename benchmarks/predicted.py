"""Predicted against true counts under both likelihoods.

python benchmarks/predicted.py bursty-counts.png

395 Reuters stories are reported at epsilon/N = 1 with seeded noise, and 20 topics are fitted by one chain. On the left,
for cells with each true count: the median and the middle half of the counts that are predicted given the reports. On
the right, for cells with each report: how often the true count lies in its 90% interval.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np

import countveil as cv
from countveil.experiments.reuters import load_reuters

FITS = {"Poisson": ("poisson", "#b2531f"), "negative binomial": ("negative-binomial", "#1f5fb2")}
MOST = 12


def main():
    counts, rng, alpha = load_reuters().counts, np.random.default_rng(1), np.exp(-1.0)
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    reports = counts + noise[0] - noise[1]
    data = cv.PrivatizedCounts(reports, alpha)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    true = np.arange(MOST + 1)
    left.plot(true, true, color="0.6", linewidth=0.8, linestyle="--")
    right.axhline(0.9, color="0.6", linewidth=0.8, linestyle="--")
    for i, (name, (likelihood, colour)) in enumerate(FITS.items()):
        model = cv.TopicModel(
            20, likelihood=likelihood, chains=1, tune=150, draws=100, seed=1, progress=False
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.fit(data).count_intervals(data)
        place = true + 0.3 * (i - 0.5)
        medians = [found["median"].to_numpy()[counts == y] for y in true]
        low, middle, high = np.array([np.quantile(each, [0.25, 0.5, 0.75]) for each in medians]).T
        left.errorbar(
            place, middle, [middle - low, high - middle], fmt="o", markersize=4, color=colour, label=name
        )
        inside = (counts >= found["lower"].to_numpy()) & (counts <= found["upper"].to_numpy())
        shares = [inside[reports == r].mean() for r in true[1:]]
        right.plot(true[1:], shares, "o-", markersize=4, color=colour)
    left.set(
        xlabel="true count",
        ylabel="median given the report",
        title="Large counts are taken for noise less often,",
    )
    right.set(
        xlabel="report", ylabel="share in 90% intervals", ylim=(0, 1.03), title="and intervals hold them"
    )
    left.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(sys.argv[1], dpi=150)


if __name__ == "__main__":
    main()
