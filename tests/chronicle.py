"""A model that nothing in the library knows of: stories that documents tell in words over years."""

from typing import Annotated

import numpy as np

import countveil as cv
from countveil.common.parameters import Whole, declared
from countveil.fit.base import FactorizationEstimator
from countveil.models.einsum import parse_spec
from countveil.models.layout import Layout, Part

WORDS = ["tax", "goal", "vote", "team"]
YEARS = ["1990", "1991", "1992"]


@declared
class Chronicle(FactorizationEstimator):
    """Stories of documents by words by years."""

    n_stories: Annotated[int, Whole(1)] = 2

    def _spec(self, n_modes):
        return parse_spec("dk,vk,yk->dvy", names=("told", "said", "lasted"))

    def _ranks(self, spec):
        return {"k": self.n_stories}

    def _layout(self, spec):
        dims = {"d": "doc", "v": "word", "y": "year", "k": "story"}
        stories = Part(
            "story",
            "stories",
            whole="everything told",
            measure="share of the story",
            heading="most telling: share of the story",
            axes=("word", "year"),
        )
        factors = {"told": "dk", "said": "kv", "lasted": "yk"}
        return Layout(dims, factors, parts={"k": stories}, plurals={"doc": "documents", "word": "words"})


def chronicled():
    """Reports of documents x words x years."""
    counts = np.random.default_rng(8).poisson(3.0, (6, len(WORDS), len(YEARS)))
    return cv.PrivatizedCounts(counts, 0.3, labels=[None, WORDS, YEARS])
