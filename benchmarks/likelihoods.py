"""Poisson or bursty counts, on real and planted data: the tables behind the default likelihood.

python benchmarks/likelihoods.py FOLDER [DRAWS] [CORPUS...] [--true]

DRAWS is how many noise draws (5), or the first and the last of them, as in 2-4: draws are seeded, so that a later run
can add to an earlier one. The figures of every draw go to the standard error. With --true there is no noise, and draws
are of the fits alone.

FOLDER holds enron_text/enron_ham_1000x1400.npz, enron_network/enron161.npz and icews/icews_tensor.npz; Reuters comes
with the extra ``demo``. Every corpus is given noise at epsilon/N = 1, 2 and 3, DRAWS times, and fitted by one chain for
every likelihood. Printed are means over noise draws and, in brackets, the standard deviation of the difference from
Poisson: the predictive log score per token; the absolute error of the median of every true count given its report; the
share of true counts in their 90% intervals (randomised, so that a right model has 90%), of all cells and of cells with
a positive report; NPMI of relevant words; the error of planted topics; seconds.
"""

import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import countveil as cv
from countveil.evaluation import match_topics, npmi, predictive_log_score, relevant_words
from countveil.evaluation.calibration import covered
from countveil.experiments.reuters import load_reuters
from countveil.inference.predict import laws_of_counts
from countveil.laws.counts.given_reports import Cells, CountsGivenReports

SAMPLING = {"chains": 1, "tune": 150, "draws": 150, "threads": 1, "progress": False}
LIKELIHOODS = {
    "Poisson": {"likelihood": "poisson"},
    "one p": {"likelihood": "negative-binomial", "dispersion": "global"},
    "p by column": {"likelihood": "negative-binomial", "dispersion": "column"},
}
CELLS, LAWS = 10_000, 30  # of which the laws of true counts are computed, and draws for them
LEVELS = 1.0, 2.0, 3.0
NO_NOISE = 99.0  # a level at which no report differs from its count


class Corpus(NamedTuple):
    """True counts, the cells that nobody reports, the model and its components, and planted topics if there are any."""

    counts: np.ndarray
    mask: np.ndarray | None
    model: type
    components: int
    topics: np.ndarray | None = None


def planted(tokens):
    """Poisson counts of 400 documents x 500 words with 20 topics."""
    rng = np.random.default_rng(tokens)
    topics = rng.dirichlet(np.full(500, 0.05), 20)
    rates = rng.dirichlet(np.full(20, 0.1), 400) @ topics * tokens
    return Corpus(rng.poisson(rates), None, cv.TopicModel, 20, topics)


def corpora(folder):
    """Every corpus by its name, when it is asked for."""

    def text():
        counts = sp.load_npz(folder / "enron_text/enron_ham_1000x1400.npz").toarray()
        return Corpus(counts, None, cv.TopicModel, 20)

    def network():
        counts = np.load(folder / "enron_network/enron161.npz")["Y"]
        return Corpus(counts, np.eye(len(counts), dtype=bool), cv.BlockModel, 10)

    def events():
        found = np.load(folder / "icews/icews_tensor.npz")
        tensor = np.zeros(found["shape"], dtype=int)
        tensor[tuple(found["subs"].T)] = found["counts"]
        return Corpus(tensor[..., -1], None, cv.TensorModel, 25)  # one year, so that a run takes minutes

    return {
        "reuters": lambda: Corpus(load_reuters().counts, None, cv.TopicModel, 20),
        "text": text,
        "network": network,
        "events": events,
        "planted-200": lambda: planted(200),
        "planted-60": lambda: planted(60),
    }


def errors_and_coverage(fit, data, counts, rng):
    """(MAE of the medians, coverage of all cells, coverage of positive reports)."""
    observed, matrix = fit.data_matrix(fit.observe(data)), fit.as_matrix(counts).astype(int)
    chosen = rng.choice(matrix.size, min(CELLS, matrix.size), replace=False)
    rows, columns = np.divmod(chosen, matrix.shape[1])
    reports, level = observed.cells(rows, columns)
    cells = Cells(rows, columns, reports, np.broadcast_to(level, reports.shape)).take(reports >= 0)
    given = CountsGivenReports(observed.noise, fit.model_.likelihood)
    errors, places, positive = [], [], []
    for numbers, laws in laws_of_counts(partial(fit.even_draws, LAWS), given, cells):
        found, cell = cells.take(numbers), np.arange(len(numbers))
        true = matrix[found.rows, found.columns]
        below = np.cumsum(laws, axis=1)
        errors.append(np.abs((below < 0.5).sum(axis=1) - true))
        at = np.minimum(true, laws.shape[1] - 1)  # beyond it there is next to nothing
        places.append(below[cell, at] - rng.random(len(true)) * np.where(true == at, laws[cell, at], 0.0))
        positive.append(found.reports > 0)
    places, positive = np.concatenate(places), np.concatenate(positive)
    return np.concatenate(errors).mean(), covered(places, 0.9), covered(places[positive], 0.9)


def measure(corpus, level, draw, options):
    """All figures of one fit."""
    rng, alpha = np.random.default_rng([draw, int(level)]), np.exp(-level)
    noise = rng.geometric(1.0 - alpha, (2, *corpus.counts.shape))
    data = cv.PrivatizedCounts(corpus.counts + noise[0] - noise[1], alpha, corpus.mask)
    model = corpus.model(corpus.components, seed=draw, **SAMPLING, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        fit = model.fit(data)
        seconds = time.process_time() - started
    seen = None if corpus.mask is None else ~corpus.mask
    figures = [predictive_log_score(corpus.counts, fit, seen)]
    figures += errors_and_coverage(fit, data, corpus.counts, np.random.default_rng(draw))
    coherence = error = np.nan
    if corpus.model is cv.TopicModel:
        words = relevant_words(fit.components_, fit.rate().to_numpy().sum(axis=0))
        coherence = npmi(words, corpus.counts)
    if corpus.topics is not None:
        order = match_topics(corpus.topics, fit.components_)
        error = 0.5 * np.abs(fit.components_[order] - corpus.topics).sum(axis=1).mean()
    return np.array([*figures, coherence, error, seconds])


def chosen(draws):
    """The numbers of the noise draws that "5" or "2-4" stands for."""
    first, _, last = draws.rpartition("-")
    return range(int(first), int(last) + 1) if first else range(int(last))


def each(name, level, likelihood, draws, corpus, options):
    """Figures by draw, each shown as soon as it is there."""
    found = []
    for draw in draws:
        found.append(measure(corpus, level, draw, options))
        print(
            f"{name}, {level:g}, {likelihood}, draw {draw}:", *found[-1].round(4), file=sys.stderr, flush=True
        )
    return np.array(found)


def main():
    arguments = [each for each in sys.argv[1:] if each != "--true"]
    levels = (NO_NOISE,) if "--true" in sys.argv else LEVELS
    folder = Path(arguments[0])
    draws = chosen(arguments[1] if len(arguments) > 1 else "5")
    known = corpora(folder)
    print(
        "| data | epsilon/N | likelihood | log score | MAE | 90% of all | of positive | NPMI | topic error | s |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name in arguments[2:] or known:
        corpus = known[name]()
        for level in levels:
            base = None
            for likelihood, options in LIKELIHOODS.items():
                found = each(name, level, likelihood, draws, corpus, options)
                base = found if base is None else base
                spread = (found - base).std(axis=0, ddof=1) if len(draws) > 1 else np.zeros(found.shape[1])
                mean = found.mean(axis=0)
                digits = 3, 3, 3, 3, 3, 3, 1
                cells = [
                    ""
                    if np.isnan(m)
                    else f"{m:.{d}f}" + (f" ({s:.{d}f})" if i in (0, 4, 5) and s > 0 else "")
                    for i, (m, s, d) in enumerate(zip(mean, spread, digits, strict=True))
                ]
                print(f"| {name} | {level:g} | {likelihood} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
