"""A small network with blocks under growing noise: the preprint's figure 3, the ICML paper's figure 1."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.evaluation import mean_absolute_error, poisson_divergence
from countveil.fit import BlockModel
from papers import style
from papers.bench import Bench, Study, Task
from papers.claims import Comparison, Verdict, compared, verdict
from papers.fits import Noisy, Sampling, result, with_noise
from papers.style import EXACT_VI, KNOWN_PRIOR, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS

ABOUT = "recovery of a sparse block structure under growing noise"
NEEDS = ""
ACTORS, COMMUNITIES = 20, 5
PUBLISHED = (0.01, 0.5)  # shape and rate in the papers: their networks are empty, see ``emptiness``
SHAPE, RATE = 0.1, 0.1  # used instead
EPSILONS = (2.5, 1.0, 0.75)
METHODS = (OURS, KNOWN_PRIOR, NAIVE, LEAST_SQUARES, EXACT_VI, TRUE_COUNTS)
OFF = ~np.eye(ACTORS, dtype=bool)
EMPTY, FLOOR = (0.05, 1e-3)  # a rate below EMPTY is a sparse part; estimates are raised to FLOOR for divergences
MIN_MEAN, MAX_MEAN, MIN_SHARE = 1.0, 100, 0.1
FLAT = "one flat rate"


class Plan(NamedTuple):
    """How many networks, and the chains."""

    data_sets: int
    sampling: Sampling


FULL = Plan(20, Sampling(4, 1000, 1875, 4))
QUICK = Plan(2, Sampling(1, 200, 150))


def prior_rates(rng: np.random.Generator, shape: float, rate: float) -> np.ndarray:
    """Rates of a network from its prior."""
    theta = rng.gamma(shape, 1.0 / rate, (ACTORS, COMMUNITIES))
    pi = rng.gamma(shape, 1.0 / rate, (COMMUNITIES, COMMUNITIES))
    return np.asarray(theta @ pi @ theta.T)


def emptiness(rng: np.random.Generator, n: int) -> Verdict:
    """Whether networks from the published prior have anything in them: expected e-mails in each of n of them."""
    totals = np.array([prior_rates(rng, *PUBLISHED)[OFF].sum() for _ in range(n)])
    return verdict(
        "Networks from the published prior, shape 0.01 and rate 0.5, have blocks to be found",
        bool(np.median(totals) >= 1.0),
        f"of {n:,} networks half have fewer than {np.median(totals):.1g} expected e-mails in all, "
        f"{(totals < 1).mean():.1%} fewer than one, and the fullest has {totals.max():.0f}; so shape {SHAPE:g} and "
        f"rate {RATE:g} were used instead",
    )  # fmt: skip


def network(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(rates, counts): the first from the prior with something in it.

    The first is kept whose mean rate is between MIN_MEAN and MAX_MEAN, with a rate of at least 1 in MIN_SHARE of its
    cells: several have to be drawn for one.
    """
    while True:
        rate = prior_rates(rng, SHAPE, RATE)
        if MIN_MEAN <= rate[OFF].mean() <= MAX_MEAN and (rate[OFF] >= 1.0).mean() >= MIN_SHARE:
            return rate, rng.poisson(rate) * OFF


def run(bench: Bench, plan: Plan) -> Study:
    """Every method on every network at every epsilon, N the mean count."""
    tasks, labels, truths, noisy = [], [], [], {}
    for place in range(plan.data_sets):
        rate, counts = network(bench.rng(place))
        truths.append(rate)
        for epsilon in EPSILONS:
            alpha = float(np.exp(-epsilon / counts[OFF].mean()))
            data = with_noise(counts, alpha, bench.rng(place, int(100 * epsilon)), ~OFF)
            noisy[(place, epsilon)] = data
            for method in METHODS:
                if method == TRUE_COUNTS and epsilon != EPSILONS[0]:
                    continue
                key = {"method": method, "epsilon": epsilon, "draw": place, **plan.sampling._asdict()}
                tasks.append(Task(key, partial(fit, method, data, plan, bench.seed)))
                labels.append((place, np.nan if method == TRUE_COUNTS else epsilon, method))
    found = bench.results(tasks)
    rows = [scored(*label, truths[label[0]], each["rate"]) for label, each in zip(labels, found, strict=True)]
    rows += [scored(i, np.nan, FLAT, rate, np.full(rate.shape, rate[OFF].mean())) for i, rate in enumerate(truths)]
    table = pd.DataFrame(rows)
    shown = {label[1:]: each["rate"] for label, each in zip(labels, found, strict=True) if label[0] == 0}
    return Study(
        table,
        [emptiness(bench.rng(99), 2000), *verdicts(table)],
        draw(truths[0], {e: noisy[(0, e)] for e in EPSILONS}, shown, table),
    )


def fit(method: str, data: Noisy, plan: Plan, seed: int) -> dict[str, Any]:
    """Rates and seconds."""
    prior: dict[str, Any] = {"prior_shape": SHAPE, "prior_rate": RATE} if method == KNOWN_PRIOR else {}
    found = result(method, BlockModel(COMMUNITIES, seed=seed, **prior), COMMUNITIES, data, plan.sampling)
    return {"rate": found["rate"], "seconds": found["seconds"]}


def scored(place: int, epsilon: float, method: str, truth: np.ndarray, rate: np.ndarray) -> dict[str, Any]:
    """Errors of the rates, relative to the mean rate; in_empty is the mean estimate in the sparse parts, likewise."""
    true, estimate = truth[OFF], rate[OFF]
    empty, mean = true < EMPTY, true.mean()
    return {
        "draw": place, "epsilon": epsilon, "method": method, "mean_rate": mean,
        "error": mean_absolute_error(estimate, true) / mean,
        "divergence": poisson_divergence(true, np.maximum(estimate, FLOOR)),
        "in_empty": estimate[empty].mean() / mean if empty.any() else np.nan,
    }  # fmt: skip


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """Four comparisons over all epsilons."""
    claims = (
        ("The naive way predicts higher rates in sparse parts of the network than the private method does",
         Comparison("in_empty", OURS, NAIVE)),
        ("The private method is closer to the true rates than the naive way, at every noise level",
         Comparison("error", OURS, NAIVE)),
        ("It reproduces the block structure even at high noise: closer to the true rates than one flat rate",
         Comparison("error", OURS, FLAT)),
        ("It is closer than least squares on the reports (not claimed)", Comparison("error", OURS, LEAST_SQUARES)),
        ("It is closer than the exact variational method (not claimed)", Comparison("error", OURS, EXACT_VI)),
        ("Rates learned from the reports are no worse a prior than the one the networks were drawn from (not claimed)",
         Comparison("error", OURS, KNOWN_PRIOR)),
    )  # fmt: skip
    return [compared(claim, table, ["epsilon"], comparison) for claim, comparison in claims]


def draw(truth: np.ndarray, noisy: dict[float, Noisy], shown: dict[Any, np.ndarray], table: pd.DataFrame) -> Any:
    """The first network: reports and rates at every epsilon. All networks: error against epsilon."""
    from matplotlib.colors import SymLogNorm

    figure = style.figure(13.0, 6.6)
    upper, lower = figure.subfigures(1, 2, width_ratios=[3.2, 1])
    norm = SymLogNorm(0.5, vmin=0.0, vmax=float(truth.max()))
    order, methods = np.argsort(-truth.sum(axis=0) - truth.sum(axis=1)), (OURS, NAIVE, LEAST_SQUARES)
    grid = upper.subplots(len(EPSILONS), 6)
    image = None
    for row, epsilon in zip(grid, EPSILONS, strict=True):
        clean = shown[next(key for key in shown if key[1] == TRUE_COUNTS)]
        panels = {"true rates": truth, "reports, cut at zero": np.maximum(noisy[epsilon].reports, 0),
                  "from true counts": clean} | {m: shown[(epsilon, m)] for m in methods}  # fmt: skip
        for axes, (name, matrix) in zip(row, panels.items(), strict=True):
            cells = np.ma.masked_array(matrix, ~OFF)[np.ix_(order, order)]
            image = style.heatmap(axes, cells, name if epsilon == EPSILONS[0] else "", norm=norm)
        row[0].set_ylabel(f"epsilon = {epsilon:g}\nsender (20)", fontsize=9)
        row[0].set_xlabel("receiver (20)", fontsize=8)
    bar = upper.colorbar(image, ax=grid, location="bottom", shrink=0.5, aspect=50)
    bar.set_label("rate or report, e-mails per pair (log scale above 0.5)", fontsize=9)
    panels_of_errors = lower.subplots(2, 1)
    labels = {
        "error": "mean error over mean rate\n(lower is better)",
        "in_empty": "mean estimate where the rate is below\n0.05, over mean rate (lower is better)",
    }
    for axes, (metric, label) in zip(panels_of_errors, labels.items(), strict=True):
        style.lines(axes, table, "epsilon", metric, METHODS)
        style.tidy(axes, "epsilon at N = mean count\n(more noise to the left)", label)
        style.log_scale(axes)
    handles, names = panels_of_errors[0].get_legend_handles_labels()
    lower.legend(handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure
