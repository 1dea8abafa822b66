"""A billion counts: privatized, written, and fitted from the files; the time and the peak memory of every stage.

    python benchmarks/billion.py [--rows 40000] [--columns 28000] [--topics 50] [--folder FOLDER]
        [--stages privatize gibbs svi]

Counts are made up a file at a time and never held together: topics over words that follow Zipf's law, rows of
140 tokens in the mean. The stages run in processes of their own, so that each has a peak memory of its own. "own" is
memory that is the process's alone; "all" includes what the operating system keeps of the mapped scratch file, and can
take back.
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
from countveil.evaluation.alignment import topic_error
from countveil.inference import gibbs
from countveil.inference.streams import Streams


class Case(NamedTuple):
    """The size of the data and of the fits; ``tokens`` a row in the mean."""

    rows: int = 40_000
    columns: int = 28_000
    topics: int = 50
    tokens: float = 140.0
    rows_per_file: int = 2_000
    sweeps: int = 3
    threads: int = 2


def true_topics(case: Case) -> np.ndarray:
    """(K, V) topics: each prefers some of the words, of which a few are frequent and most are rare."""
    rng = np.random.default_rng(1)
    frequency = 1.0 / (10.0 + np.arange(case.columns))
    weights = frequency * rng.gamma(0.1, 10.0, (case.topics, case.columns))
    return weights / weights.sum(axis=1, keepdims=True)


def true_counts(case: Case) -> Iterator[sp.csr_array]:
    """The counts of each file's rows."""
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
        yield sp.csr_array(counts)


def privatize(case: Case, folder: Path) -> dict[str, Any]:
    cv.privatize(sp.csr_array((10, 10), dtype=int), cv.PrivacyLevel(1, 1))
    started, making, tokens = time.perf_counter(), 0.0, 0

    def parts() -> Iterator[sp.csr_array]:
        nonlocal making, tokens
        parts = true_counts(case)
        while True:
            begun = time.perf_counter()
            part = next(parts, None)
            making += time.perf_counter() - begun
            if part is None:
                return
            tokens += int(part.sum())
            yield part

    paths = cv.privatize_to_files(
        parts(), cv.PrivacyLevel(epsilon=1, precision=1), folder, threads=case.threads
    )
    seconds = time.perf_counter() - started
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
    model = cv.TopicModel(
        case.topics, method="svi", passes=1, draws=1, seed=1, threads=case.threads, progress=False
    )
    fit = model.fit(files)
    return {
        "seconds to check the files": opened - started,
        "seconds of the pass and of all rows at the end": time.perf_counter() - opened,
        "topic error": topic_error(true_topics(case), fit.components_),
        "signal share": fit.posterior.attrs["signal_share"],
    }


def sweeps(case: Case, folder: Path) -> dict[str, Any]:
    marks = [(time.perf_counter(), time.process_time())]

    def lap() -> str:
        """Seconds, and processor seconds, since the last lap."""
        marks.append((time.perf_counter(), time.process_time()))
        return "{:.1f} ({:.1f})".format(*np.subtract(marks[-1], marks[-2]))

    model = cv.TopicModel(case.topics, seed=1, progress=False)
    given = model._given(cv.ReleaseFiles(folder))
    found: dict[str, Any] = {
        "positive reports": int(given.data.indptr[-1]),
        "seconds to unpack (of processors)": lap(),
    }
    streams = Streams.of_chain(1, 0)
    with ThreadEngine(case.threads) as engine:
        state = gibbs.init(given.data, given.model, streams, engine)
        found["seconds to start (of processors)"] = lap()
        seconds = []
        for _ in range(case.sweeps):
            state, _info = gibbs.step(state, given.data, given.model, streams, engine)
            seconds.append(lap())
    found["seconds of each sweep (of processors)"] = ", ".join(seconds)
    phi = given.model.matrices(state.factors)[1]
    found["topic error"] = topic_error(true_topics(case), (phi / phi.sum(axis=0)).T)
    return found


def memory() -> dict[str, float]:
    """Peak memory of this process in GB, and what it has to itself now."""
    found = {"GB at the peak, all": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        found["GB at the end, own"] = int(lines["RssAnon"].split()[0]) / 1e6
    return found


STAGES = {"privatize": privatize, "gibbs": sweeps, "svi": svi}


def stage(name: str, case: Case, folder: Path) -> dict[str, Any]:
    """One stage in a process of its own; kernels are compiled, or read from the cache, before the clock starts."""
    warnings.simplefilter("ignore")
    if name != "privatize":
        tiny = cv.privatize(sp.csr_array(np.eye(40, dtype=int)), cv.PrivacyLevel(1, 1))
        cv.TopicModel(2, method="svi", passes=1, draws=1, progress=False).fit(tiny)
        cv.TopicModel(2, draws=1, tune=0, chains=1, progress=False).fit(tiny)
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
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=list(STAGES))
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
