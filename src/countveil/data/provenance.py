"""Where observations come from: which mechanism made each report, and what a record's reports promise together.

Inference sees reports by number, and a count that a report says to be zero has no number at all. What simulates
reports, or asks how probable one is, has to know what made it: mechanisms may differ by cell, and counts may have
several reports.
"""

from collections.abc import Mapping, Sequence
from math import ceil, log, prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import bdtrc

from countveil.data.covariates import stated_covariates
from countveil.data.matrices import check_mask, last_there, moved_along
from countveil.data.numbering import by_mechanism, filled, numbered_mechanisms
from countveil.laws.noise import Noise, noise_called
from countveil.laws.noise.additive import AdditiveLaw
from countveil.laws.noise.laws import law_of
from countveil.privacy import PrivacyLevel, Release
from countveil.privacy._cells import ByCell
from countveil.privacy._waves import added, by_person
from countveil.privacy._waves import promise_of as promise_of_people
from countveil.privacy.errors import ReleaseError
from countveil.privacy.level import Level
from countveil.privacy.mechanisms import Mechanism

SAME_NOISE = 1e-9
"""Reports that agree in so many cells with a smaller chance than this have the same noise."""
LOG_TEN = log(10.0)


class Layer(NamedTuple):
    """One report of every count: values of the shape of the data, and what was done to them."""

    values: Any
    mechanism: Any
    hidden: Any
    background: float


class Inputs(NamedTuple):
    """Reports as they were passed in, which other reports of the same counts can be put beside."""

    layers: tuple[Layer, ...]
    options: dict[str, Any]
    totals: Any


class Report(NamedTuple):
    """One report of some counts in matrix form."""

    values: np.ndarray  # (D, V), NaN where a count has none, and 0 where it was not seen
    seen: np.ndarray  # (D, V) booleans
    mechanisms: tuple[Mechanism, ...]
    number: np.ndarray  # (D, V) of the mechanism of each cell


class Published(NamedTuple):
    """All reports of every count, for data whose axes were put into rows and columns, and of which rows were taken."""

    layers: tuple[Layer, ...]
    shape: tuple[int, ...]  # of the data
    axes: tuple[tuple[int, ...], tuple[int, ...]]  # among the rows, and among the columns
    rows: np.ndarray | None = None  # those that were taken

    @classmethod
    def of(cls, layers: Sequence[Layer], shape: tuple[int, ...]) -> "Published":
        """Of data as they were given, with the first axis for rows."""
        return cls(tuple(layers), shape, ((0,), tuple(range(1, len(shape)))))

    def folded(self, shape: tuple[int, ...]) -> "Published":
        """The same for a tensor whose columns are those of the matrix."""
        layers = [self._folded(layer, shape) for layer in self.layers]
        return Published.of(layers, shape)

    def _folded(self, layer: Layer, shape: tuple[int, ...]) -> Layer:
        values = layer.values.tocoo() if sp.issparse(layer.values) else layer.values
        mechanism = layer.mechanism
        if not isinstance(mechanism, Mechanism):
            number, different = self._numbers(layer)
            mechanism = np.array(different, dtype=object)[np.broadcast_to(number, self.shape)].reshape(shape)
        hidden = None if layer.hidden is None else layer.hidden.reshape(shape)
        return Layer(values.reshape(shape), mechanism, hidden, layer.background)

    def arranged(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> "Published":
        """The same with these axes for rows and those for columns."""
        return self._replace(axes=(rows, columns))

    def with_steps(self, axis: int, places: np.ndarray) -> "Published":
        """The same with the entries of an axis at other places, and nothing reported at a place of -1."""
        near, missing = last_there(places), places < 0
        unseen = missing.reshape([-1 if a == axis else 1 for a in range(len(self.shape))])

        def moved(each: Any) -> np.ndarray:
            whole = np.broadcast_to(each, self.shape)
            return np.take(whole if self.rows is None else whole[self.rows], near, axis)

        layers = []
        for layer in self.layers:
            values = layer.values
            if not sp.issparse(values):
                values = moved(values)
            elif self.rows is None:
                values = moved_along(sp.coo_array(values), axis, places)
            else:
                values = moved(filled(values, layer.background))
            number, different = self._numbers(layer)
            mechanism = np.array(different, dtype=object)[moved(number)] if len(different) > 1 else different[0]
            hidden = None if layer.hidden is None else moved(layer.hidden)
            if missing.any():
                hidden = np.broadcast_to(unseen, values.shape) if hidden is None else hidden | unseen
            layers.append(Layer(values, mechanism, hidden, layer.background))
        return Published.of(layers, tuple(layers[0].values.shape))

    def of_rows(self, rows: np.ndarray) -> "Published":
        """Those of some rows."""
        before = np.arange(self._sizes()[0]) if self.rows is None else self.rows
        return self._replace(rows=before[rows])

    def report(self, place: int) -> Report:
        """The first report of every count, or another one."""
        layer, rows = self.layers[place], self.rows
        if sp.issparse(layer.values) and self.axes[0] == (0,) and len(self.shape) == 2 and rows is not None:
            values = filled(sp.csr_array(layer.values)[rows], layer.background)
        else:
            whole = filled(layer.values, layer.background) if sp.issparse(layer.values) else layer.values
            values = self._matrix(whole)
        number, mechanisms = self._numbers(layer)
        seen = np.ones(values.shape, dtype=bool)
        if layer.hidden is not None:
            seen = ~self._matrix(layer.hidden)
        numbers = np.where(seen, values, 0)
        if numbers.dtype.kind == "O":  # None, and pandas' NA
            numbers = np.array([[np.nan if each is None or each != each else each for each in row] for row in numbers])
        return Report(numbers.astype(np.float64), seen, mechanisms, self._matrix(number))

    def _numbers(self, layer: Layer) -> tuple[np.ndarray, tuple[Mechanism, ...]]:
        """The number of the mechanism of every cell, of a shape that broadcasts to the data's, and the mechanisms."""
        different, number = numbered_mechanisms(layer.mechanism, self.shape)
        if len(different) == 1:
            number = np.zeros((1,) * len(self.shape))
        return number.astype(np.int32), different

    def _sizes(self) -> tuple[int, int]:
        rows, columns = (prod(self.shape[a] for a in axes) for axes in self.axes)
        return rows, columns

    def _matrix(self, values: Any) -> np.ndarray:
        """What broadcasts to the shape of the data, over rows and columns."""
        whole = np.broadcast_to(values, self.shape).transpose(self.axes[0] + self.axes[1])
        matrix = whole.reshape(self._sizes())
        return np.asarray(matrix if self.rows is None else matrix[self.rows])


class Provenance(NamedTuple):
    """Where observations come from and what their reports were; set once, when they are made."""

    simulated: bool = False
    """Whether noise came from a seeded generator, and protects nobody."""
    source: str | None = None
    """Where imported reports are from, as their release states it."""
    directed: bool | None = None
    """Of networks, whether both directions of a pair are separate counts; None for other data."""
    promise: str | None = None
    """What several reports of a record promise together, in words."""
    levels: tuple[Level | None, ...] | None = None
    """What all reports of each row promise together, where releases were joined; None where one keeps no level."""
    covariates: pd.DataFrame | None = None
    """A row for each of the data's, where their releases had covariates."""
    differing: Mapping[str, int] = MappingProxyType({})
    """Covariates that were left out because they differ between waves, and of how many people they do."""
    axis_names: tuple[str | None, ...] = ()
    """What a table calls its axes, None for an axis without a name; empty without any."""
    published: Published | None = None
    """Reports as they were published; None where they are read by level."""
    inputs: Inputs | None = None
    """Reports as they were passed in; None for a part of them."""
    releases: tuple[Release, ...] | None = None
    """The releases that were joined; None for a part of them, or with other reports added."""

    def of_part(self, **changes: Any) -> "Provenance":
        """The provenance of data that were changed: nothing can be added to them, nor are they releases any more."""
        return self._replace(inputs=None, releases=None, **changes)

    def folded(self, shape: tuple[int, ...]) -> "Provenance":
        """The provenance of a tensor whose columns are those of this matrix."""
        published = self.published and self.published.folded(shape)
        return self.of_part(published=published, axis_names=())

    def arranged(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> "Provenance":
        """The provenance of data with these axes for rows and those for columns."""
        published = self.published and self.published.arranged(rows, columns)
        by_row = {} if rows == (0,) else {"levels": None, "covariates": None}
        return self.of_part(published=published, **by_row)

    def with_steps(self, axis: int, places: np.ndarray) -> "Provenance":
        """The provenance of data with the entries of an axis at other places."""
        published, levels = self.published and self.published.with_steps(axis, places), self.levels
        if levels is not None and axis == 0:
            levels = tuple(levels[place] for place in last_there(places))
        return self.of_part(published=published, levels=levels)

    def of_rows(self, rows: np.ndarray) -> "Provenance":
        """The provenance of some rows."""
        published = self.published and self.published.of_rows(rows)
        levels = None if self.levels is None else tuple(self.levels[d] for d in rows)
        covariates = None if self.covariates is None else self.covariates.iloc[rows]
        return self.of_part(published=published, levels=levels, covariates=covariates)


NOT_STATED = Provenance()


def mask_of_release(release: Release, mask: Any) -> Any:
    """The mask given, with the release's own, and all below the diagonal where each pair is reported once, above it."""
    in_pairs = release.directed is False
    own = np.tri(release.shape[0], k=-1, dtype=bool) if in_pairs else np.asarray(release.extras.mask)
    given = check_mask(mask, release.shape)
    return own if given is None else own | given


def totals_of_release(release: Release) -> list[tuple[Any, ...]] | None:
    """Its totals as ``Reports`` takes them, NaN where one is hidden or not known."""
    if release.extras.totals is None:
        return None
    found = []
    for each in release.extras.totals:
        numbers = np.array([np.nan if value is None else value for value in each.values], dtype=np.float64)
        where: Any = each.over
        if where is None:
            where = np.reshape(each.groups, release.shape)
        else:
            left = [length for axis, length in enumerate(release.shape) if axis not in where]
            numbers = numbers.reshape(left)
        found.append((where, numbers, "exact" if each.mechanism is None else each.mechanism))
    return found


def exposure_of_release(release: Any, exposure: Any) -> Any:
    """The exposure of the release; raises ValueError where another one is given."""
    own = release.extras.exposure
    if exposure is not None:
        raise ValueError(
            "exposure must be None with a release that has its own, "
            f"got {type(exposure).__name__} in addition: leave exposure out"
        )
    return np.reshape(np.asarray(own.values, dtype=np.float64), own.shape)


def provenance_of(release: Release) -> Provenance:
    """The provenance of a release's reports."""
    found = Provenance(release.simulated, release.source, release.directed, axis_names=release.extras.axis_names or ())
    if release.extras.waves is not None:
        people = tuple(dict.fromkeys(release.row_labels or ()))
        found = found._replace(promise=promise_to_people(release, people)[1])
    if release.extras.covariates is not None:
        found = found._replace(covariates=stated_covariates(release))
    return found


def options_of_release(release: Release, mask: Any, exposure: Any) -> dict[str, Any]:
    """The labels, the mask, the exposure and the provenance of a release, as keyword arguments of observations."""
    extras, found = release.extras, {"mask": mask, "exposure": exposure, "provenance": provenance_of(release)}
    if extras.mask is not None or release.directed is False:
        found["mask"] = mask_of_release(release, mask)
    if extras.exposure is not None:
        found["exposure"] = exposure_of_release(release, exposure)
    several = len(release.shape) > 2
    rows, columns = (None, None) if several else (release.row_labels, release.column_labels)
    return found | {"labels": release.labels if several else None, "row_labels": rows, "column_labels": columns}


def level_of_release(release: Release) -> tuple[Noise, Any]:
    """What the reports of a release say about their counts, and the noise level: a number, or one per row.

    Raises:
        ValueError: rows with different mechanisms, or one that is not in the table of noises.
    """
    if isinstance(release.mechanism, ByCell):
        raise ValueError("release must have mechanisms by row, got mechanisms by cell: use Reports.from_release")
    stated = release.mechanism if isinstance(release.mechanism, tuple) else (release.mechanism,)
    different = set(stated)
    names = sorted({each.name for each in different})
    if len(names) > 1:
        raise ValueError(f"release must have the same mechanism in all rows, got {names}")
    noise = noise_called(names[0])
    levels = {each: noise.level_of(each) for each in different}
    if isinstance(release.mechanism, tuple):
        return noise, np.array([levels[each] for each in stated])
    return noise, levels[stated[0]]


def refuse_same_noise(published: Published) -> None:
    """Refuse reports that repeat the noise of earlier ones, in more cells than chance allows; raises ValueError.

    Two reports of a count under fresh noise are equal with a probability that hardly depends on the count. Only cells
    in which one of them is positive are looked at, since others may have been cut at zero.
    """
    reports = [published.report(place) for place in range(len(published.layers))]
    for j, new in enumerate(reports):
        for i, old in enumerate(reports[:j]):
            seen = new.seen & old.seen & ((new.values > 0) | (old.values > 0))
            for a, one in noisy(old):
                for b, other in noisy(new):
                    log_chance = log_agreement(one, other)
                    cells = seen & (old.number == a) & (new.number == b)
                    if log_chance == 0.0 or not cells.any():
                        continue
                    same = old.values[cells] == new.values[cells]
                    n, found = same.size, int(same.sum())
                    if (np.floor(old.values[cells]) != old.values[cells]).any():
                        log_chance -= LOG_TEN  # with a digit after the point
                    if bdtrc(found - 1, n, np.exp(log_chance)) < SAME_NOISE:
                        raise ValueError(
                            f"reports of a count must have independent noise, got the same noise in reports {i + 1} "
                            f"and {j + 1} in {found:,} of {n:,} positive cells: leave one of them out"
                        )


def noisy(report: Report) -> list[tuple[int, Mechanism]]:
    """The mechanisms that add noise, with their numbers."""
    return [(i, each) for i, each in enumerate(report.mechanisms) if noise_of(each) is not None]


def both_levels(one: Level | None, other: Level | None) -> Level | None:
    """The level of two independent reports of one record, at the N of the first; None where one of them keeps none."""
    return None if one is None or other is None else added([one, other])


def levels_by_row(mechanism: Any, shape: tuple[int, ...]) -> list[Level | None]:
    """The level that reports of each row keep, None where there is none, or more than one mechanism in the row."""
    found: list[Level | None] = [None] * shape[0]
    for each, cells in by_mechanism(mechanism, shape):
        level = PrivacyLevel.kept_by(each)
        whole = np.ones(shape[0], dtype=bool) if cells is None else cells.reshape(shape[0], -1).all(axis=1)
        for d in np.flatnonzero(whole).tolist():
            found[d] = level
    return found


def joint_promise(levels: Sequence[Level | None]) -> str:
    """What the reports of one record promise together, in words, for the record with the weakest promise."""
    if any(each is None for each in levels):
        return "The reports of some records keep no level of privacy that could be added up."
    weakest = max((each for each in levels if each is not None), key=lambda each: each.kept_rho)
    return f"All reports of one record together: {weakest.describe(together=True)}"


def promise_to_people(release: Release, people: tuple[str, ...]) -> tuple[tuple[Level | None, ...], str]:
    """What all reports of each person promise together, and in words; None where a mechanism keeps no level."""
    try:
        levels = release.levels
    except ReleaseError:
        return (None,) * len(people), "The reports keep no level of privacy that could be added up."
    names = release.row_labels or ()
    summed = by_person(names, levels if isinstance(levels, tuple) else (levels,) * len(names))
    return tuple(summed[name] for name in people), promise_of_people(summed.values())


REACH = 12.0  # of the larger spread: beyond, noise adds nothing
STEPS = 10_000  # on each side of zero, at most


def log_agreement(one: Mechanism, other: Mechanism) -> float:
    """The log of P(two reports of a count are equal), of independent noise by each; 0 if it need not change counts.

    Reports with noise of real numbers are taken for rounded to whole ones. Noise with two different means is less often
    equal than stated.
    """
    laws = noise_of(one), noise_of(other)
    if laws[0] is None or laws[1] is None:
        return 0.0
    tau, step = values_around(max(laws[0].spread, laws[1].spread))
    masses = [np.minimum(np.exp(law.log_mass(tau + law.centre)), 1.0) for law in laws if law]
    return float(np.log(min((masses[0] * masses[1]).sum() * step, 1.0)))


def log_most_probable(mechanism: Mechanism) -> float:
    """The log of the probability of the most probable report of a count, at most; 0 if it need not change counts."""
    law = noise_of(mechanism)
    return 0.0 if law is None else min(float(law.log_mass(np.array([float(law.centre)]))[0]), 0.0)


def noise_of(mechanism: Mechanism) -> AdditiveLaw | None:
    """The law of the noise that a mechanism adds; None where it does something else."""
    law = law_of(mechanism)
    return law if isinstance(law, AdditiveLaw) and not law.exact else None


def values_around(spread: float) -> tuple[np.ndarray, int]:
    """(whole numbers around zero, their distance): all within ``REACH`` spreads, or evenly chosen ones."""
    reach = ceil(REACH * spread) + 1
    step = max(1, reach // STEPS)
    return np.arange(-(reach // step) * step, reach + 1, step, dtype=np.float64), step
