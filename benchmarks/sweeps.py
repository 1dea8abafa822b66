"""Seconds per Gibbs sweep and error of the rates on 1000 x 1000 synthetic counts, on one thread.

The data follow Schein et al. (2019): theta, phi ~ Gamma(0.1, 0.1 sqrt(K)), K = 50, counts Poisson(theta phi),
two-sided geometric noise at alpha = 1/e. The fit knows neither: it has Gamma(0.1, 1) priors and the reports.
Three dense products of the size of the rates are the yardstick of the machine.

    python benchmarks/sweeps.py
"""

import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs
from countveil.inference.streams import Streams
from countveil.models.factorization import Factorization, factorization, typical_priors
from countveil.models.spec import axis_sizes, parse_spec

SIZE, TOPICS, SEED = 1000, 50, 20190601
ALPHA = np.exp(-1.0)
SWEEPS, DISCARDED = 100, 40
MOST_SECONDS, MOST_ERROR = 0.045, 0.26


def matrix_model(
    size: tuple[int, int], n_components: int, shape: float, rate: float | None, mean_count: float
) -> Factorization:
    """theta (D, K) times phi (V, K) with the priors of the estimators."""
    spec = parse_spec("dk,vk->dv", names=("theta", "phi"))
    sizes = axis_sizes(spec, size, {"k": n_components})
    return factorization(spec, sizes, typical_priors(spec, sizes, shape, rate, mean_count))


def big_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(true rates, true counts, signed reports)."""
    rng = np.random.default_rng(SEED)
    rate = 0.1 * np.sqrt(TOPICS)
    theta = rng.gamma(0.1, 1.0 / rate, (SIZE, TOPICS))
    phi = rng.gamma(0.1, 1.0 / rate, (TOPICS, SIZE))
    mu = theta @ phi
    counts = rng.poisson(mu)
    noise = (rng.geometric(1.0 - ALPHA, counts.shape) - 1) - (rng.geometric(1.0 - ALPHA, counts.shape) - 1)
    return mu, counts, counts + noise


def seconds_of_three_products() -> float:
    """Median time of three dense float64 products, 1000 x 1000 by 1000 x 1000."""
    rng = np.random.default_rng(0)
    a, b = rng.random((SIZE, SIZE)), rng.random((SIZE, SIZE))
    times = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(3):
            a @ b
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def main() -> int:
    mu, counts, reports = big_data()
    print(
        f"mean rate {mu.mean():.3f}, true zeros {(counts == 0).mean():.0%}, negative {(reports < 0).mean():.1%}"
    )
    observations = PrivatizedCounts(reports, ALPHA)
    model = matrix_model(mu.shape, TOPICS, 0.1, 1.0, mean_count=1.0)
    engine, streams = ThreadEngine(1), Streams.of_chain(1, 0)
    total, times = np.zeros_like(mu), []
    with threadpool_limits(limits=1):
        yardstick = seconds_of_three_products()
        started = time.perf_counter()
        start = gibbs.init(observations, model, streams, engine)
        start_seconds = time.perf_counter() - started
        gibbs.step(start, observations, model, streams, engine)  # compiles, or loads what was compiled
        state = start
        while state.sweep < SWEEPS:
            started = time.perf_counter()
            state, _ = gibbs.step(state, observations, model, streams, engine)
            times.append(time.perf_counter() - started)
            if state.sweep > DISCARDED:
                theta, phi = state.factors
                total += theta @ phi.T
    seconds, mean = float(np.median(times)), total / (SWEEPS - DISCARDED)
    error = np.abs(mean - mu).mean()
    theta, phi = start.factors
    print(f"three dense products     {yardstick:.3f} s")
    print(f"least-squares start      {start_seconds:.3f} s, error {np.abs(theta @ phi.T - mu).mean():.3f}")
    print(f"sweep, median of {SWEEPS}     {seconds:.4f} s  (at most {MOST_SECONDS})")
    print(f"mean error of the rates  {error:.4f}    (at most {MOST_ERROR})")
    print(f"    and against counts   {np.abs(mean - counts).mean():.4f}")
    return int(seconds > MOST_SECONDS or error > MOST_ERROR)


if __name__ == "__main__":
    sys.exit(main())
