"""From reports to a fit with a number of topics that ``compare`` chose: what the choice and its chains gain.

python benchmarks/choosing.py [FOLDER] [DRAWS] [CORPUS] [--from DRAW] [--fifths N]

Reuters (395 stories, 1,000 words after the 20 most frequent) comes with the extra ``demo``; with a FOLDER that holds
enron_text/enron_ham_1000x1400.npz, e-mails are measured too. At epsilon/N = 1 and 2, DRAWS times (2), the first of
which is --from (0), the counts are given seeded noise, numbers of topics are compared by five folds, and the best is
fitted by eight chains of 150 sweeps of tuning and 100 draws. Printed are the differences of held-out scores from the
best, per 1,000 cells, with standard errors; the predictive log score of true counts, per token, in --fifths (1) of the
cells, of four such chains that did not see the reports of that fifth; and what the best number loses by it, with its
standard error, and the best by two of the five folds, as many as ``n_topics="auto"`` looks at. Then the same score in
the cells that were seen: of the fit's best chain, of its first four and of all eight with equal weights, of all with
stacked weights, and of 20 topics of Poisson counts with shape .1, fitted by two chains.

python benchmarks/choosing.py --time

prints how long ``compare`` takes for six numbers of topics, 5 to 100, on Reuters at epsilon/N = 1.
"""

import time
import warnings
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from stacking import scores_of_chains

import countveil as cv
from countveil.evaluation import predictive_log_score
from countveil.experiments.reuters import load_reuters
from countveil.fit.choosing import CANDIDATES, FOLDS_SCORED
from countveil.selection.comparison import standard_error

QUIET = {"progress": False, "threads": 1}
EACH = {"chains": 4, "tune": 150, "draws": 100, **QUIET}
CHOSEN = {**EACH, "chains": 8, "weights": "stacked"}
BEFORE = {"chains": 2, "tune": 150, "draws": 100, "likelihood": "poisson", "prior_shape": 0.1, **QUIET}
LEVELS = 1.0, 2.0
LEAST = 10  # topics that true counts are predicted with: five are never enough


def release(counts, level, draw, hidden=None):
    """Reports of these counts with seeded noise, of all cells that are not hidden."""
    rng, alpha = np.random.default_rng([draw, int(level)]), np.exp(-level)
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    return cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha, hidden)


def score(scores, weights, tokens):
    """Per token, of chains with these weights; ``scores`` (cells, chains) of the true counts."""
    return logsumexp(scores, axis=1, b=weights).sum() / tokens


def held_out(counts, level, n_topics, draw, fifths):
    """(D, V) scores of the true counts by fits that did not see the reports; NaN beyond these fifths of the cells."""
    place = np.random.default_rng([draw, 77]).random(counts.shape)
    found = np.full(counts.shape, np.nan)
    for fifth in range(fifths):
        hidden = (5.0 * place).astype(int) == fifth
        fit = cv.TopicModel(n_topics, seed=draw, **EACH).fit(release(counts, level, draw, hidden))
        scores = scores_of_chains(fit, counts, ~hidden)
        found[hidden] = logsumexp(scores, axis=1) - np.log(scores.shape[1])
    return found


def lost(truth, chosen, tokens):
    """What this number of topics loses per token for the best, in words."""
    best = max(truth, key=lambda k: np.nansum(truth[k]))
    gaps = truth[best] - truth[chosen]
    rows, columns = np.nonzero(~np.isnan(gaps))
    error = gaps[rows, columns].size / tokens * standard_error(gaps[rows, columns], rows, columns)
    return f"{np.nansum(gaps) / tokens:.3f} ({error:.3f})"


def measure(name, counts, level, draw, fifths=1):
    """Print one choice, and the fit that it ends in, beside the truth."""
    data, tokens = release(counts, level, draw), counts.sum()
    started = time.process_time()
    found = cv.compare(data, [cv.TopicModel(k) for k in CANDIDATES], seed=draw, threads=1, progress=False)
    seconds = time.process_time() - started
    by_two = found.scores[:, found.folds < FOLDS_SCORED].mean(axis=1)
    chosen, quickly = (CANDIDATES[int(np.argmax(each))] for each in (found.scores.mean(axis=1), by_two))
    truth = {k: held_out(counts, level, k, draw, fifths) for k in CANDIDATES if k >= LEAST}
    seen = counts[~np.isnan(truth[LEAST])].sum()
    gaps = zip(found.table["difference"], found.table["standard_error"], strict=True)
    print(f"| {name} | {level:g} | held out | {' | '.join(f'{gap:.2f} ({se:.2f})' for gap, se in gaps)} |")
    print(f"| | | true counts | | {' | '.join(f'{np.nansum(each) / seen:.3f}' for each in truth.values())} |")
    print(
        f"  draw {draw}: {chosen} topics lose {lost(truth, max(chosen, LEAST), seen)} per token, "
        f"{quickly} by two folds {lost(truth, max(quickly, LEAST), seen)}; {seconds:.0f} s of one core",
        flush=True,
    )
    fit = cv.TopicModel(chosen, seed=draw, **CHOSEN).fit(data)
    scores = scores_of_chains(fit, counts, None)
    four, equal = (score(scores[:, :n], np.full(n, 1.0 / n), tokens) for n in (4, 8))
    stacked = score(scores, fit.weights_, tokens)
    before = predictive_log_score(counts, cv.TopicModel(20, seed=draw, **BEFORE).fit(data))
    best = scores.sum(axis=0).max() / tokens
    print(
        f"  {chosen} topics: best chain {best:.4f}, four {four:.4f}, eight {equal:.4f}, stacked {stacked:.4f}, "
        f"before {before:.4f}",
        flush=True,
    )


def time_comparison(counts):
    """Print how long a comparison of six numbers of topics takes."""
    wall, processor = time.perf_counter(), time.process_time()
    models = [cv.TopicModel(k) for k in sorted((*CANDIDATES, 30))]
    found = cv.compare(release(counts, 1.0, 0), models, seed=0, progress=False)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"{wall:.0f} s, {processor:.0f} s of one core\n{found}")


def main():
    warnings.simplefilter("ignore")
    parser = ArgumentParser()
    parser.add_argument("given", nargs="*", metavar="FOLDER, DRAWS, CORPUS")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="DRAW")
    parser.add_argument("--fifths", type=int, choices=range(1, 6), default=1)
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    given, corpora = options.given, {"Reuters": load_reuters().counts}
    if options.time:
        time_comparison(corpora["Reuters"])
        return
    if given and not given[0].isdigit():
        path = Path(given.pop(0)) / "enron_text/enron_ham_1000x1400.npz"
        corpora["e-mails"] = sp.load_npz(path).toarray()
    n_draws, wanted = int(given[0]) if given else 2, given[1:] or list(corpora)
    for draw in range(options.first, options.first + n_draws):
        for name in wanted:
            counts = corpora[name]
            for level in LEVELS:
                measure(name, counts, level, draw, options.fifths)


if __name__ == "__main__":
    main()
