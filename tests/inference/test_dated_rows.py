"""Rows with dates inside the sampler: the joint law and calibration, with and without noise, with masks."""

import numpy as np
import pytest
from scipy import stats

from countveil.data.observations import PrivatizedCounts
from countveil.inference import gibbs
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization
from countveil.models.priors import DatedRowsPrior, DirichletPrior, dated_rows, dirichlet
from countveil.models.priors.dated_rows import Dated, packed
from countveil.models.priors.gamma_chain import packed as packed_chain
from tests.dynamics import draw_chain, draw_value, moderate
from tests.joint import FALSE_ALARM, SERIAL, assert_same_bits, draw_reports, rank_p_values, run_chain

pytestmark = pytest.mark.long

SPEC = parse_spec("dk,vk->dv", names=("theta", "phi"))
STEP, STEPS, K, V = np.array([0, 2, 0, 3, 2, 0]), 4, 2, 4  # nothing is of the second date
PRIOR = DatedRowsPrior(1.5, 6.0, STEP, STEPS)
LEVELS = np.array([0.2, 0.6, 0.4, 0.5, 0.3, 0.4])  # one per row
RUNS, TUNE, DRAWS, THIN = 28, 20, 7, 4


@pytest.fixture(autouse=True)
def moderate_priors(monkeypatch):
    moderate(monkeypatch)
    monkeypatch.setattr(dated_rows, "RATE_SHAPE", 4.0)
    monkeypatch.setattr(dated_rows, "LEVEL_SHAPE", 5.0)
    monkeypatch.setattr(dirichlet, "MEDIAN", 1.0)
    monkeypatch.setattr(dirichlet, "SPREAD", 0.5)


def model_of():
    """Six documents of four words."""
    sizes = axis_sizes(SPEC, (STEP.size, V), {"k": K})
    return factorization(SPEC, sizes, {"theta": PRIOR, "phi": DirichletPrior(None)})


def draw_state(rng):
    """Factors and hyperparameters from the prior."""
    chain = draw_chain(PRIOR.over_dates, (STEPS, K), rng)
    x = np.maximum(draw_value(chain, (STEPS, K), np.ones(STEPS), rng), 1e-150)
    level = rng.gamma(dated_rows.LEVEL_SHAPE, PRIOR.usual_level(K) / dated_rows.LEVEL_SHAPE)
    rate = rng.gamma(dated_rows.RATE_SHAPE, 1.0 / level, STEP.size)
    theta = rng.gamma(x[STEP]) / rate[:, None]
    concentration = np.exp(dirichlet.SPREAD * rng.standard_normal(1))
    phi = rng.dirichlet(np.full(V, concentration[0]), K).T
    factors = tuple(np.maximum(each, 1e-150) for each in (theta, phi))
    return gibbs.State(factors, (packed(Dated(packed_chain(chain), x, rate, level)), concentration), 0)


def observe(state, noise, rng):
    """Data with one level per row; one row and one cell are masked."""
    mu = state.factors[0] @ state.factors[1].T
    alpha = np.broadcast_to(LEVELS[:, None], mu.shape) if noise else np.zeros(mu.shape)
    mask = np.zeros(mu.shape, dtype=bool)
    mask[1] = mask[-1, -1] = True
    return PrivatizedCounts(draw_reports(mu, alpha, rng), alpha, mask).matricized((0,), (1,))


def statistics(state):
    """Functions of the parameters with moderate moments."""
    dated = PRIOR.dated_of(state.hypers[0], (STEP.size, K))
    rates = np.log(state.factors[0] @ state.factors[1].T + 0.05)
    log_x, log_b = np.log(dated.x + 0.02), np.log(dated.rate)
    found = [rates.mean(), (rates**2).mean(), rates.flat[0], rates.flat[-1], rates.max()]
    found += [*log_x.mean(axis=1), (log_x**2).mean(), (log_x[1:] * log_x[:-1]).mean()]
    found += [log_b.mean(), log_b[1], (log_b**2).mean(), (log_b[:, None] * log_x[STEP]).mean()]
    largest = (dated.x / dated.x.sum(axis=1, keepdims=True)).max(axis=1)
    return [*found, *largest, np.log(dated.level), float(np.log(state.hypers[1][0]))]


def joint_z(noise, restarts, seed=1, sweeps=2):
    """As in ``test_joint_law``: (largest |z|, its bound)."""
    rng, streams, found, sweep = np.random.default_rng(seed), Streams.of_chain(seed, 0), [], 0
    model = model_of()
    for _ in range(restarts):
        state = draw_state(rng)._replace(sweep=sweep)
        before = statistics(state)
        for _ in range(sweeps):
            state, _ = gibbs.step(state, Plan(observe(state, noise, rng), model), model, streams, SERIAL)
        sweep = state.sweep
        found.append(np.array(statistics(state)) - before)
    d = np.array(found)
    z = d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts))
    return np.abs(z).max(), stats.t.isf(FALSE_ALARM / 2 / z.size, restarts - 1)


@pytest.mark.parametrize("noise", [True, False], ids=["noise", "no noise"])
def test_a_step_leaves_the_joint_law_as_it_is(noise):
    z, most = joint_z(noise, 120)
    assert z < most


def test_rates_without_the_masks_of_rows_turn_it_red(monkeypatch):
    right = DatedRowsPrior.draw

    def wrong(self, factor, hypers, given, rng):
        return right(self, factor, hypers, given._replace(exposures=np.ones_like(given.exposures)), rng)

    monkeypatch.setattr(DatedRowsPrior, "draw", wrong)
    z, most = joint_z(True, 120)
    assert z > most


def test_true_values_rank_uniformly_among_posterior_draws():
    model, rng, found = model_of(), np.random.default_rng(7), []
    for run in range(RUNS):
        truth = draw_state(rng)
        observations, streams = observe(truth, True, rng), Streams.of_chain(run, 0)
        state, kept = draw_state(rng), []
        plan = Plan(observations, model)
        for sweep in range(1, TUNE + DRAWS * THIN + 1):
            state, _ = gibbs.step(state, plan, model, streams, SERIAL)
            if sweep > TUNE and (sweep - TUNE) % THIN == 0:
                kept.append(quantities(state))
        found.append((np.array(kept) < quantities(truth)).sum(axis=0))
    p = rank_p_values(np.array(found), DRAWS)
    assert p.min() > FALSE_ALARM / p.size


def quantities(state):
    """Those that do not depend on the order of components: expected shares of each date, and others."""
    dated = PRIOR.dated_of(state.hypers[0], (STEP.size, K))
    shares = dated.x / dated.x.sum(axis=1, keepdims=True)
    rates = state.factors[0] @ state.factors[1].T
    return [*shares.max(axis=1), dated.x.sum(), dated.rate[1], rates.sum(), rates[1].sum()]


def test_a_seed_gives_the_same_chain():
    model, rng = model_of(), np.random.default_rng(3)
    observations = observe(draw_state(rng), True, rng)
    one, other = (list(run_chain(observations, model, 4, seed=5)) for _ in range(2))
    assert_same_bits(tuple(one[-1].factors), tuple(other[-1].factors))
    assert_same_bits(tuple(one[-1].hypers), tuple(other[-1].hypers))
