"""The content of the browse page: components of a fit, their places on the map, and a second fit for comparison."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from countveil.fit.base import FactorizationEstimator
from countveil.fit.component_tables import by_support, component_counts, mixture, tails
from countveil.fit.effects import Effects
from countveil.fit.layers import upper_by_member
from countveil.fit.naming import leading, merged_in_words
from countveil.fit.reading import weights_in_words
from countveil.fit.results import DISPERSION_COLUMNS
from countveil.inference.matching import LEAST_OVERLAP, STABLE, overlap
from countveil.models.layout import Part
from countveil.privacy._text import cell, plain
from countveil.report.page import facts_table, headline_of, noise_table, parameters, source_table, trust
from countveil.report.promise import promise_of
from countveil.report.sections import (
    ENDS,
    bursts_of,
    contrasts_in_points,
    is_numbered,
    pair_in_words,
    why_more,
    with_ends,
)

# What components hold along an axis, as arrays, and which part of it the page keeps.

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


# Rows of the data (documents) by components: what each is made of. The one place that asks a fit's draws for it.

HIDDEN, NUMBERS, LABELS = CHOICES = ("hidden", "numbers", "labels")
MOST_ROWS = 2_000  # of more only those are kept that a component is largest in
TOP_ROWS = 20  # of each component
SHARES_OF_A_ROW = 6  # the largest
AT_ONCE = 256


class RowShares(NamedTuple):
    """Every row's shares (n, K, 3) of components: mean, lower, upper, or (n, K, 1); its expected counts (n,)."""

    values: np.ndarray
    size: np.ndarray


def rows_axis(fit: FactorizationEstimator) -> str | None:
    """The axis of the rows, if the fit's first kind of component is listed along others alone; else None."""
    first = next(iter(fit._reader.axes))
    listed = [axis for part in fit._reader.kinds for axis in part.axes]
    return first if listed and first not in listed and first in fit._reader.member_axes else None


def row_shares(fit: FactorizationEstimator, axis: str) -> RowShares:
    """Shares of each row's expected counts by component, in the order of ``support``.

    share_dk = n_dk / sum_j n_dj, n_dk the expected counts of component k in row d; each component is averaged over the
    chains that have it, so shares of a row add up to one only where the chains agree.
    """
    group = fit._reader.listed_along(axis).group
    chains = mixture(fit._reader.chains_along(axis))
    found = [one for _, one in by_support(chains, fit._reader.matches(group))]
    n, expected = len(fit._reader.axes[axis]), mean_of_rows(fit)
    probabilities = [] if fit._reader.why_no_intervals else tails(INTERVAL)
    values = np.empty((n, len(found), 1 + len(probabilities)))
    for start in range(0, n, AT_ONCE):
        some = slice(start, start + AT_ONCE)
        by_chain = [parts_of(chain.shares[:, :, some], chain.sizes) for chain in chains]
        for i, one in enumerate(found):
            own = np.concatenate([by_chain[c][:, k] for c, k in zip(one.chains, one.components, strict=True)])
            values[some, i, 0] = own.mean(axis=0)
            if probabilities:
                values[some, i, 1:] = np.quantile(own, probabilities, axis=0).T
    return RowShares(values, expected)


def parts_of(shares: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(S, K, n) what rows are made of, from the components' shares over rows (S, K, n) and their sizes (S, K)."""
    counts = shares * sizes[:, :, None]
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300))


def mean_of_rows(fit: FactorizationEstimator) -> np.ndarray:
    """(n,) expected counts of each row of the first axis."""
    return np.asarray(component_counts(*fit._fitted(), fit.model_.spec.output[0]).mean(axis=0))


def rows_of(fit: FactorizationEstimator, shown: str, plurals: Mapping[str, str]) -> dict[str, Any] | None:
    """The rows as the page has them, with numbers or labels; None if they are hidden or the model lists them itself."""
    axis = rows_axis(fit)
    if shown == HIDDEN or axis is None:
        return None
    found, names = row_shares(fit, axis), fit._reader.axes[axis]
    mean = found.values[:, :, 0]
    top = np.argsort(-mean, axis=0, kind="stable")[:TOP_ROWS].T
    kept = np.arange(len(names)) if len(names) <= MOST_ROWS else np.unique(top)
    place = np.full(len(names), -1)
    place[kept] = np.arange(kept.size)
    named = shown == LABELS and not is_numbered(fit, axis)
    best = np.argsort(-mean[kept], axis=1, kind="stable")[:, :SHARES_OF_A_ROW]
    entries = [[[int(k), *short(found.values[d, k])] for k in own] for d, own in zip(kept, best, strict=True)]
    # The component that a row is listed for is among its shares.
    for k, members in enumerate(place[top].tolist()):
        for d in members:
            if k not in best[d]:
                entries[d].append([k, *short(found.values[kept[d], k])])
    return {
        "axis": axis,
        "plural": plurals.get(axis, f"{axis}s"),
        "labels": [plain(str(names[d])) if named else f"{axis} {d}" for d in kept],
        "left": len(names) - int(kept.size),
        "entries": entries,
        "size": short(found.size[kept]),
        "top": place[top].tolist(),
    }


LEAST = 3  # components of which there is a map
NEAREST = 3  # that are named for each component


def distances(along: list[Along]) -> np.ndarray:
    """(K, K) square roots of Jensen-Shannon divergences in bits, a metric from 0 to 1; the mean over several axes."""
    found = []
    for each in along:
        p = each.mean / np.maximum(each.mean.sum(axis=1, keepdims=True), 1e-300)
        middle = [entropy((p + own) / 2.0) - (entropy(p) + entropy(own)) / 2.0 for own in p]
        found.append(np.sqrt(np.clip(middle, 0.0, 1.0)))
    wanted = np.mean(found, axis=0)
    np.fill_diagonal(wanted, 0.0)
    return np.asarray(wanted)


def entropy(p: np.ndarray) -> np.ndarray:
    """(...,) of the distributions along the last axis, in bits."""
    return np.asarray(-(p * np.log2(np.maximum(p, 1e-300))).sum(axis=-1))


def on_a_plane(distance: np.ndarray) -> tuple[np.ndarray, float]:
    """((K, 2) places by classical scaling, the share of the squared distances from the centre that they keep).

    The sign of each axis is that which gives the first component a place at its negative end.
    """
    n = len(distance)
    centring = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centring @ distance**2 @ centring)
    values = np.maximum(values[::-1], 0.0)
    places = vectors[:, ::-1][:, :2] * np.sqrt(values[:2])
    places *= np.where(places[:1] > 0.0, -1.0, 1.0)
    return places, float(values[:2].sum() / max(values.sum(), 1e-300))


def mapped(along: list[Along]) -> dict[str, Any] | None:
    """The map as the page has it: places from 0 to 1 by one scale, the share kept, and each component's nearest ones.

    None for fewer than three components.
    """
    if not along or len(along[0].mean) < LEAST:
        return None
    distance = distances(along)
    places, share = on_a_plane(distance)
    places -= places.min(axis=0)
    places /= max(float(places.max()), 1e-300)
    order = np.argsort(distance + np.diag(np.full(len(distance), np.inf)), axis=1, kind="stable")
    return {
        "places": [short(place) for place in places],
        "share": short(share)[0],
        "nearest": order[:, :-1][:, :NEAREST].tolist(),  # the last is the component itself
    }


BESIDE = 10  # members of each of two components that are shown beside each other


def check_comparable(first: list[Kind], second: list[Kind]) -> None:
    """Refuse fits whose components are of other kinds, or have no member in common.

    Raises:
        ValueError: such fits.
    """
    ours, theirs = ([(kind.part.one, kind.part.axes) for kind in each] for each in (first, second))
    if ours != theirs or not ours:
        one, other = (", ".join(name for name, _ in each) or "none" for each in (ours, theirs))
        raise ValueError(
            f"other must be a fit with components of the same kinds along the same axes, got {other} and {one}"
        )
    for mine, its in zip(first, second, strict=True):
        for one_axis, other_axis in zip(mine.along, its.along, strict=True):
            if not set(one_axis.names) & set(other_axis.names):
                raise ValueError(f"other must be a fit with some of the same labels along {one_axis.axis}, got none")


def pairs_of(first: Kind, second: Kind) -> list[tuple[int, int, float]]:
    """(component, component of the other fit, overlap), by place, one to one, so that overlaps are largest together.

    overlap = sum_v min(p_v, q_v), the least of those along the axes; a member that one fit does not have is 0 there.
    """
    found = np.min(
        [overlap(*on_one_axis(one, other)) for one, other in zip(first.along, second.along, strict=True)], axis=0
    )
    rows, columns = linear_sum_assignment(found, maximize=True)
    return [(int(i), int(j), float(found[i, j])) for i, j in zip(rows, columns, strict=True)]


def on_one_axis(one: Along, other: Along) -> tuple[np.ndarray, np.ndarray]:
    """(K, V), (L, V) means of two fits over the members of either."""
    places = {name: v for v, name in enumerate(dict.fromkeys([*one.names, *other.names]))}
    found = []
    for each in (one, other):
        wide = np.zeros((len(each.mean), len(places)))
        wide[:, [places[name] for name in each.names]] = each.mean
        found.append(wide / np.maximum(wide.sum(axis=1, keepdims=True), 1e-300))
    return found[0], found[1]


def needed(one: Kind, other: Kind, pairs: list[tuple[int, int]]) -> list[np.ndarray]:
    """For each axis (K, V) of one fit: what its counterpart in the other fit, by pairs of places, lists first."""
    found = []
    for mine, its in zip(one.along, other.along, strict=True):
        keep, places = np.zeros(mine.mean.shape, dtype=bool), {name: v for v, name in enumerate(mine.names)}
        for i, j in pairs:
            top = np.argsort(-its.mean[j], kind="stable")[:BESIDE]
            keep[i, [places[its.names[v]] for v in top if its.names[v] in places]] = True
        found.append(keep)
    return found


def compared(first: list[Kind], second: list[Kind]) -> tuple[list[Any], list[list[np.ndarray]], list[list[np.ndarray]]]:
    """The pairs of every kind as the page has them, and what each of the two fits has to keep for them.

    Raises:
        ValueError: fits that cannot be compared.
    """
    check_comparable(first, second)
    pairs, ours, theirs = [], [], []
    for mine, its in zip(first, second, strict=True):
        found = pairs_of(mine, its)
        pairs.append([[i, j, *short([share]), share >= LEAST_OVERLAP] for i, j, share in found])
        ours.append(needed(mine, its, [(i, j) for i, j, _ in found]))
        theirs.append(needed(its, mine, [(j, i) for i, j, _ in found]))
    return pairs, ours, theirs


INTERVAL = 0.9


def gathered(fits: list[FactorizationEstimator], names: list[str], members: int, rows: str) -> dict[str, Any]:
    """The fits, one or two, and how their components go together.

    Raises:
        ValueError: two fits that cannot be compared, or none of whose components can be listed.
    """
    kinds = [kinds_of(fit) for fit in fits]
    if not kinds[0]:
        raise ValueError("fit must have components whose members can be listed, got a fit without such components")
    pairs: list[Any] = []
    also: list[Any] = [None]
    if len(fits) > 1:
        pairs, *also = compared(*kinds)
        kinds = shown_alike(kinds)
    found = [
        of_fit(fit, name, own, members, rows, keep)
        for fit, name, own, keep in zip(fits, names, kinds, also, strict=True)
    ]
    return {"fits": found, "pairs": pairs, "cells": cells_of(found)}


def of_fit(
    fit: FactorizationEstimator, name: str, kinds: list[Kind], members: int, rows: str, also: Any
) -> dict[str, Any]:
    """One fit; of its components along each axis ``also`` says what to keep besides the first members."""
    diagnostics, promise = fit.diagnostics(), promise_of(fit)
    facts = [*source_table(fit), *noise_table(fit), *facts_table(fit), ("parameters", parameters(fit))]
    return {
        "name": plain(name),
        "shape": fit._reader.data_in_words(),
        "promise": [promise.headline, *promise.paragraphs],
        "verdict": diagnostics.line,
        "headline": [plain(text) for text in headline_of(fit, diagnostics)],
        "trust": trust(diagnostics),
        "noIntervals": fit._reader.why_no_intervals,
        "chains": fit.posterior["posterior"].sizes["chain"],
        "weights": weights_in_words(fit),
        "merged": merged_in_words(fit),
        "facts": [[plain(each), plain(value)] for each, value in facts],
        "kinds": [of_kind(fit, kind, members, also and also[i]) for i, kind in enumerate(kinds)],
        "rows": rows_of(fit, rows, plurals(fit)),
        "bursts": of_bursts(fit),
    }


def plurals(fit: FactorizationEstimator) -> Mapping[str, str]:
    """What many entries of an axis are called."""
    return fit._layout(fit.model_.spec).plurals


def of_kind(fit: FactorizationEstimator, kind: Kind, members: int, also: Any) -> dict[str, Any]:
    """The components of one kind with their members along each axis."""
    part, table, many, beside = kind.part, kind.table, plurals(fit), beside_members(fit, kind.part.one)
    leaders = leading(fit, part.axes[0])
    columns = ["prevalence", *(["lower", "upper"] if "lower" in table else [])]
    components = [
        {
            "number": int(row["component"]),
            "name": plain(row.get("name", "")),
            "leading": leaders[int(row["component"])],
            "support": None if np.isnan(row["support"]) else short(row["support"])[0],
            "stable": not row["support"] <= STABLE,
            "share": short([row[column] for column in columns]),
            "beside": beside.get(int(row["component"]), []),
        }
        for _, row in table.iterrows()
    ]
    lists = [listed(each, table, members, also and also[i]) for i, each in enumerate(kind.along)]
    for found in lists:
        found["plural"] = many.get(found["axis"], f"{found['axis']}s" if len(lists) == 1 else "labels")
    words = {name: getattr(part, name) for name in ("one", "many", "whole", "measure")}
    words |= {"whyMore": why_more(fit, part, len(components))}
    return words | {"components": components, "lists": lists, "map": mapped(kind.along)}


def beside_members(fit: FactorizationEstimator, one: str) -> dict[int, list[Any]]:
    """[(heading, [(name, number in words), ..]), ..] of components of this kind, by number: effects, and time."""
    found: dict[int, list[Any]] = {}
    tables = []
    if fit.covariates_ is not None:
        contrasts = contrasts_in_points(fit)
        contrasts["pair"] = [pair_in_words(row) for row in contrasts.itertuples(index=False)]
        tables.append(("Covariates: coefficient", Effects(fit).table(), "term", "{:.2f}"))
        tables.append(("Covariates: difference of shares, in points", contrasts, "pair", "{:+.1f}"))
    if fit.dates_ is not None:
        tables.append(("Over time: expected share", Effects(fit).over_time(), "time", "{:.1%}"))
    for heading, table, by, form in tables:
        if table.columns[0] != one:
            continue
        for number, rows in table.groupby(one, sort=False):
            values = rows[[name for name in ENDS if name in rows]].itertuples(index=False)
            said = [[plain(str(name)), with_ends(each, form)] for name, each in zip(rows[by], values, strict=True)]
            found.setdefault(int(number), []).append([heading, said])
    if fit._n_upper:
        for number, rows in upper_by_member(fit).groupby("topic", sort=False):
            said = rows[["above", "share"]].to_numpy().tolist()
            found.setdefault(int(number), []).append(["Share of upper topics", said])
    return found


def of_bursts(fit: FactorizationEstimator) -> dict[str, Any] | None:
    """The dispersions of a fit in words, and those of all rows or columns if each has its own."""
    said = bursts_of(fit)
    if said is None:
        return None
    table = fit.dispersions(INTERVAL)
    axes = [name for name in table.columns if name not in DISPERSION_COLUMNS]
    numbers = [name for name in DISPERSION_COLUMNS if name in table]
    rows = [
        [plain(", ".join(str(row[axis]) for axis in axes)), *short([row[name] for name in numbers])]
        for _, row in table.iterrows()
    ]
    return {"said": said.said.removesuffix(" The largest are listed."), "axis": said.axis, "rows": rows if axes else []}


def cells_of(found: list[dict[str, Any]]) -> dict[str, str]:
    """Texts that a spreadsheet would compute, each with what stands for it in a CSV file."""
    texts = {label for fit in found for kind in fit["kinds"] for each in kind["lists"] for label in each["labels"]}
    texts |= {label for fit in found if fit["rows"] for label in fit["rows"]["labels"]}
    texts |= {row[0] for fit in found if fit["bursts"] for row in fit["bursts"]["rows"]}
    texts |= {fit["name"] for fit in found}
    return {text: cell(text) for text in sorted(texts) if cell(text) != text}
