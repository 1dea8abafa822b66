"""Sweeps by tokens against collapsed sweeps, taking turns: time, and effective samples per second.

    python benchmarks/tokens.py COUNTS.npz [topics [sweeps]]

COUNTS.npz are true counts as scipy saves sparse matrices; noise is simulated at epsilon/N = 1, 2 and 3. Both chains go
on from the same start for as many sweeps to settle as are then timed, by processor time on one thread. Effective sample
sizes (bulk) are of label-free quantities: the total rate, the log-likelihood, and rates of random cells; printed is the
median over the rates. With sweeps fewer than 100 only times are printed.
"""

import math
import sys
import time

import arviz_stats
import numpy as np
import scipy.sparse as sp
from sweeps import matrix_model
from threadpoolctl import threadpool_limits

from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs, scoring, tokens
from countveil.inference.facts import facts_of
from countveil.inference.streams import Streams
from countveil.likelihoods.laws import law_of

LEVELS, RATES, ROWS_AT_ONCE = (1.0, 2.0, 3.0), 300, 500


def reports(counts: sp.csr_array, alpha: float, rng: np.random.Generator) -> sp.csr_array:
    """What is positive of noisy counts, a few rows at a time."""
    blocks = []
    for start in range(0, counts.shape[0], ROWS_AT_ONCE):
        dense = counts[start : start + ROWS_AT_ONCE].toarray().astype(np.int64)
        dense += rng.geometric(1.0 - alpha, dense.shape) - rng.geometric(1.0 - alpha, dense.shape)
        blocks.append(sp.csr_array(np.maximum(dense, 0)))
    return sp.csr_array(sp.vstack(blocks))


def main(path: str, n_topics: int = 20, sweeps: int = 1000) -> None:
    counts, rng = sp.csr_array(sp.load_npz(path)), np.random.default_rng(1)
    cells = rng.integers(0, counts.shape[0], RATES), rng.integers(0, counts.shape[1], RATES)
    print(
        f"{counts.shape[0]} x {counts.shape[1]}, {counts.sum()} tokens, K = {n_topics}, {sweeps} sweeps after as many"
    )
    print(
        "level, positive reports: ms a sweep by tokens, collapsed; ratio; "
        "ESS of total, log-likelihood, rates; ratio a second"
    )
    for level in LEVELS:
        observations = PrivatizedCounts(reports(counts, math.exp(-level), rng), math.exp(-level))
        model = matrix_model(observations.shape, n_topics, 0.1, None, facts_of(observations).mean_count)
        streams, engine = Streams.of_chain(3, 0), ThreadEngine(1)
        chosen = tokens.pays(observations, law_of(observations.noise, model.likelihood))
        first = gibbs.init(observations, model, streams, engine)
        states, seconds, traces = (
            {True: first, False: first},
            {True: [], False: []},
            {True: [], False: []},
        )
        for sweep in range(2 * sweeps):
            for way, state in states.items():
                tokens._pays[observations] = way
                started = time.process_time()
                states[way], info = gibbs.step(state, observations, model, streams, engine)
                spent = time.process_time() - started
                if sweep >= sweeps:
                    seconds[way].append(spent)
                    theta, phi = states[way].factors
                    score = (
                        scoring.log_likelihood(states[way].factors, observations, model, engine)
                        if sweeps >= 100
                        else 0.0
                    )
                    traces[way].append(
                        [info.total_rate, score, *np.einsum("ck,ck->c", theta[cells[0]], phi[cells[1]])]
                    )
        times = {way: float(np.median(found)) for way, found in seconds.items()}
        line = f"{level:g}, {observations.reports.size} ({'tokens' if chosen else 'collapsed'} by default): "
        line += f"{1e3 * times[True]:.1f}, {1e3 * times[False]:.1f}; {times[False] / times[True]:.2f}"
        if sweeps >= 100:
            sizes = {}
            for way, trace in traces.items():
                values = np.array(trace)
                found = [
                    float(arviz_stats.ess(values[None, :, q], method="bulk")) for q in range(values.shape[1])
                ]
                sizes[way] = np.array([found[0], found[1], np.median(found[2:])])
            per_second = sizes[True] / times[True] / (sizes[False] / times[False])
            line += "; " + ", ".join(
                f"{a:.0f} and {b:.0f}" for a, b in zip(sizes[True], sizes[False], strict=True)
            )
            line += "; " + ", ".join(f"{ratio:.2f}" for ratio in per_second)
        print(line, flush=True)


if __name__ == "__main__":
    with threadpool_limits(limits=1, user_api="blas"):
        main(sys.argv[1], *(int(argument) for argument in sys.argv[2:]))
