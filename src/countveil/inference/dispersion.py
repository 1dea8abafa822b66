"""The dispersion p of overdispersed counts, drawn with the true counts summed out (mathematics, section 20).

Drawn given the true counts, p sticks where the noise is wide or counts are large: the counts look as dispersed as p
says, and p follows the counts. So p also moves along the curve on which every expected count stays as it is. Expected
counts are Lambda m(p), m(p) = p / ((1 - p) q), q = -log(1 - p). With c = m(p) / m(p') and
entries x ~ Gamma(a, rate b) of a factor,

    (p, x) -> (p', c x):            c^(sum of a) exp(-(c - 1) sum of b x) P(reports | c Lambda, p') f(logit p')
    (p, x, b) -> (p', c x, b / c):  product over b_k of g(b_k / c) / c times the same two

are densities of logit p' along the curve (20.2, 20.3), the Jacobian of the map included; f and g are prior densities.
The first scales the entries of one row or column, if these have a p each; the second a whole factor with learned rates.
The map is a group that acts on the state, so that a slice of the density, or a Metropolis step, leaves the posterior as
it is (Liu and Sabatti 2000).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference.plan import Plan
from countveil.inference.scoring import Factors
from countveil.kernels.random import SMALLEST
from countveil.kernels.scoring import add_seen_scores, expect_tally, stored_rates
from countveil.laws.counts.laws import counted_from
from countveil.laws.counts.negative_binomial import LOGITS, NegativeBinomial
from countveil.laws.counts.protocol import Likelihood, Parameters, Unseen, rates_at
from countveil.laws.counts.slices import draw_by_steps, draw_on_slices
from countveil.models.einsum import Side
from countveil.models.factorization import Factorization

SWEEPS_PER_MOVE = 4, 10  # for few stored cells and for many
CELLS_PER_SWEEP = 4096  # stored cells that add a sweep between moves
TOGETHER = 4  # moves from one of all p together to the next
WIDTH = 0.5  # of the first slice of all p together
STARTS = np.linspace(-4.0, 7.0, 12)  # logits among which a start looks for p


def learns_p(model: Factorization) -> bool:
    """Whether counts are negative binomial with a p that is learned."""
    return isinstance(model.likelihood, NegativeBinomial) and bool(model.likelihood.parameter_axes)


def moves(model: Factorization, plan: Plan) -> bool:
    """Whether p moves: not where sweeps go by tokens, which cost far less than a pass over the reports."""
    return learns_p(model) and not plan.by_tokens


def interval(observations: Observations) -> int:
    """Sweeps from one move to the next: decided by the data alone, since a choice by the state would bias the chain."""
    least, most = SWEEPS_PER_MOVE
    return int(min(least + observations.reports.size // CELLS_PER_SWEEP, most))


def moved(
    factors: Sequence[np.ndarray],
    hypers: Sequence[np.ndarray],
    parameters: Parameters,
    plan: Plan,
    model: Factorization,
    engine: Engine,
    rng: np.random.Generator,
    number: int = 0,
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], Parameters]:
    """Factors, hyperparameters and parameters after a move of every p; the true counts have to be drawn anew.

    Where there are several p, each moves by itself; in every fourth move, by its ``number``, all do together first.
    """
    new, found = tuple(factors), tuple(hypers)
    if parameters[0].size == 1 or number % TOGETHER == 0:
        curve = Curve.at(new, parameters, plan.data, model, engine)
        new, found, parameters = moved_together(curve, new, found, model, rng)
    if parameters[0].size > 1:
        curve = Curve.at(new, parameters, plan.data, model, engine)
        new, found, parameters = moved_apart(curve, new, found, plan, model, rng)
    return new, found, parameters


def moved_apart(
    curve: "Curve",
    factors: Sequence[np.ndarray],
    hypers: Sequence[np.ndarray],
    plan: Plan,
    model: Factorization,
    rng: np.random.Generator,
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], Parameters]:
    """Each p of a row or column, with the entries of the factor that this row or column has for itself.

    In models that have no such factor, rates stay as they are.
    """
    f = holder(model)
    if f is None:
        logits = draw_by_steps(lambda x: curve.density(x, np.zeros(x.size)), curve.logits, LOGITS, rng)
        return tuple(factors), tuple(hypers), curve.parameters_at(logits)
    shapes, products = prior_sums(model, plan, f, hypers[f], factors[f])

    def density(x: np.ndarray) -> np.ndarray:
        log_c = log_mean(curve.logits) - log_mean(x)
        return curve.density(x, log_c) + shapes * log_c - products * np.expm1(log_c)

    logits = draw_by_steps(density, curve.logits, LOGITS, rng)
    new = scaled(model, factors, log_mean(curve.logits) - log_mean(logits))
    return new, tuple(hypers), curve.parameters_at(logits)


def moved_together(
    curve: "Curve",
    factors: Sequence[np.ndarray],
    hypers: Sequence[np.ndarray],
    model: Factorization,
    rng: np.random.Generator,
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], Parameters]:
    """All p by one shift of their logits, with a factor and the hyperparameters of its size.

    Where p differ, c is the geometric mean of theirs. In models that learn no size, rates stay as they are.
    """
    new, found, f = list(factors), list(hypers), sized(model, hypers)
    prior: Any = None if f is None else model.factors[f].prior

    def log_c(shift: Any) -> float:
        return 0.0 if f is None else float((log_mean(curve.logits) - log_mean(curve.logits + shift)).mean())

    def resized(c: float) -> tuple[Any, float]:
        return (None, 0.0) if f is None else prior.resized(model.factors[f], hypers[f], c)

    def density(shift: np.ndarray) -> np.ndarray:
        by = log_c(shift)
        own = curve.density(curve.logits + shift, np.full(curve.logits.size, by))
        return own.sum(keepdims=True) + resized(float(np.exp(by)))[1]

    bounds = LOGITS[0] - curve.logits.min(), LOGITS[1] - curve.logits.max()
    shift = draw_on_slices(density, np.zeros(1), bounds, rng, WIDTH)
    if f is not None:
        c = float(np.exp(log_c(shift)))
        new[f], found[f] = np.maximum(new[f] * c, SMALLEST), resized(c)[0]
    return tuple(new), tuple(found), curve.parameters_at(curve.logits + shift)


def started(
    factors: Sequence[np.ndarray], plan: Plan, model: Factorization, engine: Engine
) -> tuple[tuple[np.ndarray, ...], Parameters]:
    """A start's factors, whose rates are expected counts, as rates of bursts; and p, under which reports are likeliest.

    A start at any other p may not leave it for hundreds of sweeps.
    """
    parameters = model.initial_parameters()
    if not moves(model, plan):
        return tuple(factors), parameters
    curve = Curve.at(factors, parameters, plan.data, model, engine)
    tried = [np.full(curve.logits.size, x) for x in STARTS]
    best = np.argmax([curve.density(x, -log_mean(x)) for x in tried], axis=0)
    logits = STARTS[best]
    return scaled(model, factors, -log_mean(logits)), curve.parameters_at(logits)


def counts_of(model: Factorization, factors: Sequence[np.ndarray], p: np.ndarray) -> tuple[np.ndarray, ...]:
    """Factors whose rates are expected counts, of factors whose rates are those of bursts: what a start has to give."""
    return scaled(model, factors, log_mean(np.clip(logit(np.ravel(p)), *LOGITS)))


def scaled(model: Factorization, factors: Sequence[np.ndarray], log_c: np.ndarray) -> tuple[np.ndarray, ...]:
    """The factors, with the rates of all cells, or of every row or column, multiplied by c; as they are if none can."""
    new = list(factors)
    f = holder(model) if log_c.size > 1 else next((f for f in model.free if f != model.shared), None)
    if f is not None:
        c = np.exp(log_c)
        new[f] = np.maximum(new[f] * (c if c.size == 1 else broadcastable(model, f, c)), SMALLEST)
    return tuple(new)


class Curve(NamedTuple):
    """The log-density of every logit p, where rates are multiplied by c (n,)."""

    logits: np.ndarray  # (n,) now
    parameters: Parameters
    matrices: tuple[np.ndarray, np.ndarray]  # theta and phi, now
    unseen: Unseen  # the rates of cells whose reports are not stored
    observations: Observations
    likelihood: NegativeBinomial
    engine: Engine

    @classmethod
    def at(
        cls,
        factors: Sequence[np.ndarray],
        parameters: Parameters,
        observations: Observations,
        model: Factorization,
        engine: Engine,
    ) -> "Curve":
        """Through these factors and parameters."""
        assert isinstance(model.likelihood, NegativeBinomial)
        unseen = unseen_rates(model, list(factors), observations, engine)
        logits, matrices = np.clip(logit(parameters[0]), *LOGITS), model.matrices(list(factors))
        return cls(logits, parameters, matrices, unseen, observations, model.likelihood, engine)

    def parameters_at(self, logits: np.ndarray) -> Parameters:
        """These p, with the prior that they have now."""
        return (expit(logits), *self.parameters[1:])

    def density(self, logits: np.ndarray, log_c: np.ndarray) -> np.ndarray:
        """(n,) log P(reports of the p's cells | c Lambda, p) + log f(logit p)."""
        mean, concentration = self.parameters[1:] or (np.array([0.5]), np.array([2.0]))  # uniform
        prior = -mean * np.logaddexp(0.0, -logits) - (1.0 - mean) * np.logaddexp(0.0, logits)
        parameters, c, axis = self.parameters_at(logits), np.exp(log_c), shared_along(self.likelihood)
        law, (theta, phi) = self.observations.law(self.likelihood, parameters), self.matrices
        if axis == "row":
            theta = theta * c[:, None]
        else:
            phi = np.ascontiguousarray(phi * c.reshape(-1, 1))
        by_row, (sums,) = self.engine.over_rows(seen_block, self.observations, (law, phi, axis), (theta,))
        exposure = self.likelihood.exposure(self.unseen.ratio[:, None], parameters)
        unseen = (exposure * self.unseen.rate).sum(axis=0) * c
        return (by_row[0] if axis == "row" else sums) - unseen + concentration * prior


def seen_block(
    block: Block, law: tuple[Any, ...], phi: np.ndarray, axis: str, theta: np.ndarray
) -> tuple[Arrays, Arrays]:
    """(The log-likelihood of each row's positive reports if wanted by row, else their sums (1,) or (V,))."""
    law, of_rows, of_columns = counted_from(law, block.first_row), np.zeros(block.n_rows), np.zeros(len(phi))
    add_seen_scores(law, block.entries, theta, phi, of_rows, of_columns)
    if axis == "row":
        return (of_rows,), (np.zeros(0),)
    return (), (of_columns if axis == "column" else of_rows.sum(keepdims=True),)


def log_mean(x: np.ndarray) -> np.ndarray:
    """log m(p) at x = logit p: the mean of a burst (20.1)."""
    return x - np.log(np.logaddexp(0.0, x))


def side_of(model: Factorization) -> Side | None:
    """The rows or the columns, if each has a p for itself."""
    return {"row": model.rows, "column": model.columns}.get(shared_along(model.likelihood))


def holder(model: Factorization) -> int | None:
    """The factor of independent gammas that holds the entries of single rows or columns; None without one."""
    side = side_of(model)
    if side is None:
        return None
    for use in side.uses:
        factor = model.factors[use.factor]
        if (
            set(side.observed) <= set(use.axes)
            and factor.fixed is None
            and use.factor != model.shared
            and factor.prior.independent
        ):
            return use.factor
    return None


def broadcastable(model: Factorization, f: int, values: np.ndarray) -> np.ndarray:
    """Numbers of every row or column, in a shape that broadcasts against its factor."""
    side, axes = side_of(model), model.factors[f].axes
    assert side is not None
    grid = values.reshape([side.sizes[axis] for axis in side.observed])
    grid = grid.transpose([side.observed.index(axis) for axis in axes if axis in side.observed])
    return grid.reshape([side.sizes[axis] if axis in side.observed else 1 for axis in axes])


def prior_sums(
    model: Factorization, plan: Plan, f: int, hypers: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of prior shapes, and of prior rates times entries, over the entries of every row or column."""
    side, factor = side_of(model), model.factors[f]
    assert side is not None
    shape, rate = factor.prior.gamma(hypers, plan.scales[f])
    left = [axis for axis in factor.axes if axis in side.observed]
    rest = tuple(i for i, axis in enumerate(factor.axes) if axis not in side.observed)
    sums = (np.broadcast_to(each, factor.shape).sum(axis=rest) for each in (shape, rate * value))
    shapes, products = (each.transpose([left.index(axis) for axis in side.observed]).ravel() for each in sums)
    return shapes, products


def sized(model: Factorization, hypers: Sequence[np.ndarray]) -> int | None:
    """A free factor whose size its prior learns; None without one."""
    for f in model.free:
        factor = model.factors[f]
        known = factor.prior.resized(factor, hypers[f], 1.0) is None
        if f != model.shared and not known:
            return f
    return None


def unseen_rates(model: Factorization, factors: list[np.ndarray], observations: Observations, engine: Engine) -> Unseen:
    """Sums of rates over the cells with the same level that have no positive report and are not masked."""
    o, axis = observations, shared_along(model.likelihood)
    levels, (theta, phi) = np.unique(o.level_e if o.stores_all else o.level_d), model.matrices(factors)
    own = (theta,) if o.exposure is None else (theta, o.exposure)
    by_row, (rates,) = engine.over_rows(unseen_block, o, (levels, phi, phi.sum(axis=0), axis), own)
    return Unseen(np.asarray(o.noise.ratio(levels)), by_row[0].T if axis == "row" else rates)


def unseen_block(
    block: Block,
    levels: np.ndarray,
    phi: np.ndarray,
    phi_total: np.ndarray,
    axis: str,
    theta: np.ndarray,
    exposure: np.ndarray | None = None,
) -> tuple[Arrays, Arrays]:
    """(The rates of each row (rows, levels) if they are wanted by row, else their sums (levels, 1 or V)).

    With exposures by cell they are times these; every cell is stored then.
    """
    entries, n_columns = block.entries, len(phi)
    rows, rates = np.repeat(np.arange(block.n_rows), np.diff(entries.indptr)), np.empty(entries.size)
    stored_rates(entries, theta, phi, rates)
    if exposure is not None:
        rates *= exposure[rows, entries.columns]
    unseen = entries.reports == 0
    if entries.level_e.size:
        place, rate = np.searchsorted(levels, entries.level_e[unseen]), rates[unseen]
        row, column = rows[unseen], entries.columns[unseen]
    elif axis == "column":
        rates[unseen] = 0.0
        place = np.searchsorted(levels, entries.level_d)
        totals = np.zeros((levels.size, theta.shape[1]))
        np.add.at(totals, place, theta)
        seen = np.bincount(place[rows] * n_columns + entries.columns, rates, levels.size * n_columns)
        return (), (np.maximum(totals @ phi.T - seen.reshape(-1, n_columns), 0.0),)
    else:
        rates[unseen] = 0.0
        seen = np.bincount(rows, rates, block.n_rows)
        rate = np.maximum(theta @ phi_total - seen, 0.0)
        place, row = np.searchsorted(levels, entries.level_d), np.arange(block.n_rows)
        column = np.zeros(block.n_rows, dtype=np.int64)
    if axis == "row":
        found = np.bincount(row * levels.size + place, rate, block.n_rows * levels.size)
        return (found.reshape(block.n_rows, levels.size),), (np.zeros(0),)
    n, column = (n_columns, column) if axis == "column" else (1, 0)
    return (), (np.bincount(place * n + column, rate, levels.size * n).reshape(levels.size, n),)


def shared_along(likelihood: Likelihood) -> str:
    """Whether the likelihood has parameters by "row" or by "column"; "all" if each is the same for all cells."""
    axes = set(likelihood.parameter_axes.values()) - {"all"}
    return axes.pop() if axes else "all"


# The likelihood's own parameters moved uphill, for methods that maximise.
#
# Given expected counts and parts at the positive reports, and the rates of all other cells, each parameter
# goes to where (13.6) is greatest, with a uniform prior (mathematics, equation 13.9).
def maximised_parameters(
    parameters: Parameters,
    observations: Observations,
    model: Factorization,
    before: Factors,
    after: Factors,
    engine: Engine,
    penalty: float = 0.0,
) -> Parameters:
    """The parameters given expectations at the factors ``before``, and rates at those ``after``.

    A penalty is one on the sum of the expected counts of all cells. Without parameters there is nothing to do.
    """
    if not parameters:
        return parameters
    law = observations.law(model.likelihood, parameters)
    theta, phi = model.matrices(before)
    size = model.likelihood.tally_size(observations.shape)
    _, (tally,) = engine.over_rows(tally_block, observations, (law, phi, size), (theta,))
    unseen = unseen_rates(model, list(after), observations, engine)
    return model.likelihood.maximised(
        parameters, tally, unseen, penalty * summed_rates(model, after, observations.exposure)
    )


def tally_block(
    block: Block, law: tuple[Any, ...], phi: np.ndarray, size: int, theta: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's part of the tally."""
    tally = np.zeros(size)
    expect_tally(counted_from(law, block.first_row), block.entries, theta, phi, tally)
    return (), (tally,)


def summed_rates(model: Factorization, factors: Factors, exposure: np.ndarray | None = None) -> np.ndarray:
    """Sums of the rates of all cells, (1,), (D,) or (V,): those of the cells that share a parameter."""
    theta, phi = model.matrices(factors)
    axis = shared_along(model.likelihood)
    if exposure is not None:
        rates = rates_at(theta, phi, exposure)
        return rates.sum(axis={"row": 1, "column": 0}[axis]) if axis != "all" else rates.sum(keepdims=True)[0]
    if axis == "row":
        return np.asarray(theta @ phi.sum(axis=0))
    return np.asarray(phi @ theta.sum(axis=0) if axis == "column" else [theta.sum(axis=0) @ phi.sum(axis=0)])
