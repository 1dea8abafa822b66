"""Correlations of shares of components over documents, which come some at a time."""

from collections.abc import Iterable, Sequence

import numpy as np

TINY = 1e-300
ROUNDING = 1e-12  # of sums of shares: what varies by less does not vary


def correlations(some_at_a_time: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """(S, K, K) of every chain: correlations of shares (S, K, n), which come some entries at a time.

    Zero with what does not vary. Sums are of differences from the first entry, which lose no digits to a mean.
    """
    chains: list[Moments] = []
    for made in some_at_a_time:
        chains = chains or [Moments(shares[:, :, :1]) for shares in made]
        for moments, shares in zip(chains, made, strict=True):
            moments.add(shares)
    return [moments.correlations() for moments in chains]


class Moments:
    """Sums of shares (S, K, n) over their last axis, as differences from a share (S, K, 1) each."""

    def __init__(self, near: np.ndarray) -> None:
        self.near, self.n = near, 0
        self.sizes, self.sums = np.zeros(near.shape[:2]), np.zeros(near.shape[:2])
        self.products = np.zeros((*near.shape[:2], near.shape[1]))

    def add(self, shares: np.ndarray) -> None:
        """Count these entries, too."""
        self.n += shares.shape[2]
        self.sizes += np.abs(shares).sum(axis=2)
        apart = shares - self.near
        self.sums += apart.sum(axis=2)
        self.products += apart @ apart.transpose(0, 2, 1)

    def correlations(self) -> np.ndarray:
        """(S, K, K) of all entries that were counted."""
        products = self.products - self.sums[:, :, None] * self.sums[:, None, :] / max(self.n, 1)
        squares = np.diagonal(products, axis1=1, axis2=2)
        length = np.where(squares <= (ROUNDING * self.sizes) ** 2, 0.0, np.sqrt(np.maximum(squares, 0.0)))
        scale = length[:, :, None] * length[:, None, :]
        return np.asarray(np.where(scale > 0.0, products / np.maximum(scale, TINY), 0.0))
