"""How many topics: what held-out reports say, and what the true counts say.

python benchmarks/choosing.py [FOLDER] [DRAWS]

Reuters (395 stories, 1,000 words after the 20 most frequent) comes with the extra ``demo``; with a FOLDER that holds
enron_text/enron_ham_1000x1400.npz, e-mails are measured too. At epsilon/N = 1 and 2, DRAWS times (2), the counts are
given seeded noise, ``compare`` ranks 5 to 100 topics, and one chain of 150 sweeps after 150 of tuning is fitted to all
reports with each number. Printed are the differences of held-out scores from the best, per 1,000 cells, with standard
errors; the predictive log score of the true counts per token; what the model with the highest score loses, and the
smallest one level with it; and the time of the comparison.

python benchmarks/choosing.py --time

prints how long six numbers of topics take, up to 200, on Reuters at epsilon/N = 1.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import countveil as cv
from countveil.evaluation import predictive_log_score
from countveil.experiments.reuters import load_reuters

TOPICS = 5, 10, 20, 50, 100
LONG = {"chains": 1, "tune": 150, "draws": 150, "progress": False}
SHORT = {"tune": 60, "draws": 12, "thin": 4, "progress": False}  # of fewer draws than by default
LEVELS = 1.0, 2.0


def release(counts, level, draw):
    """Reports of these counts with seeded noise."""
    rng, alpha = np.random.default_rng([draw, int(level)]), np.exp(-level)
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    return cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha)


def measure(name, counts, level, draw):
    """Print one comparison beside the truth."""
    data = release(counts, level, draw)
    started = time.process_time()
    found = cv.compare(data, [cv.TopicModel(k) for k in TOPICS], seed=draw, **SHORT)
    seconds = time.process_time() - started
    truth = [predictive_log_score(counts, cv.TopicModel(k, seed=draw, **LONG).fit(data)) for k in TOPICS]
    gaps = zip(found.table["difference"], found.table["standard_error"], strict=True)
    print(
        f"| {name} | {level:g} | held out | " + " | ".join(f"{gap:.2f} ({se:.2f})" for gap, se in gaps) + " |"
    )
    print(f"| | | true counts | {' | '.join(f'{score:.3f}' for score in truth)} |")
    by_name = dict(zip(found.names, truth, strict=True))
    smallest = found.level[0]
    losses = [f"{name} loses {max(truth) - by_name[name]:.3f} per token" for name in (found.best, smallest)]
    print(f"  the best: {losses[0]}; the smallest that is level: {losses[1]}")
    print(f"  {found.verdict}\n  {seconds:.0f} s of one core", flush=True)


def main():
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    corpora = {"Reuters": load_reuters().counts}
    if arguments == ["--time"]:
        for counts in corpora.values():
            wall, processor = time.perf_counter(), time.process_time()
            models = [cv.TopicModel(k) for k in (*TOPICS, 200)]
            found = cv.compare(release(counts, 1.0, 0), models, seed=0, progress=False)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            print(f"{wall:.0f} s, {processor:.0f} s of one core\n{found}")
        return
    if arguments and not arguments[0].isdigit():
        path = Path(arguments.pop(0)) / "enron_text/enron_ham_1000x1400.npz"
        corpora["e-mails"] = sp.load_npz(path).toarray()
    draws = int(arguments[0]) if arguments else 2
    for name, counts in corpora.items():
        for level in LEVELS:
            for draw in range(draws):
                measure(name, counts, level, draw)


if __name__ == "__main__":
    main()
