"""Rates between Enron's actors from noisy counts: the ICML paper's figure 4 and its appendix's figure 1, top."""

import pandas as pd

from papers import enron_network, real_counts
from papers.bench import Bench, Study
from papers.claims import Comparison, Verdict, compared
from papers.enron_network import Plan
from papers.style import BURSTY, EXACT_VI, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS, ZERO

ABOUT = "reconstruction of Enron's network from noisy counts"
NEEDS = "Enron's network"
FULL, QUICK = enron_network.FULL, enron_network.QUICK


def run(bench: Bench, plan: Plan) -> Study:
    """Every method at every level, scored on all pairs."""
    counts = real_counts.network(bench)
    table = enron_network.fits(bench, plan, counts, None)
    return Study(table, verdicts(table), enron_network.draw(table, f"All pairs of Enron's {len(counts)} actors"))


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """Two claims of the paper and six comparisons that it does not make."""
    claims = (
        ("Reconstruction from noisy counts has a lower mean absolute error than the naive way",
         Comparison("mae", OURS, NAIVE)),
        ("... and a lower one than the fit to the true counts", Comparison("mae", OURS, TRUE_COUNTS)),
        ("... and a lower one than predicting zero everywhere (not claimed)", Comparison("mae", OURS, ZERO)),
        ("... and a lower one than least squares on the reports (not claimed)", Comparison("mae", OURS, LEAST_SQUARES)),
        ("... and a lower one than the exact variational method (not claimed)", Comparison("mae", OURS, EXACT_VI)),
        ("Its log score is higher than the naive way's (not claimed)", Comparison("log_score", OURS, NAIVE, True)),
        ("With bursty counts the mean absolute error is lower than with Poisson counts (not claimed)",
         Comparison("mae", BURSTY, OURS)),
        ("With bursty counts the log score is higher than the naive way's (not claimed)",
         Comparison("log_score", BURSTY, NAIVE, True)),
    )  # fmt: skip
    return [compared(claim, table, ["C", "level"], comparison) for claim, comparison in claims]
