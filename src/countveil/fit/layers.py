"""Topics of topics: what is passed as ``n_topics``, and what a fit with several layers says of the upper ones."""

import reprlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.common.parameters import AUTO, check_integer
from countveil.fit.component_tables import Chain, by_support, entries_table, mixture
from countveil.fit.naming import leading, summed
from countveil.fit.parameters import check_interval
from countveil.fit.reading import as_calibrated
from countveil.fit.rows import check_no_seeds, check_size_and_rate
from countveil.inference.matching import STABLE, Matched, matched
from countveil.inference.methods import check_need
from countveil.models.priors.layered_rows import SHARE, layer_called

SEVERAL = "several layers of topics"
MOST_LAYERS = 10
LEADING = 3  # words that stand for an upper topic
SMALLEST = 1e-300
WIDE = 0.5  # of an interval: topics traded places between draws or chains, or the data do not determine the share
LEAST_SHARE = 0.01  # of a topic that the tree shows below another


class Sizes(NamedTuple):
    """A whole number, "auto", or a list of a few numbers of which none is larger than the one before."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if isinstance(value, int | float | np.number):
            check_integer(name, value, 1)
            return
        if isinstance(value, str) and value == AUTO:
            return
        right = isinstance(value, list | tuple) and 2 <= len(value) <= MOST_LAYERS
        if right:
            for number in value:
                check_integer(f"{name} of each layer", number, 1)
            right = all(upper <= below for below, upper in pairwise(value))
        if not right:
            raise ValueError(
                f"{name} must be one number, {AUTO!r}, or a list of 2 to {MOST_LAYERS} numbers, those of layers from "
                "the bottom up, none larger than the one before, such as [50, 20, 5], got "
                f"{' '.join(reprlib.repr(value).split()):.60}"
            )


def check_layers(model: Any) -> None:
    """Refuse parameters that do not go with several layers; raises ValueError."""
    check_need(model._method, "layers", "n_topics of several layers")
    check_size_and_rate(model, SEVERAL)
    check_no_seeds(model, SEVERAL)
    if model.prevalence is not None:
        raise ValueError(
            f"prevalence must be None with {SEVERAL}, got {model.prevalence!r}: use n_topics={model.n_topics[0]}"
        )


class Layer(NamedTuple):
    """The topics of an upper layer in every chain, and which chains have them."""

    number: int  # from 2 on
    chains: list[Chain]  # shares (S, K, topics below as they are matched), sizes (S, K) of all expected words
    found: list[Matched]
    below: dict[int, str]  # what topics below are called, by number, without those merged into others


def layers_of(fit: Any) -> list[Layer]:
    """Every upper layer from the bottom up; raises ValueError for a fit of a single one.

    Shares and sizes are of expected words. Loadings are of the parts that words come in, so each topic is weighted by
    the words that one of its parts stands for: g_j = sum_k phi_kj g_k of a topic above.
    """
    if not fit._n_upper or f"theta_{layer_called(2)}" not in fit.posterior["posterior"]:
        raise ValueError(
            f"upper_topics needs a fit with {SEVERAL}, such as TopicModel([50, 20]), got n_topics {fit.n_topics!r}"
        )
    draws, reader, group = fit.posterior["posterior"], fit._reader, fit.model_.spec.latent
    found, merged = reader.matches(group), reader.merged_places(group)
    names, words = reader.names_of(), leading(fit, "word")
    below = {k: names.get(k, "") or words.get(k, "") for k, one in enumerate(found) if one.chains.size}
    means = [each[0] for each in reader.chain_means(group)]  # (K, V) of each chain
    parts = draws["theta"].sum("doc").transpose("chain", "draw", "topic").to_numpy().astype(np.float64)
    counts = reader.sizes_of_chains(group).reshape(parts.shape) / np.maximum(parts, SMALLEST)
    layers: list[Layer] = []
    for t in range(2, 2 + len(fit._n_upper)):
        name = f"theta_{layer_called(t)}"
        scaled = draws[name].to_numpy() * counts[..., None]
        counts = scaled.sum(axis=2)
        shares = np.swapaxes(scaled / np.maximum(counts[:, :, None], SMALLEST), 2, 3)  # (C, S, K, below)
        sizes = normalised(draws[f"{name}{SHARE}"].to_numpy() * counts)
        chains = []
        for c, weight in enumerate(fit.weights_.tolist()):
            own = summed(shares[c], merged[c]) if t == 2 else shares[c]
            chains.append(Chain(over_matched(own, [found[k] for k in below], c), sizes[c], weight))
        found = matched([[normalised(chain.shares.mean(axis=0))] for chain in chains], fit.weights_)
        layers.append(Layer(t, chains, found, below))
        means = [own.mean(axis=0) @ along for own, along in zip(shares, means, strict=True)]
        below = {k: by_words(one, means, reader.names_along("word")) for k, one in enumerate(found)}
    return layers


class Node(NamedTuple):
    """A topic in words, and its largest topics in the layer below."""

    said: str
    below: "list[Node]"


def tree_of(fit: Any, n: int = 5) -> list[Node]:
    """The topics of the top layer with their n largest ones, down to words: of each those that most chains have."""
    found = stable(fit, fit.parts.upper_topics(n))
    rows = dict(iter(found.groupby(["layer", "topic"], sort=False)))
    top = 1 + len(fit._n_upper)

    def below(layer: int, topic: int) -> list[Node]:
        own = rows.get((layer, topic))
        if own is None:
            return []
        return [
            Node(
                f"{in_words(layer - 1, row.member)} ({row.leading}): {percent(row, 'probability')}",
                below(layer - 1, row.member),
            )
            for row in own.itertuples()
            if row.probability >= LEAST_SHARE
        ]

    def title(topic: int, row: Any) -> str:
        support = "" if np.isnan(row.support) else f", support {row.support:.0%}"
        return f"{in_words(top, topic)}: {row.prevalence:.1%} of all expected words{support}"

    firsts = {topic: own.iloc[0] for (layer, topic), own in rows.items() if layer == top}
    return [Node(title(topic, row), below(top, topic)) for topic, row in firsts.items()]


def stable(fit: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``table`` of topics and members that more than half of the chains have; of a single chain, all."""
    if len(fit.weights_) < 2:
        return table
    group = next(iter(fit._reader.kinds_by_group()))
    known = {(1, k) for k, one in enumerate(fit._reader.matches(group)) if one.support > STABLE}
    known |= {(row.layer, row.topic) for row in table.itertuples() if row.support > STABLE}
    right = [(row.layer, row.topic) in known and (row.layer - 1, row.member) in known for row in table.itertuples()]
    return table[right]


def in_words(layer: int, topic: int) -> str:
    """What a topic of a layer is called."""
    return f"topic {topic}" if layer == 1 else f"topic {topic} of layer {layer}"


def percent(row: Any, name: str) -> str:
    """A share in per cent, with the interval of its row if it has one that is not too wide."""
    ends = ""
    if hasattr(row, "lower"):
        wide = row.upper - row.lower > WIDE
        ends = ", undetermined" if wide else f" ({100 * row.lower:.0f} to {100 * row.upper:.0f})"
    return f"{100 * getattr(row, name):.0f}%{ends}"


def upper_by_member(fit: Any) -> pd.DataFrame:
    """What each topic is of those of layer 2 that it is large in: topic, above, share in words.

    Of upper topics, those that most chains have.
    """
    found = fit.parts.upper_topics()
    own = found[(found["layer"] == 2) & ~(found["support"] <= STABLE)]
    return pd.DataFrame(
        {
            "topic": own["member"],
            "above": [in_words(2, topic) for topic in own["topic"]],
            "share": [percent(row, "probability") for row in own.itertuples()],
        }
    )


def over_matched(own: np.ndarray, found: Sequence[Matched], chain: int) -> np.ndarray:
    """(S, K, M) shares (S, K, below) of a chain's topics below, over the numbers that all chains have."""
    shares = np.zeros((*own.shape[:2], len(found)), dtype=own.dtype)
    for number, each in enumerate(found):
        for k in each.components[each.chains == chain]:
            shares[:, :, number] = own[:, :, k]
    return shares


def normalised(shares: np.ndarray) -> np.ndarray:
    """(..., n) shares that sum to one."""
    return np.asarray(shares / np.maximum(shares.sum(axis=-1, keepdims=True), SMALLEST))


def by_words(found: Matched, means: Sequence[np.ndarray], words: np.ndarray) -> str:
    """The most probable words of a topic, on average over the chains that have it."""
    mean = np.mean([means[c][k] for c, k in zip(found.chains, found.components, strict=True)], axis=0)
    return ", ".join(str(words[v]) for v in np.argsort(-mean, kind="stable")[:LEADING])


def table(fit: Any, n: int, interval: float, uncalibrated: bool) -> pd.DataFrame:
    """``Parts.upper_topics``."""
    check_integer("n", n, 1)
    check_interval(interval)
    tables = []
    for layer in reversed(layers_of(fit)):
        drawn = mixture(layer.chains)
        numbers = np.array(list(layer.below))
        own = entries_table(drawn, numbers, by_support(drawn, layer.found), n, interval)
        own.insert(0, "layer", layer.number)
        own.insert(own.columns.get_loc("member") + 1, "leading", [layer.below[k] for k in own["member"]])
        tables.append(own)
    found = pd.concat(tables, ignore_index=True).rename(columns={"component": "topic"})
    if len(fit.weights_) < 2:
        found["support"] = np.nan
    return as_calibrated(found, fit._reader.why_no_intervals, uncalibrated)
