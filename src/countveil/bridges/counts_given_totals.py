"""Draws of true counts given their reports, their rates, and totals over groups of them, exact or reported."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countveil.bridges.protected_counts import Cells, draw_each, read_cells
from countveil.common.arrays import check_generator
from countveil.data.labels import axes_of, texts_of
from countveil.data.numbering import require_mechanism
from countveil.data.totals import check_possible, moved_within, overlap_of, read_totals, sums_of
from countveil.kernels.random import SMALLEST
from countveil.kernels.report_kernels import CONCAVE, LEAST, MOST
from countveil.kernels.totals import sweep_others, sweep_pairs
from countveil.laws.counts.negative_binomial import NegativeBinomialCounts
from countveil.laws.counts.poisson import PoissonCounts
from countveil.privacy.mechanisms import Mechanism

Counts = NDArray[np.int64]


def sample_counts_given_totals(
    reports: Any,
    rate: ArrayLike,
    mechanism: Mechanism,
    totals: Any,
    rng: np.random.Generator,
    *,
    sweeps: int,
    dispersion: ArrayLike | None = None,
) -> Counts:
    """One draw of all true counts given their reports and totals, by a Markov chain.

    P(y) proportional to prod_i P(y_i | rate_i) P(report_i | y_i) where sum of y_i over i in g = total_g for every g

    The chain starts from draws without totals that are moved until all totals are met, and takes this many sweeps; each
    draws pairs of counts of one total from their exact law given their sum. Every state meets all exact totals. A total
    with a mechanism is a report of its sum: P(y) has a factor P(total_g | sum of y_i over i in g) then.

    Args:
        reports, rate, mechanism, dispersion: as for ``countveil.sample_true_counts``; counts are negative binomial
            where there is a dispersion.
        totals: (axis or groups, values). An axis, or a tuple of axes, is summed over, and values have the shape that
            is left, NaN where a total is unknown. Groups are an array of the shape of the counts, with the number of
            each count's total, an index of the values, or -1 for a count in none. One family of totals: every count is
            in one of them at most. Or a list of families that may overlap, such as [(1, of rows), (0, of columns)],
            each of which may be (axis or groups, values, mechanism), as for ``countveil.Reports``. Moves then go along
            cycles of open cells, too.
        sweeps: how many; a few dozen where groups have tens of counts, more where they have hundreds.

    Raises:
        TypeError: mechanism not one of ``countveil.mechanisms``, rng not a numpy.random.Generator, totals not a pair.
        ValueError: totals that the reports do not allow, or of another shape; groups that are no index of the values;
            sweeps below 1; a mechanism whose kernel is not log-concave, since the counts it allows may have gaps.

    >>> import numpy as np
    >>> import countveil as cv
    >>> deaths = [[np.nan, 12, np.nan, 0], [np.nan, np.nan, 31, 15]]
    >>> rng = np.random.default_rng(1)
    >>> hidden = cv.mechanisms.Suppression(10)
    >>> counts = sample_counts_given_totals(deaths, 8.0, hidden, (1, [20, 60]), rng, sweeps=20)
    >>> counts.sum(axis=1).tolist()
    [20, 60]
    """
    require_mechanism(mechanism)
    if not isinstance(sweeps, int | np.integer) or sweeps < 1:
        raise ValueError(f"sweeps must be a whole number of at least 1, got {sweeps!r}")
    rng = check_generator(rng)
    kernels, cells, shape = read_cells(reports, rate, mechanism, dispersion)
    if not kernels.whole_cj[1:, CONCAVE].all():
        raise ValueError(
            f"with totals, P(report | count) must be log-concave in the count, got mechanism {mechanism.in_words}"
        )
    known = read_totals(families_of(totals), shape, axes_of(reports)[: len(shape)])
    known = known._replace(groups=tuple(group.ravel() for group in known.groups))
    code, groups = cells.code.astype(np.int64), [group.astype(np.int64) for group in known.groups]
    axes = axes_of(reports, labels=(None,) * len(shape))
    named = [
        (axis.word, texts_of(axis.ways[0]) if axis.ways else range(n)) for axis, n in zip(axes, shape, strict=True)
    ]
    check_possible(known, slice(None), kernels, code, axes=named)
    found = np.empty(code.size, dtype=np.int64)
    draw_each(kernels, *cells, rng, found)
    is_open = kernels.whole_cj[code, LEAST] < kernels.whole_cj[code, MOST]
    within = np.flatnonzero(np.any([group >= 0 for group in groups], axis=0))
    overlap = overlap_of(known, [group[within] for group in groups], is_open[within], kernels, code[within])
    member = within[is_open[within]]
    count = moved_within(overlap, kernels, code[member], found[member])
    likelihood, own = likelihood_of(cells), (np.zeros_like(member), member, code[member])
    by = (kernels, likelihood, own, np.maximum(cells.rate[member], SMALLEST), sums_of(overlap, count))
    moves = overlap.moves
    for _ in range(sweeps):
        sweep_pairs(*by, moves.pair_e, moves.start_p, rng, count)
        sweep_others(*by, moves, rng, count)
    found[member] = count
    return found.reshape(shape)


def families_of(totals: Any) -> list[Any]:
    """A list of families, of which one may come by itself."""
    if not isinstance(totals, tuple | list) or not len(totals):
        raise TypeError(
            f"totals must be a pair of axis or groups and values, or a list of these, got {type(totals).__name__}"
        )
    several = all(
        isinstance(each, tuple | list)
        and (len(each) == 3 or (len(each) == 2 and (np.ndim(each[1]) > 0 or isinstance(each[0], tuple))))
        for each in totals
    )
    return list(totals) if several else [tuple(totals)]


def likelihood_of(cells: Cells) -> Any:
    """That of the entries, each of which is a column of its own."""
    if not cells.p.size:
        return PoissonCounts()
    p = np.ascontiguousarray(cells.p)
    return NegativeBinomialCounts((p,), -np.log1p(-p), by_column=1)
