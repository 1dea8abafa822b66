"""Dirichlet priors: the joint law of concentration, factor and counts, with exposures that differ."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from countveil.models.factorization import Factor
from countveil.models.priors import Conditional, DirichletPrior, dirichlet
from tests.joint import FALSE_ALARM

SHAPE = 5, 2
EXPOSURE = np.array([[1.0, 0.2], [2.0, 9.0], [7.0, 0.3], [0.0, 0.0], [12.0, 2.0]])
RESTARTS, SWEEPS = 500, 3


def factor_of(prior):
    """(5, 2), of members and components."""
    return Factor("phi", "vk", SHAPE, (1, SHAPE[1]), prior)


def statistics(hypers, value, count):
    """Functions of everything with moderate moments."""
    log_phi, seen = np.log(np.maximum(value, 1e-3)), np.log1p(count)
    log_a = np.log(hypers[0])
    found = [*log_phi.mean(axis=1), *(value[:, 0] ** 2), (log_phi**2).mean(), (seen * log_phi).mean()]
    return [*found, *seen[:3].mean(axis=1), log_a, log_a**2, log_a * log_phi.mean()]


def z_scores(prior, restarts=RESTARTS, seed=1):
    """As for gamma chains."""
    rng, differences = np.random.default_rng(seed), []
    for _ in range(restarts):
        hypers = prior.start(factor_of(prior))
        if prior.concentration is None:
            hypers = np.array([dirichlet.MEDIAN * np.exp(dirichlet.SPREAD * rng.standard_normal())])
        parameters = [hypers[0] if prior.background is None else prior.background, hypers[0]]
        value = np.stack([rng.dirichlet(np.full(SHAPE[0], a)) for a in parameters], axis=1)
        count = rng.poisson(EXPOSURE * value).astype(float)
        before = statistics(hypers, value, count)
        for _ in range(SWEEPS):
            given = Conditional(1.0, value, count, EXPOSURE)
            value, hypers = prior.draw(factor_of(prior), hypers, given, rng)
            count = rng.poisson(EXPOSURE * value).astype(float)
        differences.append(np.array(statistics(hypers, value, count)) - before)
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 1e-12]
    z = d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts))
    return np.abs(z).max(), stats.norm.isf(FALSE_ALARM / 2 / z.size)


@pytest.fixture(autouse=True)
def moderate(monkeypatch):
    monkeypatch.setattr(dirichlet, "MEDIAN", 1.0)
    monkeypatch.setattr(dirichlet, "SPREAD", 0.5)


@pytest.mark.long
@pytest.mark.parametrize("prior", [(None,), (0.8,), (None, 3.0), (0.8, 3.0)])
def test_a_sweep_leaves_the_joint_law_as_it_is(prior):
    z, most = z_scores(DirichletPrior(*prior))
    assert z < most


def test_a_background_like_the_others_turns_it_red(monkeypatch):
    right = DirichletPrior.draw
    monkeypatch.setattr(DirichletPrior, "draw", lambda self, *given: right(replace(self, background=None), *given))
    z, most = z_scores(DirichletPrior(0.8, 3.0))
    assert z > most


def test_a_background_that_counts_for_the_concentration_turns_it_red(monkeypatch):
    right = DirichletPrior.log_density
    monkeypatch.setattr(
        DirichletPrior, "log_density", lambda self, *given: right(replace(self, background=None), *given)
    )
    z, most = z_scores(DirichletPrior(None, 20.0))
    assert z > most


def test_exposures_taken_for_equal_turn_it_red(monkeypatch):
    right = DirichletPrior.draw

    def wrong(self, factor, hypers, given, rng):
        alike = np.full(SHAPE, given.exposures.max())
        return right(self, factor, hypers, given._replace(exposures=alike), rng)

    monkeypatch.setattr(DirichletPrior, "draw", wrong)
    z, most = z_scores(DirichletPrior(0.8))
    assert z > most


def test_totals_left_out_of_the_concentration_turn_it_red(monkeypatch):
    right = DirichletPrior.log_density
    monkeypatch.setattr(DirichletPrior, "log_density", lambda self, count, axes: right(self, 0.5 * count, axes))
    z, most = z_scores(DirichletPrior(None))
    assert z > most


def test_the_law_of_whole_counts_is_dirichlet_multinomial():
    prior, rng = DirichletPrior(None), np.random.default_rng(2)
    count, log_a = rng.poisson(3.0, SHAPE).astype(float), np.log([0.2, 1.0, 4.0])
    found = prior.log_density(count, (0,))(log_a)
    expected = stats.norm.logpdf(log_a, np.log(dirichlet.MEDIAN), dirichlet.SPREAD)
    for k in range(SHAPE[1]):
        n = count[:, k].astype(int)
        expected += [stats.dirichlet_multinomial.logpmf(n, np.full(5, a), n.sum()) for a in np.exp(log_a)]
    np.testing.assert_allclose(np.diff(found), np.diff(expected))


def test_the_background_is_left_out_of_the_law_of_the_concentration():
    count, log_a = np.random.default_rng(5).poisson(3.0, SHAPE).astype(float), np.log([0.2, 1.0, 4.0])
    found = DirichletPrior(None, 2.0).log_density(count, (0,))(log_a)
    np.testing.assert_array_equal(found, DirichletPrior(None).log_density(count[:, 1:], (0,))(log_a))
    assert DirichletPrior(0.3, 2.0).concentrations(2, 0.3).tolist() == [2.0, 0.3]


def test_components_sum_to_one_and_a_known_concentration_stays():
    prior, rng = DirichletPrior(0.3), np.random.default_rng(3)
    factor, start = factor_of(prior), prior.start(factor_of(prior))
    given = Conditional(1.0, np.full(SHAPE, 0.2), np.zeros(SHAPE), EXPOSURE)
    value, hypers = prior.draw(factor, start, given, rng)
    np.testing.assert_allclose(value.sum(axis=0), 1.0)
    assert hypers.tolist() == [0.3]
    assert prior.draw_hypers(factor, start, 1.0, value, rng) is start


def test_offsets_of_its_axis_are_refused_in_words():
    prior = DirichletPrior(None)
    factor = factor_of(prior)
    given = Conditional(np.full((5, 1), 2.0), np.ones(SHAPE), np.ones(SHAPE), EXPOSURE)
    with pytest.raises(ValueError, match="a gamma prior, got offsets for a factor with a Dirichlet prior"):
        prior.draw(factor, prior.start(factor), given, np.random.default_rng(1))


def test_facts_come_back():
    for prior in (DirichletPrior(None), DirichletPrior(0.2), DirichletPrior(0.2, 1.0)):
        assert DirichletPrior.from_facts(prior.facts()) == prior
    hypers = np.arange(6.0).reshape(2, 3, 1)
    axes, shapes = DirichletPrior(None).reported(None, hypers)["_shape"]
    assert (axes, shapes.tolist()) == ((), [[0, 1, 2], [3, 4, 5]])
    assert DirichletPrior(0.2).reported(None, hypers) == {}
    assert DirichletPrior(0.2).reported_rates(hypers) is None
    with pytest.raises(TypeError, match="gammas"):
        DirichletPrior(0.2).gamma(hypers, 1.0)
