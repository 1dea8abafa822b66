"""Unbiased random rounding of one's own counts, from the operating system's entropy. It is not differential privacy."""

import os
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from countveil.privacy import _counts, _npy
from countveil.privacy.gaussian_noise import uniform
from countveil.privacy.mechanisms import RandomRounding
from countveil.privacy.privatize import names_in
from countveil.privacy.release import Release

MOST = 2**32
"""Bases are at most this, so that nearly no word of entropy is rejected."""


def round_randomly(
    counts: Any,
    base: int,
    *,
    row_labels: Iterable[Any] | None = None,
    column_labels: Iterable[Any] | None = None,
    vocabulary: Sequence[str] | None = None,
) -> Release:
    """Round counts up or down to a multiple of ``base`` at random, so that the mean of each report is its count.

        report = base floor(count / base), plus base with probability (count mod base) / base

    **This is not differential privacy**: a report shows that its count is less than a base away, and nothing bounds
    what can be concluded in addition, from totals for instance. No level and no ledger knows such a release. For a
    promise, take ``privatize``.

    Draws are exact, and cannot be seeded. Counts and labels are as in ``privatize``; all cells are rounded, and the
    result is dense.

    Raises:
        TypeError, ValueError: as ``privatize``; a base that is not a whole number from 2 to 2^32.
    """
    mechanism = RandomRounding(base)
    if mechanism.base > MOST:
        raise ValueError(f"base must be at most 2**32, got {mechanism.base}")
    table = _counts.read(counts, row_labels, column_labels, vocabulary)
    if isinstance(table.values, list):
        reports = _rounded_lists(table.values, mechanism.base)
        return Release(reports, mechanism, False, table.labels, extras=names_in(table))
    values = table.values.toarray() if table.sparse else table.values
    rounded = _rounded_array(values.reshape(-1), mechanism.base)
    return Release(rounded.reshape(table.shape), mechanism, False, table.labels, extras=names_in(table))


def _rounded_lists(values: Any, base: int) -> Any:
    """Nested lists of counts, rounded."""
    if isinstance(values, list | tuple):
        return [_rounded_lists(each, base) for each in values]
    down, rest = divmod(values, base)
    return base * (down + (uniform(base, os.urandom) < rest))


def _rounded_array(values: Any, base: int) -> Any:
    """The same of an array (n,); every cell takes as much entropy as any other."""
    numpy = _npy.optional("numpy")
    assert numpy is not None
    down, rest = numpy.divmod(values.astype(numpy.int64), base)
    drawn = numpy.empty(values.size, dtype=numpy.uint64)
    left = numpy.arange(prod(values.shape))
    accepted = numpy.uint64(2**64 - 1 - 2**64 % base)
    while left.size:
        words = numpy.frombuffer(os.urandom(8 * left.size), dtype=numpy.uint64)
        drawn[left] = words
        left = left[words > accepted]
    up = (drawn % numpy.uint64(base)).astype(numpy.int64) < rest
    return base * (down + up)
