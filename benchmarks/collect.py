"""Seconds and memory of collecting many reports: by default 100,000 of 1,000 cells each, in one process."""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from countveil.privacy import PrivacyLevel, noise, report, study

CODE = """
import sys, time
from pathlib import Path
from countveil.study.collect import collect, report_files
from countveil.privacy.study import load
folder = Path(sys.argv[1])
start = time.perf_counter()
done = collect(load(folder / "study.json"), report_files([folder / "reports"]), folder / "r.npz", folder / "t.csv")
print(f"{done.accepted} accepted, {done.refused} refused, {time.perf_counter() - start:.1f} s")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=100_000)
    parser.add_argument("--cells", type=int, default=1_000)
    parser.add_argument("--level", default="10:1", help="N:epsilon")
    parser.add_argument("--folder", help="where to put the files [a temporary directory]")
    options = parser.parse_args()
    precision, _, epsilon = options.level.partition(":")
    level = PrivacyLevel(epsilon, precision)
    labels = [f"w{place}" for place in range(options.cells)]
    planned = study.new("Benchmark", "To be measured.", "nobody", [level], [("word", labels)])
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        (folder / "study.json").write_text(planned.to_json())
        (folder / "reports").mkdir()
        start, size = time.perf_counter(), 0
        for i in range(options.reports):
            counts = rng.poisson(0.1, options.cells) + noise.draw_array(level.rate, options.cells)
            made = report.Report(f"{i:032x}", level, np.maximum(counts, 0).tolist())
            size += (folder / "reports" / f"{i:06d}.json").write_bytes(report.encode(made, planned))
        print(
            f"{options.reports} reports, {size / 1e6:.0f} MB, written in {time.perf_counter() - start:.0f} s"
        )
        subprocess.run([sys.executable, "-c", CODE, str(folder)], check=True)
        print(f"release of {(folder / 'r.npz').stat().st_size / 1e6:.0f} MB")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor time {used.ru_utime:.1f} s, and {used.ru_stime:.1f} s in the system")
    peak = used.ru_maxrss
    print(
        f"peak memory of the collecting process {peak / 1e6 if sys.platform != 'darwin' else peak / 1e9:.2f} GB"
    )


if __name__ == "__main__":
    main()
