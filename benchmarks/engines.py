"""Gibbs sweeps by threads and by a local Dask cluster of as many worker processes, in turns, on Enron's text.

The data are the first rows of 10,000 messages by 10,000 words at epsilon/N = 1, with seeded noise; K = 50. Wall time
and processor time of all processes together, medians of the sweeps; and whether both chains are the same bits, also
when a worker is killed in the middle of the last sweep.

    python benchmarks/dask_engine.py FOLDER [ROWS [SWEEPS]]     # FOLDER holds enron_text/enron_ham_10000x10000.npz
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import scipy.sparse as sp
from sweeps import matrix_model
from threadpoolctl import threadpool_limits

from countveil.engines.blocks import Engine
from countveil.engines.dask import DaskEngine
from countveil.engines.opening import opened
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs
from countveil.inference.streams import Streams
from countveil.observations import PrivatizedCounts

ALPHA = np.exp(-1.0)
TOPICS, WORKERS, ROWS_AT_ONCE = 50, 2, 500
MOST_SLOWER = 0.25


def truncated_reports(counts: sp.csr_array, rng: np.random.Generator) -> sp.csr_array:
    """max(count + two-sided geometric noise, 0), sparse, a few rows at a time."""
    found = []
    for start in range(0, counts.shape[0], ROWS_AT_ONCE):
        part = counts[start : start + ROWS_AT_ONCE].toarray()
        part += rng.geometric(1.0 - ALPHA, part.shape) - rng.geometric(1.0 - ALPHA, part.shape)
        found.append(sp.csr_array(np.maximum(part, 0).astype(np.int32)))
    return sp.vstack(found, format="csr")


def processor_seconds() -> float:
    """Of this process and all that it started."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        times = process.cpu_times()
        total += times.user + times.system
    return total


def timed(step: Callable[[], gibbs.State], times: list[tuple[float, float]]) -> gibbs.State:
    """A step, its wall and processor times noted."""
    wall, processor = time.perf_counter(), processor_seconds()
    state = step()
    times.append((time.perf_counter() - wall, processor_seconds() - processor))
    return state


def main(folder: str, n_rows: int = 10_000, n_sweeps: int = 5) -> int:
    rng = np.random.default_rng(1)
    counts = sp.csr_array(sp.load_npz(Path(folder) / "enron_text" / "enron_ham_10000x10000.npz"))
    observations = PrivatizedCounts(truncated_reports(counts[:n_rows].astype(np.int64), rng), ALPHA)
    print(f"{n_rows} x {counts.shape[1]}, {observations.reports.size / 1e6:.1f} million positive reports")
    model = matrix_model(observations.shape, TOPICS, 0.1, None, counts.sum() / np.prod(counts.shape))
    factors = tuple(rng.gamma(1.0, 0.02, factor.shape) for factor in model.factors)
    streams = Streams.of_chain(1, 0)
    states = dict.fromkeys(("threads", "dask"), gibbs.State(factors, model.initial_rates(), 0))
    with threadpool_limits(1), ThreadEngine(WORKERS) as threads, opened("dask", None, WORKERS) as dask:
        assert isinstance(dask, DaskEngine)
        engines: dict[str, Engine] = {"threads": threads, "dask": dask}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
        for _ in range(n_sweeps + 1):
            for name, engine in engines.items():
                state = states[name]
                states[name] = timed(
                    lambda s=state, e=engine: gibbs.step(s, observations, model, streams, e)[0], times[name]
                )
        same = all(map(np.array_equal, states["threads"].factors, states["dask"].factors))
        after = gibbs.step(states["threads"], observations, model, streams, threads)[0]
        victim = next(iter(dask.client.run(os.getpid).values()))
        threading.Timer(times["dask"][-1][0] / 2.0, os.kill, (victim, signal.SIGKILL)).start()
        loss = time.perf_counter()
        found = gibbs.step(states["dask"], observations, model, streams, dask)[0]
        loss = time.perf_counter() - loss
        same_after = all(map(np.array_equal, after.factors, found.factors))
        killed = victim not in dask.client.run(os.getpid).values()
    print(f"first sweep by dask, blocks sent: {times['dask'][0][0]:.2f} s")
    medians = {name: np.median(np.array(found[1:]), axis=0) for name, found in times.items()}
    for name, (wall, processor) in medians.items():
        print(f"{name:8} {wall:7.3f} s a sweep, {processor:7.3f} s of processors")
    wall, processor = medians["dask"] / medians["threads"]
    print(f"dask over threads: {wall:.3f} of wall time, {processor:.3f} of processor time")
    print(f"the same bits after {n_sweeps + 1} sweeps: {same}")
    print(f"a sweep in which a worker is killed: {loss:.2f} s, killed: {killed}, the same bits: {same_after}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    return int(not (same and killed and same_after) or wall > 1.0 + MOST_SLOWER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
