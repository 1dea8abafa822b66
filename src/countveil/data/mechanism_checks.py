"""Whether reports contradict the mechanism that is stated for them, as far as this shows without a fit.

Every test holds whatever the counts are, or for all but odd laws of counts, and doubts fewer than one right statement
in ten thousand.
"""

from collections.abc import Iterator
from enum import StrEnum
from functools import reduce
from hashlib import blake2b
from itertools import chain
from math import gcd, log
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaincc

from countveil.data.observations import Observations, runs_of
from countveil.data.provenance import log_most_probable
from countveil.kernels.entries import MASKED
from countveil.kernels.report_kernels import GUESS, LEAST, MOST, UNBOUNDED
from countveil.laws.noise.additive import AdditiveLaw
from countveil.laws.noise.any_mechanism import UNBIASED, AnyMechanismNoise
from countveil.laws.noise.laws import law_of
from countveil.laws.noise.protocol import Contradiction, Tally
from countveil.laws.noise.table import TableLaw
from countveil.laws.noise.two_sided_geometric import formulas
from countveil.laws.noise.two_sided_geometric.noise import SURPRISE, of_signed
from countveil.privacy.mechanisms import (
    Composed,
    Interval,
    Mechanism,
    RandomisedResponse,
    RandomRounding,
    Rounding,
    Suppression,
    TwoSidedGeometric,
)

SURE = -log(1e-6)  # the same of rows that agree, and of reports with a common divisor, in natural units
FEW = 10  # cells, of which each is evidence by a factor of two, that are no surprise yet
DIFFERENT = 3  # values, of which fewer show no grid
LARGE = 8  # multiples of a base, from which on neighbouring ones are about as probable
CUT = "No report is below zero, so the reports cannot show whether {level} is as stated."
NEVER_CHECKED = {
    Interval: "Counts that are given as ranges cannot show whether the ranges are right.",
    RandomisedResponse: "Flipped zeros and ones cannot show how often they were flipped.",
}
Floats = NDArray[np.float64]


class MechanismState(StrEnum):
    """What reports say of the mechanism that is stated for them."""

    CONSISTENT = "consistent with the reports"
    CONTRADICTED = "contradicted"
    UNCHECKED = "cannot be checked"


class MechanismCheck(NamedTuple):
    """What the reports say of their mechanism, in sentences."""

    found: tuple[str, ...] = ()  # what contradicts it
    unchecked: tuple[str, ...] = ()  # what cannot be checked
    misfits: tuple[str, ...] = ()  # what the fit does not explain: the model may be wrong as well
    sums: tuple[str, ...] = ()  # that sums of many counts are slightly off, so that reports alone give them
    outlying: tuple[str, ...] = ()  # rows and columns, a few of many, whose rates are not to be reported

    @property
    def wrong(self) -> tuple[str, ...]:
        """What speaks against a fit."""
        return self.found + self.misfits

    @property
    def state(self) -> MechanismState:
        """One of three."""
        if self.found:
            return MechanismState.CONTRADICTED
        return MechanismState.UNCHECKED if self.unchecked else MechanismState.CONSISTENT

    def __str__(self) -> str:
        """In words, for a verdict."""
        if self.state is MechanismState.CONSISTENT:
            return "The stated mechanism is consistent with the reports."
        if self.state is MechanismState.UNCHECKED:
            return " ".join(["The stated mechanism cannot be checked.", *self.unchecked])
        return " ".join(self.found)


def check_mechanism(data: Observations) -> MechanismCheck | None:
    """What reports say of their mechanism, by themselves; None of counts that are not private."""
    if data.kind != "private":
        return None
    if isinstance(data.noise, AnyMechanismNoise):
        parts = list(published(data))
        found = [said for part in parts for said in of_part(*part)]
        found += of_totals(data)
        cut = any(isinstance(each, TwoSidedGeometric) and not (values < 0).any() for each, values in parts)
        unchecked: tuple[str, ...] = (CUT.format(level="alpha"),) if cut else ()
        for kind, words in NEVER_CHECKED.items():
            unchecked += (words,) if any(isinstance(each, kind) for each, _ in parts) else ()
    else:
        contradiction = contradiction_of(data)
        found = [] if contradiction is None else [contradiction_in_words(data.noise.level, contradiction)]
        found += [] if contradiction is not None else of_least(data)
        cut = data.is_noisy and (data.below_zero is None or not data.below_zero.sum())
        unchecked = (CUT.format(level=data.noise.level),) if cut else ()
    return MechanismCheck(tuple(dict.fromkeys([*found, *of_rows(data)])), unchecked)


def untested(data: Observations) -> list[Mechanism]:
    """The mechanisms of which a fit alone can say something: none of the tests above could be made of their reports."""
    if not isinstance(data.noise, AnyMechanismNoise):
        return []  # the level is tested, or it was said that it cannot be
    summed = next(sums_of_totals(data), None) is not None
    found = {
        each: None
        for each, values in published(data)
        if values.size and not (is_tested(each, values) or (summed and isinstance(each, UNBIASED)))
    }
    return [each for each in found if not isinstance(each, TwoSidedGeometric | Interval | RandomisedResponse)]


def is_tested(mechanism: Mechanism, values: Floats) -> bool:
    """Whether ``of_part`` could find a wrong parameter of a mechanism in reports (n,) that it is said to have made."""
    law = law_of(mechanism)
    if isinstance(law, AdditiveLaw):
        return law.exact or bool((values < 0).any() and not law.centre)
    return grid_of(mechanism)[0] > 1 and np.unique(values[values > 0]).size >= DIFFERENT


def contradiction_in_words(level: str, found: Contradiction) -> str:
    """What to say where reports contradict the ``level`` that is stated for them, such as alpha."""
    most = "at most " if found.at_most else ""
    return (
        f"The reports contradict their {level}: {found.stated:.3g} is stated, but their noise looks like "
        f"{level} {most}{found.found:.3g}. Ask how they were protected: with another {level}, rates and intervals are "
        "wrong."
    )


def published(data: Observations) -> Iterator[tuple[Mechanism, Floats]]:
    """The reports that were seen, NaN where a count has none, by report of the counts and by mechanism."""
    noise, made = data.noise, data.provenance.published
    assert isinstance(noise, AnyMechanismNoise)
    if noise.one_report or made is None:
        codes = data.reports[data.reports > 0]
        for number, each in enumerate(noise.mechanisms):
            yield each, noise.value_c[codes[noise.mechanism_c[codes] == number]]
        return
    for place in range(len(made.layers)):
        report = made.report(place)
        for number, each in enumerate(report.mechanisms):
            yield each, report.values[report.seen & (report.number == number)]


def of_part(mechanism: Mechanism, values: Floats) -> list[str]:
    """What contradicts a mechanism in reports (n,) that it is said to have made."""
    there, law = values[~np.isnan(values)], law_of(mechanism)
    found = [] if isinstance(law, TableLaw) or getattr(law, "real", False) else of_divisor(mechanism, there)
    if isinstance(mechanism, TwoSidedGeometric) and (there < 0).any():
        low, alpha = there[there <= 0], np.array([float(mechanism.alpha)])
        contradiction = of_signed(alpha, np.array([low.size]), -float(low.sum()))
        found += [] if contradiction is None else [contradiction_in_words("alpha", contradiction)]
    if isinstance(law, AdditiveLaw) and not law.exact:
        found += of_negative(mechanism, law, there)
    return found


def of_negative(mechanism: Mechanism, law: AdditiveLaw, values: Floats) -> list[str]:
    """By reports below zero: no count makes smaller ones than a count of zero does.

    Of n reports, the least is r or less with probability at most n P(noise <= r), and the sum of the squares of what
    is below zero has a mean and a variance of at most n times those of noise alone (mathematics, 19.3 and 19.4).
    """
    below, n = values[values < 0], values.size
    if not below.size or law.centre:
        return []
    spread, kurtosis = law.spread, 3.0 + excess(mechanism)
    mean, variance = 0.5 * n * spread**2, n * spread**4 * (0.5 * kurtosis - 0.25)
    least = float(law.log_cdf(np.array([below.min()]))[0]) + log(n)
    many = gammaincc(mean**2 / variance, float((below**2).sum()) * mean / variance)
    if least >= log(SURPRISE) and many >= SURPRISE:
        return []
    return [
        (
            f"The reports contradict {mechanism.in_words}: {below.size:,} of {n:,} are below zero, down to "
            f"{below.min():g}, and this noise does not reach so far. Ask how they were protected, and whether "
            "some are codes."
        )
    ]


def excess(mechanism: Mechanism) -> float:
    """The excess kurtosis of noise (mathematics, 19.5); 0 of rounding, where it is below."""
    law = law_of(mechanism)
    return law.excess_kurtosis if isinstance(law, AdditiveLaw) else 0.0


def of_divisor(mechanism: Mechanism, values: Floats) -> list[str]:
    """By reports that all lie on a coarser grid than the mechanism's, as those that were rounded further do.

    Where a value on the stated grid is missing although both of its neighbours on the coarser one are there, the count
    of the rarer of both is evidence, a factor of two for each cell, if the law of counts has no gaps; and so is every
    different large value, of which every second one would lie off the coarser grid.
    """
    base, below = grid_of(mechanism)
    different, times = np.unique(values[values > 0], return_counts=True)
    if different.size < DIFFERENT or (np.floor(different) != different).any():
        return []
    multiples = ((different + below) / base).astype(np.int64)
    step = reduce(gcd, np.diff(multiples).tolist())
    if step < 2:
        return []
    near = np.diff(multiples) == step
    gaps = int(np.minimum(times[1:], times[:-1])[near].sum())
    evidence = max(gaps * log(2.0), int((multiples >= LARGE).sum()) * log(step))
    if evidence < SURE:
        return []
    return [
        (
            f"The reports contradict {mechanism.in_words}: all {different.size} different values are {step * base} "
            f"apart or multiples of that, so they were rounded to steps of {step * base}."
            " State that rule as well: without it, intervals are too narrow."
        )
    ]


def hidden_as_zero(mechanism: Mechanism, values: Floats, more_zeros: int = 0) -> str | None:
    """Why zeros may stand for hidden counts, in reports (n,), and zeros that are not stored; None if nothing shows it.

    No count is hidden although zeros and counts just large enough are many; each of the rarer is evidence, a factor of
    two, if the law of counts has no gaps.
    """
    if not isinstance(mechanism, Suppression) or mechanism.below is None:
        return None
    if not mechanism.shows_zero or np.isnan(values).any():
        return None
    zeros = int((values == 0).sum()) + more_zeros
    next_to = int(((values >= mechanism.below) & (values < 2 * mechanism.below)).sum())
    if min(zeros, next_to) < FEW:
        return None
    return (
        f"no count of 1 to {mechanism.below - 1} is hidden, and {zeros:,} are 0: do zeros stand for hidden counts? "
        f"Then make them NaN under Suppression({mechanism.below}, shows_zero=False) (--hides-zero --absent 0)"
    )


def grid_of(mechanism: Mechanism) -> tuple[int, int]:
    """(base, how far positive reports are below its multiples) of rounding, the last one of several rules; else 1."""
    steps = mechanism.steps if isinstance(mechanism, Composed) else (mechanism,)
    grids = [
        (each.base, each.base // 2 if isinstance(each, Rounding) and each.to == "midpoint" else 0)
        for each in steps
        if isinstance(each, Rounding | RandomRounding)
    ]
    return grids[-1] if grids else (1, 0)


def of_least(data: Observations) -> list[str]:
    """By the least of signed reports that are read by level, as above."""
    if data.below_zero is None:
        return []
    below = sp.coo_array(data.below_zero)
    row, column = below.coords
    seen = data.cells(row, column)[0] != MASKED
    row, column, size = row[seen], column[seen], below.data[seen].astype(np.float64)
    if not size.size:
        return []
    alpha = data.cell_level[row, column if data.stores_all else 0]
    chance = formulas.log_survival(size - 1.0, alpha) + log(data.shape[0] * data.shape[1])
    worst = int(np.argmin(chance))
    if chance[worst] >= log(SURPRISE):
        return []
    level = data.noise.level
    return [
        (
            f"The reports contradict their {level}: one is {-size[worst]:.0f}, where {level} {alpha[worst]:.3g} "
            "does not reach. Ask how they were protected, and whether this number is a code."
        )
    ]


def of_rows(data: Observations) -> list[str]:
    """By rows with the same reports: fresh noise would not repeat them, even if the counts were the same."""
    chances = log_chances(data)
    if chances is None:
        return []
    seen: dict[bytes, int] = {}
    n_rows = data.shape[0]
    for run in runs_of(data):
        block = data.block(run)
        for d in range(run.stop - run.start):
            own = slice(block.indptr[d], block.indptr[d + 1])
            reports = block.reports[own]
            positive = reports > 0
            if chances is NOT_BY_CODE:
                level = block.level_e[own][positive] if data.stores_all else block.level_d[d : d + 1]
                most = formulas.log_normaliser(level)
                chance = most.sum() if data.stores_all else most[0] * positive.sum()
            else:
                chance = chances[reports[positive]].sum()
            if chance + 2.0 * log(n_rows) >= -SURE:
                continue
            key = blake2b(block.columns[own].tobytes() + reports.tobytes(), digest_size=16).digest()
            first = seen.setdefault(key, run.start + d)
            if first != run.start + d:
                those = " that are positive" if chances is NOT_BY_CODE else ""
                return [
                    (
                        f"Rows {first} and {run.start + d}, counted from 0, have the same reports in all "
                        f"{int(positive.sum())} cells{those}. Fresh noise does not repeat itself: "
                        "leave out what was entered twice."
                    )
                ]
    return []


NOT_BY_CODE = np.empty(0)
"""Reports are read by level, and every row has its own."""


def log_chances(data: Observations) -> Floats | None:
    """(C + 1,) the log of the most probable report's probability, by the mechanism of each code; None without noise."""
    noise = data.noise
    if not isinstance(noise, AnyMechanismNoise):
        return NOT_BY_CODE if data.is_noisy else None
    of = np.array([log_most_probable(each) for each in noise.mechanisms])
    found = of[noise.mechanism_c] if noise.value_c.size else of[:0]
    found = np.where(np.isnan(noise.value_c), 0.0, found)
    return found if (found < 0.0).any() else None


def of_totals(data: Observations) -> list[str]:
    """By totals beside reports: (sum of estimates - total)^2 / variance, each and together (19.6)."""
    found = []
    for gap, variance, wide in chain(sums_of_totals(data), totals_out_of_reach(data)):
        squares, n = gap**2 / variance, gap.size
        alone = gammaincc(1.0 / wide, squares / wide) * n
        together = gammaincc(n**2 / wide.sum(), squares.sum() * n / wide.sum())
        if min(alone.min(), together) >= 0.5 * SURPRISE:
            continue
        worst = int(np.argmin(alone))
        found.append(
            f"The stated totals contradict the reports: {n} were compared with the sums of their "
            f"reports, and noise does not explain how far they are apart, one by {abs(gap[worst]):,.0f} where its "
            f"standard error is {np.sqrt(variance[worst]):,.0f}. Check the labels and units of the totals."
        )
    return found


Gaps = tuple[Floats, Floats, Floats]
"""Distances from totals, their variances, and variances of the squares of the one over the other, (n,) each."""


def sums_of_totals(data: Observations) -> Iterator[Gaps]:
    """Sums of estimates less totals, of every grouping with a total of which all cells have unbiased reports.

    Totals may be reports themselves, whose noise is one more in the sum.
    """
    noise, totals = data.noise, data.totals
    assert isinstance(noise, AnyMechanismNoise)
    if totals is None or not any(isinstance(each, UNBIASED) for each in noise.mechanisms):
        return
    value, own = totals.kernel.real_cj[1:, GUESS], totals.variance
    row, column, code = data.row_numbers, data.columns, data.reports.astype(np.int64)
    usable = usable_codes(noise)[code]
    known = noise.kernel.real_cj[np.maximum(code, 0), GUESS]
    variance = np.where(code > 0, noise.variance_c[np.maximum(code, 0)], 0.0)
    for groups in totals.groups:
        group = groups[row, column].astype(np.int64)
        inside = group >= 0
        if not inside.any():
            continue
        cells, sums, spread, fourth, odd = (
            np.bincount(group[inside], weights, minlength=own.size)
            for weights in (None, known[inside], variance[inside], variance[inside] ** 2, ~usable[inside])
        )
        judged = (cells > 0) & (spread > 0) & (odd == 0) & ~np.isnan(own)
        if judged.any():
            total = (spread + own)[judged]
            most = max(map(excess, (*noise.mechanisms, *totals.mechanisms)))
            yield (sums - value)[judged], total, 2.0 + most * (fourth + own**2)[judged] / total**2


def totals_out_of_reach(data: Observations) -> Iterator[Gaps]:
    """How far totals with noise are from the sums that their reports allow, of all other totals.

    The noise is at least as far from zero, so that its law bounds how often this happens.
    """
    noise, totals = data.noise, data.totals
    assert isinstance(noise, AnyMechanismNoise)
    if totals is None or not totals.mechanisms:
        return
    value, own = totals.kernel.real_cj[1:, GUESS], totals.variance
    row, column, code = data.row_numbers, data.columns, data.reports.astype(np.int64)
    seen, usable = code >= 0, usable_codes(noise)[code]
    least, most = (np.where(seen, noise.kernel.whole_cj[np.maximum(code, 0), at], 0) for at in (LEAST, MOST))
    most = np.where(seen & (most < UNBOUNDED), most, np.inf)
    for groups in totals.groups:
        group = groups[row, column].astype(np.int64)
        inside = group >= 0
        if not inside.any():
            continue
        odd, low, high = (
            np.bincount(group[inside], weights, minlength=own.size)
            for weights in (~usable[inside], least[inside], most[inside])
        )
        judged = (odd > 0) & (own > 0) & ((low > 0) | (high < np.inf))
        if judged.any():
            far = np.maximum(np.maximum(low - value, value - high), 0.0)[judged]
            yield far, own[judged], np.full(far.size, 2.0 + max(map(excess, totals.mechanisms)))


def usable_codes(noise: AnyMechanismNoise) -> NDArray[np.bool_]:
    """(C + 2,) whether the estimate by each code is unbiased; the last is of code -1, cells without a report.

    A code of several reports names the mechanism of one of them alone.
    """
    unbiased = np.array([isinstance(each, UNBIASED) for each in noise.mechanisms])
    unbiased &= noise.one_report or noise.unbiased
    found = np.append(unbiased[noise.mechanism_c], False) if noise.value_c.size else np.zeros(2, bool)
    found[0] = True
    return found


def contradiction_of(data: Observations) -> Contradiction | None:
    """The stated and the found noise level of the cells that are seen, where they differ beyond chance; else None."""
    return data.noise.contradiction(tallied(data))


def tallied(data: Observations) -> Tally:
    """Cells by row, or each by itself where levels vary within rows."""
    if data.stores_all:
        return tally_of_cells(data)
    rows = [tally_of_rows(data, run) for run in runs_of(data)]
    level, cells, at_most_zero, ones, twos, below = (np.concatenate(each) for each in zip(*rows, strict=True))
    return Tally(level, cells, at_most_zero, ones, twos, None if data.below_zero is None else below)


def tally_of_rows(data: Observations, run: slice) -> tuple[np.ndarray, ...]:
    """(levels, cells, at most zero, ones, twos, below zero) of a run of rows."""
    block = data.block(run)
    lengths, n_rows = np.diff(block.indptr), run.stop - run.start
    row = np.repeat(np.arange(n_rows), lengths)

    def by_row(chosen: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(row[chosen], sizes, minlength=n_rows).astype(np.int64)

    hidden = block.reports == MASKED
    cells = data.shape[1] - by_row(hidden)
    below = np.zeros(n_rows, dtype=np.int64)
    if data.below_zero is not None:
        own = data.below_zero[run]
        masked = np.asarray(own[row[hidden], block.columns[hidden]])
        below = np.asarray(own.sum(axis=1, dtype=np.int64)) - by_row(hidden, masked)
    few = (by_row(block.reports == 1), by_row(block.reports == 2))
    return block.level_d, cells, cells - by_row(block.reports > 0), *few, below


def tally_of_cells(data: Observations) -> Tally:
    """Each cell by itself."""
    reports, below = data.reports, data.below_zero
    seen = (reports != MASKED).astype(np.int64)
    if below is not None:
        below = (below.toarray() if sp.issparse(below) else below).ravel() * seen
    return Tally(data.level_e, seen, (reports == 0) * seen, reports == 1, reports == 2, below)
