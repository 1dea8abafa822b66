"""What the time of making a report tells about the counts in it, and about the noise: differences of medians.

python benchmarks/timing.py
python benchmarks/timing.py --cells 100 --level 1:1 --repetitions 5000

Each pair is measured in turns, in a random order, so that whatever else the machine does meets both alike. Printed: the
two medians, the median of the differences within turns with a 99.9% bootstrap interval over blocks of turns, and how
often the second takes longer than the first of its turn (50% if nothing can be told). The pair of equal counts shows
what chance alone gives.
"""

import argparse
import gc
import json
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from countveil.privacy import PrivacyLevel, counting, noise, privatize, report, study

BLOCK = 20
NAMES = ("all 0, twice", "all 0, all 1", "all 0, all 1,000,000", "all 0, all 2^61", "all 0, one 1,000,000")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--level", default="10:1", help="N:epsilon")
    options = parser.parse_args()
    precision, _, epsilon = options.level.partition(":")
    level, cells = PrivacyLevel(epsilon, precision), options.cells
    print(
        f"{cells} cells, N:epsilon {options.level}, {options.repetitions} repetitions of each; microseconds\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        for route, make in routes(level, cells, Path(folder)).items():
            print(route)
            for name, pair in zip(NAMES, pairs(cells), strict=True):
                show(name, in_turns([partial(make, counts) for counts in pair], options.repetitions))
        print("before the noise: what is read")
        for name, makes in readings(level, cells).items():
            show(name, in_turns(makes, options.repetitions))
        print("drawing noise alone, by what was drawn")
        show("low sums of |noise|, high", by_noise(level, cells, options.repetitions))
    if shutil.which("node"):
        print("the page's JavaScript in Node: drawing noise and adding it")
        for name, pair in zip(NAMES, pairs(cells), strict=True):
            show(name, in_node(level, pair, options.repetitions))


def pairs(cells: int) -> list[tuple[list[int], list[int]]]:
    zeros = [0] * cells
    one = [1_000_000, *zeros[1:]]
    return [(zeros, other) for other in ([0] * cells, [1] * cells, [10**6] * cells, [2**61] * cells, one)]


def routes(level: PrivacyLevel, cells: int, folder: Path) -> dict[str, Callable[[list[int]], object]]:
    """Ways from counts to noisy counts and to files."""
    planned = study.new("T", "T", "t", [level], [("word", [f"w{n}" for n in range(cells)])])
    signed = study.new("T", "T", "t", [level], [("word", [f"w{n}" for n in range(cells)])], truncated=False)
    token = "0" * 32

    def added(counts: list[int]) -> object:
        return report.privatized(counts, planned, level, token)

    def written(asked: study.Study) -> Callable[[list[int]], object]:
        def make(counts: list[int]) -> object:
            path = folder / "report.json"
            return path.write_bytes(report.encode(report.privatized(counts, asked, level, token), asked))

        return make

    def saved(counts: list[int]) -> object:
        return privatize(np.array([counts]), level).save(folder / "release.npz")

    return {
        "participant's command: noise drawn and added": added,
        "participant's command: the same and the file written": written(planned),
        "the same, reports with their sign": written(signed),
        "countveil.privatize of an array, and the file written": saved,
    }


def readings(level: PrivacyLevel, cells: int) -> dict[str, list[Callable[[], object]]]:
    """Ways in which the size of what is read shows in the time."""
    vocabulary = [f"w{n}" for n in range(cells)]
    asked = study.new("T", "T", "t", [level], [("word", vocabulary)])
    texts = [" ".join(random.Random(1).choices(vocabulary, k=words)) for words in (1000, 2000)]
    sparse = [csr_array(np.array([counts])) for counts in ([0] * cells, [1] * cells)]
    return {
        "text of 1,000 words, 2,000": [partial(counting.count_text, text, asked.labels[0]) for text in texts],
        "sparse array, all 0, all 1": [partial(privatize, counts, level) for counts in sparse],
    }


def in_turns(makes: list[Callable[[], object]], repetitions: int) -> np.ndarray:
    """Microseconds, shape (repetitions, 2)."""
    took = np.empty((repetitions, 2))
    order = random.Random(1)
    for make in makes * 3:
        make()
    gc.collect()
    gc.disable()
    for turn in range(repetitions):
        for which in order.sample((0, 1), 2):
            start = time.perf_counter_ns()
            makes[which]()
            took[turn, which] = (time.perf_counter_ns() - start) / 1000
    gc.enable()
    return took


def by_noise(level: PrivacyLevel, cells: int, repetitions: int) -> np.ndarray:
    """The times of draws whose sum of magnitudes is below the median, and above it."""
    took, sums = np.empty(2 * repetitions), np.empty(2 * repetitions)
    gc.disable()
    for turn in range(2 * repetitions):
        start = time.perf_counter_ns()
        drawn = noise.draw(level.rate, cells)
        took[turn] = (time.perf_counter_ns() - start) / 1000
        sums[turn] = sum(map(abs, drawn))
    gc.enable()
    ranked = np.argsort(sums, kind="stable")
    halves = [np.sort(ranked[:repetitions]), np.sort(ranked[repetitions:])]  # in the order of time again
    return np.stack([took[half] for half in halves], axis=1)


def in_node(level: PrivacyLevel, pair: tuple[list[int], list[int]], repetitions: int) -> np.ndarray:
    page = Path(report.__file__).parents[1] / "study" / "page"
    made = json.dumps([[str(count) for count in counts] for counts in pair])
    script = f"""
{(page / "survival.js").read_text()}
{(page / "noise.js").read_text()}
const sampler = new Sampler({{ num: {level.rate.numerator}n, den: {level.rate.denominator}n }});
const entropy = (n) => require("crypto").randomFillSync(new Uint8Array(n));
const pair = {made}.map((counts) => counts.map(BigInt));
const zero = 0n, took = [];
const make = (counts) => {{
  const drawn = sampler.draw(counts.length, entropy);
  return counts.map((count, i) => {{ const r = count + drawn[i]; return r > zero ? r : zero; }});
}};
let kept = 0;
for (let turn = -200; turn < {repetitions}; turn++) {{
  const first = Math.random() < 0.5 ? 0 : 1, row = [0, 0];
  for (const which of [first, 1 - first]) {{
    const start = process.hrtime.bigint();
    kept += make(pair[which]).length;
    row[which] = Number(process.hrtime.bigint() - start) / 1000;
  }}
  if (turn >= 0) took.push(row);
}}
console.log(JSON.stringify(took));
"""
    done = subprocess.run(["node", "-"], input=script, capture_output=True, text=True, check=True)
    return np.array(json.loads(done.stdout))


def show(name: str, took: np.ndarray) -> None:
    """Medians, their difference, its interval, and the probability that one time is above another."""
    rng = np.random.default_rng(1)
    differences = np.diff(took, axis=1)[:, 0]
    blocks = differences[: len(took) // BLOCK * BLOCK].reshape(-1, BLOCK)
    drawn = [np.median(blocks[rng.integers(0, len(blocks), len(blocks))]) for _ in range(10_000)]
    low, high = np.quantile(drawn, [0.0005, 0.9995])
    first, second = np.median(took, axis=0)
    print(
        f"  {name:26} {first:9.1f} {second:9.1f}   difference {np.median(differences):+8.2f} "
        f"[{low:+.2f}, {high:+.2f}]   second longer {np.mean(differences > 0):.1%}",
        flush=True,
    )


if __name__ == "__main__":
    main()
