"""Texts drawn from rates fitted to Enron's, rescaled by document and word: the preprint's figure 5."""

import numpy as np

from countveil.fit import TopicModel
from papers import real_counts, semisynthetic
from papers.bench import Bench, Study
from papers.blocks_semisynthetic import ALPHAS
from papers.fits import Sampling
from papers.semisynthetic import Design, Plan

ABOUT = "texts drawn from rates fitted to Enron's, by size and noise"
NEEDS = "Enron's texts"
FULL = Plan(25, ALPHAS, 5, Sampling(1, 3000, 480, 25))
QUICK = Plan(10, (0.1, 0.5, 0.9), 2, Sampling(1, 100, 60))
E0, F0 = (5.0, 10.0, 50.0), 0.001
LARGE, SMALL = (1000, 1400), (200, 300)


def run(bench: Bench, plan: Plan) -> Study:
    """Every method at every alpha and e0; a corpus of the preprint's size with its number of topics, or a small one."""
    shape = LARGE if plan.n >= FULL.n else SMALL
    counts = real_counts.texts(bench, real_counts.TEXT_SMALL, shape).toarray()
    design = Design(
        counts, lambda seed: TopicModel(plan.n, seed=seed), np.ones(counts.shape, dtype=bool), E0, F0, False
    )
    table = semisynthetic.fits(bench, plan, design)
    return Study(table, semisynthetic.verdicts(table), semisynthetic.draw(table, plan, "Texts like Enron's"))
