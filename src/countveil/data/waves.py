"""Reports of the same people in several waves, with an axis of time."""

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from countveil.data.covariates import covariates_of_people
from countveil.data.joining import opened
from countveil.data.provenance import promise_to_people
from countveil.data.reports import Reports
from countveil.privacy import Release
from countveil.privacy.names import spelt_alike


def by_wave(release: Release | str | os.PathLike[str]) -> Reports:
    """A release of a study in waves as an array of people by waves by what is counted.

    People are in the order in which the rows first name them, waves in that of the study. Labels that the participants'
    ledger takes for one name, such as "ada" and "Ada ", are one person, who is called by the first of them. Where a
    person has no report of a wave, all cells of that wave are masked: they leave the likelihood, which is right where
    whether somebody reports has nothing to do with their counts.

    ``levels`` of the result has what all reports of each person promise together, and ``promise`` says it in words for
    the person with the weakest one: epsilon/N adds up over waves, rhos add up.

    Covariates that people stated alike in all their waves are kept, a row for each person (``covariates_of``), and
    ``fit`` reads them with a formula of ``prevalence``. Those that changed, such as an age, are left out: ``differing``
    of the result has their names and of how many people they differ, and a formula that names one is refused.

    Args:
        release: a ``Release`` that has ``waves``, or the path of its file.

    Returns:
        ``Reports`` of shape (people, waves, ..), for ``DynamicModel(modes=["person", "wave", ..], time="wave")``.

    Raises:
        TypeError: something else than a release or a path.
        ValueError: a release without waves.
    """
    read = opened(release)
    if read.waves is None or read.row_labels is None:
        raise ValueError("release must come from a study in waves, got a release without waves")
    waves, names = read.waves, spelt_alike(read.row_labels)
    people = {name: place for place, name in enumerate(dict.fromkeys(names))}
    cells = np.array([people[name] for name in names]), np.array(waves.of_row)
    values = read.reports.toarray() if sp.issparse(read.reports) else np.asarray(read.reports)
    shape = (len(people), len(waves.names), *values.shape[1:])
    spread = np.zeros(shape, dtype=values.dtype)
    spread[cells] = values
    absent = np.ones(shape[:2], dtype=bool)
    absent[cells] = False
    mask = np.broadcast_to(absent.reshape(*absent.shape, *[1] * (len(shape) - 2)), shape)
    found = Reports(
        spread,
        spread_out(read.mechanism, cells, shape),
        mask,
        labels=[list(people), waves.names, *read.labels[1:]],
    )
    found.simulated, found.source = read.simulated, read.source
    found.levels, found.promise = promise_to_people(read, tuple(people))
    found.covariates, found.differing = covariates_of_people(read, tuple(people))
    return found


def spread_out(stated: Any, cells: tuple[np.ndarray, np.ndarray], shape: tuple[int, ...]) -> Any:
    """The mechanism of all cells; or that of each person and wave, (people, waves, 1, ..), where rows differ."""
    if not isinstance(stated, tuple):
        return stated
    each = np.empty(shape[:2], dtype=object)
    each.fill(stated[0])  # also where there is no report
    for person, wave, mechanism in zip(*cells, stated, strict=True):
        each[person, wave] = mechanism
    return each.reshape(*shape[:2], *[1] * (len(shape) - 2))
