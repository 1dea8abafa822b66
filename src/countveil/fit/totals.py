"""The sum of all true counts, by reports and totals and by a fit: whether a fit leaves counts out."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from countveil.data.mechanism_checks import usable_codes
from countveil.data.observations import Observations, runs_of
from countveil.inference.diagnostics import Diagnostics, State, Totals, number
from countveil.inference.facts import facts_of
from countveil.inference.matching import places, pooled
from countveil.inference.methods import METHODS
from countveil.inference.posterior import share_kept
from countveil.kernels.entries import MASKED
from countveil.kernels.report_kernels import GUESS, LEAST, MOST
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.protocol import in_counts, rates_at
from countveil.laws.noise import AnyMechanismNoise

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

INTERVAL = 0.05, 0.95
SETTLED = State.SAFE, State.WITH_SUPPORT
"""States of chains by which a total far from the reports' is the model's fault; else they may be the reason."""
TRY = f'likelihood="{NegativeBinomial.name}"'


def totals_of(fit: "FactorizationEstimator", data: Observations) -> Totals:
    """The totals of the data that a fit was made of, in the matrix form of its model (``data_matrix``).

    The reports' total is the sum of u(r), which is unbiased for signed and for truncated reports: E[u(r) | y] = y for
    every count y, and u(r) is the mean of the signed report given max(r, 0) (mathematics, equations 12.3 and 12.5).
    """
    return totals_together([fit], np.ones(1), [data])


def totals_together(
    fits: "Sequence[FactorizationEstimator]", weights: np.ndarray, data: Sequence[Observations]
) -> Totals:
    """The totals of the same data by several fits, each with its weight (F,), and with the data in its own form."""
    each = [expected_totals(fit, own) for fit, own in zip(fits, data, strict=True)]
    drawn = [own[kept] for own, kept in zip(each, places(weights, [len(own) for own in each]), strict=True)]
    lower, upper = (None, None)
    if not any(fit._reader.why_no_intervals for fit in fits):
        lower, upper = map(float, np.quantile(np.concatenate(drawn), INTERVAL))
    reported, error, by_totals = estimated_sum(data[0])
    fitted = float(weights @ [own.mean() for own in each])
    return Totals(reported, error, fitted, lower, upper, by_totals, data[0].kind == "exact")


def estimated_sum(data: Observations) -> tuple[float, float, int]:
    """(an unbiased estimate of the sum of the true counts that were seen, its standard error, 1 if by totals).

    It is the one with the least error, of the reports alone or of a family of totals with the reports of all cells in
    none of them. Without any, it is NaN.
    """
    found = [(facts_of(data).total_count, error_of(data), 0)] if data.noise.unbiased else []
    found += [(*own, 1) for own in sums_by_totals(data)]
    return min(found, key=lambda each: each[1], default=(np.nan, np.nan, 0))


def sums_by_totals(data: Observations) -> Iterator[tuple[float, float]]:
    """(estimate, standard error) by each family of totals that has an unbiased one.

    A total of a masked cell is of no use, and its other cells are estimated by their own reports.
    """
    if data.totals is None:
        return
    noise, totals = data.noise, data.totals
    assert isinstance(noise, AnyMechanismNoise)
    seen, code, kernel = data.reports >= 0, np.maximum(data.reports.astype(np.int64), 0), noise.kernel
    least, most = kernel.whole_cj[code, LEAST], kernel.whole_cj[code, MOST]
    # An unbiased estimate would no longer be one if it were replaced where only one count is possible.
    unbiased = usable_codes(noise)[code]
    usable = unbiased | (least == most)
    estimate = np.where(unbiased, kernel.real_cj[code, GUESS], least)
    variance = np.where(unbiased & (code > 0), noise.variance_c[code], 0.0)
    for groups in totals.groups:
        group = groups[data.row_numbers, data.columns].astype(np.int64)
        there = np.bincount(groups[groups >= 0], minlength=totals.size) > 0
        there[group[~seen & (group >= 0)]] = False
        covered = (group >= 0) & there[group]
        alone = seen & ~covered
        error = np.sqrt(totals.variance[there].sum() + variance[alone].sum())
        if there.any() and usable[alone].all() and not np.isnan(error):
            yield float(totals.kernel.real_cj[1:, GUESS][there].sum() + estimate[alone].sum()), float(error)


def expected_totals(fit: "FactorizationEstimator", data: Observations) -> np.ndarray:
    """(S,) the expected sum of the true counts that were seen, by the draws of which ``rate`` is the mean."""
    (row, column), tree = data.masked_cells, fit.posterior
    if not row.size:
        return pooled(tree, tree["sample_stats"]["total_rate"].to_numpy())
    values = []
    for (theta, phi), parameters in fit._reader.draws():
        theta, phi = in_counts(fit.model_.likelihood, theta, phi, parameters)
        if data.exposure is not None:
            seen = rates_at(theta, phi, data.exposure)
            seen[row, column] = 0.0
            values.append(seen.sum())
            continue
        masked = np.einsum("ek,ek->", theta[row], phi[column])
        values.append(theta.sum(axis=0) @ phi.sum(axis=0) - masked)
    return np.asarray(values, dtype=float)


def error_of(data: Observations) -> float:
    """The standard error of the reports' total, given the true counts (12.5)."""
    noise, stored = data.noise, 0.0
    for run in runs_of(data):
        block = data.block(run)
        levels = block.level_e if data.stores_all else np.repeat(block.level_d, np.diff(block.indptr))
        stored += float((noise.variance(block.reports, levels) * (block.reports != MASKED)).sum())
    others = data.shape[1] - np.diff(data.indptr)
    rest = (others * noise.variance(np.zeros(data.shape[0], np.int64), data.level_d)).sum()
    return float(np.sqrt(stored + rest))


def doubt_of(totals: Totals, fit: "FactorizationEstimator") -> str:
    """What to say of a sampler's fit whose total is not that of the reports, and what to do; empty where it is."""
    if fit.posterior.attrs["observations"] != "private":
        return ""
    if totals.fitted_upper is None:
        return advice_on(totals, fit) if totals.share.too_small else ""
    if not totals.far_off:
        return ""
    if totals.exceeds:
        return f"The sum of the true counts is too high: {totals}. Check the noise level and the priors."
    by_column = "column" in fit.model_.likelihood.parameter_axes.values()
    other = "by row" if by_column else "by column or row"
    advice = advice_on(totals, fit) or (f"Check the noise level; more components, or a dispersion {other}, may help.")
    return f"The sum of the true counts falls short: {totals}. {advice}"


def lack_of_data(totals: Totals, fit: "FactorizationEstimator") -> str:
    """What to say of a sampler's fit where noise drowns the counts; empty where it does not."""
    private = fit.posterior.attrs["observations"] == "private"
    if not private or not totals.drowned or totals.far_off:
        return ""
    return (
        f"Too little data: the reports put the sum of the true counts at {number(totals.reported)} with a standard "
        f"error of {number(totals.error)}, so that intervals of counts and rates rest on the prior. Report no more "
        "than the 90% interval of the sum; more reports, less noise or published totals would help."
    )


def far_off(totals: Totals, fit: "FactorizationEstimator") -> bool:
    """Whether the total of a fit is farther from the reports' than a verdict takes for chance."""
    if "optimisation" in fit.posterior.children:
        return totals.share.too_small or totals.share.too_large
    return bool(doubt_of(totals, fit))


def misses_counts(fit: "FactorizationEstimator", diagnosed: Callable[[], Diagnostics]) -> bool:
    """Whether a fit leaves out too many of the positive reports or of the counts, or has too many counts."""
    reports, totals = share_kept(fit.posterior), fit.totals()
    if reports is not None and reports.too_small:
        return True
    if totals is None or not far_off(totals, fit):
        return False
    return "optimisation" in fit.posterior.children or diagnosed().state in SETTLED


def advice_on(totals: Totals, fit: "FactorizationEstimator") -> str:
    """What to try where a Poisson fit leaves counts out, in words; empty where nothing speaks for it."""
    if fit.model_.likelihood.name != POISSON.name or not totals.falls_short:
        return ""
    takes = NegativeBinomial.name in METHODS[str(fit.posterior.attrs["method"])].likelihoods
    other = "" if takes else " with method gibbs"
    return (
        "Counts that come in bursts look like that to a Poisson model, which takes large counts for noise. "
        f"Try {TRY}{other}."
    )
