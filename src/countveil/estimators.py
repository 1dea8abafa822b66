"""TopicModel: scikit-learn's habits over models, observations and inference."""

import json
import os
import secrets
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import xarray as xr
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from countveil import __version__
from countveil.engines.threads import available_threads
from countveil.files import replacing
from countveil.inference import methods
from countveil.inference import posterior as posteriors
from countveil.inference.continuing import Stream, restore, store
from countveil.inference.diagnostics import (
    R_HAT_FAIR,
    SIGNAL_LEAST,
    Diagnostics,
    FitWarning,
    diagnose,
    diagnose_optimiser,
    signal_share,
)
from countveil.inference.predict import log_predictive, pointwise_log_likelihood, predict_reports
from countveil.inference.project import project_rows
from countveil.inference.run import STARTS, Checkpoint, Schedule
from countveil.inference.start import mean_rate_without_offsets
from countveil.inference.svi import EXPECTATIONS
from countveil.matrices import check_mask
from countveil.models.matrix import matrix_model
from countveil.observations import Observations, ReleaseFiles, observations_of

FEWEST_DRAWS_TO_JUDGE = 50


class TopicModel(TransformerMixin, BaseEstimator):
    """Topics of documents whose word counts were only ever seen through noise.

    Counts are y_dv ~ Poisson(sum_k theta_dk phi_vk) with gamma priors, reports r_dv = y_dv + two-sided geometric
    noise; the posterior is of theta and phi given the reports alone (Schein et al. 2019). In the posterior
    every topic phi_k is a distribution over words and theta_dk is the expected number of document d's words
    from topic k; topics are matched across draws and chains and ordered by size.

    Args:
        n_topics: number of topics K.
        method: "gibbs" samples the posterior, exactly as the draws grow; "augmented-gibbs" does so as published,
            more slowly. "cavi" approximates it by independent gammas, fast and good where counts are dense;
            "bessel-cavi" does so as published; "svi" learns from batches of rows, for very large data. "em"
            finds one point estimate, fast and steady, and says nothing of uncertainty.
        draws: draws kept of each chain (of the approximation, for "cavi"; "em" has one).
        tune: sweeps of each chain thrown away first (samplers).
        chains: chains, each from its own start (samplers).
        start: where chains begin: "least-squares", or "em" (ten iterations on from there).
        max_iter: iterations at most ("cavi", "bessel-cavi", "em").
        tolerance: stop once the objective moves by less than this share of itself in one iteration ("cavi",
            "bessel-cavi").
        expectation: what counts are split by in "cavi" and "svi": "geometric" (a true bound; best where counts
            are dense), "arithmetic" (does not starve components where counts are sparse and noise strong), or,
            for "svi" alone, "trimmed" (means with half the prior's share left out; between the two).
            None is "geometric" for "cavi", "trimmed" for "svi".
        center: the Bessel's "mode", as published, or its "mean" ("bessel-cavi").
        passes, batch_rows: how often to go through the rows, and how many to learn from at once ("svi").
        total_rows: how many rows those that ``partial_fit`` has seen are to speak for; None takes as many as it
            has seen ("svi").
        thin: keep every thin-th draw only; memory grows with draws * chains * (documents + words) * topics.
        prior_shape: gamma shape of both factors; below 1 favours few topics a document and few words a topic.
        prior_rate: gamma rate of both factors; None learns one per topic, and is right when the size of the
            counts is not known beforehand (mathematics, section 11).
        seed: whole number; the same seed gives the same draws with any number of threads. None takes one from
            the operating system and keeps it in ``seed_``.
        threads: how many cores to use; None takes all that are available. Does not change the result.
        progress: show a progress bar; None shows it in a terminal or notebook only.

    Attributes (after ``fit``):
        posterior: xarray.DataTree in ArviZ's layout, dims (chain, draw, doc, topic, word), with the labels of
            the data as coordinates.
        components_: (K, V) posterior mean topics; seed_; interrupted_; fit_seconds_.
        n_features_in_, feature_names_in_ (the latter only where the words have labels).
    """

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
        tolerance: float = 1e-5,
        expectation: str | None = None,
        center: str = "mode",
        passes: int = 5,
        batch_rows: int = 256,
        total_rows: int | None = None,
        prior_shape: float = 0.1,
        prior_rate: float | None = None,
        seed: int | None = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.n_topics = n_topics
        self.method = method
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.thin = thin
        self.start = start
        self.max_iter = max_iter
        self.tolerance = tolerance
        self.expectation = expectation
        self.center = center
        self.passes = passes
        self.batch_rows = batch_rows
        self.total_rows = total_rows
        self.prior_shape = prior_shape
        self.prior_rate = prior_rate
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_minutes: float = 5.0,
        resume: bool = False,
    ) -> Self:
        """Find the posterior given a ``Release``, ``PrivatizedCounts``, ``ExactCounts`` or ``NaiveCounts``.

        "svi" also takes ``ReleaseFiles``, which stay on disk.

        Interrupted by Ctrl-C, it returns with the draws so far and ``interrupted_`` set. With ``checkpoint``
        a sampler's chains are saved to that file every so many minutes, and with ``resume`` they go on from
        there: the finished draws are the same as without the break.

        Raises:
            TypeError: data without a noise level (a bare array).
            ValueError: a parameter out of range, data that its class refuses, a damaged checkpoint or one of
                other data or settings.
            FileExistsError: the checkpoint exists and ``resume`` is not set.
        """
        self._check_parameters()
        check_positive("checkpoint_minutes", checkpoint_minutes)
        if checkpoint is not None and self.method not in methods.SAMPLERS:
            raise ValueError(
                f"checkpoint goes with one of {sorted(methods.SAMPLERS)}, got method {self.method!r}"
            )
        saving = Checkpoint(Path(checkpoint), 60.0 * checkpoint_minutes, resume) if checkpoint else None
        data = X if isinstance(X, ReleaseFiles) else observations_of(X)
        first = self._begin(data)
        found = methods.fit(self.method, data, self.model_, self._settings(saving))
        self._keep(found, data, first, data.shape[0], data.shape[0])
        self._warn(found.interrupted)
        return self

    def partial_fit(self, X: Any, y: None = None) -> Self:
        """Learn from rows that arrive over time: one pass over X in batches of ``batch_rows`` (``method="svi"``).

        The first call, if no fit by "svi" came before, starts from its own rows: make it a large one, since
        topics found in few noisy rows are slow to mend. Later calls go on from there, also after ``fit`` and
        after ``load``; with the same calls and seed the result is the same, saved in between or not. Every row
        counts as a new one, so show rows once (or set ``total_rows``). Whatever speaks of documents, such as
        ``posterior``, ``rate`` and ``diagnostics``, is about the rows of the last call; topics are about all.
        Every call makes ``draws`` draws.

        Raises:
            TypeError: data without a noise level (a bare array).
            ValueError: a method other than "svi", a parameter out of range, or words, a number of topics or
                column offsets other than those of the first call.
        """
        if self.method != "svi":
            raise ValueError(f"partial_fit goes with method 'svi', got method {self.method!r}")
        self._check_parameters()
        data = X if isinstance(X, ReleaseFiles) else observations_of(X)
        before = restore(self.posterior_) if hasattr(self, "posterior_") else None
        first = self._begin(data) if before is None else self._go_on(data, before)
        rows_seen = data.shape[0] + (0 if before is None else before.rows_seen)
        total_rows = rows_seen if self.total_rows is None else self.total_rows
        found = methods.go_on_svi(data, self.model_, self._settings(None), before, total_rows)
        self._keep(found, data, first, rows_seen, total_rows)
        self._warn(found.interrupted)
        return self

    def _go_on(self, data: Observations | ReleaseFiles, before: Stream) -> Observations:
        """Check that rows go with those before them; returns the first part of the data."""
        first = next(data.parts())[1]
        self._check_columns(first)
        if self.n_topics != before.model.n_components:
            raise ValueError(
                f"n_topics must be the {before.model.n_components} of the first rows, got {self.n_topics}"
            )
        if (first.column_labels is None) == hasattr(self, "feature_names_in_"):
            raise ValueError(
                "X must name its words if and only if the first rows did, got "
                + ("no names" if first.column_labels is None else "names")
            )
        if not np.array_equal(first.prior_scale_v, before.prior_scale_v):
            raise ValueError("X must have the column_offset of the first rows, got another")
        self.model_ = before.model
        return first

    def _begin(self, data: Observations | ReleaseFiles) -> Observations:
        """Settle the model and the seed; returns the first part of the data."""
        first = next(data.parts())[1]
        self.model_ = matrix_model(
            self.n_topics, self.prior_shape, self.prior_rate, mean_rate_without_offsets(first)
        )
        self.seed_ = secrets.randbits(63) if self.seed is None else int(self.seed)
        return first

    def _keep(
        self,
        found: methods.Fitted,
        data: Observations | ReleaseFiles,
        first: Observations,
        rows_seen: int,
        total_rows: int,
    ) -> None:
        """Take over what a method found; ``first`` is the data's first part."""
        self.interrupted_, self.fit_seconds_ = found.interrupted, found.seconds
        facts = self._facts()
        if found.means is not None:
            theta, phi = found.means
            facts["signal_share"] = signal_share(first, theta[: first.shape[0]], phi)
        self._adopt(posteriors.data_tree(found, data, facts))
        if found.state is not None:
            store(
                self.posterior_,
                Stream(found.state, self.model_, first.prior_scale_v, rows_seen, total_rows),
            )

    def _warn(self, interrupted: bool) -> None:
        if interrupted:
            warnings.warn("fit was interrupted; it holds what was found until then", stacklevel=3)
        self._warn_if_unsound()

    def _settings(self, saving: Checkpoint | None) -> methods.Settings:
        return methods.Settings(
            Schedule(self.draws, self.tune, self.chains, self.thin),
            start=self.start,
            max_iter=self.max_iter,
            tolerance=self.tolerance,
            expectation=self.expectation,
            center=self.center,
            passes=self.passes,
            batch_rows=self.batch_rows,
            seed=self.seed_,
            threads=available_threads() if self.threads is None else self.threads,
            progress=self.progress,
            saving=saving,
        )

    def _adopt(self, tree: xr.DataTree) -> None:
        self.posterior_ = tree
        draws = tree["posterior"].dataset
        self.components_ = draws["phi"].mean(("chain", "draw"), dtype=np.float64).to_numpy()
        self.n_features_in_ = draws.sizes["word"]
        self.__dict__.pop("feature_names_in_", None)
        if draws["word"].dtype.kind in "OUT":
            self.feature_names_in_ = np.asarray(draws["word"].to_numpy(), dtype=object)

    def _facts(self) -> dict[str, Any]:
        return {
            "library": f"countveil {__version__}",
            "estimator": type(self).__name__,
            "parameters": json.dumps(self.get_params(), default=np.generic.item),
            "method": self.method,
            "seed": self.seed_ if self.seed_ < 2**63 else str(self.seed_),
            "interrupted": int(self.interrupted_),
            "seconds": self.fit_seconds_,
            "model": json.dumps(self.model_, default=np.generic.item),
        }

    def _check_parameters(self) -> None:
        choices = {
            "method": methods.METHODS,
            "start": STARTS,
            "expectation": (None, *EXPECTATIONS),
            "center": ("mode", "mean"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {list(allowed)}, got {getattr(self, name)!r}")
        if self.expectation == "trimmed" and self.method != "svi":
            raise ValueError(f"expectation 'trimmed' goes with method 'svi', got method {self.method!r}")
        least = {"n_topics": 1, "draws": 1, "tune": 0, "chains": 1, "thin": 1}
        for name, bound in (least | {"max_iter": 1, "passes": 1, "batch_rows": 1}).items():
            check_integer(name, getattr(self, name), bound)
        check_positive("tolerance", self.tolerance)
        for name in ("threads", "total_rows"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1)
        if self.seed is not None:
            check_integer("seed", self.seed, 0)
        check_positive("prior_shape", self.prior_shape)
        if self.prior_rate is not None:
            check_positive("prior_rate", self.prior_rate)

    def _warn_if_unsound(self) -> None:
        facts = self.posterior.attrs
        if facts.get("signal_share", 1.0) < SIGNAL_LEAST:
            warnings.warn(self.diagnostics().verdict, FitWarning, stacklevel=4)
        sizes = self.posterior["posterior"].sizes
        if sizes["chain"] < 2 or sizes["draw"] < FEWEST_DRAWS_TO_JUDGE:
            return
        found = self.diagnostics()
        if found.table["r_hat"].max() > R_HAT_FAIR:
            warnings.warn(found.verdict, ConvergenceWarning, stacklevel=4)

    @property
    def posterior(self) -> xr.DataTree:
        """All draws; raises NotFittedError before ``fit``."""
        if not hasattr(self, "posterior_"):
            raise NotFittedError("this TopicModel is not fitted yet; call fit with a release first")
        return self.posterior_

    def rate(self) -> xr.DataArray:
        """Posterior mean of the rates mu_dv, (doc, word): the expected true counts of documents like these."""
        return posteriors.mean_rate(self.posterior)

    def top_words(self, n: int = 10, interval: float = 0.9) -> pd.DataFrame:
        """The n most probable words of each topic, most prevalent topic first, with equal-tailed intervals.

        Columns: topic, prevalence (its share of all expected words), rank, word, probability, lower, upper.
        """
        check_integer("n", n, 1)
        if not 0.0 < interval < 1.0:
            raise ValueError(f"interval must be between 0 and 1, got {interval}")
        return posteriors.top_words(self.posterior, n, interval)

    def diagnostics(self) -> Diagnostics:
        """Whether to trust the fit, in words, with the numbers behind it.

        For a sampler R-hat and effective sample sizes of the log-likelihood and of rates; for an optimiser
        whether it converged, and whether it explains the positive reports.
        """
        tree = self.posterior
        if "optimisation" not in tree.children:
            return diagnose(posteriors.label_free(tree))
        found = tree["optimisation"]
        return diagnose_optimiser(
            tree.attrs["method"],
            bool(found.attrs["converged"]),
            found.sizes["iteration"],
            tree.attrs["signal_share"],
        )

    def log_predictive(self, X: Any, cells: Any = None) -> xr.DataArray:
        """Log predictive density of max(report, 0) in each cell of X, averaged over draws, (cell,).

        X holds the reports of the fit's own documents; cells is a (D, V) boolean mask of those to score (all
        that are seen in X by default): pass the mask that the fit did not see for a held-out comparison.

        Raises:
            ValueError: X not of the fit's shape, or a cell that is masked in X.
        """
        return log_predictive(self.log_likelihood(X, cells))

    def log_likelihood(self, X: Any, cells: Any = None) -> xr.DataArray:
        """log P(max(report, 0)) in each cell under every draw, (chain, draw, cell): for LOO, as ArviZ takes it.

        Arguments and errors as for ``log_predictive``.
        """
        observations = observations_of(X)
        sizes = self.posterior["posterior"].sizes
        shape = (sizes["doc"], sizes["word"])
        if observations.shape != shape:
            raise ValueError(
                f"X must hold the documents and words of the fit {shape}, got {observations.shape}"
            )
        wanted = check_mask(cells, shape)
        if wanted is None:
            every = np.arange(shape[0] * shape[1])
            rows, columns = every // shape[1], every % shape[1]
            seen = observations.cells(rows, columns)[0] >= 0
            rows, columns = rows[seen], columns[seen]
        else:
            rows, columns = np.nonzero(wanted)
        return pointwise_log_likelihood(self.posterior, observations, rows, columns)

    def predict_reports(self, n: int, rng: np.random.Generator) -> xr.DataArray:
        """n simulated releases of the fit's documents, truncated at zero, (release, doc, word).

        For posterior predictive checks. Seeded noise: nobody's privacy rests on it.
        """
        check_integer("n", n, 1)
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
        return predict_reports(self.posterior, n, rng)

    def transform(self, X: Any) -> np.ndarray:
        """(D, K) expected words from each topic, for new documents given the fitted topics.

        The new documents have reports of their own and, if their release says so, noise levels of their own.
        """
        tree, observations = self.posterior, observations_of(X)
        self._check_columns(observations)
        return project_rows(observations, tree, self.prior_shape, self.seed_)

    def _check_columns(self, observations: Observations) -> None:
        if observations.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have the {self.n_features_in_} words of the fit, got {observations.shape[1]} columns"
            )
        names = getattr(self, "feature_names_in_", None)
        if names is None or observations.column_labels is None:
            return
        for v, (fitted, given) in enumerate(zip(names, observations.column_labels, strict=True)):
            if fitted != given:
                raise ValueError(
                    f"X must have the words of the fit in their order, got {given!r} for {fitted!r} at column {v}"
                )

    def fit_transform(self, X: Any, y: None = None, **_: Any) -> np.ndarray:
        """Fit, and return the posterior mean of theta (D, K) for the documents of the fit."""
        draws = self.fit(X).posterior["posterior"]["theta"]
        return draws.mean(("chain", "draw"), dtype=np.float64).to_numpy()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of ``transform``'s columns: topic0, topic1, ..."""
        return np.array(
            [f"topic{k}" for k in range(self.posterior["posterior"].sizes["topic"])], dtype=object
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to one netCDF file that ArviZ and xarray read; atomically, and never a true count."""
        with replacing(path) as temporary:
            self.posterior.to_netcdf(temporary, engine="h5netcdf")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fit written by ``save``.

        Raises:
            FileNotFoundError: no such file.
            ValueError: not a countveil fit of this kind.
        """
        if not Path(path).is_file():
            raise FileNotFoundError(f"no fit at {path}")
        try:
            with xr.open_datatree(path, engine="h5netcdf", phony_dims="sort") as opened:
                tree = opened.load()
            facts = tree.attrs
            if facts["estimator"] != cls.__name__:
                raise ValueError(f"{path} holds a fit of {facts['estimator']}, not of {cls.__name__}")
            fit = cls(**json.loads(facts["parameters"]))
            fit.seed_, fit.fit_seconds_ = int(facts["seed"]), float(facts["seconds"])
            fit.interrupted_ = bool(facts["interrupted"])
            fit._adopt(tree)
        except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} is not a fit saved by countveil: {error}") from error
        return fit


def check_integer(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < np.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}")
