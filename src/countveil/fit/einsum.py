"""PoissonFactorization: any einsum of gamma factors."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from countveil.common.parameters import Flag, declared
from countveil.data.labels import Axis, in_order, tabled
from countveil.data.observations import Observations
from countveil.data.release_files import ReleaseFiles
from countveil.fit.base import FactorizationEstimator, Given
from countveil.models.einsum import Spec, parse_spec
from countveil.models.factorization import Factorization, factorization
from countveil.models.layout import HYPERS, RESERVED, Layout, default_layout
from countveil.models.priors import LEARNED, GammaPrior, LearnedShapePrior


@declared
class PoissonFactorization(FactorizationEstimator):
    """Counts whose rates are an einsum of nonnegative factors with gamma priors.

    "dk,vk->dv" is a topic model, "ic,jd,cd->ij" with shared={"jd": "ic"} a block model, "ik,jk,ak,tk->ijat" a CP
    tensor, "ic,jd,ak,tr,cdkr->ijat" a Tucker tensor. The first axis of the output is the rows of the data.

    Args:
        spec: an einsum; output axes are observed, summed axes latent.
        ranks: {latent axis: size}.
        names: one name for each operand; their axes by default.
        shared: {operand: earlier operand}: one factor used on two axes, by name.
        symmetric: names of factors of two latent axes that equal their transpose.
        priors: {factor: (shape, rate)} where they are not ``prior_shape`` and ``prior_rate``; numbers, or arrays that
            broadcast against the factor; shape "learned" learns one for the factor, rate None one per component.
        fixed: {factor: array}: condition on it. A Series or DataFrame here or among priors must have the labels of the
            data, in their order.
        dims: {axis: name} in the posterior.
        self_loops: with a shared factor, whether cells that join an entry with itself are part of the data ("gibbs"
            and "augmented-gibbs" only).
        **options: the options of all models, listed by the reference and ``help``.

    Raises (from ``fit``):
        ValueError: a spec, rank, prior or fixed factor that does not fit; the message names it.
    """

    spec: str = "dk,vk->dv"
    ranks: Mapping[str, int] | None = None
    _: KW_ONLY
    names: Sequence[str] | None = None
    shared: Mapping[str, str] | None = None
    symmetric: Sequence[str] = ()
    priors: Mapping[str, tuple[Any, Any]] | None = None
    fixed: Mapping[str, Any] | None = None
    dims: Mapping[str, str] | None = None
    self_loops: Annotated[bool, Flag()] = False

    _usual_likelihood: ClassVar[str | None] = "poisson"

    def _check_parameters(self) -> None:
        for name in ("ranks", "shared", "priors", "fixed", "dims"):
            check_mapping(name, getattr(self, name))
        if isinstance(self.symmetric, str):
            raise ValueError(f"symmetric must be a sequence of names of factors, got {self.symmetric!r}")
        super()._check_parameters()

    def _observe(self, X: Any) -> Observations | ReleaseFiles:
        observations = super()._observe(X)
        if self.self_loops or not self.shared or isinstance(observations, ReleaseFiles):
            return observations
        return without_self_loops(observations, self._spec(len(observations.mode_shape)))

    def _modelled_cells(self) -> np.ndarray | None:
        if self.self_loops or not self.shared:
            return None
        numbers = np.indices([len(names) for names in self._reader.axes.values()], sparse=True)
        sender, receiver = joined(self.model_.spec)
        return np.broadcast_to(numbers[sender] != numbers[receiver], [each.size for each in numbers]).copy()

    def _spec(self, n_modes: int) -> Spec:
        return parse_spec(self.spec, names=self.names, shared=self.shared, symmetric=self.symmetric)

    def _ranks(self, spec: Spec) -> dict[str, int]:
        return dict(self.ranks or {})

    def _given(self, X: Any, **of_rows: Any) -> Given:
        given = super()._given(X, **of_rows)
        spec, dims = given.model.spec, self._layout(given.model.spec).dims
        labels = dict(zip(spec.output, given.labels, strict=True))
        for name, letters in zip(spec.names, spec.factor_axes, strict=True):
            axes = [Axis(dims[a], [labels[a]] if labels.get(a) is not None else []) for a in letters]
            told = {f"fixed factor {name!r}": [(self.fixed or {}).get(name)]}
            told[f"prior of {name!r}"] = list((self.priors or {}).get(name, ()))
            for what, values in told.items():
                for each in map(tabled, values):
                    in_order(what, each, axes if isinstance(each, pd.DataFrame) else axes[-1:])
        return given

    def _layout(self, spec: Spec) -> Layout:
        layout = default_layout(spec)
        for axis in self.dims or {}:
            if axis not in layout.dims:
                raise ValueError(f"dims must be for axes of the spec {sorted(layout.dims)}, got {axis!r}")
        layout = layout._replace(dims=layout.dims | dict(self.dims or {}))
        check_words(layout)
        return layout

    def _model(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> Factorization:
        self._layout(spec)
        typical = self._priors(spec, sizes, mean_count)
        priors: dict[str, GammaPrior | LearnedShapePrior] = dict(typical)
        shapes = {name: tuple(sizes[a] for a in axes) for name, axes in zip(spec.names, spec.factor_axes, strict=True)}
        for name, given in (self.priors or {}).items():
            if name not in shapes:
                raise ValueError(f"priors must be for factors among {list(spec.names)}, got {name!r}")
            prior = priors[name] = check_prior(name, given, shapes[name], typical[name])
            if name in spec.symmetric:
                for values in (getattr(prior, "shape", None), prior.rate):
                    if values is not None:
                        check_transpose(f"prior of symmetric factor {name!r}", values, shapes[name])
        fixed = {}
        for name, value in (self.fixed or {}).items():
            if name not in shapes:
                raise ValueError(f"fixed must be for factors among {list(spec.names)}, got {name!r}")
            if name in (self.priors or {}):
                raise ValueError(f"fixed must be for factors without a prior in priors, got {name!r}")
            fixed[name] = check_fixed(name, value, shapes[name])
            if name in spec.symmetric:
                check_transpose(f"fixed symmetric factor {name!r}", fixed[name], shapes[name])
        if len(fixed) == len(shapes):
            raise ValueError("fixed must leave a factor to be found, got all of them")
        likelihood = self._likelihood()
        return factorization(spec, sizes, priors, fixed=fixed, self_loops=self.self_loops, likelihood=likelihood)

    def _portable_parameters(self) -> dict[str, Any]:
        found = super()._portable_parameters()
        for name in ("fixed", "priors"):
            if found[name] is not None:
                found[name] = {k: nested(v) for k, v in found[name].items()}
        return found


def without_self_loops(observations: Observations, spec: Spec) -> Observations:
    """The observations with every cell masked that joins an entry of the shared factor with itself, if the axes fit."""
    shape, (sender, receiver) = observations.mode_shape, joined(spec)
    if len(shape) != len(spec.output) or shape[sender] != shape[receiver]:
        return observations
    columns = np.arange(observations.shape[1])
    return observations.hide(np.unravel_index(columns, shape[1:])[receiver - 1], columns)


def joined(spec: Spec) -> tuple[int, int]:
    """The two axes of the data that the shared factor is for."""
    twice = [t for t, f in zip(spec.terms, spec.factor_of_term, strict=True) if spec.factor_of_term.count(f) > 1]
    sender, receiver = (next(spec.output.index(a) for a in term if a in spec.output) for term in twice)
    return sender, receiver


def nested(value: Any) -> Any:
    """Arrays as lists, in a tuple or alone."""
    if isinstance(value, tuple | list):
        return [None if part is None else np.asarray(part).tolist() for part in value]
    return np.asarray(value).tolist()


def check_mapping(name: str, value: Any) -> None:
    """Refuse what is neither a mapping nor None."""
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping, such as a dict, got {value!r}")


def check_words(layout: Layout) -> None:
    """Dimensions and factors need names of their own: the posterior holds them side by side."""
    dims, factors = list(layout.dims.values()), list(layout.axes)
    taken, rates = set(RESERVED), {f"{factor}{end}" for factor in factors for end in HYPERS}
    for dim in dims:
        if not isinstance(dim, str) or not dim or dim in taken | rates:
            raise ValueError(
                f"dims must be different words, none of {', '.join(map(repr, RESERVED))} or a prior's rate "
                f"or shape ({', '.join(sorted(rates))}), got {dim!r} among {dims}"
            )
        taken.add(dim)
    for factor in factors:
        if factor in taken | rates:
            raise ValueError(
                f"names of factors must differ from those of axes ({', '.join(dims)}), "
                f"{', '.join(map(repr, RESERVED))} and those of prior rates and shapes ({', '.join(sorted(rates))}), "
                f"got {factor!r}; give names= or dims="
            )


def check_prior(
    name: str, given: Any, shape: tuple[int, ...], default: GammaPrior | LearnedShapePrior
) -> GammaPrior | LearnedShapePrior:
    """A prior from (shape, rate), each a positive number or array; the shape may be "learned", the rate None."""
    try:
        prior_shape, rate = given
    except (TypeError, ValueError):
        raise ValueError(f"priors must be pairs (shape, rate), got {given!r} for {name!r}") from None
    rates = None if rate is None else check_values(f"prior of {name!r}", rate, shape)
    size = 1.0 if default.size is None else default.size
    if isinstance(prior_shape, str) and prior_shape == LEARNED:
        return LearnedShapePrior(size, None) if rates is None else LearnedShapePrior(None, rates)
    values = check_values(f"prior of {name!r}", prior_shape, shape)
    if rates is None:
        return GammaPrior(values, float(np.mean(values)) / size, learned=True)
    return GammaPrior(values, rates, learned=False)


def check_values(name: str, value: Any, shape: tuple[int, ...]) -> float | np.ndarray:
    """A positive finite number, or an array of them that broadcasts against shape."""
    found = real_numbers(name, value)
    if not ((found > 0.0) & (found < np.inf)).all():
        raise ValueError(f"{name} must be positive and finite, got {found[~((found > 0) & (found < np.inf))].flat[0]}")
    try:
        np.broadcast_to(found, shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast against {shape}, got shape {found.shape}") from None
    return float(found) if found.ndim == 0 else found


def check_fixed(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A factor's value: finite, not negative, not all zero, of its shape; zeros become tiny, to have logarithms."""
    found = real_numbers(f"fixed factor {name!r}", value)
    if found.shape != shape:
        raise ValueError(f"fixed factor {name!r} must have shape {shape}, got {found.shape}")
    bad = ~((found >= 0.0) & (found < np.inf))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"fixed factor {name!r} must be finite and not negative, got {found[at]} at index {at}")
    if not found.any():
        raise ValueError(f"fixed factor {name!r} must have a positive entry, got only zeros")
    return np.maximum(found, 1e-150)


def check_transpose(name: str, values: float | np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse what does not equal its transpose."""
    full = np.broadcast_to(values, shape)
    if (full != full.T).any():
        i, j = (int(x) for x in np.argwhere(full != full.T)[0])
        raise ValueError(
            f"{name} must equal its transpose, got {full[i, j]} at ({i}, {j}) and {full[j, i]} at ({j}, {i})"
        )


def real_numbers(name: str, value: Any) -> np.ndarray:
    """A copy as an array of float64."""
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or an array of them, got {value!r:.60}") from None
