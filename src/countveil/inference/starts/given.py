"""Starts at what is known: factors of an earlier fit, of a smaller model or of a user's own, and seeded words."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Engine
from countveil.inference.starts.alternating import balanced
from countveil.inference.starts.multiplicative import ITERATIONS, TINY, random_factors, update
from countveil.inference.tuning import GIVEN, note_race
from countveil.models.factorization import Factorization
from countveil.models.layout import latent_groups
from countveil.models.priors import SeededPrior

FLOOR = 1e-6  # of a factor's entries, relative to their mean
LEAST_SHARE = 0.25  # of a split component that either half gets


@dataclass(frozen=True)
class Given:
    """One or more sets of factors in the model's order, of which a start takes one at random.

    None stands for a factor to be found by least squares given the others. A latent axis may be shorter than the
    model's: then the largest components are split, in random shares, so that the rates stay as they are.
    """

    sets: tuple[tuple[np.ndarray | None, ...], ...]

    def __call__(
        self, observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine
    ) -> Arrays:
        """Positive factors of the model's shapes; rows that the set does not have are found by least squares."""
        taken = int(rng.integers(len(self.sets)))
        if len(self.sets) > 1:
            note_race(GIVEN, np.full(len(self.sets), np.nan), taken)
        known = split(model, list(self.sets[taken]), rng)
        factors = random_factors(observations, model, rng, engine)
        missing = []
        for f in model.free:
            value = known[f]
            if value is None or value.shape != model.factors[f].shape:
                missing.append(f)
            else:
                factors[f] = np.maximum(value, FLOOR * max(float(value.mean()), TINY))
        if missing and observations.exposure is not None:
            lacking = model.factors[missing[0]]
            raise ValueError(
                "start must have every factor if the data have an exposure by cell, got no "
                f'{lacking.name} of shape {lacking.shape}: add it, or use start="auto"'
            )
        update(observations, model, factors, missing, ITERATIONS, engine)
        if model.product_of_two:
            return model.of_matrices(*balanced(*model.matrices(factors)))
        return tuple(factors)


def split(model: Factorization, factors: list[np.ndarray | None], rng: np.random.Generator) -> list[np.ndarray | None]:
    """The factors with as many components as the model has: new ones take a random share of the largest."""
    groups = latent_groups(model)
    for group in dict.fromkeys(groups.values()):
        axes = {a for a in groups if groups[a] == group}
        n_wanted = model.columns.sizes[group]
        places = {
            f: [i for i, a in enumerate(factor.axes) if a in axes]
            for f, factor in enumerate(model.factors)
            if factor.fixed is None and factors[f] is not None and axes.intersection(factor.axes)
        }
        if not places:
            continue
        first = next((f for f in places if len(places[f]) == 1), None)
        sizes = np.ones(n_wanted)
        for f in (f for f in places if len(places[f]) == 1):
            value = known(factors[f])
            sizes = sizes[: value.shape[places[f][0]]] * value.sum(
                axis=tuple(i for i in range(value.ndim) if i != places[f][0])
            )
        n_known = known(factors[next(iter(places))]).shape[next(iter(places.values()))[0]]
        if n_known == n_wanted or first is None:
            continue
        order = np.argsort(-sizes[:n_known], kind="stable")
        sources = order[np.arange(n_wanted - n_known) % n_known]
        index = np.concatenate([np.arange(n_known), sources])
        for f, axes_of_f in places.items():
            for i in axes_of_f:
                factors[f] = known(factors[f]).take(index, axis=i)
        factors[first] = shared_out(known(factors[first]), places[first][0], index, rng)
    return factors


def known(value: np.ndarray | None) -> np.ndarray:
    """A factor that is there."""
    assert value is not None
    return value


def shared_out(value: np.ndarray, axis: int, index: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The factor with entries of components that come from the same one multiplied by random shares, which add up to 1.

    ``index`` says where each component along the axis comes from.
    """
    moved = np.moveaxis(value, axis, 0)
    shares = LEAST_SHARE + (1.0 - 2.0 * LEAST_SHARE) * rng.random(moved.shape)
    for source in np.unique(index):
        same = index == source
        shares[same] = shares[same] / shares[same].sum(axis=0) if same.sum() > 1 else 1.0
    return np.moveaxis(moved * shares, 0, axis)


SHARE = 0.5  # of a seeded word's expected count that its topic begins with, at least


def seeded_factor(model: Factorization) -> int | None:
    """The factor whose prior has seeds, or None."""
    return next((f for f in model.free if isinstance(model.factors[f].prior, SeededPrior)), None)


def without_seeds(model: Factorization) -> Factorization:
    """The model with the prior that its seeded factor would have without seeds."""
    f = seeded_factor(model)
    if f is None:
        return model
    factors = list(model.factors)
    factors[f] = factors[f]._replace(prior=factors[f].prior.usual)  # type: ignore[attr-defined]
    return model._replace(factors=tuple(factors))


def brought_to_seeds(model: Factorization, factors: Arrays) -> Arrays:
    """The factors of a product of two with their topics in another order, and seeded words high in theirs."""
    f = seeded_factor(model)
    if f is None:
        return factors
    added = model.factors[f].prior.added  # type: ignore[attr-defined]
    theta, phi = model.matrices(factors)
    order = order_by_seeds(added, theta, phi)
    return model.of_matrices(*raised(added, theta[:, order], phi[:, order]))


def order_by_seeds(added: np.ndarray, theta: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """(K,) numbers of topics, those for the seeds (V, K) first, all others as they were.

    A topic goes to the seeds of which it has the largest shares of expected counts, by the Hungarian method.
    """
    n_seeded = int(added.any(axis=0).sum())
    shares = phi * theta.sum(axis=0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), TINY)
    weight = added[:, :n_seeded] / added[:, :n_seeded].sum(axis=0)
    first = linear_sum_assignment(weight.T @ shares, maximize=True)[1]
    return np.concatenate([first, np.setdiff1d(np.arange(phi.shape[1]), first)])


def raised(added: np.ndarray, theta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(theta (D, K), phi (V, K)) with SHARE or more of every seeded word's expected count in its topic.

    Of a word in several topics, each has as much as all that the word had before.
    """
    size = theta.sum(axis=0)
    least = SHARE / (1.0 - SHARE) * (phi @ size)[:, None] / np.maximum(size, TINY)
    return theta, np.where(added > 0.0, np.maximum(phi, least), phi)
