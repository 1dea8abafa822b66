"""How often intervals of contrasts hold the truth, over simulated studies with noise, beside the naive way's.

    python benchmarks/effects.py [studies] [n_topics] [--kept FILE] [--naive N]

Every study draws topics, an effect of a group and documents (300 by 120), adds noise at level 1, and fits topics with
the group as a covariate, to the reports and, in one of N = 4 pairs of studies, to the reports taken for counts. Topics
are matched by overlap. The target is the contrast of the documents' expected shares between both groups. In every other
study, the group changes how many documents have a topic (gammas of one rate: shares are Dirichlet), in the rest how
much they have of it (gammas of one shape). What a study gave is a line of FILE, and studies that have one are not
fitted again. Also, without FILE: the time of a sweep, over that of one without covariates, at 500 by 400 with ten
topics.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import NamedTuple

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
OURS, NAIVE = "model of the noise", "naive"


class Found(NamedTuple):
    """What a fit says of a study's contrasts, of which it has an estimate and an interval each."""

    estimates: list[float]
    lower: list[float]
    upper: list[float]
    truth: list[float]

    def inside(self) -> np.ndarray:
        """Whether each interval holds its contrast."""
        return np.asarray((np.array(self.lower) <= self.truth) & (np.array(self.truth) <= self.upper), float)

    def errors(self) -> np.ndarray:
        """Of the estimates."""
        return np.asarray(np.array(self.estimates) - self.truth)

    def spreads(self) -> np.ndarray:
        """Widths of the intervals, over that of a standard normal's."""
        return np.asarray((np.array(self.upper) - self.lower) / (2 * 1.96))


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


def found(data: object, frame: pd.DataFrame, phi: np.ndarray, truth: np.ndarray, seed: int) -> Found:
    """Estimates and 95% intervals of a fit, topic by topic."""
    model = cv.TopicModel(
        len(phi),
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
    overlap = np.array([[np.minimum(p, q).sum() for q in fit.components_] for p in phi])
    true, own = linear_sum_assignment(-overlap)
    columns = table[["estimate", *ends]].to_numpy()[own].T
    return Found(*columns.tolist(), truth[true].tolist())


def coverage(n_studies: int, n_topics: int, kept: Path | None = None, every: int = 4) -> None:
    """Print coverage and error of both ways, for each kind of studies and for all."""
    known = [] if kept is None or not kept.exists() else map(json.loads, kept.read_text().splitlines())
    done = {(each["topics"], each["seed"], each["way"]): Found(*each["found"]) for each in known}
    each_way: dict[str, dict[int, Found]] = {OURS: {}, NAIVE: {}}
    for seed in range(n_studies):
        release, frame, phi, truth = study(n_topics, seed)
        naive = cv.NaiveCounts(np.maximum(np.asarray(release.reports), 0))
        for way, data in ((OURS, release), (NAIVE, naive)):
            if way == NAIVE and seed // 2 % every:  # a pair has one study of each kind
                continue
            one = done.get((n_topics, seed, way)) or found(data, frame, phi, truth, seed)
            each_way[way][seed] = one
            if kept is not None and (n_topics, seed, way) not in done:
                with kept.open("a") as file:
                    file.write(
                        json.dumps({"topics": n_topics, "seed": seed, "way": way, "found": one}) + "\n"
                    )
        if seed % 20 == 19 or seed == n_studies - 1:
            for way, some in each_way.items():
                for kind, seeds in (("sizes", (0,)), ("shares", (1,)), ("all", (0, 1))):
                    print(f"{way}, {kind}: {in_words([some[s] for s in some if s % 2 in seeds])}", flush=True)


def in_words(studies: list[Found]) -> str:
    """Coverage and error over some studies."""
    inside, errors = (np.concatenate([part(one) for one in studies]) for part in (Found.inside, Found.errors))
    error = np.std([one.inside().mean() for one in studies]) / np.sqrt(max(1, len(studies) - 1))
    spread = np.sqrt(np.mean(np.concatenate([one.spreads() for one in studies]) ** 2))
    return (
        f"{100 * inside.mean():.1f}% of {inside.size} intervals of 95% hold the truth (standard error "
        f"{100 * error:.1f}); root mean square error {np.sqrt((errors**2).mean()):.4f}, by the intervals {spread:.4f}"
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
    one, other = (1e3 * np.mean(chain[4]) for chain in chains)  # some sweeps draw more than others
    print(
        f"a sweep takes {one:.1f} ms without covariates and {other:.1f} ms with four: {other / one:.2f} times",
        flush=True,
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("studies", nargs="?", type=int, default=200)
    parser.add_argument("n_topics", nargs="?", type=int, default=3)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--naive", type=int, default=4)
    given = parser.parse_args()
    if given.kept is None:
        sweeps()
    coverage(given.studies, given.n_topics, given.kept, given.naive)
