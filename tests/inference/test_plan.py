"""A plan is made once for all chains of a fit, and each of its parts is found once."""

import numpy as np
import pytest

import countveil as cv
from countveil import mechanisms as m
from countveil.data.observations import PrivatizedCounts
from countveil.inference import factors, gibbs, run, tokens, totals
from countveil.inference.draws import Schedule
from countveil.inference.plan import Plan
from countveil.kernels.report_kernels import LEAST
from countveil.laws.counts import POISSON
from countveil.laws.counts.negative_binomial import NegativeBinomial
from tests.factorizations import CASES, model_of, observe
from tests.joint import small_model

COUNTS = np.random.default_rng(1).poisson(2.0, (12, 9))


def network():
    """(model, observations) of actors that both sides use."""
    case = CASES["directed"]
    model = model_of(case)
    reports = np.random.default_rng(2).poisson(1.0, case.shape)
    return model, observe(model, case, reports, np.zeros(case.shape, dtype=bool))


def with_totals():
    """Observations whose open cells are those that a threshold hides."""
    reports = cv.simulate_reports(COUNTS, m.Suppression(4), np.random.default_rng(3))
    return cv.Reports(reports, m.Suppression(4), totals=[(1, COUNTS.sum(axis=1))])


def cases():
    """Each part's module and function, and a model and data of a fit that needs it."""
    plain = small_model(COUNTS.shape), PrivatizedCounts(COUNTS, 0.5)
    rounded = small_model(COUNTS.shape), cv.Reports(3 * (COUNTS // 3), m.Rounding(3))
    return {
        "tokens": (tokens, "planned", *plain),
        "tokens of other mechanisms": (tokens, "planned", *rounded),
        "links": (factors, "make_links", *network()),
        "open_cells": (totals, "open_cells", small_model(COUNTS.shape), with_totals()),
    }


@pytest.mark.parametrize("part", ["tokens", "tokens of other mechanisms", "links", "open_cells"])
def test_a_fit_finds_each_part_once(part, monkeypatch):
    module, name, model, data = cases()[part]
    found, real = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given: found.append(given[0]) or real(*given))
    run.sample(data, model, Schedule(2, 2, 2, 1), seed=1, threads=1, progress=False, algorithm=gibbs)
    assert sum(given is data for given in found) == 1


def test_links_follow_the_parameters_of_a_likelihood():
    model, data = network()
    plan = Plan(data, model)
    assert plan.links(data.law(POISSON)) is plan.links(data.law(POISSON))
    bursts = model._replace(likelihood=NegativeBinomial("global"))
    plan = Plan(data, bursts)
    one, other = (plan.links(data.law(bursts.likelihood, (np.array([p]),))) for p in (0.2, 0.8))
    assert (one.baseline.exposure_i != other.baseline.exposure_i).any()


def test_only_a_free_factor_of_both_sides_has_links():
    model, data = network()
    assert Plan(data, small_model(data.shape)).links(data.law(POISSON)) is None
    shared = model.factors[model.shared]
    fixed = shared._replace(fixed=np.ones(shared.shape))
    every = tuple(fixed if factor is shared else factor for factor in model.factors)
    assert Plan(data, model._replace(factors=every)).links(data.law(POISSON)) is None


def test_counts_of_open_cells_replace_their_reports():
    data = with_totals()
    plan = Plan(data, small_model(COUNTS.shape))
    known = plan.with_counts(COUNTS[plan.open_cells.row, plan.open_cells.column]).data
    codes = np.zeros(data.shape, dtype=int)
    codes[known.row_numbers, known.columns] = known.reports
    least = known.noise.kernel.whole_cj[:, LEAST]
    np.testing.assert_array_equal(np.where(codes > 0, least[codes], 0), COUNTS)
