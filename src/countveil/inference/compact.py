"""Draws in a file: rounded to a small part of their posterior's spread, and packed.

The posterior knows an entry of a factor only up to its standard deviation s, so the last bits of a draw are noise that
no compressor can pack. With 2^m <= s < 2^(m + 1), where s is of the entry's draws in one chain, a draw x becomes

    the nearest multiple of 2^(m - 4)                    where x >= 2^(m - 4),
    the nearest power of two, but at least 2^(m - 12)    elsewhere:

an error of at most s / 32 everywhere. Were it drawn evenly, it would add 0.03% to the variance. Draws of an entry lie
side by side in the file, where deflate finds most in common.
"""

import os
from collections.abc import Iterator
from itertools import product

import h5netcdf
import numpy as np
import xarray as xr

ROUNDED = "rounded"  # the root's attribute of such a file
STEP_BITS = 4  # 5 makes files 10% larger
FLOOR_BITS = 12  # 8 makes them 3% smaller, and moves means by up to s / 600
SMALLEST_SCALE = 2.0**-80  # float32 has steps and floors of such a scale in full precision
LEAST_DRAWS = 100  # in a chain, to know s by
MOST_EXACT = 1 << 23  # bytes of draws that are written as they are
CHUNK = 1 << 17  # values that are packed together
SLAB = 1 << 21  # values that are rounded at once
LEVEL = 4  # of deflate; 9 makes files 5% smaller and takes ten times as long


def rounded(draws: np.ndarray) -> np.ndarray:
    """Draws (S, ...) of one chain rounded as the file says, float32; an entry that never changes stays as it is."""
    spread = draws.std(axis=0, dtype=np.float64)
    scale = np.exp2(np.floor(np.log2(np.maximum(spread, SMALLEST_SCALE)))).astype(np.float32)
    step = scale * np.float32(2.0**-STEP_BITS)
    found = np.rint(draws / step) * step
    small = draws < step
    powers = np.exp2(np.rint(np.log2(np.maximum(draws[small], np.finfo(np.float32).tiny))))
    floors = np.broadcast_to(scale * np.float32(2.0**-FLOOR_BITS), draws.shape)[small]
    found[small] = np.maximum(powers, floors)
    return np.where(spread > 0.0, found, draws)


def write(tree: xr.DataTree, path: str | os.PathLike[str], exact: bool = False) -> None:
    """Write a fit's tree; draws of factors that take more than 8 MB are rounded, unless ``exact``."""
    names = [] if exact else large(tree)
    if not names:
        tree.to_netcdf(path, engine="h5netcdf")
        return
    others = {name: child.dataset for name, child in tree.children.items()}
    others["posterior"] = others["posterior"].drop_vars(names)
    rest = xr.DataTree.from_dict(others)
    rest.attrs.update(tree.attrs | {ROUNDED: 1})
    rest.to_netcdf(path, engine="h5netcdf")
    with h5netcdf.File(path, "r+") as file:
        for name in names:
            pack(file["posterior"], tree["posterior"].dataset[name], round_draws=ROUNDED not in tree.attrs)


def large(tree: xr.DataTree) -> list[str]:
    """Names of the factors whose draws are rounded in a file: all or none of them."""
    draws = tree["posterior"].dataset
    factors = [name for name, values in draws.data_vars.items() if values.dtype == np.float32]
    if draws.sizes["draw"] < LEAST_DRAWS or sum(draws[name].nbytes for name in factors) <= MOST_EXACT:
        return []
    return [str(name) for name in factors]


def pack(group: h5netcdf.Group, draws: xr.DataArray, round_draws: bool) -> None:
    """Add the draws of a factor to a group of an open file, over the axes chain, its own, draw."""
    values = draws.transpose("chain", "draw", ...)
    chain, draw, *own = values.dims
    whole = values.to_numpy()
    n_draws, sizes = whole.shape[1], whole.shape[2:]
    chunks = pieces_of(sizes, CHUNK // min(n_draws, CHUNK))
    stored = group.create_variable(
        draws.name, (chain, *own, draw), "f4", chunks=(1, *chunks, min(n_draws, CHUNK)),
        compression="gzip", compression_opts=LEVEL, shuffle=True,
    )  # fmt: skip
    for c, place in product(range(whole.shape[0]), list(slabs(sizes, chunks, max(1, SLAB // n_draws)))):
        part = whole[(c, slice(None), *place)]
        part = rounded(part) if round_draws else part
        stored[(c, *place, slice(None))] = np.ascontiguousarray(np.moveaxis(part, 0, -1))


def pieces_of(sizes: tuple[int, ...], most: int) -> tuple[int, ...]:
    """A shape of at most this many values (or of one) that tiles an array, as long as can be along the last axes."""
    found: list[int] = []
    for size in reversed(sizes):
        found.append(max(1, min(size, most)))
        most //= found[-1]
    return tuple(reversed(found))


def slabs(sizes: tuple[int, ...], chunks: tuple[int, ...], most: int) -> Iterator[tuple[slice, ...]]:
    """Places that tile an array, each of whole chunks and about this many values."""
    steps = [-(-piece // chunk) * chunk for piece, chunk in zip(pieces_of(sizes, most), chunks, strict=True)]
    starts = (range(0, size, step) for size, step in zip(sizes, steps, strict=True))
    for place in product(*starts):
        yield tuple(slice(start, start + step) for start, step in zip(place, steps, strict=True))


def unpacked(tree: xr.DataTree) -> xr.DataTree:
    """A tree from a file with every variable of the posterior over chain and draw first, in place."""
    group = tree.children["posterior"]
    draws = group.to_dataset(inherit=False)
    for name, values in draws.data_vars.items():
        if {"chain", "draw"} <= set(values.dims) and values.dims[:2] != ("chain", "draw"):
            ordered = values.transpose("chain", "draw", ...)
            draws[name] = ordered.copy(data=np.ascontiguousarray(ordered.to_numpy()))
    group.dataset = draws
    return tree
