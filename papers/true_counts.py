"""Posterior histograms of true counts that were only seen through noise: the workshop paper's figure 1, left."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.bridges.true_counts import expected_true_counts, sample_true_counts
from countveil.distributions import TwoSidedGeometric
from countveil.fit import PoissonFactorization
from papers import style
from papers.bench import Bench, Study, Task
from papers.claims import Verdict, verdict
from papers.fits import Noisy, Sampling, fitted, result, with_noise
from papers.style import EXACT_VI, LEAST_SQUARES
from papers.workshop import SCALE, SHAPE, Factors, workshop_data

ABOUT = "posterior histograms of the true counts against the truth"
NEEDS = ""
ALPHA, SHOWN = 0.5, 25
CLOSE = 1  # draws within this of the truth are close to it
RIVALS = (LEAST_SQUARES, EXACT_VI)


class Plan(NamedTuple):
    """Size of the data, and of the chains."""

    rows: int
    columns: int
    components: int
    sampling: Sampling


FULL = Plan(100, 80, 5, Sampling(4, 1000, 500, 2))
QUICK = Plan(60, 50, 5, Sampling(2, 200, 200))


def run(bench: Bench, plan: Plan) -> Study:
    """Draw true counts from their posterior, every sweep anew, and compare them with the truth."""
    true = workshop_data(bench.rng(1), plan.rows, plan.columns, plan.components)
    data = with_noise(true.counts, ALPHA, bench.rng(2))
    key = {"alpha": ALPHA, **plan._asdict()}
    found = bench.results([Task(key, lambda: {"counts": draw_counts(data, plan, bench)})])[0]["counts"]
    rivals = [Task({"method": each, **key}, partial(estimate, each, data, plan, bench.seed)) for each in RIVALS]
    estimates = [each["estimate"] for each in bench.results(rivals)]
    table = entries(true, data, found).assign(**dict(zip(RIVALS, map(np.ravel, estimates), strict=True)))
    chosen = bench.rng(4).choice(true.counts.size, SHOWN, replace=False)
    return Study(table, verdicts(table), draw(table, found, np.sort(chosen)))


def draw_counts(data: Noisy, plan: Plan, bench: Bench) -> np.ndarray:
    """(draws, D, V) posterior draws of the true counts."""
    fit, _ = fitted(style.OURS, factorization(plan, bench.seed), data, plan.sampling)
    draws, rng = fit.posterior["posterior"], bench.rng(3)
    theta, phi = (draws[name].to_numpy().reshape(-1, *draws[name].shape[2:]).astype(float) for name in ("theta", "phi"))
    drawn = [sample_true_counts(data.reports, t @ p.T + 1e-300, ALPHA, rng) for t, p in zip(theta, phi, strict=True)]
    return np.array(drawn, dtype=np.int32)


def factorization(plan: Plan, seed: int) -> PoissonFactorization:
    """The model with the prior that the data were drawn from."""
    return PoissonFactorization(
        "dk,vk->dv", {"k": plan.components}, names=("theta", "phi"), prior_shape=SHAPE, prior_rate=1.0 / SCALE,
        seed=seed,
    )  # fmt: skip


def estimate(method: str, data: Noisy, plan: Plan, seed: int) -> dict[str, Any]:
    """(D, V) what another method says about the true counts: least squares its rates, the exact variational method the
    expected counts given the report and its rates."""
    rate = np.asarray(result(method, factorization(plan, seed), plan.components, data, plan.sampling)["rate"])
    if method == LEAST_SQUARES:
        return {"estimate": rate}
    return {"estimate": expected_true_counts(data.reports, rate.astype(float) + 1e-300, ALPHA)}


def entries(true: Factors, data: Noisy, found: np.ndarray) -> pd.DataFrame:
    """One row per entry: truth, report, and what the posterior says."""
    low, high = np.quantile(found, [0.05, 0.95], axis=0, method="inverted_cdf")
    near = (np.abs(found - true.counts) <= CLOSE).mean(axis=0)
    columns = {
        "true_count": true.counts, "report": data.reports, "mean": found.mean(axis=0), "sd": found.std(axis=0),
        "low": low, "high": high, "near": near,
    }  # fmt: skip
    return pd.DataFrame({name: values.ravel() for name, values in columns.items()})


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """Whether most histograms are narrow and in the right place, and whether their intervals can be believed."""
    tight, positive = table["near"] > 0.5, table["true_count"] > 0
    held = (table["low"] <= table["true_count"]) & (table["true_count"] <= table["high"])
    errors = (table["mean"] - table["true_count"]).abs().mean()
    cut = (table["report"].clip(lower=0) - table["true_count"]).abs().mean()
    spread = table["sd"].mean() / float(TwoSidedGeometric(ALPHA).std())
    return [
        verdict(
            f"At alpha = {ALPHA:g} the posterior of most true counts is tightly concentrated around the truth",
            bool(tight.mean() > 0.5 and tight[positive].mean() > 0.5),
            f"more than half of the draws within {CLOSE} of the truth in {tight.mean():.0%} of all {len(table):,} "
            f"entries, and in {tight[positive].mean():.0%} of those whose count is positive; mean posterior standard "
            f"deviation {spread:.2f} of the noise's",
        ),
        verdict(
            "The posterior mean is closer to the true count than the report cut at zero is (not claimed)",
            bool(errors < cut), f"mean absolute error {errors:.3f} against {cut:.3f}",
        ),
        *(beaten(table, errors, rival) for rival in RIVALS),
        verdict(
            "90% intervals of the true counts hold at least 90% of them (not claimed)",
            bool(held.mean() > 0.9 - 3.0 * np.sqrt(0.09 / len(table))),
            f"{held.mean():.1%}; whole numbers make them too wide rather than too narrow",
        ),
    ]  # fmt: skip


def beaten(table: pd.DataFrame, errors: float, rival: str) -> Verdict:
    """Whether another method's estimates of the true counts are further off."""
    others = (table[rival] - table["true_count"]).abs().mean()
    return verdict(
        f"... and closer than the estimate of {rival} (not claimed)", bool(errors < others),
        f"mean absolute error {errors:.3f} against {others:.3f}",
    )  # fmt: skip


def draw(table: pd.DataFrame, found: np.ndarray, chosen: np.ndarray) -> Any:
    """A histogram for each chosen entry, the truth as a line, the report as a mark."""
    figure = style.figure(10.0, 7.5)
    flat = found.reshape(len(found), -1)
    for axes, entry in zip(figure.subplots(5, 5).ravel(), chosen, strict=True):
        values, times = np.unique(flat[:, entry], return_counts=True)
        axes.bar(values, times / len(flat), color="#0072B2", width=0.9, label="posterior draws of the true count")
        row = table.iloc[entry]
        axes.axvline(row["true_count"], color="#D55E00", linewidth=2, label="true count, never seen")
        axes.plot(
            [row["report"]], [0.0], "v", color="black", markersize=6, clip_on=False, label="report, all that is seen"
        )
        ends = [*values, row["true_count"], row["report"]]
        axes.set_xlim(min(ends) - 1.5, max(ends) + 1.5)
        style.tidy(axes)
        axes.xaxis.get_major_locator().set_params(integer=True, nbins=4)
    figure.axes[-3].set_xlabel("count", fontsize=10)
    figure.supylabel("posterior probability", fontsize=10)
    figure.suptitle(f"{SHOWN} entries chosen at random, alpha = {ALPHA:g}", fontsize=11)
    style.legend(figure)
    return figure
