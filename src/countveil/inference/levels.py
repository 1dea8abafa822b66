"""Levels of cells inside a sampler: known exposures to a sweep over all other factors, drawn when it is done.

    mu_tv = l_tv sum_k x_tk phi_vk

Given the levels, everything else is as it is with the exposures l (mathematics, equation 3.4). The sweep draws the
parts n_tv of the counts, whose means are l_tv sum_k x_tk phi_vk, and the law of the reports gives their cells exposures
e_tv. Levels then have the conditional of their prior with counts n_tv and exposures e_tv sum_k x_tk phi_vk
(mathematics, equation 17.16).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Engine
from countveil.inference.plan import Plan
from countveil.inference.scoring import total_rate
from countveil.inference.starts import Start
from countveil.inference.starts.given import Given
from countveil.inference.streams import COLUMNS, Streams
from countveil.kernels import tiles as kernels
from countveil.laws.counts.laws import in_block
from countveil.models.factorization import Factorization
from countveil.models.priors import Conditional


def begun(
    init: Callable[..., Any],
    plan: Plan,
    model: Factorization,
    streams: Streams,
    engine: Engine,
    start: Start,
) -> Any:
    """The start of the model without levels, and levels of one."""
    if isinstance(start, Given):
        start = Given(tuple(each[:-1] for each in start.sets))
    state = init(plan.without_levels, model.without_level, streams, engine, start)
    assert model.level is not None
    level = model.factors[model.level]
    return state._replace(
        factors=(*state.factors, np.ones(level.shape)), hypers=(*state.hypers, level.prior.start(level))
    )


def swept(
    step: Callable[..., Any],
    state: Any,
    plan: Plan,
    model: Factorization,
    streams: Streams,
    engine: Engine,
) -> tuple[Any, Any]:
    """A sweep of the model without levels, at the present ones, then new levels."""
    assert model.level is not None
    rest, level, now = model.without_level, model.factors[model.level], state.factors[-1]
    at_levels = plan.cells.at_levels(model.by_cell(now))
    inner = state._replace(factors=state.factors[:-1], hypers=state.hypers[:-1])
    inner, info = step(inner, Plan(at_levels, rest), rest, streams, engine)
    theta, phi = rest.matrices(inner.factors)
    exposure = exposures(plan.cells, plan.cells.law(model.likelihood, inner.parameters)) * (theta @ phi.T)
    given = Conditional(1.0, now, model.over_axes(at_levels.drawn), model.over_axes(exposure))
    rng = streams.generator(inner.sweep, COLUMNS, model.level << 32)
    drawn, hypers = level.prior.draw(level, state.hypers[-1], given, rng)
    new = inner._replace(factors=(*inner.factors, drawn), hypers=(*inner.hypers, hypers))
    own = plan.data.exposure
    cells = model.by_cell(drawn) if own is None else own * model.by_cell(drawn)
    return new, info._replace(total_rate=total_rate(rest, inner.factors, inner.parameters, cells))


def exposures(cells: Observations, law: tuple[Any, ...]) -> np.ndarray:
    """(D, V) of data with an exposure for every cell, times what the law makes of it: zero where a cell is masked."""
    law, entries = in_block(law, cells.block(slice(0, cells.shape[0])), 0)
    found = np.empty(entries.size)
    kernels.entry_excesses(law, entries, found)
    return found.reshape(cells.shape)
