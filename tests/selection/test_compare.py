"""Cross-validation: what is hidden, how it is scored, and that a seed gives the same bits however it is run."""

import errno
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

import countveil as cv
from countveil.fit.base import FactorizationEstimator
from countveil.inference.folds import stacking_weights
from countveil.selection import compare as comparing_function
from countveil.selection.compare import Comparison, Scored, read, standard_error, write

ALPHA = 0.4
SHORT = {"draws": 6, "tune": 4, "threads": 1}


@pytest.fixture(scope="module")
def reports():
    rng = np.random.default_rng(1)
    counts = rng.poisson(rng.gamma(0.5, 6.0, (12, 2)) @ rng.dirichlet(np.full(9, 0.3), 2))
    return counts + rng.geometric(1 - ALPHA, counts.shape) - rng.geometric(1 - ALPHA, counts.shape)


@pytest.fixture
def fitted(monkeypatch):
    """What every fit was given."""
    seen, fit = [], FactorizationEstimator.fit

    def noted(self, X, *args, **options):
        seen.append((self, X))
        return fit(self, X, *args, **options)

    monkeypatch.setattr(FactorizationEstimator, "fit", noted)
    return seen


def models(likelihood=None, **options):
    return [cv.TopicModel(k, likelihood=likelihood, **options) for k in (1, 2)]


def probability(report, rate, p):
    """P(max(report, 0)), counts summed out one by one; p is 0 for Poisson counts."""
    y = np.arange(200)
    counts = stats.poisson.pmf(y, rate) if p == 0.0 else stats.nbinom.pmf(y, -rate / np.log1p(-p), 1.0 - p)
    noise = (1 - ALPHA) * ALPHA ** np.abs(report - y) if report > 0 else ALPHA**y
    return counts @ noise / (1 + ALPHA)


def many_draws(early, late):
    halves, draws = (np.log(np.mean(early)), np.log(np.mean(late))), [*early, *late]
    return min(2.0 * np.log(np.mean(draws)) - np.mean(halves), np.log(np.max(draws)))


@pytest.mark.long
def test_the_score_is_the_log_of_the_mean_probability_extrapolated_to_many_draws_and_chains(reports):
    data = cv.PrivatizedCounts(reports, ALPHA)
    found = cv.compare(data, [cv.TopicModel(2, likelihood="poisson", chains=2), cv.TopicModel(2)], 3, 5, **SHORT)
    own = np.flatnonzero(found.folds == 1)
    mask = np.zeros(reports.shape, dtype=bool)
    mask[found.rows[own], found.columns[own]] = True
    assert own.size == mask.sum() == 36
    seed = int(np.random.SeedSequence(5).spawn(4)[2].generate_state(1, np.uint64)[0] >> 1)  # of this fold's fits
    for m, likelihood in enumerate(("poisson", "negative-binomial")):
        fit = cv.TopicModel(2, likelihood=likelihood, chains=2, method=cv.Gibbs(thin=2), seed=seed, **SHORT)
        draws = fit.fit(cv.PrivatizedCounts(reports, ALPHA, mask)).posterior["posterior"].dataset
        theta, phi = (np.concatenate(draws[name].to_numpy()).astype(float) for name in ("theta", "phi"))
        p = np.concatenate(draws["p"].to_numpy()) if m else np.zeros((len(theta), reports.shape[1]))
        for cell in own:
            d, v = found.rows[cell], found.columns[cell]
            each = [probability(reports[d, v], theta[s, d] @ phi[s, :, v], p[s, v]) for s in range(12)]
            wanted = many_draws(each[:3] + each[6:9], each[3:6] + each[9:])  # of both chains
            if m:  # whose own fits have twelve
                alone = [many_draws(each[c : c + 3], each[c + 3 : c + 6]) for c in (0, 6)]
                wanted += (1.0 - 2.0 / 12.0) * (wanted - np.mean(alone))
            assert found.scores[m, cell] == pytest.approx(min(wanted, np.log(np.max(each))), rel=1e-6)


@pytest.mark.long
def test_scores_are_about_the_chains_that_a_model_asks_for(reports):
    data, each = (cv.PrivatizedCounts(reports, ALPHA), [cv.TopicModel(2, chains=n) for n in (1, 2, 4)])
    one, two, four = cv.compare(data, each, 3, 5, **SHORT).scores
    assert one.mean() < two.mean()
    more, told = four - two, 0.5 * (two - one)
    as_told = np.isclose(more, told, atol=1e-12)
    assert as_told.mean() > 0.5
    assert (more < told)[~as_told].all()  # no score is above the largest of a draw
    alone = cv.compare(data, each, 3, 5, chains=1, **SHORT).scores
    np.testing.assert_array_equal(alone[0], alone[2])
    for method in ("em", "cavi"):  # without chains
        fitted = [cv.TopicModel(2, chains=n, method=method) for n in (1, 4)]
        few, many = cv.compare(data, fitted, 3, 5, **SHORT).scores
        np.testing.assert_array_equal(few, many)
    for wrong in ("four", None, 2.5, 0):
        with pytest.raises(ValueError, match=r"chains must be a whole number( of at least 1| or .auto.), got"):
            cv.compare(data, models(chains=wrong), 3, 5, **SHORT)


@pytest.mark.long
def test_all_models_have_the_same_folds_and_never_see_them(reports, fitted):
    mask = np.zeros(reports.shape, dtype=bool)
    mask[3, :4] = True
    data = cv.PrivatizedCounts(reports, ALPHA, mask)
    found = cv.compare(data, models(), 4, 1, **SHORT)
    assert found.rows.size == reports.size - 4
    assert not mask[found.rows, found.columns].any()
    assert len(fitted) == 8
    hidden = {}  # by the seed, which is that of the fold
    for model, training in fitted:
        unseen = training.cells(found.rows, found.columns)[0] < 0
        assert (training.cells(*np.nonzero(mask))[0] < 0).all()
        (fold,) = np.unique(found.folds[unseen])
        assert (unseen == (found.folds == fold)).all()
        hidden.setdefault(model.seed, []).append((fold, model.n_topics))
    assert sorted(sorted(each) for each in hidden.values()) == [[(f, 1), (f, 2)] for f in range(4)]
    assert data.n_masked == 4


@pytest.mark.long
@pytest.mark.parametrize("model", ["blocks", "any"])
def test_both_cells_of_an_undirected_pair_are_hidden_together(fitted, model):
    upper = np.triu(np.random.default_rng(2).poisson(3.0, (7, 7)), 1)
    data = cv.PrivatizedCounts(upper + upper.T, ALPHA)
    if model == "blocks":
        given = [cv.BlockModel(c, directed=False) for c in (1, 2)]
    else:
        symmetric = {"shared": {"jd": "ic"}, "symmetric": ["cd"], "method": "gibbs"}
        given = [cv.PoissonFactorization("ic,jd,cd->ij", {"c": c, "d": c}, **symmetric) for c in (1, 2)]
    found = cv.compare(data, given, 3, 1, **SHORT)
    off = found.rows != found.columns
    assert off.sum() == 21
    assert (found.rows <= found.columns).all()
    for _, training in fitted:
        there = training.cells(found.rows[off], found.columns[off])[0] < 0
        back = training.cells(found.columns[off], found.rows[off])[0] < 0
        assert 0 < there.sum() < 21
        assert (back | ~there).all()
        if model == "any":
            assert (back == there).all()


@pytest.mark.long
def test_directed_pairs_are_cells_of_their_own_and_self_loops_are_not_scored(fitted):
    counts = np.random.default_rng(2).poisson(3.0, (6, 6))
    found = cv.compare(
        cv.PrivatizedCounts(counts, ALPHA), [cv.BlockModel(2), cv.BlockModel(2, self_loops=True)], 2, 1, **SHORT
    )
    assert list(found.names) == ["self_loops=False", "self_loops=True"]
    assert found.rows.size == 30
    assert (found.rows != found.columns).all()
    back = fitted[0][1].cells(found.columns, found.rows)[0] < 0
    there = fitted[0][1].cells(found.rows, found.columns)[0] < 0
    assert (back != there).any()


@pytest.mark.long
def test_tensors_levels_by_row_and_truncated_sparse_reports(reports):
    tensor = cv.PrivatizedCounts(reports.reshape(12, 3, 3), ALPHA)
    found = cv.compare(tensor, [cv.TensorModel(k) for k in (1, 2)], 2, 1, **SHORT)
    assert found.columns.max() == 8
    levels = np.linspace(0.2, 0.5, 12)
    whole = cv.compare(cv.PrivatizedCounts(reports, levels), models("poisson"), 2, 1, **SHORT)
    positive = sp.csr_array(np.maximum(reports, 0))
    truncated = cv.compare(cv.PrivatizedCounts(positive, levels), models("poisson"), 2, 1, **SHORT)
    np.testing.assert_array_equal(whole.scores, truncated.scores)


@pytest.mark.long
def test_a_seed_gives_the_same_bits_with_any_number_of_workers(reports):
    data = cv.PrivatizedCounts(reports, ALPHA)
    one = cv.compare(data, models(), 2, 7, **SHORT)
    two = cv.compare(data, models(), 2, 7, **SHORT | {"threads": 2})
    np.testing.assert_array_equal(one.scores, two.scores)
    other = cv.compare(data, models(), 2, 8, **SHORT)
    assert (one.scores != other.scores).any()
    # Nor does a model's score depend on the others, their order or its own seed.
    alone = cv.compare(data, [cv.TopicModel(2, seed=3, threads=2)], 2, 7, **SHORT)
    np.testing.assert_array_equal(alone.scores[0], one.scores[1])


@pytest.mark.long
def test_short_settings_replace_the_models_own_unless_they_are_none(reports, fitted):
    data = cv.PrivatizedCounts(reports, ALPHA)
    own = cv.TopicModel(1, draws=3, tune=2, chains=3)
    cv.compare(data, [own], 2, 1, draws=None, tune=None, chains=None, threads=1)
    cv.compare(data, [own], 2, 1, draws=4, tune=1, threads=1)
    found = [(model.draws, model.tune, model.chains) for model, _ in fitted]
    assert found == [(3, 2, 3)] * 2 + [(4, 1, 2)] * 2
    assert not hasattr(own, "posterior_")


@pytest.mark.long
def test_it_goes_on_after_an_interruption_to_the_same_bits(reports, tmp_path, monkeypatch):
    data, path = cv.PrivatizedCounts(reports, ALPHA), tmp_path / "kept.npz"
    whole = cv.compare(data, models(), 3, 7, **SHORT)
    fit, made = FactorizationEstimator.fit, []

    def third_is_interrupted(self, X, *args, **options):
        made.append(self)
        if len(made) == 3:
            raise KeyboardInterrupt
        return fit(self, X, *args, **options)

    monkeypatch.setattr(FactorizationEstimator, "fit", third_is_interrupted)
    with pytest.raises(KeyboardInterrupt):
        cv.compare(data, models(), 3, 7, checkpoint=path, **SHORT)
    with pytest.raises(FileExistsError, match=r"kept.npz, which exists: give resume=True"):
        cv.compare(data, models(), 3, 7, checkpoint=path, **SHORT)
    done = len(made)
    again = cv.compare(data, models(), 3, 7, checkpoint=path, resume=True, **SHORT)
    assert len(made) - done < 6
    np.testing.assert_array_equal(again.scores, whole.scores)
    done = len(made)
    once_more = cv.compare(data, models(), 3, 7, checkpoint=path, resume=True, **SHORT)
    assert len(made) == done
    np.testing.assert_array_equal(once_more.seconds, again.seconds)
    for other in (
        lambda: cv.compare(data, models(), 3, 8, checkpoint=path, resume=True, **SHORT),
        lambda: cv.compare(data, models("poisson"), 3, 7, checkpoint=path, resume=True, **SHORT),
        lambda: cv.compare(data, models(), 4, 7, checkpoint=path, resume=True, **SHORT),
        lambda: cv.compare(data, models(chains=8), 3, 7, checkpoint=path, resume=True, **SHORT),
        lambda: cv.compare(data, models(), 3, 7, checkpoint=path, resume=True, **SHORT | {"draws": 5}),
        lambda: cv.compare(
            cv.PrivatizedCounts(reports + 1, ALPHA), models(), 3, 7, checkpoint=path, resume=True, **SHORT
        ),
    ):
        with pytest.raises(ValueError, match="got one of a different comparison"):
            other()


@pytest.mark.long
def test_a_fit_that_fails_is_reported_and_not_hidden(reports, monkeypatch):
    data, fit = cv.PrivatizedCounts(reports, ALPHA), FactorizationEstimator.fit

    def fails(self, X, *args, **options):
        if self.n_topics == 2:
            raise FloatingPointError("lost")
        return fit(self, X, *args, **options)

    monkeypatch.setattr(FactorizationEstimator, "fit", fails)
    found = cv.compare(data, models(), 2, 1, **SHORT)
    assert found.best == "n_topics=1"
    assert found.table.set_index("model")["score"].isna().tolist() == [False, True]
    assert "n_topics=2 was not scored: its fit without fold 1 failed (FloatingPointError: lost)." in found.verdict
    with pytest.raises(ValueError, match=r"at least one that can be fitted, got . that failed, the first with: .*lost"):
        cv.compare(data, models()[1:], 2, 1, **SHORT)


@pytest.mark.long
def test_scores_that_are_not_finite_are_failures(reports, monkeypatch):
    module = sys.modules[comparing_function.__module__]
    monkeypatch.setattr(module, "log_mean_extrapolated", lambda scores, *_: next(scores) - np.inf)
    with pytest.raises(ValueError, match="a score that is not finite"):
        cv.compare(cv.PrivatizedCounts(reports, ALPHA), models(), 2, 1, **SHORT)


@pytest.mark.long
def test_the_number_of_topics_that_was_planted_is_found():
    rng = np.random.default_rng(4)
    topics = np.kron(np.eye(3), np.full(6, 1 / 6))
    counts = rng.poisson(60.0 * rng.dirichlet(np.full(3, 0.2), 40) @ topics)
    release = cv.simulate_release(counts, cv.PrivacyLevel(2, 1), rng)
    given = [cv.TopicModel(k, likelihood="poisson") for k in (1, 3, 6)]
    found = cv.compare(release, given, 3, 1, draws=20, tune=40)
    assert found.best == "n_topics=3"
    assert "n_topics=1" not in found.level


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": 1}, "folds must be a whole number of at least 2, got 1"),
        ({"folds": 2.0}, "folds must be a whole number of at least 2, got 2.0"),
        ({"draws": 0}, "draws must be a whole number of at least 1, got 0"),
        ({"thin": 0}, "thin must be a whole number of at least 1, got 0"),
        ({"tune": -1}, "tune must be a whole number of at least 0, got -1"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        (
            {"resume": True},
            r"resume \(--resume\) must come with checkpoint \(--checkpoint\), the file to continue from, got none",
        ),
        ({"checkpoint": "kept.npz"}, "checkpoint must come with a seed"),
    ],
)
def test_what_makes_no_sense_is_refused(reports, arguments, message):
    with pytest.raises(ValueError, match=message):
        cv.compare(cv.PrivatizedCounts(reports, ALPHA), models(), **arguments)


@pytest.mark.long
def test_a_checkpoint_that_cannot_be_written_is_a_warning(reports, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(sys.modules[comparing_function.__module__], "write", full)
    data = cv.PrivatizedCounts(reports, ALPHA)
    with pytest.warns(RuntimeWarning, match=r"kept.npz cannot be written \(No space left on device\)"):
        found = cv.compare(data, models()[:1], 2, 1, checkpoint=tmp_path / "kept.npz", **SHORT)
    assert np.isfinite(found.scores).all()


@pytest.mark.long
def test_a_checkpoint_that_is_no_path_is_refused(reports):
    with pytest.raises(TypeError, match="checkpoint must be a path, got int"):
        cv.compare(reports, [cv.TopicModel(1), cv.TopicModel(2)], seed=1, checkpoint=3)


@pytest.mark.long
def test_a_checkpoint_in_no_folder_is_refused(reports, tmp_path):
    with pytest.raises(FileNotFoundError, match="checkpoint must go to a folder that exists"):
        cv.compare(cv.PrivatizedCounts(reports, ALPHA), models(), seed=1, checkpoint=tmp_path / "no" / "kept.npz")


@pytest.mark.long
def test_models_with_covariates_are_compared_with_models_without(reports, fitted, tmp_path):
    labels = [f"text {d}" for d in range(12)]
    data = cv.PrivatizedCounts(reports, ALPHA, row_labels=labels)
    people = pd.DataFrame({"party": list("RD" * 6), "age": np.arange(12.0)}, labels)
    both = {"plain": cv.TopicModel(2), "party": cv.TopicModel(2, prevalence="~ party")}
    kept = {"folds": 2, "seed": 1, "checkpoint": tmp_path / "kept.npz", **SHORT}
    found = cv.compare(data, both, covariates=people.iloc[::-1], **kept)
    assert not found.failures
    assert np.isfinite(found.scores).all()
    with_party = [model for model, _ in fitted if model.prevalence]
    assert len(with_party) == 2
    for model in with_party:
        assert model.covariates_.frame["party"].tolist() == people["party"].tolist()
    other = people.assign(party=list("DDR" * 4))
    with pytest.raises(ValueError, match="checkpoint"):
        cv.compare(data, both, covariates=other, resume=True, **kept)
    with pytest.raises(ValueError, match="covariates must be given with prevalence '~ party', got none"):
        cv.compare(data, both)
    with pytest.raises(ValueError, match="covariates require prevalence, a formula that one of the models has"):
        cv.compare(data, [cv.TopicModel(2)], covariates=people)


DONE = {
    (0, 0): Scored(np.array([-1.0, -2.0]), 1.5),
    (0, 1): Scored(np.full(3, np.nan), 0.5, "failed"),
    (1, 1): Scored(np.array([-0.5, -0.25, -1.0]), 2.5),
}
SIZES = {(0, 0): 2, (0, 1): 3, (1, 0): 2, (1, 1): 3}


def test_what_is_written_is_read_except_what_failed(tmp_path):
    path = tmp_path / "kept.npz"
    write(path, "mark", DONE)
    found = read(path, "mark", SIZES)
    assert list(found) == [(0, 0), (1, 1)]
    for place, scored in found.items():
        np.testing.assert_array_equal(scored.scores, DONE[place].scores)
        assert scored.seconds == DONE[place].seconds
    assert [each.name for each in tmp_path.iterdir()] == ["kept.npz"]


def test_another_comparison_s_file_is_refused(tmp_path):
    write(tmp_path / "kept.npz", "mark", DONE)
    with pytest.raises(
        ValueError, match=r"kept.npz must come from the same data, models and seed, got one of a different"
    ):
        read(tmp_path / "kept.npz", "other", SIZES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", "must be a file that compare wrote"),
        ({"fingerprint": "mark"}, "must be a file that compare wrote"),
        ({"format": 99, "fingerprint": "mark"}, "must be a file that compare wrote, got: format 99, not 2"),
        (
            {"format": 2, "fingerprint": "mark", "scores_0_0": np.zeros(3)},
            r"must hold 2 finite scores of model 0 and fold 0, with one time, got float64 of shape \(3,\): delete it",
        ),
        (
            {"format": 2, "fingerprint": "mark", "scores_0_0": np.array([0.0, np.inf])},
            "must hold 2 finite scores .* got scores that are not finite",
        ),
        ({"format": 2, "fingerprint": "mark", "scores_0_0": np.zeros(2, int)}, "2 finite scores .* got int64"),
    ],
)
def test_damaged_files_are_refused(tmp_path, content, message):
    path = tmp_path / "kept.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, **content)
    with pytest.raises(ValueError, match=message):
        read(path, "mark", SIZES)


ROWS = np.repeat(np.arange(10), 6)
COLUMNS = np.tile(np.arange(6), 10)


def comparison(scores, failures=(), names=("5", "10", "20", "50")):
    return Comparison(
        names[: len(scores)], np.array(scores), ROWS, COLUMNS, COLUMNS % 2, np.arange(1.0, len(scores) + 1),
        tuple({"n_topics": k} for k in (5, 10, 20, 50))[: len(scores)], 1,
        dict(failures),
    )  # fmt: skip


@pytest.fixture
def found():
    """20 is best, 10 is tied with it, 5 and 50 are worse."""
    rng = np.random.default_rng(2)
    base = rng.normal(-1.0, 0.5, 60)
    rows = rng.normal(0.0, 0.3, 10)[ROWS]
    return comparison([base - 1.0 + 0.1 * rng.normal(size=60), base - 0.01 + rows - rows.mean(), base,
                       base - 0.5 + rows - rows.mean()])  # fmt: skip


def test_standard_errors_are_those_of_sums_over_rows_and_columns():
    """Against the definition: every two cells of one row or of one column count with their product."""
    rng = np.random.default_rng(1)
    gaps = rng.normal(size=60) + rng.normal(size=10)[ROWS] + rng.normal(size=6)[COLUMNS]
    gaps -= gaps.mean()

    def sum_where(together, factor):
        return factor * sum(gaps[i] * gaps[j] for i in range(60) for j in range(60) if together(i, j))

    by_row = sum_where(lambda i, j: ROWS[i] == ROWS[j], 10 / 9)
    by_column = sum_where(lambda i, j: COLUMNS[i] == COLUMNS[j], 6 / 5)
    by_cell = sum_where(lambda i, j: i == j, 60 / 59)
    assert standard_error(gaps, ROWS, COLUMNS) == pytest.approx(np.sqrt(by_row + by_column - by_cell) / 60)
    # Without dependence, the usual error of a mean: cells on a diagonal.
    every = np.arange(60)
    assert standard_error(gaps, every, every) == pytest.approx(gaps.std(ddof=1) / np.sqrt(60))
    assert standard_error(np.zeros(60), ROWS, COLUMNS) == 0.0


def test_a_standard_error_is_at_least_that_of_cells():
    gaps = np.where(COLUMNS % 2 == 0, 1.0, -1.0)  # sums over rows are zero
    usual = gaps.std(ddof=1) / np.sqrt(60)
    assert standard_error(gaps, ROWS, np.arange(60)) == pytest.approx(usual)


def test_the_table_has_differences_from_the_best_per_thousand_cells(found):
    table = found.table.set_index("model")
    assert list(table.columns) == ["score", "difference", "standard_error", "seconds", "n_topics"]
    np.testing.assert_allclose(table["score"], 1000 * found.scores.mean(axis=1))
    np.testing.assert_allclose(table["difference"], table["score"] - table.loc["20", "score"])
    error = 1000 * standard_error(found.scores[1] - found.scores[2], ROWS, COLUMNS)
    assert table.loc["10", "standard_error"] == pytest.approx(error)
    assert table.loc["20", ["difference", "standard_error"]].tolist() == [0.0, 0.0]
    assert table["n_topics"].tolist() == [5, 10, 20, 50]


def test_the_verdict_names_the_best_the_level_and_how_much_worse_the_others_are(found):
    assert (found.best, found.level) == ("20", ("10", "20"))
    table = found.table.set_index("model")
    by = [-table.loc[name, "difference"] / table.loc[name, "standard_error"] for name in ("5", "50")]
    assert found.verdict == (
        "20 predicts held-out reports best. 10 is tied with it. "
        f"5 is worse by {by[0]:.1f} standard errors. 50 is worse by {by[1]:.1f} standard errors."
    )
    assert repr(found) == f"{found.table.round(3).to_string(index=False)}\n{found.verdict}"


def test_a_model_that_failed_has_no_score_and_is_never_level():
    base = np.random.default_rng(1).normal(size=60)
    found = comparison([base, np.full(60, np.nan)], {"10": "its fit failed"})
    assert found.best == "5"
    assert found.level == ("5",)
    assert found.table["score"].isna().tolist() == [False, True]
    assert found.verdict == "5 predicts held-out reports best. 10 was not scored: its fit failed."


def test_a_notebook_shows_names_as_text(found):
    base = found.scores[0]
    html = comparison([base, base - 1.0], names=("<b>", "b"))._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "per 1,000 cells" in html


def test_it_cannot_be_changed(found):
    with pytest.raises(AttributeError):
        found.seed = 2


def test_it_is_drawn(found):
    ax = found.plot()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["5", "10", "20", "50"]


def test_models_have_the_weights_of_stacking():
    scores = np.log(np.random.default_rng(1).dirichlet(np.ones(4), 60)[:, :3]).T
    scores[1] = np.nan
    found = comparison(scores, {"10": "no fit"}, ("5", "10", "20")).weights
    assert found.index.tolist() == ["5", "10", "20"]
    assert found["10"] == 0.0
    np.testing.assert_allclose(found[["5", "20"]], stacking_weights(scores[[0, 2]].T))


def test_one_model_alone_is_not_called_the_best():
    found = comparison(np.log([[0.5, 0.2]]), names=("n_topics=3",))
    assert found.verdict == "There is only one model, n_topics=3: compare it with others."
