"""Which topics go together in documents, as a table of colours."""

from typing import Any

import numpy as np

from countveil.plotting import style
from countveil.plotting.factors import called

COLOURS = "RdBu_r"
EMPTY = "0.85"  # the grey of pairs without a number
MOST_NUMBERS = 12  # topics, above which the numbers in the cells would not be legible


def correlations(fit: Any, interval: float = 0.9, *, ax: Any = None) -> Any:
    """The correlation of the shares of each two topics over the documents: red together, blue apart.

    Numbers are those of ``fit.topic_correlations``, whose rules hold: shares sum to one, so that unrelated topics have
    a correlation below zero. They are in the cells of up to 12 topics, in bold where the interval does not hold zero.
    Pairs that no chain has are grey. Returns the axes.

    Raises:
        TypeError: a fit of something else than topics.
        ValueError: an interval out of range; fewer than two topics; a fit without draws of its documents.
    """
    if not hasattr(fit, "topic_correlations"):
        raise TypeError(f"fit must be a TopicModel, got {type(fit).__name__}")
    table, names = fit.topic_correlations(interval), fit.names_of()
    if table.empty:
        raise ValueError("fit must have two topics or more to have correlations, got fewer")
    numbers = sorted({*table["topic"], *table["other"]})
    place = {number: i for i, number in enumerate(numbers)}
    cells = np.full((len(numbers), len(numbers)), np.nan)
    ax = style.axes_for(ax, 2.4 + 0.5 * len(numbers), 1.6 + 0.45 * len(numbers))
    for row in table.to_dict("records"):
        i, j = sorted((place[row["topic"]], place[row["other"]]))
        cells[i, j] = cells[j, i] = row["correlation"]
        if len(numbers) <= MOST_NUMBERS:
            sure = "lower" in row and not row["lower"] <= 0.0 <= row["upper"]
            said = {"ha": "center", "va": "center", "fontsize": 7, "fontweight": "bold" if sure else "normal"}
            said["color"] = "white" if abs(row["correlation"]) > 0.6 else "black"
            for x, y in ((i, j), (j, i)):
                ax.text(x, y, f"{row['correlation']:.2f}", **said)
    ax.set_facecolor(EMPTY)
    image = ax.imshow(cells, cmap=COLOURS, vmin=-1.0, vmax=1.0)
    labels = [style.plain(called("topic", number, names), 22) for number in numbers]
    ax.set_xticks(range(len(numbers)), labels, rotation=45, ha="right", fontsize=8)
    ax.set_yticks(range(len(numbers)), labels, fontsize=8)
    ax.set_title("Red: topics of the same documents; blue: of different ones", fontsize=9, wrap=True)
    unrelated = -1.0 / (fit.model_.n_components - 1)
    ax.figure.colorbar(
        image, ax=ax, fraction=0.05, label=f"correlation (of unrelated topics: {unrelated:.2f})"
    )
    return ax
