"""Three well separated topics under document-specific noise: the preprint's figure 1."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.evaluation import match_topics, topic_error
from countveil.fit import TopicModel
from papers import style
from papers.bench import Bench, Study, Task
from papers.claims import Comparison, Verdict, compared, verdict
from papers.fits import Sampling, result, with_noise
from papers.style import EXACT_VI, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS

ABOUT = "recovery of three separated topics under document-specific noise"
NEEDS = ""
ROWS, WORDS, TOPICS, CONCENTRATION, MAIN = 90, 15, 3, 10.0, 0.9
LEVELS = {"low": 0.1, "high": 0.9}  # mean noise level alpha_0; the paper says small and large
TOKENS = (60, 200)  # expected words per document; the paper does not say
METHODS = (OURS, NAIVE, LEAST_SQUARES, EXACT_VI, TRUE_COUNTS)
POOR = 0.3  # topic error from which on a recovery is called poor


class Plan(NamedTuple):
    """How many data sets, and the chains."""

    data_sets: int
    sampling: Sampling
    tokens: tuple[int, ...] = TOKENS


FULL = Plan(20, Sampling(4, 1000, 1250, 4))
QUICK = Plan(4, Sampling(2, 200, 150))


def true_topics() -> np.ndarray:
    """(K, V): each topic has 90% of its mass on five words of its own."""
    own = np.kron(np.eye(TOPICS), np.full((1, WORDS // TOPICS), TOPICS / WORDS))
    return MAIN * own + (1.0 - MAIN) * (1.0 - (own > 0.0)) / (WORDS - WORDS // TOPICS)


def data_set(rng: np.random.Generator, tokens: int, level: float) -> Any:
    """Counts of three groups of thirty documents, each mostly of one topic; a noise level for every document."""
    group = np.repeat(np.arange(TOPICS), ROWS // TOPICS)
    theta = np.full((ROWS, TOPICS), (1.0 - MAIN) / (TOPICS - 1))
    theta[np.arange(ROWS), group] = MAIN
    counts = rng.poisson(tokens * theta @ true_topics())
    alpha = rng.beta(CONCENTRATION * level, CONCENTRATION * (1.0 - level), (ROWS, 1))
    return with_noise(counts, np.minimum(alpha, 1.0 - 1e-6), rng)


def run(bench: Bench, plan: Plan) -> Study:
    """Every method on every data set, topics aligned by the Hungarian method."""
    tasks, labels = [], []
    for tokens in plan.tokens:
        for place, (name, level) in enumerate(LEVELS.items()):
            for draw_ in range(plan.data_sets):
                data = data_set(bench.rng(tokens, place, draw_), tokens, level)
                for method in METHODS:
                    key = {"method": method, "tokens": tokens, "noise": name, "draw": draw_, "a0": level,
                           **plan.sampling._asdict()}  # fmt: skip
                    tasks.append(Task(key, partial(fit, method, data, plan, bench.seed)))
                    labels.append((tokens, name, draw_, method))
    found, truth = bench.results(tasks), true_topics()
    rows = [
        {"tokens": t, "noise": n, "draw": d, "method": m, "topic_error": topic_error(truth, each["components"]),
         "seconds": float(each["seconds"])}
        for (t, n, d, m), each in zip(labels, found, strict=True)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    shown = {
        (n, m): each["components"] for (t, n, d, m), each in zip(labels, found, strict=True)
        if t == plan.tokens[-1] and d == 0
    }  # fmt: skip
    return Study(table, verdicts(table), draw(table, shown, plan))


def fit(method: str, data: Any, plan: Plan, seed: int) -> dict[str, Any]:
    """Topics and seconds."""
    found = result(method, TopicModel(TOPICS, seed=seed), TOPICS, data, plan.sampling)
    return {"components": found["components"], "seconds": found["seconds"]}


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """Whether the naive way is poor at high noise, ours better, and ours not worse than the other rivals."""
    high, setting = table[table["noise"] == "high"], ["tokens", "noise"]
    errors = high[high["method"] == NAIVE].groupby("tokens")["topic_error"].mean()
    low = table[(table["noise"] == "low") & (table["method"] == NAIVE)]["topic_error"].mean()
    measured = ", ".join(f"{tokens} words per document: {error:.2f}" for tokens, error in errors.items())
    return [
        verdict(
            "At high noise the naive way recovers the topics poorly", bool((errors >= POOR).all()),
            f"topic error (total variation; {POOR} called poor) {measured}; at low noise {low:.2f}",
        ),
        compared("At high noise the private method recovers the topics better than the naive way", high, setting,
                 Comparison("topic_error", OURS, NAIVE)),
        compared("... and better than least squares on the reports (not claimed)", high, setting,
                 Comparison("topic_error", OURS, LEAST_SQUARES)),
        compared("... and better than the exact variational method (not claimed)", high, setting,
                 Comparison("topic_error", OURS, EXACT_VI)),
    ]  # fmt: skip


def draw(table: pd.DataFrame, shown: dict[tuple[str, str], np.ndarray], plan: Plan) -> Any:
    """Topics of the first data set as heat maps, and the errors of all of them."""
    figure = style.figure(12.0, 5.2)
    grid = figure.add_gridspec(2, 7, width_ratios=[1, 1, 1, 1, 1, 0.15, 2.2])
    truth, image = true_topics(), None
    methods = (TRUE_COUNTS, OURS, NAIVE, LEAST_SQUARES)
    for row, noise in enumerate(LEVELS):
        panels = {"truth": truth} | {m: shown[(noise, m)][match_topics(truth, shown[(noise, m)])] for m in methods}
        for column, (name, topics) in enumerate(panels.items()):
            axes = figure.add_subplot(grid[row, column])
            image = style.heatmap(axes, topics.T, name if row == 0 else "", norm=None)
            image.set_clim(0.0, 0.25)
            axes.set_ylabel(f"{noise} noise\nword (15)" if column == 0 else "", fontsize=9)
            axes.set_xlabel("topic (3)", fontsize=8)
    if image is not None:
        bar = figure.colorbar(image, ax=figure.axes, location="bottom", shrink=0.4, aspect=40)
        bar.set_label("probability of the word in the topic", fontsize=9)
    for row, tokens in enumerate(plan.tokens[:2]):
        axes = figure.add_subplot(grid[row, 6])
        rows = table[table["tokens"] == tokens]
        for place, method in enumerate(METHODS):
            colour, marker, _ = style.STYLES[method]
            for spot, noise in enumerate(LEVELS):
                values = rows.loc[(rows["noise"] == noise) & (rows["method"] == method), "topic_error"]
                axes.plot(np.full(len(values), spot + 0.13 * (place - 2)), values, marker, color=colour,
                          markersize=5, label=method if spot == 0 else None)  # fmt: skip
        style.tidy(
            axes, "", "topic error (lower is better)", f"{plan.data_sets} data sets, {tokens} words per document"
        )
        axes.set_xticks(range(len(LEVELS)), [f"{name} noise" for name in LEVELS])
        axes.set_ylim(bottom=0.0)
    style.legend(figure)
    return figure
