"""Variational inference as published against MCMC: the variational paper's figure 1 and its claim of speed."""

import time
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.fit import PoissonFactorization
from countveil.inference import augmented_gibbs, bessel_cavi, cavi, gibbs
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization, typical_priors
from papers import style
from papers.bench import Bench, Study, Task
from papers.claims import Verdict, verdict
from papers.fits import Noisy, Sampling, result, with_noise
from papers.style import EXACT_VI, LEAST_SQUARES, NAIVE, OURS, PUBLISHED_MCMC, PUBLISHED_VI, TRUE_COUNTS

ABOUT = "speed and error of variational inference against MCMC"
NEEDS = ""
ALGORITHMS: dict[str, ModuleType] = {
    PUBLISHED_VI: bessel_cavi, EXACT_VI: cavi, PUBLISHED_MCMC: augmented_gibbs, OURS: gibbs,
}  # fmt: skip
SAMPLERS = (PUBLISHED_MCMC, OURS)
REFERENCES = (NAIVE, LEAST_SQUARES, TRUE_COUNTS)  # not in the paper: only their final errors are compared
SMALL_SIZE, SMALL_TOPICS = 20, 3
MCMC_SWEEPS, VI_ITERATIONS, CLAIMED = 7500, 100, 20.0  # of the paper's runs, and the speed-up that it claims
SHAPE = 0.1


class Extent(NamedTuple):
    """The large data, iterations of each kind on them, and how many small data sets."""

    size: int
    topics: int
    sweeps: int
    iterations: int
    small_sets: int


FULL, QUICK = Extent(1000, 50, 1024, 128, 20), Extent(120, 10, 256, 64, 5)


class Data(NamedTuple):
    """True rates, and counts with noise at epsilon/N = 1."""

    rate: np.ndarray
    noisy: Noisy


def data_set(rng: np.random.Generator, size: int, topics: int, shape: float = SHAPE) -> Data:
    """theta, phi ~ Gamma(0.1, rate 0.1 sqrt(K)): mean rate 1. The paper says gamma, and no more."""
    scale = 1.0 / (shape * np.sqrt(topics))
    rate = rng.gamma(shape, scale, (size, topics)) @ rng.gamma(shape, scale, (topics, size))
    return Data(rate, with_noise(rng.poisson(rate), np.exp(-1.0), rng))


def run(bench: Bench, extent: Extent) -> Study:
    """Error of the rates against seconds on the large data; the published method on the small ones."""
    key = {"size": extent.size, "topics": extent.topics, "clock": "processor"}
    large = data_set(bench.rng(0), extent.size, extent.topics)
    tasks = [
        Task({"method": name, "n": iterations(name, extent), **key},
             partial(trace, name, large, extent.topics, iterations(name, extent)))
        for name in ALGORITHMS
    ]  # fmt: skip
    smalls = [data_set(bench.rng(1, i), SMALL_SIZE, SMALL_TOPICS) for i in range(extent.small_sets)]
    tasks += [
        Task({"method": PUBLISHED_VI, "small": i},
             partial(trace, PUBLISHED_VI, each, SMALL_TOPICS, VI_ITERATIONS))
        for i, each in enumerate(smalls)
    ]  # fmt: skip
    references = [
        Task({"method": name, "n": extent.sweeps, **key}, partial(reference, name, large, extent, bench.seed))
        for name in REFERENCES
    ]
    found, ends = bench.results(tasks), bench.results(references)
    traces = dict(zip(ALGORITHMS, found, strict=False))
    rows = [
        {
            "data": f"{extent.size} x {extent.size}",
            "method": name,
            "iteration": int(i),
            "seconds": float(s),
            "error": float(e),
        }
        for name, each in traces.items()
        for i, s, e in zip(each["iteration"], each["seconds"], each["error"], strict=True)
    ]
    rows += [
        {"data": f"{extent.size} x {extent.size}", "method": name, "iteration": extent.sweeps,
         "seconds": float(each["seconds"]), "error": float(each["error"])}
        for name, each in zip(REFERENCES, ends, strict=True)
    ]  # fmt: skip
    small = [
        small_row(i, each, fit["rate"]) for i, (each, fit) in enumerate(zip(smalls, found[len(traces) :], strict=True))
    ]
    table = pd.DataFrame(rows + small)
    return Study(table, verdicts(table), draw(table, smalls[0], found[len(traces)]["rate"]))


def iterations(name: str, extent: Extent) -> int:
    """How long a method runs on the large data."""
    return extent.sweeps if name in SAMPLERS else extent.iterations


def small_row(place: int, data: Data, rate: np.ndarray) -> dict[str, Any]:
    """Errors of one small fit, of the reports and of one flat rate."""
    return {
        "data": f"{SMALL_SIZE} x {SMALL_SIZE}, {place}", "method": PUBLISHED_VI, "iteration": VI_ITERATIONS,
        "error": np.abs(rate - data.rate).mean(),
        "error_of_reports": np.abs(np.maximum(data.noisy.reports, 0) - data.rate).mean(),
        "error_of_flat": np.abs(data.rate.mean() - data.rate).mean(), "mean_rate": data.rate.mean(),
    }  # fmt: skip


def trace(name: str, data: Data, topics: int, n: int, shape: float = SHAPE) -> dict[str, Any]:
    """Processor seconds and error of the rates at iterations 1, 2, 4, ... and n; start included, compilation not.

    A sampler's rates at iteration i are means over the draws after i/2; a variational method's, of Q's means.
    """
    observations, model = (PrivatizedCounts(data.noisy.reports, data.noisy.alpha), matrix_model(data, topics, shape))
    algorithm, marks = ALGORITHMS[name], sorted({*(2**j for j in range(20) if 2**j < n), n})
    streams, found = Streams.of_chain(1, 0), []
    with ThreadEngine(1) as engine:
        plan = Plan(observations, model)
        warm = algorithm.init(plan, model, streams, engine)
        algorithm.step(warm, plan, model, streams, engine)
        spent, started = 0.0, time.process_time()
        state, total, draws = (algorithm.init(plan, model, streams, engine), np.zeros(data.rate.shape), 0)
        for i in range(1, n + 1):
            state = algorithm.step(state, plan, model, streams, engine)[0]
            sampled = name in SAMPLERS
            if sampled or i in marks:
                theta, phi = state.factors if sampled else state.means
                total, draws = (total + theta @ phi.T, draws + 1) if sampled else (theta @ phi.T, 1)
            if i in marks:
                spent += time.process_time() - started
                rate = total / draws
                found.append((i, spent, float(np.abs(rate - data.rate).mean())))
                total, draws, started = np.zeros(data.rate.shape), 0, time.process_time()
    columns = zip(*found, strict=True)
    return dict(zip(("iteration", "seconds", "error"), columns, strict=True)) | {"rate": rate.astype(np.float32)}


def reference(name: str, data: Data, extent: Extent, seed: int) -> dict[str, Any]:
    """Error of the rates of a method that the paper does not have, the samplers with as many sweeps as ours."""
    sampling = Sampling(1, extent.sweeps // 2, extent.sweeps // 2)
    model = PoissonFactorization("dk,vk->dv", {"k": extent.topics}, prior_shape=SHAPE, prior_rate=1.0, seed=seed)
    found = result(name, model, extent.topics, data.noisy, sampling)
    return {"error": np.abs(found["rate"] - data.rate).mean(), "seconds": found["seconds"]}


def matrix_model(data: Data, topics: int, shape: float) -> Any:
    """theta phi with Gamma(shape, 1) priors; the authors' code has 0.1."""
    spec = parse_spec("dk,vk->dv", names=("theta", "phi"))
    sizes = axis_sizes(spec, data.rate.shape, {"k": topics})
    return factorization(spec, sizes, typical_priors(spec, sizes, shape, 1.0, 1.0))


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """The recovery of the small data, and the speed-up in two readings."""
    small = table[table["data"].str.startswith(f"{SMALL_SIZE} x {SMALL_SIZE},")]
    large = table[~table["data"].str.startswith(f"{SMALL_SIZE} x {SMALL_SIZE},")]
    errors = small[["error", "error_of_reports", "error_of_flat", "mean_rate"]].mean()
    last = large.groupby("method", sort=False).last()
    each = last["seconds"] / last["iteration"]
    ratio = MCMC_SWEEPS * each[PUBLISHED_MCMC] / (VI_ITERATIONS * each[PUBLISHED_VI])
    vi = large[large["method"] == PUBLISHED_VI]
    goal = float(vi["error"].min()) * 1.02
    seconds = {name: reached(large[large["method"] == name], goal) for name in ALGORITHMS}
    times = ", ".join(
        f"{name} {value:.2g} s" if np.isfinite(value) else f"{name} never" for name, value in seconds.items()
    )
    least = large.groupby("method", sort=False)["error"].min()
    return [
        verdict(
            "Published VI recovers the rates of 20 x 20 data with three topics (the paper: an error of 0.507)",
            bool(errors["error"] < min(errors["error_of_reports"], errors["error_of_flat"])),
            f"mean over {len(small)} data sets: error {errors['error']:.3f} at a mean rate of "
            f"{errors['mean_rate']:.2f}; reports cut at zero {errors['error_of_reports']:.3f}, one flat rate "
            f"{errors['error_of_flat']:.3f}",
        ),
        verdict(
            "Published VI, 100 iterations, is 20 times as fast as published MCMC, 7,500 sweeps", bool(ratio >= CLAIMED),
            f"{1e3 * each[PUBLISHED_VI]:.2g} ms per iteration against {1e3 * each[PUBLISHED_MCMC]:.2g} ms per sweep, "
            f"both compiled, one thread: {ratio:.0f} times",
        ),
        verdict(
            "Published VI is 20 times as fast as published MCMC to the same error (our reading)",
            bool(seconds[PUBLISHED_MCMC] >= CLAIMED * seconds[PUBLISHED_VI]),
            f"processor seconds to an error of {goal:.3f}, published VI's best and 2%: {times}",
        ),
        verdict(
            "MCMC ends with a smaller error than published VI", bool(least[PUBLISHED_MCMC] < least[PUBLISHED_VI]),
            "least error of the rates: " + ", ".join(f"{name} {least[name]:.3f}" for name in ALGORITHMS),
        ),
        verdict(
            "MCMC ends with a smaller error than the naive way and least squares do (not claimed)",
            bool(least[OURS] < min(least[NAIVE], least[LEAST_SQUARES])),
            "least error of the rates: " + ", ".join(f"{name} {least[name]:.3f}" for name in (OURS, *REFERENCES)),
        ),
    ]  # fmt: skip


def reached(rows: pd.DataFrame, goal: float) -> float:
    """Seconds until the error is first at most the goal; infinity if it never is."""
    good = rows.loc[rows["error"] <= goal, "seconds"]
    return float(good.iloc[0]) if len(good) else float("inf")


def draw(table: pd.DataFrame, data: Data, rate: np.ndarray) -> Any:
    """The paper's panels (a) to (e) on one colour scale, and error against seconds on the large data."""
    from matplotlib.colors import SymLogNorm

    figure = style.figure(13.0, 4.4)
    grid = figure.add_gridspec(2, 4, width_ratios=[1, 1, 1, 1.9])
    norm = SymLogNorm(0.5, vmin=0.0, vmax=float(data.noisy.counts.max()))
    order = np.ix_(np.argsort(-data.rate.sum(axis=1)), np.argsort(-data.rate.sum(axis=0)))
    panels = {
        "(a) true rates": data.rate, "(b) noisy reports, cut at 0": np.maximum(data.noisy.reports, 0),
        "(c) true counts": data.noisy.counts, "(d) published VI": rate, "(e) |error| of (d)": np.abs(rate - data.rate),
    }  # fmt: skip
    images = []
    for place, (title, matrix) in enumerate(panels.items()):
        axes = figure.add_subplot(grid[place // 3, place % 3])
        images.append(style.heatmap(axes, matrix[order], title, norm))
        axes.set_xlabel("word (20)", fontsize=8)
        axes.set_ylabel("document (20)", fontsize=8)
    bar = figure.colorbar(images[0], ax=figure.axes, location="bottom", shrink=0.5, aspect=40, ticks=[0, 1, 3, 10, 30])
    bar.ax.set_xticklabels(["0", "1", "3", "10", "30"])
    bar.set_label("rate, report or count (log scale above 0.5)", fontsize=9)
    axes = figure.add_subplot(grid[:, 3])
    large = table[~table["data"].str.startswith(f"{SMALL_SIZE} x {SMALL_SIZE},")]
    for name in ALGORITHMS:
        rows = large[large["method"] == name]
        colour, marker, line = style.STYLES[name]
        axes.plot(rows["seconds"], rows["error"], color=colour, marker=marker, linestyle=line, markersize=5, label=name)
    for name in REFERENCES:
        colour, line = style.STYLES[name][0], {NAIVE: "-.", LEAST_SQUARES: ":"}.get(name, "--")
        error = large.loc[large["method"] == name, "error"].iloc[0]
        axes.axhline(error, color=colour, linestyle=line, linewidth=1.2, label=name)
    style.tidy(
        axes,
        "processor seconds, one thread",
        "mean absolute error of the rates\n(lower is better)",
        f"rates of {large['data'].iloc[0]} data",
    )
    axes.set_xscale("log")
    style.legend(figure)
    return figure
