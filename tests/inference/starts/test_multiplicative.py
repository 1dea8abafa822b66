import itertools

import numpy as np
import pytest

from countveil.inference.starts.multiplicative import gradients, multiplicative_start
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.joint import SERIAL, draw_reports


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", ["topics", "directed", "directed, loops", "CP 3", "Tucker", "shapes and known"])
def test_what_pulls_factors_are_slopes_over_the_cells_that_are_seen(name, masked):
    """Up: of the sum of T's positive part times the rates. Down: of the same with the negative part and the rates."""
    case, rng = CASES[name], np.random.default_rng(23)
    model, alpha = model_of(case), alpha_of(case)
    mask = mask_of(case) if masked else np.zeros(case.shape, dtype=bool)
    reports = rng.integers(-2, 6, case.shape) * (alpha > 0.0)
    observations = observe(model, case, reports, mask)
    factors = [rng.random(f.shape) if f.fixed is None else f.fixed for f in model.factors]
    weights = (1.0 + alpha) * np.maximum(reports, 0), alpha / (1.0 - alpha) + rates_of(model, factors)
    for f in model.free:
        direction = rng.standard_normal(model.factors[f].shape)
        moved = [
            rates_of(model, [x + h * direction if g == f else x for g, x in enumerate(factors)]) for h in (1e-6, -1e-6)
        ]
        for pull, weight in zip(gradients(observations, model, factors, f, SERIAL), weights, strict=True):
            slope = ((moved[0] - moved[1]) / 2e-6 * weight)[~mask].sum()
            assert (pull * direction).sum() == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_multiplicative_updates_never_raise_the_squared_error():
    case = CASES["Tucker"]._replace(shape=(12, 9, 2, 3))
    model, rng = model_of(case, c=3, d=2), np.random.default_rng(24)
    mask = mask_of(case)
    reports = draw_reports(rates_of(model, [rng.gamma(0.5, 2.0, f.shape) for f in model.factors]), alpha_of(case), rng)
    observations, alpha = observe(model, case, reports, mask), alpha_of(case)
    target = (1.0 + alpha) * np.maximum(reports, 0) - alpha / (1.0 - alpha)
    path = []
    for iterations in range(8):
        factors = multiplicative_start(observations, model, np.random.default_rng(25), SERIAL, iterations)
        path.append((((target - rates_of(model, factors)) ** 2)[~mask]).sum())
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in itertools.pairwise(path))
    assert path[-1] < 0.9 * path[0]
