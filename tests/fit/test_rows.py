"""Topics with covariates: fitted, saved, resumed, refused; the formula is a parameter."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone

import countveil as cv
from countveil.models.priors import DatedRowsPrior
from tests.dates import LABELS, TIME, YEARS
from tests.dates import SHORT as DATED_SHORT
from tests.dates import counts as dated_counts
from tests.dates import model as dated_model
from tests.dates import the_fit as the_dated_fit
from tests.effects import FRAME, SHORT, counts, model, the_fit


@pytest.fixture(scope="module")
def fit():
    return the_fit()


def test_the_formula_is_a_parameter(fit):
    assert fit.get_params()["prevalence"] == "~ party + age"
    assert "prevalence='~ party + age'" in repr(fit)
    assert clone(fit).get_params()["prevalence"] == "~ party + age"
    assert cv.TopicModel(3).get_params()["prevalence"] is None
    assert cv.TopicModel(3).set_params(prevalence="~ z").get_params()["prevalence"] == "~ z"


def test_the_posterior_has_shapes_rates_and_coefficients(fit):
    draws = fit.posterior["posterior"]
    assert draws["theta_effect"].dims == ("chain", "draw", "term", "topic")
    assert draws["term"].to_numpy().tolist() == ["party[T.R]", "age"]
    assert draws["theta_shape"].dims == draws["theta_rate"].dims == ("chain", "draw", "topic")
    assert draws["phi_shape"].dims == ("chain", "draw")
    theta = draws["theta"].to_numpy()
    slopes = np.einsum("dp,cspk->csdk", fit.covariates_.design, draws["theta_effect"].to_numpy())
    sizes = (draws["theta_shape"] / draws["theta_rate"]).to_numpy()[:, :, None] * np.exp(slopes)
    np.testing.assert_allclose(theta.sum(axis=2).mean(), sizes.sum(axis=2).mean(), rtol=0.3)  # topics go along


def test_rows_go_by_their_labels(fit):
    again = model(draws=4, tune=4).fit(counts(), covariates=FRAME.iloc[::-1])
    other = model(draws=4, tune=4).fit(counts(), covariates=FRAME)
    xr.testing.assert_identical(again.posterior["posterior"].dataset, other.posterior["posterior"].dataset)


def test_a_fit_comes_back_from_its_file(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    found = cv.TopicModel.load(tmp_path / "fit.nc")
    np.testing.assert_allclose(found.covariates_.design, fit.covariates_.design)
    pd.testing.assert_frame_equal(
        found.effects.contrast({"party": "R"}, {"party": "D"}), fit.effects.contrast({"party": "R"}, {"party": "D"})
    )
    pd.testing.assert_frame_equal(found.effects.table(), fit.effects.table())
    found.save(tmp_path / "again.nc")
    assert cv.TopicModel.load(tmp_path / "again.nc").effects.table().equals(fit.effects.table())


def with_fact(tree, **facts):
    tree.attrs["covariates"] = json.dumps(json.loads(tree.attrs["covariates"]) | facts)


def with_other_ages(tree):
    ages = tree["covariates"]["column1"].values
    ages[[0, 1]] = ages[[1, 0]]


def with_formula(tree, formula):
    """The tree with another formula among its parameters."""
    tree.attrs["parameters"] = tree.attrs["parameters"].replace("~ party + age", formula)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tree: tree["posterior"]["theta_effect"].values.__imul__(1e4), "coefficients"),
        (lambda tree: with_fact(tree, names=["age", "party"]), r"formula|numbers|text|terms"),
        (lambda tree: with_fact(tree, levels=[["R", "D"], None]), "fitted with, of checksums .* got"),
        (lambda tree: with_other_ages(tree), "fitted with, of checksums .* got"),
        (lambda tree: with_formula(tree, "~ open(party)"), "may call"),
        (lambda tree: with_formula(tree, "~ party"), "must"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_is_refused(fit, change, said, tmp_path):
    tree = fit.posterior.copy(deep=True)
    change(tree)
    broken = clone(fit)
    broken.posterior_ = tree
    broken.save(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match=said):
        cv.TopicModel.load(tmp_path / "fit.nc")


def test_chains_go_on_from_a_checkpoint_with_the_same_covariates_alone(tmp_path):
    path, small = tmp_path / "chains.npz", {"draws": 4, "tune": 4}
    model(**small).fit(counts(), covariates=FRAME, checkpoint=path)
    again = model(**small).fit(counts(), covariates=FRAME, checkpoint=path, resume=True)
    plain = model(**small).fit(counts(), covariates=FRAME)
    np.testing.assert_array_equal(
        again.posterior["posterior"]["theta_effect"], plain.posterior["posterior"]["theta_effect"]
    )
    with pytest.raises(ValueError, match="data or settings that differ"):
        model(**small).fit(
            counts(), covariates=FRAME.assign(age=FRAME.age[::-1].to_numpy()), checkpoint=path, resume=True
        )


@pytest.mark.parametrize(
    ("made", "given", "said"),
    [
        (lambda: cv.TopicModel(2, **SHORT), FRAME, "covariates require prevalence"),
        (lambda: cv.TensorModel(2, **SHORT), FRAME, "covariates require prevalence"),
        (model, None, "covariates must be given with prevalence"),
        (lambda: model(method="cavi"), FRAME, "prevalence requires method 'gibbs'"),
        (lambda: model(method="augmented-gibbs"), FRAME, "prevalence requires method 'gibbs'"),
        (lambda: model(n_topics="auto"), FRAME, "n_topics must be a number with prevalence"),
        (lambda: model(prior_rate=1.0), FRAME, "prior_rate must be None with prevalence"),
        (lambda: model(prevalence=3), FRAME, "prevalence must be a formula"),
        (model, FRAME.assign(party="D"), "covariate 'party' must vary between rows, got 'D' in all of them"),
    ],
)  # fmt: skip
def test_what_goes_with_covariates(made, given, said):
    with pytest.raises(ValueError, match=said):
        made().fit(counts(), covariates=given)


def test_later_rows_do_not_go_with_a_formula():
    with pytest.raises(ValueError, match="prevalence requires method 'gibbs'"):
        model(method="svi").partial_fit(counts())


def test_new_rows_are_refused_in_words(fit):
    with pytest.raises(ValueError, match="transform needs a prior"):
        fit.transform(counts())


def test_levels_keep_their_order_in_files(tmp_path):
    frame = FRAME.assign(party=pd.Categorical(FRAME["party"], ["R", "D"]))
    fit = model(draws=4, tune=4).fit(counts(), covariates=frame)
    assert fit.covariates_.terms == ("party[T.D]", "age")
    fit.save(tmp_path / "fit.nc")
    found = cv.TopicModel.load(tmp_path / "fit.nc")
    assert found.covariates_.terms == fit.covariates_.terms
    np.testing.assert_array_equal(found.covariates_.design, fit.covariates_.design)


def test_a_refit_that_fails_leaves_the_fit_as_it_was(monkeypatch):
    fit = model(draws=4, tune=4).fit(counts(), covariates=FRAME)
    before = dict(vars(fit))
    monkeypatch.setattr("countveil.fit.base.fit", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit.fit(counts(), covariates=FRAME.assign(age=FRAME["age"] ** 2))
    assert vars(fit).keys() == before.keys()
    assert all(vars(fit)[name] is before[name] for name in before)


DATED_SWEEPS = {"draws": 4, "tune": 4}


@pytest.fixture(scope="module")
def dated():
    return the_dated_fit()


@pytest.mark.long
def test_the_posterior_has_the_chain_over_time(dated):
    draws = dated.posterior["posterior"]
    assert draws["theta_over_time"].dims == ("chain", "draw", "time", "topic")
    assert draws["time"].to_numpy().tolist() == list(range(1990, 1990 + YEARS))
    assert dated.posterior["dates"]["step"].to_numpy().tolist() == (TIME - 1990).tolist()
    np.testing.assert_allclose(draws["phi"].sum("word"), 1.0, rtol=1e-5)
    assert "theta over time" in dated.diagnostics().table.index


def test_the_chain_goes_along_with_its_topics(dated):
    """In every chain, a topic's shares in documents follow its own column of the chain."""
    theta, x = (dated.posterior["posterior"][f"theta{end}"].to_numpy() for end in ("", "_over_time"))
    own = (theta / theta.sum(axis=3, keepdims=True)).mean(axis=1)
    step = dated.dates_.step
    by_date = np.stack([own[:, step == t].mean(axis=1) for t in np.unique(step)], axis=1)
    expected = (x / x.sum(axis=3, keepdims=True)).mean(axis=1)[:, np.unique(step)]
    for c in range(2):
        for k in range(3):
            distance = ((by_date[c, :, k, None] - expected[c]) ** 2).sum(axis=0)
            assert int(np.argmin(distance)) == k


def test_dates_go_by_the_labels_of_rows():
    again = dated_model(**DATED_SWEEPS).fit(dated_counts(), time=TIME.iloc[::-1])
    other = dated_model(**DATED_SWEEPS).fit(dated_counts(), time=list(TIME))
    third = dated_model(**DATED_SWEEPS).fit(dated_counts(), time=dict(zip(LABELS, TIME.astype(str), strict=True)))
    for each in (again, third):
        xr.testing.assert_identical(each.posterior["posterior"].dataset, other.posterior["posterior"].dataset)


def test_a_fit_with_dates_comes_back_from_its_file(dated, tmp_path):
    dated.save(tmp_path / "fit.nc")
    found = cv.TopicModel.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(found.dates_.step, dated.dates_.step)
    assert found.dates_.names == dated.dates_.names
    pd.testing.assert_frame_equal(found.effects.over_time(), dated.effects.over_time())
    assert found.diagnostics().verdict == dated.diagnostics().verdict


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tree: tree["posterior"]["theta_over_time"].values.__imul__(-1.0), "positive numbers"),
        (lambda tree: tree["dates"]["step"].values.__iadd__(3), "step from 0 to 7"),
        (lambda tree: tree["dates"]["step"].values.__ifloordiv__(2), "dates of rows that its model was fitted with"),
        (lambda tree: tree.children["dates"].orphan(), "must hold dates of rows"),
        (lambda tree: tree.attrs.update(model=with_steps(tree, 7)), "name each of 2 to 1000 steps"),
        (lambda tree: tree.attrs.update(model=with_steps(tree, "8")), "name each of 2 to 1000 steps"),
    ],
)  # fmt: skip
def test_a_file_whose_dates_do_not_fit_is_refused(dated, change, said, tmp_path):
    tree = dated.posterior.copy(deep=True)
    change(tree)
    broken = clone(dated)
    broken.posterior_ = tree
    broken.save(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match=said):
        cv.TopicModel.load(tmp_path / "fit.nc")


def with_steps(tree, n_steps):
    """The facts of the model, with another number of steps."""
    facts = json.loads(tree.attrs["model"])
    own = next(each["prior"] for each in facts["factors"] if each["prior"]["kind"] == "gamma-with-dates")
    own["n_steps"] = n_steps
    return json.dumps(facts)


def test_chains_go_on_from_a_checkpoint_with_the_same_dates_alone(tmp_path):
    path = tmp_path / "chains.npz"
    dated_model(**DATED_SWEEPS).fit(dated_counts(), time=TIME, checkpoint=path)
    again = dated_model(**DATED_SWEEPS).fit(dated_counts(), time=TIME, checkpoint=path, resume=True)
    plain = dated_model(**DATED_SWEEPS).fit(dated_counts(), time=TIME)
    for name in ("theta_over_time", "theta"):
        np.testing.assert_array_equal(again.posterior["posterior"][name], plain.posterior["posterior"][name])
    with pytest.raises(ValueError, match="data or settings that differ"):
        dated_model(**DATED_SWEEPS).fit(dated_counts(), time=TIME.iloc[::-1].to_numpy(), checkpoint=path, resume=True)


def test_a_fit_without_dates_forgets_those_of_the_fit_before():
    found = dated_model(**DATED_SWEEPS).fit(dated_counts(), time=TIME).fit(dated_counts())
    assert found.dates_ is None
    assert "theta_over_time" not in found.posterior["posterior"]
    assert not any(isinstance(factor.prior, DatedRowsPrior) for factor in found.model_.factors)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: cv.TensorModel(2, **DATED_SHORT), "time requires a TopicModel"),
        (lambda: dated_model(method="cavi"), "time requires method 'gibbs'"),
        (lambda: dated_model(method="augmented-gibbs"), "time requires method 'gibbs'"),
        (lambda: dated_model(n_topics="auto"), "n_topics must be a number with time"),
        (lambda: dated_model(prior_rate=1.0), "prior_rate must be None with time"),
        (lambda: dated_model(seeds={"a": ["w0"]}), "seeds must be None with time"),
    ],
)  # fmt: skip
def test_what_goes_with_dates(made, said):
    with pytest.raises(ValueError, match=said):
        made().fit(dated_counts(), time=TIME)


def test_dates_do_not_go_with_covariates():
    with pytest.raises(ValueError, match="prevalence must be None with time"):
        dated_model(prevalence="~ year").fit(dated_counts(), covariates=TIME.to_frame("year"), time=TIME)


def test_new_rows_are_refused_where_rows_have_dates(dated):
    with pytest.raises(ValueError, match="transform needs a prior"):
        dated.transform(dated_counts())


def test_known_topics_stay_while_their_shares_move(dated):
    known = dated_model(known_topics=dated, **DATED_SWEEPS).fit(dated_counts(), time=TIME)
    phi = known.posterior["posterior"]["phi"].to_numpy()
    np.testing.assert_allclose(phi[0, 0], phi[1, 3])
    assert known.effects.over_time().shape == dated.effects.over_time().shape
