"""scikit-learn's own checks of estimators, and its conventions where data say what was done to them."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import countveil as cv
from countveil.inference.diagnostics import FitWarning

pytestmark = pytest.mark.long

BRIEF = {
    "likelihood": "poisson", "draws": 2, "tune": 2, "chains": 1, "alpha": 0.5, "seed": 0, "threads": 1,
    "progress": False,
}  # fmt: skip
BOTH = (
    "fit_transform is the posterior of the fit's own rows, in which rows and columns move together; transform is "
    "a Monte Carlo estimate for new rows given the columns"
)
STREAM = "the rows' random numbers go by their place in X: transform agrees up to its Monte Carlo error only"
WHOLE = "the check's data are kernels, which are fractions: counts have to be whole"
OF_TRANSFORMERS = {
    "check_transformer_data_not_an_array": BOTH,
    "check_transformer_general": BOTH,
    "check_methods_sample_order_invariance": STREAM,
    "check_methods_subset_invariance": STREAM,
}
OF_NETWORKS = dict.fromkeys(
    [
        "check_estimators_overwrite_params",
        "check_positive_only_tag_during_fit",
        "check_pipeline_consistency",
        "check_estimators_pickle",
    ],
    WHOLE,
)
SKIPPED = {"check_array_api_input", "check_estimators_fit_returns_self"}  # the array API is asked for by none
MUST_PASS = {
    "check_estimator_cloneable",
    "check_no_attributes_set_in_init",
    "check_estimators_dtypes",
    "check_estimators_nan_inf",
    "check_estimator_sparse_array",
    "check_n_features_in",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_dict_unchanged",
    "check_set_params",
}


BRIEFEST = BRIEF | {"draws": 1, "tune": 1}


class WholeNumbers:
    """Asks the checks for whole numbers, which they make only for what is called categorical."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


class Topics(WholeNumbers, cv.TopicModel):
    pass


class Tensor(WholeNumbers, cv.TensorModel):
    pass


class Blocks(WholeNumbers, cv.BlockModel):
    pass


class Dynamic(WholeNumbers, cv.DynamicModel):
    pass


class AnyModel(WholeNumbers, cv.PoissonFactorization):
    pass


COUNTED = (1, 9)  # the version of scikit-learn whose checks are counted below; later ones may have more
VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


@pytest.mark.skipif(VERSION < COUNTED, reason="older checks of whole numbers subtract fractions in place")
@pytest.mark.parametrize(
    ("estimator", "expected", "number"),
    [
        (Topics(2, **BRIEFEST), OF_TRANSFORMERS, 46),
        (Topics(2, **BRIEFEST | {"alpha": 0.0}), OF_TRANSFORMERS, 47),
        (Tensor(2, **BRIEFEST), OF_TRANSFORMERS, 46),
        (Blocks(2, **BRIEFEST), OF_NETWORKS, 41),
        (Dynamic(2, **BRIEFEST), {}, 40),
        (AnyModel("dk,vk->dv", {"k": 2}, **BRIEFEST | {"method": cv.EM(max_iter=3)}), {}, 40),
    ],
    ids=["topics", "topics of true counts", "tensor", "blocks", "dynamic", "any, by em"],
)
def test_scikit_learns_own_checks(estimator, expected, number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FitWarning)
        found = check_estimator(estimator, on_fail=None, on_skip=None)
    by_status = {status: [] for status in ("passed", "failed", "skipped", "xfail")}
    for each in found:
        by_status[each["status"]].append(each["check_name"])
    unexpected = [
        (each["check_name"], each["exception"])
        for each in found
        if each["status"] == "failed" and each["check_name"] not in expected
    ]
    assert not unexpected
    assert set(by_status["failed"]) == set(expected)
    assert set(by_status["skipped"]) <= SKIPPED
    assert set(by_status["passed"]) >= MUST_PASS
    ran = len(by_status["passed"]) + len(by_status["failed"])
    assert ran == number if VERSION == COUNTED else ran >= number


COUNTS = np.random.default_rng(0).poisson(2.0, (6, 5))
FRAME = pd.DataFrame(COUNTS, index=list("uvwxyz"), columns=list("abcde"))


def test_names_of_columns_are_kept_and_asked_for_again():
    for fit in (cv.TopicModel(2, **BRIEF), cv.TensorModel(2, **BRIEF)):
        fit.fit(FRAME)
        assert fit.feature_names_in_.tolist() == list("abcde")
        assert fit.transform(FRAME.iloc[:2]).shape == (2, 2)
        with pytest.raises(ValueError, match=r"in their order, got 'b' for 'a' at (word|mode1) 0"):
            fit.transform(FRAME[list("bacde")])
        assert not hasattr(fit.fit(COUNTS), "feature_names_in_")
    with pytest.raises(ValueError, match=r"columns of the fit, 3 x 2, got 2 x 3"):
        fit.fit(COUNTS[:, [0]].repeat(6, 1).reshape(6, 3, 2)).transform(np.zeros((6, 2, 3), dtype=int))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dok", "lil", "bsr", "dia"])
def test_sparse_matrices_of_every_form_are_their_dense_form(form):
    given = sp.csr_array(COUNTS).asformat(form)
    wanted = cv.TopicModel(2, **BRIEF).fit(COUNTS)
    np.testing.assert_array_equal(cv.TopicModel(2, **BRIEF).fit(given).components_, wanted.components_)


def test_what_is_hidden_in_a_masked_array_stays_hidden():
    masked = np.ma.masked_array(COUNTS, COUNTS == 3)
    wanted = cv.TopicModel(2, **BRIEF).fit(cv.PrivatizedCounts(COUNTS, 0.5, mask=COUNTS == 3))
    np.testing.assert_array_equal(cv.TopicModel(2, **BRIEF).fit(masked).components_, wanted.components_)


def test_iterations_are_counted():
    assert cv.TopicModel(2, **BRIEF, method=cv.Gibbs(thin=3)).fit(COUNTS).n_iter_ == 2 + 3 * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        assert cv.TopicModel(2, **BRIEF, method=cv.CAVI(max_iter=3)).fit(COUNTS).n_iter_ == 3


def test_what_an_estimator_takes_depends_on_its_noise_level():
    assert cv.TopicModel(alpha=0.0).__sklearn_tags__().input_tags.positive_only
    assert not cv.TopicModel(alpha=0.5).__sklearn_tags__().input_tags.positive_only
    assert cv.BlockModel().__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="Negative values in data") as caught:
        cv.TopicModel(2, **BRIEF | {"alpha": 0.0}).fit([[1, -77], [0, 0]])
    assert "77" not in str(caught.value)
