"""Real corpora: Reuters news stories of 1996 and 1997 (extra ``demo``), and posts of political blogs of 2008."""

import warnings
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pandas as pd

from countveil.common.extras import install

N_WORDS = 1000
N_DROPPED = 20


class Corpus(NamedTuple):
    """Word counts of documents, with names."""

    counts: np.ndarray  # (D, V) int64
    titles: list[str]  # D
    words: list[str]  # V


def load_reuters(n_words: int = N_WORDS, n_dropped: int = N_DROPPED) -> Corpus:
    """The n_words most frequent words after the n_dropped most frequent; 395 documents.

    Columns run from the most frequent word down; ties keep the order of the original vocabulary. The words
    are chosen with the true counts, as if the vocabulary were public.

    Raises:
        ModuleNotFoundError: the ``lda`` package is missing.
        ValueError: more words asked for than there are, or fewer than one.
    """
    try:
        from lda import datasets
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the Reuters corpus comes with the lda package, which is missing: {install('demo')}"
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # lda leaves its files to be closed later
        counts = datasets.load_reuters()
        vocabulary, titles = datasets.load_reuters_vocab(), datasets.load_reuters_titles()
    available = counts.shape[1] - n_dropped
    if n_dropped < 0 or not 1 <= n_words <= available:
        raise ValueError(f"n_words must be from 1 to {available} after dropping {n_dropped}, got {n_words}")
    order = np.argsort(-counts.sum(axis=0), kind="stable")[n_dropped : n_dropped + n_words]
    return Corpus(np.ascontiguousarray(counts[:, order], dtype=np.int64), list(titles), [vocabulary[v] for v in order])


# 800 posts of political blogs of 2008, as counts of 300 word stems, and the leaning of their blogs.
#
# A random part of the data set poliblog5k of the R package stm (Roberts, Stewart and Tingley 2019), under the
# licence beside the file; the posts are from the CMU political blog corpus (Eisenstein and Xing 2010). The
# stems are the most frequent ones, without two names of counters of comments.

NAME = "posts.npz"


class Posts(NamedTuple):
    """Counts of words, and covariates; both have the same labels of rows."""

    counts: pd.DataFrame  # (800, 300)
    covariates: pd.DataFrame  # leaning: conservative or liberal; day: of the year 2008


def load_posts() -> Posts:
    """The counts of all posts, and their covariates."""
    with (files(__package__) / NAME).open("rb") as file, np.load(file, allow_pickle=False) as kept:
        labels = [f"post {i}" for i in range(len(kept["day"]))]
        counts = pd.DataFrame(kept["counts"].astype(np.int64), index=labels, columns=kept["words"].tolist())
        leaning = np.where(kept["liberal"], "liberal", "conservative")
        return Posts(counts, pd.DataFrame({"leaning": leaning, "day": kept["day"]}, index=labels))
