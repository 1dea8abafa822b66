"""TopicModel: topics of documents whose word counts were only ever seen through noise, and what they do over time."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from countveil.common.parameters import WholeOrAuto, declared
from countveil.fit.base import FactorizationEstimator, Given
from countveil.fit.documents import HasDocuments
from countveil.fit.effects import HasEffects, table_of
from countveil.fit.known_topics import HasKnownTopics, HasSeeds, KnownTopics, SeedWords, portable_seeds
from countveil.fit.naming import NAMES
from countveil.fit.projection import RowProjection, RowStream
from countveil.fit.reading import Readable, as_calibrated
from countveil.fit.rows import Formula, HasDates
from countveil.inference.matching import places
from countveil.inference.posterior import OVER_TIME
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout, Part
from countveil.models.spec import Spec, parse_spec


class HasPrevalenceOverTime(HasDates, Readable):
    """Adds ``prevalence_over`` to topics of documents that have dates."""

    takes_dates = True

    def prevalence_over(self: Any, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Each topic's expected share of a document, in every step of time (mathematics, equation 17.11).

        Columns: topic, support, time, estimate (the posterior mean), lower, upper. Steps without documents are there,
        too. It is the share in the words of a document that could have been written then, not the mean of those that
        were. Topics are those of ``prevalences``, each from the chains that have it; support is as in ``topics``. Where
        intervals are not calibrated: as in ``members``.

        Raises:
            ValueError: a fit without dates, or an interval out of range.
        """
        if self.dates_ is None:
            raise ValueError(
                "prevalence_over needs a fit with dates of the rows (time=), got a fit without dates"
            )
        row = self.model_.factors[self.model_.row_factor].name
        draws = self.posterior["posterior"][f"{row}{OVER_TIME}"].to_numpy()
        shares = draws / draws.sum(axis=3, keepdims=True, dtype=np.float64)
        kept = places(self.weights_, [draws.shape[1]] * draws.shape[0])
        drawn = [shares[c, own] for c, own in enumerate(kept)]
        table = table_of(self, drawn, list(self.dates_.names), "time", interval)
        return as_calibrated(table, self.why_no_intervals, uncalibrated)


TOPICS = Part(
    "topic",
    "topics",
    whole="all expected words",
    measure="probability of the word in the topic",
    heading="most probable words: probability",
    axes=("word",),
)


@declared
class TopicModel(
    HasSeeds,
    HasKnownTopics,
    HasDocuments,
    HasPrevalenceOverTime,
    HasEffects,
    RowProjection,
    RowStream,
    FactorizationEstimator,
):
    """Topics of documents whose word counts were only ever seen through noise.

    Counts have the rates sum_k theta_dk phi_vk, with gamma priors; reports are counts plus two-sided geometric noise,
    and the posterior is of theta and phi given the reports alone (Schein et al. 2019). Counts are Poisson counts, or
    come in bursts at that rate (``likelihood``). In the posterior every topic phi_k is a distribution over words, or
    over the words of bursts, and theta_dk is the expected number of document d's words, or bursts, from topic k;
    topics are matched across draws and chains and ordered by size.

    Args:
        n_topics: number of topics K, or "auto": the one of 5, 10, 20, 50 and 100 with which short fits predict
            best what they do not see (``compare``).
        prevalence: a formula of covariates of the documents, such as "~ party + bs(year, 4)", which ``fit`` takes as
            ``covariates``: how much of a document is expected from each topic then depends on them (``effects``,
            ``contrast``, ``expected_prevalence``).
        seeds: words that are known to be about a topic, by its name, such as ``{"economy": ["tax", "jobs"]}``. The
            first topics are these, in their order and under their names: their words are more probable by the prior
            ("gibbs", "augmented-gibbs"), as if about five of each had been seen. ``{"economy": {"tax": 20}}`` gives a
            word another weight. All other topics are found as without seeds.
        known_topics: topics that stay as they are: those of another fit, by their posterior means, or a DataFrame of
            topics by words, which have all words of the data. Not for "svi".
        **options: what every model takes; the reference and ``help`` list it.

    Attributes:
        posterior: dims (chain, draw, doc, topic, word).
        seeds_: the words of each seeded topic that the data have; None without seeds.
        components_: (K, V) posterior mean topics, as shares of expected words.
    """

    n_topics: Annotated[int | str, WholeOrAuto()] = 10
    _: KW_ONLY
    prevalence: Annotated[str | None, Formula()] = None
    seeds: Annotated[Mapping[str, Sequence[str] | Mapping[str, float]] | None, SeedWords()] = None
    known_topics: Annotated[Any, KnownTopics()] = None

    rows_are_new_data: ClassVar[bool] = True
    sized_by: ClassVar[tuple[str, str] | None] = "n_topics", "k"

    def _spec(self, n_modes: int) -> Spec:
        return parse_spec("dk,vk->dv", names=("theta", "phi"))

    def _ranks(self, spec: Spec) -> dict[str, int]:
        return {"k": self._size()}

    def _layout(self, spec: Spec) -> Layout:
        return Layout(
            {"d": "doc", "v": "word", "k": "topic"}, {"theta": "dk", "phi": "kv"}, parts={"k": TOPICS}
        )

    def _bursty_by_column(self) -> bool:
        return self.known_topics is None  # they are shares of words; a p for each word would change them

    def _given(self, X: Any) -> Given:
        return super()._given(self._with_topics(self._with_places(self._dated(self._aligned(X)))))

    def _priors(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> dict[str, Any]:
        priors = self._of_their_size(
            super()._priors(spec, sizes, mean_count), "theta", mean_count * sizes["v"]
        )
        priors = self._with_covariates(priors, "theta")
        priors = self._with_dates(priors, "theta", max(mean_count, 1e-8) * sizes["v"])
        return self._with_seeds(priors, "phi", (sizes["v"], sizes["k"]))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_seeds()
        self._check_topics()

    def _model(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> Factorization:
        return self._with_known(super()._model(spec, sizes, mean_count), "phi")

    def _portable_parameters(self) -> dict[str, Any]:
        known = {"seeds": portable_seeds(self.seeds), "known_topics": self._portable_topics()}
        return {**super()._portable_parameters(), **known}

    def _facts(self) -> dict[str, Any]:
        names = dict(enumerate(self.seeds_ or {})) or self._names_of_topics()
        return super()._facts() | ({NAMES: json.dumps({"k": names})} if names else {})

    def _restored(self, tree: xr.DataTree, model: Factorization) -> Factorization:
        self._restore_topics(tree)
        return self._restore_seeds(tree, super()._restored(tree, model), "phi")

    def _adopt(self, tree: xr.DataTree) -> None:
        self._keep_covariates(tree)
        self._keep_dates(tree)
        super()._adopt(tree)
        self.components_ = self.member_means("word")

    def top_words(self, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The n most probable words of each topic, by their numbers, with equal-tailed intervals.

        Columns: topic, prevalence (its share of all expected words), rank, word, probability, lower, upper.
        Where intervals are not calibrated: as in ``members``.
        """
        found = self.members("word", n, interval, uncalibrated=uncalibrated)
        return found.rename(columns={"component": "topic", "member": "word"})

    def topics(self, n: int = 8, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Topics that chains found alike, the best supported first, and what only some of them found.

        Columns: topic, support (the share of the chains that have it), prevalence, rank, word, probability, lower,
        upper; all else as in ``supported``. There may be more topics than ``n_topics``, where chains disagree.
        """
        found = self.supported("word", n, interval, uncalibrated=uncalibrated)
        return found.rename(columns={"component": "topic", "member": "word"})

    def _makers(self) -> dict[str, Callable[[], pd.DataFrame]]:
        found = super()._makers() | self._makers_of_effects()
        if self.dates_ is not None:
            found["prevalence_over"] = self.prevalence_over
        return found | {"documents": self.topic_shares, "topic_correlations": self.topic_correlations}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of ``transform``'s columns: topic0, topic1, ..."""
        return np.array(
            [f"topic{k}" for k in range(self.posterior["posterior"].sizes["topic"])], dtype=object
        )
