"""TopicModel: topics of documents whose word counts were only ever seen through noise."""

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from countveil.estimators.base import FactorizationEstimator
from countveil.estimators.checks import check_integer
from countveil.estimators.projection import RowProjection
from countveil.estimators.streaming import RowStream
from countveil.inference import posterior as posteriors
from countveil.models.layout import Layout
from countveil.models.spec import Spec, parse_spec


class TopicModel(RowProjection, RowStream, FactorizationEstimator):
    """Topics of documents whose word counts were only ever seen through noise.

    Counts are y_dv ~ Poisson(sum_k theta_dk phi_vk) with gamma priors, reports r_dv = y_dv + two-sided geometric
    noise; the posterior is of theta and phi given the reports alone (Schein et al. 2019). In the posterior
    every topic phi_k is a distribution over words and theta_dk is the expected number of document d's words
    from topic k; topics are matched across draws and chains and ordered by size.

    Args:
        n_topics: number of topics K.
        all others: as for every model, see ``FactorizationEstimator``.

    Attributes (after ``fit``), beside those of every model:
        posterior: dims (chain, draw, doc, topic, word).
        components_: (K, V) posterior mean topics.
    """

    rows_are_new_data: ClassVar[bool] = True

    def __init__(
        self,
        n_topics: int = 10,
        *,
        method: str = "gibbs",
        draws: int = 500,
        tune: int = 500,
        chains: int = 4,
        thin: int = 1,
        start: str = "least-squares",
        max_iter: int = 500,
        tolerance: float = 2e-3,
        expectation: str | None = None,
        center: str = "mode",
        passes: int = 5,
        batch_rows: int = 256,
        total_rows: int | None = None,
        prior_shape: float = 0.1,
        prior_rate: float | None = None,
        alpha: float | None = None,
        seed: int | None = None,
        threads: int | None = None,
        engine: str | None = None,
        progress: bool | None = None,
    ) -> None:
        self._remember(locals())

    def _spec(self, n_modes: int) -> Spec:
        return parse_spec("dk,vk->dv", names=("theta", "phi"))

    def _ranks(self, spec: Spec) -> dict[str, int]:
        return {"k": self.n_topics}

    def _layout(self, spec: Spec) -> Layout:
        return Layout({"d": "doc", "v": "word", "k": "topic"}, {"theta": "dk", "phi": "kv"})

    def _check_parameters(self) -> None:
        check_integer("n_topics", self.n_topics, 1)
        super()._check_parameters()

    def _adopt(self, tree: xr.DataTree) -> None:
        super()._adopt(tree)
        draws = tree["posterior"].dataset
        self.components_ = draws["phi"].mean(("chain", "draw"), dtype=np.float64).to_numpy()

    def top_words(self, n: int = 10, interval: float = 0.9) -> pd.DataFrame:
        """The n most probable words of each topic, most prevalent topic first, with equal-tailed intervals.

        Columns: topic, prevalence (its share of all expected words), rank, word, probability, lower, upper.
        """
        check_integer("n", n, 1)
        check_interval(interval)
        return posteriors.top_entries(self.posterior, "phi", "topic", n, interval, self._sizes())

    def prevalence(self, interval: float = 0.9) -> pd.DataFrame:
        """Each topic's share of all expected words, with intervals: columns topic, prevalence, lower, upper."""
        check_interval(interval)
        return posteriors.shares_table(self._sizes(), "topic", interval)

    def _sizes(self) -> np.ndarray:
        """(C S, K) expected words from each topic."""
        return posteriors.flat_draws(self.posterior, "theta").sum(axis=1, dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of ``transform``'s columns: topic0, topic1, ..."""
        return np.array(
            [f"topic{k}" for k in range(self.posterior["posterior"].sizes["topic"])], dtype=object
        )


def check_interval(interval: float) -> None:
    """Refuse what is no probability strictly between 0 and 1."""
    if not 0.0 < interval < 1.0:
        raise ValueError(f"interval must be between 0 and 1, got {interval}")
