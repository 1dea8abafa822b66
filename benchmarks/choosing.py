"""How many topics: what held-out reports say, and what the true counts say.

python benchmarks/choosing.py [FOLDER] [DRAWS]

Reuters (395 stories, 1,000 words after the 20 most frequent) comes with the extra ``demo``; with a FOLDER that holds
enron_text/enron_ham_1000x1400.npz, e-mails are measured too. At epsilon/N = 1 and 2, DRAWS times (2), the counts are
given seeded noise, ``compare`` ranks 5 to 100 topics, and one chain of 150 sweeps after 150 of tuning is fitted to all
reports with each number. Printed are the differences of held-out scores from the best, per 1,000 cells, with standard
errors; the predictive log score of the true counts per token; what ``compare`` says and what its choice loses; and the
seconds of the comparison. ``python benchmarks/choosing.py --time`` is the time of six numbers of topics up to 200.
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
LEVELS = 1.0, 2.0


def release(counts, level, draw):
    """Reports of these counts with seeded noise."""
    rng, alpha = np.random.default_rng([draw, int(level)]), np.exp(-level)
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    return cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha)


def measure(name, counts, level, draw):
    """Print one comparison beside the truth."""
    data = release(counts, level, draw)
    started = time.perf_counter()
    found = cv.compare(data, [cv.TopicModel(k) for k in TOPICS], seed=draw, progress=False)
    seconds = time.perf_counter() - started
    truth = [predictive_log_score(counts, cv.TopicModel(k, seed=draw, **LONG).fit(data)) for k in TOPICS]
    gaps = zip(found.table["difference"], found.table["standard_error"], strict=True)
    print(
        f"| {name} | {level:g} | held out | " + " | ".join(f"{gap:.2f} ({se:.2f})" for gap, se in gaps) + " |"
    )
    print(f"| | | true counts | {' | '.join(f'{score:.3f}' for score in truth)} |")
    for rule in ("best", "simplest"):
        chosen = truth[found.names.index(getattr(found, rule))]
        print(f"  {rule}: {getattr(found, rule)}, loses {max(truth) - chosen:.3f} per token")
    print(f"  {found.verdict}\n  {seconds:.0f} s", flush=True)


def main():
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    corpora = {"Reuters": load_reuters().counts}
    if arguments == ["--time"]:
        for counts in corpora.values():
            started = time.perf_counter()
            models = [cv.TopicModel(k) for k in (*TOPICS, 200)]
            found = cv.compare(release(counts, 1.0, 0), models, seed=0, progress=False)
            print(f"{time.perf_counter() - started:.0f} s\n{found}")
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
