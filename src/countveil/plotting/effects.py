"""Topics by covariates of the documents: contrasts of shares, and expected shares."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from countveil.plotting import style
from countveil.plotting.factors import called, ends_of, said_of_intervals


def effects(fit: Any, a: Mapping[str, Any], b: Mapping[str, Any], interval: float = 0.9, *, ax: Any = None) -> Any:
    """How much larger each topic's expected share is with covariates ``a`` than with ``b``, as dots with intervals.

    Topics are in the order of their contrasts, which are those of ``fit.effects.contrast``, whose rules hold. A fit
    whose intervals are not calibrated is drawn without any, and the label of the axis says why. Returns the axes.

    Raises:
        TypeError: a fit of something else than topics, communities or components of a tensor.
        ValueError: a fit without covariates, an unknown covariate or value, or an interval out of range.
    """
    check_topics(fit)
    table = fit.effects.contrast(a, b, interval).sort_values("estimate", ascending=False, kind="stable")
    ax = style.axes_for(ax, 6.4, 1.3 + 0.24 * len(table))
    y, middle, names = np.arange(len(table)), table["estimate"].to_numpy(), fit._reader.names_of()
    ax.axvline(0.0, color=style.GREY, linewidth=1.0)
    ax.errorbar(
        middle, y, xerr=ends_of(table, middle), color=style.BLUE, marker="o", linestyle="none", markersize=4.5,
        capsize=2, linewidth=1.4,
    )  # fmt: skip
    ax.set_yticks(y, [style.plain(called(table.columns[0], k, names)) for k in table.iloc[:, 0]], fontsize=8)
    ax.set_ylim(len(table) - 0.4, -0.6)
    ax.set_xlabel(f"difference in the expected share of {whole_of(fit)}{said_of_intervals(fit, interval)}")
    one, other = (style.plain(said(each)) for each in (a, b))
    ax.set_title(f"To the right: more where {one} than where {other}", fontsize=9, wrap=True)
    style.tidy(ax, "x")
    return ax


def expected_prevalence(fit: Any, frame: pd.DataFrame, interval: float = 0.9, *, ax: Any = None) -> Any:
    """Each topic's expected share of a document for every row of a frame: curves with bands along a column of numbers.

    A frame of one column of numbers makes curves along it, every other frame dots with intervals, one group for each
    row. Shares are those of ``fit.effects.prevalence``, whose rules hold. Returns the axes.

    Raises:
        TypeError: a fit of something else than topics, communities or components of a tensor.
        ValueError: as ``fit.effects.table``; a frame without rows.
    """
    check_topics(fit)
    if not len(frame):
        raise ValueError("frame must have at least one row, got none")
    table, names = fit.effects.prevalence(frame.reset_index(drop=True), interval), fit._reader.names_of()
    curve = frame.shape[1] == 1 and pd.api.types.is_numeric_dtype(frame.dtypes.iloc[0])
    one = table.columns[0]
    topics, ax = table[one].unique(), style.axes_for(ax, 6.4, 3.6)
    for i, k in enumerate(topics):
        rows, color = table[table[one] == k], style.CYCLE[i % len(style.CYCLE)]
        label, middle = style.plain(called(one, k, names)), rows["estimate"].to_numpy()
        if curve:
            x = frame.iloc[:, 0].to_numpy(float)
            order = np.argsort(x)
            line = style.LINES[i // len(style.CYCLE) % len(style.LINES)]
            ax.plot(x[order], middle[order], color=color, linestyle=line, linewidth=1.6, label=label)
            if "lower" in rows:
                lower, upper = (rows[end].to_numpy()[order] for end in ("lower", "upper"))
                ax.fill_between(x[order], lower, upper, color=color, alpha=0.2, linewidth=0)
        else:
            x = np.arange(len(frame)) + 0.6 * ((i + 0.5) / len(topics) - 0.5)
            ax.errorbar(
                x, middle, yerr=ends_of(rows, middle), color=color, marker=style.MARKERS[i % 8], linestyle="none",
                markersize=4.5, capsize=2, linewidth=1.4, label=label,
            )  # fmt: skip
    if curve:
        ax.set_xlabel(style.plain(str(frame.columns[0])))
    else:
        ax.set_xticks(np.arange(len(frame)), [style.plain(said(dict(row))) for _, row in frame.iterrows()], fontsize=8)
    ax.set_ylim(bottom=0.0)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    ax.set_ylabel(f"expected share{said_of_intervals(fit, interval)}", wrap=True)
    ax.legend(frameon=False, fontsize=8)
    style.tidy(ax)
    return ax


def check_topics(fit: Any) -> None:
    """Refuse a fit without effects; raises TypeError."""
    if not hasattr(fit, "effects"):
        raise TypeError(f"fit must be a TopicModel, a TensorModel or a BlockModel, got {type(fit).__name__}")


def whole_of(fit: Any) -> str:
    """What shares are of: a document, an actor's messages, or an entry of a tensor's first mode."""
    row = next(iter(fit._reader.axes))
    return {"doc": "a document", "sender": "an actor's messages"}.get(row, f"one {row}")


def said(values: Mapping[str, Any]) -> str:
    """Values of covariates in words."""
    return ", ".join(f"{name} = {value}" for name, value in values.items())
