import itertools
import os
import re
import signal
import threading

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import countveil as cv
from countveil import DynamicModel, TopicModel
from countveil.common import fit_files
from countveil.data.observations import ExactCounts, NaiveCounts, PrivatizedCounts
from countveil.data.simulation import simulate_release
from countveil.evaluation.topics import match_topics, topic_error
from countveil.fit import results
from countveil.inference import draws, gibbs, posterior, run, scoring
from countveil.inference.posterior import label_free
from countveil.privacy import PrivacyLevel
from tests import hostile
from tests.joint import draw_reports, planted

SHORT = {"draws": 20, "tune": 20, "chains": 2, "seed": 1, "progress": False}
STUDIED = {"likelihood": "poisson", "tune": 60, "chains": 1, "seed": 1, "progress": False}
WORDS = ["Käse", "水", "naïve", "a b", "слово", "", "word", "λ"]
DOCS = [f"Döküment {d}" for d in range(12)]


def small_data(labelled=True):
    counts = np.random.default_rng(1).poisson(2.0, (12, 8))
    labels = {"row_labels": DOCS, "column_labels": WORDS} if labelled else {}
    return simulate_release(counts, PrivacyLevel(1, 1), np.random.default_rng(2), truncate=False, **labels)


def test_a_notebook_is_shown_a_fit_by_its_sizes(fit):
    shown = fit._repr_html_()
    assert "TopicModel, fitted" in shown
    assert "12 doc × 8 word" in shown
    assert f"alpha {np.exp(-1.0):.4g}, simulated: protects nobody" in shown
    assert "2 × 20, method gibbs, seed 1" in shown
    assert not any(label in shown for label in (*DOCS, "Käse"))
    assert fit._repr_mimebundle_()["text/html"] == shown
    assert "fitted</strong>" not in TopicModel(3)._repr_html_()
    naive = TopicModel(2, **SHORT).fit(NaiveCounts(small_data()))
    assert "noisy reports, treated as true counts" in naive._repr_html_()


@pytest.fixture(scope="module")
def fit():
    return TopicModel(3, **SHORT).fit(small_data())


@pytest.fixture(scope="module")
def study():
    """(mu, topics, signed reports, fit of ours) on planted topics."""
    mu, topics, observations, reports = planted(200, 60, 4, np.exp(-0.5), seed=3)
    ours = TopicModel(4, draws=50, **STUDIED).fit(observations)
    return mu, topics, reports, ours


def test_parameters_are_got_set_and_cloned():
    model = TopicModel(7, draws=11, prior_rate=0.5)
    assert model.get_params()["n_topics"] == 7
    assert model.set_params(draws=12) is model
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert clone(TopicModel(3, **SHORT).fit(small_data())).get_params()["draws"] == 20


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.posterior,
        lambda m: m.rate(),
        lambda m: m.top_words(),
        lambda m: m.diagnostics(),
        lambda m: m.transform(small_data()),
        lambda m: m.get_feature_names_out(),
        lambda m: m.save("never-written"),
    ],
)
def test_before_fit_everything_says_so(use):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        use(TopicModel())


def test_fit_returns_itself_and_leaves_its_parameters_alone():
    model = TopicModel(3, **SHORT)
    before = model.get_params()
    assert model.fit(small_data()) is model
    assert model.get_params() == before
    assert model.seed_ == 1
    assert model.interrupted_ is False
    assert model.fit_seconds_ > 0.0


def mean_burst(draws):
    """The mean count of a burst, from every draw of p."""
    p = draws["p"].astype(float)
    return p / (-np.log1p(-p) * (1.0 - p))


def test_the_posterior_has_named_dims_and_the_labels_of_the_data(fit):
    draws = fit.posterior["posterior"]
    assert draws["theta"].dims == ("chain", "draw", "doc", "topic")
    assert draws["phi"].dims == ("chain", "draw", "topic", "word")
    assert draws["theta"].shape == (2, 20, 12, 3)
    assert draws["phi"].shape == (2, 20, 3, 8)
    assert draws["doc"].values.tolist() == DOCS
    assert draws["word"].values.tolist() == WORDS
    assert fit.feature_names_in_.tolist() == WORDS
    assert fit.n_features_in_ == 8
    words = draws["phi"].astype(float) * mean_burst(draws)
    shares, same = (words / words.sum("word")).mean("draw").to_numpy(), fit._reader.chains_alike("k")
    for k, own in fit._reader.numbered("k"):
        every = [shares[c, j] for c, j in zip(own.chains, own.components, strict=True)]
        np.testing.assert_allclose(fit.components_[k], np.mean(every, axis=0), rtol=1e-5)
    assert same[0][1].tolist() == [0, 1, 2]
    assert fit.posterior.attrs["seed"] == 1
    assert fit.posterior.attrs["observations"] == "private"


def test_words_without_labels_are_numbered():
    found = TopicModel(2, **SHORT).fit(small_data(labelled=False))
    assert found.posterior["posterior"]["word"].values.tolist() == list(range(8))
    assert not hasattr(found, "feature_names_in_")
    assert found.top_words(2)["word"].isin(range(8)).all()


def test_rate_is_the_mean_of_theta_phi(fit):
    draws = fit.posterior["posterior"]
    words = draws["phi"].astype(float) * mean_burst(draws)
    slow = xr.dot(draws["theta"].astype(float), words, dim="topic").mean(("chain", "draw"))
    np.testing.assert_allclose(fit.rate(), slow.transpose("doc", "word"), rtol=1e-5)
    assert fit.rate().sel(doc="Döküment 3", word="水").ndim == 0


def test_top_words_are_ordered_and_inside_their_intervals(fit):
    table = fit.top_words(5)
    assert isinstance(table, pd.DataFrame)
    assert table.columns.tolist() == ["topic", "prevalence", "rank", "word", "probability", "lower", "upper"]
    assert len(table) == 15
    assert (table["lower"] <= table["probability"]).all()
    assert (table["probability"] <= table["upper"]).all()
    for _, part in table.groupby("topic"):
        assert part["probability"].is_monotonic_decreasing
    assert table["topic"].is_monotonic_increasing
    wide, narrow = fit.top_words(5, interval=0.95), fit.top_words(5, interval=0.5)
    assert (wide["upper"] - wide["lower"] > narrow["upper"] - narrow["lower"]).all()


@pytest.mark.parametrize(("call", "message"), [
    (lambda f: f.top_words(0), "n must be a whole number of at least 1, got 0"),
    (lambda f: f.top_words(2.5), "n must be a whole number of at least 1, got 2.5"),
    (lambda f: f.top_words(interval=1.0), "interval must be between 0 and 1, got 1.0"),
    (lambda f: f.top_words(interval="0.9"), "interval must be between 0 and 1, got '0.9'"),
    (lambda f: f.top_words(interval=None), "interval must be between 0 and 1, got None"),
])  # fmt: skip
def test_top_words_refuses_what_makes_no_sense(fit, call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(fit)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_topics", 0),
        ("n_topics", 2.0),
        ("n_topics", True),
        ("method", "magic"),
        ("draws", 0),
        ("draws", 2.5),
        ("tune", -1),
        ("chains", 0),
        ("threads", 0),
        ("threads", 1.5),
        ("seed", -1),
        ("seed", "1"),
        ("prior_shape", 0.0),
        ("prior_shape", np.nan),
        ("prior_shape", "a"),
        ("prior_rate", -1.0),
        ("prior_rate", np.inf),
    ],
)
def test_bad_parameters_are_named_with_their_value(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be .*got {re.escape(repr(value))}$"):
        TopicModel(**{**SHORT, name: value}).fit(small_data())


@pytest.mark.parametrize(("method", "draws"), [("gibbs", 50), ("cavi", 500)])
def test_the_usual_number_of_draws_goes_by_the_method(method, draws):
    options = SHORT | {"draws": None, "chains": 1, "tune": 1}
    fit = TopicModel(2, method=method, likelihood="poisson", **options).fit(small_data())
    assert fit.posterior["posterior"].sizes["draw"] == draws


@pytest.mark.long
def test_parameters_may_be_numpy_numbers(tmp_path):
    model = TopicModel(np.int64(2), **{**SHORT, "draws": np.int32(5)}, prior_shape=np.float32(0.25))
    model.fit(small_data()).save(tmp_path / "fit.nc")
    assert TopicModel.load(tmp_path / "fit.nc").n_topics == 2


@pytest.mark.parametrize("alpha", [pd.Series([0.1, 0.5]), np.array([0.1, 0.5]), np.array(0.5), "0.5", True])
def test_an_alpha_of_the_model_is_a_number(alpha):
    message = rf"alpha must be a number in \[0, 1\) or None, got {type(alpha).__name__}: .*PrivatizedCounts\(X, alpha\)"
    with pytest.raises(ValueError, match=message):
        cv.TopicModel(2, alpha=alpha).fit(np.ones((2, 2)))


@pytest.mark.parametrize("data", [np.ones((3, 4), dtype=int), [[1, 2]], sp.csr_array((3, 4)), pd.DataFrame([[1]])])
def test_reports_without_alpha_are_refused(data):
    with pytest.raises(TypeError, match="alpha"):
        TopicModel(2, **SHORT).fit(data)


def test_the_same_seed_gives_the_same_fit_with_any_number_of_threads(fit):
    again = TopicModel(3, **SHORT, threads=1).fit(small_data())
    spread = TopicModel(3, **SHORT, threads=2).fit(small_data())
    for name in ("theta", "phi", "theta_rate", "phi_rate"):
        for other in (again, spread):
            np.testing.assert_array_equal(other.posterior["posterior"][name], fit.posterior["posterior"][name])


def test_without_a_seed_one_is_taken_and_kept():
    options = {**SHORT, "seed": None}
    one, other = TopicModel(2, **options).fit(small_data()), TopicModel(2, **options).fit(small_data())
    assert one.seed_ != other.seed_
    assert one.seed is None
    again = TopicModel(2, **{**SHORT, "seed": one.seed_}).fit(small_data())
    np.testing.assert_array_equal(again.rate(), one.rate())


def test_signed_and_truncated_reports_give_the_same_fit():
    reports = small_data().reports
    signed = TopicModel(2, **SHORT).fit(PrivatizedCounts(reports, 0.5))
    truncated = TopicModel(2, **SHORT).fit(PrivatizedCounts(sp.csr_array(np.maximum(reports, 0)), 0.5))
    np.testing.assert_array_equal(signed.rate(), truncated.rate())


@pytest.mark.long
@pytest.mark.parametrize("reports", [np.zeros((5, 4), dtype=int), np.full((3, 1), -2), np.array([[1]])])
def test_data_without_anything_in_it_can_be_fitted(reports):
    found = TopicModel(3, **SHORT).fit(PrivatizedCounts(reports, 0.5))
    assert np.isfinite(found.rate()).all()
    assert np.isfinite(found.top_words()["prevalence"]).all()
    assert found.diagnostics().verdict


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_a_prior_that_drives_factors_to_nothing_still_gives_numbers():
    reports = np.random.default_rng(4).integers(-3, 6, (6, 1))
    found = TopicModel(3, **{**SHORT, "draws": 150}, prior_shape=0.01).fit(PrivatizedCounts(reports, 0.5))
    assert np.isfinite(found.rate()).all()
    assert np.isfinite(found.components_).all()
    assert np.isfinite(found.top_words()["prevalence"]).all()


@pytest.mark.long
def test_planted_topics_are_found_where_the_naive_way_fails(study):
    mu, topics, reports, ours = study
    naive = TopicModel(4, draws=20, **STUDIED).fit(NaiveCounts(reports))
    error = {name: topic_error(topics, f.components_) for name, f in (("ours", ours), ("naive", naive))}
    mae = {name: np.abs(f.rate() - mu).mean().item() for name, f in (("ours", ours), ("naive", naive))}
    assert error["ours"] < 0.5 * error["naive"]
    assert mae["ours"] < 0.5 * mae["naive"]
    assert error["ours"] < 0.1


@pytest.mark.long
def test_new_documents_get_the_topics_they_were_made_of(study):
    _, topics, _, ours = study
    rng = np.random.default_rng(5)
    theta = rng.gamma(0.3, 1.0, (40, 4)) * 600.0
    order = match_topics(topics, ours.components_)
    for level in (0.0, np.exp(-0.5)):
        reports = draw_reports(theta @ topics, np.asarray(level), rng)
        found = ours.transform(PrivatizedCounts(reports, level))[:, order]
        assert found.shape == theta.shape
        assert np.corrcoef(found.ravel(), theta.ravel())[0, 1] > 0.99
        slope = (found * theta).sum() / (theta**2).sum()
        assert slope == pytest.approx(1.0, abs=0.05)
    np.testing.assert_array_equal(ours.transform(PrivatizedCounts(reports, level))[:, order], found)


@pytest.mark.long
def test_documents_of_the_fit_transformed_again_are_close_to_their_fit(study):
    _, _, reports, ours = study
    theta = ours.posterior["posterior"]["theta"].mean(("chain", "draw"))
    again = ours.transform(PrivatizedCounts(reports, np.exp(-0.5)))
    assert np.corrcoef(again.ravel(), theta.values.ravel())[0, 1] > 0.995


def test_transform_takes_words_the_fit_gave_no_weight():
    counts = np.random.default_rng(6).integers(0, 6, (10, 6))
    counts[:, 5] = 0
    options = {**SHORT, "draws": 100, "chains": 1}
    found = TopicModel(2, **options, prior_shape=0.01, prior_rate=1.0).fit(ExactCounts(counts))
    new = np.zeros((2, 6), dtype=int)
    new[:, 5] = 40, 3
    assert np.isfinite(found.transform(ExactCounts(new))).all()


def test_transform_refuses_other_words(fit):
    with pytest.raises(ValueError, match="X must have the columns of the fit, 8, got 5"):
        fit.transform(PrivatizedCounts(np.ones((2, 5), dtype=int), 0.5))
    swapped = [WORDS[1], WORDS[0], *WORDS[2:]]
    with pytest.raises(ValueError, match="in their order, got '水' for 'Käse' at word 0"):
        fit.transform(PrivatizedCounts(np.ones((2, 8), dtype=int), 0.5, column_labels=swapped))
    with pytest.raises(TypeError, match="alpha"):
        fit.transform(np.ones((2, 8)))
    assert fit.transform(PrivatizedCounts(np.ones((2, 8), dtype=int), 0.5)).shape == (2, 3)


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"dispersion": "column"}, {"dispersion": "row"}, {"likelihood": "poisson"}])
def test_fit_transform_is_the_mean_of_expected_counts(options):
    model = TopicModel(3, **SHORT | {"chains": 1}, **options)
    found = model.fit_transform(small_data())
    draws = model.posterior["posterior"]
    counts = draws["theta"].astype(float) * draws["phi"].astype(float)
    if "likelihood" not in options:
        counts = counts * mean_burst(draws)
    slow = counts.sum("word").mean(("chain", "draw"))
    np.testing.assert_allclose(found, slow.transpose("doc", "topic"), rtol=1e-5)
    assert model.get_feature_names_out().tolist() == ["topic0", "topic1", "topic2"]


@pytest.mark.long
def test_it_works_at_either_end_of_a_pipeline():
    first = make_pipeline(TopicModel(3, **SHORT), StandardScaler()).fit(small_data())
    np.testing.assert_allclose(first.fit_transform(small_data()).mean(axis=0), 0.0, atol=1e-12)
    assert first.transform(small_data()).shape == (12, 3)
    wrap = FunctionTransformer(lambda reports: PrivatizedCounts(reports, np.exp(-1.0)))
    last = make_pipeline(wrap, TopicModel(3, **SHORT)).fit(small_data().reports)
    np.testing.assert_array_equal(last[-1].rate(), TopicModel(3, **SHORT).fit(small_data(labelled=False)).rate())
    assert last.transform(small_data().reports).shape == (12, 3)


def test_transform_can_put_out_a_data_frame(fit):
    found = clone(fit).set_output(transform="pandas").fit(small_data()).transform(small_data())
    assert found.columns.tolist() == ["topic0", "topic1", "topic2"]


def test_chains_need_not_agree_on_dispersions_that_make_no_difference():
    found = TopicModel(2, **{**SHORT, "draws": 8}).fit(small_data())
    p = found.posterior["posterior"]["p"]
    p[:] = np.linspace(0.001, 0.2, p.size).reshape(p.shape)
    np.testing.assert_array_equal(label_free(*found._fitted())["p"], np.maximum(p, 0.05))


def test_chains_stop_by_the_numbers_of_the_verdict(monkeypatch):
    apart = []
    right = run.unsteadiness

    def kept(*arguments):
        apart.append(right(*arguments))
        return apart[-1]

    monkeypatch.setattr(run, "unsteadiness", kept)
    monkeypatch.setattr(draws, "ROUNDS", (2, 3))
    monkeypatch.setattr(run, "R_HAT_NESTED", np.inf)
    stopped = TopicModel(3, **SHORT | {"chains": "auto"}).fit(small_data())
    assert stopped.posterior["posterior"].sizes["chain"] == 2
    table = stopped.diagnostics().table["r_hat_nested"].drop("log-likelihood")
    assert apart == pytest.approx([table.max()])
    fixed = TopicModel(3, **SHORT).fit(small_data())
    xr.testing.assert_equal(stopped.posterior["posterior"].dataset, fixed.posterior["posterior"].dataset)
    monkeypatch.setattr(run, "R_HAT_NESTED", 0.0)
    assert TopicModel(3, **SHORT | {"chains": "auto"}).fit(small_data()).posterior["posterior"].sizes["chain"] == 3


@pytest.mark.long
def test_chains_stop_by_every_quantity_of_the_verdict(monkeypatch):
    looked_at, right = [], posterior.nested
    monkeypatch.setattr(posterior, "nested", lambda *given: looked_at.append(given[0]) or right(*given))
    monkeypatch.setattr(draws, "ROUNDS", (2, 3))
    monkeypatch.setattr(run, "R_HAT_NESTED", np.inf)
    x = pd.DataFrame({"x": np.arange(12.0)}, index=DOCS)
    dates = pd.Series(np.arange(12) // 3 + 1990, index=DOCS)
    options = SHORT | {"chains": "auto"}
    for model, beside in (
        (TopicModel(2, **options), {}),
        (TopicModel(2, prevalence="~ x", **options), {"covariates": x}),
        (TopicModel(2, **options), {"time": dates}),
        (DynamicModel(2, levels=True, **options), {}),
    ):
        looked_at.clear()
        wanted = label_free(*model.fit(small_data(), **beside)._fitted())
        del wanted["log-likelihood"]
        sums = sorted(float(np.sum(values)) for values in wanted.values())
        assert sorted(float(np.sum(values)) for values in looked_at) == pytest.approx(sums, rel=1e-4)


def test_diagnostics_cover_label_free_quantities(fit):
    found = fit.diagnostics()
    assert found.table.index.tolist() == [
        "log-likelihood", "total rate", "rate of each doc", "rate of each word", "p", "p_mean",
        "p_concentration", "shape of theta", "shape of phi",
    ]  # fmt: skip
    assert np.isfinite(found.table.to_numpy()).all()


def test_a_saved_fit_comes_back_whole(fit, tmp_path):
    path = tmp_path / "fit.nc"
    fit.save(path)
    back = TopicModel.load(path)
    assert back.get_params() == fit.get_params()
    assert (back.seed_, back.interrupted_, back.fit_seconds_) == (fit.seed_, False, fit.fit_seconds_)
    assert back.feature_names_in_.tolist() == WORDS
    assert back.posterior["posterior"]["doc"].values.tolist() == DOCS
    for group in ("posterior", "sample_stats", "constant_data"):
        xr.testing.assert_equal(back.posterior[group].dataset, fit.posterior[group].dataset)
    np.testing.assert_array_equal(back.transform(small_data()), fit.transform(small_data()))
    pd.testing.assert_frame_equal(back.top_words(), fit.top_words(), check_dtype=False)
    assert os.listdir(tmp_path) == ["fit.nc"]
    back.save(str(path))
    assert TopicModel.load(str(path)).seed_ == fit.seed_


def test_a_write_that_fails_leaves_what_was_there(fit, tmp_path, monkeypatch):
    path = tmp_path / "fit.nc"
    fit.save(path)
    before = path.read_bytes()

    def half(self, target, **_):
        with open(target, "wb") as file:
            file.write(b"half of it")
        raise OSError("disk full")

    monkeypatch.setattr(xr.DataTree, "to_netcdf", half)
    with pytest.raises(OSError, match="disk full"):
        fit.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["fit.nc"]


def bad_files(fit, folder):
    fit.save(folder / "whole.nc")
    whole = (folder / "whole.nc").read_bytes()
    yield "empty", b""
    yield "text", b"no fit at all"
    yield "cut short", whole[: len(whole) // 2]
    with h5py.File(folder / "other.nc", "w") as file:
        file["numbers"] = [1, 2, 3]
    fit_files.seal(folder / "other.nc")
    yield "another file of its format", (folder / "other.nc").read_bytes()
    for name, attribute, value in (
        ("another estimator", "estimator", "Other"),
        ("unknown parameters", "parameters", '{"n_topics": 3, "unknown": 1}'),
        ("broken parameters", "parameters", "{"),
    ):
        changed = hostile.changed(folder / "whole.nc", folder / "changed.nc", hostile.fact(attribute, value))
        yield name, changed.read_bytes()


def test_what_is_no_fit_is_refused_by_name(fit, tmp_path):
    for name, content in bad_files(fit, tmp_path):
        path = tmp_path / "bad.nc"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.nc"):
            pytest.fail(f"loaded {name}: {TopicModel.load(path)}")
    with pytest.raises(FileNotFoundError, match="absent"):
        TopicModel.load(tmp_path / "absent.nc")


def test_an_interrupted_fit_holds_its_draws_and_says_so(monkeypatch, tmp_path):
    step = gibbs.step

    def interrupting(state, *rest):
        if state.sweep == 60:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return step(state, *rest)

    monkeypatch.setattr(gibbs, "step", interrupting)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    model = TopicModel(2, draws=100_000, tune=5, chains=1, seed=1, progress=False)
    try:
        with pytest.warns(UserWarning, match="interrupted"):
            assert model.fit(small_data()) is model
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.interrupted_ is True
    assert 55 <= model.posterior["posterior"].sizes["draw"] < 50_000
    model.save(tmp_path / "fit.nc")
    assert TopicModel.load(tmp_path / "fit.nc").interrupted_ is True


def test_chains_that_disagree_are_told_of(monkeypatch):
    init = gibbs.init

    def in_its_own_place(plan, model, streams, engine, start):
        starts.append(1)
        state = init(plan, model, streams, engine, start)
        return state._replace(factors=(np.full_like(state.factors[0], 10.0 ** len(starts)), state.factors[1]))

    starts = []
    monkeypatch.setattr(gibbs, "init", in_its_own_place)
    monkeypatch.setattr(gibbs, "step", lambda state, *_: (state._replace(sweep=state.sweep + 1), gibbs.Info(1.0)))
    wobble = itertools.cycle(range(7))
    log_likelihood = lambda factors, *_: float(factors[0].sum() + next(wobble))  # noqa: E731
    monkeypatch.setattr(scoring, "log_likelihood", log_likelihood)
    with pytest.warns(ConvergenceWarning, match="the chains differ"):
        fit = TopicModel(2, **{**SHORT, "draws": 100}, threads=1).fit(small_data())
    assert fit.totals().far_off  # which chains that differ explain, and are told first
    assert fit.diagnostics().verdict.startswith("Not safe yet: the chains differ")


def test_fits_too_short_to_be_judged_are_not_diagnosed_until_somebody_asks(monkeypatch):
    """A diagnosis takes half as long as such a fit does without it."""
    whole, asked = results.diagnosed, []
    monkeypatch.setattr(results, "diagnosed", lambda own: asked.append(own) or whole(own))
    fit = TopicModel(3, **SHORT).fit(small_data())
    assert not asked
    assert fit.diagnostics().verdict
    assert asked == [fit]


def test_progress_can_be_shown(capsys):
    TopicModel(2, **{**SHORT, "progress": True}).fit(small_data())
    assert "40/40 sweeps" in capsys.readouterr().err


def test_simulated_noise_is_remembered_by_the_fit():
    rng = np.random.default_rng(1)
    counts = rng.poisson(2.0, (6, 5))
    simulated = cv.simulate_release(counts, cv.PrivacyLevel(1, 1), rng)
    options = {"draws": 3, "tune": 2, "chains": 1, "seed": 2**63 + 1}
    assert cv.TopicModel(2, **options).fit(simulated).posterior.attrs["simulated_noise"] == 1
    real = cv.TopicModel(2, **options).fit(cv.privatize(counts, cv.PrivacyLevel(1, 1)))
    assert real.posterior.attrs["simulated_noise"] == 0


def test_a_seed_of_any_size_is_saved(tmp_path):
    fit = cv.TopicModel(2, draws=3, tune=2, chains=1, seed=2**64 + 5).fit(cv.PrivatizedCounts([[1, 2], [3, 4]], 0.5))
    fit.save(tmp_path / "fit.nc")
    assert cv.TopicModel.load(tmp_path / "fit.nc").seed_ == 2**64 + 5


def test_a_refit_without_labels_forgets_the_old_ones():
    options = {"draws": 3, "tune": 2, "chains": 1, "seed": 1}
    fit = cv.TopicModel(2, **options).fit(cv.PrivatizedCounts([[1, 2]], 0.5, column_labels=["a", "b"]))
    assert list(fit.feature_names_in_) == ["a", "b"]
    assert not hasattr(fit.fit(cv.PrivatizedCounts([[1, 2]], 0.5)), "feature_names_in_")


def test_a_true_count_is_never_shown_in_an_error():
    for counts in ([[17.5]], [[-17]]):
        with pytest.raises(ValueError, match="counts") as caught:
            cv.ExactCounts(counts)
        assert "17" not in str(caught.value)


@pytest.mark.parametrize(("threads", "taken"), [(None, 1), (3, 3)])
def test_a_fit_of_few_reports_takes_one_thread_unless_told_otherwise(monkeypatch, threads, taken):
    monkeypatch.setattr("countveil.engines.threads.available_threads", lambda: 8)
    asked = []
    sample = run.sample
    monkeypatch.setattr(
        run, "sample", lambda *given, **options: asked.append(options["threads"]) or sample(*given, **options)
    )
    TopicModel(2, **{**SHORT, "threads": threads}).fit(small_data())
    assert asked == [taken]


@pytest.mark.parametrize("model", [TopicModel, cv.BlockModel, cv.TensorModel, cv.DynamicModel, cv.PoissonFactorization])
def test_a_fit_has_few_public_names_besides_its_parameters(model):
    """Tables go into accessors, and what pages and figures alone read goes into the reader."""
    names = {name for name in dir(model) if not name.startswith("_") and not name.endswith("_")}
    names -= set(model().get_params())  # those that end in _ are what was learned, as scikit-learn has it
    assert len(names) <= 29, sorted(names)
