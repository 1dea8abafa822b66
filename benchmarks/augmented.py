"""Effective samples per second of the collapsed Gibbs sampler against the papers' augmented one.

Same data, one thread, runs alternating, the thread's own seconds. Effective sample size (bulk) is taken of
label-free quantities alone: the log-likelihood, the total rate, and every eighth rate mu_dv. Printed are the
time of a sweep, the median and the least of the sizes, and the ratios of what a second gives: of the
log-likelihood, of the total rate, of the median and of the least.

    python benchmarks/augmented.py [draws [tune [chains [mean count ...]]]]
"""

import math
import sys
import time
from types import ModuleType

import arviz_stats
import numpy as np
from sweeps import matrix_model

from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import augmented_gibbs, gibbs, scoring
from countveil.inference.facts import facts_of
from countveil.inference.streams import Streams

ROWS, COLUMNS, TOPICS = 100, 80, 5
ALPHAS = {"e^-2": math.exp(-2), "e^-1": math.exp(-1), "0.7": 0.7, "0.9": 0.9}


def data(alpha: float, mean_count: float, seed: int = 1) -> PrivatizedCounts:
    """Reports of counts whose rates come from gamma factors."""
    rng = np.random.default_rng(seed)
    mu = rng.gamma(0.5, 1.0, (ROWS, TOPICS)) @ rng.gamma(0.5, 1.0, (COLUMNS, TOPICS)).T
    mu *= mean_count / mu.mean()
    noise = rng.geometric(1.0 - alpha, mu.shape) - rng.geometric(1.0 - alpha, mu.shape)
    return PrivatizedCounts(rng.poisson(mu) + noise, alpha)


def run(
    algorithm: ModuleType, observations: PrivatizedCounts, draws: int, tune: int, chain: int
) -> tuple[float, np.ndarray]:
    """(seconds of the kept sweeps, trace (S, Q) of the label-free quantities)."""
    model = matrix_model(observations.shape, TOPICS, 0.5, None, facts_of(observations).mean_count)
    engine, streams = ThreadEngine(1), Streams.of_chain(7, chain)
    state = algorithm.init(observations, model, streams, engine)
    trace, seconds = [], 0.0
    for sweep in range(tune + draws):
        started = time.thread_time()
        state, info = algorithm.step(state, observations, model, streams, engine)
        ended = time.thread_time()
        if sweep >= tune:
            seconds += ended - started
            theta, phi = state.factors
            rates = (theta @ phi.T).ravel()[::8]
            score = scoring.log_likelihood(state.factors, observations, model, engine)
            trace.append(np.concatenate([[score, info.total_rate], rates]))
    return seconds, np.array(trace)


def effective(traces: list[np.ndarray]) -> np.ndarray:
    """Bulk effective sample size of every quantity over the chains."""
    stacked = np.stack(traces)
    return np.array([float(arviz_stats.ess(stacked[..., q], method="bulk")) for q in range(stacked.shape[2])])


def compare(observations: PrivatizedCounts, draws: int, tune: int, chains: int) -> list[float]:
    """(microseconds a sweep, sizes' median, least) of both, and four ratios per second, gibbs over augmented."""
    found: dict[ModuleType, list[tuple[float, np.ndarray]]] = {gibbs: [], augmented_gibbs: []}
    for algorithm in found:
        run(algorithm, observations, 2, 2, 0)  # compile
    for chain in range(chains):
        for algorithm, results in found.items():
            results.append(run(algorithm, observations, draws, tune, chain))
    seconds = [sum(s for s, _ in results) for results in found.values()]
    sizes = [effective([trace for _, trace in results]) for results in found.values()]
    one, other = (size / second for size, second in zip(sizes, seconds, strict=True))
    columns = [1e6 * second / (chains * draws) for second in seconds]
    columns += [*map(np.median, sizes), *map(np.min, sizes)]
    return [*columns, *(one / other)[:2], np.median(one) / np.median(other), one.min() / other.min()]


def main(draws: int = 2000, tune: int = 500, chains: int = 2, *mean_counts: float) -> None:
    print(
        f"{ROWS} x {COLUMNS}, K = {TOPICS}, {chains} chains of {draws} sweeps after {tune}: gibbs, augmented-gibbs"
    )
    print(f"{'count':>6} {'alpha':>6} {'us a sweep':>13} {'ESS median':>13} {'ESS least':>13}", end="")
    print(f" | ratio a second: {'log-lik':>7} {'total':>7} {'median':>7} {'least':>7}")
    for mean in mean_counts or (1.0, 5.0):
        for name, alpha in ALPHAS.items():
            columns = compare(data(alpha, mean), draws, tune, chains)
            sizes = " ".join(f"{value:>6.0f}" for value in columns[:6])
            ratios = " ".join(f"{value:>7.2f}" for value in columns[6:])
            print(f"{mean:>6g} {name:>6} {sizes} | {'':15} {ratios}", flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]), *(float(argument) for argument in sys.argv[4:]))
