"""Exposures by cell, in every method: the joint law, recovery, offsets that say the same, and hidden counts."""

import warnings

import numpy as np
import pytest

import countveil as cv
from countveil.inference import cavi, gibbs
from countveil.inference import dispersion as moves
from countveil.inference.ascent import maximise
from countveil.inference.facts import mean_rate_without_offsets
from countveil.inference.methods import METHODS
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.kernels import gibbs as kernels
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.privacy.mechanisms import Suppression
from tests.joint import SERIAL, bound, small_model, two_sided_geometric
from tests.laws.counts.test_negative_binomial import ROWS, SPECS, joint_scores

pytestmark = pytest.mark.long

EXPOSURE = {kind: np.exp(np.random.default_rng(4).normal(0.0, 1.2, size)) for kind, (*_, size) in SPECS.items()}


def noisy(exposure):
    """How counts are reported and read: with two-sided geometric noise by row."""

    def read(counts, mask, rng):
        noise = two_sided_geometric(np.broadcast_to(ROWS[:, None], counts.shape), rng)
        return cv.PrivatizedCounts(counts + noise, ROWS[:, None], mask, exposure=exposure)

    return read


def hidden(exposure, totals=False):
    """The same: with small counts hidden, and the exact sums of rows besides."""

    def read(counts, mask, rng):
        values = np.where((counts > 0) & (counts < 4), np.nan, counts)
        known = [(1, counts.sum(axis=1))] if totals else None
        return cv.Reports(values, Suppression(4), mask, totals=known, exposure=exposure)

    return read


SWEEPS, BATCHES = 600, 20
LIKELIHOODS = {"poisson": POISSON, **{name: NegativeBinomial(name) for name in ("column", "row")}}


@pytest.mark.parametrize(
    ("name", "kind", "read"), [("poisson", "topics", noisy), ("column", "topics", hidden), ("row", "blocks", hidden)]
)
def test_sweeps_leave_the_joint_law_as_it_is(name, kind, read):
    exposure = EXPOSURE[kind]
    z = joint_scores(LIKELIHOODS[name], kind, read(exposure), SWEEPS, batches=BATCHES, exposure=exposure)
    assert z.max() < bound(len(z), BATCHES)


def test_sweeps_beside_known_totals_leave_it_too():
    exposure = EXPOSURE["topics"]
    given = {"exposure": exposure, "masked": False, "batches": BATCHES}
    z = joint_scores(POISSON, "topics", hidden(exposure, True), SWEEPS, **given)
    assert z.max() < bound(len(z), BATCHES)


@pytest.mark.parametrize(("name", "read", "forgets_rows"), [("poisson", noisy, True), ("column", hidden, False)])
def test_the_joint_law_shows_an_exposure_that_conditional_rates_forget(name, read, forgets_rows, monkeypatch):
    add = kernels.add_exposures

    def forgetful(law, *given):
        if given[-1] == forgets_rows:
            law = law._replace(exposure_dv=np.ones_like(law.exposure_dv))
        add(law, *given)

    monkeypatch.setattr(moves, "learns_p", lambda model: False)  # moves of p would make up for it
    monkeypatch.setattr(kernels, "add_exposures", forgetful)
    exposure = EXPOSURE["topics"]
    z = joint_scores(LIKELIHOODS[name], "topics", read(exposure), SWEEPS, batches=BATCHES, exposure=exposure)
    assert z.max() > bound(len(z), BATCHES)


def offsets_as_exposures(seed=2):
    """(the same noisy counts with offsets of rows and columns, and with their products by cell; u; v; factors)."""
    rng = np.random.default_rng(seed)
    u, v = 2.0 ** rng.integers(-3, 4, 6), np.exp(rng.normal(0.0, 1.0, 5))
    factors = rng.gamma(1.5, 1.0, (6, 2)), rng.gamma(1.5, 1.0, (5, 2))
    counts = 1 + rng.poisson(np.outer(u, v) * (factors[0] @ factors[1].T))
    one = cv.PrivatizedCounts(counts, 0.4, row_offset=u, column_offset=v)
    return one, cv.PrivatizedCounts(counts, 0.4, exposure=np.outer(u, v)), u[:, None], v[:, None], factors


@pytest.mark.parametrize("model", [small_model((6, 5)), small_model((6, 5), learned=True)])
def test_a_product_of_offsets_has_the_bound_and_the_optima_of_the_offsets(model):
    one, other, u, v, (theta, phi) = offsets_as_exposures()
    scaled = cavi.from_point((u * theta, v * phi), Plan(one, model), model, SERIAL)
    by_cell = cavi.from_point((theta, phi), Plan(other, model), model, SERIAL)
    for _ in range(5):
        (scaled, first), (by_cell, second) = (
            cavi.step(state, Plan(data, model), model, None, SERIAL)
            for state, data in ((scaled, one), (by_cell, other))
        )
        assert first.objective == pytest.approx(second.objective, rel=1e-10)
        for a, b in zip(scaled.means, (u * by_cell.means[0], v * by_cell.means[1]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
    both = [(u * theta, v * phi)], [(theta, phi)]
    for steps, data in zip(both, (one, other), strict=True):
        for _ in range(5):
            steps.append(tuple(maximise(Plan(data, model), model, data.law(POISSON), steps[-1], SERIAL)[0]))
    np.testing.assert_allclose(both[0][-1][0], u * both[1][-1][0], rtol=1e-9)
    np.testing.assert_allclose(both[0][-1][1], v * both[1][-1][1], rtol=1e-9)


def test_sweeps_with_the_offsets_of_rows_by_cell_draw_the_same():
    """Offsets are powers of two, so that components are visited in the same order."""
    one, other, u, _, (theta, phi) = offsets_as_exposures()
    one.prior_scale_v, other.exposure = np.ones(5), np.repeat(u, 5, axis=1)
    model, streams = small_model((6, 5)), Streams.of_chain(3, 0)
    scaled, by_cell = (gibbs.State(factors, model.initial_hypers(), 0) for factors in ((u * theta, phi), (theta, phi)))
    for _ in range(10):
        (scaled, first), (by_cell, second) = (
            gibbs.step(state, Plan(data, model), model, streams, SERIAL)
            for state, data in ((scaled, one), (by_cell, other))
        )
        np.testing.assert_allclose(scaled.factors[0], u * by_cell.factors[0], rtol=1e-9)
        np.testing.assert_allclose(scaled.factors[1], by_cell.factors[1], rtol=1e-9)
        assert first.total_rate == pytest.approx(second.total_rate)


def test_the_prior_has_the_size_of_the_rates_for_one_unit():
    one, other, *_ = offsets_as_exposures()
    assert mean_rate_without_offsets(one) == pytest.approx(mean_rate_without_offsets(other))


@pytest.mark.parametrize("method", ["gibbs", "cavi"])
def test_planted_rates_are_found_where_exposures_differ_by_orders_of_magnitude(method):
    """With the exposures the rates of cells are found; without them their size alone would be."""
    rng = np.random.default_rng(5)
    theta, phi = rng.dirichlet([0.4] * 3, 60), rng.dirichlet([0.5] * 20, 3)
    exposure = 10.0 ** rng.uniform(1.0, 5.0, (60, 20))
    rates = theta @ phi
    counts = rng.poisson(exposure * rates)
    data = cv.Reports(np.where((counts > 0) & (counts < 10), np.nan, counts), Suppression(10), exposure=exposure)
    options = {"draws": 60, "tune": 60, "chains": 2} if method == "gibbs" else {}
    model = cv.PoissonFactorization(
        "dk,vk->dv", {"k": 3}, method=method, seed=1, threads=1, progress=False, likelihood="poisson", **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = model.fit(data)
    found = fit.rate().to_numpy() / exposure
    many = exposure * rates > 5.0
    off = np.abs(np.log(found[many] / rates[many])).mean()
    assert off < 0.25
    assert np.corrcoef(np.log(found[many]), np.log(rates[many]))[0, 1] > 0.95
    if method == "gibbs":  # errors in units of the standard deviation of a rate by its cell alone
        error = np.sqrt(exposure) * np.abs(found - rates) / np.sqrt(rates)
        assert error[many].mean() < 0.5


def deaths(seed=8):
    """Deaths by county and age, and the people of each cell, whose ages differ by county."""
    rng = np.random.default_rng(seed)
    size, share = np.exp(rng.normal(9.0, 1.2, 60)), rng.dirichlet(np.array([6, 8, 7, 4, 1.5, 0.7]) * 4, 60)
    people = 1.0 + np.rint(size[:, None] * share ** rng.gamma(20.0, 1 / 20, (60, 1)))
    risk = np.array([2e-4, 4e-4, 8e-4, 3e-3, 1e-2, 4e-2]) * rng.gamma(20.0, 1 / 20, (60, 1))
    return rng.poisson(people * risk), people


def test_hidden_deaths_are_found_better_with_the_people_of_each_cell():
    counts, people = deaths()
    hidden = (counts > 0) & (counts < 10)
    values, error = np.where(hidden, np.nan, counts), {}
    model = cv.PoissonFactorization(
        "dk,vk->dv", {"k": 2}, draws=50, tune=60, chains=2, seed=1, threads=1, progress=False, likelihood="poisson"
    )
    given = {
        "exposure": {"exposure": people},
        "offsets": {"row_offset": people.sum(axis=1), "column_offset": people.sum(axis=0)},
    }
    for name, options in given.items():
        data = cv.Reports(values, Suppression(10), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.fit(data).count_intervals(data)
        error[name] = np.abs(found["median"].to_numpy() - counts)[hidden].mean()
        held = (found["lower"].to_numpy() <= counts) & (counts <= found["upper"].to_numpy())
        assert held[hidden].mean() > 0.85
    assert error["exposure"] < 0.9 * error["offsets"]


@pytest.mark.parametrize("method", sorted(name for name, each in METHODS.items() if not each.exposures))
def test_other_methods_refuse_them(method):
    data = cv.ExactCounts(np.arange(6).reshape(2, 3), exposure=np.arange(1.0, 7.0).reshape(2, 3))
    if METHODS[method].mechanisms is not None:
        data = cv.PrivatizedCounts(np.arange(6).reshape(2, 3), 0.5, exposure=data.exposure)
    with pytest.raises(ValueError, match=rf"exposure must be one of rows .* for method '{method}', got one by cell"):
        cv.TopicModel(1, method=method, progress=False).fit(data)


def test_starts_that_do_not_know_them_are_refused():
    rng = np.random.default_rng(1)
    exposure = rng.gamma(2.0, 1.0, (8, 8))
    data = cv.ExactCounts(rng.poisson(exposure), exposure=exposure)
    with pytest.raises(ValueError, match='for data with an exposure by cell, got "spectral": use "auto"'):
        cv.BlockModel(2, start="spectral", draws=2, tune=2, chains=1, progress=False).fit(data)
