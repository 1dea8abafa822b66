"""Topics with covariates: fitted, saved, resumed, refused; the formula is a parameter."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone

import countveil as cv
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
    np.testing.assert_allclose(
        theta.sum(axis=2).mean(), sizes.sum(axis=2).mean(), rtol=0.3
    )  # topics go along


def test_rows_go_by_their_labels(fit):
    again = model(draws=4, tune=4).fit(counts(), covariates=FRAME.iloc[::-1])
    other = model(draws=4, tune=4).fit(counts(), covariates=FRAME)
    xr.testing.assert_identical(again.posterior["posterior"].dataset, other.posterior["posterior"].dataset)


def test_a_fit_comes_back_from_its_file(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    found = cv.TopicModel.load(tmp_path / "fit.nc")
    np.testing.assert_allclose(found.covariates_.design, fit.covariates_.design)
    pd.testing.assert_frame_equal(
        found.contrast({"party": "R"}, {"party": "D"}), fit.contrast({"party": "R"}, {"party": "D"})
    )
    pd.testing.assert_frame_equal(found.effects(), fit.effects())
    found.save(tmp_path / "again.nc")
    assert cv.TopicModel.load(tmp_path / "again.nc").effects().equals(fit.effects())


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
        (lambda tree: with_fact(tree, levels=[["R", "D"], None]), "fitted with, got others"),
        (lambda tree: with_other_ages(tree), "fitted with, got others"),
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
    with pytest.raises(ValueError, match="other"):
        model(**small).fit(
            counts(), covariates=FRAME.assign(age=FRAME.age[::-1].to_numpy()), checkpoint=path, resume=True
        )


@pytest.mark.parametrize(
    ("made", "given", "said"),
    [
        (lambda: cv.TopicModel(2, **SHORT), FRAME, "covariates go with prevalence"),
        (lambda: cv.TensorModel(2, **SHORT), FRAME, "covariates go with prevalence"),
        (model, None, "covariates must be given with prevalence"),
        (lambda: model(method="cavi"), FRAME, "prevalence goes with method 'gibbs'"),
        (lambda: model(method="augmented-gibbs"), FRAME, "prevalence goes with method 'gibbs'"),
        (lambda: model(n_topics="auto"), FRAME, "n_topics must be a number with prevalence"),
        (lambda: model(prior_rate=1.0), FRAME, "prior_rate must be None with prevalence"),
        (lambda: model(prevalence=3), FRAME, "prevalence must be a formula"),
        (model, FRAME.assign(party="D"), "covariate 'party' must vary between rows, got 'D' in all of them"),
    ],
)  # fmt: skip
def test_what_goes_with_covariates(made, given, said):
    with pytest.raises(ValueError, match=said):
        made().fit(counts(), covariates=given)


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
    assert all(vars(fit)[name] is before[name] for name in before if name != "_waiting")
