"""Whether a prior that the papers do not name decides about their claims: a few of them under other priors.

Every question is one claim of another case study, at its quick size. Its numbers are ratios, ours to the best of the
rivals that the claim names or what the claim asks for to what was measured: below 1 it holds in that setting.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.fit import BlockModel
from countveil.fit.base import FactorizationEstimator
from countveil.planning.contenders import rate_scores
from papers import (
    blocks_semisynthetic,
    blocks_synthetic,
    links_enron,
    real_counts,
    semisynthetic,
    style,
    topics_enron,
    variational,
)
from papers.bench import Bench, Study, Task, digest
from papers.claims import Verdict, verdict
from papers.fits import Noisy, Sampling, result, with_noise
from papers.style import NAIVE, OURS, PUBLISHED_MCMC, PUBLISHED_VI, TRUE_COUNTS

ABOUT = "claims under priors that the papers do not name"
NEEDS = "Enron's network and texts"
AS_RUN = "as run"  # shape 0.1, rates learned
PRIORS: dict[str, dict[str, Any]] = {
    AS_RUN: {}, "shape 0.01": {"prior_shape": 0.01}, "shape 0.5": {"prior_shape": 0.5},
    "rates fixed at 1": {"prior_rate": 1.0},
}  # fmt: skip
METHODS = (OURS, NAIVE, TRUE_COUNTS)
SHAPES = (0.1, 0.3, 1.0)  # of the variational paper's factors
READINGS = {"as printed": (0.01, 0.5), "0.5 a scale": (0.01, 2.0), "shape 0.1": (0.1, 0.5), "shape 1": (1.0, 0.5)}


class Plan(NamedTuple):
    """Chains on networks and texts, communities, levels, the corpus at most, and the data of the speed claim."""

    network: Sampling
    text: Sampling
    communities: tuple[int, ...]
    levels: tuple[float, ...]
    n_topics: int
    shape: tuple[int, int]
    speed: variational.Extent


class Question(NamedTuple):
    """A claim, how many of its settings it needs, and what gives rows of (variant, setting, ratio)."""

    name: str
    claim: str
    share: float
    rows: Callable[[Bench, Plan], Iterator[tuple[str, str, float]]]


QUICK = Plan(Sampling(1, 150, 100), Sampling(1, 40, 30), (5, 20), (3.0, 1.0), 20, (1000, 1400), variational.QUICK)
FULL = Plan(
    Sampling(1, 1000, 500), Sampling(1, 150, 50), (5, 10, 20), (3.0, 2.0, 1.0), 20, (1000, 1400), variational.QUICK
)


def run(bench: Bench, plan: Plan) -> Study:
    """Every question under every prior."""
    table = pd.DataFrame(
        [(each.name, *row) for each in QUESTIONS for row in each.rows(bench, plan)],
        columns=["question", "variant", "setting", "ratio"],
    )
    return Study(table, [answered(each, table[table["question"] == each.name]) for each in QUESTIONS], draw(table))


def network_rows(bench: Bench, plan: Plan, held_out: bool) -> Iterator[tuple[str, str, float]]:
    """MAE over that of the better of the naive way and the true counts' fit."""
    counts = real_counts.network(bench)
    diagonal = np.eye(len(counts), dtype=bool)
    hidden = links_enron.busiest(counts) if held_out else np.zeros_like(diagonal)
    cells = hidden & ~diagonal if held_out else ~diagonal
    tasks: list[Task] = []
    sizes = plan.communities if held_out else plan.communities[:1]
    labels = [(v, n, level) for v in PRIORS for n in sizes for level in plan.levels]
    for variant, n, level in labels:
        data = with_noise(counts, float(np.exp(-level)), bench.rng(int(10 * level)), diagonal | hidden)
        for method in METHODS:
            key = {"method": method, "prior": variant, "C": n, "level": None if method == TRUE_COUNTS else level,
                   "held_out": held_out, "data": digest(counts), **plan.network._asdict()}  # fmt: skip
            model = blocks(n, PRIORS[variant])(bench.seed)
            tasks.append(Task(key, partial(network_error, method, model, n, data, cells, plan.network)))
    errors = np.array([float(each["mae"]) for each in bench.results(tasks)]).reshape(-1, len(METHODS))
    for (variant, n, level), (ours, *rivals) in zip(labels, errors, strict=True):
        yield variant, f"C {n}, level {level:g}", ours / min(rivals)


def network_error(
    method: str, model: Any, n: int, data: Noisy, cells: np.ndarray, sampling: Sampling
) -> dict[str, Any]:
    """MAE of one fit."""
    rate = np.asarray(result(method, model, n, data, sampling)["rate"], dtype=float)
    return {"mae": rate_scores(data.counts[cells], rate[cells], False)["mae"]}


def semisynthetic_rows(bench: Bench, plan: Plan) -> Iterator[tuple[str, str, float]]:
    """Divergence over the naive way's where the claim failed, at the largest e0; true rates as in the case study."""
    counts, n, sampling = real_counts.network(bench), plan.communities[0], plan.network
    off = ~np.eye(len(counts), dtype=bool)
    e0, alphas = max(blocks_semisynthetic.E0), blocks_semisynthetic.QUICK.alphas
    design = semisynthetic.Design(counts, blocks(n, {}), off, (e0,), blocks_semisynthetic.F0, True)
    own = semisynthetic.Plan(n, alphas, 1, sampling)
    key = {"e0": e0, "C": n, "data": digest(counts), **sampling._asdict()}
    longer = own._replace(sampling=sampling._replace(tune=5 * sampling.tune, draws=5 * sampling.draws))
    variants = {name: (blocks(n, prior), own) for name, prior in PRIORS.items()} | {
        f"{2 * n} communities": (blocks(2 * n, {}), own._replace(n=2 * n)),
        "five times the sweeps": (blocks(n, {}), longer),
    }
    real = Noisy(counts, counts, 0.0, ~off)
    base = Task({"method": "true rates", **key}, partial(semisynthetic.base_rate, design, real, own, bench.seed))
    truth = semisynthetic.rescaled(bench.results([base])[0]["rate"].astype(float), e0, design, bench.rng(2, 0))
    drawn = bench.rng(2, 0, 1).poisson(truth) * off
    tasks, labels = [], [(variant, alpha) for variant in variants for alpha in alphas]
    for variant, alpha in labels:
        data = with_noise(drawn, alpha, bench.rng(2, 0, int(100 * alpha)), ~off)
        model, chains = variants[variant]
        for method in (OURS, NAIVE):
            fit = partial(semisynthetic.fit, method, data, truth, design._replace(model=model), chains, bench.seed)
            tasks.append(Task({"method": method, "prior": variant, "alpha": alpha, **key}, fit))
    found = np.array([float(each["divergence"]) for each in bench.results(tasks)]).reshape(-1, 2)
    for (variant, alpha), (ours, naive) in zip(labels, found, strict=True):
        yield variant, f"e0 {e0:g}, alpha {alpha:g}", ours / naive


def blocks(n: int, prior: dict[str, Any]) -> Callable[[int], FactorizationEstimator]:
    """A block model under a prior, by seed."""
    return lambda seed: BlockModel(n, seed=seed, **prior)


def topic_rows(bench: Bench, plan: Plan, metric: str) -> Iterator[tuple[str, str, float]]:
    """A metric over that of a rival: MAE over 1.1 times the true counts' fit, UMass over its UMass."""
    counts = real_counts.texts(bench, real_counts.TEXT_SMALL, plan.shape)
    tasks = []
    labels = [(variant, level) for variant in PRIORS for level in plan.levels]
    own = topics_enron.QUICK._replace(n_topics=plan.n_topics, sampling=plan.text)
    for variant, level in labels:
        for method in (OURS, TRUE_COUNTS):
            key = {"method": method, "prior": variant, "level": None if method == TRUE_COUNTS else level,
                   "K": plan.n_topics, "data": digest(counts), **plan.text._asdict()}  # fmt: skip
            fit = partial(topics_enron.fit, method, level, 0, counts, own, bench, PRIORS[variant])
            tasks.append(Task(key, fit))
    found = np.array([float(each[metric]) for each in bench.results(tasks)]).reshape(-1, 2)
    for (variant, level), (ours, clean) in zip(labels, found, strict=True):
        yield variant, f"level {level:g}", ours / (1.1 * clean if metric == "mae" else clean)


def speed_rows(bench: Bench, plan: Plan) -> Iterator[tuple[str, str, float]]:
    """20 over how many times as fast published VI is as published MCMC, by the shape of data and prior."""
    size, topics, sweeps, iterations, _ = plan.speed
    for shape in SHAPES:
        data = variational.data_set(bench.rng(3), size, topics, shape)
        tasks = [
            Task({"method": name, "shape": shape, "size": size, "topics": topics, "n": n},
                 partial(variational.trace, name, data, topics, n, shape))
            for name, n in ((PUBLISHED_VI, iterations), (PUBLISHED_MCMC, sweeps))
        ]  # fmt: skip
        vi, mcmc = (pd.DataFrame({k: each[k] for k in ("seconds", "error")}) for each in bench.results(tasks))
        goal = 1.02 * float(vi["error"].min())
        fast, slow = variational.reached(vi, goal), variational.reached(mcmc, goal)
        yield f"shape {shape:g}", "to the same error", variational.CLAIMED * fast / slow


def emptiness_rows(bench: Bench, plan: Plan) -> Iterator[tuple[str, str, float]]:
    """One over the expected e-mails of the median network of a prior."""
    for name, (shape, rate) in READINGS.items():
        rng = bench.rng(99)
        totals = [blocks_synthetic.prior_rates(rng, shape, rate)[blocks_synthetic.OFF].sum() for _ in range(500)]
        yield name, "median of 500 networks", 1.0 / max(float(np.median(totals)), 1e-12)


QUESTIONS = (
    Question("links-enron", "Held-out links: a lower error than naive and true counts in most settings",
             0.5 + 1e-9, partial(network_rows, held_out=True)),
    Question("communities-enron", "All pairs: a lower error than naive and true counts in every setting",
             1.0, partial(network_rows, held_out=False)),
    Question("blocks-semisynthetic", "A lower divergence than the naive way at e0 = 1.5, in 90% of the settings",
             0.9, semisynthetic_rows),
    Question("topics-enron, MAE", "Error within 10% of that of the true counts' fit, at every level",
             1.0, partial(topic_rows, metric="mae")),
    Question("topics-enron, UMass", "A higher UMass coherence than the true counts' fit, at every level",
             1.0, partial(topic_rows, metric="umass")),
    Question("variational", "Published VI is 20 times as fast as published MCMC to the same error", 1.0, speed_rows),
    Question("blocks-synthetic", "Networks from the published prior have an expected e-mail or more", 1.0,
             emptiness_rows),
)  # fmt: skip


def answered(question: Question, rows: pd.DataFrame) -> Verdict:
    """Whether the claim holds under every prior (and length of chains) tried."""
    parts, held = [], []
    for variant, each in rows.groupby("variant", sort=False):
        good = int((each["ratio"] < 1.0).sum())
        held.append(good >= question.share * len(each))
        parts.append(f"{variant}: {'holds' if held[-1] else 'does not'}, in {good} of {len(each)} settings, ratios "
                     f"{each['ratio'].min():.3g} to {each['ratio'].max():.3g}")  # fmt: skip
    return verdict(f"{question.claim}: under every setting tried", all(held), "; ".join(parts))


def draw(table: pd.DataFrame) -> Any:
    """A panel for each question, a point for each setting."""
    figure = style.figure(13.0, 6.4)
    panels = figure.subplots(2, 4).ravel()
    for axes, (question, rows) in zip(panels, table.groupby("question", sort=False), strict=False):
        variants = list(dict.fromkeys(rows["variant"]))
        for place, variant in enumerate(variants):
            ratios = rows.loc[rows["variant"] == variant, "ratio"]
            spread = 0.25 * np.linspace(-1.0, 1.0, len(ratios)) if len(ratios) > 1 else np.zeros(1)
            axes.scatter(
                place + spread, ratios, s=22, color=style.STYLES[OURS][0], label="a setting (fits of one draw)"
            )
        axes.axhline(1.0, color="#D55E00", linestyle="--", linewidth=1.2, label="below this line the claim holds")
        style.tidy(axes, "", "", str(question))
        ends = rows["ratio"].agg(["min", "max"])
        if ends["max"] > 1e3 * ends["min"]:
            axes.set_yscale("log")
        elif ends["max"] > 3.0 * ends["min"]:
            style.log_scale(axes)
        axes.set_xticks(
            range(len(variants)), [name.replace(" communities", " comm.").replace(" ", "\n") for name in variants]
        )
    for axes in panels[len(table["question"].unique()) :]:
        axes.set_visible(False)
    figure.supylabel("ours over the best rival, or what is claimed over what was measured (ratio)", fontsize=9)
    style.legend(figure)
    return figure
