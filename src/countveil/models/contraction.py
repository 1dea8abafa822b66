"""One side of a rate's matrix form: factors contracted pair by pair into an (n, K) matrix, and back again.

Forwards, the contraction gives the matrix. Backwards, it carries two things from the matrix to the factors:
exposures (the derivative of a weighted sum of the rates with respect to each factor) and counts, which split
at every pair over the summed axes and then go to both operands (mathematics, section 6). No array is as
large as the product of all ranks.
"""

import math
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np


class Use(NamedTuple):
    """One use of a factor: the factor's number, and its axes there."""

    factor: int
    axes: str


class Step(NamedTuple):
    """Two earlier values, by number, contracted into a new one."""

    left: int
    right: int
    left_axes: str
    right_axes: str
    axes: str


class Side(NamedTuple):
    """A contraction of some uses of factors into a matrix of observed axes (flattened) by latent axes."""

    uses: tuple[Use, ...]
    steps: tuple[Step, ...]
    observed: str
    latent: str
    sizes: dict[str, int]

    @property
    def axes(self) -> str:
        """The matrix's axes before flattening."""
        return self.observed + self.latent

    @property
    def shape(self) -> tuple[int, int]:
        """(n, K) of the matrix."""
        n, k = (math.prod(self.sizes[a] for a in axes) for axes in (self.observed, self.latent))
        return n, k

    @property
    def single(self) -> bool:
        """Whether the matrix is a single factor."""
        return len(self.uses) == 1

    def forward(self, factors: tuple[np.ndarray, ...] | list[np.ndarray]) -> list[np.ndarray]:
        """The value of every use, then of every step; the last one has the axes of the matrix."""
        if not self.uses:
            return [np.ones(())]
        values = [factors[use.factor] for use in self.uses]
        if self.single:
            return [transposed(values[0], self.uses[0].axes, self.axes)]
        for step in self.steps:
            values.append(contract(step.left_axes, values[step.left], step.right_axes, values[step.right], step.axes))
        return values

    def matrix(self, values: list[np.ndarray]) -> np.ndarray:
        """The last of ``forward``'s values as a contiguous (n, K) matrix."""
        return np.ascontiguousarray(values[-1].reshape(self.shape))

    def folded(self, matrix: np.ndarray) -> np.ndarray:
        """An (n, K) matrix with its axes apart."""
        return matrix.reshape([self.sizes[a] for a in self.axes])

    def gradient(self, use: int, values: list[np.ndarray], matrix: np.ndarray) -> np.ndarray:
        """Derivative of sum(matrix * self) with respect to one use of a factor, with that use's axes."""
        gradient = self.folded(matrix)
        if self.single:
            return transposed(gradient, self.axes, self.uses[0].axes)
        place = use
        path = []
        for number, step in enumerate(self.steps, start=len(self.uses)):
            if place in (step.left, step.right):
                path.append((step, place == step.left))
                place = number
        for step, left in reversed(path):
            if left:
                gradient = contract(step.axes, gradient, step.right_axes, values[step.right], step.left_axes)
            else:
                gradient = contract(step.axes, gradient, step.left_axes, values[step.left], step.right_axes)
        return gradient


def contract(left_axes: str, left: np.ndarray, right_axes: str, right: np.ndarray, axes: str) -> np.ndarray:
    """The einsum of two arrays, by a matrix product if it is one."""
    groups = matrix_product(left_axes, right_axes, axes)
    if groups is None:
        return np.einsum(f"{left_axes},{right_axes}->{axes}", left, right)
    batch, rows, columns, summed = groups
    left = transposed(left, left_axes, batch + rows + summed)
    right = transposed(right, right_axes, batch + summed + columns)
    first, left_end, right_end = len(batch), len(batch + rows), len(batch + summed)
    product = matrices(left, first, left_end) @ matrices(right, first, right_end)
    shape = left.shape[:left_end] + right.shape[right_end:]
    return transposed(product.reshape(shape), batch + rows + columns, axes)


def matrices(array: np.ndarray, first: int, end: int) -> np.ndarray:
    """A stack of matrices: axes before ``first`` are flattened to the stack, those before ``end`` to rows."""
    shape = array.shape
    matrix = math.prod(shape[first:end]), math.prod(shape[end:])
    return array.reshape((math.prod(shape[:first]), *matrix) if first else matrix)


@lru_cache(maxsize=1024)
def matrix_product(left_axes: str, right_axes: str, axes: str) -> tuple[str, str, str, str] | None:
    """(batch, rows, columns, summed) axes of an einsum of two that is a stack of matrix products, or None."""
    both = [a for a in left_axes if a in right_axes]
    batch, summed = "".join(a for a in both if a in axes), "".join(a for a in both if a not in axes)
    rows = "".join(a for a in left_axes if a in axes and a not in both)
    columns = "".join(a for a in right_axes if a in axes and a not in both)
    used = batch + rows + columns + summed
    if set(used) != set(left_axes + right_axes) or set(batch + rows + columns) != set(axes):
        return None
    return batch, rows, columns, summed


def transposed(array: np.ndarray, axes: str, wanted: str) -> np.ndarray:
    """The array with its axes in another order."""
    return array.transpose(order(axes, wanted))


@lru_cache(maxsize=1024)
def order(axes: str, wanted: str) -> tuple[int, ...]:
    """Where each wanted axis is."""
    return tuple(axes.index(a) for a in wanted)


def plan(uses: tuple[Use, ...], observed: str, latent: str, sizes: dict[str, int], last: int | None = None) -> Side:
    """A contraction of the uses, the pair with the smallest result first; use ``last`` is kept for the end."""
    wanted = observed + latent
    axes = [use.axes for use in uses]
    waiting = [i for i in range(len(uses)) if i != last]
    steps: list[Step] = []

    def result(i: int, j: int) -> str:
        others = [axes[o] for o in waiting if o not in (i, j)] + ([axes[last]] if last not in (None, i, j) else [])
        kept = set(wanted).union(*others)
        return "".join(a for a in dict.fromkeys(axes[i] + axes[j]) if a in kept)

    def size(pair: tuple[int, int]) -> int:
        return math.prod(sizes[a] for a in result(*pair))

    def join(i: int, j: int, out: str) -> None:
        steps.append(Step(i, j, axes[i], axes[j], out))
        waiting[:] = [o for o in waiting if o not in (i, j)] + [len(axes)]
        axes.append(out)

    while len(waiting) > 1:
        i, j = min(combinations(waiting, 2), key=size)
        ends = len(waiting) == 2 and last is None
        join(i, j, wanted if ends else result(i, j))
    if last is not None and waiting:
        join(last, waiting[0], wanted)
    return Side(uses, tuple(steps), observed, latent, sizes)
