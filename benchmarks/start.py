"""The least-squares start on one thread and on two, taking turns: seconds, their ratio, and the squared error reached.

    python benchmarks/start.py COUNTS.npz [topics [turns]]

COUNTS.npz are true counts as scipy saves sparse matrices; noise is simulated at epsilon/N = 1, with a seed. What the
data say about themselves is computed anew every time, as in a fit. The error is that of the debiased truncated reports
before the factors' floor, as a share of the sum of their squares.
"""

import sys
import time

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference.facts import find_facts
from countveil.inference.starts.alternating import fit_and_merge
from engines import ALPHA, truncated_reports

MOST_SECONDS, LEAST_RATIO = 12.0, 1.7


def squared_error(observations: PrivatizedCounts, theta: np.ndarray, phi: np.ndarray) -> float:
    """|T - theta phi^T|^2 over |T|^2, without any dense array: T = S - bias."""
    bias, n_cells = ALPHA / (1.0 - ALPHA), observations.shape[0] * observations.shape[1]
    values = (1.0 + ALPHA) * observations.reports
    scaled = sp.csr_array((values, observations.columns, observations.indptr), shape=observations.shape)
    squares = (values**2).sum() - 2.0 * bias * values.sum() + bias**2 * n_cells
    crossed = ((scaled @ phi - bias * phi.sum(axis=0)) * theta).sum()
    return float(1.0 + (((theta.T @ theta) * (phi.T @ phi)).sum() - 2.0 * crossed) / squares)


def main(path: str, n_topics: int = 50, turns: int = 3) -> int:
    counts = sp.csr_array(sp.load_npz(path)).astype(np.int64)
    observations = PrivatizedCounts(truncated_reports(counts, np.random.default_rng(1)), ALPHA)
    print(f"{observations}, {observations.reports.size} positive reports, K = {n_topics}")
    few = observations.take(np.arange(min(300, counts.shape[0])))
    seconds: dict[int, list[float]] = {1: [], 2: []}
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    with ThreadEngine(1) as one, ThreadEngine(2) as two:
        fit_and_merge(few, n_topics, np.random.default_rng(1), one)  # compiles, or loads what was compiled
        for _ in range(turns):
            for threads, engine in ((1, one), (2, two)):
                started, processor = time.perf_counter(), time.process_time()
                find_facts(observations, engine)
                facts_seconds = time.perf_counter() - started
                found[threads] = fit_and_merge(observations, n_topics, np.random.default_rng(1), engine)
                seconds[threads].append(time.perf_counter() - started)
                processor = time.process_time() - processor
                print(
                    f"{threads} threads: {seconds[threads][-1]:.2f} s, of processors {processor:.2f} s, "
                    f"facts {facts_seconds:.2f} s",
                    flush=True,
                )
    same = all(np.array_equal(a, b) for a, b in zip(found[1], found[2], strict=True))
    medians = {threads: float(np.median(times)) for threads, times in seconds.items()}
    ratio, least = medians[1] / medians[2], min(seconds[1]) / min(seconds[2])
    print(f"medians {medians[1]:.2f} s and {medians[2]:.2f} s (at most {MOST_SECONDS:g})")
    print(f"ratio {ratio:.2f} by medians, {least:.2f} by the least (at least {LEAST_RATIO})")
    print(
        f"squared error {squared_error(observations, *found[2]):.6f} of that of zero; the same bits: {same}"
    )
    return int(medians[2] > MOST_SECONDS or max(ratio, least) < LEAST_RATIO or not same)


if __name__ == "__main__":
    with threadpool_limits(limits=1, user_api="blas"):
        sys.exit(main(sys.argv[1], *(int(argument) for argument in sys.argv[2:])))
