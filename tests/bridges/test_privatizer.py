"""Privatizer: one step of a pipeline, whose noise is that of privatize and cannot be seeded."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import countveil as cv
from countveil.bridges.privatizer import Privatizer
from countveil.privacy import PrivacyLevel, Release

CRITICAL = 1e-8  # the noise cannot be seeded: a false alarm has to be out of the question
TEXTS = ["the cat sat", "the dog sat", "a cat and a dog", "the the the"] * 5
WORDS = ["cat", "dog", "sat", "the"]
BRIEF = {"draws": 2, "tune": 2, "chains": 1, "seed": 1, "progress": False}
COUNTS = np.random.default_rng(0).poisson(2.0, (6, 4))
FRAME = pd.DataFrame(COUNTS, index=list("uvwxyz"), columns=WORDS)


def test_texts_become_private_topics_with_their_words():
    pipe = make_pipeline(
        CountVectorizer(vocabulary=WORDS), Privatizer(1, 1, column_labels=WORDS), cv.TopicModel(2, **BRIEF)
    )
    assert pipe.fit_transform(TEXTS).shape == (20, 2)
    draws = pipe[-1].posterior["posterior"]
    assert draws["word"].to_numpy().tolist() == WORDS
    assert pipe[-1].posterior.attrs["observations"] == "private"
    np.testing.assert_allclose(pipe[-1].posterior["constant_data"]["alpha"], np.exp(-1.0))
    assert pipe.transform(TEXTS[:3]).shape == (3, 2)
    assert pipe[:-1].get_feature_names_out().tolist() == WORDS
    assert pipe.get_feature_names_out().tolist() == ["topic0", "topic1"]


def test_names_of_the_vectorizer_go_through_without_labels():
    pipe = make_pipeline(CountVectorizer(vocabulary=WORDS), Privatizer(1, 1)).fit(TEXTS)
    assert pipe.get_feature_names_out().tolist() == WORDS
    assert pipe.transform(TEXTS).column_labels is None


def test_labels_of_a_table_are_kept_and_tables_come_out_at_the_end():
    pipe = make_pipeline(Privatizer(1, 1), cv.TopicModel(2, **BRIEF)).set_output(transform="pandas")
    assert pipe.fit_transform(FRAME).columns.tolist() == ["topic0", "topic1"]
    draws = pipe[-1].posterior["posterior"]
    assert (draws["doc"].to_numpy().tolist(), draws["word"].to_numpy().tolist()) == (list("uvwxyz"), WORDS)
    assert pipe[-1].feature_names_in_.tolist() == WORDS
    assert pipe.transform(FRAME).shape == (6, 2)
    with sklearn.config_context(transform_output="pandas"):
        release = Privatizer(1, 1).fit_transform(FRAME)
    assert release.labels == (tuple("uvwxyz"), tuple(WORDS))


@pytest.mark.parametrize(
    ("form", "truncate", "sparse", "truncated"),
    [
        (np.asarray, None, False, False),
        (np.asarray, True, False, True),
        (sp.csr_array, None, True, True),
        (sp.coo_matrix, False, False, False),
        (np.ndarray.tolist, None, False, False),
    ],
)
def test_counts_of_every_form_become_what_privatize_makes_of_them(form, truncate, sparse, truncated):
    release = Privatizer("0.5", 2, truncate=truncate).fit_transform(form(COUNTS))
    assert isinstance(release, Release)
    assert release.levels == PrivacyLevel("0.5", 2)
    assert (release.shape, release.truncated) == (COUNTS.shape, truncated)
    assert sp.issparse(release.reports) == sparse
    assert not release.simulated


def test_the_noise_is_that_of_privatize(monkeypatch):
    given = []
    monkeypatch.setattr("countveil.bridges.privatizer.privatize", lambda *a, **o: given.append((a, o)))
    Privatizer(1, 2, truncate=True, column_labels=WORDS).fit_transform(COUNTS)
    ((counts, level, truncate), options) = given[0]
    assert counts is COUNTS
    assert (level, truncate, options) == (PrivacyLevel(1, 2), True, {"column_labels": WORDS})
    assert len(given) == 1


def p_value(noise, alpha):
    """Of chi-square against the two-sided geometric law, values of eight and more pooled."""
    values = np.arange(-8, 9)
    law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(values)
    law[[0, -1]] = alpha**8 / (1 + alpha)
    seen = np.bincount(np.clip(noise, -8, 8).ravel() + 8, minlength=17)
    return stats.chisquare(seen, law * noise.size).pvalue


def test_zeros_and_counts_get_two_sided_geometric_noise():
    counts = np.repeat([[0], [3]], 20_000, axis=1)
    noise = Privatizer(1, 2).fit_transform(counts).reports - counts
    assert p_value(noise[0], np.exp(-0.5)) > CRITICAL
    assert p_value(noise[1], np.exp(-0.5)) > CRITICAL
    assert p_value(noise[0], np.exp(-0.6)) < CRITICAL  # the negative control: another level


def test_nothing_seeds_it_and_every_transform_is_a_new_release():
    assert set(inspect.signature(Privatizer).parameters) == {"epsilon", "precision", "truncate", "column_labels"}
    counts = np.zeros((20, 50), dtype=int)
    made = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        fitted = Privatizer(1, 1).fit(counts)
        made += [fitted.transform(counts), fitted.transform(counts), fitted.fit_transform(counts)]
    for i, one in enumerate(made):
        for other in made[:i]:  # a thousand cells agree with probability 0.281 ** 1000
            assert (one.reports != other.reports).any()
    assert "spends" in Privatizer.__doc__


def test_parameters_are_got_set_and_cloned():
    step = Privatizer("0.1", 2, column_labels=WORDS)
    wanted = {"epsilon": "0.1", "precision": 2, "truncate": None, "column_labels": WORDS}
    assert step.get_params() == wanted
    assert clone(step.fit(COUNTS)).get_params() == wanted
    assert not hasattr(clone(step), "level_")
    assert step.set_params(epsilon=3).fit(COUNTS).level_ == PrivacyLevel(3, 2)


@pytest.mark.parametrize(
    ("step", "data", "message"),
    [
        (Privatizer(0, 1), COUNTS, "epsilon must be positive"),
        (Privatizer(1, -1), COUNTS, "precision must be positive"),
        (Privatizer(1, 1, column_labels=WORDS[:3]), COUNTS, "for each of the 4 columns, got 3"),
        (Privatizer(1, 1, column_labels=["a"] * 4), COUNTS, "differ from each other"),
        (Privatizer(1, 1), COUNTS[0], r"rows and columns, got shape \(4,\). Reshape your data"),
        (Privatizer(1, 1), [[77.5, 1]], "got a fractional value at index"),
        (Privatizer(1, 1), [[-77, 1]], "got a negative value at index"),
        (Privatizer(1, 1), [["word77", 1]], "got something that is not a number at index"),
        (Privatizer(1, 1), np.full((1, 2), np.nan), "got a missing value"),
        (Privatizer(1, 1), np.zeros((0, 2)), "at least one row and one column"),
    ],
)
def test_what_does_not_fit_is_refused_without_a_count(step, data, message):
    with pytest.raises(ValueError, match=message) as caught:
        step.fit_transform(data)
    assert "77" not in str(caught.value)


def test_other_columns_than_the_fits_are_refused():
    with pytest.raises(NotFittedError):
        Privatizer(1, 1).transform(COUNTS)
    with pytest.raises(NotFittedError):
        Privatizer(1, 1).get_feature_names_out()
    with pytest.raises(ValueError, match="X has 3 features, but Privatizer is expecting 4 features"):
        Privatizer(1, 1).fit(COUNTS).transform(COUNTS[:, :3])
    with pytest.raises(ValueError, match="feature names should match"):
        Privatizer(1, 1).fit(FRAME).transform(FRAME[WORDS[::-1]])


class WholeNumbers(Privatizer):
    """Asks the checks for whole numbers, which they make only for what is called categorical."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


LATER = "fit looks at no count: privatize does, and its messages show nothing of a record"
NO_ARRAY = "what comes out is a Release, each time another"
EXPECTED = {
    "check_positive_only_tag_during_fit": LATER,
    "check_complex_data": LATER,
    "check_dtype_object": LATER,
    "check_estimators_empty_data_messages": LATER,
    "check_estimators_nan_inf": LATER,
    "check_fit_non_negative": LATER,
    "check_estimators_pickle": NO_ARRAY,
    "check_fit_idempotent": NO_ARRAY,
}
OF_FIXED_NOISE = {
    "check_pipeline_consistency",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_array_api_input",
}


VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


@pytest.mark.skipif(VERSION < (1, 9), reason="the checks are those of scikit-learn 1.9 and newer")
def test_scikit_learns_own_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(WholeNumbers(1, 1), on_fail=None, on_skip=None)
    names = {
        status: {each["check_name"] for each in found if each["status"] == status}
        for status in ("passed", "failed", "skipped")
    }
    assert names["failed"] == set(EXPECTED)
    assert names["skipped"] == OF_FIXED_NOISE
    ran = sum(each["status"] in ("passed", "failed") for each in found)
    assert ran == 40 if VERSION == (1, 9) else ran >= 40
