"""How often intervals of contrasts between groups of actors hold the truth, over simulated networks with noise.

    python benchmarks/actors.py [studies] [n_communities]

Every study draws memberships of 60 actors, of which half are in a group, an effect of the group on each community, and
communities that write mostly to themselves; it adds noise at level 1, and fits a block model with the group as a
covariate, to the reports and to the reports taken for counts. Communities are matched by overlap. The target is the
contrast of the expected shares of an actor's messages between both groups.
"""

import sys
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import countveil as cv
from countveil.models.priors.expected_shares import expected_shares

ACTORS, LENGTH, SHAPE = 60, 60.0, 0.5  # LENGTH: messages that an actor is expected to send
SWEEPS = 250, 250  # tuned and kept


def study(
    n_communities: int, seed: int
) -> tuple[cv.PrivatizedCounts, cv.NaiveCounts, pd.DataFrame, np.ndarray, np.ndarray]:
    """(reports, the same taken for counts, covariates, memberships (C, actors), true contrasts (C,))."""
    rng, alpha = np.random.default_rng(seed), np.exp(-1.0)
    group, effect = rng.permutation(np.arange(ACTORS) % 2), rng.normal(0.0, 0.7, n_communities)
    mean = np.exp((group[:, None] - 0.5) * effect)
    theta = rng.gamma(SHAPE, mean / SHAPE)
    pi = np.where(np.eye(n_communities, dtype=bool), 1.0, rng.gamma(0.3, 0.2, (n_communities, n_communities)))
    rates = theta @ pi @ theta.T
    larger = LENGTH * ACTORS / rates.sum()
    sizes = larger * (pi + pi.T) @ theta.sum(axis=0)  # what an entry of one stands for
    noise = rng.geometric(1.0 - alpha, (2, *rates.shape))
    reports = rng.poisson(larger * rates) + noise[0] - noise[1]
    both = np.exp(np.outer([0.5, -0.5], -effect)) * SHAPE / sizes  # the rates in both groups
    shares = expected_shares(np.full(n_communities, SHAPE), both)
    data = cv.PrivatizedCounts(reports, alpha), cv.NaiveCounts(np.maximum(reports, 0))
    return *data, pd.DataFrame({"group": group}), (theta / theta.sum(axis=0)).T, shares[0] - shares[1]


def held(
    data: object, frame: pd.DataFrame, members: np.ndarray, truth: np.ndarray, seed: int
) -> tuple[list[bool], list[float]]:
    """(whether each 95% interval holds its contrast, errors of its estimate)."""
    model = cv.BlockModel(
        len(members),
        prevalence="~ group",
        likelihood="poisson",
        draws=SWEEPS[1],
        tune=SWEEPS[0],
        chains=2,
        seed=seed,
        progress=False,
    )
    fit = model.fit(data, covariates=frame)
    table = fit.contrast({"group": 1}, {"group": 0}, 0.95, uncalibrated=True)
    ends = [name for name in table.columns if name.endswith(("lower", "upper"))]
    overlap = np.array([[np.minimum(p, q).sum() for q in fit.memberships_.T] for p in members])
    true, own = linear_sum_assignment(-overlap)
    lower, upper = table[ends].to_numpy()[own].T
    inside = (lower <= truth[true]) & (truth[true] <= upper)
    return inside.tolist(), (table.estimate.to_numpy()[own] - truth[true]).tolist()


def coverage(n_studies: int, n_communities: int) -> None:
    """Print coverage and error of both ways."""
    found: dict[str, list[tuple[list[bool], list[float]]]] = {"model of the noise": [], "naive": []}
    for seed in range(n_studies):
        reports, naive, frame, members, truth = study(n_communities, seed)
        for name, data in zip(found, (reports, naive), strict=True):
            found[name].append(held(data, frame, members, truth, seed))
    for name, each in found.items():
        inside, errors = (np.concatenate([np.asarray(one[i], float) for one in each]) for i in (0, 1))
        spread = np.std([np.mean(one[0]) for one in each], ddof=1) / np.sqrt(n_studies)
        print(
            f"{name}: {100 * inside.mean():.1f}% of {inside.size} intervals of 95% hold the truth (standard error "
            f"{100 * spread:.1f}); root mean square error {np.sqrt((errors**2).mean()):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    coverage(int(sys.argv[1]) if len(sys.argv) > 1 else 60, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
