"""Where chains begin: nonnegative least squares on debiased truncated reports (mathematics, section 10)."""

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from countveil.data.observations import Observations
from countveil.engines.blocks import Engine, row_blocks
from countveil.kernels import start as kernels
from countveil.kernels.entries import MASKED
from countveil.models.contraction import Side
from countveil.models.factorization import Factorization

ITERATIONS = 20
MULTIPLICATIVE_ITERATIONS = 100
FLOOR = 0.01
SHARED_FLOOR = 0.02
TINY = 1e-300
START_ENTRIES = 1 << 25
PROJECTIONS = 10


class Debiased:
    """Debiased truncated reports T = S - bias_d 1^T as a matrix to multiply with, a block of rows at a time.

        T_dv = (1 + alpha)(max(r, 0) - alpha / (1 - alpha^2))

    has mean zero where the rate is zero, and S is as sparse as the positive reports. Masked cells are filled
    with the product of their row's and column's means. ``S @ phi`` and ``S.T @ theta`` are ``self @ phi`` and
    ``self.T @ theta``.

    Attributes (D rows, V columns):
        shape: (D, V).
        bias_d: (D,)
        row_sums: (D,) of S, masked cells included.
    """

    def __init__(self, observations: Observations) -> None:
        o = self.observations = observations
        self.shape = o.shape
        self.bias_d = np.zeros(o.shape[0]) if o.level_e.size else o.level_d / (1.0 - o.level_d)
        row_2d, column_2v = np.zeros((2, o.shape[0])), np.zeros((2, o.shape[1]))
        for rows in row_blocks(self.shape[0]):
            kernels.sum_rows(o.block(rows), self.bias_d[rows], row_2d[:, rows], column_2v)
        n_d, n_v = o.shape[1] - row_2d[1], o.shape[0] - column_2v[1]
        self.fill_d = np.maximum((row_2d[0] - o.shape[1] * self.bias_d) / np.maximum(n_d, 1.0), 0.0)
        self.fill_v = np.maximum((column_2v[0] - self.bias_d.sum()) / np.maximum(n_v, 1.0), 0.0)
        self.fill_v /= max(float(self.fill_d.mean()), 1e-12)
        self.row_sums = row_2d[0]
        if row_2d[1].any():
            self.row_sums = (self @ np.ones((o.shape[1], 1)))[:, 0]

    def __matmul__(self, phi: np.ndarray) -> np.ndarray:
        phi, product = np.ascontiguousarray(phi), np.zeros((self.shape[0], phi.shape[1]))
        for rows in row_blocks(self.shape[0]):
            block = self.observations.block(rows)
            kernels.multiply_rows(
                block, self.bias_d[rows], self.fill_d[rows], self.fill_v, phi, product[rows]
            )
        return product

    @property
    def T(self) -> "Transposed":  # noqa: N802
        """The transpose, to multiply with."""
        return Transposed(self)


class Transposed:
    """``Debiased`` with rows for columns."""

    def __init__(self, matrix: Debiased) -> None:
        self.matrix = matrix

    def __matmul__(self, theta: np.ndarray) -> np.ndarray:
        m = self.matrix
        theta, product = np.ascontiguousarray(theta), np.zeros((m.shape[1], theta.shape[1]))
        for rows in row_blocks(m.shape[0]):
            block = m.observations.block(rows)
            kernels.multiply_columns(block, m.bias_d[rows], m.fill_d[rows], m.fill_v, theta[rows], product)
        return product


def mean_count(observations: Observations) -> float:
    """A moment estimate of the mean true count per cell, kept positive."""
    matrix, (n_rows, n_columns) = Debiased(observations), observations.shape
    estimate = (matrix.row_sums.sum() - n_columns * matrix.bias_d.sum()) / (n_rows * n_columns)
    return max(float(estimate), 1e-3 / n_columns)


def mean_rate_without_offsets(observations: Observations) -> float:
    """``mean_count`` over the mean of the known offsets: the size of sum_k theta_dk phi_vk before them."""
    row_offset, column_offset = 1.0 / observations.prior_scale_d, 1.0 / observations.prior_scale_v
    return mean_count(observations) / float(row_offset.mean() * column_offset.mean())


def least_squares(
    matrix: Debiased | sp.csr_array | np.ndarray,
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


def project(
    matrix: Debiased | sp.csr_array, bias_d: np.ndarray, phi: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    """Nonnegative theta (D, K) nearer to the least-squares fit of matrix - bias_d 1^T given phi (V, K)."""
    theta = theta.copy()
    with threadpool_limits(limits=1, user_api="blas"):
        gram, target = phi.T @ phi, matrix @ phi - np.outer(bias_d, phi.sum(axis=0))
        for _ in range(PROJECTIONS):
            _update(theta, gram, target)
    return theta


def least_squares_start(
    observations: Observations, n_components: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Positive (theta (D, K), phi (V, K)) near the least-squares fit, each component of equal mean in both.

    Of very large data phi comes from a random part of the rows, and theta is fitted to it.
    """
    n_rows, n_entries = observations.shape[0], int(observations.indptr[-1])
    if n_entries > START_ENTRIES:
        n_taken = max(n_rows * START_ENTRIES // n_entries, 1)
        taken = Debiased(observations.take(np.sort(rng.choice(n_rows, n_taken, replace=False))))
        phi = least_squares(taken, taken.bias_d, n_components, rng)[1]
        matrix = Debiased(observations)
        theta = project(matrix, matrix.bias_d, phi, np.zeros((n_rows, n_components)))
    else:
        matrix = Debiased(observations)
        theta, phi = least_squares(matrix, matrix.bias_d, n_components, rng)
    floor = np.sqrt(FLOOR * mean_count(observations) / n_components)
    theta_mean, phi_mean = theta.mean(axis=0), phi.mean(axis=0)
    balance = np.sqrt(np.where(theta_mean * phi_mean > 0.0, phi_mean / np.maximum(theta_mean, 1e-300), 1.0))
    theta, phi = theta * balance, phi / balance
    return np.maximum(theta, floor), np.ascontiguousarray(np.maximum(phi, floor))


def start_factors(
    observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine
) -> tuple[np.ndarray, ...]:
    """Positive factors near a least-squares fit; fixed ones as they are."""
    row = model.row_factor
    if row is None or not model.columns.single or len(model.free) < len(model.factors):
        return multiplicative_start(observations, model, rng)
    theta, phi = least_squares_start(observations, model.n_components, rng)
    factors = [np.empty(0)] * 2
    factors[row] = model.as_row_factor(theta)
    column = model.columns.uses[0]
    axes = [model.columns.axes.index(a) for a in column.axes]
    factors[column.factor] = np.ascontiguousarray(model.columns.folded(phi).transpose(axes))
    return tuple(factors)


def multiplicative_start(
    observations: Observations,
    model: Factorization,
    rng: np.random.Generator,
    iterations: int = MULTIPLICATIVE_ITERATIONS,
) -> tuple[np.ndarray, ...]:
    """Least squares for any factorization, by multiplicative updates from random factors.

    A factor that both sides use begins where the rows' side does in ``least_squares``: from near-even memberships the
    updates seldom leave one community for all, whose error has no slope towards several.

    Each is factor * gradient(positive part of T) / gradient(rates + negative part of T) over the cells that are
    seen, which never raises the squared error (Lee and Seung 2001); to the power 1/2 for a factor that is used
    twice. T is ``debiased``.
    """
    target = Target(observations)
    size = (mean_count(observations) / np.prod([model.columns.sizes[a] for a in model.spec.latent])) ** (
        1.0 / len(model.spec.terms)
    )
    factors = [
        size * (0.5 + rng.random(factor.shape)) if factor.fixed is None else factor.fixed
        for factor in model.factors
    ]
    if model.shared in model.free:
        factors[model.shared] = size * shared_start(observations, model, rng)
    for f in (f for f in model.free if model.factors[f].symmetric):
        factors[f] = 0.5 * (factors[f] + factors[f].T)
    with threadpool_limits(limits=1, user_api="blas"):
        for _ in range(iterations):
            for f in model.free:
                above, below = gradients(target, model, factors, f)
                times = sum(use.factor == f for use in (*model.rows.uses, *model.columns.uses))
                factors[f] = factors[f] * (above / np.maximum(below, TINY)) ** (1.0 / times)
    for f in model.free:
        factors[f] = np.maximum(factors[f], FLOOR * max(float(factors[f].mean()), TINY))
    return tuple(factors)


def shared_start(observations: Observations, model: Factorization, rng: np.random.Generator) -> np.ndarray:
    """The rows of a nonnegative least-squares fit as the factor that both sides use, each component of mean 1."""
    matrix = Debiased(observations)
    theta, _ = least_squares(matrix, matrix.bias_d, model.n_components, rng)
    mean = theta.mean(axis=0)
    return model.as_row_factor(np.maximum(theta / np.where(mean > 0.0, mean, 1.0), SHARED_FLOOR))


class Target:
    """T as a positive and a negative part, each sparse plus a constant per row, over the cells that are seen."""

    def __init__(self, observations: Observations) -> None:
        o = observations
        rows = np.repeat(np.arange(o.shape[0]), np.diff(o.indptr))
        alpha = o.level_e if o.level_e.size else o.level_d[rows]
        hidden = o.reports == MASKED
        values = np.where(hidden, 0.0, (1.0 + alpha) * np.maximum(o.reports, 0))
        bias = np.where(hidden, 0.0, alpha / (1.0 - alpha)) if o.level_e.size else np.zeros(values.size)
        self.bias_d = np.zeros(o.shape[0]) if o.level_e.size else o.level_d / (1.0 - o.level_d)
        self.above, self.below = (
            sp.csr_array((x, o.columns, o.indptr), shape=o.shape) for x in (values, bias)
        )
        self.hidden_rows, self.hidden_columns = rows[hidden], o.columns[hidden]
        self.shape = o.shape

    def towards_rows(self, theta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """((D, K) T's positive part, (D, K) rates and T's negative part) times phi."""
        unseen = self.unseen(theta, phi)
        below = theta @ (phi.T @ phi) + np.outer(self.bias_d, phi.sum(axis=0)) + self.below @ phi
        return self.above @ phi, below - unseen @ phi

    def towards_columns(self, theta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same for columns, (V, K): times theta."""
        unseen = self.unseen(theta, phi)
        below = phi @ (theta.T @ theta) + self.bias_d @ theta + self.below.T @ theta
        return self.above.T @ theta, below - unseen.T @ theta

    def unseen(self, theta: np.ndarray, phi: np.ndarray) -> sp.csr_array:
        """Rates and row constants of the cells that are masked."""
        rates = np.einsum("ek,ek->e", theta[self.hidden_rows], phi[self.hidden_columns])
        values = rates + self.bias_d[self.hidden_rows]
        return sp.csr_array((values, (self.hidden_rows, self.hidden_columns)), shape=self.shape)


def gradients(
    target: Target, model: Factorization, factors: list[np.ndarray], f: int
) -> tuple[np.ndarray, np.ndarray]:
    """What pulls factor f up and what pulls it down, summed over its uses."""
    rows, columns = model.rows.forward(factors), model.columns.forward(factors)
    theta, phi = model.rows.matrix(rows), model.columns.matrix(columns)
    above, below = np.zeros(model.factors[f].shape), np.zeros(model.factors[f].shape)

    def add(side: Side, values: list[np.ndarray], pulls: tuple[np.ndarray, np.ndarray]) -> None:
        nonlocal above, below
        for u, use in enumerate(side.uses):
            if use.factor == f:
                above = above + side.gradient(u, values, pulls[0])
                below = below + side.gradient(u, values, np.maximum(pulls[1], 0.0))

    if any(use.factor == f for use in model.rows.uses):
        add(model.rows, rows, target.towards_rows(theta, phi))
    if any(use.factor == f for use in model.columns.uses):
        add(model.columns, columns, target.towards_columns(theta, phi))
    if model.factors[f].symmetric:
        above, below = above + above.T, below + below.T
    return above, below
