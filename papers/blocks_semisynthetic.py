"""Networks drawn from rates fitted to Enron's, rescaled actor by actor: the preprint's figure 4."""

import numpy as np

from countveil.fit import BlockModel
from papers import real_counts, semisynthetic
from papers.bench import Bench, Study
from papers.fits import Sampling
from papers.semisynthetic import Design, Plan

ABOUT = "networks drawn from rates fitted to Enron's, by size and noise"
NEEDS = "Enron's network"
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FULL = Plan(10, ALPHAS, 5, Sampling(1, 3000, 480, 25))
QUICK = Plan(5, (0.1, 0.5, 0.9), 2, Sampling(1, 150, 100))
E0, F0 = (0.75, 1.0, 1.5), 0.1


def run(bench: Bench, plan: Plan) -> Study:
    """Every method at every alpha and e0."""
    counts = real_counts.network(bench)
    off = ~np.eye(len(counts), dtype=bool)
    design = Design(counts, lambda seed: BlockModel(plan.n, seed=seed), off, E0, F0, True)
    table = semisynthetic.fits(bench, plan, design)
    return Study(table, semisynthetic.verdicts(table), semisynthetic.draw(table, plan, "Networks like Enron's"))
