"""One look for every figure: colours that colour-blind people tell apart, and how axes are drawn."""

from typing import Any

from countveil.common.extras import install

BLUE, ORANGE, VERMILION, GREEN = "#0072B2", "#E69F00", "#D55E00", "#009E73"
PURPLE, SKY, GREY, BLACK = "#CC79A7", "#56B4E9", "#999999", "#000000"
CYCLE = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY, BLACK)
"""Okabe and Ito (2008), the yellow left out: too pale on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
LINES = ("-", "--", "-.", ":")
GRID = "#dddddd"
HEAT = "cividis"

METHODS = {  # told apart by marker as well
    "countveil": (BLUE, "o", "-"),
    "least squares": (ORANGE, "s", "-"),
    "naive": (VERMILION, "^", "-"),
    "column means": (GREY, "D", "-"),
}


def new_figure(width: float, height: float) -> Any:
    """An empty figure of this size in inches, to be saved: no window, whatever matplotlib's backend is.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise missing() from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def axes_for(ax: Any, width: float, height: float) -> Any:
    """These axes, or those of a new pyplot figure of this size in inches where they are None.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
        TypeError: not axes of matplotlib.
    """
    if ax is not None:
        if not hasattr(ax, "transData"):
            raise TypeError(f"ax must be matplotlib axes or None, got {type(ax).__name__}")
        return ax
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise missing() from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def tidy(ax: Any, grid: str | None = "y") -> None:
    """No frame at the top and right, and faint lines along one axis ("x", "y") or none."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color=GRID, linewidth=0.6)
        ax.set_axisbelow(True)


def legend_below(figure: Any) -> None:
    """One legend of all axes below them, each label once."""
    handles = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False)


def plain(label: object, most: int = 28) -> str:
    """A label as text of a figure: short enough to fit, and never taken for mathematics."""
    text = "".join(c if c.isprintable() else " " for c in str(label))
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text.replace("$", r"\$")


def missing() -> ModuleNotFoundError:
    """What to say where matplotlib is missing."""
    return ModuleNotFoundError(f"the figure needs matplotlib, which is missing: {install('plots')}")


Fit = Any
"""A fitted model (``fit.base.FactorizationEstimator``)."""

Network = Any
"""Communities of actors and what they send each other (``fit.networks.Network``)."""
