import sys
from importlib.resources import files

import numpy as np
import pytest

from countveil.experiments.corpora import load_posts, load_reuters


@pytest.mark.long
def test_the_corpus_of_the_demo():
    corpus = load_reuters()
    assert corpus.counts.shape == (395, 1000)
    assert corpus.counts.sum() == 48302
    assert len(corpus.titles) == 395
    assert corpus.words[:3] == ["since", "family", "king"]
    totals = corpus.counts.sum(axis=0)
    assert (np.diff(totals) <= 0).all()


@pytest.mark.long
def test_fewer_words_are_the_first_of_more():
    few, more = load_reuters(50), load_reuters(100)
    assert few.words == more.words[:50]
    assert np.array_equal(few.counts, more.counts[:, :50])


@pytest.mark.long
@pytest.mark.parametrize("n_words", [0, 4239])
def test_as_many_words_as_there_are(n_words):
    with pytest.raises(ValueError, match=f"n_words must be from 1 to 4238 after dropping 20, got {n_words}"):
        load_reuters(n_words)


@pytest.mark.long
def test_without_lda_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lda", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[demo\]'"):
        load_reuters()


def test_posts_come_with_the_leaning_of_their_blogs():
    counts, covariates = load_posts()
    assert counts.shape == (800, 300)
    assert counts.index.equals(covariates.index)
    assert counts.to_numpy().sum() == 77_960
    assert counts.to_numpy().min() == 0
    assert counts.columns.is_unique
    assert covariates["leaning"].value_counts().to_dict() == {"conservative": 434, "liberal": 366}
    assert covariates["day"].between(1, 366).all()


def test_the_licence_of_the_posts_is_beside_them():
    text = (files("countveil.experiments") / "posts.LICENSE.txt").read_text(encoding="utf-8")
    assert "MIT License" in text
    assert "posts.npz" in text
