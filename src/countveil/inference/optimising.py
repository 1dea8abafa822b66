"""Fits by optimisers: iterate, then draw from the Q that was found, so that all results are read from draws."""

from dataclasses import KW_ONLY
from typing import Annotated, Any

import numpy as np

from countveil.common.parameters import Option, Positive, Whole, declared
from countveil.data.observations import Observations
from countveil.engines.blocks import Engine
from countveil.inference import run, scoring
from countveil.inference.algorithm import Data, Fitted, Method, Settings
from countveil.inference.draws import Draws, Point, check_room
from countveil.inference.row_gammas import Q_CHAIN, SMALLEST_DRAW, total_of_rows
from countveil.inference.streams import START, Streams
from countveil.models.factorization import Factorization


@declared
class Optimiser(Method):
    """A method that ascends until its objective hardly changes, then draws from the gammas of Q."""

    _: KW_ONLY
    # fmt: off
    max_iter: Annotated[int, Option(Whole(1), "maximum number of iterations.")] = 500
    tolerance: Annotated[float, Option(Positive(),
        "stop when an iteration changes the objective by at most this share of its range so far; under noise a "
        "smaller value tends to fit worse.")] = 2e-3
    # fmt: on

    def run(self, data: Data, model: Factorization, settings: Settings) -> Fitted:
        """Ascend, then draw."""
        assert isinstance(data, Observations)
        check_room(settings.schedule._replace(chains=1), model, advice="")
        rule = run.relative_change(self.tolerance)
        ascent = run.ascend(data, model, self.bound(), settings, rule, self.max_iter)
        with settings.opened_engine() as engine:
            draws = draws_from_gammas(ascent.state, model, settings, engine, exposure=data.exposure)
        return Fitted(draws, ascent.interrupted, ascent.seconds, ascent.objective, ascent.converged, ascent.state.means)


def draws_from_gammas(
    q: Any,
    model: Factorization,
    settings: Settings,
    engine: Engine,
    summed: int | None = None,
    exposure: np.ndarray | None = None,
) -> Draws:
    """Independent draws from a Q of gammas (``shapes``, ``rates``, ``hypers``), as one chain; they are not scored.

    Of the row factor numbered ``summed`` the sum of all rows is kept, as draws of a model with one row have it.
    """
    streams = Streams.of_chain(settings.seed, Q_CHAIN)
    schedule = settings.schedule._replace(chains=1)
    kept = model if summed is None else model.with_rows(1)
    draws = Draws.empty(schedule, kept)
    chain, hypers = draws.of_chain(0), tuple(hyper[0] / hyper[1] for hyper in q.hypers)
    parameters = getattr(q, "parameters", ())  # of likelihoods that have any

    def draw(s: int) -> None:
        rng = streams.generator(s, START)
        factors = tuple(
            total_of_rows(q.shapes[f], q.rates[f], rng) if f == summed else draw_factor(q, model, f, rng)
            for f in range(len(model.factors))
        )
        total = scoring.total_rate(kept, factors, parameters, exposure)
        chain.keep(s, Point(factors, hypers, parameters), np.nan, total)

    list(engine.map(draw, range(schedule.draws)))
    return draws


def draw_factor(q: Any, model: Factorization, f: int, rng: np.random.Generator) -> np.ndarray:
    """A draw of factor f from its gammas; its value if it is fixed."""
    factor = model.factors[f]
    if factor.fixed is not None:
        return factor.fixed
    draw = np.maximum(rng.standard_gamma(q.shapes[f]) / q.rates[f], SMALLEST_DRAW)
    return np.triu(draw) + np.triu(draw, 1).T if factor.symmetric else draw
