"""How far from a chain begun at the truth ours end: ``python benchmarks/modes.py [SEEDS] [FAMILY ...] [OPTIONS]``.

Options are ``--start NAME`` (``auto`` unless named) and ``--moves NUMBER`` (as many as estimators make). Every family
plants factors, draws counts and noise, and runs two chains with the same random numbers: one from the truth, one from
the start, with moves where the model has them (and then from the shorter start that goes with them). Printed are, over
the seeds, the median and 90th percentile of the log-likelihood lost (mean of the last sweeps), the same of a second
chain from the truth, what was found (rates' mean absolute error; topics' total variation to the planted ones;
communities' normalised mutual information, also of scikit-learn's spectral clustering of the reports cut at zero), each
beside the truth's chain, and the seconds of the start, of what moves take besides as many sweeps (their record
included), and of 30 sweeps of the same chain.

With ``--method em`` (or cavi, or svi, which has topics alone), printed are what the method finds from the start that
every fit has, and from least squares or another ``--start``, and its seconds.

What the second chain from the truth loses is chance alone. Log-likelihoods of topics have a standard deviation of 70
from sweep to sweep, and their means of 100 sweeps in a row still one of 30: so 400 are used, one in four of them.
"""

import sys
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.metrics import normalized_mutual_info_score
from threadpoolctl import threadpool_limits

import countveil as cv
from countveil.engines.threads import ThreadEngine
from countveil.fit.starting import STARTS
from countveil.inference import gibbs, moves, scoring, tuning
from countveil.inference.plan import Plan
from countveil.inference.posterior import factor_draws
from countveil.inference.streams import Streams

TUNE, DRAWS, THIN = 300, 100, 4  # sweeps before the first draw, draws, and sweeps for each of them
SWEEPS = TUNE + DRAWS * THIN
ENGINE = ThreadEngine(1)
KINDS = ("assortative", "disassortative", "core-periphery", "hierarchical")


class Planted(NamedTuple):
    """A planted data set: what a model is given, the true factors in its order, and what can be compared."""

    data: object
    model: object
    factors: tuple[np.ndarray, ...]
    groups: np.ndarray | None = None  # communities of actors
    reports: np.ndarray | None = None
    estimator: object = None
    private: object = None  # what estimators fit


def noisy(counts, level, rng, undirected=False):
    """Counts plus noise, and alpha."""
    alpha = np.exp(-level)
    reports = counts + rng.geometric(1.0 - alpha, counts.shape) - rng.geometric(1.0 - alpha, counts.shape)
    if undirected:
        reports = np.triu(reports, 1)
        reports = reports + reports.T
    return reports, alpha


def given(estimator, reports, alpha, factors, mask=None, groups=None):
    """The data in the matrix form of their model."""
    private = cv.PrivatizedCounts(reports, alpha, mask)
    found = estimator._given(private)
    return Planted(found.data, found.model, tuple(factors), groups, reports, estimator, private)


def blocks(seed, level, kind, directed, n=100, c=5):
    """Communities of actors with gamma degrees."""
    rng, within = np.random.default_rng(seed), 4.0 if directed else 2.0
    groups, degree = rng.permutation(np.arange(n) % c), rng.gamma(2.0, 0.5, n)
    own = np.arange(c)
    rates = np.full((c, c), 0.2)
    if kind == "assortative":
        rates[own, own] = within
    elif kind == "disassortative":
        rates[own, (own + 1) % c] = within
    elif kind == "core-periphery":
        rates[0] = rates[:, 0] = within / 2.0
        rates[own, own] = within / 2.0
        rates[0, 0] = within
    else:
        rates = np.where(own[:, None] // 2 == own // 2, within / 3.0, 0.1)
        rates[own, own] = within
    if not directed:
        rates = np.maximum(rates, rates.T)
    theta = np.maximum(np.eye(c)[groups], 1e-3) * degree[:, None]
    counts = rng.poisson(theta @ rates @ theta.T)
    if not directed:
        counts = np.triu(counts, 1) + np.triu(counts, 1).T
    reports, alpha = noisy(counts, level, rng, not directed)
    mask = np.eye(n, dtype=bool) if directed else np.tril(np.ones((n, n), dtype=bool))
    return given(
        cv.BlockModel(c, likelihood="poisson", directed=directed), reports, alpha, (theta, rates), mask, groups
    )


def topics(seed, level, words, n_docs=400, n_words=500, k=30):
    """Documents of some topics each."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.dirichlet(np.full(k, 0.1), n_docs), rng.dirichlet(np.full(n_words, 0.05), k)
    reports, alpha = noisy(rng.poisson(theta @ phi * words), level, rng)
    return given(cv.TopicModel(k, likelihood="poisson"), reports, alpha, (theta * words, phi.T.copy()))


def cp(seed, level, shape=(40, 40, 8, 20), k=6):
    """A CP tensor of mean count 0.5."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(0.3, 1.0, (n, k)) for n in shape]
    factors = [factor / factor.mean(axis=0) for factor in factors]
    factors[0] = factors[0] * rng.gamma(2.0, 0.5, k)
    rates = np.einsum("ak,bk,ck,dk->abcd", *factors)
    factors[0] *= 0.5 / rates.mean()
    reports, alpha = noisy(rng.poisson(rates * (0.5 / rates.mean())), level, rng)
    return given(cv.TensorModel(k, likelihood="poisson"), reports, alpha, factors)


def tucker(seed, level, shape=(40, 40, 8, 20), ranks=(4, 4, 3, 3)):
    """A Tucker tensor of mean count 0.5."""
    rng, spec = np.random.default_rng(seed), "ic,jd,ak,tr,cdkr->ijat"
    factors = [rng.gamma(0.2, 1.0, (n, r)) for n, r in zip(shape, ranks, strict=True)]
    factors = [factor / factor.mean(axis=0) for factor in factors]
    core = rng.gamma(0.2, 1.0, ranks)
    rates = np.einsum(spec, *factors, core, optimize=True)
    scale = 0.5 / rates.mean()
    reports, alpha = noisy(rng.poisson(rates * scale), level, rng)
    estimator = cv.PoissonFactorization(spec, dict(zip("cdkr", ranks, strict=True)))
    return given(estimator, reports, alpha, [*factors, core * scale])


def families() -> dict[str, tuple]:
    """(what plants it, its arguments after the seed) by name."""
    found = {}
    for level in (1.0, 3.0):
        for directed in (True, False):
            for kind in KINDS:
                name = f"blocks, {'directed' if directed else 'undirected'}, {kind}, {level:g}"
                found[name] = (blocks, level, kind, directed)
        found[f"CP, {level:g}"] = (cp, level)
        found[f"Tucker, {level:g}"] = (tucker, level)
        found[f"topics, 200 words, {level:g}"] = (topics, level, 200)
    found["topics, 60 words, 3"] = (topics, 3.0, 60)
    return found


def at(factors):
    """A start at these factors."""
    return lambda *_: tuple(np.ascontiguousarray(f, dtype=float) for f in factors)


def chain(planted, start, streams, n_moves=0):
    """(mean log-likelihood, rates and components) over the last sweeps; seconds of start, moves' sweeps and one sweep.

    A sweep is the mean of those after the moves; a move's time includes its record, as in a fit.
    """
    model, data = planted.model, planted.data
    algorithm = moves.Moving(gibbs, n_moves if moves.movable(model) else 0)
    last_move = algorithm.moves * moves.SWEEPS
    scores, rates, components, moved, swept = [], 0.0, [0.0, 0.0], 0.0, 0.0
    plan = Plan(data, model)
    with tuning.recorded(tuning.Tuning()):
        begun = time.process_time()
        state = algorithm.init(plan, model, streams, ENGINE, start)
        started = time.process_time() - begun
        for sweep in range(SWEEPS):
            begun = time.process_time()
            state, _ = algorithm.step(state, plan, model, streams, ENGINE)
            spent = time.process_time() - begun
            if state.sweep <= last_move:
                moved += spent
            else:
                swept += spent
            if sweep >= TUNE and (sweep - TUNE) % THIN == 0:
                theta, phi = model.matrices(state.factors)
                rates = rates + theta @ phi.T / DRAWS
                components = [c + x / x.sum(axis=0) for c, x in zip(components, (theta, phi), strict=True)]
                scores.append(scoring.log_likelihood(state.factors, data, model, ENGINE))
    return float(np.mean(scores)), rates, components, (started, moved, swept / (SWEEPS - last_move))


def quality(planted, found) -> float:
    """Communities: normalised mutual information. Topics: total variation. Tensors: mean absolute error of rates."""
    if planted.groups is not None:
        return float(normalized_mutual_info_score(planted.groups, found[2][0].argmax(axis=1)))
    theta, phi = planted.model.matrices(planted.factors)
    if len(planted.factors) == 2:
        true, ours = (x / x.sum(axis=0) for x in (phi, found[2][1]))
        apart = 0.5 * np.abs(true[:, :, None] - ours[:, None]).sum(axis=0)
        return float(apart[linear_sum_assignment(apart)].mean())
    return float(np.abs(found[1] - theta @ phi.T).mean())


def by_scikit_learn(planted, seed) -> float:
    """Normalised mutual information of spectral clustering of the symmetrised reports, cut at zero."""
    if planted.groups is None:
        return np.nan
    cut = np.maximum(planted.reports, 0).astype(float)
    np.fill_diagonal(cut, 0.0)
    clustering = SpectralClustering(
        planted.model.n_components, affinity="precomputed", random_state=seed, assign_labels="kmeans"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = clustering.fit_predict(cut + cut.T)
    return float(normalized_mutual_info_score(planted.groups, groups))


def rows(plant, arguments, seeds, start, n_moves) -> Iterator[list[float]]:
    """For every seed: gaps, quality of both chains and of scikit-learn, seconds of start, moves and 30 sweeps.

    The second gap is that of another chain from the truth.
    """
    for seed in range(seeds):
        planted, streams = plant(seed, *arguments), Streams.of_chain(seed, 0)
        at_truth = chain(planted, at(planted.factors), streams)
        again = chain(planted, at(planted.factors), Streams.of_chain(seed, 1))
        ours = chain(planted, start, streams, n_moves)
        seconds, moved, sweep = ours[3]
        if moved:
            moved -= n_moves * moves.SWEEPS * sweep
        yield [
            at_truth[0] - ours[0], at_truth[0] - again[0], quality(planted, ours), quality(planted, at_truth),
            by_scikit_learn(planted, seed), seconds, moved, 30.0 * sweep,
        ]  # fmt: skip


def by_method(planted, method, start) -> tuple[float, float]:
    """What another method finds from a start, and its seconds."""
    model = clone(planted.estimator).set_params(method=method, start=start, draws=50, threads=1, seed=1, progress=False)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(planted.private)
    seconds = time.process_time() - begun
    draws = zip(*factor_draws(*model._fitted()), strict=True)
    theta, phi = model.model_.matrices([np.mean(factor, axis=0) for factor in draws])
    return quality(planted, (np.nan, theta @ phi.T, (theta, phi))), seconds


def methods(plant, arguments, seeds, method, starts) -> np.ndarray:
    """(2, starts) means over seeds of what is found from each start, and of the seconds."""
    found = []
    by_method(plant(0, *arguments), method, starts[0])  # loads what is compiled
    for seed in range(seeds):
        planted = plant(seed, *arguments)
        found.append([by_method(planted, method, start) for start in starts])
    return np.mean(found, axis=0).T


def ninety(gaps: np.ndarray) -> float:
    """Their 90th percentile."""
    return float(np.quantile(gaps, 0.9))


def option(arguments: list[str], name: str, default: str) -> str:
    """The value of an option, which is taken out of the arguments."""
    if name not in arguments:
        return default
    place = arguments.index(name)
    value = arguments[place + 1]
    del arguments[place : place + 2]
    return value


def main(arguments: list[str]) -> None:
    """Print a line for each family."""
    method, named = option(arguments, "--method", "gibbs"), option(arguments, "--start", "auto")
    start = STARTS[named]
    n_moves = int(option(arguments, "--moves", str(cv.Gibbs().moves)))
    seeds = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else 20
    wanted = {
        name: how
        for name, how in families().items()
        if (not arguments or any(name.startswith(asked) for asked in arguments))
        and (method != "svi" or name.startswith("topics"))
    }
    if method != "gibbs":
        starts = "auto", "least-squares" if named == "auto" else named
        print(f"| family, level | {method}, {' | '.join(starts)} | {', s | '.join(starts)}, s |")
        print("| --- | --- | --- | --- | --- |", flush=True)
        for name, (plant, *more) in wanted.items():
            found, seconds = methods(plant, more, seeds, method, starts)
            cells = [f"{x:.3f}" for x in found] + [f"{x:.2f}" for x in seconds]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
        return
    print(
        "| family, level | gap, median | 90% | by chance | 90% | found | truth's chain | scikit-learn "
        "| start, s | moves | 30 sweeps |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with threadpool_limits(limits=1, user_api="blas"):
        for name, (plant, *more) in wanted.items():
            found = np.array(list(rows(plant, more, seeds, start, n_moves)))
            means = found.mean(axis=0)
            gaps = [f(column) for column in found[:, :2].T for f in (np.median, ninety)]
            cells = [f"{gap:.0f}" for gap in gaps] + [f"{x:.3f}" for x in means[2:5]] + [f"{x:.2f}" for x in means[5:]]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
