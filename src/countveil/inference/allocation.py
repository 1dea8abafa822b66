"""Counts carried from a matrix form's cells down to the factors, drawn or expected."""

import math

import numpy as np

from countveil.kernels.contraction import split_counts
from countveil.models.contraction import Side, Step, transposed


def sampled_counts(
    side: Side, values: list[np.ndarray], counts: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
    """Counts of each use of a factor, given (n, K) counts of the side's matrix and its ``forward`` values.

    At each contraction of two operands a count splits over the summed axes in proportion to the products, and then
    goes to both operands (mathematics, section 6).
    """
    if len(side.uses) < 2:
        return [transposed(side.folded(counts), side.axes, use.axes) for use in side.uses]
    found: list[np.ndarray] = [np.empty(0)] * len(values)
    found[-1] = side.folded(counts)
    for number in range(len(values) - 1, len(side.uses) - 1, -1):
        step = side.steps[number - len(side.uses)]
        found[step.left], found[step.right] = split(
            step, found[number], values[step.left], values[step.right], side.sizes, rng
        )
    return found[: len(side.uses)]


def split(
    step: Step,
    counts: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    sizes: dict[str, int],
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Counts of both operands of a step."""
    both = [a for a in step.left_axes if a in step.right_axes]
    b, k = "".join(a for a in both if a in step.axes), "".join(a for a in both if a not in step.axes)
    m = "".join(a for a in step.left_axes if a not in both)
    n = "".join(a for a in step.right_axes if a not in both)

    def flat(array: np.ndarray, axes: str, *groups: str) -> np.ndarray:
        shape = [math.prod(sizes[a] for a in group) for group in groups]
        return np.ascontiguousarray(transposed(array, axes, "".join(groups)).reshape(shape))

    def unflat(array: np.ndarray, groups: str, axes: str) -> np.ndarray:
        return transposed(array.reshape([sizes[a] for a in groups]), groups, axes)

    count_left, count_right = split_counts(
        flat(counts, step.axes, b, m, n),
        flat(left, step.left_axes, b, m, k),
        flat(right, step.right_axes, b, n, k),
        rng,
    )
    return unflat(count_left, b + m + k, step.left_axes), unflat(count_right, b + n + k, step.right_axes)


def expected_counts(side: Side, values: list[np.ndarray], ratio: np.ndarray) -> list[np.ndarray]:
    """Expected counts of each use of a factor; ratio is (n, K), expected counts over the matrix's values."""
    return (
        [values[u] * side.gradient(u, values, ratio) for u in range(len(side.uses))]
        if not side.single
        else [transposed(side.folded(ratio) * values[0], side.axes, side.uses[0].axes)]
    )
