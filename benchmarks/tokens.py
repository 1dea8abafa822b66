"""Sweeps by tokens against collapsed sweeps, taking turns: time, and effective samples per second.

    python benchmarks/tokens.py COUNTS.npz [topics [sweeps]]
    python benchmarks/tokens.py COUNTS.npz bursts [topics [sweeps]]   # negative binomial against Poisson counts

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
from countveil.laws.counts import NegativeBinomial
from countveil.laws.counts.laws import law_of

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


def bursts(path: str, n_topics: int = 50, sweeps: int = 20) -> None:
    """Sweeps with each likelihood, taking turns: as many to settle as are then timed."""
    counts, rng = sp.csr_array(sp.load_npz(path)), np.random.default_rng(1)
    print("| epsilon/N | likelihood | sweep | ms | over Poisson |\n| --- | --- | --- | --- | --- |")
    for level in LEVELS:
        observations = PrivatizedCounts(reports(counts, math.exp(-level), rng), math.exp(-level))
        model = matrix_model(observations.shape, n_topics, 0.1, None, facts_of(observations).mean_count)
        streams, engine = Streams.of_chain(3, 0), ThreadEngine(1)
        models = {"Poisson": model}
        for dispersion in ("global", "column"):
            models[f"negative binomial, {dispersion}"] = model._replace(
                likelihood=NegativeBinomial(dispersion)
            )
        first = gibbs.init(observations, model, streams, engine)
        states = {name: first._replace(parameters=own.initial_parameters()) for name, own in models.items()}
        seconds: dict[str, list[float]] = {name: [] for name in models}
        for sweep in range(2 * sweeps):
            for name, own in models.items():
                started = time.process_time()
                states[name], _ = gibbs.step(states[name], observations, own, streams, engine)
                if sweep >= sweeps:
                    seconds[name].append(time.process_time() - started)
        for name, own in models.items():
            law = law_of(observations.noise, own.likelihood, states[name].parameters)
            way = "by tokens" if tokens.pays(observations, law) else "collapsed"
            ratio = np.median(np.array(seconds[name]) / seconds["Poisson"])
            print(
                f"| {level:g} | {name} | {way} | {1e3 * np.median(seconds[name]):.0f} | {ratio:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(limits=1, user_api="blas"):
        if sys.argv[2:3] == ["bursts"]:
            bursts(sys.argv[1], *(int(argument) for argument in sys.argv[3:]))
        else:
            main(sys.argv[1], *(int(argument) for argument in sys.argv[2:]))
