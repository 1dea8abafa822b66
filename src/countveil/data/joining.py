"""Releases of the same counts, put together: all reports of every record, and what they promise together."""

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from countveil.data import joined_files
from countveil.data.covariates import covariates_of_people, covariates_of_rows
from countveil.data.numbering import in_rows
from countveil.data.provenance import Layer, Provenance, joint_promise, promise_to_people
from countveil.data.reports import Reports
from countveil.laws.noise.laws import law_of
from countveil.privacy import Release
from countveil.privacy._cells import ByCell
from countveil.privacy._memory import available_memory
from countveil.privacy._waves import added
from countveil.privacy.errors import ReleaseError
from countveil.privacy.level import Level
from countveil.privacy.mechanisms import Mechanism
from countveil.privacy.names import clash, identity, spelt_alike

Given = Release | str | os.PathLike[str]

SAME = "releases must have independent noise, got the same reports {}in releases {} and {}: leave one of them out"
MOST_CELLS = 20_000_000  # of the result, where releases are sparse: it holds all of them, in about 100 bytes each
LOG_CHANCE = np.log(1e-9)  # of reports that agree by chance, below which they are the same ones


def join(releases: Iterable[Given] | str | os.PathLike[str]) -> Reports:
    """Releases of the same counts as data in which a count has all its reports.

    P(reports | count) = P(report 1 | count) P(report 2 | count) ..,   (mathematics, section 14)

    which holds where the reports of a count were drawn independently: by mechanisms that each drew fresh noise. Rows
    are matched by their labels, and columns by theirs, in whatever order; rows of any release are rows of the result,
    and those that a release lacks are masked in it. Labels of rows that the participants' ledger takes for one name,
    such as "ada" and "Ada ", are one row, which is called by the first of them. Counts that changed between two
    releases are not the same counts: give them an axis of time instead.

    What the reports of one record promise *together* is less than what each promises. ``levels`` of the result has it
    for every row: epsilon/N adds up, stated at the N of the first report, rhos add up, and where there are both,
    epsilon/N counts as a rho of (epsilon/N)^2/2. It is None where a mechanism keeps no level. ``promise`` says it in
    words, for the row with the weakest one.

    Covariates that participants stated are kept, and ``fit`` reads them with a formula of ``prevalence``;
    ``covariates_of`` is their table. Of a row that several releases have, they must state the same.

    ``save`` of the result writes all releases to one file, and ``join`` of its path reads them.

    Args:
        releases: two or more ``Release`` objects or paths of release files, each with labels of rows and columns, or
            all of the same shape and none with labels. The path of a file of joined releases stands for all of
            them, alone or among others.

    Returns:
        ``Reports``, for any model; its ``provenance.releases`` are those that were joined.

    Raises:
        TypeError: something else than a release or a path.
        ReleaseError: a file that is damaged, or that is of something else.
        ValueError: fewer than two releases; labels in some of them only, or two of one record; no row in common;
            a row of two waves; other columns; networks and tables together; the same reports twice, in all rows or in
            some; sparse releases with more than ``MOST_CELLS`` cells in all, which several reports of a count make
            dense; more cells than fit into memory; covariates that two releases state otherwise of the same row, by
            name.
    """
    if isinstance(releases, Release | Mapping) or not isinstance(releases, str | os.PathLike | Iterable):
        raise TypeError(f"releases must be a sequence of them, or a path, got {type(releases).__name__}")
    given: list[Any] = [releases] if isinstance(releases, str | os.PathLike) else list(releases)
    for j, i in combinations(range(len(given)), 2):
        if given[i] is given[j] or (isinstance(given[i], str | os.PathLike) and given[i] == given[j]):
            raise ValueError(SAME.format("", j + 1, i + 1))
    read = [release for each in given for release in all_opened(each)]
    if any(each.extras.totals is not None for each in read):
        raise ValueError("releases with totals cannot be joined: give Reports(..., totals=...) to .also(...)")
    if any(each.extras.exposure is not None for each in read):
        raise ValueError("releases with an exposure cannot be joined: give Reports(..., exposure=...) to .also(...)")
    if any(isinstance(each.mechanism, ByCell) for each in read):
        raise ValueError("releases with mechanisms by cell cannot be joined: give their reports to .also(...)")
    if len(read) < 2:
        raise ValueError(f"releases must be two or more to be joined, got {len(read)}")
    axes = [joint_axis(read, axis) for axis in range(check_alike(read))]
    check_in_common(read, axes[0])
    check_waves(read)
    check_size(read, axes)
    n_rows = read[0].shape[0] if axes[0] is None else len(axes[0])
    covariates = covariates_of_rows(read, axes[0], n_rows)
    layers = [placed(each, axes) for each in read]
    refuse_same_twice(layers)
    levels = together(read, axes[0], n_rows)
    sources = dict.fromkeys(each.source for each in read if each.source is not None)
    names = {each.extras.axis_names or () for each in read}
    provenance = Provenance(
        simulated=any(each.simulated for each in read),
        source="; ".join(sources) or None,
        directed=read[0].directed,
        promise=joint_promise(levels),
        levels=levels,
        covariates=covariates,
        axis_names=names.pop() if len(names) == 1 else (),
        releases=tuple(read),
    )
    shaped = [each._replace(mechanism=in_rows(each.mechanism, each.values.ndim)) for each in layers]
    return Reports.of_layers(shaped, provenance, labels=axes)


def all_opened(given: Any) -> list[Release]:
    """A release, or all in a file, which are several where they were joined; raises TypeError."""
    return joined_files.read(given) if isinstance(given, str | os.PathLike) else [opened(given)]


def opened(given: Any) -> Release:
    """A release, or the one in a file; raises TypeError."""
    if isinstance(given, Release):
        return given
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"releases must be Release objects or paths of files, got {type(given).__name__}")
    return Release.load(given)


def check_alike(releases: Sequence[Release]) -> int:
    """The number of axes that all have; raises ValueError where releases are of different kinds of counts."""
    first = releases[0]
    for each in releases[1:]:
        if len(each.shape) != len(first.shape):
            raise ValueError(
                f"releases must have as many axes as the first, {len(first.shape)}, got one with {len(each.shape)}"
            )
        if each.directed is not first.directed:
            raise ValueError(
                "releases must all be directed networks, all be undirected networks, or all be no networks, got a "
                "mixture"
            )
    return len(first.shape)


def joint_axis(releases: Sequence[Release], axis: int) -> tuple[str, ...] | None:
    """The labels of an axis of the result: those of all for rows, the same ones for others; None if there are none."""
    name = ("row", "column")[axis] if axis < 2 else f"axis {axis}"
    labels = [each.labels[axis] for each in releases]
    people = axis == 0 and releases[0].directed is None
    if all(names is None for names in labels):
        sizes = [each.shape[axis] for each in releases]
        if len(set(sizes)) > 1:
            raise ValueError(f"releases without {name} labels must have the same number of them, got {sizes}")
        return None
    for names in labels:
        if names is None:
            raise ValueError(f"releases must all have {name} labels, or none, got both")
        if len(set(names)) < len(names):
            twice = next(each for each in names if names.count(each) > 1)
            raise ValueError(f"releases must name each {name} once, got {twice!r} twice")
        if people and (found := clash(names)):
            raise ValueError(
                f"releases must name each {name} once, got {found[0]!r} and {found[1]!r} in one of them, which are one "
                "name but for case, blanks and Unicode form: rename one of them if they are two records"
            )
    if people:
        return tuple(dict.fromkeys(spelt_alike(each for names in labels for each in names or ())))
    for names in labels[1:]:
        if set(names or ()) != set(labels[0] or ()):
            odd = next(iter(set(names or ()) ^ set(labels[0] or ())))
            raise ValueError(f"releases must have the same {name} labels, got {odd!r} in some of them only")
    return labels[0]


def check_waves(releases: Sequence[Release]) -> None:
    """Refuse releases that have a row in different waves, whose counts are not the same ones; raises ValueError."""
    before: dict[str, str] = {}
    for each in releases:
        waves = each.extras.waves
        if waves is None:
            continue
        for name, place in zip(each.row_labels or (), waves.of_row, strict=True):
            wave = waves.names[place]
            if (other := before.setdefault(identity(name), wave)) != wave:
                raise ValueError(
                    f"releases must report the same counts, got row {name!r} in the waves {other!r} and "
                    f"{wave!r}: collect the waves into one release, which a model over time fits"
                )


def check_in_common(releases: Sequence[Release], rows: tuple[str, ...] | None) -> None:
    """Refuse releases of which no two have a row in common; raises ValueError."""
    if rows is not None and len(rows) == sum(each.shape[0] for each in releases):
        raise ValueError(
            f"releases must have rows in common to be of the same counts, got {len(rows)} labels, each in only "
            "one of them: participants get a new token in every study"
        )


def check_size(releases: Sequence[Release], axes: Sequence[tuple[str, ...] | None]) -> None:
    """Refuse what is too large: sparse releases to be held dense, and any for the memory; raises ValueError."""
    sizes = [n if names is None else len(names) for n, names in zip(releases[0].shape, axes, strict=True)]
    size, free = prod(sizes), available_memory()
    if free is not None and 8 * size * len(releases) > free:
        raise ValueError(
            f"releases must fit into the {free} bytes of memory that are free when they are joined, got {size:,} "
            f"cells with {len(releases)} reports each"
        )
    if size > MOST_CELLS and any(sp.issparse(each.reports) for each in releases):
        raise ValueError(
            f"releases must have at most {MOST_CELLS:,} cells together if they are sparse, because cells with "
            f"several reports are all held, got {size:,}: join some of the rows at a time"
        )


def placed(release: Release, axes: Sequence[tuple[str, ...] | None]) -> Layer:
    """The reports of a release over the axes of the result."""
    values = release.reports.toarray() if sp.issparse(release.reports) else np.asarray(release.reports)
    if release.directed is False:
        values = np.triu(values) + np.triu(values, 1).T
    stated = release.mechanism
    by_row = stated if isinstance(stated, tuple) else None
    absent = None
    hidden = None if release.extras.mask is None else np.asarray(release.extras.mask)
    for axis, names in enumerate(axes):
        own = release.labels[axis]
        if names is None or own == names:
            continue
        assert own is not None
        key = identity if axis == 0 and release.directed is None else str
        places = {key(name): i for i, name in enumerate(own)}
        order = np.array([places.get(key(name), -1) for name in names])
        values = values.take(np.maximum(order, 0), axis=axis)
        hidden = None if hidden is None else hidden.take(np.maximum(order, 0), axis=axis)
        if axis == 0:
            absent = order < 0
            by_row = by_row and tuple(by_row[i] for i in np.maximum(order, 0))
    mask = hidden
    if release.directed is False:
        values, mask = np.triu(values), np.tri(len(values), k=-1, dtype=bool)
    if absent is not None and absent.any():
        gone = np.broadcast_to(absent.reshape(-1, *[1] * (values.ndim - 1)), values.shape)
        mask = gone if mask is None else mask | gone
    return Layer(values, stated if by_row is None else list(by_row), mask, 0.0)


def refuse_same_twice(layers: Sequence[Layer]) -> None:
    """Refuse reports that are in two releases: the same noise is no second report; raises ValueError.

    Those are rows, or whole releases, that agree in all cells although fresh noise would hardly ever do so.
    """
    for i, (values, stated, mask, _) in enumerate(layers):
        for j, (others, _, hidden, _) in enumerate(layers[:i]):
            seen = np.ones(values.shape, dtype=bool)
            for each in (mask, hidden):
                seen &= True if each is None else ~each
            seen, agree = (each.reshape(len(values), -1) for each in (seen, equal(values, others)))
            same = np.flatnonzero(seen.any(axis=1) & (agree | ~seen).all(axis=1))
            chances = [log_chance(values[d].ravel()[seen[d]], mechanism_of(stated, d)) for d in same.tolist()]
            whole = same.size == seen.any(axis=1).sum()
            if min(chances, default=0.0) < LOG_CHANCE - np.log(len(values)) or (whole and sum(chances) < LOG_CHANCE):
                raise ValueError(SAME.format("" if whole else "in some rows ", j + 1, i + 1))


def equal(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where reports are the same; absent ones are."""
    found: np.ndarray = (one == other) | ((one != one) & (other != other))
    return found


def mechanism_of(stated: Any, d: int) -> Mechanism:
    """The mechanism of a row."""
    found: Mechanism = stated[d] if isinstance(stated, list) else stated
    return found


def log_chance(reports: np.ndarray, mechanism: Mechanism) -> float:
    """About how probable it is, in logs, that fresh noise gives these reports (n,) again: an estimate that is high.

    It is found from how often two simulated reports of a count agree, where counts are what the reports look like.
    """
    counts = np.maximum(np.rint(np.nan_to_num(reports)), 0).astype(np.int64)
    law, rng = law_of(mechanism), np.random.default_rng(0)
    one, other = (np.asarray(law.draw(counts, rng)) for _ in range(2))
    if not (reports < 0).any():  # negative ones may have been cut
        one, other = np.maximum(one, 0), np.maximum(other, 0)
    return float(reports.size * np.log((equal(one, other).sum() + 1.0) / (reports.size + 1.0)))


def together(releases: Sequence[Release], rows: tuple[str, ...] | None, n_rows: int) -> tuple[Level | None, ...]:
    """What all reports of each row promise together, None where one of them promises nothing."""
    own: list[list[Level | None]] = [[] for _ in range(n_rows)]
    places = None if rows is None else {identity(name): i for i, name in enumerate(rows)}
    for release in releases:
        try:
            levels: Any = release.levels
        except ReleaseError:
            levels = None
        names = release.row_labels
        for d in range(release.shape[0]):
            place = d if places is None or names is None else places[identity(names[d])]
            own[place].append(levels[d] if isinstance(levels, tuple) else levels)
    known: dict[tuple[Any, ...], Level | None] = {}
    for each in own:
        if tuple(each) not in known:
            known[tuple(each)] = None if None in each else added(each)  # type: ignore[arg-type]
    return tuple(known[tuple(each)] for each in own)


def by_wave(release: Release | str | os.PathLike[str]) -> Reports:
    """A release of a study in waves as an array of people by waves by what is counted.

    People are in the order in which the rows first name them, waves in that of the study. Labels that the participants'
    ledger takes for one name, such as "ada" and "Ada ", are one person, who is called by the first of them. Where a
    person has no report of a wave, all cells of that wave are masked: they leave the likelihood, which is right where
    whether somebody reports has nothing to do with their counts.

    ``levels`` of the result has what all reports of each person promise together, and ``promise`` says it in words for
    the person with the weakest one: epsilon/N adds up over waves, rhos add up.

    Covariates that people stated alike in all their waves are kept, a row for each person (``covariates_of``), and
    ``fit`` reads them with a formula of ``prevalence``. Those that changed, such as an age, are left out:
    ``provenance.differing`` of the result has their names and of how many people they differ, and a formula that names
    one is refused.

    Args:
        release: a ``Release`` that has ``waves``, or the path of its file.

    Returns:
        ``Reports`` of shape (people, waves, ..), for ``DynamicModel(modes=["person", "wave", ..], time="wave")``.

    Raises:
        TypeError: something else than a release or a path.
        ValueError: a release without waves.
    """
    read = opened(release)
    waves = read.extras.waves
    if waves is None or read.row_labels is None:
        raise ValueError("release must come from a study in waves, got a release without waves")
    names = spelt_alike(read.row_labels)
    people = {name: place for place, name in enumerate(dict.fromkeys(names))}
    cells = np.array([people[name] for name in names]), np.array(waves.of_row)
    values = read.reports.toarray() if sp.issparse(read.reports) else np.asarray(read.reports)
    shape = (len(people), len(waves.names), *values.shape[1:])
    spread = np.zeros(shape, dtype=values.dtype)
    spread[cells] = values
    absent = np.ones(shape[:2], dtype=bool)
    absent[cells] = False
    mask = np.broadcast_to(absent.reshape(*absent.shape, *[1] * (len(shape) - 2)), shape)
    levels, promise = promise_to_people(read, tuple(people))
    covariates, differing = covariates_of_people(read, tuple(people))
    return Reports(
        spread,
        spread_out(read.mechanism, cells, shape),
        mask,
        labels=[list(people), waves.names, *read.labels[1:]],
        provenance=Provenance(
            read.simulated, read.source, None, promise, levels, covariates, MappingProxyType(differing)
        ),
    )


def spread_out(stated: Any, cells: tuple[np.ndarray, np.ndarray], shape: tuple[int, ...]) -> Any:
    """The mechanism of all cells; or that of each person and wave, (people, waves, 1, ..), where rows differ."""
    if not isinstance(stated, tuple):
        return stated
    each = np.empty(shape[:2], dtype=object)
    each.fill(stated[0])  # also where there is no report
    for person, wave, mechanism in zip(*cells, stated, strict=True):
        each[person, wave] = mechanism
    return each.reshape(*shape[:2], *[1] * (len(shape) - 2))
