"""Reports by number: the different ones in some data, what they say, and which one each cell has."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countveil.kernels.compiled import kernel
from countveil.kernels.report_kernels import GUESS, LEAST, MOST, ReportKernels
from countveil.kernels.windows import WindowLaw, moments
from countveil.laws.counts.negative_binomial import NegativeBinomialCell
from countveil.laws.noise.any_mechanism import AnyMechanismNoise, Said, all_said, check_possible, kernels_of, said_by
from countveil.laws.noise.reading import check_sign, numbers_of, read_reports
from countveil.privacy._cells import ByCell, places_of
from countveil.privacy.mechanisms import Mechanism, Suppression

NO_REPORT = -1
SHAPE = 0.5  # of the counts that estimates suppose where a report alone gives none; real counts are about so spread
ROUNDS = 30  # for the mean of these counts, at most
SETTLED = 1e-9  # the relative change of that mean at which they end


class Numbered(NamedTuple):
    """Reports of a layer by number: ``number`` holds each cell's, NO_REPORT where there is none."""

    said: Said
    number: Any  # (D, V), or sparse without the cells that are known to be zero
    value: np.ndarray  # (n,) of every different report
    mechanism: np.ndarray  # (n,) the place of its mechanism among all of them


def require_mechanism(mechanism: Any) -> None:
    """Raises TypeError for anything but a mechanism."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be one of countveil.mechanisms, got {type(mechanism).__name__}")


def with_bounds(values: Any, mechanism: Any, hidden: np.ndarray | None) -> Any:
    """The mechanism, or those of all cells; suppression without a bound has the least positive count that is shown.

    Warns if the bound of hidden counts is doubtful: if fewer counts are shown from the bound up to twice its size than
    twice the bound.

    Raises:
        ValueError: no positive count is shown by such a mechanism, or one that leaves no count to be hidden.
    """
    different, numbers = numbered_mechanisms(mechanism, values.shape)
    unstated = [isinstance(each, Suppression) and each.below is None for each in different]
    if not any(unstated):
        return mechanism
    found = np.empty(len(different), dtype=object)
    found[:] = different
    reports, seen, of_cell = values, True if hidden is None else ~hidden, numbers
    if sp.issparse(values):  # cells that are not stored show no positive count
        stored = sp.coo_array(values)
        refuse_repeated(stored)
        reports, of_cell = stored.data, numbers[stored.coords]
        seen = True if hidden is None else ~hidden[stored.coords]
    reports = numbers_of(reports)
    for i in np.flatnonzero(unstated):
        own = reports[seen & (of_cell == i)]
        found[i] = bounded(different[i], own[own > 0], sp.issparse(values) or bool(np.isnan(own).any()))
    return found[0] if len(found) == 1 else found[numbers]


def bounded(mechanism: Any, shown: np.ndarray, hides: bool) -> Suppression:
    """Suppression by the least of the positive counts that are shown; warns and raises as ``with_bounds``."""
    smallest = float(shown.min()) if shown.size else 0.0
    if not 1 + mechanism.shows_zero <= smallest < np.inf:
        found = f"{smallest:g}, below which no count can be hidden" if shown.size else "no positive one"
        raise ValueError(
            "below=None (suppression without --below) must come with shown counts, the least of which bounds the "
            f"hidden ones, got {found}: state below (--below)"
        )
    least = int(smallest)
    near = int((shown < 2 * least).sum())
    if hides and near < 2 * least:
        warnings.warn(
            f"below was not stated, and the number of shown counts from {least} to {2 * least - 1} is only {near}: the "
            f"bound of hidden counts may be below {least}; state it if it is known",
            stacklevel=5,
        )
    return Suppression(least, mechanism.shows_zero)


def number(
    values: Any, mechanism: Any, hidden: np.ndarray | None, background: float, mechanisms: dict[Mechanism, int]
) -> Numbered:
    """The different reports of a layer, and which one each cell has; new mechanisms are added to those numbered."""
    if sp.issparse(values):
        if isinstance(mechanism, Mechanism) and hidden is None and says_zero(mechanism, background):
            return number_sparse(values, mechanism, mechanisms)
        values = filled(values, background)
    numbers, n = np.full(values.shape, NO_REPORT, dtype=np.int64), 0
    parts, values_of, owners = [], [], []
    for each, cells in cells_by_mechanism(mechanism, values.shape, hidden):
        reports = read_cells(values, each, cells)
        check_sign(reports, int((reports == 0).sum()), each)
        different, place = np.unique(reports, return_inverse=True)
        numbers.reshape(-1)[cells] = n + place.reshape(-1)
        parts.append(said_by(each, different))
        values_of.append(different)
        owners.append(np.full(different.size, place_among(each, mechanisms)))
        n += different.size
    return Numbered(all_said(parts), numbers, np.concatenate(values_of), np.concatenate(owners))


def read_cells(values: np.ndarray, mechanism: Mechanism, cells: Any) -> np.ndarray:
    """``read_reports`` of some cells, whose errors name the place among all values."""
    try:
        return read_reports(values.reshape(-1)[cells], mechanism)
    except ValueError:
        skip = np.ones(values.shape, dtype=bool)
        skip.reshape(-1)[cells] = False
        read_reports(values, mechanism, skip)
        raise


def number_sparse(values: Any, mechanism: Mechanism, mechanisms: dict[Mechanism, int]) -> Numbered:
    """The same where cells that are not stored are known to be zero."""
    stored = sp.coo_array(values, copy=True)
    if values.ndim == 2:
        stored.sum_duplicates()
    different, place = np.unique(read_reports(stored.data, mechanism), return_inverse=True)
    stored.data = place.reshape(-1).astype(np.int64)
    owner = np.full(different.size, place_among(mechanism, mechanisms))
    return Numbered(said_by(mechanism, different), stored, different, owner)


def says_zero(mechanism: Mechanism, report: float) -> bool:
    """Whether a report says that its count is zero."""
    require_mechanism(mechanism)
    said = said_by(mechanism, read_reports(np.array([report]), mechanism))
    return bool(said.most[0] == 0)


def filled(values: Any, background: float) -> np.ndarray:
    """Sparse values as a dense array, with the background where nothing is stored."""
    stored, dense = sp.coo_array(values), np.full(values.shape, float(background))
    refuse_repeated(stored)
    dense[stored.coords] = stored.data
    return dense


def refuse_repeated(stored: sp.coo_array) -> None:
    """Refuse sparse values that store a cell twice; raises ValueError."""
    cells = np.ravel_multi_index(stored.coords, stored.shape)
    if np.unique(cells).size < cells.size:
        raise ValueError(f"values must store each cell once, got {cells.size - np.unique(cells).size} more")


def place_among(mechanism: Mechanism, mechanisms: dict[Mechanism, int]) -> int:
    """The number of a mechanism, a new one where it has none."""
    return mechanisms.setdefault(mechanism, len(mechanisms))


def in_rows(mechanism: Any, n_axes: int) -> Any:
    """A sequence of mechanisms, one for each row, in a shape that says so: (D, 1, ..); anything else as it is."""
    if isinstance(mechanism, Mechanism | ByCell):
        return mechanism
    found = np.empty(len(mechanism), dtype=object)
    found[:] = list(mechanism)
    return found.reshape(-1, *[1] * (n_axes - 1))


def by_mechanism(mechanism: Any, shape: tuple[int, ...]) -> list[tuple[Mechanism, np.ndarray | None]]:
    """Every different mechanism with the cells that have it, booleans of this shape; None for all.

    Raises ValueError as ``numbered_mechanisms``.
    """
    different, numbers = numbered_mechanisms(mechanism, shape)
    if len(different) == 1:
        return [(different[0], None)]
    return [(each, numbers == i) for i, each in enumerate(different)]


def cells_by_mechanism(
    mechanism: Any, shape: tuple[int, ...], hidden: np.ndarray | None = None
) -> Iterator[tuple[Mechanism, Any]]:
    """Every different mechanism with an index of its cells in row-major order, except those that are hidden.

    The time that this takes hardly depends on how many mechanisms there are.
    """
    different, numbers = numbered_mechanisms(mechanism, shape)
    if len(different) == 1:
        yield different[0], slice(None) if hidden is None else np.flatnonzero(~hidden)
        return
    order = np.argsort(numbers.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(numbers.reshape(-1), minlength=len(different)))
    for each, cells in zip(different, np.split(order, ends[:-1]), strict=True):
        yield each, cells if hidden is None else cells[~hidden.reshape(-1)[cells]]


def numbered_mechanisms(mechanism: Any, shape: tuple[int, ...]) -> tuple[tuple[Mechanism, ...], np.ndarray]:
    """(the different mechanisms in order of first use, the number of that of every cell of this shape).

    A sequence goes by row if there are as many rows, and by the last axis if that is as long; ValueError where it could
    be either, or is neither.
    """
    if isinstance(mechanism, Mechanism):
        return (mechanism,), np.broadcast_to(0, shape)
    if isinstance(mechanism, ByCell):
        return mechanism.mechanisms, places_of(mechanism, shape)
    given = np.empty(np.shape(np.asarray(mechanism, dtype=object)), dtype=object)
    given[...] = np.asarray(mechanism, dtype=object)
    for each in given.flat:
        require_mechanism(each)
    if given.ndim == 1 and given.size == shape[0]:
        if len(shape) > 1 and shape[-1] == given.size and len(set(given)) > 1:
            raise ValueError(
                f"mechanism must have the shape ({given.size}, 1), one per row, or (1, {given.size}), one per column, "
                f"if there are as many rows as columns, got a list of {given.size}"
            )
        given = given.reshape(-1, *[1] * (len(shape) - 1))
    known: dict[Mechanism, int] = {}
    numbers = np.array([place_among(each, known) for each in given.flat], dtype=np.int64).reshape(given.shape)
    try:
        return tuple(known), np.broadcast_to(numbers, shape)
    except ValueError:
        raise ValueError(
            f"mechanism must be one, one per row ({shape[0]},) or broadcast to {shape}, got shape {given.shape}"
        ) from None


def coded(layers: list[Numbered], mechanisms: Iterable[Mechanism]) -> tuple[Any, AnyMechanismNoise]:
    """The code of every cell, and what codes say; 0 for cells that are known to be zero, NO_REPORT without a report."""
    said, first = all_said([layer.said for layer in layers]), layers[0]
    if len(layers) == 1:
        members = np.arange(first.said.least.size)[:, None]
        place = first.number.data if sp.issparse(first.number) else first.number.reshape(-1)
    else:
        begins = np.cumsum([0, *(layer.said.least.size for layer in layers)])
        each = [dense(layer).reshape(-1) for layer in layers]
        both = [np.where(n == NO_REPORT, NO_REPORT, n + begin) for n, begin in zip(each, begins, strict=False)]
        members, place = np.unique(np.stack(both, axis=1), axis=0, return_inverse=True)
        place = place.reshape(-1)
    none = (members == NO_REPORT).all(axis=1)
    # A report of bounded noise may leave only a count of zero, and yet be an estimate of, say, -3: it keeps its code.
    zero = ((said.most[members] == 0) & (said.estimate[members] == 0.0) & (members != NO_REPORT)).any(axis=1)
    kept = ~none & ~zero
    check_possible(said, members[zero])
    code = np.where(kept, np.cumsum(kept), np.where(none, NO_REPORT, 0))
    codes = np.where(place == NO_REPORT, NO_REPORT, code[place])
    members = members[kept]
    kernels = kernels_of(said, members)
    guess(kernels, codes)
    owner = members.max(axis=1, initial=NO_REPORT)  # any report of the count
    head = np.zeros(1)
    value = np.concatenate([head, np.concatenate([layer.value for layer in layers])[owner]])
    of = np.concatenate([head, np.concatenate([layer.mechanism for layer in layers])[owner]]).astype(np.int64)
    variance = np.concatenate([head, variances(said, members)])
    noise = AnyMechanismNoise(tuple(mechanisms), kernels, value, of, variance, len(layers) == 1)
    if sp.issparse(first.number) and len(layers) == 1:
        matrix = first.number.copy()
        matrix.data = codes
        return matrix, noise
    return codes.reshape(first.number.shape), noise


def dense(layer: Numbered) -> np.ndarray:
    """The numbers of a layer in every cell; cells that it does not store have that of a zero."""
    if not sp.issparse(layer.number):
        return np.asarray(layer.number)
    zeros = np.flatnonzero(layer.said.most == 0)
    found = np.full(layer.number.shape, zeros[0] if zeros.size else NO_REPORT)
    found[layer.number.coords] = layer.number.data
    return found


def variances(said: Said, members: np.ndarray) -> np.ndarray:
    """(C,) of the estimate of a count by each code."""
    with np.errstate(divide="ignore"):
        weights = np.where(members >= 0, 1.0 / said.variance[np.maximum(members, 0)], 0.0)
        return np.asarray(1.0 / weights.sum(axis=1))


def guess(kernels: ReportKernels, codes: np.ndarray) -> None:
    """Fill in estimates where reports alone give none, in place: means of counts that are spread as in all cells."""
    unknown = np.flatnonzero(np.isnan(kernels.real_cj[:, GUESS]))
    if not unknown.size:
        return
    cells = np.bincount(codes[codes >= 0], minlength=len(kernels.real_cj)).astype(np.float64)
    known = np.setdiff1d(np.arange(cells.size), unknown)
    least, most = kernels.whole_cj[unknown][:, [LEAST, MOST]].T
    kernels.real_cj[unknown, GUESS] = np.minimum(0.5 * (least + most), least + 1.0)
    mean = 0.0
    for _ in range(ROUNDS):
        before, mean = mean, max(float(cells @ kernels.real_cj[:, GUESS]) / max(cells.sum(), 1.0), 1e-6)
        if abs(mean - before) <= SETTLED * mean:
            break
        fill_means(kernels, unknown, mean / (mean + SHAPE))
    assert not np.isnan(kernels.real_cj[known, GUESS]).any()


@kernel
def fill_means(kernels: Any, codes: Any, p: Any) -> None:
    """The estimate of each of these codes is the mean of a negative binomial count given the reports; in place."""
    q = -np.log1p(-p)
    law = WindowLaw(kernels, NegativeBinomialCell(p, q))
    for c in codes:
        kernels.real_cj[c, GUESS] = moments(law, c, SHAPE * q, True)[1]
