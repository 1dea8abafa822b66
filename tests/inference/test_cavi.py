import numpy as np
import pytest
from scipy import special, stats

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.inference import cavi, run
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from tests.joint import SERIAL, assert_same_bits, draw_reports, fit_settings, matrix_model, mu_of, planted, small_model

STREAMS = Streams.of_chain(1, 0)


def problem(seed):
    """A small random problem: per-row or one alpha, masked or not, fixed or learned rates."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns, k = int(rng.integers(5, 40)), int(rng.integers(5, 30)), int(rng.integers(1, 5))
    mu = rng.gamma(0.5, 1.0, (n_rows, k)) @ rng.gamma(0.5, 1.0, (k, n_columns))
    alpha = rng.uniform(0.0, 0.95, n_rows) if seed % 2 else np.full(n_rows, rng.uniform(0.05, 0.95))
    mask = rng.random(mu.shape) < 0.1 if seed % 3 else None
    observations = PrivatizedCounts(draw_reports(mu, alpha[:, None], rng), alpha, mask)
    return observations, matrix_model(mu.shape, k, 0.3, 1.0 if seed % 4 < 2 else None, float(mu.mean()))


def climb(observations, model, steps, expectation="geometric"):
    plan = Plan(observations, model)
    state, objectives = cavi.init(plan, model, STREAMS, SERIAL), []
    for _ in range(steps):
        state, info = cavi.step(state, plan, model, STREAMS, SERIAL, expectation)
        objectives.append(info.objective)
    return state, np.array(objectives)


def largest_fall(objectives):
    """The largest relative decrease of the objective from one iteration to the next (negative if none)."""
    return (-np.diff(objectives) / np.abs(objectives[1:])).max()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_the_objective_never_decreases(seed):
    observations, model = problem(seed)
    for expectation in cavi.EXPECTATIONS:
        assert largest_fall(climb(observations, model, 80, expectation)[1]) < 1e-9


def test_a_wrong_update_makes_the_bound_fall():
    for seed in range(5):
        observations, model = problem(seed)
        state = climb(observations, model, 200)[0]
        wrong = state._replace(rates=(1.05 * state.rates[0], state.rates[1]))
        bounds = [cavi.step(q, Plan(observations, model), model, STREAMS, SERIAL)[1].objective for q in (state, wrong)]
        assert largest_fall(np.array(bounds)) > 1e-6


@pytest.mark.parametrize(("report", "alpha"), [(3, 0.5), (0, 0.5), (-2, 0.7), (4, 0.0)])
def test_the_bound_is_below_the_log_evidence_and_near_it(report, alpha):
    observations, model = PrivatizedCounts([[report]], alpha), small_model((1, 1), 1, shape=1.5, rate=1.0)
    nodes, weights = special.roots_genlaguerre(80, 0.5)  # the prior's density, up to its constant
    counts = np.arange(150)
    if report > 0:
        noise = (1 - alpha) / (1 + alpha) * np.power(float(alpha), np.abs(report - counts))
    else:
        noise = np.power(float(alpha), counts) / (1 + alpha)
    likelihood = stats.poisson.pmf(counts, np.outer(nodes, nodes)[..., None]) @ noise
    evidence = np.log(weights @ likelihood @ weights / weights.sum() ** 2)
    bound = climb(observations, model, 300)[1][-1]
    assert bound < evidence
    assert evidence - bound < 1.0


def test_without_noise_the_fit_is_that_of_exact_counts():
    counts = np.random.default_rng(2).poisson(1.5, (12, 9))
    model = small_model(counts.shape)
    one = climb(ExactCounts(counts), model, 10)
    other = climb(PrivatizedCounts(counts, 0.0), model, 10)
    np.testing.assert_array_equal(one[1], other[1])
    np.testing.assert_allclose((one[0].shapes[0] - model.factors[0].prior.shape).sum(), counts.sum(), rtol=1e-12)


def test_threads_do_not_change_the_answer():
    observations, model = planted(600, 20, 3, 0.5, seed=4)[2], small_model((600, 20), 3, learned=True)
    rule = run.relative_change(1e-6)
    one, two = (
        run.ascend(observations, model, cavi, fit_settings()._replace(seed=3, threads=threads), rule, 6)
        for threads in (1, 2)
    )
    np.testing.assert_array_equal(one.objective, two.objective)
    assert_same_bits(one.state, two.state)


@pytest.mark.long
def test_by_default_an_ascent_ends_near_its_least_error():
    rng = np.random.default_rng(20190602)
    mu = rng.gamma(0.1, 3.0, (200, 10)) @ rng.gamma(0.1, 3.0, (10, 300))
    observations = PrivatizedCounts(draw_reports(mu, np.exp(np.array(-1.0)), rng), np.exp(-1.0))
    model, rule = small_model(mu.shape, 10, 0.1, 1.0), run.relative_change(cavi.CAVI().tolerance)
    path = run.ascend(observations, model, cavi, fit_settings()._replace(seed=1), rule, 500)
    plan = Plan(observations, model)
    state, errors = cavi.init(plan, model, Streams.of_chain(1, 0), SERIAL), []
    for _ in range(150):
        state, _ = cavi.step(state, plan, model, STREAMS, SERIAL)
        errors.append(np.abs(mu_of(state.means) - mu).mean())
    assert path.converged
    assert path.objective.size < 60
    assert np.abs(mu_of(path.state.means) - mu).mean() < 1.03 * min(errors)


def test_arithmetic_keeps_the_components_that_geometric_starves():
    mu, _, observations, _ = planted(150, 120, 5, np.exp(-0.5), seed=6, tokens=12.0)
    model = matrix_model(mu.shape, 5, 0.1, None, float(mu.mean()))
    total = {}
    for expectation in cavi.EXPECTATIONS:
        q = climb(observations, model, 200, expectation)[0]
        total[expectation] = mu_of(q.means).sum() / mu.sum()
    assert total["geometric"] < 0.8 < total["arithmetic"]
