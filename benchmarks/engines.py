"""Gibbs sweeps by one thread, by two, by the cluster that engine="dask" starts, and by two worker processes.

The data are the first rows of Enron's 10,000 messages by 10,000 words at epsilon/N = 1, with seeded noise; K = 50. Wall
time and processor time of all processes together, medians of the sweeps, which take turns; and whether all chains are
the same bits, also when a worker process is killed in the middle of the last sweep. Beside them what two threads gain
on this machine by counting alone.

    python benchmarks/engines.py FOLDER [ROWS [SWEEPS]]     # FOLDER holds enron_text/enron_ham_10000x10000.npz
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
from distributed import Client, LocalCluster
from numba import njit
from sweeps import matrix_model
from threadpoolctl import threadpool_limits

from countveil.data.observations import PrivatizedCounts
from countveil.engines.blocks import Engine
from countveil.engines.dask import DaskEngine
from countveil.engines.opening import opened
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs
from countveil.inference.streams import Streams

ALPHA = np.exp(-1.0)
TOPICS, WORKERS, ROWS_AT_ONCE = 50, 2, 500
COUNTED = 60_000_000
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


@njit(nogil=True)
def count(n: int) -> np.uint64:
    """So many steps that read no memory."""
    word = np.uint64(1)
    for i in range(n):
        word = word * np.uint64(6364136223846793005) + np.uint64(i)
    return word


def gain(one: np.ndarray, two: np.ndarray) -> str:
    """How many times faster the second is."""
    return f"{np.median(one) / np.median(two):.2f} by medians, {one.min() / two.min():.2f} by the least"


def same_bits(one: gibbs.State, other: gibbs.State) -> bool:
    """Whether two chains are at the same factors."""
    return all(map(np.array_equal, one.factors, other.factors))


def main(folder: str, n_rows: int = 10_000, n_sweeps: int = 5) -> int:
    rng = np.random.default_rng(1)
    counts = sp.csr_array(sp.load_npz(Path(folder) / "enron_text" / "enron_ham_10000x10000.npz"))
    observations = PrivatizedCounts(truncated_reports(counts[:n_rows].astype(np.int64), rng), ALPHA)
    print(f"{n_rows} x {counts.shape[1]}, {observations.reports.size / 1e6:.1f} million positive reports")
    model = matrix_model(observations.shape, TOPICS, 0.1, None, counts.sum() / np.prod(counts.shape))
    factors = tuple(rng.gamma(1.0, 0.02, factor.shape) for factor in model.factors)
    streams = Streams.of_chain(1, 0)
    start = gibbs.State(factors, model.initial_hypers(), 0)
    with (
        threadpool_limits(1),
        ThreadEngine(1) as one,
        ThreadEngine(WORKERS) as threads,
        opened("dask", None, WORKERS) as dask,
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
        DaskEngine(client) as processes,
    ):
        assert isinstance(dask, DaskEngine)
        engines: dict[str, Engine] = {
            "one thread": one,
            "threads": threads,
            "dask": dask,
            "processes": processes,
        }
        states = dict.fromkeys(engines, start)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
        counting: dict[str, list[float]] = {"one thread": [], "threads": []}
        for _ in range(n_sweeps + 1):
            for name, engine in engines.items():
                state = states[name]
                states[name] = timed(
                    lambda s=state, e=engine: gibbs.step(s, observations, model, streams, e)[0], times[name]
                )
            for name, engine in (("one thread", one), ("threads", threads)):
                began = time.perf_counter()
                list(engine.map(count, [COUNTED] * WORKERS))
                counting[name].append(time.perf_counter() - began)
        same = {name: same_bits(states["one thread"], states[name]) for name in engines}
        after = gibbs.step(states["threads"], observations, model, streams, threads)[0]
        victim = next(iter(client.run(os.getpid).values()))
        threading.Timer(times["processes"][-1][0] / 2.0, os.kill, (victim, signal.SIGKILL)).start()
        loss = time.perf_counter()
        found = gibbs.step(states["processes"], observations, model, streams, processes)[0]
        loss = time.perf_counter() - loss
        same_after = same_bits(after, found)
        killed = victim not in client.run(os.getpid).values()
    medians = {name: np.median(np.array(found[1:]), axis=0) for name, found in times.items()}
    print("| | a sweep, s | of processors | of two threads | of processors | the first, s | same bits |")
    print("| --- " * 7 + "|")
    for name, figures in medians.items():
        cells = *figures, *(figures / medians["threads"]), times[name][0][0]
        print(f"| {name} | {' | '.join(f'{x:.3f}' for x in cells)} | {same[name]} |")
    print(f"sweeps by two threads over one: {gain(*(np.array(times[name])[1:, 0] for name in counting))}")
    print(
        f"counting by two threads over one: {gain(*(np.array(times_n)[1:] for times_n in counting.values()))}"
    )
    print(
        f"a sweep in which a process is killed: {loss:.2f} s, killed: {killed}, the same bits: {same_after}"
    )
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    slower = medians["dask"][0] / medians["threads"][0] - 1.0
    return int(not (all(same.values()) and killed and same_after) or slower > MOST_SLOWER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
