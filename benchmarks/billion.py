"""A billion counts: privatized, written, and fitted from the files; the time and the peak memory of every stage.

    python benchmarks/billion.py [--rows 40000] [--columns 28000] [--topics 50] [--epsilon 1] [--sweeps 3]
        [--chains 1] [--folder FOLDER] [--stages privatize gibbs truth svi]

Counts are made up a file at a time and never held together: topics over words that follow Zipf's law, rows of
140 tokens in the mean. The stages run in processes of their own, so that each has a peak memory of its own. "own" is
memory that is the process's alone; "all" includes what the operating system keeps of the mapped scratch file, and can
take back. "truth" is "gibbs" begun at the true topics: no start can be better.
"""

import argparse
import resource
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import countveil as cv
from countveil.engines.threads import ThreadEngine
from countveil.evaluation.topics import topic_error
from countveil.fit.parts import UNDETERMINED
from countveil.inference import gibbs, moves, posterior, scoring
from countveil.inference.matching import STABLE, matched
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams

TRUTH = "truth.npy"  # tokens of each row and topic
MAX_DRAWS = 20  # that are kept
TOLD_EVERY = 20  # sweeps


class Case(NamedTuple):
    """The size of the data and of the fits; ``tokens`` a row in the mean."""

    rows: int = 40_000
    columns: int = 28_000
    topics: int = 50
    tokens: float = 140.0
    rows_per_file: int = 2_000
    epsilon: int = 1
    sweeps: int = 3
    chains: int = 1
    threads: int = 2


def true_topics(case: Case) -> np.ndarray:
    """(K, V) topics: each prefers some of the words, of which a few are frequent and most are rare."""
    rng = np.random.default_rng(1)
    frequency = 1.0 / (10.0 + np.arange(case.columns))
    weights = frequency * rng.gamma(0.1, 10.0, (case.topics, case.columns))
    return weights / weights.sum(axis=1, keepdims=True)


def true_counts(case: Case) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
    """The counts of each file's rows, and their tokens of each topic."""
    rng, ends = np.random.default_rng(2), np.cumsum(true_topics(case), axis=1)
    for start in range(0, case.rows, case.rows_per_file):
        n_rows = min(case.rows_per_file, case.rows - start)
        shares = rng.dirichlet(np.full(case.topics, 0.1), n_rows)
        lengths = rng.poisson(rng.gamma(4.0, case.tokens / 4.0, n_rows))
        tokens = rng.multinomial(lengths, shares)
        row, topic = np.nonzero(tokens)
        row, topic = np.repeat(row, tokens[row, topic]), np.repeat(topic, tokens[row, topic])
        word = np.empty(row.size, dtype=np.int64)
        for k in range(case.topics):
            own = np.flatnonzero(topic == k)
            word[own] = np.minimum(np.searchsorted(ends[k], rng.random(own.size)), case.columns - 1)
        counts = sp.coo_array((np.ones(row.size, dtype=np.int64), (row, word)), shape=(n_rows, case.columns))
        yield sp.csr_array(counts), tokens


def privatize(case: Case, folder: Path) -> dict[str, Any]:
    cv.privatize(sp.csr_array((10, 10), dtype=int), cv.PrivacyLevel(1, 1))
    started, making, truth = time.perf_counter(), 0.0, []

    def parts() -> Iterator[sp.csr_array]:
        nonlocal making
        parts = true_counts(case)
        while True:
            begun = time.perf_counter()
            part = next(parts, None)
            making += time.perf_counter() - begun
            if part is None:
                return
            truth.append(part[1])
            yield part[0]

    level = cv.PrivacyLevel(epsilon=case.epsilon, precision=1)
    paths = cv.privatize_to_files(parts(), level, folder, threads=case.threads)
    seconds = time.perf_counter() - started
    np.save(folder.parent / TRUTH, np.concatenate(truth))
    tokens = sum(int(part.sum()) for part in truth)
    size = sum(path.stat().st_size for path in paths)
    return {
        "seconds": seconds,
        "of which making the counts up": making,
        "ns a cell": seconds / (case.rows * case.columns) * 1e9,
        "mean count": tokens / (case.rows * case.columns),
        "files": len(paths),
        "MB": size / 1e6,
    }


def svi(case: Case, folder: Path) -> dict[str, Any]:
    started = time.perf_counter()
    files = cv.ReleaseFiles(folder)
    opened = time.perf_counter()
    model = cv.TopicModel(case.topics, method=cv.SVI(passes=1), draws=1, seed=1, threads=case.threads, progress=False)
    fit = model.fit(files)
    return {
        "seconds to check the files": opened - started,
        "seconds of the pass and of all rows at the end": time.perf_counter() - opened,
        "topic error": topic_error(true_topics(case), fit.components_),
        "signal share": fit.posterior.attrs["signal_share"],
    }


def sweeps(case: Case, folder: Path, first: tuple[np.ndarray, np.ndarray] | None = None) -> dict[str, Any]:
    """Chains from our start, or from factors (theta, phi); the topics are means of the last half of the sweeps.

    From our start with the moves of a chain that is tuned for as many sweeps.
    """
    laps, truth = Laps(), true_topics(case)
    model = cv.TopicModel(case.topics, likelihood="poisson", seed=1, progress=False)
    given = model._given(cv.ReleaseFiles(folder))
    found: dict[str, Any] = {
        "positive reports": int(given.data.indptr[-1]),
        "seconds to unpack (of processors)": laps.lap(),
    }
    means = []
    with ThreadEngine(case.threads) as engine:
        for chain in range(case.chains):
            of_chain, mean = one_chain(case, given, first, Streams.of_chain(1, chain), engine, truth, laps)
            means.append(mean)
            found |= {name if chain == 0 else f"chain {chain + 1}, {name}": of_chain[name] for name in of_chain}
    found["seconds in all"] = laps.marks[-1][0] - laps.marks[0][0]
    if case.chains > 1:
        weights = np.full(case.chains, 1.0 / case.chains)
        stable = sum(each.support > STABLE for each in matched([[mean] for mean in means], weights))
        found["topics that more than half of the chains have"] = stable
    return found


class Laps:
    """Seconds, and processor seconds."""

    def __init__(self) -> None:
        self.marks = [(time.perf_counter(), time.process_time())]

    def lap(self) -> str:
        """Those since the last lap."""
        self.marks.append((time.perf_counter(), time.process_time()))
        return "{:.1f} ({:.1f})".format(*np.subtract(self.marks[-1], self.marks[-2]))


def one_chain(
    case: Case, given: Any, first: Any, streams: Streams, engine: Any, truth: np.ndarray, laps: Laps
) -> tuple[dict[str, Any], np.ndarray]:
    """What is printed of a chain, and the means of its topics."""
    found: dict[str, Any] = {}
    draws: list[np.ndarray] = []
    mean = np.zeros(truth.shape)
    plan = Plan(given.data, given.model)
    most = moves.n_mergings(given.model, given.data.shape)
    n_moves = 0 if first is not None else min(most, case.sweeps // moves.TUNE_PER_MOVE)
    algorithm = moves.Moving(gibbs, n_moves)
    if first is None:
        state = algorithm.init(plan, given.model, streams, engine)
    else:
        state = gibbs.State(first, given.model.initial_hypers(), 0)
    found["seconds to start (of processors)"] = laps.lap()
    own = given.model.as_wide_as(state.factors)  # more components than the model's where moves follow
    found["topic error of the start"] = topic_error(truth, topics_of(own, state.factors))
    seconds = []
    for sweep in range(case.sweeps):
        state, _info = algorithm.step(state, plan, given.model, streams, engine)
        seconds.append(laps.lap())
        if sweep >= case.sweeps // 2:
            draws = [*draws[1 - MAX_DRAWS :], topics_of(given.model, state.factors).astype(np.float32)]
            mean += topics_of(given.model, state.factors)
        if (sweep + 1) % TOLD_EVERY == 0:
            error = topic_error(truth, topics_of(given.model, state.factors))
            wall, spent = np.subtract(laps.marks[-1], laps.marks[0])
            print(f"  sweep {sweep + 1}, {wall:.0f} s ({spent:.0f}): topic error {error:.3f}", flush=True)
    found["log-likelihood"] = scoring.log_likelihood(state.factors, given.data, given.model, engine)
    kept = seconds if len(seconds) <= 6 else [*seconds[:3], "...", *seconds[-3:]]
    found["seconds of each sweep (of processors)"] = ", ".join(kept)
    mean /= case.sweeps - case.sweeps // 2
    found["topic error of the mean topics"] = topic_error(truth, mean)
    spread = posterior.spread(np.array(draws)[None])
    found["spread of the topics"] = float(spread.mean())
    found["topics that are largely undetermined"] = int((spread > UNDETERMINED).sum())
    return found, mean


def from_truth(case: Case, folder: Path) -> dict[str, Any]:
    """Sweeps that begin at the true topics and tokens."""
    tokens = np.load(folder.parent / TRUTH)
    return sweeps(case, folder, (np.maximum(tokens, 0.01), np.ascontiguousarray(true_topics(case).T)))


def topics_of(model: Any, factors: tuple[np.ndarray, ...]) -> np.ndarray:
    """(K, V) topics as distributions."""
    phi = model.matrices(factors)[1]
    return (phi / phi.sum(axis=0)).T


def memory() -> dict[str, float]:
    """Peak memory of this process in GB, and what it has to itself now."""
    found = {"GB at the peak, all": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        found["GB at the end, own"] = int(lines["RssAnon"].split()[0]) / 1e6
    return found


STAGES = {"privatize": privatize, "gibbs": sweeps, "truth": from_truth, "svi": svi}


def stage(name: str, case: Case, folder: Path) -> dict[str, Any]:
    """One stage in a process of its own; kernels are compiled, or read from the cache, before the clock starts."""
    warnings.simplefilter("ignore")
    if name != "privatize":
        tiny = cv.privatize(sp.csr_array(np.eye(40, dtype=int)), cv.PrivacyLevel(1, 1))
        cv.TopicModel(2, method=cv.SVI(passes=1), draws=1, progress=False).fit(tiny)
        cv.TopicModel(2, likelihood="poisson", draws=1, tune=0, chains=1, progress=False).fit(tiny)
    before = time.process_time()
    found = STAGES[name](case, folder)
    return found | {"processor seconds": time.process_time() - before} | memory()


def run(case: Case, folder: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """Stages, one after another, each printed when it is done."""
    results = {}
    print(f"{case.rows} x {case.columns} = {case.rows * case.columns:.3g} counts, K = {case.topics}")
    for name in names:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            results[name] = pool.submit(stage, name, case, folder).result()
        print(f"\n{name}")
        for key, value in results[name].items():
            print(f"  {key}: {value:.4g}" if isinstance(value, float) else f"  {key}: {value}", flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in Case._field_defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    parser.add_argument("--folder", type=Path, help="where to keep the release files [default: nowhere]")
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=["privatize", "gibbs", "svi"])
    options = vars(parser.parse_args())
    names, folder = options.pop("stages"), options.pop("folder")
    if "privatize" not in names and folder is None:
        parser.error("--folder must be that of an earlier run where --stages leaves out privatize")
    kept = folder is not None
    home = Path(tempfile.mkdtemp(dir=".", prefix=".billion")) if not kept else folder.parent
    try:
        run(Case(**options), folder if kept else home / "parts", names)
    finally:
        if not kept:
            shutil.rmtree(home)


if __name__ == "__main__":
    main()
