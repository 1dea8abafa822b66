"""Whether the standard errors of a comparison are right: python benchmarks/standard_errors.py [FAMILY] [REPLICATES].

A family is "topics" (100 documents, 60 words, 5 planted topics), "directed" or "undirected" (60 actors, 4 planted
communities). REPLICATES times (30), data are made and models with the planted number compared with smaller and larger
ones: first with new documents or actors each time, then with the same ones and new counts and noise. Printed are the
mean and standard deviation of the differences over replicates, per 1,000 cells; and for standard errors by cells, rows,
columns, and both rows and columns, their root mean square, and how often twice the error reaches the mean.
"""

import sys
import warnings

import numpy as np

import countveil as cv
from countveil.selection.comparison import clustered_variance, standard_error

SHORT = {"draws": 30, "tune": 30, "thin": 2, "threads": 1, "progress": False}
SAME = 5  # the seed of what stays the same
ALPHA = np.exp(-1.0)


def topics(rng, fresh):
    """True counts, the planted number, and models by the number of topics."""
    same = np.random.default_rng(SAME)
    words = same.dirichlet(np.full(60, 0.2), 5)
    shares = (rng if fresh else same).dirichlet(np.full(5, 0.2), 100)
    models = {k: cv.TopicModel(k, likelihood="poisson") for k in (3, 4, 5, 7, 8)}
    return rng.poisson(60.0 * shares @ words), 5, models


def directed(rng, fresh):
    """The same of communities, with one in seven messages between communities."""
    source = rng if fresh else np.random.default_rng(SAME)
    home, degree = source.integers(4, size=60), source.gamma(2.0, 0.5, 60)
    rates = np.full((4, 4), 0.15)
    np.fill_diagonal(rates, 2.0)
    counts = rng.poisson(np.outer(degree, degree) * rates[np.ix_(home, home)])
    return counts, 4, {k: cv.BlockModel(k, likelihood="poisson") for k in (3, 4, 6)}


def undirected(rng, fresh):
    """The same of pairs, above the diagonal."""
    counts, planted, _ = directed(rng, fresh)
    models = {k: cv.BlockModel(k, likelihood="poisson", directed=False) for k in (3, 4, 6)}
    return np.triu(counts, 1), planted, models


FAMILIES = {"topics": topics, "directed": directed, "undirected": undirected}


def one(family, replicate, fresh):
    """{number: (difference from the planted one, its standard errors)} per 1,000 cells."""
    rng = np.random.default_rng(replicate + 1000 * fresh)
    counts, planted, models = FAMILIES[family](rng, fresh)
    noise = rng.geometric(1.0 - ALPHA, counts.shape) - rng.geometric(1.0 - ALPHA, counts.shape)
    reports = np.triu(counts + noise, 1) if family == "undirected" else counts + noise
    found = cv.compare(cv.PrivatizedCounts(reports, ALPHA), list(models.values()), seed=replicate, **SHORT)
    scores = dict(zip(models, 1000.0 * found.scores, strict=True))
    said = {}
    for number in set(scores) - {planted}:
        gaps = scores[number] - scores[planted]
        groups = np.arange(gaps.size), found.rows, found.columns
        errors = [np.sqrt(clustered_variance(gaps, each)) for each in groups]
        said[number] = [gaps.mean(), *errors, standard_error(gaps, found.rows, found.columns)]
    return said


def main():
    warnings.simplefilter("ignore")
    families = sys.argv[1:2] or list(FAMILIES)
    replicates = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    print("| data | anew | components | mean (sd) | by cells | by rows | by columns | by both |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for family in families:
        for fresh in (True, False):
            runs = [one(family, replicate, fresh) for replicate in range(replicates)]
            for number in sorted(runs[0]):
                found = np.array([run[number] for run in runs])
                mean, spread = found[:, 0].mean(), found[:, 0].std(ddof=1)
                sizes = np.sqrt((found[:, 1:] ** 2).mean(axis=0))
                reached = (np.abs(found[:, :1] - mean) < 2.0 * found[:, 1:]).mean(axis=0)
                cells = [f"{size:.1f} ({share:.0%})" for size, share in zip(sizes, reached, strict=True)]
                anew = "everything" if fresh else "counts and noise"
                line = [family, anew, number, f"{mean:.1f} ({spread:.1f})", *cells]
                print(f"| {' | '.join(map(str, line))} |", flush=True)


if __name__ == "__main__":
    main()
