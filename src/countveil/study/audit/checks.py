"""The checks of an audit, on any route from counts to reports."""

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from countveil.privacy import PrivacyLevel, privatize, report, study
from countveil.privacy.errors import RefusedError
from countveil.privacy.exact import short
from countveil.privacy.level import ConcentratedLevel, Level
from countveil.privacy.report import Report
from countveil.privacy.study import Study
from countveil.study.audit import statistics
from countveil.study.audit.statistics import CRITICAL, Histogram, Integers, Outputs

LEVELS = (PrivacyLevel(1, 10), PrivacyLevel(1, 1), PrivacyLevel(4, 1), PrivacyLevel.zcdp("0.125"))
DETECTED = 0.015
"""The relative error of alpha or sigma that samples are made large enough to detect, within MIN_DRAWS and MAX_DRAWS."""
MIN_DRAWS, MAX_DRAWS = 200_000, 20_000_000
PAIR_DRAWS = 400_000
LARGE = (2**53, 2**60, 2**62)
LAGS = (1, 2, 3, 4, 7, 8, 16, 64, 100, 1000, 1024)
_CHUNK = 1_000_000
_REUSE: dict[type[Level], Level] = {PrivacyLevel: PrivacyLevel(1, 100), ConcentratedLevel: PrivacyLevel.zcdp("0.00005")}
_TOKEN = "0123456789abcdef" * 2


class Finding(NamedTuple):
    """What one check saw, and what it would have seen."""

    route: str
    check: str
    level: Level
    passed: bool
    seen: str
    power: str


class Route(NamedTuple):
    """A way by which counts become reports: a function of counts (1-D int64) and a level."""

    name: str
    reports: Callable[[Integers, Level], Integers]
    truncated: bool = False


def shipped_routes() -> tuple[Route, ...]:
    """The routes of this package: arrays, sparse matrices, and a participant's report."""
    return (
        Route("arrays", _from_array),
        Route("sparse", _from_sparse, truncated=True),
        Route("participant", _from_participant),
    )


def _from_array(counts: Integers, level: Level) -> Integers:
    return privatize(counts.reshape(1, -1), level, truncate=False).reports.ravel()


def _from_sparse(counts: Integers, level: Level) -> Integers:
    from scipy.sparse import csr_array

    return privatize(csr_array(counts.reshape(1, -1)), level, truncate=True).reports.toarray().ravel()


def _from_participant(counts: Integers, level: Level) -> Integers:
    """Reports of 1,000 cells each, through the bytes of their files."""
    values: list[int] = []
    for start in range(0, counts.size, 1000):
        some = counts[start : start + 1000].tolist()
        asked = _study(len(some), level)
        content = report.encode(report.privatized(some, asked, level, _TOKEN), asked)
        values += report.decode(content, asked, "report").values
    return np.array(values, dtype=np.int64)


def _study(cells: int, level: Level) -> Study:
    key = cells, level
    if key not in _STUDIES:
        axes = (("cell", tuple(f"c{place}" for place in range(cells))),)
        _STUDIES[key] = Study("Audit", "To be checked.", "nobody", (level,), study.CATEGORIES, axes, False)
    return _STUDIES[key]


_STUDIES: dict[tuple[int, Level], Study] = {}


def audit(levels: Iterable[Level] = LEVELS) -> Iterator[Finding]:
    """All checks of all routes, one finding after the other as they are made."""
    for route in shipped_routes():
        yield from audit_route(route, levels)
    yield from audit_layout(report.encode)


def audit_route(route: Route, levels: Iterable[Level] = LEVELS) -> Iterator[Finding]:
    """The checks of one route: the exact law, large values, zeros, lower bounds on epsilon or rho, reuse.

    Levels whose reports are never cut are left out where a route cuts them.
    """
    checked = [level for level in levels if not (route.truncated and level.mechanism.signed_only)]
    for level in checked:
        yield from _law(route, level)
        yield _zeros(route, level)
        yield from _bounds(route, level)
    for kind in dict.fromkeys(map(type, checked)):
        yield from _reuse(route, _REUSE[kind])


def _filled(counts: Integers, size: int) -> Integers:
    """Counts that are repeated to fill an array."""
    return np.tile(counts, -(-size // counts.size))[:size]


def _noise(route: Route, level: Level, counts: Integers, size: int) -> Iterator[Integers]:
    """The noise of ``size`` draws, in chunks, on counts that are repeated to fill them."""
    while size > 0:
        some = _filled(counts, min(size, _CHUNK))
        yield route.reports(some, level) - some
        size -= some.size


def _seen(route: Route, level: Level, counts: list[int], size: int = 0) -> Histogram:
    """The histogram of the noise on counts."""
    size = size or MIN_DRAWS
    noise = _noise(route, level, np.array(counts, dtype=np.int64), size)
    return statistics.histogram(noise, statistics.law_of(level.mechanism), size)


def _high(route: Route, level: Level) -> int:
    """A count that truncation does not touch."""
    return 2**50 if route.truncated else 0


def _law(route: Route, level: Level) -> Iterator[Finding]:
    """Noise on counts of 0 to 12 (on high ones, where a route cuts at zero), and on very large ones."""
    law, score = statistics.law_of(level.mechanism), statistics.CRITICAL_SCORE + statistics.POWER_SCORE
    needed = (score / DETECTED) ** 2 / max(statistics.information(law), 1e-12)
    strength = "sigma" if isinstance(level, ConcentratedLevel) else "alpha"
    size = int(min(max(needed, MIN_DRAWS), MAX_DRAWS))
    seen = _seen(route, level, [_high(route, level) + count for count in range(13)], size)
    yield _tested(
        *(route, strength, level, statistics.magnitude(seen, law)),
        _share(statistics.detectable_strength(law, size), f"{strength} wrong by", size),
    )
    moved = max(2 * size * law.false_positive_rate, 1)
    share = score / math.sqrt(moved)
    yield _tested(
        *(route, "both signs", level, statistics.one_sidedness(seen)),
        _share(share, "one sign more frequent than the other by", size),
    )
    yield _tested(*(route, "law", level, statistics.chi_square(seen, law)), f"a deviation of {_deviation(seen):.2g}")
    for value in LARGE:
        large = _seen(route, level, [value])
        yield _tested(
            *(route, f"law at 2^{value.bit_length() - 1}", level),
            statistics.either(statistics.chi_square(large, law), statistics.last_bits(large, law)),
            f"a deviation of {_deviation(large):.2g}; any rounding to multiples of 2 to 256",
        )


def _share(value: float, what: str, size: int) -> str:
    """What is detected, or that little is where nearly all noise is zero."""
    if value >= 1:
        return f"little: nearly all of {size} draws are zero at this level"
    return f"{what} {100 * value:.2g}% ({size} draws)"


def _deviation(seen: Histogram) -> float:
    """The sum of (p' - p)^2/p over the cells, p' being the true law, that is detected with 99% probability."""
    from scipy import stats

    degrees = seen.cells.size - 1
    critical = stats.chi2.isf(CRITICAL, degrees)
    low, high = 0.0, 1e6
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if stats.ncx2.sf(critical, degrees, middle) > 0.99 else (middle, high)
    return high / seen.size


def _zeros(route: Route, level: Level) -> Finding:
    """Noise on the zeros of a sparse record, as it comes out."""
    counts, law = np.zeros(10, dtype=np.int64), statistics.law_of(level.mechanism)
    counts[3] = 5
    noise = (some[_filled(counts, some.size) == 0] for some in _noise(route, level, counts, MIN_DRAWS))
    seen = statistics.histogram(noise, law, MIN_DRAWS)
    return _tested(
        *(route, "law at zeros", level, statistics.chi_square(seen, law, positive=route.truncated)),
        f"a deviation of {_deviation(seen):.2g}",
    )


def _tested(route: Route, check: str, level: Level, p_value: float, power: str) -> Finding:
    return Finding(route.name, check, level, bool(p_value >= CRITICAL), f"p = {p_value:.2g}", power)


def _bounds(route: Route, level: Level) -> Iterator[Finding]:
    """Lower bounds on epsilon or rho between neighbouring inputs, against what is promised at their distance."""
    high, far = _high(route, level), _far(level)
    pairs = {
        "0 and 1": ([high], [high + 1]),
        f"0 and {far}": ([high], [high + far]),
        "5 + 5 and 0 + 0": ([high + 5, high + 5], [high, high]),
        "2^60 + 128 and 2^60 + 129": ([2**60 + 128], [2**60 + 129]),  # rounded to floats: 256 apart
    }
    if route.truncated:
        pairs["0 and 1, cut"] = ([0], [1])
    for name, (first, second) in pairs.items():
        outputs = [_outputs(route, level, x, first, second) for x in (first, second)]
        kind, promised, found = _promised(level, first, second)
        bound = found(outputs[0], outputs[1], float(promised))
        yield Finding(
            *(route.name, f"{kind}, {name}", level, bound.lower <= promised),
            f"at least {bound.lower:.3g}, promised {short(promised)}",
            f"{'an epsilon' if kind == 'epsilon' else 'an event with a rho'} of {bound.detectable:.3g} or more",
        )


def _far(level: Level) -> int:
    """A distance in one cell at which the promise is neither strong nor void: N, or sigma."""
    if isinstance(level, PrivacyLevel):
        return max(math.floor(level.precision), 1)
    return max(math.isqrt(math.floor(1 / (2 * level.loss))), 1)


def _promised(
    level: Level, first: list[int], second: list[int]
) -> tuple[str, Fraction, Callable[[Outputs, Outputs, float], statistics.Bound]]:
    """What is promised between two inputs, by name and number, and the bound that tests it."""
    distances = [abs(a - b) for a, b in zip(first, second, strict=True)]
    if isinstance(level, PrivacyLevel):
        return "epsilon", level.epsilon_at(sum(distances)), statistics.epsilon_bound
    return "rho", level.loss * sum(distance**2 for distance in distances), statistics.rho_bound


def _outputs(route: Route, level: Level, x: list[int], first: list[int], second: list[int]) -> Outputs:
    """Statistics of many reports on x: how much nearer they are to one input than to the other, and residues."""
    counts = np.array(x, dtype=np.int64)
    reports = np.concatenate([some + _filled(counts, some.size) for some in _noise(route, level, counts, PAIR_DRAWS)])
    reports = reports.reshape(-1, len(x))
    nearer = np.abs(reports - np.array(second)) - np.abs(reports - np.array(first))
    return {"nearer": nearer.sum(axis=1), "first cell": reports[:, 0], "last bits": reports[:, 0] & 255}


def _reuse(route: Route, level: Level) -> Iterator[Finding]:
    """Whether noise is reused: within a call, between calls, from one cell to another."""
    counts = np.full(1 << 15, _high(route, level), dtype=np.int64)
    noise = np.concatenate([route.reports(counts, level) - counts for _ in range(4)])
    again = statistics.repeated_windows(noise)
    yield Finding(
        *(route.name, "reuse of noise", level, again == 0, f"{again} runs occur again"),
        f"any {statistics.WINDOW} draws in a row that occur again, with either sign",
    )
    correlated = statistics.correlation(noise, (*LAGS, counts.size))
    score = (statistics.CRITICAL_SCORE + statistics.POWER_SCORE) / math.sqrt(noise.size)
    yield _tested(*(route, "independence", level, correlated), f"a correlation of {score:.2g} at {len(LAGS) + 1} lags")


Encode = Callable[[Report, Study], bytes]


def audit_layout(encode: Encode) -> Iterator[Finding]:
    """Whether a report file's bytes are a function of the noisy counts it says, whatever the true ones were."""
    level, cells = LEVELS[0], 50
    asked = _study(cells, level)
    lengths, different, unreadable = set(), 0, 0
    for count in (0, 1, 9, 10**6, 2**60):
        for _ in range(40):
            made = report.privatized([count] * cells, asked, level, _TOKEN)
            content = encode(made, asked)
            lengths.add(len(content))
            try:
                again = report.decode(content, asked, "report")
            except RefusedError:
                unreadable += 1
            else:
                different += report.encode(again, asked) != content or again != made
    yield Finding(
        *("participant", "length and layout", level, different + unreadable == 0),
        f"{different + unreadable} of 200 files differ from what their noisy counts alone make",
        "any byte that the noisy counts do not determine",
    )
