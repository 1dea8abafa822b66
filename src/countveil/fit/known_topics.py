"""Topics of which something is known: kept as they are, of another fit or from a table, or seeded with their words."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from countveil.common.parameters import check_positive
from countveil.data.labels import is_default, texts_of
from countveil.fit.choosing import is_auto
from countveil.fit.naming import check_name
from countveil.inference.methods import check_need
from countveil.models.factorization import Factorization
from countveil.models.priors import Prior, SeededPrior

IN_FILES = {"names", "words", "shares"}
SMALLEST = 1e-150  # of a share, to have a logarithm
LISTED = 10  # words that a message lists


class KnownTopics:
    """A fit of topics, or a table of topics by words; its numbers are checked when they meet data."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        table = isinstance(value, pd.DataFrame) or (isinstance(value, Mapping) and set(value) == IN_FILES)
        if not (table or is_fit(value)):
            raise ValueError(
                f"{name} must be None, a fitted TopicModel, or a DataFrame of topics by words, got {value!r:.60}"
            )


def check_topics(model: Any) -> None:
    """Refuse known topics together with parameters that do not go with them; raises ValueError."""
    if model.known_topics is model:
        raise ValueError("known_topics must be another fit, got the model itself")
    n, name = len(table_of(model.known_topics)), model._sized_by[0]
    if getattr(model, name) != n:
        raise ValueError(f"{name} must be {n}, as many as known_topics has, got {getattr(model, name)!r}")
    if model.seeds is not None:
        raise ValueError(f"seeds must be None with known_topics, which stay fixed, got {model.seeds!s:.60}")
    if model._method.batches:
        raise ValueError(f"known_topics must be None for method {model._method.name!r}, got {n} of them")
    if model.dispersion == "column":
        raise ValueError(
            "dispersion must be 'global', 'row' or a number with known_topics, which are shares of words, got 'column'"
        )


def read_topics(model: Any, data: Any) -> None:
    """Keep the known topics over the words of the data; raises ValueError."""
    if data.column_labels is None:
        raise ValueError(
            "known_topics need data with words as column labels, got data without labels: give column_labels="
        )
    know(model, [str(label) for label in data.column_labels])


def know(model: Any, words: Sequence[str]) -> None:
    """Keep the known topics, over these words; raises ValueError."""
    table = table_of(model.known_topics)
    model._known_shares, model._known_table = shares_over(table, words), table


def restore_topics(model: Any, tree: xr.DataTree) -> None:
    """Keep the known topics over the words that a file holds; raises ValueError."""
    if model.known_topics is not None:
        know(model, [str(label) for label in tree["posterior"]["word"].to_numpy()])


def of_their_size(model: Any, priors: dict[str, Any], rows: str, mean_row: float) -> dict[str, Prior]:
    """Priors by name, where entries of the rows' factor are counts of words, since topics sum to one."""
    return {**priors, rows: priors[rows].of_size(mean_row / model._known_shares.shape[1])}


def with_known(model: Any, found: Factorization, words: str) -> Factorization:
    """The model with its words' factor as it is known."""
    factors = list(found.factors)
    f = found.spec.names.index(words)
    factors[f] = factors[f]._replace(fixed=model._known_shares)
    return found._replace(factors=tuple(factors))


def names_of_topics(model: Any) -> dict[int, str]:
    """The names of known topics, by number."""
    return {k: name for k, name in enumerate(model._known_table.index) if name}


def portable_topics(table: pd.DataFrame) -> dict[str, Any]:
    """The known topics as a file can hold them."""
    shares = np.asarray(table, dtype=float).tolist()
    return {"names": list(table.index), "words": list(table.columns), "shares": shares}


def is_fit(value: Any) -> bool:
    """Whether a value is a fit of topics."""
    return hasattr(value, "posterior_") and hasattr(type(value), "components_") and hasattr(value, "top_words")


def table_of(topics: Any) -> pd.DataFrame:
    """Topics by words, with a name or an empty text for each topic; of a fit, its posterior means.

    Raises:
        ValueError: words without labels or twice, or names that components cannot have.
    """
    if is_fit(topics):
        names, words = topics._reader.names_of(), topics._reader.axes["word"]
        if words.dtype.kind not in "OUT":
            raise ValueError(
                "known_topics must come from a fit to data whose columns have words as labels, got numbers"
            )
        shares = topics.components_
        index = [names.get(k, "") for k in range(len(shares))]
        return pd.DataFrame(shares, index=index, columns=texts_of(pd.Index(words)))
    if isinstance(topics, Mapping):
        return pd.DataFrame(topics["shares"], index=topics["names"], columns=topics["words"])
    if is_default(topics.columns):
        raise ValueError("known_topics must have words as the names of its columns, got numbers")
    names = [""] * len(topics) if is_default(topics.index) else texts_of(topics.index)
    return pd.DataFrame(topics.to_numpy(), index=names, columns=texts_of(topics.columns))


def shares_over(table: pd.DataFrame, words: Sequence[str]) -> np.ndarray:
    """(V, K) shares of the data's words in each topic; they sum to one over these words.

    Raises:
        ValueError: a word that no topic has, a topic that has no word, words or names twice, or entries that are no
            numbers from 0 on.
    """
    for name in filter(None, table.index):
        check_name(name)
    for what, values in (("words", table.columns), ("names", [name for name in table.index if name])):
        twice = pd.Index(values)[pd.Index(values).duplicated()]
        if len(twice):
            raise ValueError(f"known_topics must have {what} that differ from each other, got {twice[0]!r} twice")
    try:
        values = np.asarray(table, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"known_topics must hold numbers, got {table.iloc[0, 0]!r:.40}") from None
    if not (np.isfinite(values).all() and (values >= 0.0).all()):
        bad = values[~(np.isfinite(values) & (values >= 0.0))].flat[0]
        raise ValueError(f"known_topics must hold finite numbers, 0 or more, got {bad}")
    own = pd.DataFrame(values, columns=table.columns)
    absent = [word for word in words if word not in own.columns or not own[word].any()]
    if absent:
        more = f" and {len(absent) - LISTED} more" if len(absent) > LISTED else ""
        listed = ", ".join(map(repr, absent[:LISTED]))
        raise ValueError(
            f"known_topics must give every word of the data to a topic, got no topic with {listed}{more}: leave the "
            "words out of the data"
        )
    found = np.ascontiguousarray(own[list(words)].to_numpy().T)
    total = found.sum(axis=0)
    if not (total > 0.0).all():
        k = int(np.flatnonzero(total <= 0.0)[0])
        raise ValueError(
            f"known_topics must have a word of the data in every topic, got no such word in topic {k}: leave it out"
        )
    return np.maximum(found / total, SMALLEST)


WEIGHT = 5.0  # of a seeded word without a weight of its own: see benchmarks/results/seeds-what-was-measured.csv


class SeedWords:
    """Words by the name of their topic, each with a weight or all with the usual one.

    Whether data have them is checked when they meet.
    """

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if not isinstance(value, Mapping) or not value:
            raise ValueError(
                f'{name} must be None or a mapping such as {{"economy": ["tax", "jobs"]}}, got {value!r:.60}'
            )
        for topic, words in value.items():
            check_name(topic)
            plain = isinstance(words, Sequence | Mapping) and not isinstance(words, str)
            if not plain or not words or not all(isinstance(word, str) for word in words):
                raise ValueError(
                    f"{name} of {topic!r} must be a list of words, or map words to weights, got {words!r:.60}"
                )
            if isinstance(words, Mapping):
                for word, weight in words.items():
                    check_positive(f"weight of {word!r} in {name} of {topic!r}", weight)
                continue
            twice = next((word for i, word in enumerate(words) if word in words[:i]), None)
            if twice is not None:
                raise ValueError(f"{name} of {topic!r} must have every word once, got {twice!r} twice")


def check_seed_words(model: Any) -> None:
    """Refuse seeds together with parameters that do not go with them; raises ValueError."""
    check_need(model._method, "seeds", "seeds")
    name = model._sized_by[0]
    if not is_auto(model) and getattr(model, name) < len(model.seeds):
        raise ValueError(
            f"{name} must be at least {len(model.seeds)}, the number of topics with seeds, got {getattr(model, name)}"
        )


def read_seeds(model: Any, data: Any) -> None:
    """Find the places of seeded words by the labels of the data's columns; raises ValueError."""
    find_seeds(model, data.column_labels)
    absent = [word for topic, words in model.seeds.items() for word in words if word not in model.seeds_[topic]]
    if absent:
        warnings.warn(f"seeds that the data do not have are left out: {listed(absent)}", stacklevel=5)


def find_seeds(model: Any, labels: Sequence[str] | None) -> None:
    """Keep the seeded words that are among these labels; raises ValueError."""
    if labels is None:
        raise ValueError("seeds need data with words as column labels, got data without labels: give column_labels=")
    place = {str(label): v for v, label in enumerate(labels)}
    found = {topic: [word for word in words if word in place] for topic, words in model.seeds.items()}
    for topic, words in found.items():
        if not words:
            raise ValueError(
                f"seeds of {topic!r} must have a word that the data have, got {listed(list(model.seeds[topic]))}"
            )
    pairs = [(place[word], k) for k, words in enumerate(found.values()) for word in words]
    rows, columns = np.transpose(pairs)
    weights = [weight_of(model.seeds[topic], word) for topic, words in found.items() for word in words]
    model.seeds_, model._seeded = found, (rows, columns, np.array(weights))


def with_seeds(model: Any, priors: dict[str, Any], words: str, shape: tuple[int, ...]) -> dict[str, Prior]:
    """Priors by name, where that of the words' factor of this shape has larger shapes for seeded words."""
    rows, columns, weights = model._seeded
    added = np.zeros(shape)
    added[rows, columns] = weights
    return {**priors, words: SeededPrior(priors[words], added)}


def restore_seeds(model: Any, tree: xr.DataTree, found: Factorization, words: str) -> Factorization:
    """The model with what its seeds add to shapes, from the labels that a file holds; raises ValueError."""
    model.seeds_ = model._seeded = None
    factors = list(found.factors)
    f = found.spec.names.index(words)
    prior = factors[f].prior
    if (model.seeds is not None) != isinstance(prior, SeededPrior):
        raise ValueError(
            f"must have a prior with seeds if and only if its parameters have seeds, got seeds {model.seeds!s:.60} and "
            f"a prior {prior.kind!r}"
        )
    if not isinstance(prior, SeededPrior):
        return found
    find_seeds(model, [str(label) for label in tree["posterior"]["word"].to_numpy()])
    factors[f] = factors[f]._replace(prior=with_seeds(model, {words: prior.usual}, words, factors[f].shape)[words])
    return found._replace(factors=tuple(factors))


def weight_of(words: Mapping[str, float] | Sequence[str], word: str) -> float:
    """What a seeded word adds to the gamma shape in its topic."""
    return float(words[word]) if isinstance(words, Mapping) else WEIGHT


def portable_seeds(seeds: Mapping[str, Any]) -> dict[str, Any]:
    """Seeds as a file can hold them."""
    return {topic: dict(words) if isinstance(words, Mapping) else list(words) for topic, words in seeds.items()}


def listed(words: Sequence[str]) -> str:
    """Some words, and how many more there are."""
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(map(repr, words[:LISTED])) + more
