"""How often intervals of contrasts hold the truth, over simulated studies with noise, beside the naive way's.

    python benchmarks/effects.py [studies] [n_topics]

Every study draws topics, an effect of a group and documents (300 by 120), adds noise at level 1, and fits topics with
the group as a covariate, to the reports and to the reports taken for counts. Topics are matched by overlap. The target
is the contrast of the documents' expected shares between both groups. In every other study, the group changes how many
documents have a topic (gammas of one rate: shares are Dirichlet), in the rest how much they have of it (gammas of one
shape). Also: the time of a sweep, over that of one without covariates, at 500 by 400 with ten topics.
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import countveil as cv
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs
from countveil.inference.streams import Streams
from countveil.models.factorization import factorization
from countveil.models.priors import LearnedShapePrior, RegressionPrior
from countveil.models.priors.expected_shares import expected_shares
from countveil.models.spec import axis_sizes, parse_spec

D, V, LENGTH, SHAPE = 300, 120, 60.0, 0.5
SWEEPS = 250, 250  # tuned and kept


def study(n_topics: int, seed: int) -> tuple[cv.Release, pd.DataFrame, np.ndarray, np.ndarray]:
    """(release, covariates, topics (K, V), true contrasts (K,)) of one simulated study."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(D) % 2)
    phi, effect = rng.dirichlet(np.full(V, 0.1), n_topics), rng.normal(0.0, 0.7, n_topics)
    tilt, both = np.exp((group[:, None] - 0.5) * effect), np.exp(np.outer([0.5, -0.5], effect))
    shapes = (SHAPE * tilt, SHAPE * both) if seed % 2 else (np.full((D, 1), SHAPE), np.full((2, 1), SHAPE))
    theta = rng.gamma(shapes[0], LENGTH / n_topics * tilt / shapes[0])
    shares = expected_shares(shapes[1], shapes[1] * n_topics / LENGTH / both)
    release = cv.simulate_release(rng.poisson(theta @ phi), cv.PrivacyLevel(epsilon=1, precision=1), rng=rng)
    return release, pd.DataFrame({"group": group}), phi, shares[0] - shares[1]


def held(
    data: object, frame: pd.DataFrame, phi: np.ndarray, truth: np.ndarray, seed: int
) -> tuple[list[bool], list[float]]:
    """(whether each 95% interval holds its contrast, errors of its estimate)."""
    model = cv.TopicModel(
        len(phi),
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
    overlap = np.array([[np.minimum(p, q).sum() for q in fit.components_] for p in phi])
    true, own = linear_sum_assignment(-overlap)
    lower, upper = table[ends].to_numpy()[own].T
    inside = (lower <= truth[true]) & (truth[true] <= upper)
    return inside.tolist(), (table.estimate.to_numpy()[own] - truth[true]).tolist()


def coverage(n_studies: int, n_topics: int) -> None:
    """Print coverage and error of both ways, for each kind of studies and for all."""
    found: dict[str, list[tuple[list[bool], list[float]]]] = {"model of the noise": [], "naive": []}
    for seed in range(n_studies):
        release, frame, phi, truth = study(n_topics, seed)
        naive = cv.NaiveCounts(np.maximum(np.asarray(release.reports), 0))
        for name, data in zip(found, (release, naive), strict=True):
            found[name].append(held(data, frame, phi, truth, seed))
        if seed % 20 == 19 or seed == n_studies - 1:
            for name, each in found.items():
                for kind, some in (("sizes", each[::2]), ("shares", each[1::2]), ("all", each)):
                    print(f"{name}, {kind}: {in_words(some)}", flush=True)


def in_words(studies: list[tuple[list[bool], list[float]]]) -> str:
    """Coverage and error over some studies."""
    inside, errors = (np.concatenate([np.asarray(one[i], float) for one in studies]) for i in (0, 1))
    spread = np.std([np.mean(one[0]) for one in studies], ddof=1) / np.sqrt(len(studies))
    return (
        f"{100 * inside.mean():.1f}% of {inside.size} intervals of 95% hold the truth (standard error "
        f"{100 * spread:.1f}); root mean square error {np.sqrt((errors**2).mean()):.3f}"
    )


def sweeps(n_sweeps: int = 150, shape: tuple[int, int] = (500, 400)) -> None:
    """Print how long sweeps take with four covariates and without, in turns."""
    rng, n_topics = np.random.default_rng(1), 10
    design = rng.normal(size=(shape[0], 4))
    design = (design - design.mean(axis=0)) / design.std(axis=0)
    theta = rng.gamma(0.3, np.exp(0.5 * design @ rng.normal(size=(4, n_topics))) / 0.3) * 10.0
    counts = rng.poisson(theta @ rng.dirichlet(np.full(shape[1], 0.1), n_topics))
    release = cv.simulate_release(counts, cv.PrivacyLevel(epsilon=1, precision=1), rng=rng)
    data = cv.PrivatizedCounts(np.asarray(release.reports), np.exp(-1.0))
    spec = parse_spec("dk,vk->dv", names=("theta", "phi"))
    plain = LearnedShapePrior(float(np.sqrt(counts.mean() / n_topics)), None)
    assert plain.mean is not None
    chains = []
    for prior in (plain, RegressionPrior(plain.mean, None, design)):
        sizes = axis_sizes(spec, shape, {"k": n_topics})
        model = factorization(spec, sizes, {"theta": prior, "phi": plain})
        streams, engine = Streams.of_chain(1, 0), ThreadEngine(1)
        chains.append([model, streams, engine, gibbs.init(data, model, streams, engine), []])
    for sweep in range(n_sweeps):
        for chain in chains:
            model, streams, engine, state, taken = chain
            start = time.process_time()
            chain[3], _ = gibbs.step(state, data, model, streams, engine)
            if sweep >= n_sweeps // 3:
                taken.append(time.process_time() - start)
    one, other = (1e3 * np.median(chain[4]) for chain in chains)
    print(
        f"a sweep takes {one:.1f} ms without covariates and {other:.1f} ms with four: {other / one:.2f} times",
        flush=True,
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sweeps()
    coverage(int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
