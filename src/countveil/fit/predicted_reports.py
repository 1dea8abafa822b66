"""Reports of any mechanism that a fit predicts: simulated ones, and how probable those that were seen are."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.data.provenance import Made, Report, made_of
from countveil.laws.noise import AnyMechanismNoise
from countveil.laws.noise.laws import law_of, report_chances
from countveil.privacy.mechanisms import Interval, Mechanism


def report_of(data: Observations, place: int) -> Report:
    """The first report of every count of data in matrix form, or another one; raises ValueError where there is none."""
    made = made_of(data)
    if made is None:
        raise ValueError("X must hold reports as they were published, got others")
    if not isinstance(place, int | np.integer) or not 0 <= place < len(made.layers):
        raise ValueError(f"report must be a number from 0 to {len(made.layers) - 1}, got {place!r:.40}")
    found = made.report(int(place))
    codes = np.zeros(data.shape, dtype=np.int64)
    codes[data.row_numbers, data.columns] = data.reports
    return found._replace(seen=found.seen & (codes >= 0))  # others may have been hidden since


def checkable(found: Report) -> Report:
    """The same without reports that a model cannot simulate: nothing states how ranges of counts were chosen."""
    others = np.array([isinstance(each, Interval) for each in found.mechanisms])
    return found._replace(seen=found.seen & ~others[found.number]) if others.any() else found


def made_alike(found: Report, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Reports (D, V) of these counts, each by the mechanism of its cell, as ``truncated``; NaN where there is none."""
    simulated, flat = np.empty(counts.size), counts.reshape(-1).astype(np.int64)
    for mechanism, cells in by_number(found):
        simulated[cells] = law_of(mechanism).draw(flat[cells], rng)
    return truncated(simulated.reshape(counts.shape), found)


def by_number(found: Report) -> Iterator[tuple[Mechanism, np.ndarray]]:
    """Every mechanism that some cell has, in their order, with the numbers of its cells in row-major order."""
    numbers = found.number.reshape(-1)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(found.mechanisms)))
    for mechanism, cells in zip(found.mechanisms, np.split(order, ends[:-1]), strict=True):
        if cells.size:
            yield mechanism, cells


def truncated(values: np.ndarray, found: Report) -> np.ndarray:
    """Reports (D, V), at zero where they are negative and that says as much, since releases may be cut there."""
    return np.where(lossless(found) & (values < 0), 0.0, values)


def lossless(found: Report) -> np.ndarray:
    """(D, V) whether a report that is not positive says as much as any other, as with two-sided geometric noise."""
    return np.array([each.lossless_at_zero for each in found.mechanisms])[found.number]


def made_with(made: Made) -> list[Report]:
    """Every report of all counts."""
    return [made.report(place) for place in range(len(made.layers))]


def one_mechanism(noise: Any) -> bool:
    """Whether reports can be simulated without knowing which cells have which mechanism."""
    return not isinstance(noise, AnyMechanismNoise) or (len(noise.mechanisms) == 1 and noise.one_report)


def chances_of(found: Report, laws: Iterator[tuple[Any, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """(D, V) P(report < the one seen), and P(report = it), of reports as ``truncated``.

    ``laws`` gives some cells at a time with the laws of their counts by the model alone, averaged over draws.
    """
    values = truncated(found.values, found)
    below, at = np.zeros(values.shape), np.zeros(values.shape)
    for cells, weights in laws:
        where = cells.rows, cells.columns
        below[where], at[where] = report_chances(
            found.mechanisms, found.number[where], values[where], weights
        )
    lowest = lossless(found) & (values == 0)
    return np.where(lowest, 0.0, below), np.where(lowest, below + at, at)
