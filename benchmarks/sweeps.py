"""Speed and error of sweeps on 1000 x 1000 synthetic counts, and the data and chains that other benchmarks share.

python benchmarks/sweeps.py                  # K = 50, one thread: all contenders, taking turns
python benchmarks/sweeps.py error            # gibbs alone: seconds of a sweep, and the error of the rates
python benchmarks/sweeps.py threads          # two threads against one
python benchmarks/sweeps.py bursts           # negative binomial counts against Poisson counts, one thread
python benchmarks/sweeps.py growth           # a sweep against positive entries (four decades) and against K

The data follow Schein et al. (2019): theta, phi ~ Gamma(0.1, 0.1 sqrt(K)), K = 50, counts Poisson(theta phi),
two-sided geometric noise at alpha = 1/e. Fits know neither: they have Gamma(0.1, 1) priors and the reports.
scikit-learn, tomotopy and hpfrec get the true counts, which is the easier problem; the last two are left out, and said
to be, where they are not installed. An iteration of theirs is one of their own. The yardstick are three dense float64
products of the same D x K x V.
"""

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from countveil.data.observations import ExactCounts, NaiveCounts, Observations, PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import augmented_gibbs, bessel_cavi, cavi, em, gibbs
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts import POISSON, Likelihood, NegativeBinomial
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import Factorization, factorization, typical_priors

SIZE, TOPICS, SEED = 1000, 50, 20190601
ALPHA = np.exp(-1.0)
SWEEPS, DISCARDED = 100, 40
MOST_SECONDS, MOST_ERROR = 0.045, 0.26
ROUNDS, STEPS, BURN_IN = 5, 3, 20
THEIR_ITERATIONS = 2
YARDSTICK = "three products"

Contender = Callable[[], float]


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


class Chain:
    """An algorithm that goes on from where it was; a call gives the seconds of a step, a mean of STEPS."""

    def __init__(
        self,
        algorithm: Any,
        observations: Observations,
        n_topics: int,
        threads: int = 1,
        likelihood: Likelihood = POISSON,
    ) -> None:
        self.algorithm = algorithm
        self.clock = seconds if threads == 1 else waiting
        model = matrix_model(observations.shape, n_topics, 0.1, 1.0, 1.0)
        self.model = model._replace(likelihood=likelihood)
        self.plan = Plan(observations, self.model)
        self.streams, self.engine = Streams.of_chain(1, 0), ThreadEngine(threads)
        self.state = algorithm.init(self.plan, self.model, self.streams, self.engine)
        for _ in range(BURN_IN if algorithm is gibbs else 2):
            self.step()

    def step(self) -> None:
        """One step on."""
        self.state = self.algorithm.step(self.state, self.plan, self.model, self.streams, self.engine)[0]

    def __call__(self) -> float:
        """Seconds a step."""
        return self.clock(lambda: [self.step() for _ in range(STEPS)]) / STEPS


def seconds(work: Callable[[], Any]) -> float:
    """What it took of this process's time on one thread: on a busy machine nearer to what it takes on a quiet one."""
    started = time.process_time()
    work()
    return time.process_time() - started


def waiting(work: Callable[[], Any]) -> float:
    """What it took by the clock."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def three_products(shape: tuple[int, int]) -> Contender:
    """Seconds of three dense products, D x K by K x V."""
    rng = np.random.default_rng(0)
    theta, phi = rng.random((shape[0], TOPICS)), rng.random((TOPICS, shape[1]))
    return lambda: seconds(lambda: [theta @ phi for _ in range(3)])


def scikit_learn(counts: np.ndarray) -> dict[str, Contender]:
    """An iteration of batch LDA and of multiplicative NMF on the Kullback-Leibler divergence."""
    from sklearn.decomposition import NMF, LatentDirichletAllocation

    given = counts.astype(float)

    def fit(model: Any) -> Contender:
        return lambda: seconds(lambda: model.fit(given)) / THEIR_ITERATIONS

    lda = LatentDirichletAllocation(TOPICS, max_iter=THEIR_ITERATIONS, random_state=1)
    nmf = NMF(
        TOPICS, solver="mu", beta_loss="kullback-leibler", init="random", max_iter=THEIR_ITERATIONS, tol=0.0,
        random_state=1,
    )  # fmt: skip
    return {"scikit-learn LDA, true counts": fit(lda), "scikit-learn NMF-KL, true counts": fit(nmf)}


def optional(counts: np.ndarray) -> dict[str, Contender]:
    """An iteration of tomotopy's LDA and of hpfrec, where they are installed."""
    found: dict[str, Contender] = {}
    try:
        import tomotopy
    except ImportError:
        print("tomotopy is not installed: left out")
    else:
        lda = tomotopy.LDAModel(k=TOPICS, seed=1)
        for row in counts:
            lda.add_doc([str(v) for v in np.repeat(np.arange(len(row)), row)])
        lda.train(1, workers=1)
        found["tomotopy LDA, true counts"] = lambda: seconds(lambda: lda.train(STEPS, workers=1)) / STEPS
    try:
        import hpfrec
        import pandas as pd
    except ImportError:
        print("hpfrec is not installed: left out")
    else:
        users, items = np.nonzero(counts)
        frame = pd.DataFrame({"UserId": users, "ItemId": items, "Count": counts[users, items]})
        options = {
            "k": TOPICS, "ncores": 1, "verbose": False, "stop_crit": "maxiter", "check_every": None,
            "keep_data": False, "random_seed": 1,
        }  # fmt: skip

        def fitted(n: int) -> float:
            return seconds(lambda: hpfrec.HPF(maxiter=n, **options).fit(frame))

        longer = 2 * THEIR_ITERATIONS  # its preparation costs an iteration, and cancels out
        found["hpfrec, true counts"] = lambda: (fitted(longer) - fitted(THEIR_ITERATIONS)) / (longer - THEIR_ITERATIONS)
    return found


def medians(contenders: dict[str, Contender], rounds: int = ROUNDS) -> dict[str, tuple[float, float]]:
    """(median, least) seconds of each, taking turns."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            taken[name].append(contender())
    return {name: (float(np.median(times)), min(times)) for name, times in taken.items()}


def ratios() -> None:
    """The table of all contenders."""
    _, counts, reports = big_data()
    private, naive, exact = PrivatizedCounts(reports, ALPHA), NaiveCounts(reports), ExactCounts(counts)
    contenders: dict[str, Contender] = {
        YARDSTICK: three_products(counts.shape),
        "gibbs": Chain(gibbs, private, TOPICS),
        "gibbs, naive": Chain(gibbs, naive, TOPICS),
        "gibbs, true counts": Chain(gibbs, exact, TOPICS),
        "augmented-gibbs": Chain(augmented_gibbs, private, TOPICS),
        "cavi": Chain(cavi, private, TOPICS),
        "em": Chain(em, private, TOPICS),
        "bessel-cavi": Chain(bessel_cavi, private, TOPICS),
        **scikit_learn(counts),
        **optional(counts),
    }
    with threadpool_limits(limits=1):
        found = medians(contenders)
    print("| one thread | median, ms | least, ms | over three products | over gibbs |")
    print("| --- | --- | --- | --- | --- |")
    for name, (median, least) in found.items():
        over = [median / found[other][0] for other in (YARDSTICK, "gibbs")]
        print(f"| {name} | {1e3 * median:.1f} | {1e3 * least:.1f} | {over[0]:.1f} | {over[1]:.2f} |")


def error() -> int:
    """Seconds of a sweep and the error of the rates; 1 where one of them is too large."""
    mu, counts, reports = big_data()
    print(f"mean rate {mu.mean():.3f}, true zeros {(counts == 0).mean():.0%}, negative {(reports < 0).mean():.1%}")
    observations = PrivatizedCounts(reports, ALPHA)
    model = matrix_model(mu.shape, TOPICS, 0.1, 1.0, mean_count=1.0)
    engine, streams = ThreadEngine(1), Streams.of_chain(1, 0)
    total, times = np.zeros_like(mu), []
    plan = Plan(observations, model)
    with threadpool_limits(limits=1):
        products = three_products(mu.shape)
        yardstick = float(np.median([products() for _ in range(5)]))
        started = time.perf_counter()
        start = gibbs.init(plan, model, streams, engine)
        start_seconds = time.perf_counter() - started
        gibbs.step(start, plan, model, streams, engine)  # compiles, or loads what was compiled
        state = start
        while state.sweep < SWEEPS:
            started = time.perf_counter()
            state, _ = gibbs.step(state, plan, model, streams, engine)
            times.append(time.perf_counter() - started)
            if state.sweep > DISCARDED:
                theta, phi = state.factors
                total += theta @ phi.T
    sweep, mean = float(np.median(times)), total / (SWEEPS - DISCARDED)
    wrong = np.abs(mean - mu).mean()
    theta, phi = start.factors
    print(f"three dense products     {yardstick:.3f} s")
    print(f"least-squares start      {start_seconds:.3f} s, error {np.abs(theta @ phi.T - mu).mean():.3f}")
    print(f"sweep, median of {SWEEPS}     {sweep:.4f} s  (at most {MOST_SECONDS})")
    print(f"mean error of the rates  {wrong:.4f}    (at most {MOST_ERROR})")
    print(f"    and against counts   {np.abs(mean - counts).mean():.4f}")
    return int(sweep > MOST_SECONDS or wrong > MOST_ERROR)


def threads() -> None:
    """Two threads against one: medians of wall-clock seconds, taking turns."""
    private = PrivatizedCounts(big_data()[2], ALPHA)
    contenders = {
        f"{algorithm.__name__.rpartition('.')[2]}, {n}": Chain(algorithm, private, TOPICS, n)
        for algorithm in (gibbs, cavi)
        for n in (1, 2)
    }
    for chain in contenders.values():
        chain.clock = waiting
    with threadpool_limits(limits=1):
        found = medians(contenders, 25)
    print("| | one thread, ms | two, ms | ratio of medians | ratio of the least |\n" + "| --- " * 5 + "|")
    for name in ("gibbs", "cavi"):
        (one, least_one), (two, least_two) = found[f"{name}, 1"], found[f"{name}, 2"]
        print(f"| {name} | {1e3 * one:.1f} | {1e3 * two:.1f} | {one / two:.2f} | {least_one / least_two:.2f} |")


def bursts() -> None:
    """Sweeps with each likelihood, of the data above and of bursty counts with the same means."""
    mu, _, reports = big_data()
    rng = np.random.default_rng(SEED)
    noise = rng.geometric(1.0 - ALPHA, mu.shape) - rng.geometric(1.0 - ALPHA, mu.shape)
    p = rng.beta(6.0, 3.0, mu.shape[1])
    bursty = rng.negative_binomial(np.maximum(mu, 1e-12) * (1.0 - p) / p, 1.0 - p) + noise
    print("| counts | likelihood | median, ms | least, ms | over Poisson |\n| --- | --- | --- | --- | --- |")
    for name, given in (("Poisson", reports), ("bursty", bursty)):
        private = PrivatizedCounts(given, ALPHA)
        contenders: dict[str, Contender] = {"Poisson": Chain(gibbs, private, TOPICS)}
        for dispersion in ("global", "column", "row"):
            chain = Chain(gibbs, private, TOPICS, likelihood=NegativeBinomial(dispersion))
            contenders[f"negative binomial, {dispersion}"] = chain
        with threadpool_limits(limits=1):
            found = medians(contenders, 11)
        for likelihood, (median, least) in found.items():
            over = median / found["Poisson"][0]
            print(f"| {name} | {likelihood} | {1e3 * median:.1f} | {1e3 * least:.1f} | {over:.2f} |")


def repeated(observations: Observations, times: int) -> Observations:
    """The same rows over and over, in the narrowest types."""
    found = observations._copy()
    found.shape = found.mode_shape = (times * observations.shape[0], observations.shape[1])
    starts = observations.indptr[-1] * np.arange(times)[:, None] + observations.indptr[:-1]
    found.indptr = np.append(starts.ravel(), times * observations.indptr[-1])
    found.columns = np.tile(observations.columns.astype(np.uint16), times)
    found.reports = np.tile(np.minimum(observations.reports, 255).astype(np.uint8), times)
    found.level_d = np.tile(observations.level_d, times)
    found.exposure_d = np.tile(observations.exposure_d, times)
    found.prior_scale_d = np.tile(observations.prior_scale_d, times)
    return found


def sweep_seconds(observations: Observations, n_topics: int, sweeps: int) -> float:
    """Least processor time of a sweep, from factors drawn at random."""
    rng, (n_rows, n_columns) = np.random.default_rng(1), observations.shape
    model = matrix_model(observations.shape, n_topics, 0.1, 1.0, 1.0)
    engine, streams = ThreadEngine(1), Streams.of_chain(1, 0)
    factors = rng.gamma(0.3, 1.0, (n_rows, n_topics)), rng.gamma(0.3, 1.0, (n_columns, n_topics))
    state, taken, plan = gibbs.State(factors, model.initial_hypers(), 0), [], Plan(observations, model)
    for _ in range(sweeps):

        def step() -> None:
            nonlocal state
            state = gibbs.step(state, plan, model, streams, engine)[0]

        taken.append(seconds(step))
    return min(taken[1:])


def growth(decades: int = 4) -> None:
    """A sweep against the positive entries, rows of one kind repeated; and against K."""
    rng = np.random.default_rng(2)
    mu = rng.gamma(0.3, 1.0, (37, 10)) @ rng.gamma(0.3, 0.1, (10, 1000))
    noise = rng.geometric(1 - ALPHA, mu.shape) - rng.geometric(1 - ALPHA, mu.shape)
    few = PrivatizedCounts(np.maximum(rng.poisson(mu) + noise, 0), ALPHA)
    sizes, times = [], []
    print("| positive entries | ms a sweep, K = 10 | ns an entry |\n| --- | --- | --- |")
    with threadpool_limits(limits=1):
        for power in np.arange(0, decades + 0.1, 0.5):
            data = repeated(few, round(10**power))
            taken = sweep_seconds(data, 10, max(4, int(60 / 10**power)))
            sizes.append(data.reports.size)
            times.append(taken)
            print(f"| {sizes[-1]:,} | {1e3 * taken:.2f} | {1e9 * taken / sizes[-1]:.0f} |", flush=True)
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        line = np.polyfit(sizes, times, 1, w=1 / np.array(times))
        print(f"slope of log time on log entries {slope:.3f}; a straight line {1e3 * line[1]:.2f} ms + "
              f"{1e9 * line[0]:.0f} ns an entry")  # fmt: skip
        print("| K | ms a sweep | us a component |\n| --- | --- | --- |")
        data = repeated(few, 10)
        for n_topics in (5, 10, 20, 50, 100, 200):
            taken = sweep_seconds(data, n_topics, 12)
            print(f"| {n_topics} | {1e3 * taken:.2f} | {1e6 * taken / n_topics:.0f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    measurements = {each.__name__: each for each in (ratios, error, threads, bursts, growth)}
    sys.exit(measurements[(sys.argv[1:] or ["ratios"])[0]](*map(int, sys.argv[2:])))
