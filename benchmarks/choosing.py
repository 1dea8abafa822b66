"""From reports to a fit with a number of topics that was chosen: what the choice and its chains gain.

python benchmarks/choosing.py [FOLDER] [DRAWS]

Reuters (395 stories, 1,000 words after the 20 most frequent) comes with the extra ``demo``; with a FOLDER that holds
enron_text/enron_ham_1000x1400.npz, e-mails are measured too. At epsilon/N = 1 and 2, DRAWS times (2), the counts are
given seeded noise, and a model with ``n_topics="auto"`` is fitted by four chains of 150 sweeps of tuning and 100 draws.
Printed are the differences of held-out scores from the best, per 1,000 cells, with standard errors; the predictive log
score of the true counts per token of one chain of 100 sweeps after 100 of tuning with each number of topics, and what
the number chosen loses; and the same score of the fit: of its best chain, of all with equal and with stacked weights,
and of 20 topics of Poisson counts with shape .1, fitted by two chains.

python benchmarks/choosing.py --time

prints how long ``compare`` takes for six numbers of topics, up to 200, on Reuters at epsilon/N = 1.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from stacking import scores_of_chains

import countveil as cv
from countveil.estimators.choosing import CANDIDATES
from countveil.evaluation import predictive_log_score
from countveil.experiments.reuters import load_reuters

QUIET = {"progress": False, "threads": 1}
EACH = {"chains": 1, "tune": 100, "draws": 100, **QUIET}
CHOSEN = {"chains": 4, "tune": 150, "draws": 100, "weights": "stacked", **QUIET}
BEFORE = {"chains": 2, "tune": 150, "draws": 100, "likelihood": "poisson", "prior_shape": 0.1, **QUIET}
LEVELS = 1.0, 2.0


def release(counts, level, draw):
    """Reports of these counts with seeded noise."""
    rng, alpha = np.random.default_rng([draw, int(level)]), np.exp(-level)
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    return cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha)


def measure(name, counts, level, draw):
    """Print one choice, and the fit that it ends in, beside the truth."""
    data, tokens = release(counts, level, draw), counts.sum()
    started = time.process_time()
    fit = cv.TopicModel("auto", seed=draw, **CHOSEN).fit(data)
    seconds = time.process_time() - started
    truth = [predictive_log_score(counts, cv.TopicModel(k, seed=draw, **EACH).fit(data)) for k in CANDIDATES]
    table, chosen = fit.selection_.table, truth[CANDIDATES.index(fit.n_topics_)]
    gaps = zip(table["difference"], table["standard_error"], strict=True)
    print(f"| {name} | {level:g} | held out | {' | '.join(f'{gap:.2f} ({se:.2f})' for gap, se in gaps)} |")
    print(f"| | | true counts | {' | '.join(f'{score:.3f}' for score in truth)} |")
    print(f"  {fit.n_topics_} topics lose {max(truth) - chosen:.3f} per token; {seconds:.0f} s of one core")
    scores = scores_of_chains(fit, counts, None)
    equal, stacked = (logsumexp(scores, axis=1, b=w).sum() / tokens for w in (np.full(4, 0.25), fit.weights_))
    before = predictive_log_score(counts, cv.TopicModel(20, seed=draw, **BEFORE).fit(data))
    best = scores.sum(axis=0).max() / tokens
    print(
        f"  best chain {best:.4f}, equal {equal:.4f}, stacked {stacked:.4f}, before {before:.4f}", flush=True
    )


def main():
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    corpora = {"Reuters": load_reuters().counts}
    if arguments == ["--time"]:
        for counts in corpora.values():
            wall, processor = time.perf_counter(), time.process_time()
            models = [cv.TopicModel(k) for k in (*CANDIDATES, 200)]
            found = cv.compare(release(counts, 1.0, 0), models, seed=0, progress=False)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            print(f"{wall:.0f} s, {processor:.0f} s of one core\n{found}")
        return
    if arguments and not arguments[0].isdigit():
        path = Path(arguments.pop(0)) / "enron_text/enron_ham_1000x1400.npz"
        corpora["e-mails"] = sp.load_npz(path).toarray()
    for draw in range(int(arguments[0]) if arguments else 2):
        for name, counts in corpora.items():
            for level in LEVELS:
                measure(name, counts, level, draw)


if __name__ == "__main__":
    main()
