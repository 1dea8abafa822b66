"""The expected share of each of several independent gamma variables in their sum."""

import numpy as np

NODES = 48  # of the integral; 24 differ by less than 1e-3 in any share
BEYOND = 3.0  # how far nodes reach past the least and the largest rate, in logarithms


def expected_shares(shape: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """E[theta_k / sum_j theta_j] for theta_k ~ Gamma(shape, rate), along the last axis (mathematics, equation 16.3).

    Arrays (..., K) that broadcast against each other; the result has the shape of the rates.
    """
    log_rate = np.log(rate)
    low, high = log_rate.min(axis=-1) - BEYOND, log_rate.max(axis=-1) + BEYOND
    found, left = np.zeros(np.broadcast_shapes(shape.shape, rate.shape)), 1.0
    for i in range(NODES + 1):
        end = np.exp(low + (high - low) * i / NODES)[..., None]
        middle = np.exp(low + (high - low) * (i - 0.5) / NODES)[..., None] if i else 0.5 * end
        beyond = np.exp(-(shape * np.log1p(end / rate)).sum(axis=-1, keepdims=True))
        weight = shape / (rate + middle)
        found += (left - beyond) * weight / weight.sum(axis=-1, keepdims=True)
        left = beyond
    found += left * (shape / shape.sum(axis=-1, keepdims=True))
    return np.asarray(found)
