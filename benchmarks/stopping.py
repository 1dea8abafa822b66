"""Where variational fits end: by the share of the objective's range, and by a share of its size, as before.

    python benchmarks/stopping.py [FOLDER]     # FOLDER holds enron_text/enron_ham_1000x1400.npz

Every fit makes 300 iterations (``bessel-cavi`` 100). Printed are the iteration at which each rule would have ended it
and the errors there, beside the least errors along the path, each with its iteration: mean absolute error of the rates
against the true rates where they are known, else against the true counts; and log score of the true counts per token.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import scipy.sparse as sp
from sweeps import ALPHA, big_data
from threadpoolctl import threadpool_limits

import countveil as cv
from countveil.data.observations import Observations
from countveil.engines.threads import ThreadEngine
from countveil.evaluation.errors import log_score
from countveil.experiments.reuters import load_reuters
from countveil.inference import bessel_cavi, cavi
from countveil.inference.run import relative_change
from countveil.inference.streams import Streams

Scene = tuple[str, object, cv.BlockModel | cv.TopicModel, np.ndarray, np.ndarray]
ITERATIONS, SMALLEST = {cavi: 300, bessel_cavi: 100}, 1e-12


def noisy(counts: np.ndarray, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """Counts plus two-sided geometric noise."""
    return counts + rng.geometric(1.0 - alpha, counts.shape) - rng.geometric(1.0 - alpha, counts.shape)


def scenes(folder: str | None) -> Iterator[Scene]:
    """(name, data, model, what rates are compared with, true counts)"""
    mu, counts, reports = big_data()
    data = cv.PrivatizedCounts(reports, ALPHA)
    yield "1000 x 1000, fixed rates", data, cv.TopicModel(50, prior_rate=1.0), mu, counts
    yield "1000 x 1000", data, cv.TopicModel(50), mu, counts
    rng = np.random.default_rng(20190602)
    mu = rng.gamma(0.1, 10**0.5, (200, 10)) @ rng.gamma(0.1, 10**0.5, (10, 300))
    counts = rng.poisson(mu)
    data = cv.PrivatizedCounts(noisy(counts, ALPHA, rng), ALPHA)
    yield "200 x 300", data, cv.TopicModel(10, prior_rate=1.0), mu, counts
    rng, alpha = np.random.default_rng(0), np.exp(-0.25)
    mu = rng.gamma(0.1, 1.0, (500, 5)) @ rng.dirichlet(np.full(300, 0.05), 5) * 600
    counts = rng.poisson(mu)
    data = cv.PrivatizedCounts(noisy(counts, alpha, rng), alpha)
    yield "planted, 500 x 300", data, cv.TopicModel(5), mu, counts
    corpora = {"Reuters": (np.asarray(load_reuters().counts), 20, (1.0, 2.0))}
    if folder is not None:
        path = Path(folder) / "enron_text" / "enron_ham_1000x1400.npz"
        corpora["Enron 1000 x 1400"] = sp.load_npz(path).toarray().astype(np.int64), 50, (1.0,)
    for name, (counts, n_topics, levels) in corpora.items():
        for level in levels:
            reports = noisy(counts, np.exp(-level), np.random.default_rng(0))
            data = cv.PrivatizedCounts(reports, np.exp(-level))
            yield f"{name}, {level:g}", data, cv.TopicModel(n_topics), counts, counts
        yield f"{name}, exact", cv.ExactCounts(counts), cv.TopicModel(n_topics), counts, counts
    counts = nx.to_numpy_array(nx.les_miserables_graph()).astype(np.int64)
    below, model = np.tril(np.ones(counts.shape, dtype=bool)), cv.BlockModel(6, directed=False)
    reports = noisy(counts, ALPHA, np.random.default_rng(0))
    pairs = np.where(below, np.nan, counts)
    yield "Les Misérables, 1", cv.PrivatizedCounts(reports, ALPHA, below), model, pairs, pairs
    yield "Les Misérables, exact", cv.ExactCounts(counts, below), model, pairs, pairs


def path(
    scene: Scene, algorithm: object, options: dict[str, str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(objective, error, log score) of the state before every iteration."""
    _, data, estimator, truth, counts = scene
    given = estimator.set_params(method="cavi", seed=1, threads=1)._given(data)
    observations, model, streams, rows = given.data, given.model, Streams.of_chain(1, 0), []
    assert isinstance(observations, Observations)
    seen = np.isfinite(truth)
    with ThreadEngine(2) as engine:
        state = algorithm.init(observations, model, streams, engine)
        for _ in range(ITERATIONS[algorithm]):
            theta, phi = model.matrices(state.means)
            rate = np.maximum(theta @ phi.T, SMALLEST)[seen]
            error, score = np.abs(rate - truth[seen]).mean(), log_score(counts[seen], rate)
            state, info = algorithm.step(state, observations, model, streams, engine, **options)
            rows.append((info.objective, error, score))
    objective, errors, scores = np.array(rows).T
    return objective, errors, scores


def relative_size(tolerance: float) -> Callable[[object, list[float]], bool]:
    """The rule before: an iteration changes the objective by at most this share of its size."""
    return lambda state, found: len(found) > 1 and abs(found[-1] - found[-2]) <= tolerance * abs(found[-1])


def main(folder: str | None = None) -> None:
    now = cv.TopicModel(2).tolerance
    rules = {f"{now:g} of the range": relative_change(now), "1e-5 of the size": relative_size(1e-5)}
    print(f"| data, epsilon/N | method | {' | '.join(rules)} | least error | best score |")
    print("| --- | --- | --- | --- | --- | --- |")
    methods = {
        "cavi": (cavi, {}), "arithmetic": (cavi, {"expectation": "arithmetic"}), "bessel-cavi": (bessel_cavi, {})
    }  # fmt: skip
    for scene in scenes(folder):
        for name, (algorithm, options) in methods.items():
            if name != "cavi" and ("exact" in scene[0] or "Enron" in scene[0]):
                continue
            objective, errors, scores = path(scene, algorithm, options)
            cells, last = [], len(objective) - 1
            for rule in rules.values():
                ends = (n for n in range(1, last + 1) if rule(None, objective[:n].tolist()))
                n = next(ends, last)
                cells.append(f"{n}{'' if n < last else '+'}: {errors[n]:.3f}, {scores[n]:.3f}")
            least, best = int(errors.argmin()), int(scores.argmax())
            cells += [f"{least}: {errors[least]:.3f}", f"{best}: {scores[best]:.3f}"]
            print(f"| {scene[0]} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1, user_api="blas"):
        main(*sys.argv[1:])
