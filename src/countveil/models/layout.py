"""What users call a model's axes, factors and components, and which factors are normalised."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from countveil.models.einsum import Spec
from countveil.models.factorization import Factor, Factorization

# Dimensions that a fit's arrays have besides the model's.
COLUMNS = ("rate", "lower", "upper", "share", "mean", "median", "forecast", "estimate", "support")
"""Of numbers in tables whose other columns have the names of axes."""
RESERVED = ("chain", "draw", "cell", "release", "iteration", *COLUMNS)
PREVIOUS = "previous_"  # before a dimension of the step before
HYPERS = "_rate", "_shape"  # ends of the names of a factor's hyperparameters

PLURALS = MappingProxyType(
    {"doc": "documents", "word": "words", "sender": "senders", "receiver": "receivers"}
)  # of dimensions, in sentences


def checked_modes(modes: Sequence[str], n_modes: int, *taken: str) -> list[str]:
    """A user's names of the data's axes, which have a factor ``factor_NAME`` each.

    Raises:
        ValueError: too few or too many, one twice, or one that an array or another axis of the fit has.
    """
    names = [str(mode) for mode in modes]
    if len(names) != n_modes or len(set(names)) != n_modes:
        raise ValueError(f"modes must name each of the {n_modes} axes of the data once, got {names}")
    factors = [*(f"factor_{name}" for name in names), *taken]
    found = {*RESERVED, *factors, *(f"{name}{end}" for name in factors for end in HYPERS)}.intersection(names)
    if found:
        raise ValueError(
            f"modes must differ from the names of the posterior's own arrays, got {sorted(found)}: choose other names"
        )
    return names


class Part(NamedTuple):
    """A kind of component that a model has, in words, and the axes along which it is listed."""

    one: str  # "topic"
    many: str  # "topics"
    whole: str  # what prevalence is a share of: "all expected words"
    measure: str  # what a member's number is: "probability of the word in the topic"
    heading: str  # of a list of members and their numbers: "most probable words: probability"
    axes: tuple[str, ...] = ()  # dimensions whose members reports list; empty for all that can be listed


class Layout(NamedTuple):
    """Names of axes in a posterior, the order of each factor's axes there, and what components are called."""

    dims: dict[str, str]  # axis -> dimension
    axes: dict[str, str]  # factor's name -> its axes in the order wanted
    # dimension -> what a factor that is used twice calls it
    aliases: Mapping[str, str] = MappingProxyType({})
    # latent axis -> its components; ``default_part`` if missing
    parts: Mapping[str, Part] = MappingProxyType({})
    plurals: Mapping[str, str] = PLURALS  # dimension -> its plural in a sentence; unchanged if missing

    def dims_of(self, axes: str) -> tuple[str, ...]:
        """Dimensions of some axes."""
        return tuple(self.dims[a] for a in axes)

    def dims_reported(self, axes: Sequence[str]) -> tuple[str, ...]:
        """Dimensions of what a prior reports over axes of the model, and others that have names of their own.

        An axis that it has twice is that of the step before, the second time.
        """
        dims = tuple(self.dims.get(a, a) for a in axes)
        return tuple(f"{PREVIOUS}{dim}" if dim in dims[:i] else dim for i, dim in enumerate(dims))

    def dims_of_factor(self, name: str, axes: str, shared: bool) -> tuple[str, ...]:
        """Dimensions of a factor; a shared one has a neutral word for its observed axis."""
        dims = self.dims_of(axes)
        return tuple(self.aliases.get(d, d) for d in dims) if shared else dims


def default_part(name: str) -> Part:
    """The words for components called ``name``."""
    many = f"{name[:-1]}ies" if name.endswith("y") and name[-2:-1] not in "aeiou" else f"{name}s"
    measure = f"share of the {name}"
    return Part(name, many, "all expected counts", measure, f"largest entries: {measure}")


def default_layout(spec: Spec) -> Layout:
    """Every axis named by its letter, every factor with its own order of axes."""
    axes = dict(zip(spec.names, spec.factor_axes, strict=True))
    return Layout({a: a for a in spec.output + spec.latent}, axes)


def latent_groups(model: Factorization) -> dict[str, str]:
    """Each latent axis's group, named by its first axis; axes tied by a shared or symmetric factor are in one group."""
    group = {a: a for a in model.spec.latent}
    for term, f in zip(model.spec.terms, model.spec.factor_of_term, strict=True):
        tied = list(zip(term, model.factors[f].axes, strict=True))
        if model.factors[f].symmetric:
            tied += list(zip(term, term[::-1], strict=True))
        for a, b in tied:
            if a in group and b in group:
                first, second = group[b], group[a]
                group = {axis: first if g == second else g for axis, g in group.items()}
    return group


def pinned(model: Factorization, group: str) -> bool:
    """Whether a fixed factor says which component is which, of a group of latent axes."""
    groups = latent_groups(model)
    return any(
        factor.fixed is not None and any(groups.get(a) == group for a in factor.axes) for factor in model.factors
    )


def n_anchored(model: Factorization, group: str) -> int:
    """How many components of a group, the first ones, are known by their numbers: those with seeds, or a background."""
    groups = latent_groups(model)
    return max(
        (factor.prior.n_anchored for factor in model.factors if any(groups.get(a) == group for a in factor.axes)),
        default=0,
    )


def absorber(model: Factorization) -> int | None:
    """The factor that takes the sizes of all others.

    It is one whose prior holds sizes, else a free one of latent axes only, else the one of the first axis.
    """
    uses = model.spec.factor_of_term
    for f in model.free:
        if model.factors[f].prior.holds_size:
            return f
    for f in model.free:
        if uses.count(f) == 1 and all(a in model.spec.latent for a in model.factors[f].axes):
            return f
    first = next(f for f, term in zip(uses, model.spec.terms, strict=True) if model.spec.output[0] in term)
    return first if uses.count(first) == 1 and first in model.free else None


def normalised(model: Factorization) -> tuple[int, ...]:
    """Free factors whose components sum to one over their observed axes; the absorber has all their latent axes."""
    taker = absorber(model)
    if taker is None:
        return ()
    found = []
    for f in model.free:
        terms = [t for t, g in zip(model.spec.terms, model.spec.factor_of_term, strict=True) if g == f]
        latent = {a for term in terms for a in term if a in model.spec.latent}
        observed = any(a in model.spec.output for a in terms[0])
        if f != taker and observed and latent and latent <= set(model.factors[taker].axes):
            found.append(f)
    return tuple(found)


def listable(model: Factorization) -> dict[str, Factor]:
    """Observed axes along which a component's entries can be listed, each with the factor that holds them.

    Such an axis is in one term only, beside one latent axis: the column of a component is then proportional to its
    expected counts along the axis. For a factor that is used twice the first use counts.
    """
    spec, found = model.without_level.spec, {}
    for term, f in zip(spec.terms, spec.factor_of_term, strict=True):
        seen = [a for a in term if a in spec.output]
        alone = len(term) == 2 and len(seen) == 1 and sum(seen[0] in other for other in spec.terms) == 1
        if alone and model.factors[f].axes == term:
            found[seen[0]] = model.factors[f]
    return found
