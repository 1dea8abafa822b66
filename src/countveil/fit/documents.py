"""``fit.documents``: what each document of a fit of topics is about, which are alike, and where a word is."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.common.parameters import check_integer
from countveil.fit.component_tables import Chain, by_support, mixture, tails
from countveil.fit.naming import summed
from countveil.fit.parameters import check_interval
from countveil.fit.reading import as_calibrated
from countveil.inference.matching import Matched
from countveil.inference.row_gammas import rows_of_draws, summarised
from countveil.laws.counts.protocol import in_counts

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

DOCUMENTS_AT_ONCE = 256
TINY = 1e-300
NAMED = {"topic": "name"}
AXES = {"document": "doc", "word": "word"}
ROWS = "theta"  # the factor that documents have

Made = tuple[np.ndarray, list[np.ndarray]]


class Drawn(NamedTuple):
    """The draws of all chains along an axis, and the numbered topics in the order of ``topics``."""

    chains: list[Chain]
    topics: list[tuple[int, Matched]]


class Documents:
    """Tables of documents, of single words and of pairs of topics, for a fit of documents by words.

    The share of topic k in document d is n_dk / sum_j n_dj, where n_dk is the expected number of the document's words
    from the topic. Topics have the numbers, the support and the order that they have in ``topics``, and each is read
    from the draws of the chains that have it: the shares of a document add up to one where all chains have all topics.
    """

    def __init__(self, fit: "FactorizationEstimator") -> None:
        self.fit, self.reader = fit, fit._reader

    def shares(
        self, documents: Sequence[Any] | None = None, interval: float = 0.9, *, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """What every document is made of: its share of each topic, with equal-tailed intervals.

        Columns: document (its label, or its number), topic, support, share, lower, upper; one row for each pair.
        ``pivot(index="document", columns="topic", values="share")`` makes a table of documents by topics.
        Where intervals are not calibrated: as in ``parts.members``.

        Args:
            documents: labels or numbers of some documents; all by default.
            interval: probability of the intervals.
            uncalibrated: as in ``parts.members``.

        Raises:
            TypeError: documents that are no sequence.
            ValueError: an unknown document, interval out of range, or a fit without draws of its documents.
        """
        check_interval(interval)
        if isinstance(documents, str) or not isinstance(documents, Iterable | None):
            raise TypeError(f"documents must be a sequence of labels or numbers, got {documents!r:.60}")
        places = None if documents is None else self._places_of("document", documents)
        drawn = self._drawn_of_documents()
        rows = np.arange(len(self.reader.axes["doc"])) if places is None else np.array(places, dtype=np.int64)
        values = np.empty((rows.size, len(drawn.topics), 3))
        for some, by_chain in self._made_of_documents(drawn, rows):
            for i, (_, found) in enumerate(drawn.topics):
                values[some, i] = summary(draws_of(by_chain, found), interval)
        table = pd.DataFrame(
            {
                "document": np.repeat(self.reader.axes["doc"][rows], len(drawn.topics)),
                "topic": np.tile([number for number, _ in drawn.topics], rows.size),
                "support": np.tile(self._supports(drawn), rows.size),
            }
        )
        table[["share", "lower", "upper"]] = values.reshape(-1, 3)
        return self.reader.labelled(table, self.reader.group_along(None), uncalibrated, NAMED)

    def top(self, topic: int | str, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The n documents with the largest mean share of a topic, given by number or name, with equal-tailed intervals.

        Columns: topic, support, rank, document, share, lower, upper; intervals as in ``shares``.

        Raises:
            ValueError: an unknown topic; n or interval out of range; a fit without draws of its documents.
        """
        check_integer("n", n, 1)
        check_interval(interval)
        drawn = self._drawn_of_documents()
        numbers = [number for number, _ in drawn.topics]
        topic = next((number for number, name in self.reader.names_of().items() if name == topic), topic)
        if topic not in numbers:
            raise ValueError(f"topic must be one of {sorted(numbers)}, got {topic!r}")
        found = drawn.topics[numbers.index(topic)][1]
        best, values = self._best_documents(drawn, lambda made: draws_of(made, found), n, interval)
        table = self._ranked("share", best, values)
        table.insert(0, "topic", topic)
        table.insert(1, "support", self._supports(drawn)[numbers.index(topic)])
        return self.reader.labelled(table, self.reader.group_along(None), uncalibrated, NAMED)

    def similar(self, document: Any, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The n documents whose topics are most like those of one document, with equal-tailed intervals.

        Two documents overlap by sum_k min(s_dk, s_ek), with s the shares of ``shares``, in every draw: from 0 (no
        topic in common) to 1. Nothing has to be matched across chains for this.

        Columns: rank, document, overlap, lower, upper; intervals as in ``shares``.

        Raises:
            ValueError: an unknown document; n or interval out of range; a fit without draws of its documents.
        """
        check_integer("n", n, 1)
        check_interval(interval)
        place, drawn = self._place_of("document", document), self._drawn_of_documents()
        ((_, own),) = self._made_of_documents(drawn, np.array([place]))

        def overlaps(made: Sequence[np.ndarray]) -> np.ndarray:
            return np.concatenate([np.minimum(*each).sum(axis=1) for each in zip(made, own, strict=True)])

        best, values = self._best_documents(drawn, overlaps, n, interval, but=place)
        table = self._ranked("overlap", best, values)
        return as_calibrated(table, self.reader.why_no_intervals, uncalibrated)

    def words(self, document: Any, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The n words that a document is expected to have most of, with equal-tailed intervals.

        The probability of word v in document d is its share of the document's expected counts, over all topics, in
        every draw. Nothing has to be matched across chains for this.

        Columns: rank, word, probability, lower, upper; intervals as in ``shares``.

        Raises:
            ValueError: an unknown document; n or interval out of range.
        """
        check_integer("n", n, 1)
        check_interval(interval)
        place, likelihood = self._place_of("document", document), self.fit.model_.likelihood
        rows, known = [], self.reader.exposure_matrix
        exposure = 1.0 if known is None else known[place]
        for (theta, phi), own in self.reader.draws():
            theta_in_counts, phi_in_counts = in_counts(likelihood, theta, phi, own)
            rows.append(theta_in_counts[place] @ phi_in_counts.T * exposure)
        draws = np.array(rows)
        draws /= np.maximum(draws.sum(axis=1, keepdims=True), TINY)
        best = np.argsort(-draws.mean(axis=0), kind="stable")[:n]
        table = self._ranked("probability", best, summary(draws[:, best], interval), "word")
        return as_calibrated(table, self.reader.why_no_intervals, uncalibrated)

    def find_word(self, word: Any, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Where a word is: its probability in every topic, with equal-tailed intervals, the largest first.

        Columns: topic, support, prevalence, rank (of the word in the topic), word, share (how much of the word's
        expected occurrences are the topic's), probability, lower, upper (of the probability). Where intervals are not
        calibrated: as in ``parts.members``.

        Raises:
            ValueError: an unknown word, with words that look like it; interval out of range.
        """
        check_interval(interval)
        v, drawn = self._place_of("word", word), self._drawn_along("word")
        name = self.reader.axes["word"][v]
        of_word = [made_of(chain, slice(v, v + 1))[:, :, 0] for chain in drawn.chains]
        rows = []
        for (number, found), support in zip(drawn.topics, self._supports(drawn), strict=True):
            draws = draws_of([chain.shares for chain in drawn.chains], found)
            mean = draws.mean(axis=0, dtype=np.float64)
            size = draws_of([chain.sizes for chain in drawn.chains], found).mean()
            share = draws_of(of_word, found).mean()
            ends = summary(draws[:, v : v + 1], interval)[0]
            rows.append((number, support, size, 1 + int((mean > mean[v]).sum()), name, share, *ends))
        columns = ["topic", "support", "prevalence", "rank", "word", "share", "probability", "lower", "upper"]
        table = pd.DataFrame(rows, columns=columns)
        table = table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)
        return self.reader.labelled(table, self.reader.group_along(None), uncalibrated, NAMED)

    def correlations(self, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The correlation of the shares of each two topics over the documents, with equal-tailed intervals.

        It is computed in every draw of the chains that have both topics; pairs that no chain has are left out. The
        shares of a document sum to one, so that K topics of equal sizes that have nothing to do with each other have
        the correlation -1 / (K - 1), rather than zero. Every document counts alike, however long it is.

        Columns: topic, other, support (of the pair), correlation, lower, upper. Where intervals are not calibrated: as
        in ``parts.members``.

        Raises:
            ValueError: interval out of range; a fit without draws of its documents.
        """
        check_interval(interval)
        drawn, every = self._drawn_of_documents(), np.arange(len(self.reader.axes["doc"]))
        by_chain = correlations(made for _, made in self._made_of_documents(drawn, every))
        places = [dict(zip(one.chains.tolist(), one.components.tolist(), strict=True)) for _, one in drawn.topics]
        numbers, rows = [number for number, _ in drawn.topics], []
        for i, j in combinations(range(len(numbers)), 2):
            both = [c for c in places[i] if c in places[j] and len(drawn.chains[c].sizes)]
            if not both:
                continue
            draws = np.concatenate([by_chain[c][:, places[i][c], places[j][c]] for c in both])
            support = sum(self.fit.weights_[c] for c in both) if len(drawn.chains) > 1 else np.nan
            rows.append((numbers[i], numbers[j], support, *summary(draws[:, None], interval)[0]))
        columns = ["topic", "other", "support", "correlation", "lower", "upper"]
        table = pd.DataFrame(rows, columns=columns)
        return self.reader.labelled(table, self.reader.group_along(None), uncalibrated, NAMED | {"other": "other_name"})

    def _drawn_along(self, axis: str) -> Drawn:
        """The mixture of all chains along an axis."""
        chains = mixture(self.reader.chains_along(axis))
        return Drawn(chains, by_support(chains, self.reader.matches(self.reader.listed_along(axis).group)))

    def _drawn_of_documents(self) -> Drawn:
        """The mixture of all chains along the documents; by sizes alone where a summary of these was kept."""
        if not summarised(self.fit.posterior, ROWS):
            return self._drawn_along("doc")
        group = self.reader.group_along(None)
        chains = mixture(self.reader.chains_of(group))
        return Drawn(chains, by_support(chains, self.reader.matches(group)))

    def _made_of_documents(self, drawn: Drawn, rows: np.ndarray) -> Iterator[Made]:
        """Some places of ``rows`` at a time, which are numbers of documents, and ``made_of`` these in every chain.

        Draws of which a summary was kept are made again, each once, up to the last of the rows.
        """
        if not summarised(self.fit.posterior, ROWS):
            for first in range(0, rows.size, DOCUMENTS_AT_ONCE):
                some = np.arange(first, min(first + DOCUMENTS_AT_ONCE, rows.size))
                yield some, [made_of(chain, rows[some]) for chain in drawn.chains]
            return
        (places,) = self.reader.merged_places(self.reader.group_along(None))
        first, left = 0, rows.size
        for theta in rows_of_draws(self.fit.posterior, ROWS, DOCUMENTS_AT_ONCE):
            some = np.flatnonzero((rows >= first) & (rows < first + theta.shape[1]))
            if some.size:
                shares = theta[:, rows[some] - first].astype(np.float64)
                shares /= np.maximum(shares.sum(axis=2, keepdims=True), TINY)
                yield some, [summed(shares, places).transpose(0, 2, 1)]
            first, left = first + theta.shape[1], left - some.size
            if not left:
                return

    def _best_documents(
        self,
        drawn: Drawn,
        values_of: Callable[[Sequence[np.ndarray]], np.ndarray],
        n: int,
        within: float,
        but: int = -1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The n documents with the largest means of values (S, documents), but one, and ``summary`` of theirs."""
        every = np.arange(len(self.reader.axes["doc"]))
        means = [values_of(made).mean(axis=0, dtype=np.float64) for _, made in self._made_of_documents(drawn, every)]
        order = np.argsort(-np.concatenate(means), kind="stable")
        best = order[order != but][:n]
        values = np.empty((best.size, 3))
        for some, made in self._made_of_documents(drawn, best):
            values[some] = summary(values_of(made), within)
        return best, values

    def _supports(self, drawn: Drawn) -> list[float]:
        """The support of every topic; NaN in a fit of one chain, which cannot say."""
        return [found.support if len(drawn.chains) > 1 else np.nan for _, found in drawn.topics]

    def _ranked(self, name: str, places: np.ndarray, values: np.ndarray, kind: str = "document") -> pd.DataFrame:
        """Documents or words in this order, with a mean of this name and its interval."""
        table = pd.DataFrame({"rank": 1 + np.arange(places.size), kind: self.reader.axes[AXES[kind]][places]})
        table[[name, "lower", "upper"]] = values
        return table

    def _place_of(self, kind: str, asked: Any) -> int:
        """The number of a document or word, as ``_places_of`` has it."""
        return self._places_of(kind, [asked])[0]

    def _places_of(self, kind: str, every: Iterable[Any]) -> list[int]:
        """The numbers of documents or words, given by their labels or their numbers; raises ValueError.

        A number is a label before it is a place, and never a place where all labels are numbers.
        """
        names = self.reader.axes[AXES[kind]].tolist()
        times = Counter(names)
        place = {name: i for i, name in reversed(list(enumerate(names)))}

        def found(asked: Any) -> int:
            number = isinstance(asked, int | np.integer) and not isinstance(asked, bool)
            if (number or isinstance(asked, str)) and asked in place:
                if times[asked] > 1:
                    raise ValueError(f"{kind} must name one, got {asked!r}, the label of {times[asked]}")
                return place[asked]
            if number and isinstance(names[0], str):
                if str(asked) in place:
                    return found(str(asked))
                if all(name.isdecimal() for name in names):
                    raise ValueError(f"{kind} must be one of the labels, which are all numbers, got {asked!r}")
                if 0 <= asked < len(names):
                    return int(asked)
            if isinstance(asked, str) and isinstance(names[0], str):
                near = difflib.get_close_matches(asked, names, 3)
                hint = f"; near it: {', '.join(near)}" if near else ""
                raise ValueError(f"{kind} must be a label of the fit or its number, got {asked!r}{hint}")
            raise ValueError(f"{kind} must be a number from 0 to {len(names) - 1} or a label, got {asked!r}")

        return [found(asked) for asked in every]


def made_of(chain: Chain, some: Any) -> np.ndarray:
    """(S, K, n) how much of the expected counts of some entries of an axis is each component's."""
    counts = chain.shares[:, :, some].astype(np.float64) * chain.sizes[:, :, None]
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), TINY))


def draws_of(by_chain: Sequence[np.ndarray], found: Matched) -> np.ndarray:
    """(draws, ...) values (S, K, ...) of one component, in the chains that have it."""
    return np.concatenate([by_chain[c][:, k] for c, k in zip(found.chains, found.components, strict=True)])


def summary(draws: np.ndarray, interval: float) -> np.ndarray:
    """(n, 3) mean and ends of the equal-tailed interval of draws (S, n)."""
    ends: Iterator[np.ndarray] = iter(np.quantile(draws, tails(interval), axis=0))
    return np.stack([draws.mean(axis=0, dtype=np.float64), *ends], axis=1)


ROUNDING = 1e-12  # of sums of shares: what varies by less does not vary


def correlations(some_at_a_time: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """(S, K, K) of every chain: correlations of shares (S, K, n), which come some entries at a time.

    Zero with what does not vary. Sums are of differences from the first entry, which lose no digits to a mean.
    """
    chains: list[Moments] = []
    for made in some_at_a_time:
        chains = chains or [Moments(shares[:, :, :1]) for shares in made]
        for moments, shares in zip(chains, made, strict=True):
            moments.add(shares)
    return [moments.correlations() for moments in chains]


class Moments:
    """Sums of shares (S, K, n) over their last axis, as differences from a share (S, K, 1) each."""

    def __init__(self, near: np.ndarray) -> None:
        self.near, self.n = near, 0
        self.sizes, self.sums = np.zeros(near.shape[:2]), np.zeros(near.shape[:2])
        self.products = np.zeros((*near.shape[:2], near.shape[1]))

    def add(self, shares: np.ndarray) -> None:
        """Count these entries, too."""
        self.n += shares.shape[2]
        self.sizes += np.abs(shares).sum(axis=2)
        apart = shares - self.near
        self.sums += apart.sum(axis=2)
        self.products += apart @ apart.transpose(0, 2, 1)

    def correlations(self) -> np.ndarray:
        """(S, K, K) of all entries that were counted."""
        products = self.products - self.sums[:, :, None] * self.sums[:, None, :] / max(self.n, 1)
        squares = np.diagonal(products, axis1=1, axis2=2)
        length = np.where(squares <= (ROUNDING * self.sizes) ** 2, 0.0, np.sqrt(np.maximum(squares, 0.0)))
        scale = length[:, :, None] * length[:, None, :]
        return np.asarray(np.where(scale > 0.0, products / np.maximum(scale, TINY), 0.0))
