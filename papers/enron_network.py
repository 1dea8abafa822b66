"""What the two case studies of Enron's network share: fits at every level, scored on chosen cells."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.evaluation import predictive_log_score
from countveil.fit import BlockModel
from countveil.planning.contenders import rate_scores
from papers import style
from papers.bench import Bench, Task, digest
from papers.fits import Noisy, Sampling, fitted, result, with_noise
from papers.style import BURSTY, EXACT_VI, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS, ZERO

LEVELS = (3.0, 2.0, 1.0)  # epsilon/N; the text of the paper names three levels without their values
METHODS = (OURS, BURSTY, NAIVE, LEAST_SQUARES, EXACT_VI, TRUE_COUNTS)
TABLES = 200  # simulated, whose median predicts


class Plan(NamedTuple):
    """Numbers of communities, noise draws, and the chains."""

    communities: tuple[int, ...]
    noise_draws: int
    sampling: Sampling


FULL = Plan((5, 10, 20), 5, Sampling(2, 2500, 1000, 5))
QUICK = Plan((5, 20), 1, Sampling(1, 150, 100))


def fits(bench: Bench, plan: Plan, counts: np.ndarray, held_out: np.ndarray | None) -> pd.DataFrame:
    """One row per fit: scores on the held-out cells, or on all but the diagonal. Zero is a method too.

    Held-out cells are also predicted: see ``predictions``.
    """
    diagonal = np.eye(len(counts), dtype=bool)
    mask = diagonal if held_out is None else diagonal | held_out
    cells = ~diagonal if held_out is None else held_out & ~diagonal
    tasks, labels = [], []
    for draw in range(plan.noise_draws):
        for level in LEVELS:
            data = with_noise(counts, float(np.exp(-level)), bench.rng(draw, int(10 * level)), mask)
            for n in plan.communities:
                for method in METHODS:
                    if method == TRUE_COUNTS and level != LEVELS[0]:
                        continue
                    key = {"method": method, "C": n, "level": level, "draw": draw, "data": digest(counts),
                           "cells": int(cells.sum()), **plan.sampling._asdict()}  # fmt: skip
                    scored = fit if held_out is None else predictions
                    tasks.append(Task(key | {"scores": scored.__name__},
                                      partial(scored, method, n, data, cells, plan, draw)))  # fmt: skip
                    labels.append({"C": n, "level": np.nan if method == TRUE_COUNTS else level, "draw": draw,
                                   "method": method})  # fmt: skip
    rows = [label | _scores(each) for label, each in zip(labels, bench.results(tasks), strict=True)]
    error = float(counts[cells].mean())
    zero = {"mae": error, "log_score": -np.inf, "seconds": 0.0}
    zero |= {} if held_out is None else {"median_mae": error, "log_predictive": -np.inf}
    rows += [{"C": n, "level": np.nan, "draw": 0, "method": ZERO, **zero} for n in plan.communities]
    return pd.DataFrame(rows)


def fit(method: str, n: int, data: Noisy, cells: np.ndarray, plan: Plan, seed: int) -> dict[str, Any]:
    """Scores of one fit."""
    found = result(method, BlockModel(n, seed=seed), n, data, plan.sampling)
    rate = np.asarray(found["rate"], dtype=float)[cells]
    return {**rate_scores(data.counts[cells], rate, method == LEAST_SQUARES), "seconds": found["seconds"]}


def predictions(method: str, n: int, data: Noisy, cells: np.ndarray, plan: Plan, seed: int) -> dict[str, Any]:
    """Scores of one fit in cells that it has not seen, and of what it predicts there, if it has draws.

    median_mae: mean absolute error of the median of 200 simulated tables, each at another draw. log_predictive: log of
    the posterior average of the true count's probability, a mean over cells.
    """
    if method == LEAST_SQUARES:
        return fit(method, n, data, cells, plan, seed)
    model, seconds = fitted(method, BlockModel(n, seed=seed), data, plan.sampling)
    rate, true = model.rate().to_numpy()[cells], data.counts[cells]
    tables = model.predict_counts(TABLES, np.random.default_rng(seed)).to_numpy()[:, cells]
    score = predictive_log_score(data.counts, model, cells)  # per token
    return {
        **rate_scores(true, rate, False),
        "seconds": seconds,
        "median_mae": np.abs(np.median(tables, axis=0) - true).mean(),
        "log_predictive": score * true.sum() / true.size,
    }


def _scores(arrays: dict[str, np.ndarray]) -> dict[str, float]:
    return {name: float(value) for name, value in arrays.items()}


def draw(table: pd.DataFrame, title: str) -> Any:
    """Mean absolute error above, log score below; a column for each number of communities."""
    numbers = list(dict.fromkeys(table["C"]))
    figure = style.figure(2.0 + 3.1 * len(numbers), 6.0)
    grid = figure.subplots(2, len(numbers), squeeze=False, sharey="row")
    for column, n in enumerate(numbers):
        rows = table[table["C"] == n]
        for axes, metric in zip(grid[:, column], ("mae", "log_score"), strict=True):
            finite = rows[np.isfinite(rows[metric])]
            style.lines(axes, finite, "level", metric, (*METHODS, ZERO) if metric == "mae" else METHODS)
            style.tidy(
                axes, "epsilon/N (more noise to the left)", "", f"C = {n} communities" if metric == "mae" else ""
            )
    grid[0, 0].set_ylabel("mean absolute error, e-mails per pair\n(lower is better)", fontsize=9)
    grid[1, 0].set_ylabel("log score per e-mail\n(higher is better)", fontsize=9)
    draws = int(table["draw"].max()) + 1
    spread = f"bars span {draws} noise draws" if draws > 1 else "one noise draw"
    figure.suptitle(f"{title}; {spread}", fontsize=11)
    style.legend(figure)
    return figure
