"""The einsum of a factorization: parsed and checked, and contracted side by side."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from numbers import Integral
from typing import NamedTuple

import numpy as np


class Spec(NamedTuple):
    """A parsed einsum. Terms are the einsum's operands in order; a factor may be used by two of them."""

    text: str
    terms: tuple[str, ...]  # axes of each operand
    output: str  # observed axes
    latent: str  # summed axes, in order of appearance
    names: tuple[str, ...]  # of factors
    factor_axes: tuple[str, ...]  # of factors, as in their first use
    factor_of_term: tuple[int, ...]
    symmetric: tuple[str, ...]  # names of factors that equal their transpose

    @property
    def without_last(self) -> "Spec":
        """The einsum without its last operand, whose factor is used there alone."""
        return self._replace(
            text=f"{','.join(self.terms[:-1])}->{self.output}", terms=self.terms[:-1], names=self.names[:-1],
            factor_axes=self.factor_axes[:-1], factor_of_term=self.factor_of_term[:-1],
        )  # fmt: skip


def parse_spec(
    text: str,
    *,
    names: Sequence[str] | None = None,
    shared: Mapping[str, str] | None = None,
    symmetric: Sequence[str] = (),
) -> Spec:
    """Parse "dk,vk->dv"; factors are called by their axes ("dk") unless ``names`` names every operand.

    Args:
        text: an einsum with an explicit output; single letters are axes.
        names: one name per operand.
        shared: {name of an operand: name of the earlier operand whose factor it uses}.
        symmetric: names of two-axis latent factors that equal their transpose.

    Raises:
        ValueError: what is wrong with the spec, naming the axis or operand.
    """
    terms, output = split_text(text)
    check_axes(text, terms, output)
    names = list(terms) if names is None else list(names)
    if len(names) != len(terms):
        raise ValueError(f"names must name each of the {len(terms)} factors in {text!r}, got {len(names)}")
    wrong = next((name for name in names if not isinstance(name, str) or not name), None)
    if wrong is not None:
        raise ValueError(f"names must be words, got {wrong!r}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"factors must have different names, got {twice!r} twice in {text!r}; give names=")
    same = check_shared(dict(shared), names, terms, output) if shared else {}
    own = [i for i in range(len(terms)) if names[i] not in same]
    number = {names[i]: f for f, i in enumerate(own)}
    latent = "".join(a for a in dict.fromkeys("".join(terms)) if a not in output)
    found = Spec(
        text, tuple(terms), output, latent, tuple(names[i] for i in own), tuple(terms[i] for i in own),
        tuple(number[same.get(name, name)] for name in names), tuple(symmetric),
    )  # fmt: skip
    if symmetric:
        check_symmetric(found)
    return found


def split_text(text: str) -> tuple[list[str], str]:
    """The operands' axes and the output's."""
    if not isinstance(text, str) or text.count("->") != 1:
        raise ValueError(f"spec must be an einsum with an output, like 'dk,vk->dv', got {text!r}")
    left, output = text.replace(" ", "").split("->")
    terms = left.split(",")
    for part in (*terms, output):
        if not part or not part.isascii() or not part.isalpha():
            raise ValueError(f"spec must be letters, commas and one '->', got {part!r} in {text!r}")
        repeated = next((a for a in part if part.count(a) > 1), None)
        if repeated:
            raise ValueError(f"spec must not repeat an axis within a factor, got {repeated!r} twice in {part!r}")
    return terms, output


def check_axes(text: str, terms: list[str], output: str) -> None:
    """Check that every output axis is in a factor, and every summed axis in at least two."""
    for axis in output:
        if not any(axis in term for term in terms):
            raise ValueError(f"axis {axis!r} of the output appears in no factor of {text!r}")
    for axis in dict.fromkeys("".join(terms)):
        if axis not in output and sum(axis in term for term in terms) < 2:
            raise ValueError(
                f"axis {axis!r} appears in one factor only and nowhere else in {text!r}: a latent axis joins two "
                "factors or more, an observed one is in the output"
            )


def check_shared(same: dict[str, str], names: list[str], terms: list[str], output: str) -> dict[str, str]:
    """``shared``, if valid: one factor of one observed and one latent axis, used twice."""
    for name, first in same.items():
        for each in (name, first):
            if each not in names:
                raise ValueError(f"shared must name factors among {names}, got {each!r}")
        if names.index(first) >= names.index(name) or first in same:
            raise ValueError(f"shared must map a factor to an earlier one of its own, got {name!r}: {first!r}")
        one, other = terms[names.index(first)], terms[names.index(name)]
        if len(one) != 2 or [a in output for a in one] != [a in output for a in other]:
            raise ValueError(
                "shared factors must have one observed and one latent axis in the same order, "
                f"got {one!r} and {other!r}"
            )
    if len(same) > 1:
        raise ValueError(f"shared must name one factor that is used twice, got {len(same)} entries")
    for name, first in same.items():
        one, other = (next(a for a in terms[names.index(n)] if a in output) for n in (first, name))
        for axis in (one, other):
            if sum(axis in term for term in terms) > 1:
                raise ValueError(f"the observed axis {axis!r} of a shared factor must be in no other factor")
        if output[0] not in (one, other):
            raise ValueError(
                f"a shared factor must hold the first output axis, got {one!r} and {other!r} with output {output!r}"
            )
        if output[0] == other:
            raise ValueError(f"the first use of a shared factor must hold the first output axis {other!r}")
    return same


def check_symmetric(spec: Spec) -> None:
    """Check that symmetric factors have two latent axes."""
    for name in spec.symmetric:
        if name not in spec.names:
            raise ValueError(f"symmetric must name factors among {list(spec.names)}, got {name!r}")
        axes = spec.factor_axes[spec.names.index(name)]
        if len(axes) != 2 or any(a in spec.output for a in axes):
            raise ValueError(f"symmetric factors must have two latent axes, got {name!r} with axes {axes!r}")


def axis_sizes(spec: Spec, shape: Sequence[int], ranks: Mapping[str, int]) -> dict[str, int]:
    """Size of every axis: observed ones from the data's shape, latent ones from the ranks.

    Raises:
        ValueError: data with another number of axes; a rank missing, unknown or not positive; axes of a shared
            factor that differ in size.
    """
    if len(shape) != len(spec.output):
        raise ValueError(
            f"data must have one axis for each of {list(spec.output)}, got {len(shape)} with shape {tuple(shape)}: "
            "cv.TensorModel (countveil fit tensor) takes any number of axes"
        )
    for axis in spec.latent:
        if axis not in ranks:
            raise ValueError(f"ranks must give a size for the latent axis {axis!r}, got {dict(ranks)}")
    for axis, rank in ranks.items():
        if axis not in spec.latent:
            raise ValueError(f"ranks must be for latent axes {list(spec.latent)}, got {axis!r}")
        if isinstance(rank, bool) or not isinstance(rank, Integral) or rank < 1:
            raise ValueError(f"ranks must be whole numbers of at least 1, got {rank!r} for {axis!r}")
    sizes = dict(zip(spec.output, shape, strict=True)) | {a: int(ranks[a]) for a in spec.latent}
    for term, factor in zip(spec.terms, spec.factor_of_term, strict=True):
        for a, b in zip(term, spec.factor_axes[factor], strict=True):
            if sizes[a] != sizes[b]:
                raise ValueError(
                    f"factor {spec.names[factor]!r} is shared by axes {b!r} and {a!r}, which must have the same size, "
                    f"got {sizes[b]} and {sizes[a]}"
                )
    for name in spec.symmetric:
        one, other = (sizes[a] for a in spec.factor_axes[spec.names.index(name)])
        if one != other:
            raise ValueError(f"symmetric factor {name!r} must be square, got {one} by {other}")
    return sizes


# One side of a rate's matrix form: factors contracted pair by pair into an (n, K) matrix, and back again.
#
# Forwards, the contraction gives the matrix. Backwards, it carries two things from the matrix to the factors:
# exposures (the derivative of a weighted sum of the rates with respect to each factor) and counts, which split
# at every pair over the summed axes and then go to both operands (mathematics, section 6). No array is as
# large as the product of all ranks.


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
