"""Factorizations: rates written as an einsum of nonnegative factors, each with a prior, and the counts' likelihood.

"dk,vk->dv" is a topic model, "ic,jd,cd->ij" with one factor for senders and receivers a block model,
"ik,jk,ak,tk->ijat" a CP tensor, "ic,jd,ak,tr,cdkr->ijat" a Tucker tensor (mathematics, section 6). For
inference each of them has a matrix form, rows by columns with K components: the factors with the
first output axis make the rows' side, all others the columns' side.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from countveil.laws.counts import POISSON, Likelihood, Parameters, likelihood_called
from countveil.models.einsum import Side, Spec, Use, plan
from countveil.models.priors import Factor, GammaPrior, LearnedShapePrior, Prior, prior_of, typical_prior, typical_scale


class Factorization(NamedTuple):
    """A model: its factors, and the two sides of its rates' matrix form."""

    spec: Spec
    factors: tuple[Factor, ...]
    rows: Side
    columns: Side
    shared: int | None  # the factor used on both sides, if there is one
    self_loops: bool  # whether cells that use the same entry of the shared factor twice are part of the data
    likelihood: Likelihood = POISSON

    @property
    def level(self) -> int | None:
        """The factor with an entry for every cell, which is on neither side; None if there is none."""
        last = len(self.factors) - 1
        return last if self.factors[last].prior.of_cells else None

    @property
    def without_level(self) -> "Factorization":
        """The model of all other factors."""
        if self.level is None:
            return self
        return self._replace(spec=self.spec.without_last, factors=self.factors[:-1])

    @property
    def n_components(self) -> int:
        """K of the matrix form."""
        return self.columns.shape[1]

    @property
    def matrix_axes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Which axes of the output make the matrix's rows, and which its columns, in their order there."""
        rows, columns = (tuple(self.spec.output.index(a) for a in side.observed) for side in (self.rows, self.columns))
        return rows, columns

    @property
    def row_factor(self) -> int | None:
        """The free factor whose rows are the matrix's rows and that is used nowhere else; None if there is none."""
        if not self.rows.single or self.shared is not None:
            return None
        factor = self.rows.uses[0].factor
        return None if self.factors[factor].fixed is not None else factor

    @property
    def shared_factor(self) -> Factor | None:
        """The factor that both sides use."""
        return None if self.shared is None else self.factors[self.shared]

    @property
    def free(self) -> tuple[int, ...]:
        """Numbers of the factors that are not fixed."""
        return tuple(f for f, factor in enumerate(self.factors) if factor.fixed is None)

    @property
    def fused_factor(self) -> int | None:
        """The ``row_factor`` if a sweep over the rows can draw it, since its prior's entries are independent."""
        row = self.row_factor
        return row if row is not None and self.factors[row].prior.independent else None

    def initial_hypers(self) -> tuple[np.ndarray, ...]:
        """Initial hyperparameters of the priors, one array per factor."""
        return tuple(factor.prior.start(factor) for factor in self.factors)

    def begun(
        self, factors: Sequence[np.ndarray], masked: tuple[np.ndarray, np.ndarray]
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Where a chain begins, given a start's factors: (factors, hyperparameters).

        ``masked`` has the rows and columns of masked cells.
        """
        pairs = [
            factor.prior.begin(factor, value, self.seen_along(factor.axes[0], len(value), masked))
            for factor, value in zip(self.factors, factors, strict=True)
        ]
        values, hypers = zip(*pairs, strict=True)
        return values, hypers

    def seen_along(self, axis: str, size: int, masked: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """(size,) whether each entry of an axis has a cell that is not masked; of a latent axis, all are taken to."""
        for side, numbers in zip((self.rows, self.columns), masked, strict=True):
            if axis in side.observed:
                sizes = [side.sizes[a] for a in side.observed]
                hidden = np.bincount(np.unravel_index(numbers, sizes)[side.observed.index(axis)], minlength=size)
                return hidden < self.rows.shape[0] * self.columns.shape[0] // size
        return np.ones(size, dtype=bool)

    def initial_parameters(self) -> Parameters:
        """Initial values of the likelihood's own parameters."""
        return self.likelihood.start((self.rows.shape[0], self.columns.shape[0]))

    def matrices(self, factors: tuple[np.ndarray, ...] | list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """((n_rows, K), (n_columns, K)) whose products are the rates.

        Rates with a level for every cell are no product of matrices of K columns: they are the rates times the identity
        matrix of the shorter side.
        """
        theta = self.rows.matrix(self.rows.forward(factors))
        phi = self.columns.matrix(self.columns.forward(factors))
        if self.level is None:
            return theta, phi
        rates = self.by_cell(factors[self.level]) * (theta @ phi.T)
        if len(theta) < len(phi):
            return np.eye(len(theta)), np.ascontiguousarray(rates.T)
        return rates, np.eye(len(phi))

    def by_cell(self, values: np.ndarray) -> np.ndarray:
        """An array over the axes of the data as a contiguous matrix, rows by columns."""
        rows, columns = self.matrix_axes
        return np.ascontiguousarray(values.transpose(rows + columns).reshape(self.rows.shape[0], -1))

    def over_axes(self, matrix: np.ndarray) -> np.ndarray:
        """A matrix, rows by columns, as an array over the axes of the data."""
        order, sizes = sum(self.matrix_axes, ()), self.rows.sizes | self.columns.sizes
        shape = [sizes[self.spec.output[i]] for i in order]
        return np.ascontiguousarray(matrix.reshape(shape).transpose(np.argsort(order)))

    def with_rows(self, n_rows: int) -> "Factorization":
        """The same model for another number of rows.

        Raises:
            ValueError: the rows do not have a factor of their own.
        """
        row = self.row_factor
        if row is None or len(self.rows.observed) != 1:
            raise ValueError("rows that come and go need a separate factor with one observed axis")
        axis = self.rows.observed
        sizes = self.rows.sizes | {axis: n_rows}
        factors = list(self.factors)
        shape = tuple(sizes[a] for a in factors[row].axes)
        factors[row] = factors[row]._replace(shape=shape)
        rows, columns = (side._replace(sizes=sizes) for side in (self.rows, self.columns))
        return self._replace(factors=tuple(factors), rows=rows, columns=columns)

    @property
    def product_of_two(self) -> bool:
        """Whether the matrix form is a product of two free factors, each used once."""
        whole = self.level is None and len(self.free) == len(self.factors)
        return self.row_factor is not None and self.columns.single and whole

    def with_components(self, n_components: int) -> "Factorization":
        """The same model of another number of components.

        Raises:
            ValueError: there is not one latent axis, or a factor is fixed.
        """
        if len(self.spec.latent) != 1 or len(self.free) != len(self.factors):
            raise ValueError("components that come and go must be those of free factors with one latent axis")
        axis = self.spec.latent
        factors = []
        for factor in self.factors:
            sizes = (
                tuple(n_components if a == axis else n for a, n in zip(factor.axes, shape, strict=True))
                for shape in (factor.shape, factor.component_shape)
            )
            shape, component_shape = sizes
            factors.append(factor._replace(shape=shape, component_shape=component_shape))
        rows, columns = (side._replace(sizes=side.sizes | {axis: n_components}) for side in (self.rows, self.columns))
        return self._replace(factors=tuple(factors), rows=rows, columns=columns)

    def as_wide_as(self, factors: Sequence[np.ndarray]) -> "Factorization":
        """The same model with as many components as these factors have."""
        if all(values.shape == own.shape for values, own in zip(factors, self.factors, strict=True)):
            return self
        place = self.factors[0].axes.index(self.spec.latent)
        return self.with_components(factors[0].shape[place])

    def of_matrices(self, theta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, ...]:
        """The factors of a product of two, with their own axes, from their matrices (D, K) and (V, K)."""
        row, column = self.row_factor, self.columns.uses[0]
        assert row is not None
        axes = [self.columns.axes.index(a) for a in column.axes]
        factors = [np.empty(0)] * 2
        factors[row] = self.as_row_factor(theta)
        factors[column.factor] = np.ascontiguousarray(self.columns.folded(phi).transpose(axes))
        return tuple(factors)

    def as_row_matrix(self, factor: np.ndarray) -> np.ndarray:
        """A copy of the row factor as a contiguous (n_rows, K) matrix."""
        axes = self.rows.uses[0].axes
        wanted = [axes.index(a) for a in self.rows.axes]
        return np.array(factor.transpose(wanted)).reshape(self.rows.shape)

    def as_row_factor(self, matrix: np.ndarray) -> np.ndarray:
        """The row factor, with its own axes, from its (n_rows, K) matrix."""
        axes = self.rows.uses[0].axes
        return np.ascontiguousarray(self.rows.folded(matrix).transpose([self.rows.axes.index(a) for a in axes]))

    def middle(self, values: list[np.ndarray]) -> np.ndarray:
        """(R, C, C) coupling of both uses of the shared factor, per rest of a column; values are from columns.forward.

        The rate of (i, j, rest) is sum_cd theta_ic theta_jd middle[rest, c, d].
        """
        assert self.shared is not None
        sizes, columns = self.columns.sizes, self.columns
        row_latent, use = self.rows.latent, next(u for u in columns.uses if u.factor == self.shared)
        observed = next(a for a in use.axes if a in columns.observed)
        latent = next(a for a in use.axes if a not in columns.observed)
        rest = columns.observed.replace(observed, "")
        n = sizes[latent]
        if columns.single:
            return np.eye(n)[None]
        step = columns.steps[-1]
        mine = columns.uses.index(use)
        other, axes = (step.right, step.right_axes) if step.left == mine else (step.left, step.left_axes)
        if row_latent == latent:
            flat = values[other].transpose([axes.index(a) for a in rest + latent]).reshape(-1, n)
            return np.ascontiguousarray(flat[:, :, None] * np.eye(n))
        wanted = [axes.index(a) for a in rest + row_latent + latent]
        return np.ascontiguousarray(values[other].transpose(wanted).reshape(-1, n, n))


def factorization(
    spec: Spec,
    sizes: dict[str, int],
    priors: Mapping[str, Prior],
    *,
    fixed: dict[str, np.ndarray] | None = None,
    self_loops: bool = False,
    likelihood: Likelihood = POISSON,
) -> Factorization:
    """The model of a checked spec over axes of these sizes; ``priors`` has a prior for every factor by name.

    Raises:
        ValueError: a factor with the name of one of the likelihood's parameters.
    """
    if set(spec.names) & set(likelihood.parameter_axes):
        raise ValueError(
            f"names of factors must differ from the likelihood's parameters {list(likelihood.parameter_axes)}, "
            f"got {list(spec.names)}"
        )
    fixed = fixed or {}
    factors = []
    for f, (name, axes) in enumerate(zip(spec.names, spec.factor_axes, strict=True)):
        shape = tuple(sizes[a] for a in axes)
        observed = [a in spec.output for a in axes]
        component_shape = tuple(1 if seen or not any(observed) else n for seen, n in zip(observed, shape, strict=True))
        known = name in spec.symmetric, spec.factor_of_term.count(f) > 1
        factors.append(Factor(name, axes, shape, component_shape, priors[name], fixed.get(name), *known))
    rows, columns, shared = sides(spec.without_last if factors[-1].prior.of_cells else spec, sizes)
    return Factorization(spec, tuple(factors), rows, columns, shared, self_loops, likelihood)


def sides(spec: Spec, sizes: dict[str, int]) -> tuple[Side, Side, int | None]:
    """(rows, columns, shared factor) of the matrix form.

    The rows' side takes the terms of the first output axis, and every term that shares an output axis with one of
    these. So no output axis is on both sides.
    """
    uses = [Use(factor, axes) for factor, axes in zip(spec.factor_of_term, spec.terms, strict=True)]
    row_axes, left = {spec.output[0]}, []
    while True:
        found = [u for u in uses if u not in left and row_axes.intersection(u.axes)]
        if not found:
            break
        left += found
        row_axes.update(a for u in found for a in u.axes if a in spec.output)
    right = [u for u in uses if u not in left]
    observed = "".join(a for a in spec.output if a in row_axes)
    shared = next((u.factor for u in right if u.factor in {v.factor for v in left}), None)
    others = "".join(a for a in spec.output if a not in row_axes)
    last = None
    if shared is not None:
        last = next(i for i, u in enumerate(right) if u.factor == shared)
        receiver = next(a for a in right[last].axes if a in others)
        others = receiver + others.replace(receiver, "")
    right_latent = {a for u in right for a in u.axes if a not in spec.output}
    latent = "".join(
        a for a in dict.fromkeys("".join(u.axes for u in left)) if a not in spec.output and a in right_latent
    )
    return (plan(tuple(left), observed, latent, sizes), plan(tuple(right), others, latent, sizes, last), shared)


def typical_priors(
    spec: Spec, sizes: dict[str, int], shape: float | str, rate: float | None, mean_count: float
) -> dict[str, GammaPrior | LearnedShapePrior]:
    """The same prior for every factor; rate None learns the rates, around those that the mean count suggests."""
    n_terms = math.prod(sizes[a] for a in spec.latent)
    prior = typical_prior(shape, rate, typical_scale(mean_count, n_terms, len(spec.terms)))
    return dict.fromkeys(spec.names, prior)


DIGESTS = {"dates": "dates of rows", "added": "seeds"}  # of what priors take from the data, to the last bit


def model_facts(model: Factorization) -> dict[str, Any]:
    """Plain values from which ``model_of`` makes the model again."""
    settings = dict(model.likelihood.settings)
    return {
        "spec": model.spec._asdict(),
        "sizes": model.rows.sizes | model.columns.sizes,
        "self_loops": model.self_loops,
        "likelihood": model.likelihood.name,
        "factors": [
            {"prior": f.prior.facts(), "fixed": None if f.fixed is None else f.fixed.tolist()} for f in model.factors
        ],
    } | ({"likelihood_settings": settings} if settings else {})


def model_of(facts: dict[str, Any]) -> Factorization:
    """The model that ``model_facts`` described."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in facts["spec"].items()
    }
    spec = Spec(**fields)
    priors, fixed = {}, {}
    for name, each in zip(spec.names, facts["factors"], strict=True):
        priors[name] = prior_of(each["prior"])
        if each["fixed"] is not None:
            fixed[name] = np.array(each["fixed"], dtype=float)
    likelihood = likelihood_called(facts["likelihood"], facts.get("likelihood_settings", {}))
    return factorization(
        spec, facts["sizes"], priors, fixed=fixed, self_loops=facts["self_loops"], likelihood=likelihood
    )


def check_digests(facts: dict[str, Any], model: Factorization) -> None:
    """Refuse a model whose priors have other dates or seeds than ``facts`` say; raises ValueError."""
    for stated, factor in zip(facts["factors"], model.factors, strict=True):
        own = factor.prior.facts()
        for name, called in DIGESTS.items():
            if name in own and own[name] != stated["prior"][name]:
                got = f"{stated['prior'][name]!r:.40} for {factor.name} and not {own[name]!r:.40}"
                raise ValueError(f"must hold the {called} that its model was fitted with, got a digest {got}")
