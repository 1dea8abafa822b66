"""Seconds of a step in this checkout over those in another: ``python benchmarks/against.py ../other [rounds [case]]``.

Two processes, one for each checkout, take the same steps from the same start on the same data in turns, so that a
machine that slows down slows both. Printed are processor seconds and the median of the ratios of the turns.
"""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
CASES = (
    "gibbs, big", "cavi, big", "em, big", "gibbs, blocks", "log-likelihood, big", "gibbs by tokens",
    "gibbs by tokens, bursts", "gibbs by tokens, rounding",
)  # fmt: skip
STEPS = 5


def worker() -> None:
    """Answer each case that is named on a line with the processor seconds of its next steps."""
    made: dict = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            made[name] = prepared(name)
            for _ in range(3):
                made[name]()
        print(json.dumps(made[name]()), flush=True)


def prepared(name):
    """A function that takes some steps of a case and returns their seconds."""
    import time

    from threadpoolctl import threadpool_limits

    import countveil as cv
    from countveil.engines.threads import ThreadEngine
    from countveil.inference import cavi, em, gibbs
    from countveil.inference.streams import Streams

    threadpool_limits(limits=1, user_api="blas")
    kind = name.partition(",")[0]
    poisson = {"likelihood": "poisson"} if "likelihood" in cv.TopicModel().get_params() else {}
    if "bursts" in name:
        poisson = {"likelihood": "negative-binomial", "dispersion": "column"}
    if kind in ("cavi", "em"):
        poisson["method"] = kind
    rng = np.random.default_rng(20190601)
    if "blocks" in name:
        model = cv.BlockModel(10, seed=1, **poisson)
        counts = rng.poisson(rng.gamma(0.3, 1.0, (160, 10)) @ rng.gamma(0.3, 1.0, (10, 160)))
    else:
        model = cv.TopicModel(50, seed=1, **poisson)
        tokens = "tokens" in name
        d, v = (3000, 3000) if tokens else (1000, 1000)
        rate = 0.1 * np.sqrt(50) * (10.0 if tokens else 1.0) ** 0.5
        counts = rng.poisson(rng.gamma(0.1, 1 / rate, (d, 50)) @ rng.gamma(0.1, 1 / rate, (50, v)))
    alpha = np.exp(-1.0)
    noise = rng.geometric(1 - alpha, counts.shape) - rng.geometric(1 - alpha, counts.shape)
    reports = cv.PrivatizedCounts(counts + noise, alpha)
    if "rounding" in name:
        mechanism = cv.mechanisms.RandomRounding(3)
        reports = cv.Reports(cv.simulate_reports(counts, mechanism, rng), mechanism)
    given = model._given(reports)
    data, engine, streams = given.data, ThreadEngine(1), Streams.of_chain(1, 0)
    algorithm = {"gibbs": gibbs, "cavi": cavi, "em": em}.get(kind.split()[0], gibbs)
    takes = inspect.signature(algorithm.init).parameters
    more = (engine,) if "engine" in takes else ()
    if "start" in takes:  # the one that older checkouts have: sweeps of other states take other times
        from countveil.inference.starts import least_squares

        more = engine, least_squares
    try:
        from countveil.inference.plan import Plan

        plan = Plan(data, given.model)
    except ModuleNotFoundError:  # older checkouts take the data themselves
        plan = data
    state = [algorithm.init(plan, given.model, streams, *more)]

    def step():
        started = time.thread_time()
        for _ in range(STEPS):
            if name.startswith("log"):
                score(state[0].factors, data, given.model, engine)
            else:
                state[0], _ = algorithm.step(state[0], plan, given.model, streams, engine)
        return (time.thread_time() - started) / STEPS

    if name.startswith("log"):
        try:
            from countveil.inference.scoring import log_likelihood as score
        except ModuleNotFoundError:
            from countveil.inference.gibbs import log_likelihood as score
    return step


def main(other: str, rounds: int = 9, case: str = "") -> None:
    """Print a table of both checkouts, of the cases whose names contain a word."""
    workers = [started(root) for root in (HERE.parents[1], Path(other).resolve())]
    print("| case | ms here | ms there | ratio (median, least and greatest of the turns) |\n| --- | --- | --- | --- |")
    for name in (each for each in CASES if case in each):
        found = np.array([[asked(process, name) for process in workers] for _ in range(rounds)])
        ratios = found[:, 0] / found[:, 1]
        here, there = 1000.0 * np.median(found, axis=0)
        spread = f"{np.median(ratios):.3f} ({ratios.min():.2f} to {ratios.max():.2f})"
        print(f"| {name} | {here:.1f} | {there:.1f} | {spread} |")


def started(root: Path) -> subprocess.Popen:
    """A worker that runs a checkout's code."""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "NUMBA_CACHE_DIR": str(root / "build" / "benchmarks")}
    command = [sys.executable, str(HERE), "--worker"]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def asked(process: subprocess.Popen, name: str) -> float:
    """A worker's answer."""
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        worker()
    elif len(sys.argv) in (2, 3, 4):
        main(sys.argv[1], *map(int, sys.argv[2:3]), *sys.argv[3:])
    else:
        sys.exit(__doc__)
