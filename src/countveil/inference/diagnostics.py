"""Whether to trust a fit: do the chains agree, are there enough draws, does the fit explain the reports."""

import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import rankdata

from countveil.data.mechanism_checks import MechanismCheck
from countveil.data.observations import Observations
from countveil.kernels.entries import MASKED
from countveil.laws.counts import POISSON, Likelihood
from countveil.laws.counts.laws import positive_beyond_noise
from countveil.laws.counts.protocol import Parameters, parameters_of_rows, rates_at

NO_REASONS = "The chains agree", "The chains differ", "More draws make"
"""How sentences of a verdict begin that do not say why a fit is not safe to report."""
R_HAT_GOOD = 1.01
R_HAT_FAIR = 1.1
R_HAT_NESTED = 1.05
"""Above, as many chains again would have other averages: it is that of ten chains which have nothing in common."""
SPARE = 1.1  # times the chains that would do by few of them, whose ranks understate how far they are apart
LOG_LIKELIHOOD = "log-likelihood"
MIN_DRAWS = 4  # of a chain, for anything to be said
ESS_GOOD = 400
SIGNAL_LEAST = 0.8  # a fit with a smaller share is not safe to report, nor one whose total's is above 1 / 0.8
NORMAL_90 = 1.6448536269514722  # standard errors on both sides of a normal 90% interval
ERRORS = 2.0  # standard errors by which a share must be smaller, or larger
ERRORS_SURE = 4.0  # by which a sampler's interval must miss the reports' total for the fit not to be safe to report
ERRORS_OF_SIGNAL = 5.0  # of the reports' total from zero, below which intervals may rest on the prior
SURE_RATIO = 1.5  # of the ends of the fit's interval of its total, below which some cells stand out of the noise
MAX_CELLS = 20_000_000  # that ``signal_share`` looks at
CELLS_AT_ONCE = 2_000_000  # of these, in memory
REPORTED = " Report rates, sums and counts over all chains"


class FitWarning(UserWarning):
    """The fit should not be trusted; the message says why."""


class Share(NamedTuple):
    """What a fit expects over what the reports say, with the standard error of the reports' side."""

    value: float
    error: float

    @property
    def too_small(self) -> bool:
        """Whether it is below ``SIGNAL_LEAST`` beyond chance."""
        return self.value + ERRORS * self.error < SIGNAL_LEAST

    @property
    def too_large(self) -> bool:
        """Whether it is above 1 / ``SIGNAL_LEAST`` beyond chance."""
        return self.value - ERRORS * self.error > 1.0 / SIGNAL_LEAST

    def __str__(self) -> str:
        """Two digits."""
        return f"{self.value:.2f} (standard error {self.error:.2f})"


class Totals(NamedTuple):
    """The sum of the true counts of all cells that were seen, as the reports and the fit have it.

    ``lower`` and ``upper`` bound the 90% interval that is printed. If the reports, or totals that were published with
    them, give an unbiased estimate of the sum without a model, the interval is that estimate's: it covers the sum
    whatever the model is, while small errors of a model add up over many cells. With exact totals of all cells the sum
    is known.
    """

    reported: float  # an unbiased estimate from the reports, or from totals and reports; NaN where there is none
    error: float  # its standard error, by the noise; of other noise than two-sided geometric at most
    fitted: float  # expected by the fit
    fitted_lower: float | None  # of the fit's own 90% interval; None where intervals are not calibrated
    fitted_upper: float | None
    by_totals: int = 0  # 1 if the estimate uses totals
    exact: bool = False  # whether there are no reports: ``reported`` is the sum of the true counts, which nothing shows

    @property
    def by_fit(self) -> bool:
        """Whether all that is shown is by the fit."""
        return self.exact or bool(np.isnan(self.reported))

    @property
    def lower(self) -> float | None:
        """The lower end of the 90% interval of the sum; None without an interval."""
        return self.fitted_lower if self.by_fit else max(self.reported - NORMAL_90 * self.error, 0.0)

    @property
    def upper(self) -> float | None:
        """The upper end of the 90% interval of the sum; None without an interval."""
        return self.fitted_upper if self.by_fit else max(self.reported + NORMAL_90 * self.error, 0.0)

    @property
    def facts(self) -> dict[str, float]:
        """What tables and JSON say."""
        found = {} if self.exact else {"reported": self.reported, "error": self.error}
        found["fitted"] = self.fitted
        return found | ({} if self.lower is None or self.upper is None else {"lower": self.lower, "upper": self.upper})

    @property
    def falls_short(self) -> bool:
        """Whether the fit's interval lies below the reports' total by more than two standard errors."""
        most = self.fitted if self.fitted_upper is None else self.fitted_upper
        return most < self.reported - ERRORS * self.error

    @property
    def exceeds(self) -> bool:
        """Whether the fit's interval lies above the reports' total by more than two standard errors."""
        least = self.fitted if self.fitted_lower is None else self.fitted_lower
        return least > self.reported + ERRORS * self.error

    @property
    def drowned(self) -> bool:
        """Whether the reports' total is near to zero, by its own error, and the fit does not know its own either.

        In large sparse tables a few cells may stand out of the noise, though the sum of all does not.
        """
        if self.fitted_lower is None or self.fitted_upper is None:
            return False
        sure = self.fitted_upper < SURE_RATIO * self.fitted_lower
        return self.reported < ERRORS_OF_SIGNAL * self.error and not sure

    @property
    def far_off(self) -> bool:
        """Whether the reports' total is beyond the fit's interval by more than chance explains."""
        least = self.fitted if self.fitted_lower is None else self.fitted_lower
        most = self.fitted if self.fitted_upper is None else self.fitted_upper
        error = ERRORS_SURE * self.error
        return most < self.reported - error or least > max(self.reported, 0.0) + error

    @property
    def share(self) -> Share:
        """The fit's total over that of the reports; of nothing where that is within its error of zero."""
        if not self.reported > ERRORS * self.error:
            return Share(np.nan, np.nan)
        return Share(self.fitted / self.reported, self.error / self.reported)

    def __str__(self) -> str:
        """What the fit expects, and the interval."""
        fitted, interval = number(self.fitted), ""
        if self.lower is not None and self.upper is not None:
            interval = f"{number(self.lower)} to {number(self.upper)}"
        if self.by_fit:
            found = f"{fitted} by this fit" + (interval and f" (90% interval {interval})")
            return found if self.exact else f"{found}; the reports give no unbiased estimate without a model"
        source = "the reports and the totals" if self.by_totals else "the reports"
        if not self.error:
            known = "exactly, from the totals" if self.by_totals else f"from {source}"
            return f"{fitted} by this fit; {number(self.reported)} {known}"
        outside = self.lower is not None and self.upper is not None and not self.lower <= self.fitted <= self.upper
        advice = ", which the fit lies outside of: report the interval" if outside else ""
        return f"{fitted} by this fit; {interval} from {source}, without a model (90% interval){advice}"


def number(value: float) -> str:
    """Whole from 10 on."""
    return f"{value:,.0f}" if abs(value) >= 10.0 else f"{value:.2g}"


class State(StrEnum):
    """How far a fit can be trusted."""

    SAFE = "safe to report"
    WITH_SUPPORT = "safe to report with support"
    UNSAFE = "not safe yet"
    UNCHECKED = "not checked"


class Diagnostics(NamedTuple):
    """A table of R-hat and effective sample sizes, a verdict in words, and its state.

    A sampler's table has a row per quantity, with r_hat, ess_bulk, ess_tail and r_hat_nested, each the worst over its
    members. In state "safe to report" the chains agree. In state "safe to report with support" they found different
    components, but averages over all chains are steady: rates, totals and counts can be reported, and components with
    their support.

    ``chains`` has a row per chain: its log-likelihood at the start, at the end of tuning, in the mean of its draws and
    at the last one, its weight, and which of how many starts it took, if it chose. ``starts`` has all that it chose
    among, with their scores, and ``moves`` what each move did while it was tuned. They are None where there is nothing
    to say: of optimisers, of starts that do not choose, of chains without moves.

    ``mechanism`` is what the reports say of the mechanism that is stated for them: its ``state`` is one of "consistent
    with the reports", "contradicted" and "cannot be checked". None of counts that are not private.
    """

    table: pd.DataFrame
    verdict: str
    state: State
    chains: pd.DataFrame | None = None
    starts: pd.DataFrame | None = None
    moves: pd.DataFrame | None = None
    mechanism: MechanismCheck | None = None

    @property
    def line(self) -> str:
        """The verdict, with the state in front: what commands print."""
        state = self.state.capitalize()
        return self.verdict if self.verdict.startswith(f"{state}:") else f"{state}. {self.verdict}"

    @property
    def reason(self) -> str:
        """The first sentence of the verdict that is a reason for its state."""
        sentences = re.split(r"(?<=\.)\s+(?=[A-Z])", self.verdict)
        if self.state == State.UNSAFE:  # chains that agree are no reason, and come before what is
            sentences = [each for each in sentences if not each.startswith(NO_REASONS)] or sentences
        return sentences[0]

    def doubted(self, wrong: Sequence[str], also: Sequence[str] = ()) -> "Diagnostics":
        """The same with what is wrong, which comes first and leaves nothing safe to report, and more sentences."""
        said, state = self.verdict, State.UNSAFE if wrong else self.state
        said = withdrawn(said) if state is State.UNSAFE else said
        said = re.sub("^Not safe yet: (.)", lambda found: found[1].upper(), said) if wrong else said
        return self._replace(verdict=" ".join(filter(None, [*wrong, said, *also])), state=state)

    def of_chains(self) -> dict[str, pd.DataFrame]:
        """The tables of chains, starts and moves that there are, by name."""
        found = {"chains": self.chains, "starts": self.starts, "moves": self.moves}
        return {name: table for name, table in found.items() if table is not None}


def diagnose(quantities: dict[str, np.ndarray], weights: np.ndarray | None = None, shared: bool = True) -> Diagnostics:
    """Diagnose named quantities, each (C, S) or (C, S, members), by rank-normalised R-hat and ESS.

    Vehtari et al. (2021). Quantities must not depend on the order of components. ``weights`` (C,) are those of the
    chains in averages, equal by default; ``shared`` is whether any component is one that most chains have.
    """
    n_chains = len(next(iter(quantities.values())))
    weights = np.full(n_chains, 1.0 / n_chains) if weights is None else weights
    rows = {
        name: (*worst(np.asarray(values, dtype=np.float64)), nested(np.asarray(values, np.float64), weights))
        for name, values in quantities.items()
    }
    columns = ["r_hat", "ess_bulk", "ess_tail", "r_hat_nested"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return Diagnostics(table, *verdict_of(table, n_chains, shared))


def worst(values: np.ndarray) -> tuple[float, float, float]:
    """The largest R-hat and smallest effective sample sizes over the members of one quantity."""
    if values.shape[1] < MIN_DRAWS:
        return float("nan"), float("nan"), float("nan")
    with home_for_imports():
        from arviz_stats.base import array_stats  # half a second, which a fit need not wait for

    axes = {"chain_axis": 0, "draw_axis": 1}
    with np.errstate(all="ignore"):  # a quantity that never moves has no R-hat
        r_hat = array_stats.rhat(values, **axes) if values.shape[0] > 1 else np.nan
        bulk = array_stats.ess(values, method="bulk", **axes)
        tail = array_stats.ess(values, method="tail", prob=(0.05, 0.95), **axes)
    return float(np.fmax.reduce(np.ravel(r_hat))), float(np.min(bulk)), float(np.min(tail))


def nested(values: np.ndarray, weights: np.ndarray) -> float:
    """The largest nested R-hat over the members of one quantity: would as many chains again average to the same?

    Nested R-hat is sqrt(1 + between / within) for the variance of means between superchains and that of draws within
    them (Margossian et al. 2024, equations 6 to 8). A superchain here is all chains, each from a start of its own; what
    other superchains would have for means is estimated from these chains: between is the variance of chains' means
    times sum_c w_c^2, and within is that variance plus the variance within chains. Values are ranks, as normal scores.
    """
    n_chains, n_draws = values.shape[:2]
    if n_chains < 2 or n_draws < MIN_DRAWS:
        return float("nan")
    flat = values.reshape(n_chains * n_draws, -1)
    scores = ndtri((rankdata(flat, axis=0) - 0.375) / (len(flat) + 0.25)).reshape(n_chains, n_draws, -1)
    among = scores.mean(axis=1).var(axis=0, ddof=1)
    within = among + scores.var(axis=1, ddof=1).mean(axis=0)
    share = np.divide(among, within, out=np.zeros_like(among), where=within > 0.0)
    return float(np.sqrt(1.0 + (weights**2).sum() * share.max()))


@contextmanager
def home_for_imports() -> Iterator[None]:
    """A home directory without files for a user who has none: ArviZ raises an error otherwise when it is imported."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = os.devnull
        try:
            yield
        finally:
            os.environ.pop("HOME", None)
    else:
        yield


def verdict_of(table: pd.DataFrame, n_chains: int, shared: bool = True) -> tuple[str, State]:
    """One or two plain sentences, and the state: whether to trust the fit, and what to do next."""
    r_hat, ess = table["r_hat"].max(), table[["ess_bulk", "ess_tail"]].min().min()
    if not np.isfinite(ess):
        return "Too few draws to judge convergence; ask for more draws.", State.UNCHECKED
    if n_chains == 1:
        said = f"One chain only, so agreement cannot be checked (effective draws at least {ess:.0f}); run several."
        return said, State.UNCHECKED
    r_hat = 1.0 if np.isnan(r_hat) else r_hat  # nothing moves, in no chain
    most = f"R-hat up to {upwards(r_hat)}"
    if r_hat <= R_HAT_GOOD and ess >= ESS_GOOD:
        agree = f"the chains agree ({most}), and the effective draws suffice (at least {ess:.0f})."
        return agreed(agree, shared)
    if r_hat <= R_HAT_FAIR:
        said = f"the chains agree roughly ({most}, effective draws at least {ess:.0f})."
        return agreed(f"{said} More draws make the ends of intervals steadier.", shared)
    steady = table["r_hat_nested"].drop(LOG_LIKELIHOOD, errors="ignore").max()  # nobody reports that
    found = f"the chains differ ({most})"
    if steady <= R_HAT_NESTED:
        said = (
            f"Safe to report with support: {found}, but averages over all of them are steady (nested R-hat up to "
            f"{upwards(steady)}).{REPORTED}"
        )
        return said + (", and components with their support." if shared else "."), State.WITH_SUPPORT
    more = int(np.ceil(SPARE * n_chains * (steady**2 - 1.0) / (R_HAT_NESTED**2 - 1.0)))
    said = (
        f"Not safe yet: {found}, and averages over {n_chains} chains are not steady (nested R-hat up to "
        f"{upwards(steady)}). Run about {more} chains, or tune longer"
    )
    return said + ("; after that, report components with their support." if shared else "."), State.UNSAFE


def quantity_of(name: str, row: pd.Series) -> tuple[str, bool]:
    """A quantity of a sampler's table in words, and whether a verdict has nothing against it: as ``verdict_of``."""
    r_hat, nested, ess = row["r_hat"], row["r_hat_nested"], min(row["ess_bulk"], row["ess_tail"])
    if not np.isfinite(ess):
        return "too few draws to say", False
    if np.isnan(nested):
        agree, fine = "one chain, so agreement is unknown", False
    elif not r_hat > R_HAT_FAIR:  # it is NaN of what moves in no chain
        agree, fine = "chains agree roughly" if r_hat > R_HAT_GOOD else "chains agree", True
    elif name == LOG_LIKELIHOOD:
        agree, fine = "chains differ, which is no result to report", True
    else:
        fine = bool(nested <= R_HAT_NESTED)
        agree = f"chains differ; averages over all of them are {'' if fine else 'not '}steady"
    return f"{agree}; {'at least' if ess >= ESS_GOOD else 'fewer than'} {ESS_GOOD} effective draws", fine


def agreed(said: str, shared: bool) -> tuple[str, State]:
    """The verdict on chains that agree, which says nothing of components that they do not share."""
    if shared:
        return f"Safe to report: {said}", State.SAFE
    return f"Safe to report with support: {said}", State.WITH_SUPPORT


def withdrawn(verdict: str) -> str:
    """A verdict on chains without its leave to report, for a fit that is wrong for another reason."""
    said = re.sub(rf"{REPORTED}[^.]*\.", "", verdict)
    return re.sub("^Safe to report( with support)?: (.)", lambda found: found[2].upper(), said)


def upwards(value: float) -> str:
    """A number with two digits after the point that is no smaller, so that it stays above a bound that it exceeds."""
    return f"{math.ceil(round(100.0 * value, 6)) / 100.0:.2f}"


def undetermined_in_words(one: str, many: str, n: int, total: int) -> str:
    """What to say of n of ``total`` components that the data do not determine; ``one`` is a "topic"."""
    some = f"{n} of {total} {many} {'is' if n == 1 else 'are'} largely undetermined"
    return (
        f"{f'The {many} cannot be found' if n == total else some}: more than half of "
        f"{'each' if n > 1 else f'such a {one}'} differs from draw to draw. {what_may_help(many)}"
    )


def unshared_in_words(one: str, many: str) -> str:
    """What to say where no component is one that more than half of the chains have; ``one`` is a "topic"."""
    return (
        f"The {many} cannot be found: no {one} was found by more than half of the chains, so none can be reported. "
        f"{what_may_help(many)}"
    )


def what_may_help(many: str) -> str:
    """What to do where components are not found."""
    return f"More data or less noise may help, or another number of {many}: cv.compare says which one predicts best."


def signal_share(
    observations: Observations,
    theta: np.ndarray,
    phi: np.ndarray,
    likelihood: Likelihood = POISSON,
    parameters: Parameters = (),
) -> Share:
    """Positive reports beyond those made by noise alone: expected at the rates theta phi^T, over observed.

    The share is near one for a fit of the right size, and far below for one that starved its components. theta is
    (D, K), phi (V, K), ``parameters`` are the likelihood's own. For very large data only evenly spread rows are used.
    Its error is that of the number of positive reports, each with the chance that the rates give it.
    """
    n_rows, n_columns = observations.shape
    rows = np.unique(np.linspace(0, n_rows - 1, max(1, min(n_rows, MAX_CELLS // n_columns))).astype(int))
    expected = observed = variance = 0.0
    for part in np.array_split(rows, max(1, rows.size * n_columns // CELLS_AT_ONCE)):
        taken = observations.take(part)
        noise, level = taken.noise, taken.cell_level
        own = parameters_of_rows(likelihood, parameters, part)
        extra = positive_beyond_noise(noise, likelihood, rates_at(theta[part], phi, taken.exposure), level, own)
        entry_rows = taken.row_numbers
        hidden = taken.reports == MASKED
        extra[entry_rows[hidden], taken.columns[hidden]] = 0.0
        by_noise = np.broadcast_to(noise.positive_by_noise(level), taken.shape)
        chance = by_noise + extra
        variances = chance * (1.0 - chance)
        variances[entry_rows[hidden], taken.columns[hidden]] = 0.0
        variance += variances.sum()
        expected += extra.sum()
        observed += np.count_nonzero(taken.reports > 0) - by_noise.sum()
        observed += by_noise[entry_rows[hidden], taken.columns[hidden]].sum()
    if observed <= 0:
        return Share(np.nan, np.nan)
    return Share(float(expected / observed), float(np.sqrt(variance) / observed))


def diagnose_optimiser(
    starved: str, converged: bool, iterations: int, reports: Share | None, total: Share | None = None
) -> Diagnostics:
    """Diagnose an optimiser's fit by how it ended, by its ``signal_share``, and by its share of the reports' total.

    ``starved`` is its method's advice for a fit that explains too little. ``reports`` is None where reports are not
    positive or else.
    """
    total = Share(np.nan, np.nan) if total is None else total
    row = {
        "converged": [converged],
        "iterations": [iterations],
        "signal_share": [np.nan if reports is None else reports.value],
        "signal_error": [np.nan if reports is None else reports.error],
        "total_share": [total.value],
        "total_error": [total.error],
    }
    verdict, state = verdict_of_optimiser(starved, converged, iterations, reports, total)
    return Diagnostics(pd.DataFrame(row, index=["fit"]), verdict, state)


def verdict_of_optimiser(
    starved: str, converged: bool, iterations: int, reports: Share | None, total: Share
) -> tuple[str, State]:
    """One or two plain sentences on an optimiser's fit, and its state."""
    steps = "1 iteration" if iterations == 1 else f"{iterations} iterations"
    ending = f"{'Converged' if converged else 'Stopped'} after {steps}"
    if reports is not None and not np.isfinite(reports.value):
        said = f"{ending}; the data hold no more positive reports than noise alone makes, so there is nothing to find."
        return said, State.UNSAFE
    if reports is not None and reports.too_small:
        said = (
            f"Not safe yet: the fit expects only {reports.value:.0%} (standard error {reports.error:.0%}) of the "
            f"positive reports that noise does not explain. {starved}"
        )
        return said, State.UNSAFE
    if total.too_small:
        said = (
            f"Not safe yet: the fit expects only {total.value:.0%} (standard error {total.error:.0%}) of the sum "
            "of the true counts that the reports add up to."
        )
        return said, State.UNSAFE
    if total.too_large:
        said = (
            f"Not safe yet: the fit expects {total.value:.0%} (standard error {total.error:.0%}) of the sum of "
            "the true counts that the reports add up to. Check the noise level and the priors, or try method gibbs."
        )
        return said, State.UNSAFE
    summed = np.isfinite(total.value)
    if reports is None:
        share = f"; the fit explains the sum of the reports, expected over observed {total}" if summed else ""
        said = f"{ending}{share}."
    else:
        both = f"the fit explains the positive reports, expected over observed {reports}"
        said = f"{ending}; {both}{f', and their sum, {total}' if summed else ''}."
    return said, State.SAFE if converged else State.UNCHECKED
