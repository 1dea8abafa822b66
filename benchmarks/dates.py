"""Documents with dates: a sweep beside one without dates, and how often intervals over time hold the truth.

python benchmarks/dates.py sweeps [SWEEPS]
python benchmarks/dates.py coverage [STUDIES]

``sweeps`` prints median milliseconds of a sweep of documents x words with one thread; models take turns. ``coverage``
simulates studies of 200 documents of 60 words each in 8 years, 60 word types, and three topics whose expected shares go
evenly from one draw of a Dirichlet distribution to another, with noise at epsilon/N = 1. Intervals of 90% are of the
expected shares in every year; topics are matched to the true ones by their words.
"""

import sys
import time
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment

import countveil as cv
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs
from countveil.inference.streams import Streams
from countveil.models.factorization import factorization, typical_priors
from countveil.models.priors import DatedRowsPrior, DirichletPrior
from countveil.models.spec import axis_sizes, parse_spec

SPEC = parse_spec("dk,vk->dv", names=("theta", "phi"))
YEARS, TOPICS, CONCENTRATION = 8, 3, 4.0


def noisy(counts, alpha, rng):
    """Counts plus two-sided geometric noise."""
    return counts + rng.geometric(1.0 - alpha, counts.shape) - rng.geometric(1.0 - alpha, counts.shape)


def study(rng):
    """(expected shares (years, topics), year of each document, topics, counts)."""
    first, last = rng.dirichlet(np.full(TOPICS, 3.0), 2)
    shares = first + np.linspace(0.0, 1.0, YEARS)[:, None] * (last - first)
    step = rng.permutation(np.arange(200) % YEARS)
    theta = 60.0 * np.stack([rng.dirichlet(CONCENTRATION * shares[t]) for t in step])
    words = rng.dirichlet(np.full(60, 0.2), TOPICS)
    return shares, step, words, rng.poisson(theta @ words)


def held(fit, shares, words):
    """(studies' shares in their intervals, squared errors), (topics, years)."""
    table = fit.prevalence_over(uncalibrated=True)
    table.columns = [name.removeprefix("uncalibrated_") for name in table.columns]
    distance = ((fit.components_[:, None] - words) ** 2).sum(axis=2)
    found = []
    for own, true in zip(*linear_sum_assignment(distance), strict=True):
        rows, truth = table[table["topic"] == own], shares[:, true]
        if len(rows):
            inside = (rows["lower"] <= truth) & (truth <= rows["upper"])
            found.append([inside.mean(), ((rows["estimate"] - truth) ** 2).mean()])
    return found


def coverage(studies):
    """Print how often intervals hold the truth, of this model and of reports taken for counts."""
    found = {"ours": [], "naive": []}
    for seed in range(studies):
        rng = np.random.default_rng(seed)
        shares, step, words, counts = study(rng)
        reports = noisy(counts, np.exp(-1.0), rng)
        given = {
            "ours": cv.PrivatizedCounts(reports, np.exp(-1.0)),
            "naive": cv.NaiveCounts(np.maximum(reports, 0)),
        }
        for name, data in given.items():
            model = cv.TopicModel(
                TOPICS, draws=400, tune=400, chains=2, seed=seed, likelihood="poisson", progress=False
            )
            found[name] += held(model.fit(data, time=step), shares, words)
    for name, rows in found.items():
        inside, error = np.array(rows).T
        spread = inside.std() / np.sqrt(len(rows))
        print(
            f"{name}: {len(rows)} topics, {100 * inside.mean():.1f}% (standard error {100 * spread:.1f}), "
            f"root mean square error {np.sqrt(error.mean()):.3f}"
        )


def sweeps(times):
    """Print median milliseconds of a sweep with and without dates."""
    rng = np.random.default_rng(1)
    for shape, k, n_steps in (((500, 400), 10, 12), ((500, 400), 10, 60), ((2000, 1000), 20, 12)):
        counts = rng.poisson(
            rng.gamma(0.1, 5.0, (shape[0], k)) @ rng.dirichlet(np.full(shape[1], 0.1), k) * 20.0
        )
        for noise in (False, True):
            data = (
                cv.PrivatizedCounts(noisy(counts, np.exp(-2.0), rng), np.exp(-2.0))
                if noise
                else cv.ExactCounts(counts)
            )
            mean, sizes = float(counts.mean()), axis_sizes(SPEC, shape, {"k": k})
            own = DatedRowsPrior(0.1, mean * shape[1], rng.integers(0, n_steps, shape[0]), n_steps)
            priors = (
                typical_priors(SPEC, sizes, "learned", None, mean),
                {"theta": own, "phi": DirichletPrior(None)},
            )
            pair = [factorization(SPEC, sizes, each) for each in priors]
            plain, dated = medians(data.matricized((0,), (1,)), pair, times)
            name = "noise" if noise else "true counts"
            print(
                f"{shape}, {k} topics, {n_steps} dates, {name}: {plain:.1f} ms, {dated:.1f} ms: {dated / plain:.2f}"
            )


def medians(data, pair, times):
    """Median milliseconds of a sweep of each model, in turns after five of each."""
    with ThreadEngine(1) as engine:
        streams = Streams.of_chain(1, 0)
        states, taken = [gibbs.init(data, model, streams, engine) for model in pair], [[], []]
        for sweep in range(times + 5):
            for m, model in enumerate(pair):
                started = time.perf_counter()
                states[m], _ = gibbs.step(states[m], data, model, streams, engine)
                if sweep >= 5:
                    taken[m].append(1000.0 * (time.perf_counter() - started))
    return [float(np.median(each)) for each in taken]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"sweeps": sweeps, "coverage": coverage}[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 40)
