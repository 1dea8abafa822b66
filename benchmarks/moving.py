"""The start of a chain and its moves, on one thread and on two: seconds, and the score of the true counts after them.

    python benchmarks/moving.py COUNTS.npz [topics [threads ...]]

COUNTS.npz are true counts as scipy saves sparse matrices; noise is simulated at epsilon/N = 1, with a seed. Moves are
those of a chain with a start of its own: two that merge where sweeps go by tokens and very many reports are stored,
or as many as estimators make. Printed are, since the beginning: wall and processor time, and the main thread's part of
that, which other threads cannot share. On a machine with other work the wall time says little; two idle cores need
at least the main thread's part and half of the rest. Chains on different numbers of threads must have the same bits.
"""

import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln
from threadpoolctl import threadpool_limits

import countveil as cv
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs, moves
from countveil.inference.streams import Streams
from countveil.laws.counts.laws import law_of
from engines import ALPHA, same_bits, truncated_reports

PARTS = 50  # of the true counts, scored one after another


def score(counts: sp.csr_array, theta: np.ndarray, phi: np.ndarray) -> float:
    """Poisson log-likelihood of the true counts per token, without any dense array."""
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    total = -gammaln(counts.data + 1.0).sum() - float(theta.sum(axis=0) @ phi.sum(axis=0))
    for part in np.array_split(np.arange(rows.size), PARTS):
        mu = np.einsum("ek,ek->e", theta[rows[part]], phi[counts.indices[part]])
        total += float((counts.data[part] * np.log(np.maximum(mu, 1e-12))).sum())
    return float(total / counts.sum())


def n_moves(data: Any, model: Any) -> int:
    """How many moves a chain has that is tuned for long enough."""
    if moves.only_merges(data, law_of(data.noise, model.likelihood)):
        return moves.n_mergings(model, data.shape)
    return cv.TopicModel().moves


def moved(data: Any, model: Any, engine: ThreadEngine) -> gibbs.State:
    """The state after the last move; prints seconds after the start and after each move."""
    algorithm, streams = moves.Moving(gibbs, n_moves(data, model)), Streams.of_chain(1, 0)
    began = time.perf_counter(), time.process_time(), time.thread_time()

    def tell(what: str) -> None:
        now = time.perf_counter(), time.process_time(), time.thread_time()
        spent = " | ".join(f"{b - a:.2f}" for a, b in zip(began, now, strict=True))
        print(f"| {engine.threads} | {what} | {spent} |", flush=True)

    state = algorithm.init(data, model, streams, engine)
    tell(f"start, {state.factors[0].shape[1]} components")
    while state.sweep < algorithm.moves * moves.SWEEPS:
        state, _ = algorithm.step(state, data, model, streams, engine)
        if state.sweep % moves.SWEEPS == 0:
            tell(f"sweep {state.sweep}, {state.factors[0].shape[1]} components")
    return state


def main(path: str, n_topics: int = 50, *threads: int) -> int:
    counts = sp.csr_array(sp.load_npz(path)).astype(np.int64)
    reports = truncated_reports(counts, np.random.default_rng(1))
    found, estimator = [], cv.TopicModel(n_topics, likelihood="poisson", progress=False)
    print(
        "| threads | after | wall, s | processors, s | of the main thread |\n| --- | --- | --- | --- | --- |"
    )
    with threadpool_limits(1):
        for number in threads or (1, 2, 1, 2):  # the first two may compile
            given = estimator._given(cv.PrivatizedCounts(reports, ALPHA))
            with ThreadEngine(number) as engine:
                found.append(moved(given.data, given.model, engine))
    same = all(same_bits(found[0], each) for each in found)
    print(f"score {score(counts, *given.model.matrices(found[0].factors)):.4f}, the same bits: {same}")
    return int(not same)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
