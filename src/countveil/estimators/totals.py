"""The sum of all true counts, by the reports alone and by a fit: whether a fit leaves counts out."""

from typing import NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.estimators.reading import Readable
from countveil.inference.facts import facts_of
from countveil.inference.methods import METHODS
from countveil.kernels.entries import MASKED
from countveil.likelihoods import POISSON, NegativeBinomial
from countveil.likelihoods.protocol import in_counts
from countveil.noise import TWO_SIDED_GEOMETRIC

DRAWS = 200  # of the posterior at most, evenly spread
ERRORS = 2.0  # standard errors by which an interval must miss the reports' total
INTERVAL = 0.05, 0.95
TRY = f'likelihood="{NegativeBinomial.name}"'


class Totals(NamedTuple):
    """The sum of the true counts of all cells that were seen, as the reports and the fit have it."""

    reported: float  # an unbiased estimate from the reports alone
    error: float  # its standard error, by the noise; of other noise than two-sided geometric at most
    fitted: float  # expected by the fit
    lower: float | None  # of its 90% interval; None where intervals are not calibrated
    upper: float | None

    @property
    def falls_short(self) -> bool:
        """Whether the fit's interval lies below the reports' total by more than two standard errors."""
        most = self.fitted if self.upper is None else self.upper
        return most < self.reported - ERRORS * self.error


def totals_of(fit: Readable, data: Observations) -> Totals:
    """The totals of the data that a fit was made of, in the matrix form of its model (``data_matrix``).

    The reports' total is the sum of u(r), which is unbiased for signed and for truncated reports: E[u(r) | y] = y for
    every count y, and u(r) is the mean of the signed report given max(r, 0) (mathematics, equations 12.3 and 12.5).
    """
    values, hidden = [], data.reports == MASKED
    row, column = data.row_numbers[hidden], data.columns[hidden]
    for (theta, phi), parameters in fit.even_draws(DRAWS):
        theta, phi = in_counts(fit.model_.likelihood, theta, phi, parameters)
        masked = np.einsum("ek,ek->", theta[row], phi[column])
        values.append(theta.sum(axis=0) @ phi.sum(axis=0) - masked)
    lower, upper = (None, None) if fit.why_no_intervals else map(float, np.quantile(values, INTERVAL))
    return Totals(facts_of(data).total_count, error_of(data), float(np.mean(values)), lower, upper)


def error_of(data: Observations) -> float:
    """The standard error of the reports' total, given the true counts (12.5)."""
    unseen = 0.5 if data.noise is TWO_SIDED_GEOMETRIC else 1.0
    shares = np.where(data.reports > 0, 1.0, np.where(data.reports == MASKED, 0.0, unseen))
    stored = (shares * data.noise.standard_deviation(data.entry_levels) ** 2).sum()
    others = data.shape[1] - np.diff(data.indptr)
    rest = (others * unseen * data.noise.standard_deviation(data.level_d) ** 2).sum()
    return float(np.sqrt(stored + rest))


def advice_on(totals: Totals, fit: Readable, option: str = TRY) -> str:
    """What to try where a Poisson fit leaves counts out, in words; empty where nothing speaks for it.

    ``option`` is how the reader sets the likelihood.
    """
    if fit.model_.likelihood.name != POISSON.name or not totals.falls_short:
        return ""
    takes = NegativeBinomial.name in METHODS[str(fit.posterior.attrs["method"])].likelihoods
    other = "" if takes else " with method gibbs"
    return (
        "The fit expects fewer counts than the reports add up to, beyond its interval and the noise. Counts that come "
        f"in bursts look like that to a Poisson model, which takes large counts for noise. Try {option}{other}."
    )
