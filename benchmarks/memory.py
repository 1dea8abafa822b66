"""Peak memory of Gibbs sweeps with Poisson and with bursty counts, each in a process of its own.

    python benchmarks/memory.py                          # the 1000 x 1000 counts of sweeps.py, K = 50
    python benchmarks/memory.py COUNTS.npz [topics [sweeps]]   # true counts as scipy saves sparse matrices

Noise is at epsilon/N = 1. Printed are the peak of the whole process, how far sweeps raised it over what the data and
the start had needed, and the processor time of one of the last five sweeps (their median). Kernels are compiled, or
loaded, on a tiny table before.
"""

import math
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import scipy.sparse as sp
from sweeps import ALPHA, big_data, matrix_model
from threadpoolctl import threadpool_limits
from tokens import reports

from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs
from countveil.inference.facts import facts_of
from countveil.inference.streams import Streams
from countveil.laws.counts import POISSON, NegativeBinomial

LIKELIHOODS = {
    "Poisson": POISSON,
    "one p": NegativeBinomial("global"),
    "p by column": NegativeBinomial("column"),
}


def peak() -> float:
    """MB that this process had at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def sweep(observations: PrivatizedCounts, name: str, topics: int, sweeps: int) -> tuple[float, float, float]:
    """(peak before, peak after) the sweeps, in MB, and milliseconds of one of the last five."""
    model = matrix_model(observations.shape, topics, 0.1, None, facts_of(observations).mean_count)
    model = model._replace(likelihood=LIKELIHOODS[name])
    streams, engine = Streams.of_chain(3, 0), ThreadEngine(1)
    state = gibbs.init(observations, model, streams, engine)
    before, took = peak(), []
    for _ in range(sweeps):
        started = time.process_time()
        state, _info = gibbs.step(state, observations, model, streams, engine)
        took.append(time.process_time() - started)
    return before, peak(), 1e3 * float(np.median(took[-5:]))


def case(name: str, path: str | None, topics: int, sweeps: int) -> tuple[float, float, float]:
    """One likelihood, in this process."""
    rng = np.random.default_rng(1)
    with threadpool_limits(limits=1):
        sweep(PrivatizedCounts(rng.poisson(2.0, (20, 20)), ALPHA), name, 2, 2)
        if path is None:
            return sweep(PrivatizedCounts(big_data()[2], ALPHA), name, topics, sweeps)
        counts, alpha = sp.csr_array(sp.load_npz(path)), math.exp(-1.0)
        return sweep(PrivatizedCounts(reports(counts, alpha, rng), alpha), name, topics, sweeps)


def main(path: str | None = None, topics: int = 50, sweeps: int = 10) -> None:
    print("| likelihood | peak, MB | over Poisson | raised by sweeps, MB | a sweep, ms | over Poisson |")
    print("| --- | --- | --- | --- | --- | --- |")
    least = fastest = None
    for name in LIKELIHOODS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            before, after, each = pool.submit(case, name, path, topics, sweeps).result()
        least, fastest = least or after, fastest or each
        memory = f"{after:.0f} | {after / least:.3f} | {after - before:.0f}"
        print(f"| {name} | {memory} | {each:.0f} | {each / fastest:.2f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(argument) for argument in sys.argv[2:]))
