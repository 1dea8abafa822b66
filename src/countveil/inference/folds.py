"""Folds of cells that all compared models share, and what comparisons by them rest on: log means and stacking."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from countveil.data.observations import Observations
from countveil.inference import posterior as posteriors
from countveil.inference.matching import keep_weights
from countveil.inference.predict import Laws, scores_of_draws
from countveil.laws.counts.protocol import Likelihood
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout

MAX_CELLS = 200_000  # in each fold: more take time and memory, and add little precision
CELLS_DRAWN_FROM = 4  # times as many as are wanted: fewer are listed, more are drawn from at random
ATTEMPTS = 50  # to draw enough cells that were seen


class Cells(NamedTuple):
    """Numbers of rows and columns of cells."""

    rows: np.ndarray
    columns: np.ndarray

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.rows.size)

    def both_directions(self) -> "Cells":
        """These cells and those on the other side of the diagonal."""
        return Cells(np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows]))


def folds_of(
    seen_by: Sequence[Observations], n_folds: int, rng: np.random.Generator, pairs: bool = False
) -> list[Cells]:
    """Disjoint random sets of cells, about equally large, of those that none of the observations has masked.

    Together they hold all these cells, or ``MAX_CELLS`` for each fold where there are more. With ``pairs`` a pair of
    actors is one unit, known by its cell above the diagonal.

    Raises:
        ValueError: fewer such cells than folds.
    """
    n_rows, n_columns = seen_by[0].shape
    wanted, n_cells = n_folds * MAX_CELLS, n_rows * n_columns

    def usable(cells: np.ndarray) -> np.ndarray:
        rows, columns = np.divmod(cells, n_columns)
        kept = rows <= columns if pairs else np.ones(cells.size, dtype=bool)
        for observations in seen_by:
            kept &= observations.cells(rows, columns)[0] >= 0
        return cells[kept]

    if n_cells <= CELLS_DRAWN_FROM * wanted:
        found = usable(np.arange(n_cells))
    else:
        found = np.empty(0, dtype=np.int64)
        for _ in range(ATTEMPTS):
            if found.size < wanted:
                found = np.union1d(found, usable(np.unique(rng.integers(n_cells, size=wanted))))
    if found.size < n_folds:
        raise ValueError(f"folds must be at most the number of observed cells, {found.size}, got {n_folds}")
    parts = np.array_split(rng.permutation(found)[:wanted], n_folds)
    return [Cells(*np.divmod(part, n_columns)) for part in parts]


def is_mirrored(observations: Observations) -> bool:
    """Whether a square matrix reports the same on both sides of the diagonal, as undirected pairs may be written."""
    o = observations
    if o.shape[0] != o.shape[1]:
        return False
    off = (o.reports > 0) & (o.row_numbers != o.columns)
    rows, columns = o.row_numbers[off], o.columns[off]
    return bool(off.any() and (o.cells(columns, rows)[0] == o.reports[off]).all())


Half = tuple[int, bool]  # a chain, and whether it is the chain's later half


def log_mean_extrapolated(
    scores: Iterable[np.ndarray], chains: np.ndarray, later: np.ndarray, n_chains: int
) -> np.ndarray:
    """(cells,) log of the mean over draws of exp(score), as it would be over many draws of ``n_chains`` chains.

    Draws: 2 L(all) - (L(first halves) + L(second halves)) / 2, for L the log of a mean, which is too low by about a
    constant over the number of draws, and by more the more a model's draws differ (15.4). Where a draw's half is
    missing, or finds a report impossible, it is the plain mean.

    Chains, of equal weight: the log mean over C of them is too low by about a constant over C, which all together and
    each by itself tell (15.5). From a single chain nothing can be told of more, nor where one finds a report
    impossible.

    No mean is taken to be above the largest of its draws, so that it stays the log of a probability.

    Args:
        scores: (cells,) of each draw, one at a time.
        chains, later: (draws,) the chain of each draw, and whether it is of its chain's later half.
        n_chains: how many chains to tell of, fewer or more than there are.
    """
    sums: dict[Half, np.ndarray] = {}
    counts: dict[Half, int] = {}
    largest: dict[int, np.ndarray] = {}
    for score, chain, late in zip(scores, chains.tolist(), later.tolist(), strict=True):
        half = (chain, late)
        sums[half] = np.logaddexp(sums[half], score) if half in sums else score
        counts[half] = counts.get(half, 0) + 1
        largest[chain] = np.maximum(largest[chain], score) if chain in largest else score
    most: np.ndarray = np.maximum.reduce(list(largest.values()))
    found = np.minimum(of_many_draws(sums, counts), most)
    own = len(largest)
    if own == 1 or own == n_chains:
        return found
    alone = np.zeros_like(found)
    for chain, bound in largest.items():
        halves = {half: each for half, each in sums.items() if half[0] == chain}
        share = sum(counts[half] for half in halves) / sum(counts.values())
        alone += share * np.minimum(of_many_draws(halves, counts), bound)
    possible = np.isfinite(alone)
    times = (1.0 / own - 1.0 / n_chains) / (1.0 - 1.0 / own)
    found[possible] += times * (found[possible] - alone[possible])
    return np.asarray(np.minimum(found, most))


def of_many_draws(sums: dict[Half, np.ndarray], counts: dict[Half, int]) -> np.ndarray:
    """(cells,) the log mean over these halves of chains, as over many draws; ``sums`` are logs of sums over draws."""
    first, second = (log_mean(sums, counts, late) for late in (False, True))
    if first is None or second is None:
        whole = second if first is None else first
        assert whole is not None
        return whole[0]
    (one, n), (other, m) = first, second
    found = np.logaddexp(one + np.log(n), other + np.log(m)) - np.log(n + m)
    possible = np.isfinite(one) & np.isfinite(other)
    found[possible] = 2.0 * found[possible] - 0.5 * (one[possible] + other[possible])
    return np.asarray(found)


def log_mean(sums: dict[Half, np.ndarray], counts: dict[Half, int], late: bool) -> tuple[np.ndarray, int] | None:
    """The log mean over first or second halves, and of how many draws; None where there are none."""
    halves = [half for half in sums if half[1] == late]
    if not halves:
        return None
    n = sum(counts[half] for half in halves)
    return np.logaddexp.reduce([sums[half] for half in halves], axis=0) - np.log(n), n


# Stacking: weights by which several predictive distributions together predict best what none of them saw.
#
# Weights maximise the concave sum over cells of log sum_c w_c p_ic, where p_ic is the probability of report i
# by distribution c (mathematics, equation 15.1; Yao, Vehtari, Simpson and Gelman 2018, and for chains that
# stay in modes of their own Yao, Vehtari and Gelman 2022).

MAX_ROUNDS = 5_000
GAP = 1e-8  # of the mean over cells: how far the weights may be from the best ones
CELLS_STREAM = 2**31  # a spawn key that no chain has
DRAWS_SCORED = 50  # of each chain at most, evenly spread, when chains get weights


def stacking_weights(scores: np.ndarray) -> np.ndarray:
    """(C,) weights with sum one that maximise sum_i log sum_c w_c exp(scores_ic) for scores (cells, C).

    The fixed point of w_c <- w_c mean_i(p_ic / sum_b w_b p_ib), from equal weights on (mathematics, equation 15.2):
    every round gains, and none leaves more than max_c of the mean, less one, to be gained.

    Raises:
        ValueError: no cells, or a score that is not finite.
    """
    if not scores.size or not np.isfinite(scores).all():
        raise ValueError(f"scores must be finite numbers of at least one cell, got {scores.shape}")
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = np.full(p.shape[1], 1.0 / p.shape[1])
    for _ in range(MAX_ROUNDS):
        gains = (1.0 / (p @ weights)) @ p / len(p)
        if gains.max() <= 1.0 + GAP:
            break
        weights = weights * gains
    return weights / weights.sum()


def cells_to_score(observations: Observations, seed: int, pairs: bool) -> Cells:
    """Random cells that were seen, the same for all chains; of pairs those above the diagonal."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(CELLS_STREAM,)))
    return folds_of([observations], 1, rng, pairs)[0]


def scores_left_out(
    draws: Laws, observations: Observations, likelihood: Likelihood, cells: Cells, pairs: bool = False
) -> np.ndarray:
    """(cells,) log probability of each cell's report by one chain, had the chain not seen it.

    By importance sampling, -log mean over draws of 1 / P(report | draw) (mathematics, equation 15.3): a cell is one of
    many, and its report is noisy, so that a draw hardly depends on it. With ``pairs`` a cell and the one on the other
    side of the diagonal are left out together.
    """
    rows, columns, n = cells.rows, cells.columns, cells.size
    twins = np.empty(0, dtype=np.int64)
    if pairs:
        seen = observations.cells(columns, rows)[0] >= 0
        twins = np.flatnonzero(seen & (rows != columns))
        rows, columns = np.concatenate([rows, columns[twins]]), np.concatenate([columns, rows[twins]])
    total, n_draws = np.full(n, -np.inf), 0
    for scores in scores_of_draws(draws, observations, likelihood, rows, columns):
        left_out = scores[:n]
        left_out[twins] += scores[n:]
        np.logaddexp(total, -left_out, out=total)
        n_draws += 1
    return np.asarray(np.log(n_draws) - total)


def weigh(tree: xr.DataTree, model: Factorization, layout: Layout, data: Observations, seed: int) -> None:
    """Give a fit's chains stacking weights, by the data that it was made of in the matrix form of its model.

    Chains keep equal weights where there are no cells to score, or a score is not finite, or scoring is
    interrupted; a warning says so.
    """
    pairs = is_mirrored(data)
    try:
        cells, chains = cells_to_score(data, seed, pairs), draws_by_chain(tree, model, layout)
        scores = [scores_left_out(draws, data, model.likelihood, cells, pairs) for draws in chains]
        weights = stacking_weights(np.stack(scores, axis=1))
    except (ValueError, KeyboardInterrupt) as error:
        why = "scoring them was interrupted" if isinstance(error, KeyboardInterrupt) else error
        warnings.warn(f"chains have equal weights: {why}", stacklevel=4)
        return
    keep_weights(tree, weights)


def draws_by_chain(tree: xr.DataTree, model: Factorization, layout: Layout) -> Iterator[Laws]:
    """The draws of each chain, as ``FitReader.draws`` has them."""
    draws = tree["posterior"].dataset
    kept = posteriors.evenly(draws.sizes["draw"], DRAWS_SCORED)
    for chain in range(draws.sizes["chain"]):
        own = xr.DataTree.from_dict({"posterior": draws.isel(chain=[chain], draw=kept)})
        yield posteriors.matrix_draws(own, model, layout)
