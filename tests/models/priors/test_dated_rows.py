"""Rows with dates: the joint law of chain, rates, rows and counts, against the model run forwards."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from countveil.models.factorization import Factor
from countveil.models.priors import Conditional, DatedRowsPrior, dated_rows
from countveil.models.priors.dated_rows import OVER_TIME, Dated, packed
from countveil.models.priors.gamma_chain import packed as packed_chain
from tests.dynamics import draw_chain, draw_value, moderate
from tests.dynamics import draw_tables as draw_tables_slowly
from tests.joint import FALSE_ALARM

pytestmark = pytest.mark.long

STEP = np.array([0, 2, 0, 3, 2])  # nothing is of the second date
SHAPE, STEPS = (STEP.size, 2), (4, 2)
PRIOR = DatedRowsPrior(1.5, 4.0, STEP, STEPS[0])
EXPOSURE = np.array([[1.0, 0.7], [2.0, 0.5], [0.0, 0.0], [0.6, 1.5], [3.0, 3.0]])
SCALE = np.array([[1.0], [0.5], [2.0], [1.0], [1.0]])
RESTARTS, SWEEPS = 300, 4


def factor_of(prior=PRIOR):
    """(5, 2), of row and component."""
    return Factor("theta", "dk", SHAPE, (1, SHAPE[1]), prior)


def moderate_rates(monkeypatch):
    """Priors with moderate moments."""
    moderate(monkeypatch)
    monkeypatch.setattr(dated_rows, "RATE_SHAPE", 4.0)
    monkeypatch.setattr(dated_rows, "LEVEL_SHAPE", 5.0)


def draw_forwards(rng):
    """(hyperparameters by name, rows) from the prior."""
    chain = draw_chain(PRIOR.over_dates, STEPS, rng)
    x = np.maximum(draw_value(chain, STEPS, np.ones(STEPS[0]), rng), dated_rows.SMALLEST)
    usual = dated_rows.RATE_SHAPE * 4.0 / (SHAPE[1] * 1.5)
    level = rng.gamma(dated_rows.LEVEL_SHAPE, usual / dated_rows.LEVEL_SHAPE)
    rate = rng.gamma(dated_rows.RATE_SHAPE, 1.0 / level, SHAPE[0])
    value = np.array([[rng.gamma(x[t, k]) for k in range(SHAPE[1])] for t in STEP])
    value /= rate[:, None] * SCALE
    return Dated(packed_chain(chain), x, rate, level), np.maximum(value, dated_rows.SMALLEST)


def statistics(dated, value, count):
    """Functions of everything with moderate moments."""
    log_x, seen, log_b = np.log(np.maximum(dated.x, 1e-3)), np.log1p(count), np.log(dated.rate)
    log_value = np.log(np.maximum(value, 1e-3))
    chain = PRIOR.over_dates.chain_of(dated.chain, STEPS)
    found = [*log_x.ravel(), (log_x**2).mean(), *log_b, (log_b**2).mean(), *log_value.mean(axis=1)]
    found += [*seen.sum(axis=1), (seen * log_value).mean(), (log_value * log_x[STEP]).mean()]
    found += [(log_value * log_b[:, None]).mean(), (log_x[STEP] * log_b[:, None]).mean()]
    found += [
        (log_x[1:] * log_x[:-1]).mean(),
        np.log(chain.scale),
        chain.transition[0, 1],
        np.log(dated.level),
        (log_b * np.log(dated.level)).mean(),
    ]
    found += [chain.immigration, chain.immigration**2, chain.immigration * log_x.mean()]
    return [*found, dated.x.sum(), *(dated.x[:, 0] / dated.x.sum(axis=1))]


def z_scores(restarts=RESTARTS, seed=1):
    """Differences of statistics after some sweeps with new counts from those at draws of the prior."""
    rng, differences = np.random.default_rng(seed), []
    for _ in range(restarts):
        dated, value = draw_forwards(rng)
        count, hypers = rng.poisson(EXPOSURE * value).astype(float), packed(dated)
        before = statistics(dated, value, count)
        for _ in range(SWEEPS):
            given = Conditional(SCALE, value, count, EXPOSURE)
            value, hypers = PRIOR.draw(factor_of(), hypers, given, rng)
            count = rng.poisson(EXPOSURE * value).astype(float)
        differences.append(np.array(statistics(PRIOR.dated_of(hypers, SHAPE), value, count)) - before)
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 0.0]
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts))


def most(z):
    """How large |z| may be."""
    return stats.norm.isf(FALSE_ALARM / 2 / z.size)


def test_a_sweep_leaves_the_joint_law_as_it_is(monkeypatch):
    moderate_rates(monkeypatch)
    z = z_scores()
    assert np.abs(z).max() < most(z)


def counts_instead_of_tables(right):
    return lambda self, d, s, count, e, rng: (self.by_date(count), right(self, d, s, count, e, rng)[1])


def rates_out_of_the_exposure(right):
    return lambda self, d, *rest: right(self, d._replace(rate=np.ones(SHAPE[0])), *rest)


@pytest.mark.parametrize("fault", [counts_instead_of_tables, rates_out_of_the_exposure])
def test_the_joint_law_shows_planted_faults_of_tables(fault, monkeypatch):
    moderate_rates(monkeypatch)
    monkeypatch.setattr(DatedRowsPrior, "tables", fault(DatedRowsPrior.tables))
    z = z_scores()
    assert np.abs(z).max() > most(z)


def z_of_rescaling(monkeypatch, rounds=800):
    """Differences of statistics after one number for x, b and m alone, with the rows summed out, from the prior's."""
    moderate_rates(monkeypatch)
    rng, differences, scales = np.random.default_rng(3), [], SCALE[:, 0]
    for _ in range(rounds):
        dated, value = draw_forwards(rng)
        count = rng.poisson(EXPOSURE * value).astype(float)
        new = PRIOR.rescaled(dated, scales, count, EXPOSURE, rng)
        differences.append(np.subtract(*(of_scales(each, count) for each in (new, dated))))
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 0.0]
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(rounds))


def of_scales(dated, count):
    """Functions of what one number multiplies."""
    log_x, log_b = np.log(np.maximum(dated.x, 1e-3)).mean(), np.log(dated.rate).mean()
    log_m, log_c = np.log(PRIOR.over_dates.chain_of(dated.chain, STEPS).scale), np.log(dated.level)
    own, seen = [log_x, log_b, log_m, log_c], np.log1p(count.sum())
    return np.array([*own, *np.square(own), log_b * log_c, log_m * log_c, log_x * log_b, *(seen * np.array(own))])


def test_rescaling_leaves_the_joint_law_as_it_is(monkeypatch):
    z = z_of_rescaling(monkeypatch)
    assert np.abs(z).max() < most(z)


@pytest.mark.parametrize("fault", ["rates that stay", "counts that are forgotten", "a prior of another size"])
def test_rescaling_shows_planted_faults(fault, monkeypatch):
    right, mass = DatedRowsPrior.rescaled, dated_rows.log_mass_of_rows
    if fault == "rates that stay":
        wrong = lambda self, d, *rest: right(self, d, *rest)._replace(rate=d.rate)  # noqa: E731
        monkeypatch.setattr(DatedRowsPrior, "rescaled", wrong)
    elif fault == "counts that are forgotten":
        monkeypatch.setattr(dated_rows, "log_mass_of_rows", lambda count, *rest: mass(0.0 * count, *rest))
    else:
        wrong = lambda self, *rest: right(replace(self, mean=self.mean * 2.0), *rest)  # noqa: E731
        monkeypatch.setattr(DatedRowsPrior, "rescaled", wrong)
    z = z_of_rescaling(monkeypatch)
    assert np.abs(z).max() > most(z)


def test_the_joint_law_shows_rates_that_forget_the_chain(monkeypatch):
    moderate_rates(monkeypatch)
    right = DatedRowsPrior.draw_rates
    monkeypatch.setattr(
        DatedRowsPrior, "draw_rates", lambda self, d, *rest: right(self, d._replace(x=d.x * 0.5), *rest)
    )
    z = z_scores()
    assert np.abs(z).max() > most(z)


def test_tables_are_those_of_every_row_seated_customer_by_customer():
    rng, rounds = np.random.default_rng(2), 1500
    dated, _ = draw_forwards(rng)
    dated = dated._replace(x=np.full(STEPS, 0.7))
    count = np.array([[4.0, 0.0], [2.0, 3.0], [6.0, 1.0], [0.0, 0.0], [5.0, 2.0]])
    found, slow = np.zeros((2, rounds, *STEPS))
    for i in range(rounds):
        found[i], lost = PRIOR.tables(dated, SCALE[:, 0], count, EXPOSURE, rng)
        for d, t in enumerate(STEP):
            slow[i, t] += [draw_tables_slowly(int(n), 0.7, rng) for n in count[d]]
    spread = np.sqrt((found.var(axis=0) + slow.var(axis=0)) / rounds) + 1e-12
    assert (np.abs(found.mean(axis=0) - slow.mean(axis=0)) / spread).max() < stats.norm.isf(FALSE_ALARM / 16)
    wanted = np.zeros(STEPS)
    for d, t in enumerate(STEP):
        wanted[t] += np.log(1.0 + EXPOSURE[d] / (dated.rate[d] * SCALE[d, 0]))
    np.testing.assert_allclose(lost, wanted)
    assert (lost[1] == 0.0).all()


def test_expected_shares_are_those_of_rows():
    rng = np.random.default_rng(3)
    dated, _ = draw_forwards(rng)
    x = PRIOR.reported(factor_of(), packed(dated)[None, None])[OVER_TIME][1][0, 0]
    shares, zero = x / x.sum(axis=1, keepdims=True), np.zeros(SHAPE)
    drawn = np.array([PRIOR.draw_rows(dated, SCALE[:, 0], zero, zero, rng) for _ in range(4000)])
    own = drawn / drawn.sum(axis=2, keepdims=True)
    z = (own.mean(axis=0) - shares[STEP]) / (own.std(axis=0) / np.sqrt(4000) + 1e-9)
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 20)


def test_hyperparameters_by_name_are_those_that_were_packed():
    dated, value = draw_forwards(np.random.default_rng(4))
    for one, other in zip(dated, PRIOR.dated_of(packed(dated), SHAPE), strict=True):
        np.testing.assert_array_equal(one, other)
    start = PRIOR.dated_of(PRIOR.start(factor_of()), SHAPE)
    assert (start.x == 1.5).all()
    np.testing.assert_allclose(start.x.sum(axis=1)[STEP] / start.rate, 4.0)
    assert PRIOR.draw_hypers(factor_of(), packed(dated), SCALE, value, np.random.default_rng(0)).size


def test_facts_come_back_without_the_dates_of_rows():
    found = DatedRowsPrior.from_facts(PRIOR.facts())
    assert (found.mean, found.size, found.n_steps) == (1.5, 4.0, 4)
    assert PRIOR.facts()["dates"] != replace(PRIOR, step=STEP[::-1].copy()).facts()["dates"]
    with pytest.raises(TypeError, match="independent"):
        PRIOR.gamma(np.ones(3), 1.0)
    assert PRIOR.reported_rates(np.ones((1, 1, 3))) is None
