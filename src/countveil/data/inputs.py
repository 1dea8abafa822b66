"""What releases and graphs give observations: reports, noise, masks, labels, exposures and their provenance."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from countveil.data.covariates import stated_covariates
from countveil.data.matrices import check_mask
from countveil.data.networks import graph_matrix
from countveil.data.provenance import Provenance, promise_to_people
from countveil.laws.noise import Noise, noise_called
from countveil.privacy import Release
from countveil.privacy._cells import ByCell


def graph_parts(
    graph: Any, weight: str | None, nodes: Sequence[Hashable] | None, show: bool
) -> tuple[Any, dict[str, Any]]:
    """A graph's matrix, and its names and mask as options: an undirected one is seen above the diagonal only.

    ``show`` is True for reports, of which each pair has one, and which errors may show.
    """
    matrix, names = graph_matrix(graph, weight, nodes, show=show)
    directed = bool(graph.is_directed())
    pairs = {(a, b) if directed else frozenset((a, b)) for a, b in graph.edges(data=False)}
    if show and graph.number_of_edges() > len(pairs):
        raise ValueError("graph must have one report for each pair of actors, got parallel edges")
    mask = None if directed else np.tri(len(names), k=-1, dtype=bool)
    provenance = Provenance(directed=directed)
    return matrix, {"mask": mask, "row_labels": names, "column_labels": names, "provenance": provenance}


def mask_of_release(release: Release, mask: Any) -> Any:
    """The mask given, with the release's own, and all below the diagonal where each pair is reported once, above it."""
    own = None if release.extras.mask is None else np.asarray(release.extras.mask)
    if release.directed is False:
        own = np.tri(release.shape[0], k=-1, dtype=bool)
    if own is None:
        return mask
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


def exposure_of_release(release: Release, exposure: Any = None) -> Any:
    """The exposure given, or that of the release; raises ValueError where there are both."""
    own = release.extras.exposure
    if own is None:
        return exposure
    if exposure is not None:
        raise ValueError(
            "exposure must be None with a release that has its own, "
            f"got {type(exposure).__name__} in addition: leave exposure out"
        )
    return np.reshape(np.asarray(own.values, dtype=np.float64), own.shape)


def provenance_of(release: Release) -> Provenance:
    """The provenance of a release's reports."""
    promise = None
    if release.extras.waves is not None:
        promise = promise_to_people(release, tuple(dict.fromkeys(release.row_labels or ())))[1]
    return Provenance(
        release.simulated, release.source, release.directed, promise, covariates=stated_covariates(release)
    )


def options_of_release(release: Release, mask: Any, exposure: Any) -> dict[str, Any]:
    """The labels, the mask, the exposure and the provenance of a release, as keyword arguments of observations."""
    named: dict[str, Any] = {"row_labels": release.row_labels, "column_labels": release.column_labels}
    return (named if len(release.shape) <= 2 else {"labels": release.labels}) | {
        "mask": mask_of_release(release, mask),
        "exposure": exposure_of_release(release, exposure),
        "provenance": provenance_of(release),
    }


def noise_of(release: Release) -> tuple[Noise, Any]:
    """What the reports of a release say about their counts, and the noise level: a number, or one per row.

    Raises:
        ValueError: rows with different mechanisms, or one that is not in the table of noises.
    """
    if isinstance(release.mechanism, ByCell):
        raise ValueError(
            "release must have mechanisms by row, got mechanisms by cell: use Reports.from_release"
        )
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
