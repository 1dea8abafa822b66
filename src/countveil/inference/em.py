"""Expectation maximisation on the marginal likelihood of the reports: KL-NMF for private counts.

    theta_dk <- theta_dk (sum_v R_dv phi_vk) / (sum_v e_dv phi_vk),  R = E[y | r, mu] / mu;  other factors likewise

(mathematics, section 12). It never decreases the likelihood. Without noise it is the multiplicative KL-NMF of Lee and
Seung. Where counts come in bursts, R = E[bursts | r, mu] / mu, and their dispersions follow the factors (13.9). Under
strong noise it overfits if it runs long: ``HeldTotal`` keeps the counts at the right total, and ``Folds`` stop it
early.
"""

import sys
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from countveil.common.parameters import Option, Whole, declared
from countveil.data.observations import Observations
from countveil.engines.blocks import Engine
from countveil.inference import dispersion, run
from countveil.inference.algorithm import Data, Fitted, Method, Settings
from countveil.inference.ascent import least_entry, maximise, pass_over_rows
from countveil.inference.dispersion import maximised_parameters
from countveil.inference.draws import Draws, Point, Schedule
from countveil.inference.factors import expected_counts, offset_scales, own_entries
from countveil.inference.facts import facts_of
from countveil.inference.plan import Plan
from countveil.inference.row_gammas import Q_CHAIN
from countveil.inference.scoring import report_scores, total_rate
from countveil.inference.starts import Start, automatic, begin
from countveil.inference.streams import START, Streams
from countveil.kernels.entries import MASKED
from countveil.kernels.random import SMALLEST
from countveil.laws.counts.laws import law_of
from countveil.laws.counts.protocol import Parameters, in_counts
from countveil.models.factorization import Factorization

RELATIVE_ERROR = 1e-12  # of the sum of the rates
REFINING_ITERATIONS = 10  # from the automatic start to where a chain may begin


class State(NamedTuple):
    """A point estimate of all factors."""

    factors: tuple[np.ndarray, ...]
    sweep: int
    penalty: float = 0.0  # on the sum of all expected counts
    parameters: Parameters = ()  # of the likelihood itself


class Info(NamedTuple):
    """The log-likelihood log P(max(reports, 0) | factors) of the state before the step."""

    objective: float


def init(plan: Plan, model: Factorization, streams: Streams, engine: Engine, start: Start = automatic) -> State:
    """The factors of a start."""
    factors = begin(start, plan.data, model, streams.generator(0, START), engine)
    factors, parameters = dispersion.started(factors, plan, model, engine)
    return State(factors, 0, parameters=parameters)


def from_point(
    factors: tuple[np.ndarray, ...], plan: Plan, model: Factorization, engine: Engine, iterations: int
) -> State:
    """The state after some iterations from a point estimate: a better place for a chain to begin.

    Parameters of the likelihood, if it has any, are those of a start from the point, and stay.
    """
    factors, parameters = dispersion.started(factors, plan, model, engine)
    state = State(factors, 0, parameters=parameters)
    for _ in range(iterations):
        state, _ = update_factors(state, plan, model, engine, None)
    return state


def refined(
    observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine
) -> tuple[np.ndarray, ...]:
    """A start: a few iterations from the automatic one."""
    factors = automatic(observations, model, rng, engine)
    state = from_point(factors, Plan(observations, model), model, engine, REFINING_ITERATIONS)
    if not dispersion.learns_p(model):
        return state.factors
    return dispersion.counts_of(model, state.factors, state.parameters[0])


def step(state: State, plan: Plan, model: Factorization, streams: Streams | None, engine: Engine) -> tuple[State, Info]:
    """One iteration; draws nothing."""
    return update(state, plan, model, engine, None)


def update(state: State, plan: Plan, model: Factorization, engine: Engine, total: float | None) -> tuple[State, Info]:
    """``update_factors``, and then the likelihood's own parameters, if it has any, at the new penalty."""
    new, info = update_factors(state, plan, model, engine, total)
    parameters = maximised_parameters(
        state.parameters, plan.data, model, state.factors, new.factors, engine, new.penalty
    )
    return new._replace(parameters=parameters), info


def update_factors(
    state: State, plan: Plan, model: Factorization, engine: Engine, total: float | None
) -> tuple[State, Info]:
    """All factors at the state's penalty; with ``total``, the last one's penalty makes the counts add up to it."""
    observations, row, least = plan.data, model.row_factor, least_entry(model)
    law = observations.law(model.likelihood, state.parameters)
    if row is None:
        found, bound = maximise(plan, model, law, state.factors, engine)
        return state._replace(factors=tuple(found), sweep=state.sweep + 1), Info(bound)
    factors, columns = list(state.factors), model.columns
    values = columns.forward(factors)
    theta, phi = model.as_row_matrix(factors[row]), columns.matrix(values)
    mean_d, mean_v = counts_per_burst(model, state.parameters)
    exposure = observations.exposure
    of_row = (mean_v * phi).sum(axis=0) if exposure is None else exposure @ (mean_v * phi)
    prior = np.zeros_like(theta), state.penalty * mean_d * of_row
    passed = pass_over_rows(observations, law, (theta, theta), (phi, phi), prior, engine)
    theta = np.maximum(passed.theta_shape / np.maximum(passed.theta_rate, SMALLEST), least)
    factors[row] = model.as_row_factor(theta)
    of_column = (mean_d * theta).sum(axis=0) if exposure is None else exposure.T @ (mean_d * theta)
    everywhere, penalty = mean_v * of_column, state.penalty
    counts = expected_counts(columns, values, passed.ratio)
    free = [u for u, use in enumerate(columns.uses) if model.factors[use.factor].fixed is None]
    for u in free:
        f = columns.uses[u].factor
        values = columns.forward(factors)
        sums = (counts[u], columns.gradient(u, values, passed.exposure), columns.gradient(u, values, everywhere))
        count, exposure, size = (own_entries(model.factors[f], x) for x in sums)
        if total is not None and u == free[-1]:
            penalty = solve_penalty(count, exposure, size, model.factors[f].weight, total)
        factors[f] = np.maximum(count / np.maximum(exposure + penalty * size, SMALLEST), least)
    return State(tuple(factors), state.sweep + 1, penalty, state.parameters), Info(passed.data_bound)


def counts_per_burst(model: Factorization, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
    """(D, 1) and (V, 1) factors of the expected count of a cell over its rate."""
    n_rows, n_columns = model.rows.shape[0], model.columns.shape[0]
    return in_counts(model.likelihood, np.ones((n_rows, 1)), np.ones((n_columns, 1)), parameters)


def solve_penalty(
    count: np.ndarray, exposure: np.ndarray, size: np.ndarray, weight: np.ndarray | float, total: float
) -> float:
    """The penalty x >= 0 at which the rates, sum of size count / (exposure + x size), add up to the total.

    It is 0 if they add up to no more without a penalty. The sum falls in x, and is below sum of count / x.
    """

    def excess(x: float) -> float:
        entries = np.maximum(count / np.maximum(exposure + x * size, SMALLEST), SMALLEST)
        return float((weight * size * entries).sum()) - total

    if excess(0.0) <= total * RELATIVE_ERROR:
        return 0.0
    return float(brentq(excess, 0.0, 2.0 * float((weight * count).sum()) / total, rtol=RELATIVE_ERROR))


class HeldTotal:
    """The iteration with the sum of all rates held at an unbiased estimate of the sum of all true counts.

    Nonnegative factors can fit upward noise but not downward noise, so under strong noise the rates add up to far too
    much. The likelihood is therefore maximised with their sum constrained (mathematics, equation 12.4). The Lagrange
    multiplier x is added to every exposure, like an exponential prior of rate x on every rate, and is solved for in
    every iteration. Without noise it is 0. Models whose rows have no factor of their own are not constrained.
    """

    def __init__(self, observations: Observations, model: Factorization) -> None:
        self.total = max(facts_of(observations).total_count, 1e-3 * observations.shape[0])
        self.model = model
        self.noisy = observations.is_noisy and model.row_factor is not None
        hidden = observations.reports == MASKED
        self.hidden = observations.row_numbers[hidden], observations.columns[hidden]
        known = observations.exposure
        self.exposure_e = None if known is None else known[self.hidden]

    def target(self, state: State) -> float:
        """What all expected counts should add up to: the estimate, plus those of the masked cells now."""
        rows, columns = self.hidden
        factors = self.model.matrices(state.factors)
        theta, phi = in_counts(self.model.likelihood, *factors, state.parameters)
        exposure = self.exposure_e
        if exposure is None:
            return self.total + float(np.einsum("ek,ek->", theta[rows], phi[columns]))
        return self.total + float(np.einsum("ek,ek,e->", theta[rows], phi[columns], exposure))

    def init(
        self, plan: Plan, model: Factorization, streams: Streams, engine: Engine, start: Start = automatic
    ) -> State:
        """The factors of a start, scaled down where their rates add up to too much."""
        state = init(plan, model, streams, engine, start)
        if not self.noisy:
            return state
        total = total_rate(model, state.factors, state.parameters, plan.data.exposure)
        row = model.row_factor
        excess = total / self.target(state)
        factors = (factor / max(excess, 1.0) if f == row else factor for f, factor in enumerate(state.factors))
        return state._replace(factors=tuple(factors))

    def step(
        self, state: State, plan: Plan, model: Factorization, streams: Streams | None, engine: Engine
    ) -> tuple[State, Info]:
        """One iteration; draws nothing."""
        return update(state, plan, model, engine, self.target(state) if self.noisy else None)


@declared
class EM(Method):
    """Finds one point estimate: fast, and without uncertainty."""

    name = "em"
    says = "finds one point estimate: fast, and without uncertainty."
    algorithm = sys.modules[__name__]
    any_prior = True
    exposures = True
    likelihoods = ("poisson", "negative-binomial")
    starved = 'Use method="gibbs".'

    _: KW_ONLY
    max_iter: Annotated[int, Option(Whole(1), "maximum number of iterations.")] = 500

    def run(self, data: Data, model: Factorization, settings: Settings) -> Fitted:
        """A point estimate, stopped where the log-likelihood of held-out cells of the release is best.

        Fits without a few random parts of the cells find the number of iterations. A fit to all cells then runs that
        many.
        """
        assert isinstance(data, Observations)
        rng = Streams.of_chain(settings.seed, Q_CHAIN).generator(0, START)
        folds = Folds(data, model, rng, HeldTotal)
        search = run.ascend(data, model, folds, settings, folds.rule, self.max_iter)
        ascent = run.ascend(
            data, model, HeldTotal(data, model), settings, lambda *_: False, max(folds.best_iteration, 1)
        )
        draws, factors = Draws.empty(Schedule(1, 0, 1, 1), model), ascent.state.factors
        parameters = ascent.state.parameters
        triples = zip(model.factors, offset_scales(model, data), factors, strict=True)
        hypers = tuple(factor.prior.estimate(factor, scale, value) for factor, scale, value in triples)
        total = total_rate(model, factors, parameters, data.exposure)
        draws.of_chain(0).keep(0, Point(factors, hypers, parameters), np.nan, total)
        return Fitted(
            draws, search.interrupted or ascent.interrupted, search.seconds + ascent.seconds,
            ascent.objective, search.converged, factors,
        )  # fmt: skip


# More folds and cells estimate the best iteration more precisely; each fold costs a fit.
SHARE_PER_FOLD = 0.05  # of all cells
MAX_FOLDS = 5
MAX_HELD_OUT = 200_000  # cells, in all folds together
PATIENCE = 5  # iterations without improvement before stopping
IMPROVEMENT = 1e-4  # relative, of the score; smaller ones do not count


class Fold(NamedTuple):
    """Observations without some cells, and those cells."""

    training: Observations
    rows: np.ndarray
    columns: np.ndarray


class Scored(NamedTuple):
    """The held-out log-likelihood of the states after the step, summed over folds."""

    objective: float


class Folds:
    """An algorithm for ``run.ascend`` that runs another one on every fold, and a rule for when to stop.

    ``algorithm`` makes the inner algorithm from a fold's observations and the model. Its states have ``factors``,
    ``parameters`` and ``sweep``.
    """

    def __init__(
        self,
        observations: Observations,
        model: Factorization,
        rng: np.random.Generator,
        algorithm: Callable[[Observations, Factorization], Any],
    ) -> None:
        self.folds = hold_out(observations, rng)
        self.plans = [Plan(fold.training, model) for fold in self.folds]
        self.reported = [observations.cells(fold.rows, fold.columns) for fold in self.folds]
        self.algorithms = [algorithm(fold.training, model) for fold in self.folds]
        self.best_iteration, self.best = 0, -np.inf

    def init(
        self, plan: Plan, model: Factorization, streams: Streams, engine: Engine, start: Start = automatic
    ) -> tuple[Any, ...]:
        """The initial state of each fold."""
        pairs = zip(self.algorithms, self.plans, strict=True)
        return tuple(algorithm.init(own, model, streams, engine, start) for algorithm, own in pairs)

    def step(
        self, states: tuple[Any, ...], plan: Plan, model: Factorization, streams: Streams, engine: Engine
    ) -> tuple[tuple[Any, ...], Scored]:
        """One iteration of each fold."""
        observations, new, score = plan.data, [], 0.0
        for state, algorithm, fold, own, reported in zip(
            states, self.algorithms, self.folds, self.plans, self.reported, strict=True
        ):
            moved, _ = algorithm.step(state, own, model, streams, engine)
            theta, phi = model.matrices(moved.factors)
            rate = np.einsum("ek,ek->e", theta[fold.rows], phi[fold.columns])
            rate = rate * observations.exposure_of(fold.rows, fold.columns)
            law = law_of(observations.noise, model.likelihood, moved.parameters)
            score += float(report_scores(law, fold.rows, fold.columns, *reported, rate).sum())
            new.append(moved)
        return tuple(new), Scored(score)

    def rule(self, states: tuple[Any, ...], objectives: list[float]) -> bool:
        """Whether the best iteration was ``PATIENCE`` iterations ago."""
        score, iteration = objectives[-1], states[0].sweep
        if self.best_iteration == 0 or score > self.best + IMPROVEMENT * abs(score):
            self.best_iteration, self.best = iteration, score
        return iteration - self.best_iteration >= PATIENCE


def hold_out(observations: Observations, rng: np.random.Generator) -> list[Fold]:
    """Up to five folds, each without another random twentieth of the cells, none of which was masked before.

    There are fewer folds where they would hold out more than 200,000 cells together.
    """
    n_rows, n_columns = observations.shape
    n_cells = n_rows * n_columns
    n_folds = int(np.clip(MAX_HELD_OUT // (SHARE_PER_FOLD * n_cells), 1, MAX_FOLDS))
    drawn = rng.integers(n_cells, size=max(1, int(min(n_folds * SHARE_PER_FOLD * n_cells, MAX_HELD_OUT))))
    cells = rng.permutation(np.unique(drawn))
    cells = cells[observations.cells(cells // n_columns, cells % n_columns)[0] >= 0]
    found = []
    for part in np.array_split(cells, max(1, min(n_folds, cells.size))):
        rows, columns = part // n_columns, part % n_columns
        found.append(Fold(observations.hide(rows, columns), rows, columns))
    return found
