"""Chains and true counts: whether a fit is safe to report, and what it says about single cells."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from countveil.data.totals import refuse_totals
from countveil.inference.predict import laws_of_counts
from countveil.laws.counts.given_reports import Cells, CountsGivenReports
from countveil.plotting import style
from countveil.plotting.style import Fit

MAX_DRAWS = 200  # averaged for a cell's law: more are smoother and slower
TITLES = {
    "log_likelihood": "log-likelihood of the reports",
    "total_rate": "expected sum of all counts",
    "objective": "objective",
}


def trace(fit: Fit, quantity: str | None = None, *, ax: Any = None) -> Any:
    """A quantity that does not depend on the order of components, draw by draw, one line per chain; returns the axes.

    quantity is "log_likelihood" (default) or "total_rate" of a sampler, "objective" (default) of an optimiser.

    Raises:
        ValueError: a quantity that the fit does not have.
    """
    tree = fit.posterior
    optimised = "optimisation" in tree.children
    known = ("objective",) if optimised else ("log_likelihood", "total_rate")
    quantity = known[0] if quantity is None else quantity
    if quantity not in known:
        raise ValueError(f"quantity must be one of {', '.join(known)}, got {quantity!r}")
    ax = style.axes_for(ax, 6.4, 2.8)
    group = tree["optimisation" if optimised else "sample_stats"]
    values = np.atleast_2d(group[quantity].to_numpy())
    for c, chain in enumerate(values):
        ax.plot(
            chain, color=style.CYCLE[c % len(style.CYCLE)], linestyle=style.LINES[(c // 8) % 4], linewidth=0.9,
            label="objective" if optimised else f"chain {c}",
        )  # fmt: skip
    ax.set_xlabel("iteration" if optimised else "draw")
    ax.set_ylabel(TITLES[quantity], fontsize=9)
    if len(values) > 1:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    style.tidy(ax)
    return ax


def true_counts(fit: Fit, reports: Any, cells: Iterable[Sequence[Any]], *, ax: Any = None) -> Any:
    """What the reports and the model together say about the true counts of some cells; returns the axes.

    Each cell's posterior P(count | report) is the closed-form law given a rate, averaged over (at most 200) draws of
    the rate. A line marks the report.

    Args:
        fit: any fitted model.
        reports: the release (or ``PrivatizedCounts``) that it was fitted to.
        cells: for each cell its labels along the axes, or its numbers where an axis has no labels.
        ax: axes to draw on; new ones by default.

    Raises:
        ValueError: no cells, an unknown label or number, reports of another shape or with other labels, a masked cell.
    """
    wanted = [tuple(cell) for cell in cells]
    found, labels, laws = laws_of_cells(fit, reports, wanted)
    ax = style.axes_for(ax, 6.4, 3.2)
    furthest = 0
    for i, (label, law) in enumerate(zip(labels, laws, strict=True)):
        colour = style.CYCLE[i % len(style.CYCLE)]
        shown = int(np.searchsorted(np.cumsum(law), 0.999)) + 2
        furthest = max(furthest, shown, int(found[i]) + 1)
        ax.plot(
            law[:shown], color=colour, marker=style.MARKERS[i % len(style.MARKERS)], markersize=4, linewidth=1.2,
            label=f"{label} (reported {'0 or less' if found[i] <= 0 else found[i]})",
        )  # fmt: skip
        ax.axvline(max(found[i], 0), color=colour, linestyle=":", linewidth=1.2)
    ax.set_xlim(-0.5, furthest)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("true count (dotted: what was reported)")
    ax.set_ylabel("probability")
    ax.legend(frameon=False, fontsize=8)
    style.tidy(ax)
    return ax


def laws_of_cells(
    fit: Fit, reports: Any, cells: list[tuple[Any, ...]]
) -> tuple[np.ndarray, list[str], list[np.ndarray]]:
    """(reports (n,), labels, the law of each (Y,)) of n cells; errors as ``true_counts``."""
    axes = fit._reader.axes
    observed = fit._reader.own_data("reports", reports)
    if not cells:
        raise ValueError("cells must name at least one cell, got none")
    places = np.array([place_of(cell, list(axes), list(axes.values())) for cell in cells])
    rows, columns = fit._reader.matrix_places(places)
    values, level = fit._reader.data_matrix(observed).cells(rows, columns)
    if (values < 0).any():
        raise ValueError(f"cells must not be masked, got a masked cell: {cells[int(np.argmax(values < 0))]}")
    refuse_totals(observed)
    given = CountsGivenReports(observed.noise, fit.model_.likelihood)
    exposure = fit._reader.exposure_matrix
    known = None if exposure is None else exposure[rows, columns]
    found = Cells(rows, columns, values, np.broadcast_to(level, values.shape), known)
    laws: dict[int, np.ndarray] = {}
    for numbers, each in laws_of_counts(partial(fit._reader.even_draws, MAX_DRAWS), given, found):
        laws |= dict(zip(numbers.tolist(), each, strict=True))
    labels = [", ".join(style.plain(part) for part in cell) for cell in cells]
    return values, labels, [laws[i] for i in range(len(cells))]


def place_of(cell: tuple[Any, ...], dims: Sequence[str], names: Sequence[np.ndarray]) -> list[int]:
    """A cell's numbers along the axes; raises ValueError."""
    if len(cell) != len(dims):
        raise ValueError(f"each of cells must have {len(dims)} parts ({', '.join(dims)}), got {cell!r}")
    found = []
    for part, dim, known in zip(cell, dims, names, strict=True):
        where = np.flatnonzero(known == part)
        if not where.size:
            raise ValueError(f"cells must name a {dim} of the fit, got {part!r}")
        found.append(int(where[0]))
    return found
