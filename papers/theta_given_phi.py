"""Recovery of theta where phi is known: the workshop paper's figure 1, right."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from countveil.evaluation import poisson_divergence
from countveil.fit import PoissonFactorization
from papers import style
from papers.bench import Bench, Study, Task
from papers.claims import Comparison, Verdict, compared, verdict
from papers.fits import Noisy, Sampling, fitted, with_noise
from papers.style import EXACT_VI, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS
from papers.workshop import SCALE, SHAPE, Factors, workshop_data

ABOUT = "recovery of theta given the true phi"
NEEDS = ""
LEVELS = (0.1, 0.25, 0.5, 0.9)  # p = 1 - alpha
METHODS = (OURS, NAIVE, LEAST_SQUARES, EXACT_VI, TRUE_COUNTS)
FLOORS = np.geomspace(1e-6, 1.0, 25)  # of the rates of least squares, which may be zero
ALLOWED_GAP = 0.1  # of the distance between the divergences of the true counts' fit and of a flat rate


class Plan(NamedTuple):
    """Size of the data, and number of sweeps; the second half of them is averaged."""

    rows: int
    columns: int
    components: int
    sweeps: int


FULL, QUICK = Plan(200, 100, 5, 10000), Plan(100, 60, 5, 2000)


def run(bench: Bench, plan: Plan) -> Study:
    """One chain for each noise level and method, from its first sweep on."""
    true = workshop_data(bench.rng(1), plan.rows, plan.columns, plan.components)
    tasks, labels = [], []
    for place, p in enumerate(LEVELS):
        data = with_noise(true.counts, 1.0 - p, bench.rng(2, place))
        for method in METHODS if place == 0 else METHODS[:-1]:
            key = {"method": method, "p": p, **plan._asdict()}
            tasks.append(Task(key, partial(chain, method, data, true, plan, bench.seed)))
            labels.append((p if method != TRUE_COUNTS else np.nan, method))
    found = bench.results(tasks)
    flat = poisson_divergence(true.rate, np.full(true.rate.shape, true.rate.mean()))
    rows = [
        {"p": p, "method": method, "draw": 0, "divergence": float(each["divergence"]),
         "coverage": float(each["coverage"]), "n_theta": true.theta.size, "flat": flat}
        for (p, method), each in zip(labels, found, strict=True)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    drawn = {label: (each["trace"], float(each["divergence"])) for label, each in zip(labels, found, strict=True)}
    return Study(table, verdicts(table), draw(drawn, flat))


def chain(method: str, data: Noisy, true: Factors, plan: Plan, seed: int) -> dict[str, Any]:
    """Divergence of every draw from the truth, of the mean over the second half, and coverage of 90% intervals."""
    if method == LEAST_SQUARES:
        return given_least_squares(data, true)
    model = PoissonFactorization(
        "dk,vk->dv", {"k": plan.components}, names=("theta", "phi"), fixed={"phi": true.phi},
        priors={"theta": (SHAPE, 1.0 / SCALE)}, seed=seed,
    )  # fmt: skip
    fit, _ = fitted(method, model, data, Sampling(1, 0, plan.sweeps))
    theta = fit.posterior["posterior"]["theta"].to_numpy()[0].astype(float)  # (S, D, K)
    kept = theta if method == EXACT_VI else theta[len(theta) // 2 :]
    low, high = np.quantile(kept, [0.05, 0.95], axis=0)
    floor = 1e-12
    return {
        "trace": [poisson_divergence(true.rate, np.maximum(each @ true.phi.T, floor)) for each in theta],
        "divergence": poisson_divergence(true.rate, np.maximum(kept.mean(axis=0) @ true.phi.T, floor)),
        "coverage": ((low <= true.theta) & (true.theta <= high)).mean(),
    }


def given_least_squares(data: Noisy, true: Factors) -> dict[str, Any]:
    """Divergence of nonnegative least squares on the signed reports, at the floor that is best for it."""
    theta = np.array([nnls(true.phi, row)[0] for row in data.reports.astype(float)])
    rate = theta @ true.phi.T
    found = min(poisson_divergence(true.rate, np.maximum(rate, floor)) for floor in FLOORS)
    return {"trace": [], "divergence": found, "coverage": np.nan}


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """Whether theta is recovered even at the strongest noise."""
    ours = table[table["method"] == OURS].set_index("p")
    clean = float(table.loc[table["method"] == TRUE_COUNTS, "divergence"].iloc[0])
    worst, flat = ours.loc[min(LEVELS)], float(table["flat"].iloc[0])
    left = (worst["divergence"] - clean) / (flat - clean)
    error = 3.0 * np.sqrt(0.09 / float(table["n_theta"].iloc[0]))
    covered = ", ".join(f"p = {p:g}: {row['coverage']:.1%}" for p, row in ours.iterrows())
    return [
        verdict(
            f"Given phi, theta is recovered even at p = 1 - alpha = {min(LEVELS):g}", bool(left <= ALLOWED_GAP),
            f"mean divergence of the rates {worst['divergence']:.3f}; from the true counts {clean:.3f}, of one flat "
            f"rate {flat:.3f}: {left:.1%} of the way is left, {ALLOWED_GAP:.0%} allowed",
        ),
        compared(
            "The recovery is better than the naive way's at every noise level (not claimed)", table, ["p"],
            Comparison("divergence", OURS, NAIVE),
        ),
        *(
            compared(f"... and than that of {name} (not claimed)", table, ["p"], Comparison("divergence", OURS, rival))
            for name, rival in (("least squares", LEAST_SQUARES), ("the exact variational method", EXACT_VI))
        ),
        verdict(
            f"90% intervals of theta hold {0.9 - error:.0%} to {0.9 + error:.0%} of the true values (not claimed)",
            bool((ours["coverage"] - 0.9).abs().max() <= error), covered,
        ),
    ]  # fmt: skip


def draw(found: dict[tuple[float, str], tuple[np.ndarray, float]], flat: float) -> Any:
    """Divergence of every posterior draw against the sweep, and of the estimate as a mark at the right end."""
    figure = style.figure(11.0, 3.6)
    panels = figure.subplots(1, len(LEVELS), sharey=True)
    clean = next(each for (_, method), each in found.items() if method == TRUE_COUNTS)
    for axes, p in zip(panels, LEVELS, strict=True):
        n = len(clean[0])
        for place, method in enumerate(METHODS):
            trace, divergence = clean if method == TRUE_COUNTS else found[(p, method)]
            colour, marker, line = style.STYLES[method]
            if len(trace) == n:
                axes.plot(np.arange(1, n + 1), trace, color=colour, linestyle=line, linewidth=0.8, alpha=0.6)
            axes.plot(
                [n * 1.5 ** (1 + place)], [divergence], color=colour, marker=marker, markersize=6, linestyle="",
                markeredgewidth=2 if marker == "_" else 1, label=f"{method}, estimate",
            )  # fmt: skip
        axes.axhline(flat, color="#888888", linestyle=":", label="one flat rate")
        style.tidy(axes, "sweep (lines: single draws)", "", f"p = 1 - alpha = {p:g}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks([1, 10, 100, 1000])
    panels[0].set_ylabel("divergence of the rates from the truth\n(mean over cells, nats; lower is better)", fontsize=9)
    style.legend(figure)
    return figure
