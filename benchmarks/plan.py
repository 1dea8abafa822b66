"""Does countveil plan predict? Its errors beside those of fresh privatizations of the real corpus.

python benchmarks/plan.py                               # Reuters, from the extra `demo`
python benchmarks/plan.py COUNTS.npz --topics 20        # any corpus that the command line reads
python benchmarks/plan.py --pilot-rows 100              # predicted from 100 of its rows, too

Predictions are of simulated studies: true counts drawn from a model of the pilot, simulated noise. Measurements
are of the real counts under real noise (privatize), fitted in the same way. Topics: in a simulation against the
true topics, on the real corpus, which has none, against those of a fit of its true counts.
"""

import argparse
import time

import numpy as np
import pandas as pd

from countveil.common.console import error_console
from countveil.common.watcher import ProgressWatcher
from countveil.planning import FromModel, FromPilot, Grid, Truth, simulate, summary
from countveil.planning.contenders import LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS
from countveil.planning.simulate import NO_NOISE, evaluate, fit
from countveil.privacy import PrivacyLevel, privatize

SHOWN = ("mae", "log_score", "topic_error", "interval_width", "share_width", "total")


def corpus(path: str | None) -> np.ndarray:
    """True counts, dense."""
    if path is None:
        from countveil.experiments.reuters import load_reuters

        return load_reuters().counts
    from countveil.data.io import read_counts

    values = read_counts(path).values
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values).astype(np.int64)


def measured(counts: np.ndarray, levels: list[PrivacyLevel], n_topics: int, releases: int) -> pd.DataFrame:
    """One row a fit of a fresh privatization, as ``simulate`` gives them."""
    truth = Truth(
        counts, None, FromPilot(counts, n_topics, seed=7, threads=1).draw(2, np.random.default_rng()).topics
    )
    rows = []
    for draw in range(releases):
        clean = fit(TRUE_COUNTS, counts, n_topics, 100 + draw)
        rows.append((NO_NOISE, TRUE_COUNTS, evaluate(truth, clean, np.random.default_rng(draw))))
        for level in levels:
            release = privatize(counts, level, truncate=False)
            assert not release.simulated
            for method in (OURS.name, NAIVE.name, LEAST_SQUARES.name):
                found = evaluate(truth, fit(method, release, n_topics, draw), np.random.default_rng(draw))
                rows.append((f"{level.precision}:{level.epsilon}", method, found))
    frame = pd.DataFrame([{"level": level, "method": method, **found} for level, method, found in rows])
    return frame.assign(rows=len(counts), precision="", epsilon="", seconds=0.0)


def compare(predicted: pd.DataFrame, seen: pd.DataFrame, how: str) -> None:
    """Print a row for each level and method: predicted, measured, and how far off the prediction is."""
    keys = ["level", "method"]
    both = predicted.merge(seen, on=keys, suffixes=("", "_seen"))
    print(f"\nPredicted from {how}; then measured; then predicted over measured, less one\n")
    print("| N:epsilon | method | " + " | ".join(SHOWN) + " |\n|" + " --- |" * (2 + len(SHOWN)))
    for _, row in both.iterrows():
        cells = []
        for measure in SHOWN:
            mean, real = row[measure], row[f"{measure}_seen"]
            cells.append(
                "-" if np.isnan(mean) else f"{mean:.3f} ± {row[f'{measure}_error']:.3f}; {real:.3f} ± "
                f"{row[f'{measure}_error_seen']:.3f}; {mean / real - 1:+.1%}"
            )  # fmt: skip
        print(f"| {row['level']} | {row['method']} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("counts", nargs="?", help="true counts, a record a row [Reuters]")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--level", action="append", metavar="N:EPSILON")
    parser.add_argument("--pilot-rows", type=int, help="predict from so many rows of the corpus, too")
    parser.add_argument("--replicates", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--own-rows", action="store_true", help="predict by re-noising the pilot itself, too")
    options = parser.parse_args()
    counts = corpus(options.counts)
    levels = [PrivacyLevel(*reversed(text.split(":"))) for text in options.level or ("1:1", "1:2", "1:3")]
    grid = Grid(levels, [len(counts)], options.replicates, seed=1, threads=options.threads)
    sources = [FromModel(counts, options.topics, 1, threads=1)]
    if options.pilot_rows:
        some = np.random.default_rng(3).permutation(len(counts))[: options.pilot_rows]
        sources.append(FromModel(counts[np.sort(some)], options.topics, 1, threads=1))
    if options.own_rows:
        sources.append(FromPilot(counts, options.topics, 1, threads=1))
    begun = time.perf_counter()
    seen = summary(measured(counts, levels, options.topics, options.replicates))
    print(f"measured in {time.perf_counter() - begun:.0f} s")
    for source in sources:
        begun = time.perf_counter()
        with ProgressWatcher(error_console()) as watcher:
            predicted = summary(simulate(grid, source, watcher))
        compare(predicted, seen, source.about)
        print(f"predicted in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
