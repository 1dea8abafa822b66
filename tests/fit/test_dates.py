"""Topics of documents with dates: fitted, saved, resumed, refused."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone

import countveil as cv
from countveil.models.priors import DatedRowsPrior
from tests.dates import LABELS, SHORT, TIME, YEARS, counts, model, the_fit

QUICK = {"draws": 4, "tune": 4}


@pytest.fixture(scope="module")
def fit():
    return the_fit()


@pytest.mark.long
def test_the_posterior_has_the_chain_over_time(fit):
    draws = fit.posterior["posterior"]
    assert draws["theta_over_time"].dims == ("chain", "draw", "time", "topic")
    assert draws["time"].to_numpy().tolist() == list(range(1990, 1990 + YEARS))
    assert fit.posterior["dates"]["step"].to_numpy().tolist() == (TIME - 1990).tolist()
    np.testing.assert_allclose(draws["phi"].sum("word"), 1.0, rtol=1e-5)
    assert "theta over time" in fit.diagnostics().table.index


def test_the_chain_goes_along_with_its_topics(fit):
    """In every chain, a topic's shares in documents follow its own column of the chain."""
    theta, x = (fit.posterior["posterior"][f"theta{end}"].to_numpy() for end in ("", "_over_time"))
    own = (theta / theta.sum(axis=3, keepdims=True)).mean(axis=1)
    step = fit.dates_.step
    by_date = np.stack([own[:, step == t].mean(axis=1) for t in np.unique(step)], axis=1)
    expected = (x / x.sum(axis=3, keepdims=True)).mean(axis=1)[:, np.unique(step)]
    for c in range(2):
        for k in range(3):
            distance = ((by_date[c, :, k, None] - expected[c]) ** 2).sum(axis=0)
            assert int(np.argmin(distance)) == k


def test_rows_go_by_their_labels():
    again = model(**QUICK).fit(counts(), time=TIME.iloc[::-1])
    other = model(**QUICK).fit(counts(), time=list(TIME))
    third = model(**QUICK).fit(counts(), time=dict(zip(LABELS, TIME.astype(str), strict=True)))
    for each in (again, third):
        xr.testing.assert_identical(each.posterior["posterior"].dataset, other.posterior["posterior"].dataset)


@pytest.mark.long
def test_a_fit_comes_back_from_its_file(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    found = cv.TopicModel.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(found.dates_.step, fit.dates_.step)
    assert found.dates_.names == fit.dates_.names
    pd.testing.assert_frame_equal(found.prevalence_over(), fit.prevalence_over())
    assert found.diagnostics().verdict == fit.diagnostics().verdict


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
def test_a_file_that_does_not_fit_is_refused(fit, change, said, tmp_path):
    tree = fit.posterior.copy(deep=True)
    change(tree)
    broken = clone(fit)
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
    model(**QUICK).fit(counts(), time=TIME, checkpoint=path)
    again = model(**QUICK).fit(counts(), time=TIME, checkpoint=path, resume=True)
    plain = model(**QUICK).fit(counts(), time=TIME)
    for name in ("theta_over_time", "theta"):
        np.testing.assert_array_equal(again.posterior["posterior"][name], plain.posterior["posterior"][name])
    with pytest.raises(ValueError, match="other"):
        model(**QUICK).fit(counts(), time=TIME.iloc[::-1].to_numpy(), checkpoint=path, resume=True)


def test_a_fit_without_dates_forgets_those_of_the_fit_before():
    found = model(**QUICK).fit(counts(), time=TIME).fit(counts())
    assert found.dates_ is None
    assert "theta_over_time" not in found.posterior["posterior"]
    assert not any(isinstance(factor.prior, DatedRowsPrior) for factor in found.model_.factors)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: cv.TensorModel(2, **SHORT), "time goes with TopicModel"),
        (lambda: model(method="cavi"), "time goes with method 'gibbs'"),
        (lambda: model(method="augmented-gibbs"), "time goes with method 'gibbs'"),
        (lambda: model(n_topics="auto"), "n_topics must be a number with time"),
        (lambda: model(prior_rate=1.0), "prior_rate must be None with time"),
        (lambda: model(seeds={"a": ["w0"]}), "seeds must be None with time"),
    ],
)  # fmt: skip
def test_what_goes_with_dates(made, said):
    with pytest.raises(ValueError, match=said):
        made().fit(counts(), time=TIME)


def test_dates_do_not_go_with_covariates():
    with pytest.raises(ValueError, match="prevalence must be None with time"):
        model(prevalence="~ year").fit(counts(), covariates=TIME.to_frame("year"), time=TIME)


def test_new_rows_are_refused_in_words(fit):
    with pytest.raises(ValueError, match="transform needs a prior"):
        fit.transform(counts())


def test_known_topics_stay_while_their_shares_move(fit):
    known = model(known_topics=fit, **QUICK).fit(counts(), time=TIME)
    phi = known.posterior["posterior"]["phi"].to_numpy()
    np.testing.assert_allclose(phi[0, 0], phi[1, 3])
    assert known.prevalence_over().shape == fit.prevalence_over().shape
