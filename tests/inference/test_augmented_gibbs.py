"""The augmented sampler keeps the joint law of model, data and noise rates, and has the collapsed one's posterior."""

import numpy as np
import pytest

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import augmented_gibbs, gibbs, scoring
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from tests.joint import (
    FALSE_ALARM,
    SERIAL,
    OneEntryFewer,
    arrays_of,
    assert_same_bits,
    batch_error,
    bound,
    draw_factors,
    draw_noise_rates,
    draw_reports,
    mu_of,
    planted,
    rank_p_values,
    small_model,
    truncated_logpmf,
    with_priors,
)

pytestmark = pytest.mark.long

SIZE = (6, 5)
ALPHA = np.array([0.0, 0.2, 0.5, 0.5, 0.7, 0.9])
MASK = np.zeros(SIZE, dtype=bool)
MASK[[0, 1, 3, 5], [2, 0, 4, 1]] = True
SWEEPS = 8


def statistics(state, reports, mask):
    """Functions of parameters, noise rates and seen reports that do not depend on the order of components."""
    mu, seen = mu_of(state.factors), np.where(mask, 0, np.maximum(reports, 0))
    log_mu, (log_theta, log_phi) = np.log(mu), map(np.log, state.factors)
    log_noise = np.where(mask[..., None], 0.0, np.log(np.maximum(state.noise, 1e-300)))[1:]
    return [
        *(f.mean() for f in (log_theta, log_phi, log_theta**2, log_phi**2, log_mu, log_mu**2, np.log1p(mu))),
        *(log_mu[0].mean(), log_mu[5].mean(), *(np.log(rate).mean() for rate in state.hypers)),
        *((np.log1p(seen) * log_mu).mean(), ((seen > 0) * log_mu)[5].mean()),
        *log_noise.mean(axis=(0, 1)),
        *(log_noise[..., 0] * log_mu[1:]).mean(keepdims=True)[0],
        (log_noise[..., 1] * np.log1p(seen)[1:]).mean(),
        (log_noise[4, :, 0] * log_noise[4, :, 1]).mean(),
    ]


def joint_z(model, mask, restarts=100, step=augmented_gibbs.step, seed=11):
    """(z-scores of the statistics, the bound they must keep), as for the collapsed sampler.

    Every restart begins in the joint law itself; a step, then statistics, then new reports and noise rates.
    """
    rng, streams = np.random.default_rng(seed), Streams.of_chain(seed, 0)
    differences, sweep = [], 0
    for _ in range(restarts):
        state = augmented_gibbs.State(*draw_factors(model, rng), sweep, np.zeros((*SIZE, 2)))
        found = []
        for _ in range(SWEEPS):
            mu = mu_of(state.factors)
            reports = draw_reports(mu, ALPHA[:, None], rng)
            state = state._replace(noise=draw_noise_rates(reports, mu, ALPHA[:, None], rng))
            if not found:
                found.append(statistics(state, reports, mask))
            observations = PrivatizedCounts(reports, ALPHA, mask)
            for _ in range(2):
                state, _ = step(state, Plan(observations, model), model, streams, SERIAL)
            found.append(statistics(state, reports, mask))
        sweep = state.sweep
        differences.append(np.mean(found[1:], axis=0) - found[0])
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 0.0]
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts)), bound(d.shape[1], restarts)


@pytest.mark.parametrize(
    ("learned", "masked"), [(False, False), (True, False), (True, True)], ids=["fixed", "learned", "masked"]
)
def test_a_step_leaves_the_joint_law_as_it_is(learned, masked):
    z, most = joint_z(small_model(SIZE, learned=learned), MASK if masked else np.zeros(SIZE, dtype=bool))
    assert len(z) == (18 if learned else 16)
    assert np.abs(z).max() < most


def noise_rates_on_the_printed_scale(state, *rest):
    new, info = augmented_gibbs.step(state, *rest)
    scale = ((1.0 - ALPHA) / np.maximum(ALPHA, 0.1))[:, None, None]
    return new._replace(noise=new.noise * scale), info


def noise_rates_swapped(state, *rest):
    return augmented_gibbs.step(state._replace(noise=state.noise[..., ::-1].copy()), *rest)


def noise_as_if_weaker(state, plan, *rest):
    plan.data.level_d = plan.data.level_d**1.3
    return augmented_gibbs.step(state, plan, *rest)


def gamma_shape_too_large(state, plan, model, *rest):
    return augmented_gibbs.step(state, plan, small_model(SIZE, shape=1.8), *rest)


def gamma_rate_too_large(state, *rest):
    theta_rate, phi_rate = state.hypers
    new, info = augmented_gibbs.step(state._replace(hypers=(theta_rate, 1.5 * phi_rate)), *rest)
    return new._replace(hypers=state.hypers), info


def rates_drawn_for_one_entry_fewer(state, plan, model, *rest):
    wrong = with_priors(model, lambda prior: OneEntryFewer(**vars(prior)))
    return augmented_gibbs.step(state, plan, wrong, *rest)


@pytest.mark.parametrize(
    ("learned", "step", "restarts"),
    [
        (False, noise_rates_on_the_printed_scale, 20),
        (False, noise_rates_swapped, 40),
        (False, noise_as_if_weaker, 25),
        (False, gamma_shape_too_large, 100),
        (False, gamma_rate_too_large, 50),
        (True, rates_drawn_for_one_entry_fewer, 100),
    ],
)
def test_the_joint_law_shows_a_planted_fault(learned, step, restarts):
    model = small_model(SIZE, learned=learned)
    z, most = joint_z(model, np.zeros(SIZE, dtype=bool), restarts, step)
    assert np.abs(z).max() > most


def rates_of(algorithm, observations, model, sweeps, chain, thin=4):
    """(S, D V) rates after every thin-th sweep, a fifth of them thrown away first."""
    streams = Streams.of_chain(31, chain)
    plan = Plan(observations, model)
    state, kept = algorithm.init(plan, model, streams, SERIAL), []
    for sweep in range(sweeps + sweeps // 5):
        state, _ = algorithm.step(state, plan, model, streams, SERIAL)
        if sweep >= sweeps // 5 and sweep % thin == 0:
            kept.append(mu_of(state.factors).ravel())
    return np.array(kept)


def pooled(traces):
    """Mean and standard error over chains."""
    errors = [batch_error(trace) for trace in traces]
    return np.mean(traces, axis=(0, 1)), np.sqrt(np.square(errors).sum(axis=0)) / len(traces)


def test_the_collapsed_sampler_agrees_on_every_rate():
    """Under weak, middling and strong noise, in rows of the same data."""
    rng, model, chains = np.random.default_rng(23), small_model((30, 25), shape=0.8, rate=0.7), 2
    theta = np.kron(np.eye(2), np.full((15, 1), 4.0)) + 0.2
    phi = np.kron(np.eye(2), np.full((13, 1), 3.0))[:25] + 0.2
    alpha = np.resize([0.3, 0.7, 0.9], 30)
    observations = PrivatizedCounts(draw_reports(theta @ phi.T, alpha[:, None], rng), alpha)
    traces = [
        np.array([rates_of(algorithm, observations, model, 800, chain) for chain in range(chains)])
        for algorithm in (gibbs, augmented_gibbs)
    ]
    centre = traces[0].mean(axis=(0, 1))
    worst = bound(2 * centre.size, 40 * chains)
    for function in (lambda mu: mu, lambda mu: (mu - centre) ** 2):
        means, errors = zip(*(pooled(function(mu)) for mu in traces), strict=True)
        assert np.abs((means[0] - means[1]) / np.hypot(*errors)).max() < worst
    sd = traces[0].std(axis=(0, 1))
    assert np.median(errors[0] / sd**2) < 0.1  # of the variances: the comparison has power


def quantities(factors, observations, model):
    """Functions of the parameters that do not depend on the order of components; two are of unseen cells."""
    mu, score = mu_of(factors), scoring.log_likelihood(factors, observations, model, SERIAL)
    return [mu[0, 0], mu[3, 2], mu[5, 4], mu[1, 0], mu[5, 1], mu.sum(), mu.max(), score]


def ranks(level, runs, draws=7, tune=40, thin=10, seed=100):
    """(runs, quantities) how many draws lie below the truth, by a chain told these noise levels."""
    rng, model, found = np.random.default_rng(seed), small_model(SIZE, shape=1.0, rate=0.6), []
    for run in range(runs):
        truth, _ = draw_factors(model, rng)
        reports = draw_reports(mu_of(truth), ALPHA[:, None], rng)
        observations, streams = PrivatizedCounts(reports, level, MASK), Streams.of_chain(seed + run, 0)
        plan, kept = Plan(observations, model), []
        state = augmented_gibbs.init(plan, model, streams, SERIAL)
        for sweep in range(tune + draws * thin):
            state, _ = augmented_gibbs.step(state, plan, model, streams, SERIAL)
            if sweep >= tune and sweep % thin == 0:
                kept.append(quantities(state.factors, observations, model))
        assert len(kept) == draws
        found.append((np.array(kept) < quantities(truth, observations, model)).sum(axis=0))
    return np.array(found)


def test_true_values_rank_uniformly_among_posterior_draws():
    p = rank_p_values(ranks(ALPHA, 28), 7)
    assert p.min() > FALSE_ALARM / p.size


def test_calibration_shows_a_wrong_noise_level():
    p = rank_p_values(ranks(0.3 * ALPHA, 20), 7)
    assert p.min() < FALSE_ALARM / p.size


def test_the_start_draws_noise_rates_from_their_prior():
    observations = PrivatizedCounts(np.zeros((400, 300), dtype=int), np.repeat([0.0, 0.5, 0.8, 0.9], 100))
    state = augmented_gibbs.init(
        Plan(observations, small_model((400, 300))), small_model((400, 300)), Streams.of_chain(1, 0), SERIAL
    )
    assert state.noise.shape == (400, 300, 2)
    assert (state.noise[:100] == 0.0).all()
    means = state.noise[100:].reshape(3, -1).mean(axis=1)
    np.testing.assert_allclose(means, [1.0, 4.0, 9.0], rtol=5 / np.sqrt(60_000))


def test_a_step_leaves_the_old_state_alone():
    _, _, observations, _ = planted(30, 20, 2, 0.5, seed=3)
    streams, model = Streams.of_chain(1, 0), small_model((30, 20), learned=True)
    plan = Plan(observations, model)
    state = augmented_gibbs.init(plan, model, streams, SERIAL)
    before = tuple(arrays_of(state))
    after, info = augmented_gibbs.step(state, plan, model, streams, SERIAL)
    assert_same_bits(before, state)
    assert (state.sweep, after.sweep) == (0, 1)
    assert (after.noise > 0.0).all()
    assert info.total_rate == pytest.approx(mu_of(after.factors).sum(), rel=1e-12)


def test_log_likelihood_is_that_of_the_reports_seen():
    reports = np.abs(np.random.default_rng(6).integers(-2, 6, SIZE))
    observations = PrivatizedCounts(reports, ALPHA, MASK)
    model = small_model(SIZE)
    state = augmented_gibbs.init(Plan(observations, model), model, Streams.of_chain(1, 0), SERIAL)
    cells = truncated_logpmf(reports, mu_of(state.factors), ALPHA[:, None])
    found = scoring.log_likelihood(state.factors, observations, model, SERIAL)
    assert found == pytest.approx(cells[~MASK].sum(), rel=1e-12)


def test_exact_counts_have_no_noise():
    observations = ExactCounts(np.random.default_rng(4).poisson(3.0, (20, 10)))
    model, streams = small_model((20, 10)), Streams.of_chain(2, 0)
    plan = Plan(observations, model)
    state = augmented_gibbs.init(plan, model, streams, SERIAL)
    for _ in range(3):
        state, _ = augmented_gibbs.step(state, plan, model, streams, SERIAL)
    assert (state.noise == 0.0).all()


@pytest.mark.parametrize("threads", [2, 5])
def test_the_engine_does_not_change_a_bit(threads):
    _, _, observations, _ = planted(600, 50, 3, 0.5, seed=4)
    streams, model = Streams.of_chain(5, 0), small_model((600, 50), 3, learned=True)
    plan = Plan(observations, model)
    start, finals = augmented_gibbs.init(plan, model, streams, SERIAL), []
    with ThreadEngine(threads) as pool:
        for engine in (SERIAL, pool):
            state = start
            for _ in range(3):
                state, info = augmented_gibbs.step(state, plan, model, streams, engine)
            score = scoring.log_likelihood(state.factors, observations, model, engine)
            finals.append((*state, info.total_rate, score))
    assert_same_bits(*finals)
