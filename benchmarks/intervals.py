"""How often what a fit prints as a 90% interval holds the truth: ``python benchmarks/intervals.py LEVEL FIRST LAST``.

Data sets number FIRST up to LAST, without it, are of 300 documents with about 200 words each, 200 words, and 10 topics
with theta ~ Dirichlet(.2) and phi ~ Dirichlet(.1); reports are at epsilon/N = LEVEL. Each is fitted with default
settings; --chains N takes more of them, and --thin N keeps every Nth of their draws. With --mechanism the counts are
protected by another one instead (LEVEL is not used), and --size is how many words a document has. Printed are how often
the interval holds the truth, of: the expected words of a document, and of a word; true counts that their reports do not
tell, at random; the probabilities of the eight top words of each topic, and its prevalence, where the fit lists it; and
the sum of the counts. The last line is about all data sets, with standard errors by how much they differ.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment

import countveil as cv
from countveil.evaluation import coverage
from countveil.laws.counts.protocol import in_counts
from countveil.laws.noise.laws import law_of

m = cv.mechanisms


def cell_keys(largest):
    """Counts changed by two at most, right on average; zeros stay, as cell keys do it. None above ``largest``."""
    p = np.zeros((largest + 1, largest + 3))
    p[0, 0], p[1, :4], p[2, :5] = 1.0, (0.4, 0.3, 0.2, 0.1), (0.15, 0.2, 0.3, 0.2, 0.15)
    for y in range(3, largest + 1):
        p[y, y - 2 : y + 3] = 0.1, 0.2, 0.4, 0.2, 0.1
    return m.Table(p)


MECHANISMS = {
    "two-sided geometric": m.TwoSidedGeometric(np.exp(-1)),
    "discrete Gaussian": m.DiscreteGaussian(1),
    "Gaussian": m.Gaussian(2),
    "Laplace": m.Laplace(1),
    "Skellam": m.Skellam(1, 1),
    "random rounding": m.RandomRounding(3),
    "rounding": m.Rounding(5),
    "suppression": m.Suppression(10),
    "suppression of zeros too": m.Suppression(10, shows_zero=False),
    "top-coding": m.TopCoding(10),
    "thresholded": m.Thresholded(m.Gaussian(3), 9),
    "table": cell_keys(900),
}
DOCUMENTS, WORDS, TOPICS = 300, 200, 10
COLUMNS = "documents", "words", "counts", "top words", "prevalence", "sum"


def planted(seed, level, size, mechanism):
    """(reports, true counts, which of them the reports do not tell, shares of topics, topics, rates)."""
    rng, alpha = np.random.default_rng(seed), np.exp(-level)
    phi = rng.dirichlet(np.full(WORDS, 0.1), TOPICS)
    theta = rng.dirichlet(np.full(TOPICS, 0.2), DOCUMENTS) * rng.gamma(4.0, size / 4.0, (DOCUMENTS, 1))
    rates = theta @ phi
    counts = rng.poisson(rates)
    if mechanism is not None:
        values = cv.simulate_reports(counts, mechanism, rng)
        least, most = law_of(mechanism).support(np.asarray(values, dtype=float))
        return cv.Reports(values, mechanism), counts, least < most, theta, phi, rates
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    release = cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha)
    return release, counts, np.ones(counts.shape, dtype=bool), theta, phi, rates


def of_sums(fit, rates):
    """Whether the intervals of documents' and of words' expected counts hold the truth."""
    found = []
    for (theta, phi), parameters in fit._reader.even_draws(500):
        rows, columns = in_counts(fit.model_.likelihood, theta, phi, parameters)
        found.append([rows @ columns.sum(axis=0), columns @ rows.sum(axis=0)])
    for drawn, truth in zip(zip(*found, strict=True), (rates.sum(axis=1), rates.sum(axis=0)), strict=True):
        lower, upper = np.quantile(np.array(drawn), [0.05, 0.95], axis=0)
        yield (lower <= truth) & (truth <= upper)


def of_topics(fit, theta, phi):
    """Whether the intervals of listed topics' top words, and of their prevalences, hold the truth."""
    shared = np.array([np.minimum(mean, phi).sum(axis=1) for mean in fit._reader.member_means("word")])
    topics, support = fit.parts.supported("word", 8), fit.parts.support().set_index("component")
    size, words, prevalence = theta.sum(axis=0) / theta.sum(), [], []
    for k, true in zip(*linear_sum_assignment(-shared), strict=True):
        own = topics[topics["component"] == k]
        if not len(own) or shared[k, true] < 0.5:
            continue
        truth = phi[true, own["member"].to_numpy().astype(int)]
        words += list((own["lower"] <= truth) & (truth <= own["upper"]))
        prevalence.append(support.loc[k, "lower"] <= size[true] <= support.loc[k, "upper"])
    return np.array(words), np.array(prevalence)


def of_all(held):
    """Share of all that were held, with its standard error by how much data sets differ, where there are several."""
    together, shares = np.concatenate(held), [each.mean() for each in held]
    error = f" (se {np.std(shares, ddof=1) / len(shares) ** 0.5:.3f})" if len(shares) > 1 else ""
    return f"{together.mean():.3f}{error} of {together.size:,}"


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("level", type=float)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--thin", type=int, default=1)
    parser.add_argument("--mechanism", choices=MECHANISMS)
    parser.add_argument("--size", type=float, default=200.0)
    asked = parser.parse_args()
    print("| data set | " + " | ".join(COLUMNS) + " | state | s |", flush=True)
    held = [[] for _ in COLUMNS]
    for seed in range(asked.first, asked.last):
        release, counts, unknown, theta, phi, rates = planted(
            seed, asked.level, asked.size, MECHANISMS.get(asked.mechanism)
        )
        started = time.perf_counter()
        options = {"chains": asked.chains, "draws": 500 // asked.thin, "method": cv.Gibbs(thin=asked.thin)}
        fit = cv.TopicModel(TOPICS, seed=seed, threads=1, progress=False, **options).fit(release)
        seconds = time.perf_counter() - started
        sums, totals = of_sums(fit, rates), fit.totals()
        of_counts = np.array([coverage(counts, fit, np.random.default_rng(seed), release, cells=unknown)])
        own = (*sums, of_counts, *of_topics(fit, theta, phi), np.array([totals.lower <= counts.sum() <= totals.upper]))
        for all_of, found in zip(held, own, strict=True):
            all_of.append(found)
        shares = " | ".join(f"{found.mean():.3f}" for found in own)
        print(f"| {seed} | {shares} | {fit.diagnostics().state} | {seconds:.0f} |", flush=True)
    print("| all | " + " | ".join(map(of_all, held)) + " |")


if __name__ == "__main__":
    main()
