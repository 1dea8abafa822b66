"""Counts given their reports under any mechanism: windows of counts that matter, and rejection where counts are few.

    w(y) = P(y | rate) P(report | y)

Counts are Poisson, or negative binomial with the rate that of bursts (mathematics, sections 13 and 14). Where w is
log-concave its mode is found by bisection, and so are the ends of the window around it; everything outside weighs less
than e^-DEPTH of the mode. A negative binomial of shape below 1 falls from 0 on and may have two modes: its window runs
from where the kernel alone makes counts negligible to where w does.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from countveil.kernels.compiled import elementwise
from countveil.kernels.negative_binomial import expected_bursts, negative_binomial_logpmf
from countveil.kernels.poisson import poisson_logpmf
from countveil.noise.report_law import Counts, Flags, Floats, ReportLaw

DEPTH = 64.0
MARGIN = 2  # counts on either side, which decide the expectation where the rate is tiny
CHUNK = 2**20  # counts of all windows that are looked at together
WIDEST = 2**27
REJECTION_BELOW = 1.0  # of the rate of proposals: there at least 73% are accepted


@elementwise
def _poisson(y: Any, rate: Any) -> Any:
    return poisson_logpmf(y, rate)


@elementwise
def _negative_binomial(y: Any, shape: Any, p: Any) -> Any:
    return negative_binomial_logpmf(y, shape, p)


@elementwise
def _bursts(y: Any, shape: Any) -> Any:
    return expected_bursts(y, shape)


class Cells(NamedTuple):
    """Reports of counts with their rates, (n,) each; p is None where counts are Poisson."""

    report: Floats
    rate: Floats
    p: Floats | None = None

    def at(self, chosen: Any) -> "Cells":
        """Some of them."""
        return Cells(self.report[chosen], self.rate[chosen], None if self.p is None else self.p[chosen])

    def log_mass(self, y: Counts) -> Floats:
        """log P(y | rate)."""
        if self.p is None:
            return np.asarray(_poisson(y, self.rate))
        return np.asarray(_negative_binomial(y, self.shape, self.p))

    @property
    def shape(self) -> Floats:
        """s = rate / -log(1 - p) of the negative binomial."""
        assert self.p is not None
        return self.rate / -np.log1p(-self.p)

    @property
    def mode(self) -> Floats:
        """Of the count without its report."""
        if self.p is None:
            return np.floor(self.rate)
        return np.floor(np.maximum(self.shape - 1.0, 0.0) * self.p / (1.0 - self.p))


class Given(NamedTuple):
    """What reports say of their counts, (n,) each; ``parts`` are bursts, or the counts where these are Poisson."""

    log_probability: Floats
    counts: Floats
    parts: Floats

    def gradient(self, rate: Floats) -> Floats:
        """d log P(report | rate) / d rate = E[parts | report] / rate - 1 (13.5)."""
        return self.parts / rate - 1.0


def exposure(law: ReportLaw, reports: Floats) -> Floats:
    """1 - P(report | 1) / P(report | 0) (14.3); NaN where the report rules a count of 0 out."""
    zero, one = (law.log_kernel(reports, np.full(reports.shape, y, np.int64)) for y in (0, 1))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(np.isneginf(zero), np.nan, -np.expm1(one - zero))


def given(law: ReportLaw, cells: Cells) -> Given:
    """log P(report | rate), E[count | report] and E[parts | report].

    Raises:
        ValueError: a report that is not possible, or one that leaves more than WIDEST counts open.
    """
    found = Given(*(np.empty(cells.rate.shape) for _ in Given._fields))
    for chunk in _chunks(law, cells):
        here, peak, total = chunk.cells, chunk.peak, chunk.total
        found.log_probability[here] = peak + np.log(total)
        found.counts[here] = np.add.reduceat(chunk.weights * chunk.counts, chunk.starts) / total
        if cells.p is None:
            found.parts[here] = found.counts[here]
        else:
            bursts = np.asarray(_bursts(chunk.counts, cells.at(here).shape[chunk.owner]))
            found.parts[here] = np.add.reduceat(chunk.weights * bursts, chunk.starts) / total
    return found


def draw(law: ReportLaw, cells: Cells, rng: np.random.Generator) -> Counts:
    """One exact draw of every count given its report.

    Raises:
        ValueError: as ``given``.
    """
    found = np.empty(cells.rate.shape, np.int64)
    few = np.zeros(found.shape, np.bool_)
    if law.log_concave and cells.p is None:
        with np.errstate(invalid="ignore"):
            few = (1.0 - exposure(law, cells.report)) * cells.rate <= REJECTION_BELOW
        found[few] = _rejected(law, cells.at(few), rng)
    wide = np.flatnonzero(~few)
    for chunk in _chunks(law, cells.at(wide)):
        sums = np.cumsum(chunk.weights / chunk.total[chunk.owner])
        ends = np.append(chunk.starts[1:], sums.size) - 1
        before = sums[chunk.starts] - chunk.weights[chunk.starts] / chunk.total
        targets = before + rng.random(len(ends)) * (sums[ends] - before)
        at = np.clip(np.searchsorted(sums, targets, side="right"), chunk.starts, ends)
        found[wide[chunk.cells]] = chunk.counts[at]
    return found


def _rejected(law: ReportLaw, cells: Cells, rng: np.random.Generator) -> Counts:
    """Draws from Poisson(c rate), kept with chance k(y) / (k(0) c^y) (14.1)."""
    found = np.zeros(cells.rate.shape, np.int64)
    log_zero = law.log_kernel(cells.report, found)
    ratio = 1.0 - exposure(law, cells.report)
    todo = np.arange(found.size)
    while todo.size:
        y = rng.poisson(ratio[todo] * cells.rate[todo])
        found[todo] = y
        doubtful = np.flatnonzero(y > 1)  # 0 and 1 are always kept
        at = todo[doubtful]
        log_kept = (
            law.log_kernel(cells.report[at], y[doubtful]) - log_zero[at] - y[doubtful] * np.log(ratio[at])
        )
        todo = at[np.log(1.0 - rng.random(at.size)) > log_kept]
    return found


class _Chunk(NamedTuple):
    """The windows of some cells, one after another."""

    cells: Counts  # which cells these are, (m,)
    owner: Counts  # of each count, from 0 to m - 1
    starts: Counts  # where each window begins, (m,)
    counts: Counts
    weights: Floats  # relative to the greatest of the window
    peak: Floats  # its logarithm, (m,)
    total: Floats  # (m,)


def _chunks(law: ReportLaw, cells: Cells) -> Iterator[_Chunk]:
    first, last = windows(law, cells)
    widths = last - first + 1
    if widths.size and widths.max() > WIDEST:
        raise ValueError(f"reports must leave at most {WIDEST} counts open, got {widths.max()}")
    sums, begin = np.cumsum(widths), 0
    while begin < widths.size:
        done = sums[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(sums, done + CHUNK, side="right")))
        yield _chunk(law, cells, np.arange(begin, end), first[begin:end], widths[begin:end])
        begin = end


def _chunk(law: ReportLaw, cells: Cells, here: Counts, first: Counts, widths: Counts) -> _Chunk:
    starts = np.cumsum(widths) - widths
    owner = np.repeat(np.arange(len(here)), widths)
    counts = first[owner] + np.arange(len(owner)) - starts[owner]
    log_weights = _log_weight(law, cells.at(here[owner]), counts)
    peak = np.maximum.reduceat(log_weights, starts)
    _check_possible(peak)
    weights = np.exp(log_weights - peak[owner])
    return _Chunk(here, owner, starts, counts, weights, peak, np.add.reduceat(weights, starts))


def _check_possible(log_weights: Floats) -> None:
    if np.isneginf(log_weights).any():
        raise ValueError("reports must be possible under the mechanism, got one that no count can have")


def windows(law: ReportLaw, cells: Cells) -> tuple[Counts, Counts]:
    """The first and the last count that matter, (n,) each."""
    least, most = law.support(cells.report)
    if not law.log_concave:
        return least, most
    mode = np.clip(cells.mode, least, most).astype(np.int64)
    peak = np.clip(law.peak(cells.report), least, most)
    low, high = np.minimum(mode, peak), np.maximum(mode, peak)
    two = np.zeros(low.shape, np.bool_) if cells.p is None else cells.shape < 1.0

    def weight(y: Counts, at: Any) -> Floats:
        return _log_weight(law, cells.at(at), y)

    def rises(y: Counts, at: Any) -> Flags:
        return weight(y + 1, at) > weight(y, at)

    top = low.copy()
    top[~two] = _first_not(rises, low[~two], high[~two], np.flatnonzero(~two))
    everything = np.arange(low.size)
    floor = weight(top, everything)
    floor[two] = np.maximum(floor[two], weight(high[two], np.flatnonzero(two)))
    _check_possible(floor)
    floor -= DEPTH
    start = np.where(two, high, top)

    def matters(y: Counts, at: Any) -> Flags:
        return weight(y, at) >= floor[at]

    def negligible_below(y: Counts, at: Any) -> Flags:
        here = cells.at(at)
        alone = law.log_kernel(here.report, y) + here.log_mass(np.maximum(low[at], 0))
        return np.where(two[at], alone, weight(y, at)) < floor[at]

    last = _end(matters, start, most, everything)
    first = _begin(negligible_below, least, start, everything)
    return np.maximum(first - MARGIN, least), np.minimum(last + MARGIN, most)


def _log_weight(law: ReportLaw, cells: Cells, y: Counts) -> Floats:
    return cells.log_mass(y) + law.log_kernel(cells.report, y)


Test = Callable[[Counts, Any], Flags]


def _first_not(holds: Test, low: Counts, high: Counts, at: Counts) -> Counts:
    """The first y in [low, high) at which ``holds`` ends, high if it never does; it never begins again."""
    low, high = low.copy(), high.copy()
    todo = np.flatnonzero(low < high)
    while todo.size:
        middle = (low[todo] + high[todo]) // 2
        yes = holds(middle, at[todo])
        low[todo] = np.where(yes, middle + 1, low[todo])
        high[todo] = np.where(yes, high[todo], middle)
        todo = todo[low[todo] < high[todo]]
    return low


def _end(matters: Test, start: Counts, most: Counts, at: Counts) -> Counts:
    """A count from ``start`` on after which nothing matters: by steps that double, then by bisection."""
    inside, outside, step = start.copy(), most.copy(), 1
    todo = np.flatnonzero(start < most)
    while todo.size:
        y = np.minimum(start[todo] + step, most[todo])
        yes = matters(y, at[todo])
        inside[todo] = np.where(yes, y, inside[todo])
        outside[todo] = np.where(yes, outside[todo], y)
        todo, step = todo[yes & (y < most[todo])], 2 * step
    return _first_not(matters, inside, outside, at)


def _begin(negligible: Test, least: Counts, start: Counts, at: Counts) -> Counts:
    """The first count up to ``start`` that is not negligible, likewise."""
    outside, inside, step = least.copy(), start.copy(), 1
    todo = np.flatnonzero(least < start)
    while todo.size:
        y = np.maximum(start[todo] - step, least[todo])
        yes = negligible(y, at[todo])
        outside[todo] = np.where(yes, y, outside[todo])
        inside[todo] = np.where(yes, inside[todo], y)
        todo, step = todo[~yes & (y > least[todo])], 2 * step
    return _first_not(negligible, outside, inside, at)
