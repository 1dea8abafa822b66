"""Memory and time of svi for millions of sparse rows, of which a summary is kept: benchmarks/results has the table.

    python benchmarks/many_rows.py [rows [draws [keep]]]     # 200,000 rows, 50 draws, "summary"

True counts of 5,000 columns with 20 topics, some 50 counts a row, without noise: with noise, a quarter of all cells has
a report, and only a part of the rows fits in memory (``ReleaseFiles``). Simulated in this process, some rows at a time.
Printed are the peak of the whole process when the data are there, and at the end, and what was found.
"""

import resource
import sys
import time

import numpy as np
import scipy.sparse as sp

import countveil as cv

COLUMNS, TOPICS, TOKENS, AT_ONCE = 5_000, 20, 50, 50_000


def peak() -> float:
    """GB that this process had at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)


def simulated(n_rows: int, rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray]:
    """(counts, topics (K, V)): every row has two topics, and Poisson many tokens."""
    topics = rng.dirichlet(np.full(COLUMNS, 0.02), TOPICS)
    sums = np.cumsum(topics, axis=1)
    parts = []
    for first in range(0, n_rows, AT_ONCE):
        size = min(AT_ONCE, n_rows - first)
        rows = np.repeat(np.arange(size), rng.poisson(TOKENS, size))
        own = rng.integers(TOPICS, size=(size, 2))
        topic = own[rows, rng.integers(2, size=rows.size)]
        columns, u = np.empty(rows.size, dtype=np.int32), rng.random(rows.size)
        for k in range(TOPICS):
            of_topic = topic == k
            columns[of_topic] = np.minimum(np.searchsorted(sums[k], u[of_topic]), COLUMNS - 1)
        ones = np.ones(rows.size, dtype=np.int16)
        part = sp.coo_array((ones, (rows.astype(np.int32), columns)), shape=(size, COLUMNS)).tocsr()
        parts.append(part)
    return sp.csr_array(sp.vstack(parts, format="csr")), topics


def main(n_rows: int = 200_000, draws: int = 50, keep: str = "summary") -> None:
    counts, topics = simulated(n_rows, np.random.default_rng(1))
    data = cv.ExactCounts(counts)
    del counts
    print(
        f"{n_rows:,} x {COLUMNS:,} counts, {data.reports.size:,} positive: peak {peak():.2f} GB", flush=True
    )
    started = time.perf_counter()
    model = cv.TopicModel(TOPICS, method="svi", keep=keep, passes=1, draws=draws, seed=1, threads=2)
    fit = model.fit(data)
    took = time.perf_counter() - started
    error = cv.evaluation.topic_error(topics, fit.components_)
    print(f"svi, one pass, {draws} draws, keep={keep!r}: {took:.0f} s, peak {peak():.2f} GB")
    print(f"mean distance to the true topics {error:.3f}; {fit.diagnostics().verdict}")


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:3]]
    main(*numbers, *sys.argv[3:4])
