"""The demo of communities: who meets whom in Les Misérables, recovered from noisy reports.

77 people of the novel, and for each pair the number of chapters in which both appear (Knuth 1993). Every pair's
count gets exact noise, those that never meet included; each contender sees that release alone.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from countveil.common.console import ProgressWatcher, console, error_console
from countveil.common.extras import install
from countveil.common.files import write_csv
from countveil.data.networks import graph_counts, privatize_graph
from countveil.data.observations import ExactCounts, NaiveCounts
from countveil.experiments.demo import save_heatmaps
from countveil.fit import BlockModel
from countveil.fit.base import check_whole
from countveil.inference.diagnostics import FitWarning
from countveil.inference.starts.alternating import least_squares
from countveil.planning.contenders import LEAST_SQUARES_ITERATIONS, rate_scores
from countveil.privacy import PrivacyLevel, Release
from countveil.privacy._archive import replacing

OURS, NAIVE, LEAST_SQUARES, TRUE_COUNTS = "countveil", "naive", "least squares", "true counts"


class Plan(NamedTuple):
    """What to run: a level epsilon/N as decimal text, and how to sample."""

    level: str = "1"
    n_communities: int = 6
    tune: int = 250
    draws: int = 250
    chains: int = 4
    seed: int = 1
    threads: int = 1


class Study(NamedTuple):
    """What the demo found; matrices are symmetric, (people, people)."""

    level: str
    people: list[str]
    order: np.ndarray  # of people, those of a community side by side
    counts: np.ndarray
    reports: np.ndarray  # cut at zero
    rates: dict[str, np.ndarray]  # by method
    scores: pd.DataFrame  # method, log_score, mae, seconds
    members: pd.DataFrame
    release: Release


def load_les_miserables() -> Any:
    """The novel's people as a networkx graph.

    Raises:
        ModuleNotFoundError: networkx is missing.
    """
    try:
        import networkx
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"this demo needs networkx, which is missing: {install('demo')}") from error
    return networkx.les_miserables_graph()


def run(graph: Any, plan: Plan, stage: Callable[[str], None]) -> Study:
    """Privatize an undirected graph, fit it in every way, and score the rates of all pairs."""
    table = graph_counts(graph)
    stage("privatizing the network")
    release = privatize_graph(graph, PrivacyLevel(plan.level, 1), truncate=False)
    counts, pairs = symmetric(table.to_numpy()), np.triu_indices(len(table), 1)
    reports = symmetric(np.asarray(release.reports))
    rates, seconds, members, order = {}, {}, pd.DataFrame(), np.arange(len(table))
    for name, data in ((OURS, release), (NAIVE, NaiveCounts(release)), (TRUE_COUNTS, ExactCounts(table))):
        stage(f"fitting: {name}")
        fit, seconds[name] = fitted(data, plan)
        rates[name] = fit.rate().to_numpy()
        if name == OURS:
            members, order = fit.top_actors(6), by_community(fit)
    started = time.perf_counter()
    rates[LEAST_SQUARES] = least_squares_on(reports, plan)
    seconds[LEAST_SQUARES] = time.perf_counter() - started
    rows = []
    for name, rate in rates.items():
        scores = rate_scores(counts[pairs], rate[pairs], name == LEAST_SQUARES)
        rows.append({"method": name, **scores, "seconds": seconds[name]})
    return Study(
        plan.level, list(table.index), order, counts, np.maximum(reports, 0), rates, pd.DataFrame(rows), members,
        release,
    )  # fmt: skip


def symmetric(above: np.ndarray) -> np.ndarray:
    """A matrix of pairs from its part above the diagonal."""
    upper = np.triu(above, 1)
    return upper + upper.T


def fitted(data: Any, plan: Plan) -> tuple[BlockModel, float]:
    """The block model of these data, and the seconds it took."""
    started = time.perf_counter()
    model = BlockModel(
        plan.n_communities, likelihood="poisson", prior_shape=0.1, directed=False, tune=plan.tune, draws=plan.draws,
        chains=plan.chains, seed=plan.seed, threads=plan.threads, progress=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        # Chains may find different groupings, and the model may not explain the counts: see the table.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FitWarning)
        model.fit(data)
    check_whole(model)
    return model, time.perf_counter() - started


def least_squares_on(reports: np.ndarray, plan: Plan) -> np.ndarray:
    """Rates by nonnegative least squares on signed reports, which are unbiased; mean over as many starts as chains."""
    total, zero = np.zeros(reports.shape), np.zeros(len(reports))
    for rng in np.random.default_rng(plan.seed).spawn(plan.chains):
        theta, phi = least_squares(reports.astype(float), zero, plan.n_communities, rng, LEAST_SQUARES_ITERATIONS)
        total += theta @ phi.T
    return (total + total.T) / (2 * plan.chains)


def by_community(fit: BlockModel) -> np.ndarray:
    """Actors in an order in which communities are side by side, the largest first, its strongest actors first."""
    sent = fit.memberships_ * (fit.blocks_ + fit.blocks_.T).sum(axis=1)
    home, strength = sent.argmax(axis=1), sent.max(axis=1)
    sizes = [strength[home == c].sum() for c in range(sent.shape[1])]
    rank = np.argsort(np.argsort(sizes)[::-1])
    return np.lexsort((-strength, rank[home]))


def present(plan: Plan, output: Path) -> Study:
    """Run the demo, print who is in which community and how well the counts are recovered, and write its files.

    Raises:
        ModuleNotFoundError: networkx or matplotlib is missing.
        OSError: ``output`` cannot be written to.
    """
    graph = load_les_miserables()
    output.mkdir(parents=True, exist_ok=True)
    with ProgressWatcher(error_console()) as watcher:
        study = run(graph, plan, watcher.stage)
        watcher.stage("scored; writing files")
        paths = [output / name for name in ("network.npz", "communities.csv", "communities.png")]
        study.release.save(paths[0])
        write_csv(study.scores, paths[1])
        with replacing(paths[2]) as path:
            most = float(study.counts.max())
            save_heatmaps(panels(study), [study.people[i] for i in study.order], most, path)
    n = len(study.people)
    screen = console()
    screen.print(
        f"{n} people of Les Misérables, {n * (n - 1) // 2:,} pairs; "
        f"exact noise on every pair at epsilon/N = {plan.level}.",
        highlight=False,
    )
    screen.print(score_table(study))
    screen.print(members_table(study))
    screen.print("Wrote " + ", ".join(str(path) for path in paths), highlight=False, soft_wrap=True)
    return study


def panels(study: Study) -> dict[str, np.ndarray]:
    """The matrices of the figure by their titles, the people of a community side by side."""
    found = {
        "true counts\n(seen by their owners alone)": study.counts,
        f"noisy reports, epsilon/N = {study.level}\n(handed over; truncated at zero)": study.reports,
        "naive\n(reports treated as counts)": study.rates[NAIVE],
        "least squares\n(on signed reports)": study.rates[LEAST_SQUARES],
        "countveil\n(true counts unknown)": study.rates[OURS],
    }
    return {title: matrix[np.ix_(study.order, study.order)] for title, matrix in found.items()}


def score_table(study: Study) -> Table:
    """How well each method's rates recover the true counts of all pairs."""
    table = Table(
        title="Rates against the true counts of all pairs", title_justify="left", header_style="", box=box.SIMPLE
    )
    table.add_column("method")
    for heading in ("log score per count (higher)", "MAE (lower)", "seconds"):
        table.add_column(heading, justify="right")
    for row in study.scores.itertuples():
        table.add_row(row.method, f"{row.log_score:.3f}", f"{row.mae:.3f}", f"{row.seconds:.1f}")
    return table


def members_table(study: Study) -> Table:
    """The strongest people of each community that was found in the noisy reports."""
    table = Table(
        title="Communities found in the noisy reports, by share of all expected meetings", title_justify="left",
        header_style="", box=box.SIMPLE,
    )  # fmt: skip
    table.add_column("share", justify="right")
    table.add_column("strongest members: share of the community in % (90% interval)")
    for _, rows in study.members.groupby("community"):
        listed = ", ".join(
            f"{row.actor} {100 * row.probability:.0f} ({100 * row.lower:.0f} to {100 * row.upper:.0f})"
            for row in rows.itertuples()
        )
        table.add_row(f"{rows['prevalence'].iloc[0]:.0%}", listed)
    return table
