import numpy as np
import pandas as pd

import countveil as cv
from countveil.fit.topics import TOPICS
from countveil.report.browse.listings import (
    COMPONENTS_OF_A_MEMBER,
    Along,
    Kind,
    along,
    kept,
    listed,
    overall,
    short,
    shown_alike,
    shown_as,
)
from tests.report.conftest import QUICK, release_of


def test_what_is_listed_are_means_and_quantiles_of_the_draws(column_fit):
    found = along(column_fit, "word")
    posterior = column_fit.posterior["posterior"]
    p = posterior["p"].to_numpy()[0]
    for k, number in enumerate(column_fit.parts.support()["component"]):
        draws = posterior["phi"].sel(topic=number).to_numpy()[0]
        sized = np.array([phi * -each / ((1 - each) * np.log1p(-each)) for phi, each in zip(draws, p, strict=True)])
        shares = sized / sized.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found.mean[k], shares.mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(found.values[k, :, 1:].T, np.quantile(shares, [0.05, 0.95], axis=0), rtol=1e-5)
    assert found.names[3] == "$x_1$"
    assert not found.numbered


def test_members_without_names_are_numbered(tensor_fit):
    assert along(tensor_fit, "who").names[:2] == ["a", "b"]


def test_names_that_look_the_same_are_told_apart():
    assert shown_as(["a\x07", "a\\x07", "b", "a\x07"]) == {"a\x07": "a\\x07 (2)", "a\\x07": "a\\x07", "b": "b"}
    many = ["\x07\\x08", "\\x07\x08", "\\x07\\x08", "\\x07\\x08 (2)"]
    assert len(set(shown_as(many).values())) == 4


def test_members_are_matched_by_the_names_that_they_were_given():
    release = release_of(pd.DataFrame(np.ones((4, 3), dtype=int), columns=["a\x07", "a\\x07", "b"]))
    found = along(cv.TopicModel(1, **QUICK).fit(release), "word")
    assert found.names == ["a\x07", "a\\x07", "b"]
    assert found.shown == ["a\\x07 (2)", "a\\x07", "b"]


def test_two_fits_call_the_same_name_the_same():
    def kinds(names):
        mean = np.full((1, len(names), 1), 1.0 / len(names))
        return [Kind(TOPICS, pd.DataFrame(), [Along("word", names, False, mean, list(shown_as(names).values()))])]

    one, other = kinds(["a\x07", "c"]), kinds(["c", "a\\x07"])
    assert one[0].along[0].shown[0] == other[0].along[0].shown[1] == "a\\x07"
    ((one,), (other,)) = shown_alike([one, other])
    assert one.along[0].shown == ["a\\x07 (2)", "c"]
    assert other.along[0].shown == ["c", "a\\x07"]
    assert listed(one.along[0], sizes([1.0]), 2)["labels"] == ["a\\x07 (2)", "c"]


def sizes(prevalence):
    """Components of these sizes that all chains have."""
    return pd.DataFrame({"prevalence": prevalence, "support": 1.0})


def test_a_member_s_share_of_all_counts_is_weighted_by_size_and_support():
    table = pd.DataFrame({"prevalence": [0.6, 0.4, 0.5], "support": [1.0, 0.5, 0.5]})
    mean = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(overall(table, mean), np.array([0.6 + 0.1, 0.1 + 0.25]) / 1.05)
    one_chain = pd.DataFrame({"prevalence": [0.6, 0.4], "support": [np.nan, np.nan]})
    np.testing.assert_allclose(overall(one_chain, mean[:2]), [0.8, 0.2])


def test_the_first_of_each_component_and_the_best_of_each_member_are_kept():
    rng = np.random.default_rng(3)
    mean, prevalence = rng.dirichlet(np.full(30, 0.3), 9), rng.dirichlet(np.ones(9))
    also = np.zeros(mean.shape, dtype=bool)
    also[4, np.argmin(mean[4])] = True
    found = kept(mean, prevalence, 4, also)
    for k, v in np.ndindex(*mean.shape):
        first = (mean[k] > mean[k, v]).sum() < 4
        best = (mean[:, v] > mean[k, v]).sum() < COMPONENTS_OF_A_MEMBER
        assert found[k, v] == (first or best or also[k, v])


def test_of_very_many_members_the_small_ones_are_left_out(monkeypatch):
    monkeypatch.setattr("countveil.report.browse.listings.MOST_MEMBERS", 2)
    mean = np.array([[0.5, 0.1, 0.4, 0.0], [0.1, 0.7, 0.15, 0.05]])
    each = Along("word", list("abcd"), False, mean[:, :, None])
    found = listed(each, sizes([0.5, 0.5]), 2)
    assert found["labels"] == ["b", "a", "c"]  # by their shares of all counts; c is second of both components
    assert found["left"] == 1
    assert found["top"] == [[1, 2], [0, 2]]
    assert found["entries"] == [[[0, 0.1], [1, 0.7]], [[0, 0.5], [1, 0.1]], [[0, 0.4], [1, 0.15]]]


def test_numbers_have_four_digits():
    assert short([1 / 3, 0.0, 1234567.0, 2e-9]) == [0.3333, 0.0, 1235000.0, 2e-9]
