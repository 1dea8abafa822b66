"""The slow, obvious law of true counts given reports: every count's weight, for all cells and draws at once."""

from itertools import repeat

import numpy as np
from scipy.special import logsumexp

from countveil.inference.predict import laws_of_counts
from countveil.laws.counts.given_reports import Cells, CountsGivenReports

NEGLIGIBLE = 1e-10  # probability of the last count of a law that is cut off there


def count_laws(reports, rates, noise, level, likelihood, parameters=()):
    """(n, Y) P(true count = y | report), y = 0 to Y - 1, for n cells, averaged over the draws of their rates.

    reports and level are (n,), rates (S, n); parameters are those of the cells in each draw, if there are any.
    P(y | r, rate) is proportional to P(y | rate) and the noise's kernel, and Y is so large that less than about 1e-9 is
    cut off (mathematics: sections 2 and 4).
    """
    kept = np.maximum(reports, 0)
    highest = float(max(kept.max(), np.ceil(rates.max())))
    size = int(highest + 10.0 * np.sqrt(highest + 1.0)) + 20  # enough for Poisson counts
    while True:
        counts, total = np.arange(size), np.zeros((len(kept), size))
        kernel = noise.log_kernel(kept[:, None], counts, level[:, None])
        for rate, own in zip(rates, parameters or repeat(()), strict=False):
            cells = tuple(values[:, None] for values in own)
            weights = likelihood.log_mass(counts, rate[:, None], cells) + kernel
            total += np.exp(weights - logsumexp(weights, axis=1, keepdims=True))
        if total[:, -1].max() < NEGLIGIBLE * len(rates):
            return total / len(rates)
        size *= 2


def laws_by_draws(reports, rates, noise, level, likelihood, parameters=()):
    """The law of each cell (Y,) as ``predict`` has it, with the same arguments; one p, if any, for all cells."""
    rates = np.asarray(rates, dtype=float)
    draws = [
        ((rate[:, None], np.ones((1, 1))), own) for rate, own in zip(rates, parameters or repeat(()), strict=False)
    ]
    rows = np.arange(len(reports))
    cells = Cells(rows, np.zeros_like(rows), np.maximum(reports, 0), np.asarray(level, dtype=float))
    found = {}
    for numbers, laws in laws_of_counts(lambda: draws, CountsGivenReports(noise, likelihood), cells):
        found |= dict(zip(numbers.tolist(), laws, strict=True))
    return [found[i] for i in rows.tolist()]
