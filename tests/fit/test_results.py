"""Fits of counts that come in bursts: what they find, how bursty counts are, their files, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

import countveil as cv
from countveil.fit.predictive_checks import check
from countveil.fit.results import from_tree
from countveil.inference.file_checks import check_tree
from countveil.inference.scoring import total_rate
from countveil.report.baselines import noise_alone
from tests.joint import fitted, two_sided_geometric

pytestmark = pytest.mark.long

SHORT = {"draws": 60, "tune": 60, "chains": 2, "seed": 1, "threads": 1, "progress": False}
BURSTY = SHORT | {"likelihood": "negative-binomial"}
POISSON = SHORT | {"likelihood": "poisson"}
SIZE = (80, 30)
WORDS = [f"w{v}" for v in range(SIZE[1])]


def planted(seed=3):
    """(counts, p of each column, expected counts)."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.gamma(0.5, 2.0, (SIZE[0], 2)), rng.dirichlet(np.full(SIZE[1], 0.5), 2)
    rate, p = 30.0 * theta @ phi + 1e-3, rng.beta(6.0, 3.0, SIZE[1])
    s = rate / -np.log1p(-p)
    return rng.negative_binomial(s, 1.0 - p), p, s * p / (1.0 - p)


@pytest.fixture(scope="module")
def data():
    counts, _, _ = planted()
    noise = two_sided_geometric(np.full(SIZE, 0.5), np.random.default_rng(4))
    return cv.PrivatizedCounts(counts + noise, 0.5, column_labels=WORDS)


@pytest.fixture(scope="module")
def by_column(data):
    return fitted(cv.TopicModel(2, dispersion="column", start="em", **BURSTY), data)


def test_the_dispersion_of_each_column_is_found(by_column):
    _, p, _ = planted()
    found = by_column.dispersions()
    assert list(found) == ["word", "p", "lower", "upper", "variance_over_mean"]
    assert list(found["word"]) == WORDS
    inside = ((found["lower"] < p) & (p < found["upper"])).sum()
    assert stats.binom.cdf(inside, SIZE[1], 0.9) > 0.001
    draws = by_column.posterior["posterior"]["p"]
    assert draws.dims == ("chain", "draw", "word")
    np.testing.assert_allclose(found["variance_over_mean"], (1.0 / (1.0 - draws)).mean(("chain", "draw")))
    assert {"p", "p_mean", "p_concentration"} <= set(by_column.diagnostics().table.index)


def test_rates_are_expected_counts(by_column):
    counts, _, expected = planted()
    rate = by_column.rate()
    assert float(rate.sum()) == pytest.approx(counts.sum(), rel=0.1)
    assert np.corrcoef(rate.to_numpy().ravel(), expected.ravel())[0, 1] > 0.9
    totals, means = [], np.zeros(SIZE)
    for (theta, phi), own in by_column._reader.draws():
        mean = theta @ phi.T * own[0] / (-np.log1p(-own[0]) * (1.0 - own[0]))
        totals.append(mean.sum())
        means += mean / 120
    np.testing.assert_allclose(rate, means, rtol=1e-6)
    kept = by_column.posterior["sample_stats"]["total_rate"].to_numpy().ravel()
    np.testing.assert_allclose(kept, totals, rtol=1e-4)
    assert total_rate(by_column.model_, list(by_column.model_.matrices([theta, phi])), own) == (
        pytest.approx(totals[-1])
    )


def test_simulated_reports_and_checks_follow_the_dispersion(by_column, data):
    simulated = by_column.predict_reports(200, np.random.default_rng(1)).sum(("doc", "word")).to_numpy()
    by_noise = data.noise.mean_at_zero(0.5) * np.prod(SIZE)
    expected = float(by_column.rate().sum())
    assert expected < simulated.mean() < expected + 1.2 * by_noise
    assert simulated.std() > 1.5 * np.sqrt(simulated.mean())
    assert noise_alone(by_column, data).sum_of_rates == pytest.approx(expected)
    assert all(each.verdict for each in check(by_column, data).statistics)


def test_simulated_counts_are_of_each_draws_own_law(by_column):
    drawn = by_column.predict_counts(400, np.random.default_rng(1))
    assert drawn.dims == ("table", "doc", "word")
    column = drawn.sum("doc").to_numpy()
    error = column.std(axis=0) / np.sqrt(400)
    assert np.abs((column.mean(axis=0) - by_column.rate().sum("doc").to_numpy()) / error).max() < 5.0
    with pytest.raises(ValueError, match="n must be"):
        by_column.predict_counts(0, np.random.default_rng(1))


@pytest.mark.parametrize("dispersion", ["global", "column", "row"])
def test_scores_of_a_draw_are_the_sum_of_those_of_its_cells(data, dispersion):
    many = data.take(np.tile(np.arange(SIZE[0]), 4))  # in several blocks
    fit = fitted(cv.TopicModel(2, dispersion=dispersion, **BURSTY | {"draws": 3, "tune": 3}), many)
    by_cell = fit.log_likelihood(many).sum("cell")
    np.testing.assert_allclose(by_cell, fit.posterior["sample_stats"]["log_likelihood"], rtol=1e-6)


def test_a_file_keeps_the_parameters(by_column, data, tmp_path):
    by_column.save(tmp_path / "fit.nc")
    again = cv.TopicModel.load(tmp_path / "fit.nc")
    assert again.model_.likelihood.dispersion == "column"
    assert again.dispersions().equals(by_column.dispersions())
    np.testing.assert_array_equal(again.rate(), by_column.rate())
    cells = np.zeros(SIZE, dtype=bool)
    cells[:3] = True
    np.testing.assert_array_equal(again.log_predictive(data, cells), by_column.log_predictive(data, cells))
    np.testing.assert_array_equal(
        again.transform(data.take(np.arange(3))), by_column.transform(data.take(np.arange(3)))
    )


@pytest.mark.parametrize("change", ["range", "missing"])
def test_a_file_with_other_parameters_is_refused(by_column, tmp_path, change):
    tree = by_column.posterior.copy(deep=True)
    values = tree["posterior"].dataset
    if change == "range":
        values["p"][0, 0, 0] = 1.5
    else:
        values = values.drop_vars("p_mean")
    tree["posterior"].dataset = values
    with pytest.raises(ValueError, match=r"must hold p from .* got 1\.5|must hold p_mean in the group .* got \['"):
        check_tree(tree, by_column.model_, by_column._layout(by_column.model_.spec))


def test_held_out_counts_are_predicted_better_than_by_a_poisson_fit(data):
    hidden, brief = np.random.default_rng(5).random(SIZE) < 0.1, {"draws": 30, "tune": 30}
    reports = np.zeros(SIZE, dtype=np.int64)
    reports[data.row_numbers, data.columns] = data.reports
    masked = cv.PrivatizedCounts(reports, 0.5, hidden)
    bursty, poisson = (
        float(
            fitted(cv.TopicModel(2, **options), masked).log_predictive(cv.PrivatizedCounts(reports, 0.5), hidden).sum()
        )
        for options in (BURSTY | brief, POISSON | brief)
    )
    assert bursty > poisson + 20.0


@pytest.mark.parametrize(
    ("kind", "dispersion"),
    [
        *(("blocks", each) for each in ("column", "row", 0.7)),
        *(("tensor", each) for each in ("column", "row", "global")),
    ],
)
def test_other_models_fit(kind, dispersion):
    rng = np.random.default_rng(6)
    counts = rng.negative_binomial(0.8, 0.3, (20, 20) if kind == "blocks" else (20, 5, 4))
    noise = two_sided_geometric(np.full(counts.shape, 0.1), rng)
    shorter = BURSTY | {"draws": 25, "tune": 35}
    model = (
        cv.BlockModel(2, dispersion=dispersion, **shorter)
        if kind == "blocks"
        else cv.TensorModel(2, modes=["a", "b", "c"], dispersion=dispersion, **shorter)
    )
    fit = fitted(model, cv.PrivatizedCounts(counts + noise, 0.1))
    seen = counts if kind == "tensor" else counts - np.diag(np.diag(counts))
    rate = fit.rate().to_numpy()
    total = rate.sum() if kind == "tensor" else rate.sum() - np.trace(rate)
    assert total == pytest.approx(seen.sum(), rel=0.2)
    dims = {"blocks": {"column": ["receiver"], "row": ["sender"]}, "tensor": {"column": ["b", "c"], "row": ["a"]}}
    found = fit.dispersions()
    assert list(found)[:-4] == dims[kind].get(dispersion, []) or dispersion == 0.7
    assert len(found) == {"row": 20, "column": 20}.get(dispersion, 1)


@pytest.mark.parametrize("wrapped", [cv.ExactCounts, cv.NaiveCounts])
def test_counts_without_noise(wrapped):
    counts, p, _ = planted()
    fit = fitted(cv.TopicModel(2, dispersion="global", **BURSTY), wrapped(counts))
    assert float(fit.rate().sum()) == pytest.approx(counts.sum(), rel=0.05)
    found = fit.dispersions(uncalibrated=wrapped is cv.NaiveCounts)
    assert abs(found["p"][0] - p.mean()) < 0.12


def test_a_warning_about_a_naive_fit_names_what_is_wrong_with_every_naive_fit():
    counts, _, _ = planted()
    with pytest.warns(ConvergenceWarning, match="^This fit treats the reports as true counts"):
        cv.TopicModel(2, **BURSTY | {"draws": 50, "tune": 0, "chains": 2}).fit(cv.NaiveCounts(counts))


@pytest.mark.parametrize("dispersion", ["column", "row"])
def test_draws_do_not_depend_on_threads_and_resume(data, dispersion, tmp_path, monkeypatch):
    rows = np.tile(np.arange(SIZE[0]), 4)  # enough for several blocks
    many = data.take(rows)
    options = BURSTY | {"draws": 2, "tune": 1, "dispersion": dispersion}
    whole = fitted(cv.TopicModel(2, **options), many)
    threads = fitted(cv.TopicModel(2, **options | {"threads": 3}), many)
    path = tmp_path / "chains.npz"
    monkeypatch.setattr("countveil.inference.checkpoint.fingerprint", lambda *_: "the same")
    fitted(cv.TopicModel(2, **options | {"draws": 1}), many, checkpoint=path)
    resumed = fitted(cv.TopicModel(2, **options), many, checkpoint=path, resume=True)
    for name in ("p", "p_mean", "theta"):
        draws = [fit.posterior["posterior"][name].to_numpy() for fit in (whole, threads, resumed)]
        np.testing.assert_array_equal(draws[0], draws[1])
        np.testing.assert_array_equal(draws[0], draws[2])


def test_a_checkpoint_of_another_dispersion_is_refused(data, tmp_path):
    options = BURSTY | {"draws": 2, "tune": 1, "chains": 1}
    path = tmp_path / "chains.npz"
    fitted(cv.TopicModel(2, dispersion=0.6, **options), data, checkpoint=path)
    with pytest.raises(ValueError, match="same data and settings"):
        cv.TopicModel(2, dispersion=0.7, **options).fit(data, checkpoint=path, resume=True)


@pytest.mark.parametrize("method", ["augmented-gibbs", "bessel-cavi", "svi"])
def test_methods_that_do_not_fit_bursts_say_so(data, method):
    message = rf"likelihood must be one of \['poisson'\] for method '{method}', got 'negative-binomial'"
    with pytest.raises(ValueError, match=message):
        cv.TopicModel(2, method=method, **BURSTY).fit(data)


@pytest.mark.parametrize(("method", "dispersion"), [("em", "row"), ("em", "global"), ("cavi", "column"), ("cavi", 0.6)])
def test_methods_that_maximise_find_dispersions_without_intervals(data, method, dispersion):
    """With a p for each row or column, small data say little of each: but together."""
    _, p, expected = planted()
    fit = fitted(cv.TopicModel(2, method=method, dispersion=dispersion, **BURSTY), data)
    assert fit.rate().shape == SIZE
    assert fit.posterior["sample_stats"]["total_rate"].mean() == pytest.approx(expected.sum(), rel=0.15)
    table = fit.dispersions()
    if dispersion == 0.6:
        return
    assert not {"lower", "upper"} & set(table)
    assert table["p"].mean() == pytest.approx(p.mean(), abs=0.15)
    if dispersion == "column":
        assert np.corrcoef(table["p"], p)[0, 1] > 0.3
    assert fit.predict_counts(3, np.random.default_rng(1)).shape[-2:] == SIZE


@pytest.mark.parametrize("method", ["em", "cavi"])
def test_a_fit_by_a_method_that_maximises_comes_back_from_its_file(data, method, tmp_path):
    fit = fitted(cv.TopicModel(2, method=method, dispersion="column", **BURSTY), data)
    fit.save(tmp_path / "fit.nc")
    again = cv.TopicModel.load(tmp_path / "fit.nc")
    assert again.dispersions().equals(fit.dispersions())
    np.testing.assert_array_equal(again.rate(), fit.rate())
    assert fit.transform(data).shape == (SIZE[0], 2)


def test_what_makes_no_sense_is_refused_in_words(data, by_column):
    with pytest.raises(ValueError, match=r"dispersion requires likelihood 'negative-binomial', got .* 'poisson'"):
        cv.TopicModel(2, likelihood="poisson", dispersion="column").fit(data)
    with pytest.raises(ValueError, match=r"likelihood must be one of .* got 'normal'"):
        cv.TopicModel(2, likelihood="normal").fit(data)
    with pytest.raises(ValueError, match=r"dispersion must be one of .* got 'word'"):
        cv.TopicModel(2, likelihood="negative-binomial", dispersion="word").fit(data)
    with pytest.raises(ValueError, match=r"dispersions require likelihood 'negative-binomial', got .* 'poisson'"):
        fitted(cv.TopicModel(2, **POISSON | {"draws": 2, "tune": 1}), data).dispersions()
    with pytest.raises(ValueError, match="interval must"):
        by_column.dispersions(1.5)
    rows = fitted(cv.TopicModel(2, dispersion="row", **BURSTY | {"draws": 2, "tune": 1}), data)
    with pytest.raises(ValueError, match="dispersion must be 'global', 'column' or a number for transform"):
        rows.transform(data)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (cv.TopicModel(2), {"dispersion": "column"}),
        (cv.TopicModel(2, dispersion="global"), {"dispersion": "global"}),
        (
            cv.TopicModel(2, known_topics=pd.DataFrame(np.ones((2, 6)), columns=list("abcdef"))),
            {"dispersion": "global"},
        ),
        (cv.TopicModel(2, dispersion="row"), {"dispersion": "row"}),
        (cv.BlockModel(2), {"dispersion": "column"}),
        (cv.BlockModel(2, directed=False), {"dispersion": "global"}),
        (cv.TensorModel(2), {"dispersion": "column"}),
        (cv.TopicModel(2, method="em"), None),
        (cv.TopicModel(2, method="em", likelihood="negative-binomial"), {"dispersion": "global"}),
        (cv.TopicModel(2, method="augmented-gibbs"), None),
        (cv.TopicModel(2, likelihood="poisson"), None),
        (cv.PoissonFactorization("dk,vk->dv", {"k": 2}), None),
        (cv.PoissonFactorization("dk,vk->dv", {"k": 2}, dispersion=0.6), {"dispersion": 0.6}),
        (cv.TopicModel(2, method="em", dispersion="column"), {"dispersion": "column"}),
    ],
)
def test_the_likelihood_is_bursty_unless_the_method_or_the_model_says_otherwise(model, settings):
    counts = np.triu(np.random.default_rng(7).poisson(3.0, (6, 6)))
    labels = [list("abcdef")] * 2
    square = cv.PrivatizedCounts(counts + np.triu(counts, 1).T, 0.3, row_labels=labels[0], column_labels=labels[1])
    model.set_params(draws=2, tune=1, chains=1, seed=1, threads=1, progress=False)
    likelihood = model.fit(square).model_.likelihood
    assert likelihood.name == ("poisson" if settings is None else "negative-binomial")
    assert dict(likelihood.settings) == (settings or {})


def test_a_fit_goes_on_from_one_with_another_likelihood(data):
    few = {"draws": 2, "tune": 1}
    bursty = fitted(cv.TopicModel(2, **BURSTY | few), data)
    later = fitted(cv.TopicModel(2, start=bursty, **POISSON | few), data)
    assert "p" not in later.posterior["posterior"]
    assert "p" in fitted(cv.TopicModel(2, start=later, **BURSTY | few), data).posterior["posterior"]


def test_a_file_without_its_likelihood_is_refused(data):
    fit = fitted(cv.TopicModel(2, **POISSON | {"draws": 2, "tune": 1}), data)
    tree = fit.posterior.copy()
    parameters = json.loads(tree.attrs["parameters"])
    del parameters["likelihood"], parameters["dispersion"]
    tree.attrs["parameters"] = json.dumps(parameters)
    with pytest.raises(ValueError, match="with likelihood negative-binomial, got 'poisson'"):
        from_tree(cv.TopicModel, tree)
