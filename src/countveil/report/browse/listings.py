"""What components hold along an axis, as arrays, and which part of it the page keeps."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.fit.base import FactorizationEstimator
from countveil.models.layout import Part
from countveil.privacy._text import plain
from countveil.report.sections import is_numbered

COMPONENTS_OF_A_MEMBER = 5  # kept of every member, so that each can be searched for
MOST_MEMBERS = 20_000  # of an axis, the largest: with 50,000 words the page would take tens of megabytes
DIGITS = 4
RELEVANCE = 0.6  # weight of the log probability: readers named topics best by it (Sievert and Shirley 2014)


class Along(NamedTuple):
    """All components along one axis: values (K, n, 3) are mean, lower and upper, or (K, n, 1) without intervals."""

    axis: str
    names: list[str]
    numbered: bool  # members have no names
    values: np.ndarray
    shown: list[str] | None = None  # what the page calls members, all different; None for their names

    @property
    def mean(self) -> np.ndarray:
        """(K, n) each member's share of each component."""
        return self.values[:, :, 0]


class Kind(NamedTuple):
    """Components of one kind in the order of ``support``, and what they hold along each axis that lists them."""

    part: Part
    table: pd.DataFrame
    along: list[Along]


def kinds_of(fit: FactorizationEstimator) -> list[Kind]:
    """Every kind of component of a fit."""
    return [
        Kind(part, fit.parts.support(axis=part.axes[0]), [along(fit, axis) for axis in part.axes])
        for part in fit._reader.kinds
    ]


def along(fit: FactorizationEstimator, axis: str) -> Along:
    """All components of a fit along an axis, those that only some chains have included."""
    names = fit.posterior["posterior"][axis].to_numpy()
    table = fit.parts.supported(axis, names.size)
    components = {number: i for i, number in enumerate(table["component"].unique().tolist())}
    places = {name: v for v, name in enumerate(names.tolist())}
    columns = ["probability", *(["lower", "upper"] if "lower" in table else [])]
    values = np.zeros((len(components), names.size, len(columns)))
    rows = table["component"].map(components).to_numpy(), table["member"].map(places).to_numpy()
    values[rows] = table[columns].to_numpy()
    numbered = is_numbered(fit, axis)
    labels = [f"{axis} {name}" if numbered else str(name) for name in names.tolist()]
    return Along(axis, labels, numbered, values, list(shown_as(labels).values()))


def shown_as(names: Iterable[str]) -> dict[str, str]:
    """What the page calls each of these names: plain text, numbered where several would look the same."""
    found: dict[str, str] = {}
    different = dict.fromkeys(names)
    taken = {name for name in different if plain(name) == name}
    for name in different:
        text, n = plain(name), 1
        while text in taken and text != name:
            n += 1
            text = f"{plain(name)} ({n})"
        taken.add(text)
        found[name] = text
    return found


def shown_alike(fits: list[list[Kind]]) -> list[list[Kind]]:
    """The same components, with one way to call every name in all fits."""

    def renamed(each: Along, place: tuple[int, int]) -> Along:
        known = shown_as(name for kinds in fits for name in kinds[place[0]].along[place[1]].names)
        return each._replace(shown=[known[name] for name in each.names])

    return [
        [
            kind._replace(along=[renamed(each, (i, j)) for j, each in enumerate(kind.along)])
            for i, kind in enumerate(kinds)
        ]
        for kinds in fits
    ]


def overall(table: pd.DataFrame, mean: np.ndarray) -> np.ndarray:
    """(V,) each member's share of all expected counts, from components by support and prevalence, and their (K, V)."""
    weights = table["prevalence"].to_numpy() * table["support"].fillna(1.0).to_numpy()
    return np.asarray(weights @ mean / max(weights.sum(), 1e-300))


def relevance(mean: np.ndarray, everywhere: np.ndarray) -> np.ndarray:
    """(K, V) w log p_kv + (1 - w) log (p_kv / p_v), w = ``RELEVANCE``: the measure of LDAvis.

    Members that are probable everywhere rank lower than by p_kv, their (K, V) ``mean``; p_v are ``everywhere``.
    """
    log = np.log(np.maximum(mean, 1e-300))
    return np.asarray(log - (1.0 - RELEVANCE) * np.log(np.maximum(everywhere, 1e-300)))


def kept(mean: np.ndarray, prevalence: np.ndarray, n: int, also: np.ndarray | None = None) -> np.ndarray:
    """(K, V) which shares the page keeps: the n largest of each component, and of each member its largest ones.

    also (K, V) are kept besides. Of more than ``MOST_MEMBERS`` members only the largest are kept whole.
    """
    found = np.zeros(mean.shape, dtype=bool) if also is None else also.copy()
    np.put_along_axis(found, np.argsort(-mean, axis=1, kind="stable")[:, :n], True, axis=1)
    members = np.argsort(-(prevalence @ mean), kind="stable")[:MOST_MEMBERS]
    best = np.argsort(-mean[:, members], axis=0, kind="stable")[:COMPONENTS_OF_A_MEMBER]
    found[best, members] = True
    return found


def listed(each: Along, table: pd.DataFrame, n: int, also: np.ndarray | None = None) -> dict[str, Any]:
    """An axis as the page has it: labels, the largest first, each with its entries, and the top members.

    Top members are the n most probable and the n most relevant of each component. An entry is (component, mean, lower,
    upper); members and components are given by their places. ``share`` is each member's of all expected counts.
    """
    prevalence, everywhere = table["prevalence"].to_numpy(), overall(table, each.mean)
    relevant = np.argsort(-relevance(each.mean, everywhere), axis=1, kind="stable")[:, :n]
    wanted = np.zeros(each.mean.shape, dtype=bool) if also is None else also.copy()
    np.put_along_axis(wanted, relevant, True, axis=1)
    keep = kept(each.mean, prevalence, n, wanted)
    largest = np.argsort(-(prevalence @ each.mean), kind="stable")
    members = largest[keep[:, largest].any(axis=0)]
    place = np.full(len(each.names), -1)
    place[members] = np.arange(members.size)
    top = np.argsort(-each.mean, axis=1, kind="stable")[:, :n]
    return {
        "axis": each.axis,
        "labels": [(each.shown or each.names)[v] for v in members],
        "left": len(each.names) - int(members.size),
        "entries": [[[int(k), *short(each.values[k, v])] for k in np.flatnonzero(keep[:, v])] for v in members],
        "share": short(everywhere[members]),
        "top": place[top].tolist(),
        "relevant": place[relevant].tolist(),
    }


def short(values: Any) -> list[float]:
    """Numbers with the digits that the page keeps."""
    return [float(f"{value:.{DIGITS}g}") for value in np.ravel(values).tolist()]
