"""Log means over draws and over chains, as they would be over more of them (mathematics, equations 15.4 and 15.5)."""

from collections.abc import Iterable

import numpy as np

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


def log_mean(
    sums: dict[Half, np.ndarray], counts: dict[Half, int], late: bool
) -> tuple[np.ndarray, int] | None:
    """The log mean over first or second halves, and of how many draws; None where there are none."""
    halves = [half for half in sums if half[1] == late]
    if not halves:
        return None
    n = sum(counts[half] for half in halves)
    return np.logaddexp.reduce([sums[half] for half in halves], axis=0) - np.log(n), n
