"""Links held out between Enron's busiest actors: the ICML paper's figure 4 and its appendix's figure 1, bottom."""

import numpy as np
import pandas as pd

from countveil.data.networks import links_among
from papers import enron_network, real_counts
from papers.bench import Bench, Study
from papers.claims import Comparison, Verdict, compared
from papers.enron_network import Plan
from papers.style import BURSTY, EXACT_VI, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS, ZERO

ABOUT = "prediction of links held out between Enron's busiest senders and receivers"
NEEDS = "Enron's network"
FULL, QUICK = enron_network.FULL, enron_network.QUICK
TOP = 50
MAJORITY = 0.5  # more than this share of the settings is most of them


def busiest(counts: np.ndarray) -> np.ndarray:
    """True for links from the TOP busiest senders to the TOP busiest receivers."""
    senders, receivers = (np.argsort(-counts.sum(axis=axis), kind="stable")[:TOP].tolist() for axis in (1, 0))
    return links_among(len(counts), senders, receivers)


def run(bench: Bench, plan: Plan) -> Study:
    """Every method at every level, blind to the links that it is scored on."""
    counts = real_counts.network(bench)
    table = enron_network.fits(bench, plan, counts, busiest(counts))
    return Study(table, verdicts(table), enron_network.draw(table, f"Links held out: top {TOP} senders x receivers"))


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """The paper: the lowest error in most settings; then against each rival, and against predicting zero."""
    setting, rivals = ["C", "level"], (NAIVE, TRUE_COUNTS)
    wide = pd.concat([table[table["method"] == OURS], best_of(table, rivals)])
    claims = (
        ("... lower than the naive way in every setting", Comparison("mae", OURS, NAIVE)),
        ("... lower than the fit to the true counts in every setting", Comparison("mae", OURS, TRUE_COUNTS)),
        ("... lower than predicting zero everywhere (not claimed)", Comparison("mae", OURS, ZERO)),
        ("... lower than least squares on the reports (not claimed)", Comparison("mae", OURS, LEAST_SQUARES)),
        ("... lower than the exact variational method (not claimed)", Comparison("mae", OURS, EXACT_VI)),
        ("Its log score is higher than the naive way's (not claimed)", Comparison("log_score", OURS, NAIVE, True)),
        ("With bursty counts the log predictive of a held-out link is higher than with Poisson counts (not claimed)",
         Comparison("log_predictive", BURSTY, OURS, True)),
        ("... and the predictive median has a lower mean absolute error (not claimed)",
         Comparison("median_mae", BURSTY, OURS)),
        ("... lower than predicting zero everywhere (not claimed)", Comparison("median_mae", BURSTY, ZERO)),
        ("The fit to the true counts itself predicts better than zero everywhere (not claimed)",
         Comparison("mae", TRUE_COUNTS, ZERO)),
    )  # fmt: skip
    most = compared(
        "Held-out links are predicted with the lowest mean absolute error of the paper's three in most settings",
        wide, setting, Comparison("mae", OURS, "best rival", share=MAJORITY + 1e-9),
    )  # fmt: skip
    return [most] + [
        compared(claim, table, ["C"] if pair.first == TRUE_COUNTS else setting, pair) for claim, pair in claims
    ]


def best_of(table: pd.DataFrame, rivals: tuple[str, ...]) -> pd.DataFrame:
    """Rows of a made-up method that is the best of the rivals, by mean over draws, in every setting of ours."""
    rows = []
    for (n, level), _ in table[table["method"] == OURS].groupby(["C", "level"], sort=False):
        means = []
        for rival in rivals:
            found = table[(table["method"] == rival) & (table["C"] == n)]
            found = found if found["level"].isna().all() else found[found["level"] == level]
            means.append(found["mae"].mean())
        rows.append({"C": n, "level": level, "draw": 0, "method": "best rival", "mae": np.nanmin(means)})
    return pd.DataFrame(rows)
