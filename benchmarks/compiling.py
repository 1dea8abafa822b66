"""What first fits cost: ``python benchmarks/compiling.py [CASE ...] [--all]``, each in a process of its own.

The first case begins with an empty cache, and each of the others finds what those before it have left there. Printed
are processor seconds, those of the imports apart, the whole process's wall-clock seconds, and how many functions were
compiled in how many seconds; with ``--all`` every function, and for which types. With PYTHONPATH at another checkout's
``src`` that one is measured.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

CASES = {
    "TopicModel gibbs": ("TopicModel", {"n_topics": 5, "method": "gibbs"}),
    "TopicModel gibbs, again": ("TopicModel", {"n_topics": 5, "method": "gibbs"}),
    "BlockModel gibbs": ("BlockModel", {"n_communities": 5, "method": "gibbs"}),
    "TensorModel gibbs": ("TensorModel", {"n_components": 5, "method": "gibbs"}),
    "TopicModel cavi": ("TopicModel", {"n_topics": 5, "method": "cavi"}),
    "TopicModel em": ("TopicModel", {"n_topics": 5, "method": "em"}),
    "TopicModel svi": ("TopicModel", {"n_topics": 5, "method": "svi"}),
    "TopicModel augmented-gibbs": ("TopicModel", {"n_topics": 5, "method": "augmented-gibbs"}),
}
SHORT = {"draws": 5, "tune": 5, "chains": 2, "max_iter": 5, "seed": 1, "threads": 2, "progress": False}
LISTED = 12


def measure(case):
    """Print what the first fit of a case costs, as JSON."""
    import numpy as np
    from numba.core.event import install_listener

    import countveil as cv

    name, parameters = CASES[case]
    model = getattr(cv, name)
    rng = np.random.default_rng(1)
    shape = {"TopicModel": (40, 30), "BlockModel": (20, 20), "TensorModel": (12, 10, 8)}[name]
    release = cv.simulate_release(rng.poisson(1.0, shape), cv.PrivacyLevel(1.0, 1), rng)
    imports, found = time.process_time(), listener()
    with install_listener("numba:compile", found), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(**parameters, **SHORT).fit(release)
    functions = sorted(
        ((seconds, name, sorted(found.signatures[name])) for name, seconds in found.seconds.items()),
        reverse=True,
    )
    print(json.dumps({"imports": imports, "fit": time.process_time() - imports, "functions": functions}))


def listener():
    """What adds up the seconds that each function takes to compile, those of what it calls apart."""
    from numba.core.event import Listener

    class Compilations(Listener):
        def __init__(self):
            self.open, self.seconds, self.signatures = [], defaultdict(float), defaultdict(set)

        def on_start(self, event):
            self.open.append([time.thread_time(), 0.0])

        def on_end(self, event):
            started, inside = self.open.pop()
            spent = time.thread_time() - started
            if self.open:
                self.open[-1][1] += spent
            function = event.data["dispatcher"].py_func
            name = f"{function.__module__}.{function.__qualname__}"
            self.seconds[name] += spent - inside
            self.signatures[name].add(str(event.data["args"]))

    return Compilations()


def measured(case, cache):
    """What ``measure`` prints in a process of its own, and that process's wall-clock seconds."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", case]
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout) | {"process": time.perf_counter() - started}


def main(wanted, everything):
    """Print a line for each case, and what took longest to compile."""
    print("| first fit | imports, s | fit, s | compiling, s | functions | signatures | wall, s |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    listed = {}
    with tempfile.TemporaryDirectory() as cache:
        for case in wanted or CASES:
            found = measured(case, cache)
            functions = listed[case] = found["functions"]
            seconds = [found["imports"], found["fit"], sum(seconds for seconds, _, _ in functions)]
            numbers = [len(functions), sum(len(types) for _, _, types in functions)]
            cells = [f"{x:.1f}" for x in seconds] + [str(n) for n in numbers] + [f"{found['process']:.1f}"]
            print(f"| {case} | {' | '.join(cells)} |", flush=True)
    for case, functions in listed.items():
        print(f"\n{case}: seconds, signatures, function")
        for seconds, name, types in functions if everything else functions[:LISTED]:
            print(f"  {seconds:6.2f} {len(types):3d}  {name}")
            for text in types if everything else ():
                print(f"{'':15}{text}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2])
    else:
        main([name for name in sys.argv[1:] if name != "--all"], "--all" in sys.argv)
