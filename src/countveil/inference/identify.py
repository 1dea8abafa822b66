"""Draws made comparable: sizes moved to one factor, components matched across draws and ordered by size.

Neither changes the rates of cells. Normalised components sum to one over their observed axes.
"""

import numpy as np

from countveil.common.fit_files import LEAST_RATE
from countveil.evaluation.topics import align_draws
from countveil.inference.draws import Draws
from countveil.models.factorization import Factorization
from countveil.models.layout import absorber, latent_groups, n_anchored, normalised, pinned
from countveil.models.priors.prior import Axes

SMALLEST = np.finfo(np.float32).tiny


def identify(
    draws: Draws, model: Factorization, matched: bool = False
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, tuple[Axes, np.ndarray]]]:
    """(factors, prior rates, other hyperparameters with their axes) by name, each (C, S, ...).

    The rates belong to the rescaled factors, where there are any.

    Factors keep their own order of axes; a rate has its factor's latent axes. The draws' factors are replaced in place,
    since a copy of them may be too large for the memory. Draws whose components are ``matched`` already, such as draws
    from one Q, are only ordered by size. Rates are at least what files may hold: once entries that all are next to zero
    sum to one, their rate would be less.
    """
    factors = list(draws.factors)
    for f in model.free:
        np.maximum(factors[f], SMALLEST, out=factors[f])
    rates: list[np.ndarray | None] = [latent_rates(model, f, values) for f, values in enumerate(draws.hypers)]
    taker = absorber(model)
    for f in normalised(model):
        assert taker is not None
        move_size(model, factors, rates, f, taker)
    reported = reported_draws(draws, model)
    for group in set(latent_groups(model).values()):
        order = order_of(model, factors, group, matched)
        if order is not None:
            reorder(model, factors, rates, group, order)
            reorder_reported(model, reported, group, order)
    reorder_own(model, reported)
    names = model.spec.names
    return (
        dict(zip(names, factors, strict=True)),
        {name: np.maximum(rate, LEAST_RATE) for name, rate in zip(names, rates, strict=True) if rate is not None},
        reported,
    )


def reported_draws(draws: Draws, model: Factorization) -> dict[str, tuple[Axes, np.ndarray]]:
    """What priors report: by name, axes and a copy of their draws (C, S, ...)."""
    return {
        name: (axes, np.array(values))
        for f in model.free
        for name, (axes, values) in model.factors[f].reported(draws.hypers[f]).items()
    }


def reorder_reported(
    model: Factorization, reported: dict[str, tuple[Axes, np.ndarray]], group: str, order: np.ndarray
) -> None:
    """Put all axes of a group into the given order, in place."""
    groups = latent_groups(model)
    for axes, values in reported.values():
        for i, a in enumerate(axes):
            if groups.get(a) == group:
                take(values, order, 2 + i)


def reorder_own(model: Factorization, reported: dict[str, tuple[Axes, np.ndarray]]) -> None:
    """Match the components that priors have themselves across draws, and order them by size, in place."""
    for f in model.free:
        factor = model.factors[f]
        for name, sizes, dim in factor.prior.components:
            shares = np.moveaxis(reported[f"{factor.name}{name}"][1], 2, 3)
            order = align_draws(shares)
            mean = np.take_along_axis(reported[f"{factor.name}{sizes}"][1], order, axis=2).mean(axis=(0, 1))
            order = order[:, :, np.argsort(-mean, kind="stable")]
            for axes, values in reported.values():
                for i, a in enumerate(axes):
                    if a == dim:
                        take(values, order, 2 + i)


def latent_rates(model: Factorization, f: int, hypers: np.ndarray) -> np.ndarray | None:
    """(C, S, latent sizes) prior rates of a factor; None if it is fixed, or its prior does not report any."""
    factor, seen = model.factors[f], observed_axes(model, f)
    rates = None if factor.fixed is not None else factor.prior.reported_rates(hypers)
    if rates is None:
        return None
    if not seen:
        return rates.reshape(rates.shape[:2])
    full = rates.reshape(*rates.shape[:2], *(rates.shape[2:] or [1] * len(factor.shape)))
    full = np.broadcast_to(full, (*rates.shape[:2], *factor.component_shape))
    return np.array(np.squeeze(full, axis=tuple(2 + i for i in seen)))


def observed_axes(model: Factorization, f: int) -> list[int]:
    """Positions of a factor's observed axes."""
    return [i for i, a in enumerate(model.factors[f].axes) if a in model.spec.output]


def move_size(
    model: Factorization, factors: list[np.ndarray], rates: list[np.ndarray | None], f: int, taker: int
) -> None:
    """Make factor f's components sum to one; the taker is multiplied by the old sums, once for every use; in place."""
    seen = tuple(2 + i for i in observed_axes(model, f))
    size = factors[f].sum(axis=seen, dtype=np.float64)
    factors[f] /= np.expand_dims(size, seen).astype(np.float32)
    np.maximum(factors[f], SMALLEST, out=factors[f])
    if rates[f] is not None:
        rates[f] = rates[f] * size
    taker_axes = model.factors[taker].axes
    taker_has_observed = bool(observed_axes(model, taker))
    for term, g in zip(model.spec.terms, model.spec.factor_of_term, strict=True):
        if g == f:
            latent = [a for a in term if a in model.spec.latent]
            place = [latent.index(a) for a in taker_axes if a in latent]
            shape = [model.factors[taker].shape[i] if a in latent else 1 for i, a in enumerate(taker_axes)]
            scale = size.transpose(0, 1, *(2 + i for i in place)).reshape(*size.shape[:2], *shape)
            factors[taker] *= scale.astype(np.float32)
            np.maximum(factors[taker], SMALLEST, out=factors[taker])
            rate = rates[taker]
            if rate is not None and taker_has_observed:
                rates[taker] = rate / np.squeeze(scale, axis=tuple(2 + i for i in observed_axes(model, taker)))
    if not taker_has_observed:
        rates[taker] = None


def order_of(model: Factorization, factors: list[np.ndarray], group: str, matched: bool) -> np.ndarray | None:
    """(C, S, K) orders of a group of latent axes; None if a fixed factor pins them, or no factor identifies them.

    Components with seeds and a background come first and keep their places; all others are matched and ordered among
    themselves.
    """
    groups, first = latent_groups(model), n_anchored(model, group)
    if pinned(model, group):
        return None
    for f in (*normalised(model), *model.free):
        axes = model.factors[f].axes
        latent = [i for i, a in enumerate(axes) if a in groups]
        if observed_axes(model, f) and len(latent) == 1 and groups[axes[latent[0]]] == group:
            k = factors[f].shape[2 + latent[0]]
            order = np.tile(np.arange(k), (*factors[f].shape[:2], 1))
            if not matched and k > first:
                order[:, :, first:] = first + align_draws(distributions(factors[f], latent[0])[:, :, first:])
            return by_size(model, factors, group, order, first)
    return None


def distributions(factor: np.ndarray, latent: int) -> np.ndarray:
    """(C, S, K, n) each component's entries as shares of their sum."""
    moved = np.moveaxis(factor, 2 + latent, 2)
    flat = np.array(moved.reshape(*moved.shape[:3], -1))
    flat /= flat.sum(axis=3, keepdims=True)
    return flat


def by_size(
    model: Factorization, factors: list[np.ndarray], group: str, order: np.ndarray, first: int = 0
) -> np.ndarray:
    """Orders with the largest component first, by its mean size in the factor that holds the sizes.

    The ``first`` ones keep their places.
    """
    groups, taker = latent_groups(model), absorber(model)
    f = taker if taker is not None else model.spec.factor_of_term[0]
    place = next((i for i, a in enumerate(model.factors[f].axes) if groups.get(a) == group), None)
    if place is None:
        return order
    others = tuple(2 + i for i in range(len(model.factors[f].axes)) if i != place)
    size = np.take_along_axis(factors[f].sum(axis=others, dtype=np.float64), order, axis=2).mean(axis=(0, 1))
    size[:first] = np.inf
    return order[:, :, np.argsort(-size, kind="stable")]


def reorder(
    model: Factorization, factors: list[np.ndarray], rates: list[np.ndarray | None], group: str, order: np.ndarray
) -> None:
    """Put all axes of a group into the given order, in place in the lists."""
    groups = latent_groups(model)
    for f, factor in enumerate(model.factors):
        latent = [a for a in factor.axes if a in groups]
        for i, a in enumerate(factor.axes):
            if groups.get(a) == group:
                take(factors[f], order, 2 + i)
        rate = rates[f]
        if rate is not None and rate.ndim == 2 + len(latent):
            for i, a in enumerate(latent):
                if groups[a] == group:
                    take(rate, order, 2 + i)


def take(values: np.ndarray, order: np.ndarray, axis: int) -> None:
    """Put each draw's ``axis`` of values (C, S, ...) into its own order (C, S, K), in place."""
    for place in np.ndindex(*order.shape[:2]):
        values[place] = values[place].take(order[place], axis=axis - 2)
