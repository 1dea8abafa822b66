"""Where chains begin: nonnegative least squares on debiased truncated reports (mathematics, section 10)."""

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from countveil.kernels.gibbs import MASKED
from countveil.observations import Observations

ITERATIONS = 20
FLOOR = 0.01


def debiased(observations: Observations) -> tuple[sp.csr_array, np.ndarray]:
    """(S, c_d) with T = S - c_d 1^T, T_dv = (1 + alpha)(max(r, 0) - alpha / (1 - alpha^2)).

    T has mean zero where the rate is zero, and is as sparse as the positive reports but for a constant per
    row. Masked cells are filled with the product of their row's and column's means.
    """
    o = observations
    rows = np.repeat(np.arange(o.shape[0]), np.diff(o.indptr))
    alpha_e = o.alpha_e if o.alpha_e.size else o.alpha_d[rows]
    values = (1.0 + alpha_e) * np.maximum(o.reports, 0)
    bias_d = o.alpha_d / (1.0 - o.alpha_d)
    if o.alpha_e.size:
        values = values - alpha_e / (1.0 - alpha_e)
        bias_d = np.zeros(o.shape[0])
    hidden = o.reports == MASKED
    values[hidden] = 0.0
    s = sp.csr_array((values, o.columns, o.indptr), shape=o.shape)
    if hidden.any():
        seen = sp.csr_array((hidden.astype(float), o.columns, o.indptr), shape=o.shape)
        n_d, n_v = o.shape[1] - seen.sum(axis=1), o.shape[0] - seen.sum(axis=0)
        row_mean = np.maximum((s.sum(axis=1) - n_d * bias_d) / np.maximum(n_d, 1), 0.0)
        column_mean = np.maximum((s.sum(axis=0) - bias_d.sum()) / np.maximum(n_v, 1), 0.0)
        overall = max(float(row_mean.mean()), 1e-12)
        s.data[hidden] = (row_mean[rows] * column_mean[o.columns] / overall + bias_d[rows])[hidden]
    return s, bias_d


def mean_count(observations: Observations) -> float:
    """A moment estimate of the mean true count per cell, kept positive."""
    s, bias_d = debiased(observations)
    estimate = (s.sum() - observations.shape[1] * bias_d.sum()) / (
        observations.shape[0] * observations.shape[1]
    )
    return max(float(estimate), 1e-3 / observations.shape[1])


def mean_rate_without_offsets(observations: Observations) -> float:
    """``mean_count`` over the mean of the known offsets: the size of sum_k theta_dk phi_vk before them."""
    row_offset, column_offset = 1.0 / observations.prior_scale_d, 1.0 / observations.prior_scale_v
    return mean_count(observations) / float(row_offset.mean() * column_offset.mean())


def least_squares(
    matrix: sp.csr_array | np.ndarray,
    bias_d: np.ndarray,
    n_components: int,
    rng: np.random.Generator,
    iterations: int = ITERATIONS,
) -> tuple[np.ndarray, np.ndarray]:
    """Nonnegative (theta (D, K), phi (V, K)) that minimise |matrix - bias_d 1^T - theta phi^T|^2, by HALS.

    Hierarchical alternating least squares (Cichocki and Phan 2009): one column of one factor at a time, each
    step the exact minimum. Starts from uniform random factors.
    """
    n_rows, n_columns = matrix.shape
    phi = rng.random((n_columns, n_components))
    theta = rng.random((n_rows, n_components))
    with threadpool_limits(limits=1, user_api="blas"):
        for _ in range(iterations):
            _update(theta, phi.T @ phi, matrix @ phi - np.outer(bias_d, phi.sum(axis=0)))
            _update(phi, theta.T @ theta, matrix.T @ theta - bias_d @ theta)
            size = np.sqrt((phi**2).sum(axis=0))
            dead = size == 0.0
            phi[:, dead], theta[:, dead] = rng.random((n_columns, int(dead.sum()))), 0.0
            size[dead] = 1.0
            phi /= size
            theta *= size
    return theta, phi


def _update(factor: np.ndarray, gram: np.ndarray, target: np.ndarray) -> None:
    for k in range(factor.shape[1]):
        if gram[k, k] > 0.0:
            step = (target[:, k] - factor @ gram[:, k]) / gram[k, k]
            factor[:, k] = np.maximum(factor[:, k] + step, 0.0)


def least_squares_start(
    observations: Observations, n_components: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Positive (theta (D, K), phi (V, K)) near the least-squares fit, each component of equal mean in both."""
    theta, phi = least_squares(*debiased(observations), n_components, rng)
    floor = np.sqrt(FLOOR * mean_count(observations) / n_components)
    theta_mean, phi_mean = theta.mean(axis=0), phi.mean(axis=0)
    balance = np.sqrt(np.where(theta_mean * phi_mean > 0.0, phi_mean / np.maximum(theta_mean, 1e-300), 1.0))
    theta, phi = theta * balance, phi / balance
    return np.maximum(theta, floor), np.ascontiguousarray(np.maximum(phi, floor))
