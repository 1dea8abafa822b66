"""Rows, columns and levels that are totals of others: by their names, or by their sums."""

import re
from collections.abc import Sequence
from math import log, prod
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.labels import SEPARATOR

LAST_WORDS = (
    "total, totals, gesamt, insgesamt, zusammen, summe, totale, totaal, totalt, i alt, yhteensä, toplam, "
    "razem, ogółem, celkem, spolu, összesen, együtt, ukupno, skupaj, samtals, kokku, kopā, iš viso, всего, "
    "итого, усього, разом, общо, укупно, σύνολο, συνολο, 合計, 合计, 总计, 總計, 総計, 総数, 총계, 합계, 계"
).split(", ")
"""Names of totals, also at the end of a label."""
NAMES = frozenset(LAST_WORDS) | frozenset(
    (
        "all, sum, overall, grand total, subtotal, sub-total, both sexes, all ages, ensemble, tous, toutes, "
        "todos, ambos sexos, beide geschlechter, _t, suma, 計, 计, 소계, mindösszesen, les deux sexes, ambos os "
        "sexos, maschi e femmine, begge kjønn, båda könen, оба пола, jumlah, pavisam, alls, men and women, males "
        "and females"
    ).split(", ")
)
"""What agencies call totals, in lower case."""
SEXES = re.compile(
    r"(?<![^\W\d_])(males?|females?|m[ae]n|wom[ae]n|boys?|girls?|männer|frauen|männlich|weiblich|maennlich|hommes?|femmes?"
    r"|masculins?|féminins?|garçons?|filles?|hombres?|mujeres?|varones|masculino|femenino|homens|mulheres|feminino|maschi"
    r"|femmine|uomini|donne|menn|kvinner|mænd|kvinder|män|kvinnor|miehet|naiset|karlar|konur|mannen|vrouwen|mężczyźni"
    r"|kobiety|muži|ženy|moški|ženske|muškarci|žene|férfi(ak)?|nők?|vyrai|moterys|vīrieši|sievietes|mehed|naised"
    r"|erkek|kadın|мужчины|женщины|чоловіки|жінки|[άα]ρρενες|θήλεις|άνδρες|γυναίκες|男[性子]?|女[性子]?|남자?|여자?)"
    r"(?![^\W\d_])",
    re.IGNORECASE,
)
YEARS = re.compile(r"([12][0-9]{3}) ?[-–—/] ?([12][0-9]{3})")
PERSONS = frozenset(("persons", "people", "personen", "personer", "personnes", "persone", "personas", "pessoas"))
"""What totals are called beside men and women."""
BEGINNINGS = re.compile(
    r"(total|all(?! other)|gesamt|insgesamt|totale|totaal|ogółem|celkem|toplam|összesen|σύνολο|συνολο|всего|итого)"
    r"[ ,:(_-]",
    re.IGNORECASE,
)
ENDINGS = re.compile(rf"(.*[\W_])?sub[ -]?totals?|.*[\w)][ ,:_-]+({'|'.join(LAST_WORDS)})", re.IGNORECASE)
"""Names of totals in several words; those that begin with "all" may be others."""
PARTS = re.compile(
    r"[\W\d]*(of which|of whom|davon|darunter|dont(?! know| care)|di cui|de l[oa]s cuales|d[oa]s quais|waarvan|herav"
    r"|hvorav|därav|joista|w tym|z tego|z toho|ebből|в том числе|из них|うち)[ :,]+\S.*",
    re.IGNORECASE,
)
"""Names of parts of another line."""
SURE = log(1000.0)  # of the evidence that sums are no coincidence
LIKELY = log(50.0)  # of one sum, which others confirm
MOST_LINES = 500  # among which sums of neighbours are sought
MOST_CELLS = 10**7  # of a long table whose sums are looked at


class TotalLine(NamedTuple):
    """A row, a column or a level that holds totals."""

    place: int
    label: str
    named: bool  # by its name, and not by its sums only
    of: str = "the others"  # whose sum it is
    nearly: bool = False  # of counts that were rounded, or have noise

    @property
    def is_partial(self) -> bool:
        """Whether it is a total of some of the others only."""
        return self.of != "the others"

    def __str__(self) -> str:
        label = repr(self.label)[:60] if self.label else "(empty)"
        return label + ("" if self.named else f" ({'nearly ' * self.nearly}the sum of {self.of})")


def total_lines(
    values: Any, labels: Sequence[str] | None, words: Sequence[str] = (), nearly: bool = True
) -> list[TotalLine]:
    """The rows of values (n, m) that are totals of the others; NaN is a value that is not known.

    A row with the name of totals is one if it is half as large as all others together, or more, where it is known: a
    word of a vocabulary may be called "all"; and a row called "T", which may be the treated, only if no other is
    larger. Those in ``words``, and those whose name ends as in "North total", are totals in any case. Any other row is
    one if all its values are the sums of the others', and too many are for a coincidence. Where some of the others are
    hidden, a sum may be larger than what is shown; it is evidence if it is larger by less than the smallest value shown
    for each of these. Where no row is an exact sum, one may be so ``nearly``.
    """
    n, named = values.shape[0], []
    values = values.tocsr() if sp.issparse(values) else values
    sums = row_sums(values)
    if labels is not None:
        stated = {word.strip().casefold() for word in words}
        asked = [place for place, label in enumerate(labels) if parts_of(label) & stated or has_ending(label)]
        called = [
            place
            for place, label in enumerate(labels)
            if place not in asked
            and (
                has_name(label)
                or (label in ("T", "t") and is_largest(values, place))
                or spans(label, labels)
                or is_of_sexes(values, place, labels)
            )
        ]
        rest = np.ones(n, bool)
        rest[asked + called] = False
        weighty = [p for p in called if SEPARATOR in labels[p] or not sums[p] or is_weighty(values, p, rest)]
        named = sorted(asked + weighty)
        named = named if len(named) < n else []  # of nothing in the table
    rest = np.ones(n, bool)
    rest[named] = False
    totals = []
    for place in named:
        label = "" if labels is None else labels[place]
        partial = has_ending(label) and sums[place] < sums[rest].sum()
        totals.append(TotalLine(place, label, True, "some others" if partial else "the others"))
    places = np.flatnonzero(rest)
    of_all = summed_rows(values[places], sums[places])
    of_parts: dict[int, str] = {}
    if not sp.issparse(values) and places.size - len(of_all) <= MOST_LINES:
        left = np.delete(places, of_all)
        parts = summed_parts(values[left], None if labels is None else [labels[place] for place in left.tolist()])
        of_parts = {int(left[place]): f"{n} others" for place, n in parts.items()}
        if of_parts and not of_all:  # the grand total of what has subtotals
            kept = np.setdiff1d(left, list(of_parts))
            of_parts |= {int(kept[place]): "the others" for place in summed_rows(values[kept], sums[kept])}
    of_parts |= {int(places[place]): "the others" for place in of_all}
    for line, what in of_parts.items():
        label = f"number {line + 1}" if labels is None else labels[line]
        totals.append(TotalLine(line, label, False, what))
    if nearly and not totals and not sp.issparse(values):
        totals = [
            TotalLine(place, f"number {place + 1}" if labels is None else labels[place], False, nearly=True)
            for place in nearly_summed_rows(values)
        ]
    return sorted(totals)


def row_sums(values: Any) -> np.ndarray:
    """(n,) of what is known."""
    return np.asarray(values.sum(axis=1)).ravel() if sp.issparse(values) else np.nansum(values, axis=1)


def is_largest(values: Any, place: int) -> bool:
    """Whether hardly any column has a larger value in another row; noise may make a few."""
    others = np.arange(values.shape[0]) != place
    if not others.any():
        return False
    row, rest = values[[place]], values[others]
    if sp.issparse(values):
        row, largest = row.toarray(), rest.max(axis=0).toarray()
    else:
        largest = np.fmax.reduce(rest, axis=0)
    return bool((largest > row).mean() <= 0.1)


def is_weighty(values: Any, place: int, others: np.ndarray) -> bool:
    """Whether a row is half as large as all others together, or more, where it is known."""
    row, rest = values[[place]], values[others]
    if not sp.issparse(values):
        known = ~np.isnan(row).ravel()
        row, rest = row[:, known], rest[:, known]
    return bool(2.0 * row_sums(row).sum() >= row_sums(rest).sum())


def parts_of(label: str) -> set[str]:
    """A label in lower case, and its parts where it joins several."""
    return {part.strip().casefold() for part in (label, *label.split(SEPARATOR))}


def spans(label: str, labels: Sequence[str]) -> bool:
    """Whether a label is a range of years of which the first and the last are labels, too."""
    ends = YEARS.fullmatch(label)
    return ends is not None and set(ends.groups()) <= set(labels)


def is_of_sexes(values: Any, place: int, labels: Sequence[str]) -> bool:
    """Whether a row of persons is beside men and women, and hardly ever smaller: all three may be words of texts."""
    if labels[place].casefold() not in PERSONS:
        return False
    sexes = [other for other, label in enumerate(labels) if SEXES.fullmatch(label)]
    return len(sexes) > 1 and is_largest(values[[*sexes, place]], len(sexes))


def is_part(label: str) -> bool:
    """Whether a label says that another line contains this one."""
    return any(map(PARTS.fullmatch, label.split(SEPARATOR)))


def has_name(label: str) -> bool:
    """Whether a label, or a part of it, is a name of totals."""
    begins = any(BEGINNINGS.match(part) for part in label.split(SEPARATOR))
    return bool(parts_of(label) & NAMES) or begins or has_ending(label)


def has_ending(label: str) -> bool:
    """Whether a label, or a part of it, ends as the name of a total of some rows does."""
    return any(ENDINGS.fullmatch(part.strip()) for part in label.split(SEPARATOR))


def summed_rows(values: Any, sums: np.ndarray) -> list[int]:
    """The places of rows that are the sums of all others."""
    if values.shape[0] < 3:
        return []
    if sp.issparse(values):
        candidates = np.flatnonzero((2.0 * sums == sums.sum()) & (sums > 0))
        dense = {int(place): values[[place]].toarray().ravel() for place in candidates}
        whole = np.asarray(values.sum(axis=0)).ravel().astype(float)
        hidden, step = np.zeros(whole.size), 0.0
    else:
        gone = np.isnan(values)
        positive = values[values > 0]
        step = float(positive.min()) if gone.any() and positive.size else 0.0
        whole, hidden = np.nansum(values, axis=0), gone.sum(axis=0)
        dense = {place: values[place] for place in np.flatnonzero(4.0 * sums > sums.sum()).tolist()}
    totals = []
    for place, row in dense.items():
        known = ~np.isnan(row)
        gap, room = (2.0 * row - whole)[known], (hidden * step)[known]
        if not known.any() or (gap < 0).any() or (gap[hidden[known] == 0] > 0).any():
            continue
        fits = gap <= room  # counts that are hidden for the sake of others may be of any size
        evidence = np.maximum(np.log((row[known] + 1.0) / (room + 1.0)), 0.0) * fits
        if (evidence > 0).sum() > 1 and evidence.sum() > SURE:
            totals.append(place)
    return totals


def nearly_summed_rows(values: np.ndarray) -> list[int]:
    """The places of rows that are closer to the sums of all others than separate counts are by chance.

    The difference of a row and the others' sum has at least the variance of Poisson counts, even if both are equal on
    average. Totals that were rounded, or that have noise, differ by a few steps in every column. The evidence is the
    ratio of the two densities: uniform up to the largest difference, and the largest of a normal. Columns with an
    unknown value are none.
    """
    known = values[:, ~np.isnan(values).any(axis=0)]
    sums, whole = known.sum(axis=1), known.sum(axis=0)
    half = np.flatnonzero(np.abs(2.0 * sums - sums.sum()) < 0.1 * sums.sum())
    if known.shape[0] < 3 or known.shape[1] < 2 or not half.size or not (whole > 0).all():
        return []
    is_whole = (known == np.floor(known)).all()
    step = float(np.gcd.reduce(known.astype(np.int64), axis=None)) if is_whole else 1.0
    gap = np.abs(2.0 * known[half] - whole)
    width = 2.0 * gap.max(axis=1, keepdims=True) + step
    evidence = np.log(np.sqrt(2.0 * np.pi * whole) / width).sum(axis=1)
    return half[evidence > SURE + log(len(known))].tolist()


def summed_parts(values: np.ndarray, labels: Sequence[str] | None) -> dict[int, int]:
    """The places of rows that are the sums of some, and of how many: of the rows just before or after, or by label.

    A row "North" is one of "North, rural" and "North, urban" wherever they are. Only columns without an unknown value
    are evidence.
    """
    n = values.shape[0]
    candidates: list[tuple[int, list[int]]] = []
    by_label: set[int] = set()
    for place in range(n) if n > 2 else ():
        if labels is not None and labels[place]:
            begins = re.compile(re.escape(labels[place]) + r"[\W_]", re.IGNORECASE)
            parts = [other for other in range(n) if other != place and begins.match(labels[other])]
            if len(parts) > 1 and is_sum(values, place, parts):
                candidates.append((place, parts))
                by_label.add(place)
                continue
        for step in (-1, 1):
            sums, parts, taken = np.zeros(values.shape[1]), [], place + step
            while 0 <= taken < n and not (sums > values[place]).any():
                sums, parts = sums + np.nan_to_num(values[taken]), [*parts, taken]
                if len(parts) > 1 and is_sum(values, place, parts):
                    candidates.append((place, parts))
                    break
                taken += step
    found: dict[int, int] = {}
    evidence = 0.0
    taken_rows: set[int] = set()
    for place, parts in candidates:
        if place not in found and place not in taken_rows and not taken_rows & set(parts):
            found[place] = len(parts)
            taken_rows |= {place, *parts}
            evidence += surprise(values, place, parts) - log(4.0 * n)
    sure = evidence > SURE or (len(taken_rows) >= n - 1 and len(found) > 1)
    return found if sure else {place: k for place, k in found.items() if place in by_label}


def is_sum(values: np.ndarray, place: int, parts: Sequence[int]) -> bool:
    """Whether a row has the sums of others, none of them negative, and is large enough for that to be likely."""
    row, block = values[place], values[list(parts)]
    sums, known = np.nansum(block, axis=0), ~np.isnan(block).any(axis=0)
    return (
        not ((sums > row).any() or (sums < row)[known].any() or (block < 0).any())
        and surprise(values, place, parts) > LIKELY
    )


def surprise(values: np.ndarray, place: int, parts: Sequence[int]) -> float:
    """The evidence that a sum is no coincidence, by its size in columns without an unknown value."""
    row = values[place][~np.isnan(values[[place, *parts]]).any(axis=0)]
    return float(np.log(row + 1.0).sum())


def total_levels(
    frame: pd.DataFrame, axes: Sequence[str], values: np.ndarray, words: Sequence[str] = ()
) -> dict[str, list[TotalLine]]:
    """The levels of every axis of a long table (rows,) that are totals, as ``total_lines`` says, or have no name."""
    coded = [pd.factorize(frame[axis]) for axis in axes]
    shape = tuple(len(levels) for _, levels in coded)
    totals: dict[str, list[TotalLine]] = {}
    if prod(shape) > MOST_CELLS:
        for axis, (_, levels) in zip(axes, coded, strict=True):
            named_levels = [
                TotalLine(i, str(n), True) for i, n in enumerate(levels) if not n or parts_of(str(n)) & NAMES
            ]
            totals |= {axis: named_levels} if named_levels else {}
        return totals
    table = np.full(shape, np.nan)
    table[tuple(codes for codes, _ in coded)] = values
    for place, (axis, (_, levels)) in enumerate(zip(axes, coded, strict=True)):
        names = [str(level) for level in levels]
        others = tuple(
            [i for i, n in enumerate(map(str, other)) if n and not has_name(n)] if at != place else range(len(names))
            for at, (_, other) in enumerate(coded)
        )
        inner = table[np.ix_(*others)] if all(map(len, others)) else table
        by_level = np.moveaxis(inner, place, 0).reshape(len(names), -1)
        empty = [TotalLine(i, "", True) for i, name in enumerate(names) if not name]
        rest = [i for i, name in enumerate(names) if name]
        lines = [
            line._replace(place=rest[line.place])
            for line in total_lines(by_level[rest], [names[i] for i in rest], words)
        ]
        if len(lines) + len(empty) < len(names) and (empty or lines):
            totals[axis] = sorted([*empty, *lines])
    return totals


def split_levels(
    frame: pd.DataFrame, axes: Sequence[str], value: str, levels: dict[str, list[TotalLine]]
) -> tuple[np.ndarray, list[pd.DataFrame]]:
    """(rows that are of no total, tables of totals by the axes that are left) of a long table."""
    of = {axis: frame[axis].isin([line.label for line in levels.get(axis, ())]).to_numpy() for axis in axes}
    kinds = sum(of[axis].astype(np.int64) << place for place, axis in enumerate(axes))
    tables = []
    for kind in np.unique(kinds[kinds > 0]).tolist():
        left = [axis for place, axis in enumerate(axes) if not kind >> place & 1]
        tables.append(frame.loc[kinds == kind, [*left, value]].reset_index(drop=True))
    return kinds == 0, tables


def refuse_totals(
    path: Any, values: Any, row_labels: Sequence[str] | None, column_labels: Sequence[str] | None
) -> None:
    """Refuse an owner's counts with totals among them: one event would change several.

    Raises:
        ValueError: some, by their labels. No count is shown.
    """
    if values.dtype.kind not in "iuf":
        return
    if not sp.issparse(values):
        values = np.asarray(values, dtype=np.float64)
    lines = [f"row {line}" for line in total_lines(values, row_labels, nearly=False)]
    lines += [f"column {line}" for line in total_lines(values.T, column_labels, nearly=False)]
    if lines:
        raise ValueError(
            f"{path} must hold no totals, got {', '.join(lines[:6])}: one event would change several counts, and the "
            "promise would not hold. Leave them out; rename anything that is not a total"
        )
