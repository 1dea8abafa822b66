"""A step leaves the joint law of model and data as it is (Geweke 2004), whatever the factorization.

As in ``test_gibbs``: parameters from the prior and reports given them, against a few sweeps with new reports
each. Any statistic has the same mean both ways.
"""

import numpy as np
import pytest
from scipy.special import gammaln

from countveil.inference import augmented_gibbs, cavi, em, factors, gibbs, scoring
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.models.priors import LearnedShapePrior
from tests.factorizations import CASES, alpha_of, as_matrix, mask_of, model_of, observe, rates_of
from tests.joint import SERIAL, bound, draw_factors, draw_noise_rates, draw_reports, moderate_shapes

pytestmark = pytest.mark.long

TURNS, SWEEPS = 4, 2


def statistics(state, model, reports, mask, observations):
    """Functions of parameters and seen reports that do not depend on the order of components."""
    log_mu = np.log(rates_of(model, state.factors))
    log_seen = np.log1p(np.where(mask, 0, np.maximum(reports, 0)))
    found = [log_mu.mean(), (log_mu**2).mean(), log_mu[0].mean(), log_mu[-1].mean(), log_seen.mean()]
    found += [(log_seen > 0).mean(), (log_seen * log_mu).mean(), ((log_seen > 0) * log_mu).mean()]
    found.append(np.log1p(np.abs(scoring.log_likelihood(state.factors, observations, model, SERIAL))))
    for f in model.free:
        log_factor = np.log(state.factors[f])
        log_hypers = np.log(state.hypers[f])
        found += [log_factor.mean(), (log_factor**2).mean(), log_hypers.mean(), log_hypers.flat[0]]
        if model.factors[f].name == "pi":
            found += [np.diagonal(log_factor).mean(), (np.diagonal(log_factor) ** 2).mean()]
    if model.shared is not None:
        loops = np.arange(len(log_mu))
        found += [log_mu[loops, loops].mean(), (log_seen * log_mu)[loops, loops].mean()]
    return found


def joint_z(case, algorithm=gibbs, restarts=60, seed=12):
    """(z-scores of the statistics, the bound they must keep), as in ``test_gibbs``."""
    rng, streams, model = np.random.default_rng(seed), Streams.of_chain(seed, 0), model_of(case)
    mask, alpha, differences, sweep = mask_of(case), alpha_of(case), [], 0

    def report(state):
        mu = rates_of(model, state.factors)
        reports = draw_reports(mu, alpha, rng)
        if algorithm is augmented_gibbs:
            noise = draw_noise_rates(*(as_matrix(model, x) for x in (reports, mu, alpha)), rng)
            state = augmented_gibbs.State(state.factors, state.hypers, state.sweep, noise)
        return state, reports, observe(model, case, reports, mask)

    for _ in range(restarts):
        state, reports, observations = report(gibbs.State(*draw_factors(model, rng), sweep))
        before, after = statistics(state, model, reports, mask, observations), []
        for turn in range(TURNS):
            if turn > 0:
                state, reports, observations = report(state)
            for _ in range(SWEEPS):
                state, _ = algorithm.step(state, Plan(observations, model), model, streams, SERIAL)
            after.append(statistics(state, model, reports, mask, observations))
        sweep = state.sweep
        differences.append(np.mean(after, axis=0) - before)
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 0.0]
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts)), bound(d.shape[1], restarts)


def assert_kept(z, most):
    assert len(z) >= 14
    assert np.abs(z).max() < most


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_step_leaves_the_joint_law_as_it_is(case):
    assert_kept(*joint_z(case, restarts=60 if case.options else 40))  # faults of actors are seen later


SHAPED = CASES["undirected"]._replace(
    priors={"theta": LearnedShapePrior(0.7, None), "pi": LearnedShapePrior(None, 1.5)}
)


@pytest.mark.parametrize(("algorithm", "restarts"), [(gibbs, 40), (augmented_gibbs, 30)])
def test_a_step_with_learned_shapes_leaves_it_too(algorithm, restarts, monkeypatch):
    moderate_shapes(monkeypatch)
    assert_kept(*joint_z(SHAPED, algorithm, restarts))


def test_the_joint_law_shows_shapes_drawn_as_if_rates_were_known(monkeypatch):
    moderate_shapes(monkeypatch)

    def wrong(self, log_a, evidence):
        n = evidence.sizes.sum()
        return np.exp(log_a) * evidence.logs - n * gammaln(np.exp(log_a)) - 0.5 * (log_a / 0.5) ** 2

    monkeypatch.setattr(LearnedShapePrior, "log_density", wrong)
    z, most = joint_z(SHAPED, restarts=40)
    assert np.abs(z).max() > most


@pytest.mark.parametrize("name", ["directed, loops", "undirected", "CP 3", "Tucker"])
def test_a_step_with_noise_rates_leaves_it_too(name):
    assert_kept(*joint_z(CASES[name], augmented_gibbs, restarts=40))


@pytest.mark.parametrize("algorithm", [gibbs, augmented_gibbs, cavi, em], ids=lambda module: module.__name__[20:])
def test_a_symmetric_factor_stays_so(algorithm):
    case = CASES["undirected"]
    model, streams = model_of(case), Streams.of_chain(4, 0)
    rng, pi = np.random.default_rng(4), model.spec.names.index("pi")
    reports = draw_reports(rates_of(model, draw_factors(model, rng)[0]), alpha_of(case), rng)
    observations = observe(model, case, reports, mask_of(case))
    plan = Plan(observations, model)
    state = algorithm.init(plan, model, streams, SERIAL)
    for _ in range(3):
        state, _ = algorithm.step(state, plan, model, streams, SERIAL)
        blocks = (state.means if algorithm is cavi else state.factors)[pi]
        np.testing.assert_array_equal(blocks, blocks.T)
        assert blocks[0, 1] != blocks[0, 0] != blocks[1, 1]


def received_counts_left_out(monkeypatch):
    right = gibbs.update_after_allocation

    def wrong(model, law, found, row_counts, column_counts, *rest):
        sent_only = [
            np.zeros_like(count) if use.factor == model.shared else count
            for use, count in zip(model.columns.uses, column_counts, strict=True)
        ]
        right(model, law, found, row_counts, sent_only, *rest)

    monkeypatch.setattr(gibbs, "update_after_allocation", wrong)


def exposure_to_senders_left_out(monkeypatch):
    right = factors.make_links
    nobody = np.zeros(7, dtype=np.int64), *[np.zeros(0, dtype=np.int64)] * 2, np.zeros(0)
    monkeypatch.setattr(factors, "make_links", lambda *given: right(*given)._replace(into=nobody))


def loops_not_exposed(monkeypatch):
    right = factors.make_links

    def wrong(*given):
        links = right(*given)
        return links._replace(loops=np.zeros_like(links.loops))

    monkeypatch.setattr(factors, "make_links", wrong)


def loops_exposed_though_not_seen(monkeypatch):
    right = factors.make_links

    def wrong(*given):
        links = right(*given)
        return links._replace(loops=np.ones_like(links.loops))

    monkeypatch.setattr(factors, "make_links", wrong)


@pytest.mark.parametrize(
    ("name", "break_it", "restarts"),
    [
        ("directed", received_counts_left_out, 40),
        ("undirected", received_counts_left_out, 40),
        ("directed", exposure_to_senders_left_out, 100),
        ("directed, loops", loops_not_exposed, 40),
        ("undirected, loops", loops_not_exposed, 40),
        ("directed", loops_exposed_though_not_seen, 40),
    ],
)
def test_the_joint_law_shows_a_planted_fault(name, break_it, restarts, monkeypatch):
    break_it(monkeypatch)
    z, most = joint_z(CASES[name], restarts=restarts)
    assert np.abs(z).max() > most
