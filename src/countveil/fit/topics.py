"""TopicModel: topics of documents whose word counts were only ever seen through noise, and what they do over time."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from countveil.common.parameters import declared
from countveil.fit import known_topics as knowledge
from countveil.fit import layers, projection
from countveil.fit.base import FactorizationEstimator
from countveil.fit.choosing import size_of
from countveil.fit.documents import Documents
from countveil.fit.effects import Effects
from countveil.fit.known_topics import KnownTopics, SeedWords
from countveil.fit.layers import Sizes
from countveil.fit.naming import NAMES
from countveil.fit.rows import Formula, with_covariates, with_dates, with_layers
from countveil.models.einsum import Spec, parse_spec
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout, Part

TOPICS = Part(
    "topic",
    "topics",
    whole="all expected words",
    measure="probability of the word in the topic",
    heading="most probable words: probability",
    axes=("word",),
)


@declared
class TopicModel(projection.TransformerMixin, FactorizationEstimator):
    """Topics of documents whose word counts were only ever seen through noise.

    Counts have the rates sum_k theta_dk phi_vk, with gamma priors; reports are counts plus two-sided geometric noise,
    and the posterior covers theta and phi given only the reports (Schein et al. 2019). Counts are Poisson counts, or
    come in bursts at that rate (``likelihood``). In the posterior every topic phi_k is a distribution over words, or
    over the words of bursts, and theta_dk is the expected number of document d's words, or bursts, from topic k;
    topics are matched across draws and chains and ordered by size.

    Args:
        n_topics: number of topics K, or "auto": the one of 5, 10, 20, 50 and 100 that best predicts
            held-out reports in short fits (``compare``). Several numbers, such as ``[50, 20, 5]``, make topics of
            topics: 20 topics of the 50, and 5 of the 20 ("gibbs"; ``parts.upper_topics``).
        prevalence: a formula of covariates of the documents, such as "~ party + bs(year, 4)", which ``fit`` takes as
            ``covariates``: how much of a document is expected from each topic then depends on them (``effects``).
        seeds: words that are known to be about a topic, by its name, such as ``{"economy": ["tax", "jobs"]}``. The
            first topics are these, in their order and under their names: their words are more probable by the prior
            ("gibbs", "augmented-gibbs"), as if about five of each had been seen. ``{"economy": {"tax": 20}}`` gives a
            word another weight. All other topics are found as without seeds.
        known_topics: topics that stay as they are: those of another fit, by their posterior means, or a DataFrame of
            topics by words, which have all words of the data. Not for "svi".
        **options: the options of all models, listed by the reference and ``help``.

    Attributes:
        posterior: dims (chain, draw, doc, topic, word).
        seeds_: the words of each seeded topic that the data have; None without seeds.
    """

    n_topics: Annotated[int | str | Sequence[int], Sizes()] = 10
    _: KW_ONLY
    prevalence: Annotated[str | None, Formula()] = None
    seeds: Annotated[Mapping[str, Sequence[str] | Mapping[str, float]] | None, SeedWords()] = None
    known_topics: Annotated[Any, KnownTopics()] = None

    _rows_are_new_data: ClassVar[bool] = True
    _sized_by: ClassVar[tuple[str, str] | None] = "n_topics", "k"
    _takes_dates: ClassVar[bool] = True
    _merges: ClassVar[bool] = True

    _seeded: ClassVar[tuple[np.ndarray, np.ndarray, np.ndarray] | None] = None  # (words, topics) by number, and weights
    _known_table: ClassVar[pd.DataFrame | None] = None
    _known_shares: ClassVar[np.ndarray | None] = None  # (V, K), over the words of the data
    if TYPE_CHECKING:
        seeds_: ClassVar[dict[str, list[str]] | None]

    def _spec(self, n_modes: int) -> Spec:
        return parse_spec("dk,vk->dv", names=("theta", "phi"))

    def _ranks(self, spec: Spec) -> dict[str, int]:
        return {"k": size_of(self)}

    def _layout(self, spec: Spec) -> Layout:
        return Layout({"d": "doc", "v": "word", "k": "topic"}, {"theta": "dk", "phi": "kv"}, parts={"k": TOPICS})

    def _bursty_by_column(self) -> bool:
        return self.known_topics is None  # they are shares of words; a p for each word would change them

    def _read_labels(self, data: Any, covariates: Any, time: Any) -> None:
        super()._read_labels(data, covariates, time)
        vars(self).update(seeds_=None, _seeded=None, _known_shares=None, _known_table=None)
        if self.seeds is not None:
            knowledge.read_seeds(self, data)
        if self.known_topics is not None:
            knowledge.read_topics(self, data)

    def _priors(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> dict[str, Any]:
        priors: dict[str, Any] = super()._priors(spec, sizes, mean_count)
        if self._known_shares is not None:
            priors = knowledge.of_their_size(self, priors, "theta", mean_count * sizes["v"])
        if self.covariates_ is not None:
            priors = with_covariates(self, priors, "theta")
        row_size = max(mean_count, 1e-8) * sizes["v"]
        if self.dates_ is not None:
            priors = with_dates(self, priors, "theta", row_size)
        if self._n_upper:
            priors = with_layers(self, priors, "theta", row_size)
        if self._seeded is not None:
            priors = knowledge.with_seeds(self, priors, "phi", (sizes["v"], sizes["k"]))
        return priors

    def _least_size(self) -> int:
        return 1 if self.seeds is None else len(self.seeds)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._n_upper:
            layers.check_layers(self)
        if self.seeds is not None:
            knowledge.check_seed_words(self)
        if self.known_topics is not None:
            knowledge.check_topics(self)

    def _model(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> Factorization:
        found = super()._model(spec, sizes, mean_count)
        return found if self._known_shares is None else knowledge.with_known(self, found, "phi")

    def _portable_parameters(self) -> dict[str, Any]:
        found = super()._portable_parameters()
        if self.seeds is not None:
            found["seeds"] = knowledge.portable_seeds(self.seeds)
        if self._known_table is not None:
            found["known_topics"] = knowledge.portable_topics(self._known_table)
        return found

    def _facts(self) -> dict[str, Any]:
        names = dict(enumerate(self.seeds_ or {}))
        if self._known_table is not None:
            names = knowledge.names_of_topics(self)
        return super()._facts() | ({NAMES: json.dumps({"k": names})} if names else {})

    def _restored(self, tree: xr.DataTree, model: Factorization) -> Factorization:
        knowledge.restore_topics(self, tree)
        return knowledge.restore_seeds(self, tree, super()._restored(tree, model), "phi")

    @property
    def components_(self) -> np.ndarray:
        """(K, V) posterior mean topics, as shares of expected words."""
        return self._reader.member_means("word")

    transform = projection.transform
    fit_transform = projection.fit_transform
    partial_fit = projection.partial_fit

    @property
    def documents(self) -> Documents:
        """Tables of documents, of single words and of pairs of topics."""
        return Documents(self)

    @property
    def effects(self) -> Effects:
        """Tables of what covariates and dates do to components."""
        return Effects(self)

    def top_words(self, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The n most probable words of each topic, by their numbers, with equal-tailed intervals.

        Columns: topic, prevalence (its share of all expected words), rank, word, probability, lower, upper.
        Where intervals are not calibrated: as in ``parts.members``.
        """
        found = self.parts.members("word", n, interval, uncalibrated=uncalibrated)
        return found.rename(columns={"component": "topic", "member": "word"})

    def topics(self, n: int = 8, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Topics that chains found alike, the best supported first, and what only some of them found.

        Columns: topic, support (the share of the chains that have it), prevalence, rank, word, probability, lower,
        upper; all else as in ``parts.supported``. There may be more topics than ``n_topics``, where chains disagree.
        """
        found = self.parts.supported("word", n, interval, uncalibrated=uncalibrated)
        return found.rename(columns={"component": "topic", "member": "word"})

    @property
    def _n_upper(self) -> tuple[int, ...]:
        """The numbers of topics of the layers above the first, from the bottom up."""
        return () if isinstance(self.n_topics, int | str | np.integer) else tuple(map(int, self.n_topics[1:]))

    def _makers(self) -> dict[str, Callable[[], pd.DataFrame]]:
        documents = self.documents
        upper = {"upper_topics": self.parts.upper_topics} if self._n_upper else {}
        return super()._makers() | {
            "documents": documents.shares,
            "topic_correlations": documents.correlations,
            **upper,
        }

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of ``transform``'s columns: topic0, topic1, ..."""
        return np.array([f"topic{k}" for k in range(self.posterior["posterior"].sizes["topic"])], dtype=object)
