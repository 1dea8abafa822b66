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

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from countveil.data.observations import Observations
from countveil.engines.blocks import Engine, row_blocks, summed
from countveil.inference import scoring, tokens, tuning
from countveil.inference.algorithm import Algorithm, Settings
from countveil.inference.ascent import expect_counts
from countveil.inference.plan import Plan
from countveil.inference.starts import Start, automatic, before_moves, least_squares, rotated
from countveil.inference.starts.alternating import balanced
from countveil.inference.starts.given import brought_to_seeds, without_seeds
from countveil.inference.streams import MOVES, Streams
from countveil.kernels.scoring import log_likelihood_rows
from countveil.kernels.tiles import is_dense
from countveil.laws.counts.laws import in_block
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


def with_moves(algorithm: Any, most: int, data: Observations, model: Factorization, settings: Settings) -> Any:
    """An algorithm whose chains begin with at most this many moves, if the model has them.

    There are none beside known totals, whose counts a move does not take with it. Where sweeps go by tokens and very
    many reports are stored, moves only merge what an automatic start has too much.
    """
    if data.totals is not None or not movable(model):
        return algorithm
    moves = min(most, settings.schedule.tune // TUNE_PER_MOVE)
    if only_merges(Plan(data, model)):
        moves = min(moves, n_mergings(model, data.shape)) if settings.start is automatic else 0
    return Moving(algorithm, moves) if moves else algorithm


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


# Components merged pair by pair, by how probable the counts are that are allocated to them.
#
# With the sizes of components and the factors summed out, the counts n_dk and n_vk of a component with N_k tokens have
#
#     L_k = log N_k! + sum_d log DM(n_dk) + sum_v log DM(n_vk)
#
# where DM is the Dirichlet-multinomial law of the prior's shape. A merged pair gains L_ij - L_i - L_j, less the entropy
# of a token's component given its cell, which is largest for components that overlap: without it, two that share their
# cells would look better merged than they are.

CANDIDATES = 3  # for this many components one pair, whose gain is computed
LEAST_CANDIDATES = 10  # but no fewer pairs than this: the ten best of all were among the first ten
TINY = 1e-100  # keeps divisors positive, and products of two of them


class Counts(NamedTuple):
    """Expected counts of K components, as rows."""

    rows: np.ndarray  # (K, D)
    columns: np.ndarray  # (K, V)

    def merge(self, i: int, j: int) -> "Counts":
        """Component j > i added to component i."""
        found = []
        for values in self:
            merged = np.delete(values, j, axis=0)
            merged[i] = values[i] + values[j]
            found.append(merged)
        return Counts(*found)


def merge(counts: Counts, n_components: int, shapes: tuple[float, float]) -> list[list[int]]:
    """Which components make each of ``n_components``: the pair with the largest gain is merged, again and again."""
    groups = [[k] for k in range(len(counts.rows))]
    if len(groups) <= n_components:
        return groups
    own, shared, roots = log_probability(counts, shapes), overlap(counts), roots_of(counts)
    known = np.full(shared.shape, np.nan)  # gains of pairs that were computed before
    while len(groups) > n_components:
        left, right = likeliest(counts, shared)
        new = np.isnan(known[left, right])
        known[left[new], right[new]] = gains(counts, own, shared, left[new], right[new], shapes)
        best = int(np.argmax(known[left, right]))
        i, j = int(left[best]), int(right[best])
        known[i] = known[:, i] = np.nan
        known, shared = (np.delete(np.delete(pairs, j, axis=0), j, axis=1) for pairs in (known, shared))
        counts, groups[i] = counts.merge(i, j), groups[i] + groups[j]
        del groups[j]
        own, merged = np.delete(own, j), Counts(*(values[i : i + 1] for values in counts))
        own[i] = log_probability(merged, shapes)[0]
        roots = Counts(*(np.delete(values, j, axis=0) for values in roots))
        for root, values in zip(roots, merged, strict=True):
            root[i] = np.sqrt(values[0])
        shared[i] = shared[:, i] = overlap_with(counts, roots, i)
    return groups


def put_together(theta: np.ndarray, phi: np.ndarray, groups: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """(theta (D, K), phi (V, K)) whose components have the rows' and the columns' sums of their group's rates."""
    row_size, column_size = theta.sum(axis=0), phi.sum(axis=0)
    found = np.empty((len(theta), len(groups))), np.empty((len(phi), len(groups)))
    for k, group in enumerate(groups):
        found[0][:, k] = (theta[:, group] * column_size[group]).sum(axis=1)
        found[1][:, k] = (phi[:, group] * row_size[group]).sum(axis=1)
    return found[0], found[1] / np.maximum(found[0].sum(axis=0), TINY)


def likeliest(counts: Counts, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (i, j), i < j, among which the best are found: they overlap most for their sizes."""
    i, j = np.triu_indices(len(counts.rows), 1)
    size = np.maximum(counts.rows.sum(axis=1), TINY)
    order = np.argsort(-shared[i, j] / (size[i] * size[j]), kind="stable")
    order = order[: max(LEAST_CANDIDATES, len(size) // CANDIDATES)]
    return i[order], j[order]


def roots_of(counts: Counts) -> Counts:
    """Their square roots."""
    return Counts(*(np.sqrt(values) for values in counts))


def overlap(counts: Counts) -> np.ndarray:
    """(K, K) sums over cells of the geometric means of two components' expected counts."""
    size = np.maximum(counts.rows.sum(axis=1), TINY)
    left, right = roots_of(counts)
    return np.asarray((left @ left.T) * (right @ right.T) / np.sqrt(np.outer(size, size)))


def overlap_with(counts: Counts, roots: Counts, i: int) -> np.ndarray:
    """(K,) the same of component i and each one, given the roots of their counts."""
    size = np.maximum(counts.rows.sum(axis=1), TINY)
    return np.asarray((roots.rows @ roots.rows[i]) * (roots.columns @ roots.columns[i]) / np.sqrt(size * size[i]))


def gains(
    counts: Counts, own: np.ndarray, shared: np.ndarray, i: np.ndarray, j: np.ndarray, shapes: tuple[float, float]
) -> np.ndarray:
    """What merging each pair (i, j) adds to the log-probability; ``own`` is L_k of each, ``shared`` their overlaps.

    The entropy of a token's component is at most 2 log 2 sqrt(p (1 - p)), with equality at 0, 1/2 and 1; summed over
    the tokens of a pair this is 2 log 2 times their overlap.
    """
    both = log_probability(Counts(*(values[i] + values[j] for values in counts)), shapes)
    return np.asarray(both - own[i] - own[j] - 2.0 * np.log(2.0) * shared[i, j])


def log_probability(counts: Counts, shapes: tuple[float, float]) -> np.ndarray:
    """L_k of each component."""
    total = counts.rows.sum(axis=1)
    found = gammaln(1.0 + total)
    for values, shape in zip(counts, shapes, strict=True):
        whole = shape * values.shape[1]
        found += gammaln(whole) - gammaln(whole + total) + (gammaln(shape + values) - gammaln(shape)).sum(axis=1)
    return np.asarray(found)


DRAWS = 2  # whose mean is taken
FIRST = 1 << 40  # their number among the sweeps, far beyond all others


def drawn_counts(
    plan: Plan, law: tuple[Any, ...], theta: np.ndarray, phi: np.ndarray, streams: Streams, sweep: int, engine: Engine
) -> Counts:
    """Means of a few draws of the counts (of bursts, where counts come in bursts) given theta (D, K) and phi (V, K)."""
    assert plan.tokens is not None
    factors, likelihood, found = (theta, phi), plan.model.likelihood, []
    for number in range(FIRST + sweep * DRAWS, FIRST + (sweep + 1) * DRAWS):
        drawn = tokens.sweep_rows(plan.tokens, law, factors, likelihood, None, streams, number, engine)
        found.append(drawn[1:3])
    rows, columns = (np.mean(each, axis=0) for each in zip(*found, strict=True))
    return Counts(np.ascontiguousarray(rows.T), np.ascontiguousarray(columns.T))


# Components split along the direction that raises the likelihood most.
#
# Let S be the derivative of the log-likelihood in the rates. A component theta_k phi_k becomes
# two, theta_k (1 + x) phi_k (1 + y) / 2 and theta_k (1 - x) phi_k (1 - y) / 2, which changes its rates by the factor
# 1 + x y. To first order the gain is x' diag(theta_k) S diag(phi_k) y, so x and y are the leading singular vectors of a
# matrix. A component that stands for two true ones gains far more than others, in units of its standard deviation.

FIRST_ITERATIONS = 2  # of the power iteration for all components
ITERATIONS = 4  # more for candidates; with 3 in all, a third fewer of the missing topics were found
ROUNDS = 2  # the second one splits those that gain most after them
SIZE = 0.9  # root mean square of x and of y
LARGEST = 0.95  # of |x| and |y|, so that factors stay positive

Law = tuple[Any, ...]


class Part(NamedTuple):
    """S of one block: ``stored`` less the exposures that its cells would have without a report, ``left right^T``."""

    stored: sp.csr_array  # (D, V) S plus these exposures, in stored cells
    left: np.ndarray  # (D, r)
    right: np.ndarray  # (V, r)


def split(
    observations: Observations,
    law: Law,
    theta: np.ndarray,
    phi: np.ndarray,
    n_new: int,
    number: int,
    rng: np.random.Generator,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray]:
    """(theta (D, K + n), phi (V, K + n)) with n components split: those that gain most, or the next ones.

    Splits take turns by their ``number``. A component that stands for two may gain less than some true ones, which
    would be split every time.
    """
    parts = parts_of(observations, law, theta, phi, engine)
    begun = rng.standard_normal(phi.shape)
    _, y, gain = directions(parts, theta, phi, begun, FIRST_ITERATIONS, engine)
    first = np.argsort(-gain, kind="stable")[: ROUNDS * n_new]
    x, y, gain = directions(parts, theta[:, first], phi[:, first], y[:, first], ITERATIONS, engine)
    best = np.argsort(-gain, kind="stable")[(number % ROUNDS) * n_new :][:n_new]
    taken, new = first[best], []
    for factor, deviation, share in ((theta, x, 0.5), (phi, y, 1.0)):
        change = np.clip(SIZE * deviation[:, best], -LARGEST, LARGEST)
        other = factor[:, taken] * (1.0 - change) * share
        factor = factor.copy()
        factor[:, taken] *= (1.0 + change) * share
        new.append(np.hstack([factor, other]))
    return new[0], new[1]


def directions(
    parts: list[Part], theta: np.ndarray, phi: np.ndarray, y: np.ndarray, iterations: int, engine: Engine
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(x (D, K), y (V, K), gains (K,)): relative changes of weighted mean 0 and mean square 1, begun at y.

    The gain is the singular value of a component whose rates add up to 1, times the square root of their sum. Its
    square is twice the log-likelihood that the best size of change gains, if no other component has rates in its cells.
    """
    left, right = (np.sqrt(factor / factor.sum(axis=0)) for factor in (theta, phi))
    v, values = orthogonal(right * y, right)
    for _ in range(iterations):
        u, _ = orthogonal(left * times(parts, right * v, engine), left)
        v, values = orthogonal(right * times_transposed(parts, left * u, engine), right)
    return u / left, v / right, values * np.sqrt(theta.sum(axis=0) * phi.sum(axis=0))


def orthogonal(vectors: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of length one, orthogonal to those of ``base``, which have length one; and their lengths before."""
    vectors = vectors - base * (base * vectors).sum(axis=0)
    length = np.sqrt((vectors**2).sum(axis=0))
    return vectors / np.maximum(length, 1e-300), length


def parts_of(observations: Observations, law: Law, theta: np.ndarray, phi: np.ndarray, engine: Engine) -> list[Part]:
    """S of each block of rows."""
    find: Callable[[slice], Part] = partial(part_of, observations, law, theta, phi)
    return list(engine.map(find, row_blocks(observations.shape[0], None, observations.shape[1])))


def part_of(observations: Observations, law: Law, theta: np.ndarray, phi: np.ndarray, rows: slice) -> Part:
    """S of one block: the derivative of log P(max(report, 0) | rate), which is 0 in masked cells."""
    law, entries = in_block(law, observations.block(rows), rows.start)
    values, n_columns = np.empty(entries.size), observations.shape[1]
    dense = is_dense(entries, n_columns)
    log_likelihood_rows(law, entries, theta[rows], phi, phi.sum(axis=0), dense, values)
    if entries.place_d.size:  # exposures vary by column
        left, right = np.eye(len(entries.weight_lv))[entries.place_d], entries.weight_lv.T
    else:
        left, right = entries.exposure_d[:, None], np.ones((n_columns, 1))
    row = np.repeat(np.arange(entries.n_rows), np.diff(entries.indptr))
    values += (left[row] * right[entries.columns]).sum(axis=1)
    shape = entries.n_rows, n_columns
    return Part(sp.csr_array((values, entries.columns, entries.indptr), shape=shape), left, right)


def times(parts: list[Part], x: np.ndarray, engine: Engine) -> np.ndarray:
    """S x, (D, K)."""
    return np.concatenate(list(engine.map(lambda part: part.stored @ x - part.left @ (part.right.T @ x), parts)))


def times_transposed(parts: list[Part], x: np.ndarray, engine: Engine) -> np.ndarray:
    """S^T x, (V, K)."""
    pieces = np.split(x, np.cumsum([len(part.left) for part in parts])[:-1])
    found = engine.map(lambda part, own: (part.stored.T @ own - part.right @ (part.left.T @ own),), parts, pieces)
    return summed(found, len(parts))[0]
