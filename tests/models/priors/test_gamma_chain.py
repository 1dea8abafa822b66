"""Gamma chains: the joint law of hyperparameters, factor and counts, against the chain run forwards."""

import numpy as np
import pytest
from scipy import stats

from countveil.models.factorization import Factor
from countveil.models.priors import Conditional, GammaChainPrior, gamma_chain
from countveil.models.priors.gamma_chain import packed
from tests.dynamics import draw_chain, draw_value, moderate
from tests.joint import FALSE_ALARM

SHAPE = 4, 3
PRIORS = {
    "steady": GammaChainPrior(1.5, True),
    "not steady": GammaChainPrior(1.5, False),
    "season": GammaChainPrior(1.5, False, 3),
}
EVERY = [*PRIORS.values(), GammaChainPrior(1.5, True, 3)]
EXPOSURE = np.array([[1.0, 0.7, 0.4], [2.0, 0.5, 0.3], [0.0, 0.0, 0.0], [0.6, 0.6, 1.5]])
SCALE = np.array([[1.0], [0.5], [2.0], [1.0]])  # reciprocals of known offsets
OFFSET = 1.0 / SCALE[:, 0]
RESTARTS, SWEEPS = 150, 4


def factor_of(prior):
    """(4, 3), of time and component."""
    return Factor("activity", "tk", SHAPE, (1, SHAPE[1]), prior)


def statistics(prior, hypers, value, count):
    """Functions of everything with moderate moments, each entry on its own scale."""
    chain, log_x, seen = prior.chain_of(hypers, SHAPE), np.log(np.maximum(value, 1e-3)), np.log1p(count)
    total = np.log(value.sum(axis=1) + 0.1)
    found = [*log_x.mean(axis=1), (log_x**2).mean(), *total, *seen.mean(axis=1), (seen * log_x).mean()]
    found += [(log_x[1:] * log_x[:-1]).mean(), (total[1:] * total[:-1]).mean()]
    found += [np.log(chain.scale), np.log(chain.scale) ** 2, np.log(chain.stay), np.log(chain.rate)]
    found += [np.log(np.maximum(chain.sizes, 1e-3)).mean(), chain.sizes.sum(), chain.sizes[0]]
    entering = chain.immigration
    found += [
        entering,
        entering**2,
        entering * log_x[1:].mean(),
        entering * seen.mean(),
        entering * np.log(chain.scale),
    ]
    found += [np.diagonal(chain.transition).mean(), chain.transition[0, 1], (chain.transition**2).sum()]
    found += [(chain.transition[:, 0] * log_x[:-1].mean()).max(), chain.transition[0, 0] * seen[-1, 0]]
    if not prior.steady:
        volume = np.log(np.maximum(chain.volume, 1e-3))
        found += [*volume, (volume**2).mean(), np.log(chain.steadiness), np.log(chain.steadiness) ** 2]
        found += [volume @ total, np.log(chain.steadiness) * (volume**2).mean()]
    if prior.season is not None:
        seasons, log_c = np.log(np.maximum(chain.seasons, 1e-3)), np.log(chain.concentration)
        found += [*seasons.ravel(), (seasons**2).mean(), log_c, log_c**2, log_c * (seasons**2).mean()]
        found += [*(seasons * log_x[:3]).mean(axis=1), *(seasons * seen[:3]).mean(axis=1)]
        found += [seasons.mean() * np.log(chain.scale), (seasons[0] * log_x[3]).mean()]
    return found


def z_scores(prior, restarts=RESTARTS, seed=1, scale=SCALE):
    """Differences of statistics after some sweeps with new counts from those at draws of the prior."""
    rng, factor, differences = np.random.default_rng(seed), factor_of(prior), []
    offset = gamma_chain.offsets(scale, SHAPE[0])
    for _ in range(restarts):
        chain = draw_chain(prior, SHAPE, rng)
        hypers, value = packed(chain), draw_value(chain, SHAPE, offset, rng)
        count = rng.poisson(EXPOSURE * value).astype(float)
        before = statistics(prior, hypers, value, count)
        for _ in range(SWEEPS):
            given = Conditional(scale, value, count, EXPOSURE)
            value, hypers = prior.draw(factor, hypers, given, rng)
            count = rng.poisson(EXPOSURE * value).astype(float)
        differences.append(np.array(statistics(prior, hypers, value, count)) - before)
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 0.0]  # counts that are always zero
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts))


def most(z):
    """How large |z| may be."""
    return stats.norm.isf(FALSE_ALARM / 2 / z.size)


@pytest.mark.long
@pytest.mark.parametrize("name", PRIORS)
def test_a_sweep_leaves_the_joint_law_as_it_is(name, monkeypatch):
    moderate(monkeypatch)
    z = z_scores(PRIORS[name])
    assert np.abs(z).max() < most(z)


def next_tables_left_out(monkeypatch):
    right = gamma_chain.draw_tables

    def wrong(chain, given, rng):
        tables = right(chain, given, rng)
        return tables._replace(totals=given.counts)

    monkeypatch.setattr(gamma_chain, "draw_tables", wrong)


def exposures_as_if_equal(monkeypatch):
    right = gamma_chain.draw_tables

    def wrong(chain, given, rng):
        most = given.exposure.max(axis=1, keepdims=True)
        return right(chain, given._replace(exposure=np.broadcast_to(most, SHAPE)), rng)

    monkeypatch.setattr(gamma_chain, "draw_tables", wrong)


def later_steps_out_of_the_rate(monkeypatch):
    right = gamma_chain.draw_tables

    def wrong(chain, given, rng):
        return right(chain, given, rng)._replace(rate=1.0 + given.exposure.max(axis=1))

    monkeypatch.setattr(gamma_chain, "draw_tables", wrong)


def first_tables_left_out(monkeypatch):
    right = gamma_chain.draw_transitions

    def wrong(chain, tables, rng):
        return right(chain, tables._replace(first=np.zeros_like(tables.first)), rng)

    monkeypatch.setattr(gamma_chain, "draw_transitions", wrong)


def immigration_of_all_steps(monkeypatch):
    right = gamma_chain.draw_immigration

    def wrong(chain, tables, rng):
        return right(chain, tables._replace(later_zeta=tables.later_zeta + 3.0 * tables.zeta), rng)

    monkeypatch.setattr(gamma_chain, "draw_immigration", wrong)


def sizes_off_the_diagonal_alone(monkeypatch):
    right = gamma_chain.dirichlet_of
    monkeypatch.setattr(gamma_chain, "dirichlet_of", lambda sizes, stay: right(sizes, sizes[0]))


def slices_without_a_jacobian(monkeypatch):
    right = gamma_chain.log_chain
    monkeypatch.setattr(
        gamma_chain, "log_chain", lambda x, *given: right(x, *given) + x.size * np.log(given[-1].scale) / 3
    )


FAULTS = [
    next_tables_left_out, exposures_as_if_equal, later_steps_out_of_the_rate, first_tables_left_out,
    sizes_off_the_diagonal_alone, immigration_of_all_steps, slices_without_a_jacobian,
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("plant", FAULTS)
def test_the_joint_law_shows_a_planted_fault(plant, monkeypatch):
    moderate(monkeypatch)
    plant(monkeypatch)
    z = z_scores(PRIORS["steady"])
    assert np.abs(z).max() > most(z)


def test_volumes_with_the_wrong_steadiness_turn_the_joint_law_red(monkeypatch):
    moderate(monkeypatch)
    right = gamma_chain.log_steadiness
    monkeypatch.setattr(gamma_chain, "log_steadiness", lambda s, g: right(s, g) + 2.0 * s)
    z = z_scores(PRIORS["not steady"], restarts=120)
    assert np.abs(z).max() > most(z)


def counts_of_the_season_before(monkeypatch):
    right = gamma_chain.draw_seasons

    def wrong(chain, theta, count, exposure, rng):
        return right(chain, theta, np.roll(count, 1, axis=0), exposure, rng)

    monkeypatch.setattr(gamma_chain, "draw_seasons", wrong)


@pytest.mark.long
def test_the_joint_law_shows_counts_of_the_season_before(monkeypatch):
    moderate(monkeypatch)
    counts_of_the_season_before(monkeypatch)
    z = z_scores(PRIORS["season"], restarts=80)
    assert np.abs(z).max() > most(z)


def z_scores_of_moves(restarts=1000, moves=20):
    """Differences of statistics of seasons and x after some moves of seasons given x from those of the prior."""
    prior, rng, differences = PRIORS["season"], np.random.default_rng(9), []
    cut = np.zeros(SHAPE, dtype=bool)
    for _ in range(restarts):
        chain = draw_chain(prior, SHAPE, rng)._replace(concentration=4.0)
        chain = chain._replace(seasons=rng.gamma(4.0, 0.25, chain.seasons.shape))
        value = draw_value(chain, SHAPE, OFFSET, rng)
        log_x, before = np.log(np.maximum(value[:3], 1e-3)), np.log(chain.seasons)
        for _ in range(moves):
            chain = gamma_chain.draw_seasons_given_value(chain, value, cut, OFFSET, rng)
        after = np.log(chain.seasons)
        each = [after - before, after**2 - before**2, (after - before) * log_x]
        differences.append(np.concatenate([np.ravel(one) for one in each]))
    d = np.array(differences)
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts))


def shapes_of_other_components(monkeypatch):
    right = gamma_chain.move_seasons

    def wrong(theta, cut, pi, *others):
        right(theta, cut, np.roll(pi, 1, axis=0), *others)

    monkeypatch.setattr(gamma_chain, "move_seasons", wrong)


def seasons_without_their_prior(monkeypatch):
    right = gamma_chain.move_seasons
    monkeypatch.setattr(gamma_chain, "move_seasons", lambda *given: right(*given[:5], 0.0, *given[6:]))


def test_moves_of_seasons_leave_their_law_as_it_is(monkeypatch):
    moderate(monkeypatch)
    z = z_scores_of_moves()
    assert np.abs(z).max() < most(z)


@pytest.mark.parametrize("plant", [shapes_of_other_components, seasons_without_their_prior])
def test_moves_of_seasons_show_a_planted_fault(plant, monkeypatch):
    moderate(monkeypatch)
    plant(monkeypatch)
    z = z_scores_of_moves()
    assert np.abs(z).max() > most(z)


def test_hyperparameters_by_name_are_those_that_were_packed():
    rng = np.random.default_rng(4)
    for prior in EVERY:
        chain = draw_chain(prior, SHAPE, rng)
        for one, other in zip(chain, prior.chain_of(packed(chain), SHAPE), strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_array_equal(one, other)


def test_a_chain_starts_at_its_scale_with_components_that_stay():
    for prior in EVERY:
        chain = prior.chain_of(prior.start(factor_of(prior)), SHAPE)
        np.testing.assert_allclose(chain.transition.sum(axis=0), 1.0)
        assert (np.diagonal(chain.transition) > 0.8).all()
        assert (chain.scale, chain.volume.size) == (1.5, 1 if prior.steady else SHAPE[0])


def test_misses_of_beta_variables_keep_their_digits():
    rng = np.random.default_rng(5)
    a, b = np.full(4000, 3.0), np.full(4000, 0.7)
    found = gamma_chain.minus_log_one_minus_beta(a, b, rng)
    assert stats.kstest(-np.expm1(-found), stats.beta(3.0, 0.7).cdf).pvalue > FALSE_ALARM
    tiny = gamma_chain.minus_log_one_minus_beta(a, np.full(4000, 1e-6), rng)
    assert np.isfinite(tiny).all()
    assert np.median(tiny) > 1e4  # -log(1 - q) of a q that is one in floating point


def test_hyperparameters_are_reported_by_name_and_axis():
    rng = np.random.default_rng(6)
    for prior in EVERY:
        chains = [draw_chain(prior, SHAPE, rng) for _ in range(3)]
        found = prior.reported(factor_of(prior), np.array([[packed(chain) for chain in chains]]))
        axes = {name: each for name, (each, _) in found.items()}
        wanted = {"transition": (1, 1), "importance": (1,), "immigration": (), "volume": () if prior.steady else (0,)}
        wanted |= {} if prior.steady else {"usual_volume": (), "steadiness": ()}
        assert axes == wanted | ({} if prior.season is None else {"season": (0, 1)})
        for s, chain in enumerate(chains):
            np.testing.assert_array_equal(found["transition"][1][0, s], chain.transition)
            np.testing.assert_array_equal(found["importance"][1][0, s], chain.sizes)
            assert found["immigration"][1][0, s] == chain.immigration
            np.testing.assert_allclose(found["volume"][1][0, s], np.squeeze(chain.scale * chain.volume))
            if not prior.steady:
                assert found["steadiness"][1][0, s] == chain.steadiness
            if prior.season is not None:
                np.testing.assert_array_equal(found["season"][1][0, s], chain.seasons[[0, 1, 2, 0]])


def test_facts_come_back():
    for prior in EVERY:
        assert GammaChainPrior.from_facts(prior.facts()) == prior
    with pytest.raises(TypeError, match="independent"):
        prior.gamma(np.ones(3), 1.0)
    assert prior.reported_rates(np.ones((1, 1, 3))) is None
    assert not prior.independent
    assert prior.holds_size


def test_an_entry_that_was_cut_stands_for_all_below_it():
    sizes, m = np.array([0.02, 0.5]), 3.0
    x, cut = np.array([[gamma_chain.SMALLEST * m, 0.7]]), np.array([[True, False]])
    chain = gamma_chain.Chain(np.eye(2), sizes, 1.0, 1.0, m, np.ones(1), 1.0)
    found = gamma_chain.log_chain(x, cut, np.empty((0, 2)), chain)
    below = stats.gamma(0.02, scale=m).logcdf(x[0, 0]) + stats.gamma(0.5, scale=m).logpdf(0.7)
    assert found == pytest.approx(below + np.log(0.7), abs=1e-9)


def test_the_scale_is_told_which_entries_were_cut(monkeypatch):
    seen = []
    monkeypatch.setattr(
        GammaChainPrior, "draw_scale_given_value", lambda self, chain, x, cut, *others: seen.append((x, cut)) or chain
    )
    prior = GammaChainPrior(50.0, steady=True)
    factor, nothing = factor_of(prior), np.zeros(SHAPE)
    floor = np.full(SHAPE, gamma_chain.SMALLEST)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        prior.draw(factor, prior.start(factor), Conditional(1.0, floor, nothing, nothing + 1.0), rng)
    x, cut = (np.concatenate(each) for each in zip(*seen, strict=True))
    assert cut.any()
    assert not cut.all()
    assert x[~cut].min() > x[cut].max()


BEFORE = {  # by the version that had no seasons
    "steady": [
        2.458285306891938, 0.22512395051198106, 5.2596505440666705, 34.532693020689834, 16.140360643249053,
        0.43975249615829615,
    ],
    "not steady": [
        3.67027425275799, 2.896057076734873, 15.185683213040821, 38.1940733424496, 20.044122907996954,
        0.46265764374302243,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", BEFORE)
def test_without_seasons_draws_are_those_of_the_published_model(name, monkeypatch):
    """With next to no immigration, which is not drawn."""
    monkeypatch.setattr(gamma_chain, "draw_immigration", lambda chain, *_: chain)
    prior, rng = PRIORS[name], np.random.default_rng(8)
    value = np.ones(SHAPE)
    hypers = packed(prior.chain_of(prior.start(factor_of(prior)), SHAPE)._replace(immigration=1e-3))
    count = np.array([[3.0, 0.0, 7.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [4.0, 1.0, 9.0]])
    for _ in range(2):
        given = Conditional(SCALE, value, count, EXPOSURE)
        value, hypers = prior.draw(factor_of(prior), hypers, given, rng)
    found = [*value[0], value.sum(), hypers.sum() - 1e-3, rng.random()]
    np.testing.assert_allclose(found, BEFORE[name], rtol=1e-9)


def test_a_chain_with_a_season_begins_at_that_of_its_start_and_smooth():
    season = np.array([[0.4, 1.3], [1.6, 0.7], [1.0, 1.0]])
    value = np.array([5.0, 2.0]) * np.tile(season, (4, 1)) * np.exp(0.3 * np.sin(np.arange(12.0) // 3))[:, None]
    prior = GammaChainPrior(1.5, True, 3)
    begun, hypers = prior.begin(Factor("activity", "tk", (12, 2), (1, 2), prior), value, np.ones(12, dtype=bool))
    chain = prior.chain_of(hypers, (12, 2))
    np.testing.assert_allclose(chain.seasons, (season + gamma_chain.SHRINKAGE) / (1.0 + gamma_chain.SHRINKAGE))
    np.testing.assert_allclose(begun, value.mean(axis=0) * np.tile(chain.seasons, (4, 1)))
    assert chain.scale == gamma_chain.SMOOTH * 1.5
    plain = GammaChainPrior(1.5, True)
    begun, hypers = plain.begin(factor_of(plain), value, np.ones(12, dtype=bool))
    assert begun is value
    np.testing.assert_array_equal(hypers, plain.start(factor_of(plain)))


def test_a_season_begins_without_the_steps_that_nobody_saw():
    season = np.array([[0.4], [1.6], [1.0]])
    seen = np.arange(12) != 4
    value = np.where(seen[:, None], 5.0 * np.tile(season, (4, 1)), 1e-6)
    prior = GammaChainPrior(1.5, True, 3)
    factor = Factor("activity", "tk", (12, 1), (1, 1), prior)
    begun, hypers = prior.begin(factor, value, seen)
    seasons, level = prior.chain_of(hypers, (12, 1)).seasons, value[seen].mean()
    wanted = 5.0 * season / level + gamma_chain.SHRINKAGE
    np.testing.assert_allclose(seasons, wanted / wanted.mean())
    np.testing.assert_allclose(begun, level * np.tile(seasons, (4, 1)))
    empty, hypers = prior.begin(factor, np.zeros((12, 1)), seen)
    assert (empty > 0.0).all()
    np.testing.assert_allclose(prior.chain_of(hypers, (12, 1)).seasons, 1.0)
    never = np.arange(12) % 3 != 1
    seasons = prior.chain_of(prior.begin(factor, value, never)[1], (12, 1)).seasons
    np.testing.assert_allclose(seasons[:, 0] / seasons[1], (np.array([4.0, 7.0, 10.0]) / 7.0 + 0.2) / 1.2)
