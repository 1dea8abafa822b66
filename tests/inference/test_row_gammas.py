import h5py
import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.common import fit_files
from countveil.data.simulation import simulate_release
from countveil.fit import documents
from countveil.inference import draws, row_gammas, svi
from countveil.report.page import write_report

OPTIONS = {"draws": 12, "seed": 1, "threads": 1, "progress": False}


def model(keep="summary", **changes):
    return cv.TopicModel(3, method=cv.SVI(passes=2, batch_rows=16, keep=keep), **(OPTIONS | changes))


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(1)
    rate = rng.gamma(0.3, 1.0, (60, 3)) @ rng.dirichlet(np.full(20, 0.1), 3) * 20.0
    words = [f"word{v}" for v in range(20)]
    level = cv.PrivacyLevel(3, 1)
    return simulate_release(rng.poisson(rate), level, rng, truncate=False, column_labels=words)


@pytest.fixture(scope="module")
def pair(release):
    """A fit that keeps draws, and one that keeps a summary, of the same Q with 24 bits in the row factor."""
    whole = svi.whole
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svi, "whole", lambda state, model, fits, kind: whole(state, model, fits, np.float32))
        return model("draws").fit(release), model().fit(release)


def test_draws_that_are_made_again_are_those_that_would_have_been_kept(pair):
    kept, made = pair
    assert "theta" not in made.posterior["posterior"]
    for (ours, _), (theirs, _) in zip(kept._reader.draws(), made._reader.draws(), strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])
    for ours, theirs in zip(kept._reader.even_draws(5), made._reader.even_draws(5), strict=True):
        np.testing.assert_array_equal(ours[0][0], theirs[0][0])
    some = [theta for (theta, _), _ in made._reader.draws()]
    for ours, theirs in zip(made._reader.even_draws(5), np.linspace(0, 11, 5).astype(int), strict=True):
        np.testing.assert_array_equal(ours[0][0], some[theirs])


def test_draws_are_made_some_rows_at_a_time(pair, monkeypatch):
    made = pair[1]
    whole = row_gammas.draw_of(made.posterior, "theta", 3)
    monkeypatch.setattr(row_gammas, "ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(row_gammas.draw_of(made.posterior, "theta", 3), whole)
    shape, rate = np.full((60, 3), 0.5), np.ones((60, 3))
    total = row_gammas.total_of_rows(shape, rate, np.random.default_rng(1))
    np.testing.assert_allclose(total[0], np.random.default_rng(1).standard_gamma(shape).sum(axis=0))


def test_the_sum_of_all_rows_is_that_of_the_draws(pair):
    made = pair[1]
    totals = made.posterior["posterior"]["theta_total"].to_numpy()[0]
    sums = [theta.sum(axis=0) for (theta, _), _ in made._reader.draws()]
    np.testing.assert_allclose(totals, sums, rtol=1e-5)


def test_results_are_those_of_all_draws(pair, release):
    kept, made = pair
    np.testing.assert_allclose(made.rate(), kept.rate(), rtol=1e-6)
    np.testing.assert_allclose(made.fit_transform(release), kept.fit_transform(release), rtol=1e-5)
    np.testing.assert_array_equal(made.transform(release), kept.transform(release))
    for table in (lambda fit: fit.parts.prevalences(), cv.TopicModel.top_words, cv.TopicModel.topics):
        ours, theirs = table(kept), table(made)
        assert "lower" not in theirs  # intervals of svi are not calibrated, whatever it keeps
        pd.testing.assert_frame_equal(theirs, ours, rtol=1e-6)
    ours, theirs = kept.parts.prevalences(uncalibrated=True), made.parts.prevalences(uncalibrated=True)
    pd.testing.assert_frame_equal(theirs, ours, rtol=1e-5)
    assert made.diagnostics().verdict == kept.diagnostics().verdict
    assert made.totals().fitted == pytest.approx(kept.totals().fitted, rel=1e-6)
    np.testing.assert_allclose(
        made.log_predictive(release), kept.log_predictive(release), rtol=1e-6
    )  # a check of many draws


def test_documents_are_those_of_all_draws(pair, monkeypatch):
    kept, made = pair
    calls = {
        "shares": [(), ([59, 3, 3, 17],), ([],)],
        "top": [(0, 5), (2, 60)],
        "similar": [(31, 4)],
        "correlations": [()],
    }
    monkeypatch.setattr(documents, "DOCUMENTS_AT_ONCE", 7)
    for merged in (False, True):
        for name, every in calls.items():
            for given in every:
                ours, theirs = (getattr(fit.documents, name)(*given, uncalibrated=True) for fit in pair)
                pd.testing.assert_frame_equal(theirs, ours, rtol=1e-5, atol=1e-7)
        if not merged:
            kept.parts.merge([1, 2]), made.parts.merge([1, 2])
            calls["top"] = [(0, 5), (1, 60)]
    kept.parts.unmerge(), made.parts.unmerge()
    assert list(made.tables) == list(kept.tables)


def test_totals_leave_masked_cells_out(release):
    mask = np.zeros((60, 20), dtype=bool)
    mask[:30, 0] = True
    data = cv.PrivatizedCounts(release.reports, release.alpha, mask=mask)
    fits = model("draws").fit(data), model().fit(data)
    assert fits[1].totals().fitted == pytest.approx(fits[0].totals().fitted, rel=0.02)
    assert fits[1].totals().fitted < 0.995 * float(fits[1].posterior["sample_stats"]["total_rate"].mean())


def test_means_and_quantiles_of_draws_are_those_of_the_gammas(pair):
    """Q is what is kept: its mean is exact, and 2,000 draws agree with it within Monte Carlo error."""
    tree = pair[1].posterior
    found = tree["optimisation"]
    shape, rate = (found[f"theta_{part}"].to_numpy()[:10] for part in ("shape", "rate"))
    rng = np.random.default_rng(2)
    draws = np.stack([np.vstack(list(row_gammas.drawn_rows(shape, rate, rng))) for _ in range(2000)])
    error = np.sqrt(shape) / rate / np.sqrt(2000)
    assert (np.abs(draws.mean(axis=0) - row_gammas.mean_of(tree, "theta")[:10]) < 5.0 * error).all()


@pytest.mark.parametrize("call", [lambda fit: fit.parts.members("doc"), lambda fit: fit._reader.member_spread("doc")])
def test_what_needs_all_draws_at_once_says_what_to_set(pair, call):
    with pytest.raises(
        ValueError, match=r"all draws of theta must be kept for this, .* fit with method=cv\.SVI\(keep='draws'\)"
    ):
        call(pair[1])


def test_other_methods_keep_draws():
    with pytest.raises(TypeError, match="unexpected keyword argument 'keep'"):
        cv.Gibbs(keep="summary")
    with pytest.raises(ValueError, match=r"keep must be one of \['draws', 'summary'\], got 'all'"):
        model("all").fit(cv.ExactCounts(np.ones((4, 4), int)))


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_tensors_keep_a_summary_too():
    counts = np.random.default_rng(4).poisson(40.0, (30, 3, 4))
    options = {"draws": 5, "seed": 1, "alpha": 0.4, "threads": 1, "progress": False}
    kept, made = (
        cv.TensorModel(2, method=cv.SVI(passes=2, batch_rows=16, keep=keep), **options).fit(counts)
        for keep in ("draws", "summary")
    )
    assert "factor_mode0" not in made.posterior["posterior"]
    np.testing.assert_allclose(made.rate(), kept.rate(), rtol=1e-5)


def test_a_summary_is_saved_read_and_goes_on(pair, release, tmp_path):
    made = pair[1]
    made.save(tmp_path / "fit.nc")
    back = cv.TopicModel.load(tmp_path / "fit.nc")
    assert back.method == made.method == cv.SVI(passes=2, batch_rows=16, keep="summary")
    for (ours, _), (theirs, _) in zip(made._reader.draws(), back._reader.draws(), strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
    pd.testing.assert_frame_equal(back.top_words(), made.top_words(), check_dtype=False)
    whole = model().partial_fit(release)
    whole.save(tmp_path / "part.nc")
    ours, theirs = whole.partial_fit(release), cv.TopicModel.load(tmp_path / "part.nc").partial_fit(release)
    assert ours.posterior["optimisation"].dataset.equals(theirs.posterior["optimisation"].dataset)
    np.testing.assert_array_equal(ours.components_, theirs.components_)


def test_a_report_page_is_made_of_a_summary(pair, release, tmp_path):
    write_report(pair[1], tmp_path / "page.html", release)
    assert "word3" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", ["theta_order", "theta_rate", "theta_size", "theta_total"])
def test_a_broken_summary_is_refused(pair, tmp_path, name):
    pair[1].save(tmp_path / "fit.nc")
    group, bad, rule = {
        "theta_order": ("optimisation", 0.0, "once at theta_order, got"),
        "theta_rate": ("optimisation", -1.0, "numbers of at least 1e-30 at optimisation/theta_rate"),
        "theta_size": ("optimisation", np.nan, "finite numbers of at least 0 at optimisation/theta_size"),
        "theta_total": ("posterior", -1.0, "at posterior/theta_total"),
    }[name]
    with h5py.File(tmp_path / "fit.nc", "r+") as file:
        file[group][name][...] = bad
    fit_files.seal(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match=rule):
        cv.TopicModel.load(tmp_path / "fit.nc")


def test_a_summary_of_another_size_is_refused(pair):
    fit = pair[1]
    model_, layout = fit.model_, fit._layout(fit.model_.spec)
    row_gammas.check_stored(fit.posterior, model_, layout)
    with pytest.raises(ValueError, match=r"theta_shape of shape \(59, 3\)"):
        row_gammas.check_stored(fit.posterior, model_.with_rows(59), layout)


def test_rows_are_finished_some_at_a_time(release, monkeypatch):
    whole = model().fit(release)
    monkeypatch.setattr(svi, "FINISHED_AT_ONCE", 25)
    parts = model().fit(release)
    for name in ("theta_shape", "theta_rate"):
        ours, theirs = (fit.posterior["optimisation"][name] for fit in (whole, parts))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_summary_takes_the_room_of_two_draws(release):
    few, many = (model(draws=n).fit(release).posterior for n in (2, 40))
    per_row = [tree["optimisation"][f"theta_{part}"].nbytes for tree in (few, many) for part in ("shape", "rate")]
    assert per_row == [60 * 3 * 4] * 4
    assert many["posterior"].nbytes - few["posterior"].nbytes < 38 * 60 * 3 * 4  # phi's draws, without theta's


def test_draws_that_do_not_fit_point_to_a_summary(release, monkeypatch):
    monkeypatch.setattr(draws, "available_memory", lambda: 20_000)
    with pytest.raises(MemoryError, match=r"take a smaller draws= or method=cv\.SVI\(keep='summary'\)$"):
        model("draws", draws=40).fit(release)
    model(draws=40).fit(release)


def test_a_summary_is_fitted_from_files(release, tmp_path):
    counts = np.maximum(release.reports, 0)
    level = cv.PrivacyLevel(3, 1)
    paths = cv.privatize_to_files(iter([counts[:40], counts[40:]]), level, tmp_path / "parts", threads=1)
    assert len(paths) == 2
    fit = model().fit(cv.ReleaseFiles(tmp_path / "parts"))
    assert fit.posterior["optimisation"]["theta_shape"].shape == (60, 3)
    assert len(fit.top_words(4)) == 12
