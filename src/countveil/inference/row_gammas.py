"""A row factor of which Q's gammas are kept, and no draws: these are made again whenever they are asked for.

Q(theta_dk) = Gamma(a_dk, b_dk) says all that draws from it say, in the room of two draws. Draw s of a fit comes from
stream s of its seed, row after row, so that it has the same bits every time. What depends on all rows at once, their
sum in every draw, is kept. As other factors are normalised, the components of draw s are multiplied by the sizes that
were taken from these (``identify``), and put in the order of the posterior.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from countveil.inference.draws import Draws
from countveil.inference.identify import SMALLEST, observed_axes
from countveil.inference.streams import START, Streams
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout, absorber, normalised

Q_CHAIN = 2**30  # the number of the chain whose stream draws from Q, far from those of samplers
SMALLEST_DRAW = 1e-37  # about the smallest that float32 holds at full precision
GROUP = "optimisation"
KEPT = ("shape", "rate", "size", "order")
ROWS_AT_ONCE = 1 << 15


class RowGammas(NamedTuple):
    """Q of a row factor (D, K), float32."""

    shape: np.ndarray
    rate: np.ndarray


def drawn_rows(
    shape: np.ndarray, rate: np.ndarray, rng: np.random.Generator, rows_at_once: int | None = None
) -> Iterator[np.ndarray]:
    """A draw (D, K), some rows at a time: the same numbers as if all were drawn at once."""
    step = ROWS_AT_ONCE if rows_at_once is None else rows_at_once
    for first in range(0, len(shape), step):
        rows = slice(first, first + step)
        yield np.maximum(rng.standard_gamma(shape[rows]) / rate[rows], SMALLEST_DRAW)


def total_of_rows(shape: np.ndarray, rate: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(1, K) the sum of a draw's rows."""
    total = np.zeros((1, shape[0].size))
    for rows in drawn_rows(shape, rate, rng):
        total += rows.sum(axis=0)
    return total


def check_summarised(model: Factorization) -> int:
    """The number of the row factor that takes the sizes of all others; raises ValueError where there is none."""
    row = model.row_factor
    if row is None or absorber(model) != row or model.factors[row].axes[0] not in model.rows.observed:
        raise ValueError(
            "keep must be 'draws' unless one factor belongs to the rows and has the sizes of the components, got "
            "'summary'"
        )
    return row


def scales_of(draws: Draws, model: Factorization) -> tuple[np.ndarray, np.ndarray]:
    """(sizes (S, K), order (K,)) by which ``identify`` will change the components of the row factor's draws.

    draws are of a model with one row, the sum of all, and are not changed here.
    """
    row, sizes = check_summarised(model), np.ones((1, 1))
    for f in normalised(model):
        seen = tuple(2 + i for i in observed_axes(model, f))
        sizes = sizes * np.maximum(draws.factors[f], SMALLEST).sum(axis=seen, dtype=np.float64)[0]
    total = np.maximum(draws.factors[row], SMALLEST)[:, :, 0] * sizes.astype(np.float32)
    order = np.argsort(-total.mean(axis=(0, 1), dtype=np.float64), kind="stable")
    return sizes, order


def stored(name: str, gammas: RowGammas, scales: tuple[np.ndarray, np.ndarray], dims: Sequence[str]) -> dict[str, Any]:
    """The variables of a tree's group ``optimisation`` that stand for a row factor, over these dims of it."""
    rows, component = dims
    sizes, order = scales
    return {
        f"{name}_shape": ((rows, component), gammas.shape),
        f"{name}_rate": ((rows, component), gammas.rate),
        f"{name}_size": (("draw", component), sizes),
        f"{name}_order": (component, order.astype(np.float64)),
    }


def summarised(tree: xr.DataTree, name: str) -> bool:
    """Whether a fit kept the gammas of this factor instead of draws."""
    return GROUP in tree.children and f"{name}_shape" in tree[GROUP].data_vars


def check_draws(tree: xr.DataTree, name: str) -> None:
    """Refuse what needs all draws of a factor at once; raises ValueError."""
    if summarised(tree, name):
        raise ValueError(
            f"all draws of {name} must be kept for this, got a fit with a summary of them: fit with "
            "method=cv.SVI(keep='draws')"
        )


def mean_of(tree: xr.DataTree, name: str) -> np.ndarray:
    """The exact mean (D, K) of a row factor as the optimiser left it."""
    found = tree[GROUP]
    return np.asarray(found[f"{name}_shape"].to_numpy() / found[f"{name}_rate"].to_numpy())


def draw_of(tree: xr.DataTree, name: str, s: int) -> np.ndarray:
    """Draw s (D, K) of a row factor, float32, as a fit with all its draws would hold it."""
    draw, first = np.empty(tree[GROUP][f"{name}_shape"].shape, dtype=np.float32), 0
    for rows in rows_of_draw(tree, name, s):
        draw[first : first + len(rows)] = rows
        first += len(rows)
    return draw


def rows_of_draw(tree: xr.DataTree, name: str, s: int, rows_at_once: int | None = None) -> Iterator[np.ndarray]:
    """The rows of ``draw_of``, some at a time: the same numbers however many."""
    found = tree[GROUP]
    shape, rate = found[f"{name}_shape"].to_numpy(), found[f"{name}_rate"].to_numpy()
    order = found[f"{name}_order"].to_numpy().astype(np.int64)
    size = found[f"{name}_size"].to_numpy()[s].astype(np.float32)
    rng = Streams.of_chain(int(tree.attrs["seed"]), Q_CHAIN).generator(s, START)
    for rows in drawn_rows(shape, rate, rng, rows_at_once):
        scaled = np.maximum(rows.astype(np.float32), SMALLEST) * size
        yield np.maximum(scaled, SMALLEST)[:, order]


def rows_of_draws(tree: xr.DataTree, name: str, rows_at_once: int) -> Iterator[np.ndarray]:
    """Some rows at a time of all draws, (S, n, K) each: every draw is made once, and none is held whole."""
    every = [rows_of_draw(tree, name, s, rows_at_once) for s in range(tree["posterior"].sizes["draw"])]
    for rows in zip(*every, strict=True):
        yield np.stack(rows)


def check_stored(tree: xr.DataTree, model: Factorization, layout: Layout) -> None:
    """Refuse a summary of other sizes than the model's, or whose order is none; raises ValueError."""
    row = check_summarised(model)
    name, shape = model.factors[row].name, model.factors[row].shape
    found, n_draws = tree[GROUP], tree["posterior"].sizes["draw"]
    wanted = {"shape": shape, "rate": shape, "size": (n_draws, shape[1]), "order": shape[1:]}
    for part, sizes in wanted.items():
        values = found.data_vars.get(f"{name}_{part}")
        if values is None or values.shape != sizes or values.dtype.kind != "f":
            got = "no such array" if values is None else f"{values.dtype} of shape {values.shape}"
            raise ValueError(
                f"must hold {name}_{part} of shape {sizes} and of floating-point numbers in the group {GROUP}, "
                f"got {got}"
            )
    if tree["posterior"].sizes["chain"] != 1:
        raise ValueError(f"must have one chain with a summary, got {tree['posterior'].sizes['chain']}")
    order = found[f"{name}_order"].to_numpy().tolist()
    if sorted(order) != list(range(shape[1])):
        raise ValueError(f"must hold each of 0 to {shape[1] - 1} once at {name}_order, got {order!s:.80}")
    total = tree["posterior"].dataset.data_vars.get(f"{name}_total")
    over = {"chain": 1, "draw": n_draws, layout.dims[model.factors[row].axes[1]]: shape[1]}
    if total is None or dict(total.sizes) != over:
        got = "no such array" if total is None else str(dict(total.sizes))
        raise ValueError(f"must hold {name}_total over {over}, got {got}")
