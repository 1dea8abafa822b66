"""Covariates of the rows: a step leaves the joint law as it is, and true coefficients rank uniformly, with noise on."""

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.inference import gibbs
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts import NegativeBinomial, Poisson
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior, RegressionPrior
from tests.factorizations import rates_of
from tests.joint import (
    FALSE_ALARM,
    SERIAL,
    SPEC,
    bound,
    draw_factors,
    draw_reports,
    moderate_shapes,
    mu_of,
    rank_p_values,
    two_sided_geometric,
)

pytestmark = pytest.mark.long

SIZE = (8, 5)
ALPHA = np.array([0.0, 0.3, 0.6, 0.8, 0.8, 0.7, 0.3, 0.6])
OFFSET = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 1.5, 1.0, 0.7])
DESIGN = np.array(
    [[-1.0, 0.4], [-1.0, -1.2], [-1.0, 0.9], [-1.0, -0.3], [1.0, 0.2], [1.0, 1.3], [1.0, -0.9], [1.0, -0.4]]
)
MASK = np.zeros(SIZE, dtype=bool)
MASK[[0, 1, 3, 5], [2, 0, 4, 1]] = True
P_BURST = 0.4
SWEEPS = 8


def model_with(likelihood=None):
    """theta (8, 2) with covariates, phi (5, 2) without."""
    priors = {"theta": RegressionPrior(1.0, None, DESIGN, 0.5), "phi": GammaPrior(1.5, 1.5, False)}
    sizes = axis_sizes(SPEC, SIZE, {"k": 2})
    return factorization(SPEC, sizes, priors, likelihood=likelihood or Poisson())


def bursty():
    """The same with counts that come in bursts of a known size."""
    return model_with(likelihood=NegativeBinomial(P_BURST))


def tensor():
    """The same over the first mode of a tensor (8, 3, 2)."""
    spec, shapes = parse_spec("ik,jk,tk->ijt", names=("theta", "phi", "psi")), GammaPrior(1.5, 1.5, False)
    priors = {"theta": RegressionPrior(1.0, None, DESIGN, 0.5), "phi": shapes, "psi": shapes}
    return factorization(spec, axis_sizes(spec, (8, 3, 2), {"k": 2}), priors, likelihood=Poisson())


def network():
    """The same of actors, in a network without direction: theta (8, 2) is used twice."""
    sharing = {"shared": {"theta_to": "theta"}, "symmetric": ("pi",)}
    spec = parse_spec("ic,jd,cd->ij", names=("theta", "theta_to", "pi"), **sharing)
    priors = {"theta": RegressionPrior(0.8, None, DESIGN, 0.5), "pi": GammaPrior(1.5, 1.5, False)}
    return factorization(spec, axis_sizes(spec, (8, 8), {"c": 2, "d": 2}), priors)


def means(model, factors):
    """(8, columns) expected counts."""
    return rates_of(model, factors).reshape(SIZE[0], -1)


def mask_of(model):
    """(8, columns) the cells that are not seen: a few, and those of a network on and below its diagonal."""
    columns = np.prod([model.columns.sizes[a] for a in model.columns.observed], dtype=int)
    found = np.pad(MASK, ((0, 0), (0, columns - SIZE[1])))
    return found if model.shared is None else found | np.tri(*found.shape, dtype=bool)


def offset_of(model):
    """(8,) what rows are multiplied by; rows that are used twice have no offsets."""
    return OFFSET if model.shared is None else np.ones(SIZE[0])


def seen(model, factors, rng):
    """(reports, observations) of counts with these factors."""
    mu, mask = means(model, factors), mask_of(model)
    if isinstance(model.likelihood, Poisson):
        reports = draw_reports(mu, ALPHA[:, None], rng)
    else:
        counts = rng.negative_binomial(np.maximum(mu / -np.log1p(-P_BURST), 1e-300), 1.0 - P_BURST)
        reports = counts + two_sided_geometric(np.broadcast_to(ALPHA[:, None], SIZE), rng)
    shape = [(model.rows.sizes | model.columns.sizes)[a] for a in model.spec.output]
    data = PrivatizedCounts(reports.reshape(shape), ALPHA, mask.reshape(shape), row_offset=offset_of(model))
    return reports, data.matricized(*model.matrix_axes)


def prior_draw(model, rng):
    """Parameters from their prior; offsets multiply the rows."""
    (theta, *others), hypers = draw_factors(model, rng)
    return gibbs.State((theta * offset_of(model)[:, None], *others), hypers, 0, model.initial_parameters())


def statistics(state, reports, model):
    """Functions of parameters and seen reports that do not depend on the order of components."""
    mu, (log_theta, log_phi, *_) = means(model, state.factors), map(np.log, state.factors)
    shape, rate, one, two, *shapes = state.hypers[0][:, 0]
    positive = np.where(mask_of(model), 0, np.maximum(reports, 0))
    log_mu, log_seen = np.log(mu), np.log1p(positive)
    return [
        np.log(shape).mean(), np.log(rate).mean(), one.mean(), two.mean(), (one**2).mean(), (two**2).mean(),
        (one * two).mean(), (np.log(shape) ** 2).mean(), (np.log(shape) * np.log(rate)).mean(),
        log_theta.mean(), log_phi.mean(), log_mu.mean(), (log_theta**2).mean(), log_seen.mean(),
        (DESIGN[:, :1] * log_seen).mean() * one.mean(), (DESIGN[:, :1] * log_theta * one).mean(),
        (DESIGN[:, 1:] * log_theta * two).mean(), (log_seen * log_mu).mean(),
        *(each.mean() for each in shapes), *((each**2).mean() for each in shapes),
        (DESIGN[:, :1] * log_theta * shapes[0]).mean(), (DESIGN[:, 1:] * log_theta**2 * shapes[1]).mean(),
    ]  # fmt: skip


def joint_z(model, restarts, seed=11):
    """(z-scores of the statistics, the bound they must keep), of restarts in the joint law itself."""
    rng, streams, differences, sweep = np.random.default_rng(seed), Streams.of_chain(seed, 0), [], 0
    for _ in range(restarts):
        state = prior_draw(model, rng)
        reports, observations = seen(model, state.factors, rng)
        before, after = statistics(state, reports, model), []
        state = state._replace(sweep=sweep)
        for _ in range(SWEEPS):
            state, _ = gibbs.step(state, Plan(observations, model), model, streams, SERIAL)
            reports, observations = seen(model, state.factors, rng)
            if state.sweep % 4 == 0:
                after.append(statistics(state, reports, model))
        sweep = state.sweep
        differences.append(np.mean(after, axis=0) - before)
    d = np.array(differences)
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts)), bound(d.shape[1], restarts)


@pytest.mark.parametrize("model", [model_with, bursty, tensor, network], ids=["poisson", "bursts", "tensor", "network"])
def test_a_step_leaves_the_joint_law_as_it_is(model, monkeypatch):
    moderate_shapes(monkeypatch)
    z, most = joint_z(model(), 50 if model is network else 40)
    assert np.abs(z).max() < most


def without_exposures(self, scale, count, exposure):
    return RIGHT(self, scale, count, 0.2 * exposure)


def with_counts_of_other_rows(self, scale, count, exposure):
    return RIGHT(self, scale, count[::-1], exposure)


def without_half_of_the_size(self, scale, value):
    return SEEN(self, scale, 0.5 * value)


RIGHT, SEEN = RegressionPrior.given_counts, RegressionPrior.given_entries


@pytest.mark.parametrize("wrong", [without_exposures, with_counts_of_other_rows])
def test_the_joint_law_shows_a_wrong_step(wrong, monkeypatch):
    moderate_shapes(monkeypatch)
    monkeypatch.setattr(RegressionPrior, "given_counts", wrong)
    z, most = joint_z(model_with(), 40)
    assert np.abs(z).max() > most


def with_values_of_other_rows(self, scale, value):
    return SEEN(self, scale, value[::-1])


@pytest.mark.parametrize("wrong", [without_half_of_the_size, with_values_of_other_rows])
def test_the_joint_law_of_a_network_shows_a_wrong_step(wrong, monkeypatch):
    moderate_shapes(monkeypatch)
    monkeypatch.setattr(RegressionPrior, "given_entries", wrong)
    z, most = joint_z(network(), 50)
    assert np.abs(z).max() > most


RUNS, TUNE, DRAWS, THIN = 24, 20, 7, 6


def quantities(state):
    """What does not depend on the order of components: of coefficients, shapes, sizes and rates."""
    mu, (shape, rate, one, two, *shapes) = mu_of(state.factors), state.hypers[0][:, 0]
    sizes = shape / rate * state.factors[1].sum(axis=0)
    return [
        one.sum(), two.sum(), np.ptp(one), one @ sizes, np.abs(two).max(), np.log(shape).sum(), shape.max(),
        np.log(sizes).sum(), mu[0, 0], mu[6, 4], mu[3, 4], mu.sum(), shapes[0].sum(), np.abs(shapes[1]).max(),
    ]  # fmt: skip


def ranks(runs, seed=100):
    """(runs, quantities) how many of a chain's draws lie below the truth."""
    rng, found, model = np.random.default_rng(seed), [], model_with()
    for run in range(runs):
        truth = prior_draw(model, rng)
        _, observations = seen(model, truth.factors, rng)
        streams, plan, kept = Streams.of_chain(seed + run, 0), Plan(observations, model), []
        state = gibbs.init(plan, model, streams, SERIAL)
        for sweep in range(1, TUNE + DRAWS * THIN + 1):
            state, _ = gibbs.step(state, plan, model, streams, SERIAL)
            if sweep > TUNE and sweep % THIN == 0:
                kept.append(quantities(state))
        found.append((np.array(kept) < quantities(truth)).sum(axis=0))
    return np.array(found)


def test_true_coefficients_and_shapes_rank_uniformly(monkeypatch):
    moderate_shapes(monkeypatch)
    p = rank_p_values(ranks(RUNS), DRAWS)
    assert p.min() > FALSE_ALARM / p.size
