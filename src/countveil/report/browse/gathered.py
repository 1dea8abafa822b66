"""Everything that the page shows of a fit, as it is put into the page."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from countveil.fit.base import FactorizationEstimator
from countveil.fit.dispersions import COLUMNS
from countveil.fit.effects import Effects
from countveil.fit.merging import merged_in_words
from countveil.fit.naming import leading
from countveil.fit.weighting import weights_in_words
from countveil.inference.matching import STABLE
from countveil.privacy._text import cell, plain
from countveil.report.browse.comparing import compared
from countveil.report.browse.listings import Kind, kinds_of, listed, short, shown_alike
from countveil.report.browse.mapped import mapped
from countveil.report.browse.rows import rows_of
from countveil.report.bursts import bursts_of
from countveil.report.page import facts_table, headline_of, noise_table, parameters, source_table, trust
from countveil.report.promise import promise_of
from countveil.report.sections import ENDS, contrasts_in_points, pair_in_words, why_more, with_ends

INTERVAL = 0.9


def gathered(fits: list[FactorizationEstimator], names: list[str], members: int, rows: str) -> dict[str, Any]:
    """The fits, one or two, and how their components go together.

    Raises:
        ValueError: two fits that cannot be compared, or none of whose components can be listed.
    """
    kinds = [kinds_of(fit) for fit in fits]
    if not kinds[0]:
        raise ValueError(
            "fit must have components whose members can be listed, got a fit without such components"
        )
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
        "verdict": diagnostics.verdict,
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
            said = [
                [plain(str(name)), with_ends(each, form)] for name, each in zip(rows[by], values, strict=True)
            ]
            found.setdefault(int(number), []).append([heading, said])
    return found


def of_bursts(fit: FactorizationEstimator) -> dict[str, Any] | None:
    """The dispersions of a fit in words, and those of all rows or columns if each has its own."""
    said = bursts_of(fit)
    if said is None:
        return None
    table = fit.dispersions(INTERVAL)
    axes = [name for name in table.columns if name not in COLUMNS]
    numbers = [name for name in COLUMNS if name in table]
    rows = [
        [plain(", ".join(str(row[axis]) for axis in axes)), *short([row[name] for name in numbers])]
        for _, row in table.iterrows()
    ]
    return {
        "said": said.said.removesuffix(" The largest are listed."),
        "axis": said.axis,
        "rows": rows if axes else [],
    }


def cells_of(found: list[dict[str, Any]]) -> dict[str, str]:
    """Texts that a spreadsheet would compute, each with what stands for it in a CSV file."""
    texts = {
        label for fit in found for kind in fit["kinds"] for each in kind["lists"] for label in each["labels"]
    }
    texts |= {label for fit in found if fit["rows"] for label in fit["rows"]["labels"]}
    texts |= {row[0] for fit in found if fit["bursts"] for row in fit["bursts"]["rows"]}
    texts |= {fit["name"] for fit in found}
    return {text: cell(text) for text in sorted(texts) if cell(text) != text}
