"""Where the true counts of a simulation come from: a prior, a model of a pilot corpus, or the pilot itself."""

import warnings
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from countveil.data.observations import ExactCounts
from countveil.fit import TopicModel
from countveil.fit.base import check_whole
from countveil.inference.diagnostics import FitWarning
from countveil.inference.posterior import flat_draws
from countveil.laws.counts import POISSON, Likelihood, NegativeBinomial, Parameters
from countveil.laws.counts.protocol import in_counts, parameters_of_rows

SHAPE = 0.1
"""Gamma shape of both factors, the default of TopicModel: few topics per row, few words per topic."""
MAX_CELLS = 20_000_000  # of a simulated study, which is held dense
PILOT_FIT: dict[str, Any] = {"likelihood": "poisson", "chains": 2, "tune": 150, "draws": 50}
"""Short chains: a truth needs one plausible draw, not a settled posterior."""


class Truth(NamedTuple):
    """The true counts of a simulated study, and what they were drawn from."""

    counts: np.ndarray  # (D, V)
    rates: np.ndarray | None  # (D, V) expected counts; None: nobody knows those behind real counts
    topics: np.ndarray  # (K, V) distributions over words


class Source(Protocol):
    """Whatever draws true counts for as many participants as wanted."""

    about: str

    @property
    def n_topics(self) -> int:
        """How many topics there are, and are looked for."""

    @property
    def n_words(self) -> int:
        """How many counts a row has."""

    @property
    def most_rows(self) -> int | None:
        """How many rows can be drawn; None: as many as wanted."""

    def draw(self, rows: int, rng: np.random.Generator) -> Truth:
        """True counts of this many rows."""


class FromPrior:
    """Counts drawn from the model's own prior: theta_dk ~ Gamma(0.1), topics Dirichlet(0.1), equal sizes.

    Args:
        n_topics: K; n_words: V; total: expected sum of a row's counts.
        dispersion: p of negative binomial counts, whose variance is 1 / (1 - p) times their mean; Poisson counts where
            it is None.

    Raises:
        ValueError: an argument out of range.
    """

    most_rows = None

    def __init__(self, n_topics: int, n_words: int, total: float, dispersion: float | None = None) -> None:
        if n_topics < 1 or n_words < 2:
            raise ValueError(f"n_topics must be at least 1 and n_words at least 2, got {n_topics} and {n_words}")
        if not 0.0 < total < 1e9:
            raise ValueError(f"total must be positive and below 1e9, got {total}")
        if isinstance(dispersion, str):
            raise ValueError(f"dispersion must be a number if counts are drawn from the prior, got {dispersion!r}")
        self._likelihood: Likelihood = POISSON if dispersion is None else NegativeBinomial(dispersion)
        self.n_topics, self.n_words, self.total = n_topics, n_words, float(total)
        bursty = "" if dispersion is None else f", overdispersed with p = {dispersion:g}"
        self.about = (
            f"true counts drawn from the model's prior: {n_topics} topics over {n_words} words, rows of "
            f"{total:g} on average{bursty}"
        )

    def draw(self, rows: int, rng: np.random.Generator) -> Truth:
        """True counts of this many rows, with topics of their own."""
        theta = rng.gamma(SHAPE, self.total / (SHAPE * self.n_topics), (rows, self.n_topics))
        topics = rng.dirichlet(np.full(self.n_words, SHAPE), self.n_topics)
        theta /= self._likelihood.mean(1.0)
        return _from_factors(theta, topics, self._likelihood, (), rng)


class FromModel:
    """Counts drawn from a model of a pilot corpus: a posterior draw of its topics and of its rows' mixes.

    Rows are the pilot's in random order, and start over where more are wanted than it has: new people of the
    same kinds. The pilot is fitted as it is, so it has to be public or the owner's own.

    Args:
        counts: (D, V) true counts of the pilot, dense or sparse; n_topics: K.
        seed: of the fit; settings: further arguments of TopicModel, such as its likelihood, which counts are drawn by.
    """

    most_rows = None

    def __init__(self, counts: Any, n_topics: int, seed: int = 1, **settings: Any) -> None:
        self._fit = _fit_pilot(counts, n_topics, seed, settings)
        self._theta, self._topics = (flat_draws(self._fit.posterior, name) for name in ("theta", "phi"))
        self._parameters = [own for _, own in self._fit._reader.draws()]
        self.n_topics, self.n_words = n_topics, int(self._topics.shape[2])
        self.about = (
            f"true counts drawn from a model with {n_topics} topics of the pilot's {self._theta.shape[1]} rows x "
            f"{self.n_words} words{_in_words(self._fit)}"
        )

    def draw(self, rows: int, rng: np.random.Generator) -> Truth:
        """True counts of this many rows, from one of the posterior draws."""
        one = int(rng.integers(len(self._theta)))
        pilot_rows = self._theta.shape[1]
        order = np.concatenate([rng.permutation(pilot_rows) for _ in range(-(-rows // pilot_rows))])
        topics, likelihood = self._topics[one].astype(np.float64), self._fit.model_.likelihood
        own = parameters_of_rows(likelihood, self._parameters[one], order[:rows])
        found = _from_factors(self._theta[one, order[:rows]].astype(np.float64), topics, likelihood, own, rng)
        _, words = in_counts(likelihood, self._theta[one], topics.T, self._parameters[one])
        return found._replace(topics=(words / words.sum(axis=0)).T)


class FromPilot:
    """The pilot's own counts, under fresh *simulation* noise; topics are compared with its own fit's.

    Nothing made from it may be given to anybody: simulated noise protects nobody.

    Args:
        counts, n_topics, seed, settings: as for ``FromModel``.
    """

    def __init__(self, counts: Any, n_topics: int, seed: int = 1, **settings: Any) -> None:
        fit = _fit_pilot(counts, n_topics, seed, settings)
        self.n_topics, self._topics = n_topics, fit.components_
        self._counts: Any = sp.csr_array(counts) if sp.issparse(counts) else np.asarray(counts)
        self.n_words, self.most_rows = int(self._counts.shape[1]), int(self._counts.shape[0])
        self.about = (
            f"the pilot's own {self.most_rows} rows x {self.n_words} words under simulated noise, against a "
            f"fit of them with {n_topics} topics{_in_words(fit)}"
        )

    def draw(self, rows: int, rng: np.random.Generator) -> Truth:
        """The counts of this many of the pilot's rows; all in their order if all are wanted."""
        if rows > self.most_rows:
            raise ValueError(
                f"rows must be at most the {self.most_rows} of the pilot, got {rows}: --truth model "
                "(cv.planning.FromModel) draws more"
            )
        chosen = self._counts[np.sort(rng.permutation(self.most_rows)[:rows])]
        dense = chosen.toarray() if sp.issparse(chosen) else chosen
        return Truth(dense.astype(np.int64), None, self._topics)


def _fit_pilot(counts: Any, n_topics: int, seed: int, settings: dict[str, Any]) -> TopicModel:
    """The pilot's own posterior.

    Whether its chains agree and it explains the counts matters little, since a truth is drawn from one draw.
    """
    seen = ExactCounts(counts)
    if counts.sum() == 0:
        raise ValueError("a pilot must hold a count above zero, got only zeros")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FitWarning)
        model = TopicModel(n_topics, seed=seed, progress=False, **PILOT_FIT | settings)
        check_whole(model.fit(seen))
    return model


def _in_words(fit: TopicModel) -> str:
    """That a fit is of bursty counts."""
    return "" if fit.model_.likelihood.name == POISSON.name else f" and counts in bursts ({fit.model_.likelihood})"


def _from_factors(
    theta: np.ndarray, topics: np.ndarray, likelihood: Likelihood, own: Parameters, rng: np.random.Generator
) -> Truth:
    """Counts with the rates theta topics, whose likelihood has these parameters, and the expected counts."""
    rates = theta @ topics
    return Truth(likelihood.sample(rates, rng, own), likelihood.mean(rates, own), topics)
