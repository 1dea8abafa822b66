"""Seeded topics: words that are known to be about a topic, and how they reach the prior of the words' factor."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from countveil.data.observations import Observations
from countveil.fit.naming import check_name
from countveil.inference.methods import METHODS, check_seeds
from countveil.models.factorization import Factorization
from countveil.models.priors import Prior, SeededPrior

WEIGHT = 5.0  # see benchmarks/results/seeds-what-was-measured.csv
LISTED = 10  # words that a message lists


class SeedWords:
    """None, or words by the name of their topic; whether data have them is checked when they meet."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if value is None:
            return
        if not isinstance(value, Mapping) or not value:
            raise ValueError(
                f'{name} must be None or a mapping such as {{"economy": ["tax", "jobs"]}}, got {value!r:.60}'
            )
        for topic, words in value.items():
            check_name(topic)
            plain = isinstance(words, Sequence) and not isinstance(words, str)
            if not plain or not words or not all(isinstance(word, str) for word in words):
                raise ValueError(f"{name} of {topic!r} must be a list of words, got {words!r:.60}")
            twice = next((word for i, word in enumerate(words) if word in words[:i]), None)
            if twice is not None:
                raise ValueError(f"{name} of {topic!r} must have every word once, got {twice!r} twice")


class HasSeeds:
    """Adds seeded topics to an estimator whose parameters are ``seeds``, their words, and ``seed_weight``."""

    seeds_: dict[str, list[str]] | None = None
    _seeded: tuple[np.ndarray, np.ndarray] | None = None  # (words, topics), by their numbers

    def _check_seeds(self: Any) -> None:
        """Refuse seeds together with parameters that do not go with them; raises ValueError."""
        if self.seeds is None:
            return
        check_seeds(METHODS[self.method], "seeds")
        name = self.sized_by[0]
        if not self._is_auto and getattr(self, name) < len(self.seeds):
            raise ValueError(
                f"{name} must be at least {len(self.seeds)}, the number of topics with seeds, got {getattr(self, name)}"
            )

    def _least_size(self: Any) -> int:
        return 1 if self.seeds is None else len(self.seeds)

    def _with_places(self: Any, X: Any) -> Any:
        """Data as inference takes them, once the places of seeded words are found by the labels of the columns."""
        self.seeds_ = self._seeded = None
        if self.seeds is None:
            return X
        data = self._observe(X)
        assert isinstance(data, Observations)
        self._find(data.labels[1])
        absent = [
            word for topic, words in self.seeds.items() for word in words if word not in self.seeds_[topic]
        ]
        if absent:
            warnings.warn(f"seeds that the data do not have are left out: {listed(absent)}", stacklevel=4)
        return data

    def _find(self: Any, labels: Sequence[str] | None) -> None:
        """Keep the seeded words that are among these labels; raises ValueError."""
        if labels is None:
            raise ValueError("seeds need data whose columns have words as labels, got data without them")
        place = {str(label): v for v, label in enumerate(labels)}
        found = {topic: [word for word in words if word in place] for topic, words in self.seeds.items()}
        for topic, words in found.items():
            if not words:
                raise ValueError(
                    f"seeds of {topic!r} must have a word that the data have, got {listed(self.seeds[topic])}"
                )
        pairs = [(place[word], k) for k, words in enumerate(found.values()) for word in words]
        rows, columns = np.transpose(pairs)
        self.seeds_, self._seeded = found, (rows, columns)

    def _with_seeds(
        self: Any, priors: dict[str, Any], words: str, shape: tuple[int, int]
    ) -> dict[str, Prior]:
        """Priors by name, where that of the words' factor of this shape has larger shapes for seeded words."""
        if self._seeded is None:
            return priors
        added = np.zeros(shape)
        added[self._seeded] = self.seed_weight
        return {**priors, words: SeededPrior(priors[words], added)}

    def _restore_seeds(self: Any, tree: xr.DataTree, model: Factorization, words: str) -> Factorization:
        """The model with what its seeds add to shapes, from the labels that a file holds; raises ValueError."""
        factors = list(model.factors)
        f = model.spec.names.index(words)
        prior = factors[f].prior
        if (self.seeds is not None) != isinstance(prior, SeededPrior):
            raise ValueError("must have a prior with seeds if its parameters have seeds, and only then")
        if not isinstance(prior, SeededPrior):
            return model
        self._find([str(label) for label in tree["posterior"]["word"].to_numpy()])
        factors[f] = factors[f]._replace(
            prior=self._with_seeds({words: prior.usual}, words, factors[f].shape)[words]
        )
        return model._replace(factors=tuple(factors))


def listed(words: Sequence[str]) -> str:
    """Some words, and how many more there are."""
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(map(repr, words[:LISTED])) + more
