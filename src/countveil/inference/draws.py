"""How long chains run, and what is kept of them."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from countveil.models.factorization import Factorization
from countveil.privacy._memory import available_memory, in_words

ROUNDS = (4, 8, 12)  # numbers of chains after which a fit ends if averages over them are steady; the last always


def rounds_of(chains: int | str) -> tuple[int, ...]:
    """Numbers of chains after which a fit may end, the last at the latest; ``chains`` may be "auto"."""
    return ROUNDS if isinstance(chains, str) else (int(chains),)


class Schedule(NamedTuple):
    """How long to run: ``tune`` discarded sweeps, then ``draws`` draws, one every ``thin`` sweeps.

    There are at most ``chains`` chains. Where averages over the first ``rounds[0]`` of them are steady, there are no
    others; else as many are added as the next of ``rounds`` says.
    """

    draws: int
    tune: int
    chains: int
    thin: int
    rounds: tuple[int, ...] = ()

    @property
    def sweeps(self) -> int:
        """Sweeps of one chain in all."""
        return self.tune + self.draws * self.thin


class Draws(NamedTuple):
    """What a run keeps (C chains, S draws)."""

    factors: tuple[np.ndarray, ...]  # (C, S, *factor's shape), float32
    hypers: tuple[np.ndarray, ...]  # (C, S, *shape of the prior's hyperparameters), one per factor
    parameters: tuple[np.ndarray, ...]  # (C, S, *shape), of the likelihood itself
    log_likelihood: np.ndarray  # (C, S); NaN where draws are not scored
    total_rate: np.ndarray  # (C, S)

    @classmethod
    def empty(cls, schedule: Schedule, model: Factorization) -> "Draws":
        """Room for all draws of all chains.

        Raises:
            MemoryError: there is not that much memory; names the options that decide it.
        """
        check_room(schedule, model)
        lead = (schedule.chains, schedule.draws)
        try:
            return cls(
                tuple(np.empty((*lead, *factor.shape), dtype=np.float32) for factor in model.factors),
                tuple(np.empty((*lead, *hypers.shape)) for hypers in model.initial_hypers()),
                tuple(np.empty((*lead, *values.shape)) for values in model.initial_parameters()),
                np.empty(lead), np.empty(lead),
            )  # fmt: skip
        except MemoryError as error:
            raise MemoryError(too_large(schedule, model, None)) from error

    def mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> "Draws":
        """A function applied to every array."""
        factors, hypers, parameters = (
            tuple(map(function, group)) for group in (self.factors, self.hypers, self.parameters)
        )
        scores = function(self.log_likelihood), function(self.total_rate)
        return Draws(factors, hypers, parameters, *scores)

    def first(self, n: int) -> "Draws":
        """Views of the first n chains' draws."""
        return self.mapped(lambda values: values[:n])

    def of_chain(self, number: int) -> "Draws":
        """Views of one chain's draws."""
        return self.mapped(lambda values: values[number])

    def keep(self, s: int, state: Any, score: float, total_rate: float) -> None:
        """Store draw s of one chain (see ``of_chain``); the state has factors, hypers and parameters."""
        for stores, values in (
            (self.factors, state.factors), (self.hypers, state.hypers), (self.parameters, state.parameters),
        ):  # fmt: skip
            for store, value in zip(stores, values, strict=True):
                store[s] = value
        self.log_likelihood[s], self.total_rate[s] = score, total_rate

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All arrays, in a fixed order."""
        return (*self.factors, *self.hypers, *self.parameters, self.log_likelihood, self.total_rate)


def bytes_of(schedule: Schedule, model: Factorization) -> int:
    """The size of all draws."""
    factors = sum(math.prod(factor.shape) for factor in model.factors)
    others = sum(values.size for values in (*model.initial_hypers(), *model.initial_parameters()))
    return schedule.chains * schedule.draws * (4 * factors + 8 * (others + 2))


def check_factors(model: Factorization) -> None:
    """Refuse a model of which a single value of all factors does not fit in memory, before anything is made of it.

    Raises:
        MemoryError: names the sizes of the latent axes.
    """
    needed, available = sum(8 * math.prod(factor.shape) for factor in model.factors), available_memory()
    if available is not None and needed > available:
        sizes = model.rows.sizes | model.columns.sizes
        latent = ", ".join(f"{sizes[axis]:,} along {axis}" for axis in model.spec.latent)
        raise MemoryError(
            f"factors must fit in memory: with {latent} they need {in_words(needed)}, {in_words(available)} are "
            "available; take fewer components"
        )


THINNED = " (with method=cv.Gibbs(thin=...), to cover as many sweeps)"
"""What a sampler can do with fewer draws; other methods have no sweeps."""


def check_room(schedule: Schedule, model: Factorization, advice: str = THINNED) -> None:
    """Refuse draws that do not fit in memory, before a fit begins: many systems find out when it is half done.

    ``advice`` follows the advice to take fewer draws.

    Raises:
        MemoryError: names the options that decide it, and the sizes.
    """
    available = available_memory()
    if available is not None and bytes_of(schedule, model) > available:
        raise MemoryError(too_large(schedule, model, available, advice))


def too_large(schedule: Schedule, model: Factorization, available: int | None, advice: str = THINNED) -> str:
    """What to say of draws that do not fit in memory."""
    chains, fewer = f"{schedule.chains} chains", " or fewer chains="
    if schedule.chains == 1:
        chains, fewer = "1 chain", ""
    had = "more than there is" if available is None else f"{in_words(available)} are available"
    return (
        f"draws must fit in memory: {schedule.draws:,} draws from {chains} need {in_words(bytes_of(schedule, model))}, "
        f"{had}; take a smaller draws={advice}{fewer}"
    )


class Point(NamedTuple):
    """One value of everything that a draw has."""

    factors: tuple[np.ndarray, ...]
    hypers: tuple[np.ndarray, ...]
    parameters: tuple[np.ndarray, ...] = ()
