"""Tables and bars of the report page: tuning, components, effects, dispersions, and the largest hidden counts."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.data.observations import Observations
from countveil.fit.base import FactorizationEstimator
from countveil.fit.counts_table import HIDDEN
from countveil.fit.naming import titled
from countveil.fit.reading import Network
from countveil.fit.results import DISPERSION_COLUMNS
from countveil.inference.diagnostics import Diagnostics
from countveil.inference.matching import STABLE
from countveil.laws.counts import NegativeBinomial
from countveil.laws.noise import AnyMechanismNoise
from countveil.models.layout import Part
from countveil.report.pictures import Picture, hidden_picture

MOST_ROWS = 40  # of a table; longer ones stay in ``fit.diagnostics()``
HEADS = {
    "chain": "chain",
    "starts": "starts to choose from",
    "start": "start taken",
    "log_likelihood_start": "log-likelihood at the start",
    "log_likelihood_tuned": "after tuning",
    "log_likelihood_mean": "mean of the draws",
    "log_likelihood_last": "last draw",
    "weight": "weight",
    "race": "kind",
    "rounds": "rounds",
    "score": "score",
    "taken": "taken",
    "move": "move",
    "sweep": "ended after sweep",
    "kind": "what it did",
    "before": "components before merging",
    "after": "after",
    "log_likelihood": "log-likelihood then",
    "gain": "gain",
}
"""Columns of the diagnostics' tables, in words."""


class TuningTable(NamedTuple):
    """A table with a caption."""

    caption: str
    heads: list[str]
    rows: list[list[str]]


def tuning_tables(found: Diagnostics) -> list[TuningTable]:
    """Chains, the starts that they chose among and their moves, as far as the fit has these and they are short."""
    tables = (("Chains", found.chains), ("Starts", found.starts), ("Moves", found.moves))
    return [
        TuningTable(
            caption,
            [HEADS.get(name, name.replace("_", " ")) for name in table],
            [[cell(name, value) for name, value in row.items()] for _, row in table.iterrows()],
        )
        for caption, table in tables
        if table is not None and 0 < len(table) <= MOST_ROWS
    ]


def cell(name: str, value: object) -> str:
    """A value in words or with as many digits as it needs."""
    if pd.isna(value):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if not isinstance(value, int | float | np.number):
        return str(value)
    whole = name.startswith("log_likelihood") or name == "gain" or float(value).is_integer()
    return f"{float(value):.0f}" if whole else f"{float(value):.3g}"


MOST_SHOWN = 20
MOST_CELLS = 10_000  # whose laws take some seconds


class HiddenCounts(NamedTuple):
    """What the page shows of counts that have no report because of what they are."""

    counts: int
    shown: int
    picture: Picture | None  # None where there are too many counts


def hidden_counts(fit: FactorizationEstimator, data: Observations) -> HiddenCounts | None:
    """Those with the largest means, from data over the fit's axes; None where no count is hidden."""
    if not isinstance(data.noise, AnyMechanismNoise):
        return None
    if data.reports.size > MOST_CELLS:
        n = int((np.isnan(data.noise.value_c)[np.maximum(data.reports, 0)] & (data.reports > 0)).sum())
        return HiddenCounts(n, 0, None) if n else None
    table = fit.counts_table(data)
    hidden = table[table["kind"] == HIDDEN]
    if hidden.empty:
        return None
    largest = hidden.nlargest(MOST_SHOWN, "mean")
    return HiddenCounts(len(hidden), len(largest), hidden_picture(largest))


SHOWN = 8  # of many dispersions, those with the largest p


class Bursts(NamedTuple):
    """What is said of a fit with negative binomial counts, and rows of (name, p with its interval, variance / mean)."""

    said: str
    axis: str  # what the rows are of; empty where there is one p
    rows: list[tuple[str, str, str]]


def bursts_of(fit: FactorizationEstimator) -> Bursts | None:
    """The dispersions of a fit; None if its counts are Poisson."""
    if fit.model_.likelihood.name != NegativeBinomial.name:
        return None
    table, poisson = fit.dispersions(), "for a Poisson count the two are equal"
    if len(table) == 1:
        row = table.iloc[0]
        known = "" if fit.model_.likelihood.parameter_axes else ", which was given"
        ratio = f"{row['variance_over_mean']:.3g} times its mean"
        said = f"The dispersion p is {p_of(row)}{known}: the variance of a count is {ratio}; {poisson}."
        return Bursts(said, "", [])
    axes = [name for name in table.columns if name not in DISPERSION_COLUMNS]
    most = table.sort_values("p", ascending=False, kind="stable").head(SHOWN)
    least, middle, greatest = (f"{value:.2f}" for value in table["p"].quantile([0.0, 0.5, 1.0]))
    said = (
        f"Each {' and '.join(axes)} has its own dispersion p, from {least} to {greatest}, median {middle}. "
        f"The variance of a count is 1 / (1 - p) times its mean; {poisson}. The largest are listed."
    )
    return Bursts(said, " and ".join(axes), [row_of(row, axes) for _, row in most.iterrows()])


def row_of(row: pd.Series, axes: list[str]) -> tuple[str, str, str]:
    """The label, p and the ratio of variance and mean."""
    return ", ".join(str(row[axis]) for axis in axes), p_of(row), f"{row['variance_over_mean']:.3g}"


def p_of(row: pd.Series) -> str:
    """p with its interval, if it has one."""
    ends = f" ({row['lower']:.2f} to {row['upper']:.2f})" if "lower" in row else ""
    return f"{row['p']:.2f}{ends}"


MAX_BLOCKS = 12  # communities in the table: more would not fit on the page
DARKEST = 60.0  # per cent: dark text on it stays readable
NAMES_IN_OVERVIEW = 4
IN_ALL = 1.0 - 1e-9
ENDS = "estimate", "lower", "upper"


class Bar(NamedTuple):
    """A number with its interval, and where they are on a scale from 0 to 100; no interval is empty."""

    label: str
    said: str
    interval: str
    middle: float
    low: float | None
    high: float | None


class Listing(NamedTuple):
    """Ranked members along one axis."""

    heading: str
    numbered: bool  # members have no names
    bars: list[Bar]


class Card(NamedTuple):
    """One component: its share, and its strongest members along each axis."""

    number: int
    anchor: str
    title: str
    support: str  # in words; empty where it needs none: in all chains, or in a fit of one
    stable: bool
    share: Bar
    summary: str
    listings: list[Listing]


class Kind(NamedTuple):
    """All components of one kind, in the order of ``support``."""

    part: Part
    anchor: str
    cards: list[Card]
    others: list[Card]  # that at most half of the chains have
    why_more: str  # than each chain has; empty where there are no more


def kinds(fit: FactorizationEstimator, n: int) -> list[Kind]:
    """Every kind of component with its n strongest members; none for a model whose components cannot be listed.

    Raises:
        ValueError: n out of range.
    """
    found = []
    for i, part in enumerate(fit._reader.kinds):
        every = cards(fit, part, n, f"part-{i}" if i else "part")
        stable, others = ([card for card in every if card.stable is wanted] for wanted in (True, False))
        anchor = f"parts-{i}" if i else "parts"
        found.append(Kind(part, anchor, stable, others, why_more(fit, part, len(every))))
    return found


def cards(fit: FactorizationEstimator, part: Part, n: int, anchor: str = "part") -> list[Card]:
    """Every component that a chain found, with its n strongest members along each axis, in the order of ``support``.

    Raises:
        ValueError: n out of range.
    """
    tables = {axis: fit.parts.supported(axis, n) for axis in part.axes}
    shares = fit.parts.support(axis=part.axes[0])
    most = largest(shares, "prevalence")
    found = []
    for row in shares.itertuples(index=False):
        k = row.component
        lists = [
            listing(axis, table[table["component"] == k], is_numbered(fit, axis), largest(table, "probability"))
            for axis, table in tables.items()
        ]
        share = bar(titled(part.one.capitalize(), k, getattr(row, "name", "")), row.prevalence, row, most)
        best = [b.label for b in lists[0].bars[:NAMES_IN_OVERVIEW]]
        if len(lists) > 1:
            best = [each.bars[0].label for each in lists]
        support = f"support {percent(row.support)}" if row.support < IN_ALL else ""
        stable = not row.support <= STABLE
        card = Card(int(k), f"{anchor}-{k}", share.label, support, stable, share, ", ".join(best), lists)
        found.append(card)
    return found


def why_more(fit: FactorizationEstimator, part: Part, listed: int) -> str:
    """Why more components are listed than the model has; empty where they are not."""
    asked = fit.posterior["posterior"].sizes[fit._reader.listed_along(part.axes[0]).component]
    if listed <= asked:
        return ""
    return (
        f"{listed} {part.many} are listed although the model has {asked}: chains found different {part.many}, and "
        f"{part.many} of two chains count as the same only if they overlap by at least half."
    )


def is_numbered(fit: FactorizationEstimator, axis: str) -> bool:
    """Whether an axis has numbers in place of names."""
    return bool(fit.posterior["posterior"][axis].to_numpy().dtype.kind in "iu")


def listing(axis: str, table: pd.DataFrame, numbered: bool, most: float) -> Listing:
    """A component's members along one axis, on a scale that ends at ``most``."""
    bars = [
        bar(f"{axis} {row.member}" if numbered else str(row.member), row.probability, row, most)
        for row in table.itertuples(index=False)
    ]
    return Listing(axis, numbered, bars)


def largest(table: pd.DataFrame, column: str) -> float:
    """The largest value of a column or upper end of its intervals: the end of the scale."""
    return float(table[[column, "upper"] if "upper" in table else [column]].max(axis=None))


def bar(label: str, middle: Any, row: Any, most: float) -> Bar:
    """A share in per cent, with the interval of its row where the table has any."""
    scale = 100.0 / most if most > 0.0 else 0.0
    ends = (row.lower, row.upper) if hasattr(row, "lower") else ()
    place, *places = (round(float(np.clip(value * scale, 0.0, 100.0)), 1) for value in (middle, *ends))
    low, high = places or (None, None)
    return Bar(label, percent(middle), " to ".join(percent(end) for end in ends), place, low, high)


def percent(value: Any) -> str:
    """A share in per cent, with about two digits; of less than a tenth of a per cent only that."""
    hundred = 100.0 * float(value)
    if 0.0 < hundred < 0.1:
        return "<0.1%"
    return f"{hundred:.0f}%" if hundred >= 9.95 else f"{hundred:.1f}%"


def number(value: Any) -> str:
    """A number with about three digits, never with a power of ten."""
    size = float(value)
    if 0.0 < size < 0.1:
        return "<0.1"
    return f"{size:,.0f}" if size >= 99.5 else f"{size:.3g}"


def block_table(network: Network, intervals: bool) -> list[list[tuple[str, str, int]]]:
    """Expected counts between communities: (mean, interval, shade in per cent) by row and column; empty if too many.

    Without ``intervals``, those are empty.
    """
    mean = network.blocks
    if len(mean) > MAX_BLOCKS:
        return []
    low, high = np.quantile(network.block_draws, [0.05, 0.95], axis=0)
    shade = np.round(DARKEST * np.sqrt(mean / max(float(mean.max()), 1e-300))).astype(int)
    return [
        [
            (number(mean[c, d]), f"{number(low[c, d])} to {number(high[c, d])}" if intervals else "", int(shade[c, d]))
            for d in range(len(mean))
        ]
        for c in range(len(mean))
    ]


def effect_rows(fit: Any) -> list[tuple[str, str, str]]:
    """(component, term, coefficient in words) of every component and term of a fit with covariates."""
    return [] if fit.covariates_ is None else rows_in_words(fit, fit.effects.table(), lambda row: row.term, "{:.2f}")


def contrast_rows(fit: Any) -> list[tuple[str, str, str]]:
    """(component, values that are compared, points in words) of every contrast that covariates suggest."""
    if fit.covariates_ is None:
        return []
    return rows_in_words(fit, contrasts_in_points(fit), pair_in_words, "{:+.1f}")


def contrasts_in_points(fit: Any) -> pd.DataFrame:
    """``contrasts``, in percentage points."""
    found = fit.effects.contrasts()
    ends = [name for name in ENDS if name in found]
    found[ends] *= 100.0
    return found


def pair_in_words(row: Any) -> str:
    """The values of a covariate that a contrast compares."""
    one, other = (each if isinstance(each, str) else f"{each:.10g}" for each in (row.value, row.other))
    return f"{row.covariate}: {one} less {other}"


def rows_in_words(
    fit: Any, table: pd.DataFrame, name_of: Callable[[Any], Any], form: str
) -> list[tuple[str, str, str]]:
    """(component, name, estimate in words) of every row of a table of effects."""
    names, one = fit._reader.names_of(), table.columns[0]
    rows = []
    for number, row in zip(table[one], table.itertuples(index=False), strict=True):
        said = with_ends((getattr(row, name) for name in ENDS if hasattr(row, name)), form)
        rows.append((titled(one.capitalize(), number, names.get(number, "")), str(name_of(row)), said))
    return rows


def with_ends(values: Iterable[float], form: str) -> str:
    """A number, and the ends of its interval if there are any."""
    middle, *ends = map(form.format, values)
    return f"{middle} ({ends[0]} to {ends[1]})" if ends else middle
