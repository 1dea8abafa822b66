"""What the two semi-synthetic case studies share: rates fitted to real counts, rescaled, and counts drawn from them."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.evaluation import poisson_divergence
from countveil.fit.base import FactorizationEstimator
from papers import style
from papers.bench import Bench, Task, digest
from papers.claims import Comparison, Verdict, compared, untested, verdict
from papers.fits import Noisy, Sampling, fitted, result, with_noise
from papers.style import EXACT_VI, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS

FLOOR = 1e-6  # estimates are raised to it: a divergence from a rate of zero is infinite
ALMOST_ALWAYS = 0.9


class Plan(NamedTuple):
    """Components, noise levels, data sets of each kind, and the chains."""

    n: int
    alphas: tuple[float, ...]
    data_sets: int
    sampling: Sampling
    methods: tuple[str, ...] = (OURS, NAIVE, LEAST_SQUARES, EXACT_VI, TRUE_COUNTS)


class Design(NamedTuple):
    """The real counts, the model of them, and the scales gamma(e0 f0, f0)."""

    counts: np.ndarray
    model: Callable[[int], FactorizationEstimator]  # by seed
    cells: np.ndarray  # those that are part of the data
    e0: tuple[float, ...]
    f0: float
    symmetric: bool  # one scale for rows and columns


def fits(bench: Bench, plan: Plan, design: Design) -> pd.DataFrame:
    """Divergence from the true rates of every method, e0, alpha and data set."""
    hidden = None if design.cells.all() else ~design.cells
    base = Noisy(design.counts, design.counts, 0.0, hidden)
    key = {"n": plan.n, "data": digest(design.counts), **plan.sampling._asdict()}
    first = Task({"method": "true rates", **key}, partial(base_rate, design, base, plan, bench.seed))
    rate = bench.results([first])[0]["rate"].astype(float)
    tasks, labels = [], []
    for place, e0 in enumerate(design.e0):
        for draw in range(plan.data_sets):
            truth = rescaled(rate, e0, design, bench.rng(place, draw))
            counts = bench.rng(place, draw, 1).poisson(truth) * design.cells
            for alpha in plan.alphas:
                data = with_noise(counts, alpha, bench.rng(place, draw, int(100 * alpha)), hidden)
                for method in plan.methods:
                    clean = method == TRUE_COUNTS
                    if clean and alpha != plan.alphas[0]:
                        continue
                    own = {"method": method, "e0": e0, "alpha": alpha, "draw": draw}
                    tasks.append(Task(own | key, partial(fit, method, data, truth, design, plan, bench.seed)))
                    labels.append(own | {"alpha": np.nan if clean else alpha, "mean_rate": truth[design.cells].mean()})
    found = bench.results(tasks)
    return pd.DataFrame(
        [label | {"divergence": float(each["divergence"])} for label, each in zip(labels, found, strict=True)]
    )


def base_rate(design: Design, base: Noisy, plan: Plan, seed: int) -> dict[str, Any]:
    """Rates fitted to the real counts."""
    model, _ = fitted(TRUE_COUNTS, design.model(seed), base, plan.sampling)
    return {"rate": model.rate().to_numpy()}


def rescaled(rate: np.ndarray, e0: float, design: Design, rng: np.random.Generator) -> np.ndarray:
    """gamma_i gamma_j times every rate: the same as rescaling the factors' rows."""
    rows = rng.gamma(e0 * design.f0, 1.0 / design.f0, (rate.shape[0], 1))
    columns = rows.T if design.symmetric else rng.gamma(e0 * design.f0, 1.0 / design.f0, (1, rate.shape[1]))
    return np.asarray(rows * columns * rate)


def fit(method: str, data: Noisy, truth: np.ndarray, design: Design, plan: Plan, seed: int) -> dict[str, Any]:
    """Divergence of one fit, on the cells that are part of the data."""
    rate = np.asarray(result(method, design.model(seed), plan.n, data, plan.sampling)["rate"], dtype=float)
    return {"divergence": poisson_divergence(truth[design.cells], np.maximum(rate[design.cells], FLOOR))}


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """The claims of the captions of the preprint's figures 4 and 5."""
    means = table.groupby(["method", "e0", "alpha"], dropna=False)["divergence"].mean()
    noise, sizes = sorted(table["alpha"].dropna().unique()), sorted(table["e0"].unique())
    gaps = {e: [means[NAIVE, e, a] / means[OURS, e, a] for a in (noise[0], noise[-1])] for e in sizes}
    starker = ", ".join(f"e0 {e:g}: {low:.2g} to {high:.2g}" for e, (low, high) in gaps.items())
    clean = table[table["method"] == TRUE_COUNTS].groupby("e0")["divergence"].mean()
    found = [
        compared("The private method almost always has a lower divergence than the naive way (in 90% of the settings)",
                 table, ["e0", "alpha"], Comparison("divergence", OURS, NAIVE, share=ALMOST_ALWAYS)),
        verdict("... and the difference is starkest at high noise", all(high > low for low, high in gaps.values()),
                f"naive over ours from alpha = {noise[0]:g} to {noise[-1]:g}: {starker}"),
    ]  # fmt: skip
    claim = "At little noise both private methods come closer to the true counts' fit as counts grow"
    if len(clean):
        over = {m: [means[m, e, noise[0]] / clean[e] for e in (sizes[0], sizes[-1])] for m in (OURS, NAIVE)}
        closer = all(abs(large - 1.0) < abs(small - 1.0) for small, large in over.values())
        said = ", ".join(f"{m}: {small:.3g} to {large:.3g}" for m, (small, large) in over.items())
        spoken = f"divergence over that of the true counts' fit, e0 {sizes[0]:g} to {sizes[-1]:g}: {said}"
        found.append(verdict(claim, closer, spoken))
    else:
        found.append(untested(claim, "no fit to the true counts"))
    return [
        *found,
        compared("It has a lower divergence than least squares on the reports (not claimed)", table, ["e0", "alpha"],
                 Comparison("divergence", OURS, LEAST_SQUARES)),
        compared("It has a lower divergence than the exact variational method (not claimed)", table, ["e0", "alpha"],
                 Comparison("divergence", OURS, EXACT_VI)),
    ]  # fmt: skip


def draw(table: pd.DataFrame, plan: Plan, title: str) -> Any:
    """Divergence against alpha, a panel for each e0."""
    sizes = sorted(table["e0"].unique())
    figure = style.figure(1.0 + 3.4 * len(sizes), 3.9)
    for axes, e0 in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes, strict=True):
        rows = table[table["e0"] == e0]
        style.lines(axes, rows, "alpha", "divergence", plan.methods)
        mean = rows["mean_rate"].mean()
        style.tidy(axes, "alpha (more noise to the right)", "", f"e0 = {e0:g}, mean rate {float(f'{mean:.2g}'):g}")
        style.log_scale(axes)
    figure.axes[0].set_ylabel("divergence from the true rates\n(mean over cells, nats; lower is better)", fontsize=9)
    spread = f"bars span {plan.data_sets} data sets" if plan.data_sets > 1 else "one data set each"
    figure.suptitle(f"{title}; {spread}", fontsize=11)
    style.legend(figure)
    return figure
