"""The einsum of a factorization, parsed and checked: terms, factors, axes."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import NamedTuple


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
