"""Rows with layers inside the sampler: the joint law and calibration, with and without noise, with masks."""

import numpy as np
import pytest
from scipy import stats

from countveil.data.observations import PrivatizedCounts
from countveil.inference import gibbs
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization
from countveil.models.priors import DirichletPrior, LayeredRowsPrior, dirichlet, layered_rows
from countveil.models.priors.layered_rows import packed
from tests.joint import FALSE_ALARM, SERIAL, assert_same_bits, draw_reports, rank_p_values, run_chain
from tests.layers import draw_layers, moderate

pytestmark = pytest.mark.long

SPEC = parse_spec("dk,vk->dv", names=("theta", "phi"))
D, K, V = 6, 3, 4
SIZES = {2: (2,), 3: (2, 2)}
LEVELS = np.array([0.2, 0.6, 0.4, 0.5, 0.3, 0.4])  # one per row
RUNS, TUNE, DRAWS, THIN = 28, 20, 7, 4


@pytest.fixture(autouse=True)
def moderate_priors(monkeypatch):
    moderate(monkeypatch)


def model_of(n_layers):
    """Six documents of four words."""
    prior = LayeredRowsPrior(1.0, 6.0, SIZES[n_layers])
    return factorization(SPEC, axis_sizes(SPEC, (D, V), {"k": K}), {"theta": prior, "phi": DirichletPrior(None)})


def draw_state(model, rng):
    """Factors and hyperparameters from the prior."""
    layers, theta = draw_layers(model.factors[0].prior, (D, K), np.ones(D), rng)
    concentration = np.exp(dirichlet.SPREAD * rng.standard_normal(1))
    phi = np.maximum(rng.dirichlet(np.full(V, concentration[0]), K).T, 1e-150)
    return gibbs.State((theta, phi), (packed(layers), concentration), 0)


def observe(state, noise, rng):
    """Data with one level per row; one row and one cell are masked."""
    mu = state.factors[0] @ state.factors[1].T
    alpha = np.broadcast_to(LEVELS[:, None], mu.shape) if noise else np.zeros(mu.shape)
    mask = np.zeros(mu.shape, dtype=bool)
    mask[1] = mask[-1, -1] = True
    return PrivatizedCounts(draw_reports(mu, alpha, rng), alpha, mask).matricized((0,), (1,))


def statistics(state, model):
    """Functions of the parameters with moderate moments."""
    layers = model.factors[0].prior.layers_of(state.hypers[0], (D, K))
    rates, log_b = np.log(state.factors[0] @ state.factors[1].T + 0.05), np.log(layers.rates)
    log_theta = np.log(state.factors[0] + 0.02)
    found = [rates.mean(), (rates**2).mean(), rates.flat[0], rates.flat[-1], rates.max()]
    found += [
        *log_b.mean(axis=1),
        *(log_b**2).mean(axis=1),
        *log_b[:, 1],
        *np.log(layers.levels),
        *np.log(layers.steadiness),
    ]
    found += [np.log(layers.top).sum(), float(np.log(state.hypers[1][0])), *np.log(layers.concentrations)]
    for upper, loadings in zip(layers.upper, layers.loadings, strict=True):
        log_upper = np.log(upper + 0.02)
        found += [log_upper.mean(), (log_upper**2).mean(), log_upper[1].mean(), (loadings**2).sum()]
        found += [(log_theta[:, :1] * np.log(upper @ loadings.T + 0.02)[:, :1]).mean()]
    return found


def joint_z(n_layers, noise, restarts, seed=1, sweeps=2):
    """As in ``test_joint_law``: (largest |z|, its bound)."""
    rng, streams, found, sweep = np.random.default_rng(seed), Streams.of_chain(seed, 0), [], 0
    model = model_of(n_layers)
    for _ in range(restarts):
        state = draw_state(model, rng)._replace(sweep=sweep)
        before = np.array(statistics(state, model))
        for _ in range(sweeps):
            state, _ = gibbs.step(state, Plan(observe(state, noise, rng), model), model, streams, SERIAL)
        sweep = state.sweep
        found.append(np.array(statistics(state, model)) - before)
    d = np.array(found)
    z = d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts))
    return np.abs(z).max(), stats.t.isf(FALSE_ALARM / 2 / z.size, restarts - 1)


@pytest.mark.parametrize("noise", [True, False], ids=["noise", "no noise"])
@pytest.mark.parametrize("n_layers", [2, 3])
def test_a_step_leaves_the_joint_law_as_it_is(n_layers, noise):
    z, most = joint_z(n_layers, noise, 200)
    assert z < most


@pytest.mark.parametrize("n_layers", [2, 3])
def test_tables_of_a_row_of_others_turn_it_red(n_layers, monkeypatch):
    right = layered_rows.pass_upwards
    monkeypatch.setattr(layered_rows, "pass_upwards", lambda count, *rest: right(np.roll(count, 1, axis=0), *rest))
    z, most = joint_z(n_layers, True, 200)
    assert z > most


@pytest.mark.parametrize("n_layers", [2, 3])
def test_true_values_rank_uniformly_among_posterior_draws(n_layers):
    model, rng, found = model_of(n_layers), np.random.default_rng(7), []
    for run in range(RUNS):
        truth = draw_state(model, rng)
        observations, streams = observe(truth, True, rng), Streams.of_chain(run, 0)
        state, kept = draw_state(model, rng), []
        plan = Plan(observations, model)
        for sweep in range(1, TUNE + DRAWS * THIN + 1):
            state, _ = gibbs.step(state, plan, model, streams, SERIAL)
            if sweep > TUNE and (sweep - TUNE) % THIN == 0:
                kept.append(quantities(state, model))
        found.append((np.array(kept) < quantities(truth, model)).sum(axis=0))
    p = rank_p_values(np.array(found), DRAWS)
    assert p.min() > FALSE_ALARM / p.size


def quantities(state, model):
    """Those that do not depend on the order of components: sums, largest shares, rates."""
    layers = model.factors[0].prior.layers_of(state.hypers[0], (D, K))
    rates = state.factors[0] @ state.factors[1].T
    found = [layers.top.sum(), *layers.rates[:, 1], rates.sum(), rates[1].sum(), *np.log(layers.levels)]
    for upper, loadings, sizes in zip(layers.upper, layers.loadings, layers.sizes, strict=True):
        found += [upper.sum(), upper[2].max() / upper[2].sum(), loadings.max(), sizes.max() / sizes.sum()]
    return found


def test_a_seed_gives_the_same_chain():
    model, rng = model_of(3), np.random.default_rng(3)
    observations = observe(draw_state(model, rng), True, rng)
    one, other = (list(run_chain(observations, model, 4, seed=5)) for _ in range(2))
    assert_same_bits(tuple(one[-1].factors), tuple(other[-1].factors))
    assert_same_bits(tuple(one[-1].hypers), tuple(other[-1].hypers))
