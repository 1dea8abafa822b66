"""Factors updated one after another, given the counts allocated to each: Gamma(shape + counts, rate + exposures).

Exposures are derivatives of the sum over cells of e times the rate, at the newest values of all other
factors. A rule decides what an update is: a draw or a mean.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine, row_blocks
from countveil.inference.streams import COLUMNS, HYPERS, Streams
from countveil.kernels import tiles as kernels
from countveil.kernels.allocation import split_counts
from countveil.kernels.entries import Entries as StoredEntries
from countveil.kernels.random import SMALLEST
from countveil.kernels.shared import ColumnBaselines, RowBaselines, update_actors
from countveil.kernels.tiles import is_dense
from countveil.laws.counts.laws import exposed, in_block
from countveil.models.einsum import Side, Step, transposed
from countveil.models.factorization import Factor, Factorization
from countveil.models.priors import Conditional

ENTRIES_PER_BLOCK = 1 << 16
NO_DRAWS = np.random.Generator(np.random.Philox(0))

Law = tuple[Any, ...]
Priors = list[tuple[np.ndarray, np.ndarray]]
Scales = list[np.ndarray | float]
Entries = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Links(NamedTuple):
    """Exposures between actors, as ``update_actors`` takes them."""

    baseline: RowBaselines | ColumnBaselines
    out: Entries  # (indptr, actor, rest, excess) of each row
    into: Entries  # the same for each actor's columns
    loops: np.ndarray  # (actors, rests) exposure of the cells that join an actor with itself


class Rule(Protocol):
    """How a factor is updated given its counts and exposures; both methods return its new value."""

    def factor(self, f: int, value: np.ndarray, count: np.ndarray, exposure: np.ndarray) -> np.ndarray:
        """The new value of a factor that is used once."""
        ...

    def shared(self, f: int, theta: np.ndarray, count: np.ndarray, middle: np.ndarray, links: Links) -> np.ndarray:
        """The new value of the factor that both sides use."""
        ...


def row_exposures(observations: Observations, law: Law, phi: np.ndarray, engine: Engine) -> np.ndarray:
    """(D, K) sums over columns of exposure times phi."""
    (exposure,), _ = engine.over_rows(row_exposures_block, observations, (law, phi, phi.sum(axis=0)))
    return exposure


def row_exposures_block(block: Block, law: Law, phi: np.ndarray, total: np.ndarray) -> tuple[Arrays, Arrays]:
    """The block's rows of the row exposures."""
    law, entries = in_block(law, block.entries, block.first_row)
    exposure = entries.exposure_d[:, None] * total
    kernels.add_exposures(law, entries, phi, exposure, is_dense(entries, len(phi)), True)
    return (exposure,), ()


def column_exposures(observations: Observations, law: Law, theta: np.ndarray, engine: Engine) -> np.ndarray:
    """(V, K) sums over rows of exposure times theta."""
    _, (exposure, total) = engine.over_rows(
        column_exposures_block, observations, (law, observations.shape[1]), (theta,)
    )
    exposure += total
    return exposure


def column_exposures_block(block: Block, law: Law, n_columns: int, theta: np.ndarray) -> tuple[Arrays, Arrays]:
    """The block's part of (the column exposures less the rows' baselines, those baselines)."""
    exposure, total = np.zeros((n_columns, theta.shape[1])), np.zeros(theta.shape[1])
    law, entries = in_block(law, block.entries, block.first_row)
    kernels.add_baselines(entries.exposure_d, theta, total)
    kernels.add_exposures(law, entries, theta, exposure, is_dense(entries, n_columns), False)
    return (), (exposure, total)


def filled(shape: tuple[int, ...], values: np.ndarray | float) -> np.ndarray:
    """An array of this shape, filled with values that broadcast against it."""
    found = np.empty(shape)
    found[...] = values
    return found


def offset_scales(model: Factorization, observations: Observations) -> Scales:
    """What each factor's prior rates are multiplied by: reciprocals of known offsets of its observed axis, or 1.0.

    Raises:
        ValueError: offsets for an axis of a shared factor, of a fixed one or of several, or for the columns of a
            tensor.
    """
    scales: Scales = [1.0] * len(model.factors)
    for axis, scale, name in zip(
        model.spec.output, (observations.prior_scale_d, observations.prior_scale_v), ("row", "column"), strict=False
    ):
        if (scale == 1.0).all():
            continue
        if name == "column" and len(model.spec.output) > 2:
            raise ValueError(f"column_offset must be for data of two axes, got data of axes {list(model.spec.output)}")
        holders = [f for f, axes in zip(model.spec.factor_of_term, model.spec.terms, strict=True) if axis in axes]
        if len(holders) > 1 or holders[0] == model.shared:
            raise ValueError(
                f"{name}_offset must be for an axis that has exactly one factor, not shared with another axis, "
                f"got axis {axis!r}"
            )
        if model.factors[holders[0]].fixed is not None:
            raise ValueError(
                f"{name}_offset must be for a factor that is learned, got axis {axis!r} of one that is fixed: multiply "
                "its values by the offset instead"
            )
        axes = model.factors[holders[0]].axes
        scales[holders[0]] = scale.reshape([-1 if a == axis else 1 for a in axes])
    return scales


def own_entries(factor: Factor, sums: np.ndarray) -> np.ndarray:
    """Counts or exposures of a factor's parameters; a symmetric factor has one parameter for (c, d) and (d, c)."""
    return sums + sums.T - np.diag(np.diag(sums)) if factor.symmetric else sums


def update_side(
    model: Factorization,
    side: Side,
    factors: list[np.ndarray],
    counts: list[np.ndarray],
    exposure: np.ndarray,
    rule: Rule,
) -> None:
    """Replace the free factors of one side, in place in ``factors``, given the (n, K) exposure of its matrix."""
    for u, use in enumerate(side.uses):
        factor = model.factors[use.factor]
        if factor.fixed is None and use.factor != model.shared:
            exposures = own_entries(factor, side.gradient(u, side.forward(factors), exposure))
            factors[use.factor] = rule.factor(
                use.factor, factors[use.factor], own_entries(factor, counts[u]), exposures
            )


def update_after_allocation(
    model: Factorization,
    law: Law,
    factors: list[np.ndarray],
    row_counts: list[np.ndarray],
    column_counts: list[np.ndarray],
    observations: Observations,
    links: Links | None,
    rule: Rule,
    engine: Engine,
) -> None:
    """Replace all free factors, in place in ``factors``, given the counts of every use.

    ``links`` are those of the observations if both sides use a free factor.
    """
    f = model.shared
    if links is not None:
        assert f is not None
        receiver = next(u for u, use in enumerate(model.columns.uses) if use.factor == f)
        middle = model.middle(model.columns.forward(factors))
        factors[f] = rule.shared(f, factors[f], row_counts[0] + column_counts[receiver], middle, links)
    if any(model.factors[use.factor].fixed is None and use.factor != f for use in model.rows.uses):
        phi = model.columns.matrix(model.columns.forward(factors))
        exposure = row_exposures(observations, law, phi, engine)
        update_side(model, model.rows, factors, row_counts, exposure, rule)
    if any(model.factors[use.factor].fixed is None and use.factor != f for use in model.columns.uses):
        theta = model.rows.matrix(model.rows.forward(factors))
        exposure = column_exposures(observations, law, theta, engine)
        update_side(model, model.columns, factors, column_counts, exposure, rule)


def sample_gammas(
    count: np.ndarray, exposure: np.ndarray, shape: np.ndarray, rate: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Gamma(shape + count, rate + exposure), kept away from underflow so that products of draws stay positive.

    Exposures of entries that are mostly masked are differences, and rounding may make them negative.
    """
    draw = rng.standard_gamma(shape + count) / (rate + np.maximum(exposure, 0.0))
    return np.maximum(draw, SMALLEST)


class DrawRule:
    """Draws each factor given its counts and exposures: from gamma conditionals, or by its prior.

    Hyperparameters that need counts are drawn before a factor, or with it; ``hypers`` are those after all draws.
    """

    def __init__(
        self,
        model: Factorization,
        scales: Scales,
        hypers: tuple[np.ndarray, ...],
        streams: Streams,
        sweep: int,
        engine: Engine,
    ) -> None:
        self.model, self.scales, self.hypers = model, scales, list(hypers)
        self.streams, self.sweep, self.engine = streams, sweep, engine

    def gamma(self, f: int) -> tuple[np.ndarray, np.ndarray]:
        """(shape, rate) of a factor's prior, each of the factor's shape, known offsets included."""
        factor = self.model.factors[f]
        shape, rate = factor.prior.gamma(self.hypers[f], self.scales[f])
        return filled(factor.shape, shape), filled(factor.shape, rate)

    def draw_hypers(self, factors: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Hyperparameters of all priors given the new factors; unchanged for fixed factors."""
        rng = self.streams.generator(self.sweep, HYPERS)
        for f in self.model.free:
            factor = self.model.factors[f]
            given = self.hypers[f], self.scales[f], factors[f]
            self.hypers[f] = factor.prior.draw_hypers(factor, *given, rng)
        return tuple(self.hypers)

    def row_prior(self, f: int) -> tuple[np.ndarray, np.ndarray]:
        """(shape, rate) of the row factor's prior, each (D, K)."""
        shape, rate = self.gamma(f)
        return self.model.as_row_matrix(shape), self.model.as_row_matrix(rate)

    def factor(self, f: int, value: np.ndarray, count: np.ndarray, exposure: np.ndarray) -> np.ndarray:
        """A draw; independent gammas are drawn in blocks, each with a stream of its own."""
        factor = self.model.factors[f]
        given = Conditional(self.scales[f], value, count, exposure)
        if not factor.prior.independent:
            rng = self.streams.generator(self.sweep, COLUMNS, f << 32)
            given = given._replace(exposures=np.maximum(exposure, 0.0))
            drawn, self.hypers[f] = factor.prior.draw(factor, self.hypers[f], given, rng)
            return np.maximum(drawn, SMALLEST)
        if factor.prior.collapsed:
            rng = self.streams.generator(self.sweep, HYPERS, f + 1)
            self.hypers[f] = factor.prior.draw_hypers_given_counts(factor, self.hypers[f], given, rng)
        shape, rate = self.gamma(f)
        flat = [x.ravel() for x in (count, exposure, shape, rate)]
        draw = np.empty(count.size)
        blocks = row_blocks(draw.size, ENTRIES_PER_BLOCK)

        def fill(number: int, part: slice) -> None:
            rng = self.streams.generator(self.sweep, COLUMNS, f << 32 | number)
            count_n, exposure_n, shape_n, rate_n = (x[part] for x in flat)
            draw[part] = sample_gammas(count_n, exposure_n, shape_n, rate_n, rng)

        list(self.engine.map(fill, range(len(blocks)), blocks))
        drawn = draw.reshape(count.shape)
        return np.triu(drawn) + np.triu(drawn, 1).T if self.model.factors[f].symmetric else drawn

    def shared(self, f: int, theta: np.ndarray, count: np.ndarray, middle: np.ndarray, links: Links) -> np.ndarray:
        """A draw, actor by actor."""
        new, (shape, rate) = np.array(theta), self.gamma(f)
        rng = self.streams.generator(self.sweep, COLUMNS, f << 32)
        update_actors(new, np.array(count, dtype=float), shape, rate, middle, links, True, rng)
        return new


class MeanRule:
    """Keeps each factor's optimal Gamma(shape, rate); the factor's new value is its mean."""

    def __init__(self, model: Factorization, priors: Priors) -> None:
        self.priors = priors
        self.shapes: list[np.ndarray] = [np.empty(0)] * len(model.factors)
        self.rates: list[np.ndarray] = [np.empty(0)] * len(model.factors)

    def factor(self, f: int, value: np.ndarray, count: np.ndarray, exposure: np.ndarray) -> np.ndarray:
        """Shape a + count, rate b + exposure."""
        shape, rate = self.priors[f]
        self.keep(f, shape + count, np.maximum(rate + np.maximum(exposure, 0.0), SMALLEST))
        return self.mean(f)

    def keep(self, f: int, shape: np.ndarray, rate: np.ndarray) -> None:
        """Set a factor's optimum."""
        self.shapes[f], self.rates[f] = np.ascontiguousarray(shape), np.ascontiguousarray(rate)

    def mean(self, f: int) -> np.ndarray:
        """The mean of a factor's optimum."""
        return np.maximum(self.shapes[f] / self.rates[f], SMALLEST)

    def gammas(self, model: Factorization, means: Arrays) -> tuple[Arrays, Arrays]:
        """(shapes, rates) of all optima; a fixed factor has its value as the shape, and rate one."""
        shapes, rates = list(means), [np.ones_like(mean) for mean in means]
        for f in model.free:
            shapes[f], rates[f] = self.shapes[f], self.rates[f]
        return tuple(shapes), tuple(rates)

    def shared(self, f: int, theta: np.ndarray, count: np.ndarray, middle: np.ndarray, links: Links) -> np.ndarray:
        """The same, actor by actor."""
        new, (shape, rate) = np.array(theta), self.priors[f]
        self.shapes[f], self.rates[f] = np.array(count, dtype=float), np.array(rate, order="C")
        shape = np.ascontiguousarray(shape)
        update_actors(new, self.shapes[f], shape, self.rates[f], middle, links, False, NO_DRAWS)
        return new


def make_links(observations: Observations, law: Law, n_rests: int) -> Links:
    """``Links`` of observations whose columns are (actor, rest), flattened.

    Cells that join an actor with itself go to ``loops`` alone.
    """
    o = observations
    rows = o.row_numbers
    actors, rests = o.columns // n_rests, o.columns % n_rests
    entries, excess = exposed(o.block(slice(0, o.shape[0])), law), np.empty(rows.size)
    kernels.entry_excesses(law, entries, excess)
    baseline, loops = baselines(entries, n_rests)
    own = actors == rows
    np.add.at(loops, (rows[own], rests[own]), excess[own])
    kept = ~own & (excess != 0.0)

    def grouped(by: np.ndarray, other: np.ndarray) -> Entries:
        order = np.argsort(by[kept], kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(by[kept], minlength=o.shape[0]))]).astype(np.int64)
        return (indptr, other[kept][order].astype(np.int64), rests[kept][order].astype(np.int64), excess[kept][order])

    return Links(baseline, grouped(rows, actors), grouped(actors, rows), loops)


def baselines(entries: StoredEntries, n_rests: int) -> tuple[RowBaselines | ColumnBaselines, np.ndarray]:
    """(exposures of unstored cells, those of the cells that join an actor with itself (actors, rests))."""
    if not entries.place_d.size:
        return RowBaselines(entries.exposure_d.copy()), np.repeat(entries.exposure_d[:, None], n_rests, axis=1)
    exposure = entries.weight_lv.reshape(-1, entries.n_rows, n_rests)
    loops = exposure[entries.place_d, np.arange(entries.n_rows)]
    return ColumnBaselines(entries.place_d, exposure), loops


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
    step: Step, counts: np.ndarray, left: np.ndarray, right: np.ndarray, sizes: dict[str, int], rng: np.random.Generator
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
