"""What the six methods make of the same data: quality, time and coverage. The tables are in benchmarks/results.

python benchmarks/methods.py reuters            # sparse counts: log score, MAE, NPMI, five noise draws a level
python benchmarks/methods.py planted            # dense counts: topic error over six data sets
python benchmarks/methods.py big                # 1000 x 1000, rank 50: seconds to an error of the rates
python benchmarks/methods.py coverage [METHOD]  # does the middle 90% of draws hold 90% of the rates?
python benchmarks/methods.py enron FOLDER       # 10,000 x 10,000 texts: svi against full-data fits
"""

import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln
from sweeps import ALPHA, SIZE, TOPICS, big_data, matrix_model

import countveil as cv
from countveil.engines.threads import ThreadEngine
from countveil.evaluation.errors import log_score, mean_absolute_error
from countveil.evaluation.topics import npmi, relevant_words, topic_error
from countveil.inference import bessel_cavi, cavi, em, svi
from countveil.inference.facts import facts_of
from countveil.inference.plan import Plan
from countveil.inference.starts.alternating import least_squares
from countveil.inference.streams import Streams

SAMPLING = {"chains": 2, "tune": 100, "draws": 100, "threads": 2}
FITS = {
    "gibbs": {"method": "gibbs", "likelihood": "poisson", **SAMPLING},
    "augmented-gibbs": {"method": "augmented-gibbs", **SAMPLING},
    "cavi": {"method": "cavi", "draws": 20},
    "cavi, arithmetic": {"method": cv.CAVI(expectation="arithmetic"), "draws": 20},
    "bessel-cavi": {"method": "bessel-cavi", "draws": 20},
    "svi": {"method": cv.SVI(passes=10, batch_rows=64), "draws": 20},
    "em": {"method": "em"},
}


def fit(name: str, data: object, n_topics: int, seed: int = 1, **changes: object) -> tuple[cv.TopicModel, float]:
    """A fit by its name in ``FITS``, and its seconds."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cv.TopicModel(n_topics, seed=seed, **FITS[name] | changes).fit(data)
    return model, time.perf_counter() - started


def spread(values: list[float], digits: int = 3) -> str:
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def reuters(draws: int = 5) -> None:
    from countveil.experiments.corpora import load_reuters

    counts = load_reuters().counts

    def scores(rate: np.ndarray, topics: np.ndarray) -> tuple[float, ...]:
        probable = np.argsort(-topics, axis=1, kind="stable")[:, :10]
        relevant = relevant_words(topics, rate.sum(axis=0))
        rate = np.maximum(rate, 1e-3 if (rate <= 0).any() else 0.0)
        return (
            log_score(counts, rate), mean_absolute_error(rate, counts), npmi(relevant, counts), npmi(probable, counts)
        )  # fmt: skip

    print("| epsilon/N | method | log score | MAE | NPMI, relevant | NPMI, probable | signal share | s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    reference, seconds = fit("gibbs", cv.ExactCounts(counts), 20)
    found = scores(reference.rate().to_numpy(), reference.components_)
    print("| - | true counts (gibbs) | " + " | ".join(f"{x:.3f}" for x in found) + f" | | {seconds:.1f} |", flush=True)
    for level in (1, 2, 3):
        rows: dict[str, list[tuple[float, ...]]] = {}
        for draw in range(draws):
            release = cv.simulate_release(counts, cv.PrivacyLevel(level, 1), np.random.default_rng(draw))
            for name in FITS:
                model, seconds = fit(name, release, 20)
                share = model.posterior.attrs.get("signal_share", np.nan)
                found = scores(model.rate().to_numpy(), model.components_)
                rows.setdefault(name, []).append((*found, share, seconds))
            model, seconds = fit("gibbs", cv.NaiveCounts(release), 20)
            found = scores(model.rate().to_numpy(), model.components_)
            rows.setdefault("naive (gibbs)", []).append((*found, np.nan, seconds))
            started = time.perf_counter()
            signed = np.asarray(release.reports, dtype=float)
            theta, phi = least_squares(signed, np.zeros(len(counts)), 20, np.random.default_rng(1), 100)
            found = scores(theta @ phi.T, (phi / phi.sum(axis=0)).T)
            rows.setdefault("least squares", []).append((*found, np.nan, time.perf_counter() - started))
        for name, values in rows.items():
            columns = list(zip(*values, strict=True))
            cells = [spread(list(column)) for column in columns[:4]]
            share = "" if np.isnan(columns[4][0]) else f"{np.mean(columns[4]):.2f}"
            print(f"| {level} | {name} | {' | '.join(cells)} | {share} | {np.median(columns[5]):.1f} |", flush=True)


def planted() -> None:
    """theta ~ Gamma(0.1, 1), topics Dirichlet(0.05) of 600 tokens, 500 x 300, K = 5, epsilon/N = 1/4."""
    alpha, rows = np.exp(-0.25), {}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        theta, topics = rng.gamma(0.1, 1.0, (500, 5)), rng.dirichlet(np.full(300, 0.05), 5)
        counts = rng.poisson(theta @ topics * 600)
        noise = rng.geometric(1 - alpha, counts.shape) - rng.geometric(1 - alpha, counts.shape)
        data = cv.PrivatizedCounts(counts + noise, alpha)
        for name in FITS:
            more = {"tune": 300, "draws": 200} if "gibbs" in name else {}
            model = fit(name, data, 5, **more)[0]
            rows.setdefault(name, []).append(topic_error(topics, model.components_))
        naive = fit("gibbs", cv.NaiveCounts(counts + noise), 5)[0]
        rows.setdefault("naive (gibbs)", []).append(topic_error(topics, naive.components_))
        phi = least_squares((counts + noise).astype(float), np.zeros(500), 5, np.random.default_rng(1), 200)[1]
        rows.setdefault("least squares, signed", []).append(topic_error(topics, (phi / phi.sum(axis=0)).T))
    print("| method | topic error, six data sets | largest |\n| --- | --- | --- |")
    for name, errors in rows.items():
        print(f"| {name} | {' '.join(f'{error:.3f}' for error in errors)} | {max(errors):.3f} |")


def big(threads: int = 2) -> None:
    """Error of the rates against seconds, start included, compilation excluded."""
    mu, _, reports = big_data()
    data, model = cv.PrivatizedCounts(reports, ALPHA), matrix_model(mu.shape, TOPICS, 0.1, 1.0, 1.0)
    print(f"{SIZE} x {SIZE}, K = {TOPICS}, {threads} threads\n| method | iterations | seconds | MAE of mu |")
    print("| --- | --- | --- | --- |")
    plan = Plan(data, model)
    for algorithm, marks in ((cavi, (0, 5, 10, 20, 50)), (em, (0, 5, 10, 20, 50)), (bessel_cavi, (0, 5, 20, 50))):
        with ThreadEngine(threads) as engine:
            algorithm.step(algorithm.init(plan, model, Streams.of_chain(0, 0), engine), plan, model, None, engine)
            started = time.perf_counter()
            state = algorithm.init(plan, model, Streams.of_chain(1, 0), engine)
            for iteration in range(max(marks) + 1):
                if iteration in marks:
                    spent = time.perf_counter() - started
                    theta, phi = state.factors if algorithm is em else state.means
                    error = np.abs(theta @ phi.T - mu).mean()
                    name = algorithm.__name__.rpartition(".")[2].replace("_", "-")
                    print(f"| {name} | {iteration} | {spent:.2f} | {error:.3f} |", flush=True)
                    started = time.perf_counter() - spent
                state = algorithm.step(state, plan, model, None, engine)[0]


def coverage(*asked: str, runs: int = 40) -> None:
    """Share of rates in the middle 90% of their draws, over data drawn from the prior (shape 0.5, rate 1)."""
    names = asked or ("gibbs", "augmented-gibbs", "cavi", "cavi, arithmetic", "bessel-cavi", "svi", "naive")
    print("| alpha | " + " | ".join(names) + " |\n|" + " --- |" * (len(names) + 1))
    for alpha in (0.1, np.exp(-1), 0.7, 0.9):
        hits: dict[str, list[float]] = {name: [] for name in names}
        for run in range(runs):
            rng = np.random.default_rng(run)
            mu = rng.gamma(0.5, 1.0, (30, 3)) @ rng.gamma(0.5, 1.0, (3, 25))
            counts = rng.poisson(mu)
            noise = rng.geometric(1 - alpha, counts.shape) - rng.geometric(1 - alpha, counts.shape)
            data = cv.PrivatizedCounts(counts + noise, alpha)
            for name in names:
                method, given = ("gibbs", cv.NaiveCounts(counts + noise)) if name == "naive" else (name, data)
                more = {"draws": 1000}
                if "gibbs" in method:
                    thinned = cv.Gibbs(thin=4) if method == "gibbs" else cv.AugmentedGibbs(thin=4)
                    more = {"tune": 500, "draws": 500, "method": thinned}
                model = fit(method, given, 3, prior_shape=0.5, prior_rate=1.0, **more)[0]
                draws = model.posterior["posterior"]
                rates = np.einsum("csdk,cskv->csdv", draws["theta"].to_numpy(), draws["phi"].to_numpy())
                low, high = np.quantile(rates.reshape(-1, *mu.shape), [0.05, 0.95], axis=0)
                hits[name].append(float(((low <= mu) & (mu <= high)).mean()))
        cells = [f"{np.mean(hits[name]):.3f} ± {np.std(hits[name]) / np.sqrt(runs):.3f}" for name in names]
        print(f"| {alpha:.2f} | " + " | ".join(cells) + " |", flush=True)


def enron(folder: str, n_topics: int = 50) -> None:
    """Two passes of svi over the privatized texts against full-data cavi and em; true counts only to score."""
    counts = sp.csr_array(sp.load_npz(Path(folder) / "enron_text" / "enron_ham_10000x10000.npz")).astype(np.int64)
    started = time.perf_counter()
    release = cv.privatize(counts, cv.PrivacyLevel(2, 1))
    print(f"privatized in {time.perf_counter() - started:.1f} s: {release.reports.nnz:,} positive reports")
    data = cv.PrivatizedCounts(release.reports, release.alpha)
    del release
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    constant = -gammaln(counts.data + 1.0).sum()
    memory = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # noqa: E731

    def score(theta: np.ndarray, phi: np.ndarray) -> float:
        total = constant - float(theta.sum(axis=0) @ phi.sum(axis=0))
        for part in np.array_split(np.arange(rows.size), 50):
            mu = np.einsum("ek,ek->e", theta[rows[part]], phi[counts.indices[part]])
            total += float((counts.data[part] * np.log(np.maximum(mu, 1e-12))).sum())
        return total / float(counts.sum())

    model, streams = (matrix_model(data.shape, n_topics, 0.1, None, facts_of(data).mean_count), Streams.of_chain(1, 0))
    plan = Plan(data, model)
    with ThreadEngine(2) as engine:
        started = time.perf_counter()
        state = svi.init(data, model, streams, engine, data.shape[0])
        for turn in range(2):
            for batch in svi.batches(data, 256, np.random.default_rng(turn)):
                state, _ = svi.step(state, batch, model, data.shape[0], engine)
            found = svi.fit_rows(state, data, model, engine)
            value = score(found.theta_shape / found.theta_rate, state.shapes[1] / state.rates[1])
            print(f"svi, pass {turn + 1}: {value:.3f} a token, {time.perf_counter() - started:.0f} s, "
                  f"peak {memory():.2f} GiB", flush=True)  # fmt: skip
        for name, options in (("em", {}), ("cavi", {}), ("cavi", {"expectation": "arithmetic"})):
            algorithm = {"em": em, "cavi": cavi}[name]
            started = time.perf_counter()
            state = algorithm.init(plan, model, streams, engine)
            for iteration in range(1, 41):
                state, _ = algorithm.step(state, plan, model, streams, engine, **options)
                if iteration in (5, 10, 20, 40):
                    factors = state.factors if name == "em" else state.means
                    label = " ".join([name, *options.values()])
                    print(f"{label}, {iteration} iterations: {score(*factors):.3f} a token, "
                          f"{time.perf_counter() - started:.0f} s, peak {memory():.2f} GiB", flush=True)  # fmt: skip


if __name__ == "__main__":
    {"reuters": reuters, "planted": planted, "big": big, "coverage": coverage, "enron": enron}[sys.argv[1]](
        *sys.argv[2:]
    )
