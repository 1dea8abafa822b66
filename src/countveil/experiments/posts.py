"""800 posts of political blogs of 2008, as counts of 300 word stems, and the leaning of their blogs.

A random part of the data set poliblog5k of the R package stm (Roberts, Stewart and Tingley 2019), under the licence
beside the file; the posts are from the CMU political blog corpus (Eisenstein and Xing 2010). The stems are the most
frequent ones, without two names of counters of comments.
"""

from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pandas as pd

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
