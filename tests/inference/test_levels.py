"""Levels inside the sampler: the joint law with noise, known exposures, overdispersion and masks, and calibration."""

import numpy as np
import pytest
from scipy import stats

from countveil.data.observations import PrivatizedCounts
from countveil.inference import gibbs
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization
from countveil.models.priors import DirichletPrior, GammaChainPrior, LevelPrior
from countveil.models.priors.gamma_chain import packed
from tests import levels as forwards
from tests.dynamics import draw_chain, draw_value
from tests.inference.test_dynamics import LEVELS, K, T, moderate_priors  # noqa: F401
from tests.joint import FALSE_ALARM, SERIAL, draw_reports, rank_p_values

MATRIX = parse_spec("tk,vk,tv->tv", names=("activity", "items", "level"))
TENSOR = parse_spec("ik,jk,tk,ijt->ijt", names=("from", "to", "activity", "level"))
P = 0.4  # of overdispersed counts
RUNS, TUNE, DRAWS, THIN = 24, 40, 7, 10


@pytest.fixture(autouse=True)
def moderate_levels(monkeypatch):
    forwards.moderate(monkeypatch)


def model_of(spec, likelihood=POISSON):
    """Data of 5 steps by 4 items, or of 2 by 3 pairs by 5 steps."""
    sizes = axis_sizes(spec, {MATRIX: (T, 4), TENSOR: (2, 3, T)}[spec], {"k": K})
    priors = {name: DirichletPrior(1.0) for name in spec.names}
    priors |= {"activity": GammaChainPrior(3.0, True), "level": LevelPrior(0 if spec is MATRIX else 2)}
    return factorization(spec, sizes, priors, likelihood=likelihood)


def draw_state(model, rng):
    """Factors and hyperparameters from the prior."""
    found, hypers = [], []
    for factor in model.factors:
        if factor.name == "activity":
            chain = draw_chain(factor.prior, factor.shape, rng)
            value, own = draw_value(chain, factor.shape, np.ones(T), rng), packed(chain)
        elif factor.name == "level":
            own = forwards.draw_hypers(int(np.prod(factor.shape)) // T, rng)
            value = factor.prior.as_factor(forwards.draw_levels(own, T, rng), factor.shape)
        else:
            value, own = rng.dirichlet(np.ones(factor.shape[0]), K).T, np.ones(1)
        found.append(np.maximum(value, 1e-150))
        hypers.append(own)
    return gibbs.State(tuple(found), tuple(hypers), 0, model.initial_parameters())


def rates_of(model, state):
    """Over the data's axes."""
    return np.einsum(model.spec.text, *state.factors)


def observe(model, mu, noise, exposure, rng):
    """Data with one noise level per step; one step and one cell are masked."""
    time = 0 if model.spec is MATRIX else 2
    shape = [T if axis == time else 1 for axis in range(mu.ndim)]
    alpha = np.broadcast_to(LEVELS.reshape(shape), mu.shape) if noise else np.zeros(mu.shape)
    mask = np.zeros(mu.shape, dtype=bool)
    np.moveaxis(mask, time, 0)[2] = True
    mask[tuple(np.array(mu.shape) - 1)] = True
    counts = model.likelihood.sample(mu if exposure is None else mu * exposure, rng)
    reports = counts + draw_reports(np.zeros(mu.shape), alpha, rng)
    return PrivatizedCounts(reports, alpha, mask, exposure=exposure).matricized(*model.matrix_axes)


def statistics(model, state):
    """Functions of the parameters with moderate moments."""
    rates = np.log(rates_of(model, state) + 0.05)
    hypers = state.hypers[model.level]
    level = np.log(np.maximum(model.factors[model.level].prior.over_items(state.factors[model.level]), 1e-3))
    activity = np.log(state.factors[model.spec.names.index("activity")] + 0.02)
    found = [rates.mean(), (rates**2).mean(), rates.flat[0], rates.flat[-1], rates.max()]
    found += [*level.mean(axis=1), (level**2).mean(), (level[1:] * level[:-1]).mean(), hypers[0], hypers[1]]
    return [*found, hypers[2:].mean(), level.mean() * activity.mean(), (level * level[::-1]).mean()]


def joint_z(model, noise, exposure=None, restarts=90, seed=1, sweeps=3):
    """As in ``test_joint_law``: (largest |z|, its bound)."""
    rng, streams, found, sweep = np.random.default_rng(seed), Streams.of_chain(seed, 0), [], 0
    for _ in range(restarts):
        state = draw_state(model, rng)._replace(sweep=sweep)
        before = statistics(model, state)
        for _ in range(sweeps):
            data = observe(model, rates_of(model, state), noise, exposure, rng)
            state, _ = gibbs.step(state, Plan(data, model), model, streams, SERIAL)
        sweep = state.sweep
        found.append(np.array(statistics(model, state)) - before)
    d = np.array(found)
    z = d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts))
    return np.abs(z).max(), stats.t.isf(FALSE_ALARM / 2 / z.size, restarts - 1)


EXPOSURE = np.random.default_rng(4).gamma(4.0, 0.5, (T, 4))
CASES = {
    "noise": (MATRIX, POISSON, True, None),
    "true counts": (MATRIX, POISSON, False, None),
    "tensor": (TENSOR, POISSON, True, None),
    "overdispersed": (MATRIX, NegativeBinomial(P), True, None),
    "known exposures": (MATRIX, POISSON, True, EXPOSURE),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_a_step_leaves_the_joint_law_as_it_is(name):
    spec, likelihood, noise, exposure = CASES[name]
    z, most = joint_z(model_of(spec, likelihood), noise, exposure)
    assert z < most


def exposures_of_true_counts(monkeypatch):
    monkeypatch.setattr(gibbs, "exposures_of_cells", lambda cells, law: np.ones(cells.shape))


def levels_of_the_step_before(monkeypatch):
    right = LevelPrior.draw

    def wrong(self, factor, hypers, given, rng):
        return right(self, factor, hypers, given._replace(counts=np.roll(given.counts, 1, axis=0)), rng)

    monkeypatch.setattr(LevelPrior, "draw", wrong)


@pytest.mark.long
@pytest.mark.parametrize("plant", [exposures_of_true_counts, levels_of_the_step_before])
def test_the_joint_law_shows_a_planted_fault(plant, monkeypatch):
    plant(monkeypatch)
    z, most = joint_z(model_of(MATRIX), True, restarts=80)
    assert z > most


@pytest.mark.long
def test_true_values_rank_uniformly_among_posterior_draws():
    model, rng, found = model_of(MATRIX), np.random.default_rng(7), []
    for run in range(RUNS):
        truth = draw_state(model, rng)
        data = observe(model, rates_of(model, truth), True, None, rng)
        streams, state, kept = Streams.of_chain(run, 0), draw_state(model, rng), []
        plan = Plan(data, model)
        for sweep in range(1, TUNE + DRAWS * THIN + 1):
            state, _ = gibbs.step(state, plan, model, streams, SERIAL)
            if sweep > TUNE and (sweep - TUNE) % THIN == 0:
                kept.append(quantities(model, state))
        found.append((np.array(kept) < quantities(model, truth)).sum(axis=0))
    p = rank_p_values(np.array(found), DRAWS)
    assert p.min() > FALSE_ALARM / p.size


def quantities(model, state):
    """Those that do not depend on the order of components; the third step is masked."""
    rates, hypers = rates_of(model, state), state.hypers[model.level]
    return [*rates[[0, 2]].sum(axis=1), rates[4, 0], rates.max(), hypers[0], *hypers[2:4], state.factors[2][4, 0]]


def test_parts_are_left_for_the_levels_of_positive_reports_alone():
    model, rng = model_of(MATRIX), np.random.default_rng(3)
    state = draw_state(model, rng)
    data = observe(model, rates_of(model, state), False, None, rng)
    plan = Plan(data, model)
    at_levels = plan.cells.at_levels(model.by_cell(state.factors[2]))
    rest = model.without_level
    inner = state._replace(factors=state.factors[:2], hypers=state.hypers[:2])
    gibbs.step(inner, Plan(at_levels, rest), rest, Streams.of_chain(1, 0), SERIAL)
    counts = np.zeros(data.shape)
    counts[data.row_numbers, data.columns] = np.maximum(data.reports, 0)
    np.testing.assert_array_equal(at_levels.drawn, counts)


def test_matrices_give_the_rates_of_all_cells():
    for spec in (MATRIX, TENSOR):
        model = model_of(spec)
        state = draw_state(model, np.random.default_rng(2))
        theta, phi = model.matrices(state.factors)
        np.testing.assert_allclose(model.over_axes(theta @ phi.T), rates_of(model, state))
        np.testing.assert_array_equal(model.over_axes(model.by_cell(state.factors[-1])), state.factors[-1])
