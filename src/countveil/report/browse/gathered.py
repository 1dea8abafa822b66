"""The content of the browse page: components of a fit, their places on the map, and a second fit for comparison."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from countveil.fit.base import FactorizationEstimator
from countveil.fit.effects import Effects
from countveil.fit.layers import upper_by_member
from countveil.fit.naming import leading, merged_in_words
from countveil.fit.results import DISPERSION_COLUMNS
from countveil.fit.weighting import weights_in_words
from countveil.inference.matching import LEAST_OVERLAP, STABLE, overlap
from countveil.privacy._text import cell, plain
from countveil.report.browse.listings import Along, Kind, kinds_of, listed, short, shown_alike
from countveil.report.browse.rows import rows_of
from countveil.report.page import facts_table, headline_of, noise_table, parameters, source_table, trust
from countveil.report.promise import promise_of
from countveil.report.sections import ENDS, bursts_of, contrasts_in_points, pair_in_words, why_more, with_ends

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
