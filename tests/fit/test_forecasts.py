"""Forecasts: labels that go on, and counts that hold what comes as often as they say."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import countveil as cv
from countveil.fit import forecasts
from countveil.fit.forecasts import LAST, MEAN, MODEL, SEASONAL, THREE, compared, estimates_of, judged
from countveil.inference import gibbs
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts import NegativeBinomial
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import Factor, factorization
from countveil.models.priors import DirichletPrior, GammaChainPrior, gamma_chain
from countveil.models.priors.gamma_chain import packed
from tests.dynamics import draw_chain, draw_value, moderate
from tests.joint import FALSE_ALARM, SERIAL, draw_reports

BRIEF = {"likelihood": "poisson", "draws": 6, "tune": 4, "chains": 2, "seed": 1, "threads": 1, "progress": False}
STEPS, LATER, ITEMS, K, RUNS = 6, 3, 3, 2, 48
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


SPEC = parse_spec("tk,vk->tv", names=("activity", "items"))
CHAINS = {steady: GammaChainPrior(3.0, steady) for steady in (True, False)}
CHAINS["season"] = GammaChainPrior(3.0, True, 4)  # the first later step is the third of the season


def places_of_what_came(steady, seed=1, tune=20, draws=20):
    """Randomised places (2, runs, LATER + 1) of simulated counts among those that forecasts have drawn.

    The second are those of forecasts that go on from a tenth of the last step's activity.
    """
    rng, prior, found = np.random.default_rng(seed), CHAINS[steady], []
    sizes = axis_sizes(SPEC, (STEPS, ITEMS), {"k": K})
    model = factorization(SPEC, sizes, {"activity": prior, "items": DirichletPrior(1.0)})
    for run in range(RUNS):
        chain = draw_chain(prior, (STEPS + LATER, K), rng)
        x = draw_value(chain, (STEPS + LATER, K), np.ones(STEPS + LATER), rng)
        phi = rng.dirichlet(np.ones(ITEMS), K).T
        counts = rng.poisson(x @ phi.T)
        noise = draw_reports(np.zeros((STEPS, ITEMS)), np.asarray(0.4), rng)
        data = cv.PrivatizedCounts(counts[:STEPS] + noise, 0.4)
        own = chain._replace(volume=chain.volume[:STEPS])
        state = gibbs.State((np.maximum(x[:STEPS], 1e-150), phi), (packed(own), np.ones(1)), 0)
        streams, plan, drawn, wrong = Streams.of_chain(seed, run), Plan(data, model), [], []
        for sweep in range(tune + 2 * draws):
            state, _ = gibbs.step(state, plan, model, streams, SERIAL)
            if sweep >= tune and sweep % 2:
                drawn.append(counts_to_come(prior, state, rng, 1.0))
                wrong.append(counts_to_come(prior, state, rng, 0.1))
        came = np.append(counts[STEPS:].sum(axis=1), counts[STEPS, 0])
        found.append([place_among(each, came, rng) for each in (drawn, wrong)])
    return np.array(found).swapaxes(0, 1)


def place_among(drawn, came, rng):
    """Randomised places of what came among draws."""
    below, same = (drawn < came).sum(axis=0), (drawn == came).sum(axis=0)
    return (below + rng.random(came.size) * (same + 1)) / (len(drawn) + 1)


def counts_to_come(prior, state, rng, share):
    """The sum of each later step, and the first item of the first one."""
    reported = prior.reported(Factor("activity", "tk", (STEPS, K), (1, K), prior), state.hypers[0][None, None])
    chain = {name: values[0, 0] for name, (_, values) in reported.items()}
    if prior.season is not None:
        chain["season"] = chain["season"][-prior.season :]
    rates = forecasts.run_on(share * state.factors[0][-1], chain, LATER, rng) @ state.factors[1].T
    counts = rng.poisson(rates)
    return np.append(counts.sum(axis=1), counts[0, 0])


@pytest.mark.long
@pytest.mark.parametrize("steady", list(CHAINS))
def test_what_comes_has_uniform_places_among_forecasts(steady, monkeypatch):
    moderate(monkeypatch)
    monkeypatch.setattr(gamma_chain, "IMMIGRATION", 0.02)  # more of it would hide the planted fault
    right, wrong = places_of_what_came(steady)
    p = [[stats.kstest(column, "uniform").pvalue for column in each.T] for each in (right, wrong)]
    assert min(p[0]) > FALSE_ALARM / 4
    assert min(p[1]) < FALSE_ALARM / 4


@pytest.mark.long
def test_rates_are_those_of_the_chain_and_the_components(fit, monkeypatch):
    monkeypatch.setattr(forecasts, "run_on", lambda last, chain, steps, rng: np.tile(last, (steps, 1)))
    found, draws = fit.forecast(2).rates.to_numpy(), fit.posterior["posterior"]
    last = draws["activity"].isel(time=-1).to_numpy().reshape(12, 2).astype(float)
    phi = draws["factor_item"].to_numpy().reshape(12, 4, 2).astype(float)
    for step in range(2):
        np.testing.assert_allclose(found[:, step], np.einsum("sk,svk->sv", last, phi))


@pytest.fixture(scope="module")
def reports():
    return np.random.default_rng(2).poisson(3.0, (12, 4))


@pytest.fixture(scope="module")
def fit(reports):
    index = [str(month) for month in pd.period_range("2001-10", periods=12, freq="M")]
    return cv.DynamicModel(2, **BRIEF).fit(
        cv.PrivatizedCounts(pd.DataFrame(reports, index=index, columns=list("abcd")), 0.3)
    )


@pytest.mark.long
def test_labels_go_on_and_axes_stay(fit):
    found = fit.forecast(3)
    assert found.counts.dims == found.rates.dims == ("draw", "time", "item")
    assert list(found.counts["time"].to_numpy()) == ["2002-10", "2002-11", "2002-12"]
    assert list(found.counts["item"].to_numpy()) == list("abcd")
    assert found.counts.sizes["draw"] == 12
    assert fit.forecast(1, draws=5).counts.sizes["draw"] == 5
    table = found.table()
    assert list(table.columns) == ["time", "item", "mean", "median", "lower", "upper"]
    assert len(table) == 12
    assert (table["lower"] <= table["median"]).all()
    assert (table["median"] <= table["upper"]).all()
    np.testing.assert_allclose(table["mean"], found.rates.mean("draw").to_numpy().ravel())


@pytest.mark.long
def test_a_fit_has_one_forecast_and_a_generator_others(fit):
    one, other = fit.forecast(2), fit.forecast(2)
    np.testing.assert_array_equal(one.counts, other.counts)
    drawn = fit.forecast(2, np.random.default_rng(1))
    assert (drawn.counts.to_numpy() != one.counts.to_numpy()).any()


@pytest.mark.long
def test_activity_runs_on_by_its_transitions():
    rng, chain = (np.random.default_rng(3), {"transition": np.array([[0.9, 0.2], [0.1, 0.8]]), "volume": np.array(2.0)})
    chain["immigration"] = np.array(30.0)
    last = np.array([2000.0, 800.0])
    draws = np.array([forecasts.run_on(last, chain, 2, rng) for _ in range(4000)])
    mean = last
    for step in (1, 2):
        mean = chain["transition"] @ mean + 60.0
        error = draws[:, step - 1].std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(draws[:, step - 1].mean(axis=0) - mean) < 5 * error).all()
    shapes = chain["transition"] @ last / 2.0 + 30.0
    assert stats.kstest(stats.gamma(shapes[0], scale=2.0).cdf(draws[:, 0, 0]), "uniform").pvalue > FALSE_ALARM


@pytest.mark.long
def test_seasons_run_on_from_their_place():
    seasons = np.array([[0.5, 1.0], [2.0, 1.0], [0.8, 3.0]])
    chain = {"transition": np.eye(2), "volume": np.array(2.0), "immigration": np.array(0.02)}
    last = np.array([200.0, 80.0])
    found = forecasts.run_on(last, chain | {"season": seasons}, 4, np.random.default_rng(3))
    without = forecasts.run_on(last / seasons[2], chain, 4, np.random.default_rng(3))
    np.testing.assert_allclose(found, without * seasons[[0, 1, 2, 0]])
    cut = np.array([200.0, np.finfo(np.float32).tiny])  # as small as draws are kept
    seasons[2, 1] = 1e-60
    assert forecasts.run_on(cut, chain | {"season": seasons}, 4, np.random.default_rng(3))[:, 1].max() < 100.0


def of_bursts(dispersion):
    """A model of 6 steps by 3 items."""
    sizes = axis_sizes(SPEC, (STEPS, ITEMS), {"k": K})
    priors = {"activity": CHAINS[True], "items": DirichletPrior(1.0)}
    return factorization(SPEC, sizes, priors, likelihood=NegativeBinomial(dispersion))


@pytest.mark.long
def test_dispersions_of_items_are_those_of_later_steps():
    model, p = of_bursts("column"), np.array([0.2, 0.5, 0.7])
    names = list(model.likelihood.parameter_axes)
    given = tuple(p if name == "p" else np.zeros(1) for name in names)
    found = forecasts.over_cells(model, given)
    np.testing.assert_array_equal(found[names.index("p")], p[None])
    forecasts.check_parameters(model, "t")


@pytest.mark.long
def test_parameters_of_time_steps_cannot_be_forecast():
    with pytest.raises(ValueError, match="forecasts need a p that does not vary along time, got one for each row"):
        forecasts.check_parameters(of_bursts("row"), "t")
    forecasts.check_parameters(of_bursts("row"), "v")


@pytest.mark.long
def test_a_tensor_is_forecast_along_its_own_axis(reports):
    data = cv.PrivatizedCounts(reports.reshape(12, 2, 2).transpose(1, 2, 0), 0.3)
    options = BRIEF | {"likelihood": "negative-binomial"}
    found = cv.DynamicModel(2, modes=["source", "target", "time"], **options).fit(data).forecast(2)
    assert found.counts.dims == ("draw", "source", "target", "time")
    assert list(found.counts["time"].to_numpy()) == [12, 13]


@pytest.mark.long
@pytest.mark.parametrize("wrong", [{"steps": 0}, {"steps": 1, "draws": 0}, {"steps": 1.5}])
def test_numbers_out_of_range_are_refused(fit, wrong):
    with pytest.raises(ValueError, match="must be"):
        fit.forecast(**wrong)


@pytest.mark.long
def test_what_is_no_generator_is_refused(fit):
    with pytest.raises(TypeError, match="rng must be a"):
        fit.forecast(1, 7)
    with pytest.raises(ValueError, match="interval"):
        fit.forecast(1).table(1.5)


@pytest.mark.long
def test_draws_that_do_not_fit_in_memory_are_refused(fit, monkeypatch):
    monkeypatch.setattr(forecasts, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="draws of all cells must fit in memory"):
        fit.forecast(2)


@pytest.mark.long
def test_steps_that_no_memory_holds_are_refused_before_they_are_named(fit, monkeypatch):
    monkeypatch.setattr(forecasts, "continued", lambda known, steps: pytest.fail("made names"))
    with pytest.raises(MemoryError, match="take fewer draws= or steps"):
        fit.forecast(10**18, draws=1)


@pytest.mark.long
@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
def test_counts_that_came_have_the_probability_of_the_draws(reports, likelihood):
    fit = cv.DynamicModel(2, **BRIEF | {"likelihood": likelihood}).fit(cv.PrivatizedCounts(reports, 0.3))
    found = fit.forecast(2)
    came = np.random.default_rng(5).poisson(2.0, (2, 4))
    rates, chances = found.rates.to_numpy(), []
    for s in range(12):
        if likelihood == "poisson":
            chances.append(stats.poisson.pmf(came, rates[s]))
        else:
            p = fit.posterior["posterior"]["p"].to_numpy().ravel()[s]
            size = rates[s] * (1.0 - p) / p
            chances.append(stats.nbinom.pmf(came, size, 1.0 - p))
    np.testing.assert_allclose(found.log_predictive(came), np.log(np.mean(chances, axis=0)), rtol=1e-9)
    with pytest.raises(ValueError, match="counts must have the shape"):
        found.log_predictive(came[:1])
    with pytest.raises(ValueError, match="whole numbers, 0 or more"):
        found.log_predictive(came - 5)


NAN = np.nan
KNOWN = np.array([[1.0, 4.0], [2.0, NAN], [NAN, -3.0], [6.0, -1.0], [NAN, 5.0]])


def test_rules_look_back_to_steps_that_were_seen():
    found = forecasts.rules_of(KNOWN, 2)
    np.testing.assert_array_equal(found[LAST], [6.0, 5.0])
    np.testing.assert_allclose(found[THREE], [3.0, 1.0 / 3.0])
    np.testing.assert_array_equal(found[SEASONAL], [6.0, 0.0])  # steps 3 and 1, of which the second is below zero
    np.testing.assert_array_equal(forecasts.rules_of(KNOWN[:4], 3)[SEASONAL], [2.0, NAN])
    assert list(forecasts.rules_of(KNOWN, None)) == [LAST, THREE]


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_estimates_have_the_counts_for_their_mean_and_their_variance(alpha):
    rng, counts = np.random.default_rng(1), np.array([[0, 1, 4], [9, 0, 2]])
    mask, draws = np.array([[False, False, True], [False] * 3]), 4000  # one below another
    reports = np.tile(counts, (draws, 1)) + draw_reports(np.zeros((2 * draws, 3)), np.asarray(alpha), rng)
    data = cv.PrivatizedCounts(np.maximum(reports, 0), alpha, mask=np.tile(mask, (draws, 1)))
    found, variance = (each.reshape(draws, 2, 3) for each in estimates_of(data))
    assert np.isnan(found[:, 0, 2]).all()
    left = np.ones(counts.shape, dtype=bool)
    left[0, 2] = False
    error = found.std(axis=0)[left] / np.sqrt(draws) + 1e-12
    assert (np.abs(found.mean(axis=0)[left] - counts[left]) < 4.5 * error).all()
    np.testing.assert_allclose(variance.mean(axis=0)[left], found.var(axis=0)[left], rtol=0.15)


def test_hidden_counts_have_no_estimate():
    shown = np.array([[12.0, 30.0], [np.nan, 11.0]])
    data = cv.Reports(shown, cv.mechanisms.Suppression(10))
    with pytest.raises(ValueError, match="data must have reports with an unbiased estimate of each count"):
        estimates_of(data)


def test_counts_that_are_all_shown_are_estimates_whatever_the_rule():
    shown = np.array([[12.0, 0.0, 30.0], [25.0, 11.0, 40.0]])
    masked = np.array([[False, False, True], [False, False, False]])
    found, variance = estimates_of(cv.Reports(shown, cv.mechanisms.Suppression(10), mask=masked))
    np.testing.assert_array_equal(found, np.where(masked, np.nan, shown))
    assert (variance[~masked] == 0.0).all()


def perfect(truth, axis):
    """A model that knows the counts of a step, and refuses data in which it or a later one is shown."""

    def forecast(data, step):
        seen = ~np.isnan(np.moveaxis(estimates_of(data)[0], axis, 0)).reshape(len(truth), -1).all(axis=1)
        np.testing.assert_array_equal(seen, np.arange(len(truth)) < step)
        return truth[step], truth[step] + 3.0

    return forecast


@pytest.mark.parametrize("axis", [0, 2])
def test_the_noise_of_reports_is_taken_out_of_errors(axis):
    rng = np.random.default_rng(2)
    truth = rng.poisson(20.0, (14, 15, 20))
    reports = truth + draw_reports(np.zeros(truth.shape), np.asarray(0.6), rng)
    data = cv.PrivatizedCounts(np.moveaxis(reports, 0, axis), 0.6)
    found = compared(data, axis, 8, 4, perfect(truth, axis))
    errors = found.table.set_index("forecast")["error"]
    assert np.nan_to_num(errors[MODEL]) < 0.5  # of noise with a standard deviation of 2.2
    assert errors[MEAN] == pytest.approx(3.0, abs=0.25)
    variance = 2 * 0.6 / 0.4**2  # of the noise, which the rules repeat
    assert errors[LAST] == pytest.approx(np.sqrt(2 * 20.0 + variance), rel=0.05)
    assert errors[SEASONAL] == pytest.approx(errors[LAST], rel=0.05)
    assert errors[THREE] == pytest.approx(np.sqrt(4 / 3 * 20.0 + variance / 3), rel=0.05)
    assert found.verdict.startswith("Use the model's median: error ")


def test_a_verdict_needs_a_difference_of_two_standard_errors():
    steps = np.arange(6.0)
    losses = pd.DataFrame({MODEL: 5.0 + steps, MEAN: 6.0 + steps, LAST: 3.0 + steps[::-1] / 9, THREE: 9.0 + steps})
    assert judged(losses, 1.0, {}).verdict.startswith(
        "Use the last value: error 1.51 (last value) against 2.55 (model, median)"
    )
    remedies = {LAST: "Try levels.", SEASONAL: "Try a season."}
    assert judged(losses, 1.0, remedies).verdict.endswith(", 6 steps. Try levels.")
    assert judged(losses.rename(columns={LAST: SEASONAL}), 1.0, remedies).verdict.endswith(" Try a season.")
    assert judged(losses.rename(columns={LAST: THREE, THREE: LAST}), 1.0, remedies).verdict.endswith(", 6 steps.")
    near = losses.assign(**{LAST: losses[MODEL] + [1.0, -1.0, 1.0, -1.0, 1.0, -0.5]})
    assert judged(near, 1.0, {}).verdict.startswith("No clear difference between the model and the last value: ")
    assert judged(near, 1.0, remedies).verdict.endswith(", 6 steps.")
    worse = losses.assign(**{LAST: 9.0 + losses[MODEL]})
    assert judged(worse, 1.0, remedies).verdict.endswith(", 6 steps.")
    assert judged(losses, 50.0, {}).table["error"].isna().all()


@pytest.mark.parametrize("steps", [1, 3])
def test_steps_that_leave_too_few_before_them_are_refused(steps):
    data = cv.ExactCounts(np.ones((6, 2), int))
    with pytest.raises(ValueError, match="check must be from 2 to 2, so that 4 of 6 steps come before"):
        compared(data, 0, steps, 4, perfect(np.ones((6, 2)), 0))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("options", "said"), [({}, " Try levels=True (--levels)."), ({"levels": True}, "")])
def test_levels_are_said_to_be_tried_by_a_model_without_them(options, said):
    walks = np.cumsum(0.4 * np.random.default_rng(4).standard_normal((30, 4)), axis=0)  # each item by itself
    data = cv.ExactCounts(np.random.default_rng(5).poisson(50.0 * np.exp(walks - walks.mean(axis=0))))
    brief = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "threads": 1, "progress": False}
    found = cv.DynamicModel(1, **brief, **options).fit(data).check_forecasts(data, 8)
    assert found.verdict.startswith((f"Use the {LAST}: ", f"Use the {THREE}: "))
    assert found.verdict.endswith(f", 8 steps.{said}")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_season_that_the_model_lacks_is_said_to_be_tried():
    counts = np.random.default_rng(3).poisson(20.0 + 15.0 * np.cos(np.arange(36)[:, None] / 6 * np.pi + np.arange(3)))
    data = cv.ExactCounts(
        pd.DataFrame(counts, index=[str(each) for each in pd.period_range("2001-01", periods=36, freq="M")])
    )
    brief = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "threads": 1, "progress": False}
    found = cv.DynamicModel(1, **brief).fit(data).check_forecasts(data, 12)
    assert found.verdict.startswith(f"Use the {SEASONAL}: ")
    assert found.verdict.endswith(", 12 steps. Try season=12 (--season 12).")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("season", [None, 3])
def test_a_model_is_fitted_anew_for_each_step(season):
    counts = np.random.default_rng(3).poisson(4.0, (9, 3))
    index = [str(month) for month in pd.period_range("2001-01", periods=9, freq="M")]
    data = cv.PrivatizedCounts(pd.DataFrame(counts, index=index), 0.3)
    brief = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "threads": 1, "progress": False}
    fit = cv.DynamicModel(2, season=season, **brief).fit(data)
    found = fit.check_forecasts(data, 2)
    rules = [LAST, THREE] if season is None else [LAST, SEASONAL, THREE]  # nine months have no whole year before
    assert list(found.table["forecast"]) == [MODEL, MEAN, *rules]
    assert found.steps == 2
    pd.testing.assert_frame_equal(fit.check_forecasts(data, 2).table, found.table)
