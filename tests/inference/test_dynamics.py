"""Gamma chains over time inside the sampler: the joint law and calibration, with and without noise, with masks."""

import numpy as np
import pytest
from scipy import stats

from countveil.data.observations import PrivatizedCounts
from countveil.inference import augmented_gibbs, gibbs
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization
from countveil.models.priors import DirichletPrior, GammaChainPrior, dirichlet, gamma_chain
from countveil.models.priors.gamma_chain import packed
from tests.dynamics import draw_chain, draw_value, moderate
from tests.joint import FALSE_ALARM, SERIAL, assert_same_bits, draw_noise_rates, draw_reports, rank_p_values, run_chain

T, K = 5, 2
MATRIX = parse_spec("tk,vk->tv", names=("activity", "items"))
TENSOR = parse_spec("ik,jk,tk->ijt", names=("from", "to", "activity"))
LEVELS = np.array([0.2, 0.6, 0.4, 0.5, 0.3])  # one per time step
RUNS, TUNE, DRAWS, THIN = 32, 20, 7, 4


@pytest.fixture(autouse=True)
def moderate_priors(monkeypatch):
    moderate(monkeypatch)
    monkeypatch.setattr(dirichlet, "MEDIAN", 1.0)
    monkeypatch.setattr(dirichlet, "SPREAD", 0.5)


def model_of(spec, steady=True, season=None):
    """Data of 5 steps by 4 items, or of 2 by 3 pairs by 5 steps."""
    sizes = axis_sizes(spec, {MATRIX: (T, 4), TENSOR: (2, 3, T)}[spec], {"k": K})
    priors = {name: DirichletPrior(None) for name in spec.names}
    return factorization(spec, sizes, priors | {"activity": GammaChainPrior(1.5, steady, season)})


def draw_state(model, rng):
    """Factors and hyperparameters from the prior."""
    found, hypers = [], []
    for factor in model.factors:
        if factor.name == "activity":
            chain = draw_chain(factor.prior, factor.shape, rng)
            found.append(np.maximum(draw_value(chain, factor.shape, np.ones(T), rng), 1e-150))
            hypers.append(packed(chain))
        else:
            hypers.append(np.exp(dirichlet.SPREAD * rng.standard_normal(1)))
            value = rng.dirichlet(np.full(factor.shape[0], hypers[-1][0]), K).T
            found.append(np.maximum(value, 1e-150))
    return gibbs.State(tuple(found), tuple(hypers), 0)


def rates_of(model, state):
    """Over the data's axes."""
    return np.einsum(model.spec.text, *state.factors)


def observe(model, mu, noise, rng):
    """(data, reports) with one level per step; one step and one cell are masked."""
    time = 0 if model.spec is MATRIX else 2
    shape = [T if axis == time else 1 for axis in range(mu.ndim)]
    alpha = np.broadcast_to(LEVELS.reshape(shape), mu.shape) if noise else np.zeros(mu.shape)
    mask = np.zeros(mu.shape, dtype=bool)
    np.moveaxis(mask, time, 0)[2] = True
    mask[tuple(np.array(mu.shape) - 1)] = True
    reports = draw_reports(mu, alpha, rng)
    return PrivatizedCounts(reports, alpha, mask).matricized(*model.matrix_axes), reports


def statistics(model, state):
    """Functions of the parameters with moderate moments."""
    rates = np.log(rates_of(model, state) + 0.05)
    f = model.spec.names.index("activity")
    chain = model.factors[f].prior.chain_of(state.hypers[f], (T, K))
    activity = np.log(state.factors[f] + 0.02)
    found = [rates.mean(), (rates**2).mean(), rates.flat[0], rates.flat[-1], rates.max()]
    found += [*activity.mean(axis=1), (activity[1:] * activity[:-1]).mean(), np.log(chain.scale)]
    found += [chain.transition[0, 0], np.log(chain.stay), np.log(chain.sizes.sum())]
    return [*found, *(float(np.log(h[0])) for g, h in enumerate(state.hypers) if g != f)]


def joint_z(model, noise, restarts, seed=1, sweeps=2, algorithm=gibbs):
    """As in ``test_joint_law``: (largest |z|, its bound)."""
    rng, streams, found, sweep = np.random.default_rng(seed), Streams.of_chain(seed, 0), [], 0
    for _ in range(restarts):
        state = draw_state(model, rng)._replace(sweep=sweep)
        before = statistics(model, state)
        for _ in range(sweeps):
            observations, reports = observe(model, rates_of(model, state), noise, rng)
            if algorithm is augmented_gibbs:
                drawn = draw_noise_rates(reports, rates_of(model, state), LEVELS[:, None], rng)
                state = augmented_gibbs.State(state.factors, state.hypers, state.sweep, drawn)
            state, _ = algorithm.step(state, Plan(observations, model), model, streams, SERIAL)
        sweep = state.sweep
        found.append(np.array(statistics(model, state)) - before)
    d = np.array(found)
    d = d[:, d.std(axis=0) > 0.0]
    z = d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts))
    return np.abs(z).max(), stats.t.isf(FALSE_ALARM / 2 / z.size, restarts - 1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "noise", "steady"),
    [(MATRIX, True, True), (MATRIX, False, True), (TENSOR, True, False)],
    ids=["noise", "no noise", "tensor, not steady"],
)
def test_a_step_leaves_the_joint_law_as_it_is(spec, noise, steady):
    z, most = joint_z(model_of(spec, steady), noise, 140)
    assert z < most


def test_a_step_with_noise_rates_leaves_it_too():
    z, most = joint_z(model_of(MATRIX), True, 100, algorithm=augmented_gibbs)
    assert z < most


def test_exposures_of_true_counts_turn_it_red(monkeypatch):
    right = gibbs.update_after_allocation

    def wrong(model, law, found, rows, columns, observations, links, rule, engine):
        exact = PrivatizedCounts(np.ones(observations.shape, dtype=int), 0.0)
        right(model, law, found, rows, columns, exact, links, rule, engine)

    monkeypatch.setattr(gibbs, "update_after_allocation", wrong)
    z, most = joint_z(model_of(MATRIX), True, 200)
    assert z > most


@pytest.mark.long
@pytest.mark.parametrize("season", [None, 3])
def test_true_values_rank_uniformly_among_posterior_draws(season):
    p = p_values_of_ranks(season)
    assert p.min() > FALSE_ALARM / p.size


@pytest.mark.long
def test_ranks_show_counts_of_the_season_before(monkeypatch):
    right = gamma_chain.draw_seasons

    def wrong(chain, theta, count, exposure, rng):
        return right(chain, theta, np.roll(count, 1, axis=0), exposure, rng)

    monkeypatch.setattr(gamma_chain, "draw_seasons", wrong)
    p = p_values_of_ranks(3, runs=16)
    assert p.min() < FALSE_ALARM / p.size


def p_values_of_ranks(season, runs=RUNS):
    """Of the ranks of true quantities among draws, each of many data sets."""
    model, rng, found = model_of(MATRIX, season=season), np.random.default_rng(7), []
    for run in range(runs):
        truth = draw_state(model, rng)
        observations, _ = observe(model, rates_of(model, truth), True, rng)
        streams = Streams.of_chain(run, 0)
        state, kept = draw_state(model, rng), []
        plan = Plan(observations, model)
        for sweep in range(1, TUNE + DRAWS * THIN + 1):
            state, _ = gibbs.step(state, plan, model, streams, SERIAL)
            if sweep > TUNE and (sweep - TUNE) % THIN == 0:
                kept.append(quantities(model, state))
        found.append((np.array(kept) < quantities(model, truth)).sum(axis=0))
    return rank_p_values(np.array(found), DRAWS)


def quantities(model, state):
    """Those that do not depend on the order of components; the third step is masked."""
    rates = rates_of(model, state)
    chain = model.factors[0].prior.chain_of(state.hypers[0], (T, K))
    found = [rates[0].sum(), rates[2].sum(), rates[4, 0], rates.sum(), rates.max()]
    found += [np.trace(chain.transition), chain.sizes.sum()]
    return found if chain.seasons is None else [*found, *chain.seasons.sum(axis=1), chain.concentration]


def test_a_seed_gives_the_same_chain():
    model, rng = model_of(MATRIX), np.random.default_rng(3)
    observations, _ = observe(model, rates_of(model, draw_state(model, rng)), True, rng)
    one, other = (list(run_chain(observations, model, 4, seed=5)) for _ in range(2))
    assert_same_bits(tuple(one[-1].factors), tuple(other[-1].factors))
    assert_same_bits(tuple(one[-1].hypers), tuple(other[-1].hypers))
