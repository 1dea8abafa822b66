"""Figures as images inside the page: SVG in a data URL, so that nothing in a label can run."""

import base64
import io
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.fit.base import FactorizationEstimator
from countveil.fit.predictive_checks import Check
from countveil.fit.reading import Network
from countveil.plotting import block_matrix, network, prevalence_over, style, trace

MOST_TOPICS = 12  # in the picture of topics over time


class Picture(NamedTuple):
    """An image, and what it shows in words for those who cannot see it."""

    source: str
    alt: str
    width: int  # in CSS pixels, below which its text would be too small
    height: int
    heat: bool = False  # its shades mean numbers, so that no page may turn its lightness round


def picture(draw: Callable[[Any], Any], alt: str, width: float, height: float) -> Picture:
    """What ``draw`` draws on axes of this size in inches, the same bytes every time."""
    figure = style.new_figure(width, height)
    draw(figure.subplots())
    return picture_of(figure, alt)


def picture_of(figure: Any, alt: str) -> Picture:
    """A figure as an image, the same bytes every time."""
    import matplotlib as mpl

    file = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "countveil"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    source = "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode("ascii")
    width, height = figure.get_size_inches()
    return Picture(source, alt, round(96 * width), round(96 * height))


def trace_picture(fit: FactorizationEstimator) -> Picture:
    """The chains of a sampler, or the objective of an optimiser."""
    sampled = "optimisation" not in fit.posterior.children
    alt = (
        "Log-likelihood of the reports, draw by draw, one line for each chain. Chains that agree lie on top of each "
        "other and show no trend."
        if sampled
        else "The objective by iteration. It rises and levels off where the method has converged."
    )
    return picture(lambda ax: trace(fit, ax=ax), alt, 6.6, 2.4)


def over_time_picture(fit: Any) -> Picture | None:
    """The largest topics over time, if documents have dates."""
    if fit.dates_ is None:
        return None
    axes = prevalence_over(fit, fit.parts.prevalences().nlargest(MOST_TOPICS, "prevalence")["topic"].sort_values())
    shown = [ax for ax in axes.flat if ax.get_visible()]
    said = "; ".join(" ".join(ax.get_title().split()) for ax in shown)
    first, *_, last = fit.dates_.names
    alt = f"Expected share of a document from {first} to {last}, one curve a topic: {said}."
    return picture_of(shown[0].figure, alt)


def network_pictures(fit: FactorizationEstimator, found: Network) -> list[Picture]:
    """The heat map and the network of communities."""
    n, one, many = len(found.actors), found.part.one, found.part.many
    heat = (
        f"Heat map of the expected counts between {n} actors, ordered by {one}. Bright squares on the diagonal are "
        f"{many} whose members are often in contact; bright squares off it join two {many}."
    )
    net = (
        f"Network of {n} actors on a circle, the members of a {one} side by side, with the strongest expected "
        f"contacts as lines. The members are listed {one} by {one} in the tables."
    )
    return [
        picture(lambda ax: block_matrix(fit, ax=ax), heat, 6.8, 5.8)._replace(heat=True),
        picture(lambda ax: network(fit, layout="circle", ax=ax), net, 7.2, 7.4),
    ]


def hidden_picture(table: pd.DataFrame) -> Picture:
    """Medians and intervals of some counts, which ``fit.counts_table`` listed, as dots."""
    names = [
        " | ".join(map(str, cell))
        for cell in table.iloc[:, : table.columns.get_loc("kind")].filter(regex="^(?!report)").to_numpy()
    ]
    middle, n = table["median"].to_numpy(), len(table)

    def draw(ax: Any) -> None:
        y = np.arange(n)
        if "lower" in table:
            ax.hlines(y, table["lower"], table["upper"], color=style.SKY, linewidth=5, label="90% interval")
        ax.plot(middle, y, "o", color=style.BLUE, markersize=6, label="median")
        ax.set_yticks(y, [style.plain(name, 40) for name in names], fontsize=8)
        ax.set_ylim(n - 0.4, -0.6)
        ax.set_xlim(left=0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("true count")
        ax.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
        style.tidy(ax, "x")

    shown = "Medians and 90% intervals" if "lower" in table else "Medians"
    alt = f"{shown} of the {n} largest hidden counts, the largest first."
    return picture(draw, alt, 6.6, 1.1 + 0.24 * n)


def check_picture(found: Check) -> Picture:
    """How many cells had each report, against simulated releases."""

    def draw(ax: Any) -> None:
        seen, places = found.seen, np.arange(len(found.labels))
        ax.vlines(
            places, np.maximum(found.low, 0.3), np.maximum(found.high, 0.3), color=style.SKY, linewidth=9,
            label=f"95% of simulated {found.release}s",
        )  # fmt: skip
        shown = seen > 0
        ax.plot(places[shown], seen[shown], "D", color=style.VERMILION, markersize=5, label=f"the {found.release}")
        ax.set_xticks(places, found.labels, fontsize=8)
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.5)
        ax.set_xlabel(found.report)
        ax.set_ylabel("cells")
        ax.legend(frameon=False, fontsize=8)
        style.tidy(ax)

    alt = (
        f"How many cells had each {found.report}: the {found.release} against the range of 95% of the simulated "
        f"{found.release}s, on a logarithmic scale. A diamond within its bar is as the model expects."
    )
    return picture(draw, alt, 6.6, 3.0)
