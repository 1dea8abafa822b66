"""Moves of a chain while it is tuned: a start has more components than the model, and pairs are merged.

A chain whose component stands for two true ones, while another fits noise, stays there for thousands of sweeps. So
chains begin at a start with half more components: one of them finds a topic that is spread over many, before the first
two moves merge the pairs that lose least. A further move splits the components that gain most, sweeps with these as
well, and merges again. What is drawn while a chain is tuned is thrown away, so a move needs no acceptance, and the
draws that are kept are of the same chain as without moves.

Where sweeps go by tokens and very many reports are stored, moves only merge: a split visits these reports many times,
and the sweeps never do.

Splits and mergers leave no topic where it was. Moves therefore sweep without seeds, and topics are brought to their
seeds after the last merging.
"""

from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Engine
from countveil.inference import scoring, tuning
from countveil.inference.algorithm import Algorithm
from countveil.inference.ascent import expect_counts
from countveil.inference.moves.merging import Counts, drawn_counts, merge, put_together
from countveil.inference.moves.splitting import split
from countveil.inference.plan import Plan
from countveil.inference.starts import Start, automatic, before_moves, least_squares, rotated
from countveil.inference.starts.alternating import balanced
from countveil.inference.starts.given import brought_to_seeds, without_seeds
from countveil.inference.streams import MOVES, Streams
from countveil.models.factorization import Factorization

SWEEPS = 10  # from a split to the merging; with 5, half as many missing topics were found
SHARE = 6  # one in this many components is split
TUNE_PER_MOVE = 20  # sweeps of tuning, so that at least half of them come after the moves
MOST_VISITED = 1 << 22
"""Stored reports that moves may visit where sweeps go by tokens: ten times as many as in the largest data on which all
moves were measured to pay, and fewer than where merging alone was (notes/algorithms.md). Not tuned in between."""


def movable(model: Factorization) -> bool:
    """Whether moves know the model: a product of two free factors with one gamma prior each, and two components."""
    model = without_seeds(model)
    return (
        model.product_of_two
        and len(model.spec.latent) == 1
        and model.n_components > 1
        and all(factor.prior.has_one_law for factor in model.factors)
    )


def only_merges(plan: Plan) -> bool:
    """Whether moves have no splits, since sweeps go by tokens and very many reports are stored."""
    return plan.data.reports.size > MOST_VISITED and plan.by_tokens


class Moving:
    """A sampler whose chains begin with ``moves`` moves, of SWEEPS sweeps each; it is an ``Algorithm`` itself.

    Between a split and the merging that follows, its states have more components than the model. The start has more
    already, which takes the first two moves to merge, without a split.
    """

    def __init__(self, algorithm: Algorithm, moves: int) -> None:
        self.algorithm, self.moves = algorithm, moves
        self.State = algorithm.State
        self.__name__ = f"{getattr(algorithm, '__name__', type(algorithm).__name__)} with {moves} moves"

    def init(self, plan: Plan, model: Factorization, streams: Streams, engine: Engine, start: Start = automatic) -> Any:
        """The sampler's own, with more components than the model if the start is ours."""
        if self.moves:
            model = without_seeds(model)
        if self.moves and start in (automatic, least_squares):
            model = model.with_components(n_begun(model, plan.data.shape))
            start = rotated if only_merges(plan) else before_moves
        record = tuning.record()
        if record is not None:
            record.note(components=model.n_components)
        return self.algorithm.init(plan, model, streams, engine, start)

    def step(self, state: Any, plan: Plan, model: Factorization, streams: Streams, engine: Engine) -> tuple[Any, Any]:
        """One sweep, after a split where a move begins, and before the merging where it ends."""
        if state.sweep >= self.moves * SWEEPS:
            return self.algorithm.step(state, plan, model, streams, engine)
        seeded, model = model, without_seeds(model)
        wide = model.as_wide_as(state.factors)
        if wide.n_components == model.n_components:
            state = widened(state, plan.data, model, streams, engine)
            wide = model.as_wide_as(state.factors)
        state, info = self.algorithm.step(state, plan, wide, streams, engine)
        if state.sweep % SWEEPS == 0:
            last = state.sweep == self.moves * SWEEPS
            target = model if last else model.with_components(n_left(model, wide))
            state = narrowed(state, plan, target, wide, streams, engine)
            if last:
                state = state._replace(factors=brought_to_seeds(seeded, state.factors))
            note(state, wide.n_components, plan, target, engine)
        return state, info


def note(state: Any, before: int, plan: Plan, model: Factorization, engine: Engine) -> None:
    """Add the move that has just ended to the chain's record, if there is one.

    Without its log-likelihood where moves only merge: it would visit all stored reports, at the cost of ten sweeps.
    """
    record = tuning.record()
    if record is None:
        return
    score = np.nan
    if not only_merges(plan):
        score = scoring.log_likelihood(state.factors, plan.data, model, engine, state.parameters, plan.tokens)
    record.note_move(tuning.Move(state.sweep, before, model.n_components, score))


def n_begun(model: Factorization, shape: tuple[int, int]) -> int:
    """How many components there are before the first merging: half more than in the model, as far as data allow."""
    more = min(model.n_components + max(1, model.n_components // 2), *shape)
    return max(model.n_components, more)


def n_mergings(model: Factorization, shape: tuple[int, int]) -> int:
    """How many moves merge what a start has too many; those after them would begin with a split."""
    begun = n_begun(model, shape)
    return int(begun > model.n_components) + int(begun > n_wide(model))


def n_left(model: Factorization, wide: Factorization) -> int:
    """How many components a merging leaves: as many as after a split where there were more, else as in the model.

    If all that are too many were merged at once, those that fit noise would make a large one, which topics join.
    """
    return n_wide(model) if wide.n_components > n_wide(model) else model.n_components


def n_wide(model: Factorization) -> int:
    """How many components there are after a split."""
    return model.n_components + max(1, model.n_components // SHARE)


def widened(state: Any, observations: Observations, model: Factorization, streams: Streams, engine: Engine) -> Any:
    """The state with some components split, and hyperparameters as they start."""
    wide = model.with_components(n_wide(model))
    law = observations.law(model.likelihood, state.parameters)
    rng, n_new = streams.generator(state.sweep, MOVES), wide.n_components - model.n_components
    number = state.sweep // SWEEPS
    theta, phi = split(observations, law, *model.matrices(state.factors), n_new, number, rng, engine)
    return state._replace(factors=wide.of_matrices(theta, phi), hypers=wide.initial_hypers())


def narrowed(
    state: Any, plan: Plan, model: Factorization, wide: Factorization, streams: Streams, engine: Engine
) -> Any:
    """The state with pairs of components merged until there are as many as in the model."""
    law = plan.data.law(model.likelihood, state.parameters)
    theta, phi = wide.matrices(state.factors)
    if only_merges(plan):
        counts = drawn_counts(plan, law, theta, phi, streams, state.sweep, engine)
    else:
        row_ratio, ratio, _ = expect_counts(plan.data, law, theta, phi, engine)
        counts = Counts((theta * row_ratio).T, (phi * ratio).T)
    hypers = model.initial_hypers()
    groups = merge(counts, model.n_components, shapes_of(model, hypers))
    merged = balanced(*put_together(theta, phi, groups))
    return state._replace(factors=model.of_matrices(*merged), hypers=hypers)


def shapes_of(model: Factorization, hypers: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """The priors' shapes, of the rows' factor and of the columns'; learned ones as they begin."""
    found = []
    for side in (model.rows, model.columns):
        f = side.uses[0].factor
        shape, _ = model.factors[f].prior.gamma(hypers[f], 1.0)
        found.append(float(np.ravel(shape)[0]))
    return found[0], found[1]
