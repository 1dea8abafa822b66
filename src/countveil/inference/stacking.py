"""Stacking: weights by which several predictive distributions together predict best what none of them saw.

Weights maximise the concave sum over cells of log sum_c w_c p_ic, where p_ic is the probability of report i by
distribution c (mathematics, equation 15.1; Yao, Vehtari, Simpson and Gelman 2018, and for chains that stay in modes of
their own Yao, Vehtari and Gelman 2022).
"""

import numpy as np

from countveil.data.observations import Observations
from countveil.inference.folds import Cells, folds_of
from countveil.inference.predict import Laws, scores_of_draws
from countveil.laws.counts.protocol import Likelihood

MAX_ROUNDS = 5_000
GAP = 1e-8  # of the mean over cells: how far the weights may be from the best ones
CELLS_STREAM = 2**31  # a spawn key that no chain has


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
