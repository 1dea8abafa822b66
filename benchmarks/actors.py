"""How often intervals of contrasts between groups of actors hold the truth, over simulated networks with noise.

    python benchmarks/actors.py [studies] [n_communities] [--kept FILE] [--naive N]

Every study draws memberships of 60 actors, of which half are in a group, an effect of the group on each community, and
communities that write mostly to themselves; it adds noise at level 1, and fits a block model with the group as a
covariate, to the reports and, in one of N = 4 pairs of studies, to the reports taken for counts. Communities are
matched by overlap. The target is the contrast of the expected shares of an actor's messages between both groups. In
every other study, the group changes how many actors are in a community (gammas of one rate), in the rest how much they
are (gammas of one shape). Studies are counted together, and those alone in which every community was found: shares at
least half of its members' weight with a true one. What a study gave is a line of FILE, and studies that have one are
not fitted again.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import countveil as cv
from countveil.models.priors.expected_shares import expected_shares

ACTORS, LENGTH, SHAPE = 60, 60.0, 0.5  # LENGTH: messages that an actor is expected to send
SWEEPS = 250, 250  # tuned and kept


FOUND = 0.5  # least overlap of communities that are the same
OURS, NAIVE = "model of the noise", "naive"


class Found(NamedTuple):
    """What a fit says of a study's contrasts."""

    inside: list[bool]  # whether each 95% interval holds the truth
    errors: list[float]  # of the estimates
    spreads: list[float]  # widths of the intervals, over that of a standard normal's
    overlaps: list[float]  # of each community with the true one


def study(
    n_communities: int, seed: int
) -> tuple[cv.PrivatizedCounts, cv.NaiveCounts, pd.DataFrame, np.ndarray, np.ndarray]:
    """(reports, the same taken for counts, covariates, memberships (C, actors), true contrasts (C,))."""
    rng, alpha = np.random.default_rng(seed), np.exp(-1.0)
    group, effect = rng.permutation(np.arange(ACTORS) % 2), rng.normal(0.0, 0.7, n_communities)
    tilt, both = np.exp((group[:, None] - 0.5) * effect), np.exp(np.outer([0.5, -0.5], effect))
    shape, shapes = (SHAPE * tilt, SHAPE * both) if seed % 2 else (SHAPE, np.full_like(both, SHAPE))
    theta = rng.gamma(shape, tilt / shape)
    pi = np.where(np.eye(n_communities, dtype=bool), 1.0, rng.gamma(0.3, 0.2, (n_communities, n_communities)))
    rates = theta @ pi @ theta.T
    larger = LENGTH * ACTORS / rates.sum()
    sizes = larger * (pi + pi.T) @ theta.sum(axis=0)  # what an entry of one stands for
    noise = rng.geometric(1.0 - alpha, (2, *rates.shape))
    reports = rng.poisson(larger * rates) + noise[0] - noise[1]
    shares = expected_shares(shapes, shapes / both / sizes)
    data = cv.PrivatizedCounts(reports, alpha), cv.NaiveCounts(np.maximum(reports, 0))
    return *data, pd.DataFrame({"group": group}), (theta / theta.sum(axis=0)).T, shares[0] - shares[1]


def found(data: object, frame: pd.DataFrame, members: np.ndarray, truth: np.ndarray, seed: int) -> Found:
    """What a fit says, community by community."""
    model = cv.BlockModel(
        len(members),
        prevalence="~ group",
        likelihood="poisson",
        draws=SWEEPS[1],
        tune=SWEEPS[0],
        chains=2,
        seed=seed,
        threads=1,
        progress=False,
    )
    fit = model.fit(data, covariates=frame)
    table = fit.contrast({"group": 1}, {"group": 0}, 0.95, uncalibrated=True)
    ends = [name for name in table.columns if name.endswith(("lower", "upper"))]
    overlap = np.array([[np.minimum(p, q).sum() for q in fit.memberships_.T] for p in members])
    true, own = linear_sum_assignment(-overlap)
    lower, upper = table[ends].to_numpy()[own].T
    inside, errors = (
        (lower <= truth[true]) & (truth[true] <= upper),
        table.estimate.to_numpy()[own] - truth[true],
    )
    return Found(
        *(each.tolist() for each in (inside, errors, (upper - lower) / (2 * 1.96), overlap[true, own]))
    )


def coverage(n_studies: int, n_communities: int, kept: Path | None = None, every: int = 4) -> None:
    """Print coverage and error of both ways."""
    known = [] if kept is None or not kept.exists() else map(json.loads, kept.read_text().splitlines())
    done = {(each["communities"], each["seed"], each["way"]): Found(*each["found"]) for each in known}
    each_way: dict[str, list[Found]] = {OURS: [], NAIVE: []}
    for seed in range(n_studies):
        reports, naive, frame, members, truth = study(n_communities, seed)
        for way, data in ((OURS, reports), (NAIVE, naive)):
            if way == NAIVE and seed // 2 % every:  # a pair has one study of each kind
                continue
            one = done.get((n_communities, seed, way)) or found(data, frame, members, truth, seed)
            each_way[way].append(one)
            if kept is not None and (n_communities, seed, way) not in done:
                line = {"communities": n_communities, "seed": seed, "way": way, "found": one}
                with kept.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    for way, studies in each_way.items():
        print(f"{way}: {in_words(studies)}", flush=True)
        whole = [one for one in studies if min(one.overlaps) >= FOUND]
        if whole:
            print(f"{way}, all communities found: {in_words(whole)}", flush=True)


def in_words(studies: list[Found]) -> str:
    """Coverage and error over some studies."""
    inside, errors, spreads, _ = (np.concatenate(each) for each in zip(*studies, strict=True))
    error = np.std([np.mean(one.inside) for one in studies]) / np.sqrt(max(1, len(studies) - 1))
    return (
        f"{100 * inside.mean():.1f}% of {inside.size} intervals of 95% hold the truth (standard error "
        f"{100 * error:.1f}); root mean square error {np.sqrt((errors**2).mean()):.3f}, by the intervals "
        f"{np.sqrt((spreads**2).mean()):.3f}"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("studies", nargs="?", type=int, default=60)
    parser.add_argument("n_communities", nargs="?", type=int, default=3)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--naive", type=int, default=4)
    given = parser.parse_args()
    coverage(given.studies, given.n_communities, given.kept, given.naive)
