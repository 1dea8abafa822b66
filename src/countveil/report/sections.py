"""Topics, communities and components as rows of numbers that the page shows."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.estimators import BlockModel, TensorModel, TopicModel
from countveil.estimators.base import FactorizationEstimator
from countveil.plotting.factors import members

MOST_BLOCKS = 12
DARKEST = 60.0  # per cent: dark text on it stays readable
NAMES_IN_OVERVIEW = 4


class Bar(NamedTuple):
    """A number with its interval, and where they are on a scale from 0 to 100."""

    label: str
    said: str
    interval: str
    middle: float
    low: float
    high: float


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
    share: Bar
    summary: str
    listings: list[Listing]


class Words(NamedTuple):
    """What things are called on the page."""

    one: str
    many: str
    of_what: str
    measure: str


WORDS: dict[type, Words] = {
    TopicModel: Words("topic", "topics", "all expected words", "probability of the word in the topic"),
    BlockModel: Words("community", "communities", "all expected messages", "share of the community"),
    TensorModel: Words("component", "components", "all expected counts", "share of the component"),
}


def words_of(fit: FactorizationEstimator) -> Words:
    """What the parts of a fit are called."""
    return WORDS.get(type(fit), Words("component", "components", "all expected counts", "share"))


def cards(fit: FactorizationEstimator, n: int) -> list[Card]:
    """Every component with its n strongest members, the largest first; none for a model that is not known by name.

    Raises:
        ValueError: n out of range.
    """
    if not isinstance(fit, TopicModel | BlockModel | TensorModel):
        return []
    modes: list[str | None] = [None]
    if isinstance(fit, TensorModel):
        modes = list(fit._layout(fit.model_.spec).dims_of(fit.model_.spec.output))
    tables = {mode: members(fit, n, mode=mode) for mode in modes}
    axis = {mode: axis_of(fit, mode) for mode in modes}
    shares = fit.prevalence()
    most = float(shares["upper"].max())
    name = words_of(fit).one
    found = []
    for row in shares.sort_values("prevalence", ascending=False, kind="stable").itertuples(index=False):
        k = row[0]
        lists = [
            listing(axis[mode], table[table["component"] == k], is_numbered(fit, axis[mode]))
            for mode, table in tables.items()
        ]
        share = bar(f"{name.capitalize()} {k}", row.prevalence, row.lower, row.upper, most)
        best = [b.label for b in lists[0].bars[:NAMES_IN_OVERVIEW]]
        if len(lists) > 1:
            best = [each.bars[0].label for each in lists]
        found.append(Card(int(k), f"part-{k}", share.label, share, ", ".join(best), lists))
    return found


def axis_of(fit: FactorizationEstimator, mode: str | None) -> str:
    """The axis of the members."""
    if isinstance(fit, TopicModel):
        return "word"
    return "actor" if mode is None else mode


def is_numbered(fit: FactorizationEstimator, axis: str) -> bool:
    """Whether an axis has numbers in place of names."""
    return bool(fit.posterior["posterior"][axis].to_numpy().dtype.kind in "iu")


def listing(axis: str, table: pd.DataFrame, numbered: bool) -> Listing:
    """A component's members along one axis, on a scale of their own."""
    most = float(max(table["upper"].max(), table["probability"].max()))
    bars = [
        bar(
            f"{axis} {row.member}" if numbered else str(row.member),
            row.probability,
            row.lower,
            row.upper,
            most,
        )
        for row in table.itertuples(index=False)
    ]
    return Listing(axis, numbered, bars)


def bar(label: str, middle: Any, low: Any, high: Any, most: float) -> Bar:
    """A share in per cent."""
    scale = 100.0 / most if most > 0.0 else 0.0
    places = [round(float(np.clip(value * scale, 0.0, 100.0)), 1) for value in (middle, low, high)]
    return Bar(label, percent(middle), f"{percent(low)} to {percent(high)}", *places)


def percent(value: Any) -> str:
    """Two digits or so; of next to nothing only that it is less than a tenth of a per cent."""
    hundred = 100.0 * float(value)
    if 0.0 < hundred < 0.1:
        return "<0.1%"
    return f"{hundred:.0f}%" if hundred >= 9.95 else f"{hundred:.1f}%"


def number(value: Any) -> str:
    """Three digits or so, never with a power of ten."""
    size = float(value)
    if 0.0 < size < 0.1:
        return "<0.1"
    return f"{size:,.0f}" if size >= 99.5 else f"{size:.3g}"


def block_table(fit: FactorizationEstimator) -> list[list[tuple[str, str, int]]]:
    """Expected counts between communities: (mean, interval, shade in per cent) by row and column; empty if too many."""
    if not isinstance(fit, BlockModel) or fit.blocks_.shape[0] > MOST_BLOCKS:
        return []
    draws = fit.posterior["posterior"]["pi"].to_numpy()
    low, high = np.quantile(draws.reshape(-1, *draws.shape[2:]), [0.05, 0.95], axis=0)
    mean = fit.blocks_
    shade = np.round(DARKEST * np.sqrt(mean / max(float(mean.max()), 1e-300))).astype(int)
    return [
        [
            (number(mean[c, d]), f"{number(low[c, d])} to {number(high[c, d])}", int(shade[c, d]))
            for d in range(len(mean))
        ]
        for c in range(len(mean))
    ]
