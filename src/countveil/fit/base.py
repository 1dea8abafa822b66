"""What all models have in common: fitting, scoring, diagnosing, predicting, saving."""

import json
import os
import secrets
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
import xarray as xr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from countveil import __version__
from countveil.common import fit_files
from countveil.common.parameters import check_positive, check_rules, declared
from countveil.data.covariates import Covariates
from countveil.data.dates import Dates, read_dates
from countveil.data.mechanism_checks import MechanismCheck, check_mechanism
from countveil.data.observations import Observations, PrivatizedCounts
from countveil.data.release_files import ReleaseFiles
from countveil.data.reports import observations_of
from countveil.engines.opening import check_engine, opened
from countveil.engines.threads import ThreadEngine, threads_worth
from countveil.fit import counts_table, predicting, results
from countveil.fit.choosing import CHOSEN, choosing, chosen_likelihood, is_auto, keep_choice, said_of
from countveil.fit.exporting import Tables, fit_card, makers_of_parts
from countveil.fit.parameters import APPROXIMATED, SAMPLED, Options, check_plain
from countveil.fit.parts import Parts, supported_together
from countveil.fit.predictive_checks import check_against_fit
from countveil.fit.reading import FitReader
from countveil.fit.rows import (
    check_covariates_given,
    check_dates_given,
    check_formula,
    covariates_in_order,
    keep_covariates,
    keep_dates,
    restore_covariates,
    restore_dates,
)
from countveil.fit.starting import check_another, start_of
from countveil.fit.totals import misses_counts, totals_of
from countveil.inference import posterior as posteriors
from countveil.inference.algorithm import BaseEstimator, Checkpoint, Fitted, Method, Settings
from countveil.inference.checkpoint import seed_of
from countveil.inference.diagnostics import Diagnostics, FitWarning, State, signal_share
from countveil.inference.draws import Schedule, rounds_of
from countveil.inference.facts import mean_rate_without_offsets
from countveil.inference.folds import weigh
from countveil.inference.matching import Matched, weights_of
from countveil.inference.methods import METHODS, check_learned_shapes, check_likelihood, fit, in_file, method_of
from countveil.inference.posterior import kept_data, kept_mechanism, kept_share, kept_totals
from countveil.inference.progress import compiling_told
from countveil.inference.run import Sampler, named_start
from countveil.inference.svi import Stream, store
from countveil.laws.counts import POISSON, Likelihood, NegativeBinomial
from countveil.models.einsum import Spec, axis_sizes
from countveil.models.factorization import Factorization, factorization, model_facts, typical_priors
from countveil.models.layout import Layout
from countveil.models.priors import LEARNED, USUAL_SHAPE, GammaPrior, LearnedShapePrior
from countveil.privacy import Release

if TYPE_CHECKING:
    from distributed import Client


MIN_DRAWS_TO_JUDGE = 50  # R-hat of shorter chains is too noisy to warn about


class Given(NamedTuple):
    """Data as inference takes them, their first part, what their axes are called, and their model."""

    data: Observations | ReleaseFiles
    first: Observations
    labels: tuple[list[str] | None, ...]
    model: Factorization
    mechanism: MechanismCheck | None  # by reports as they came


@declared
class FactorizationEstimator(Options, BaseEstimator):
    """A Poisson factorization that follows scikit-learn's conventions; the public models say which one it is.

    Attributes are there after ``fit``.

    Attributes:
        posterior: xarray.DataTree in ArviZ's layout, with the labels of the data as coordinates.
        n_topics_: the number of components, also where it was chosen ("auto"); or n_communities_, or n_components_.
        selection_: only where it was chosen: the ``Comparison`` that did so, in memory only.
        likelihood_: only where it was chosen with that number: the parameters ``likelihood`` and ``dispersion`` of it.
        seed_: the seed, also where it was None.
        interrupted_: whether the fit was, and has fewer draws than were asked for.
        fit_seconds_: how long it took.
        n_iter_: sweeps of each chain, or iterations.
        n_features_in_: columns of data of two axes.
        feature_names_in_: only for data of two axes whose columns have labels.
    """

    _rows_are_new_data: ClassVar[bool] = False  # whether rows may come in batches ("svi")
    _usual_likelihood: ClassVar[str | None] = None  # if the method takes it; None is the method's own first
    _sized_by: ClassVar[tuple[str, str] | None] = None  # the parameter that may be "auto", and its latent axis
    _takes_dates: ClassVar[bool] = False  # whether rows may have dates
    _merges: ClassVar[bool] = False  # whether components can be counted as one

    covariates_: ClassVar[Covariates | None] = None  # of the rows; a fit with some has its own
    dates_: ClassVar[Dates | None] = None

    def _spec(self, n_modes: int) -> Spec:
        """The einsum of data with this many axes."""
        raise NotImplementedError

    def _ranks(self, spec: Spec) -> dict[str, int]:
        """The size of every latent axis."""
        raise NotImplementedError

    def _layout(self, spec: Spec) -> Layout:
        """What axes and factors are called in the posterior."""
        raise NotImplementedError

    def _observe(self, X: Any) -> Observations | ReleaseFiles:
        """Data as inference sees them."""
        if isinstance(X, ReleaseFiles):
            return X if self._method.batches else X.unpacked()
        if self.alpha is None or isinstance(X, Observations | Release):
            return observations_of(X)
        return PrivatizedCounts(alpha=self.alpha, **check_plain(X, self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.alpha is not None and not np.any(self.alpha)
        return tags

    def _model(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> Factorization:
        """The model over axes of these sizes."""
        priors = self._priors(spec, sizes, mean_count)
        return factorization(spec, sizes, priors, likelihood=chosen_likelihood(self))

    def _priors(
        self, spec: Spec, sizes: dict[str, int], mean_count: float
    ) -> dict[str, GammaPrior | LearnedShapePrior]:
        """The prior of every factor by name, as ``prior_shape`` and ``prior_rate`` say."""
        usual = LEARNED if self._method.learned_shapes else USUAL_SHAPE
        shape = usual if self.prior_shape is None else self.prior_shape
        return typical_priors(spec, sizes, shape, self.prior_rate, mean_count)

    def _likelihood(self) -> Likelihood:
        """The distribution of a count given its rate, by the parameters; raises ValueError."""
        return self._likelihood_of(self.likelihood, self.dispersion)

    def _likelihood_of(self, name: str | None, dispersion: str | float | None) -> Likelihood:
        """What parameters of these values stand for; raises ValueError."""
        usual = self._usual_likelihood or self._method.likelihoods[0]
        name = name or (usual if dispersion is None else NegativeBinomial.name)
        if name == POISSON.name:
            if dispersion is not None:
                raise ValueError(f"dispersion requires likelihood {NegativeBinomial.name!r}, got likelihood {name!r}")
            return POISSON
        usual = "column" if self._method.samples and self._bursty_by_column() else "global"
        return NegativeBinomial(usual if dispersion is None else dispersion)

    def _bursty_by_column(self) -> bool:
        """Whether each column of the data has a dispersion of its own unless ``dispersion`` says otherwise."""
        return False

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        covariates: Any = None,
        time: Any = None,
        client: "Client | None" = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_minutes: float = 5.0,
        resume: bool = False,
    ) -> Self:
        """Find the posterior given a ``Release``, ``PrivatizedCounts``, ``ExactCounts`` or ``NaiveCounts``.

        Files stay on disk (``ReleaseFiles``); "em" alone holds copies in memory. Ctrl-C returns with the draws so far
        and ``interrupted_`` set. With ``checkpoint`` a sampler's chains are saved there every ``checkpoint_minutes``
        minutes (a warning says if they cannot be). With ``resume`` they go on, to the same draws, under their own seed
        if the model has none. ``client`` is a ``distributed.Client``, ``covariates`` a DataFrame for a ``prevalence``
        (or the release's own), ``time`` dates.

        Raises:
            TypeError: data without a noise level (a bare array, and no ``alpha``).
            ValueError: a parameter out of range, data that its class refuses or that do not fit the model, a damaged
                checkpoint or one of other data or settings.
            FileExistsError: the checkpoint exists and ``resume`` is not set.
            MemoryError: the draws do not fit in memory.
            ModuleNotFoundError, ConnectionError: Dask is not installed, does not answer, or loses all workers.
        """
        self._check_parameters()
        if covariates is not None:
            check_covariates_given(self)
        if time is not None:
            check_dates_given(self)
        check_computing(self._method, self.engine, client, getattr(self, "levels", False))
        saving = saving_to(checkpoint, checkpoint_minutes, resume, self._method)
        if is_auto(self):
            self._settle_seed(saving)
        with choosing(self, X):
            given = self._given(X, covariates=covariates, time=time)
            if not is_auto(self):
                self._settle_seed(saving)
            settings = self._settings(saving, given)
            with compiling_told(self.progress), opened(self.engine, client, settings.threads) as engine:
                found = fit(self._method, given.data, given.model, settings._replace(engine=engine))
        n_rows = given.data.shape[0]
        self._adopt_fit(found, given, n_rows, n_rows)
        return self

    rate = results.rate
    totals = results.totals
    diagnostics = results.diagnostics
    dispersions = results.dispersions
    log_predictive = results.log_predictive
    log_likelihood = results.log_likelihood
    predict_reports = predicting.predict_reports
    predict_counts = predicting.predict_counts
    count_intervals = predicting.count_intervals
    counts_table = counts_table.counts_table
    save = results.save

    # Functions of a fit, or of several, by which modules that may not import models score and compare them.
    _log_probabilities = predicting.log_probabilities
    _count_probabilities = predicting.count_probabilities
    _report_probabilities = predicting.report_probabilities
    _supported_together = staticmethod(supported_together)
    _totals_together = staticmethod(results.totals_of_fits)
    _count_intervals_together = staticmethod(predicting.count_intervals_together)

    def set_params(self, **params: Any) -> Self:
        """As scikit-learn's; ``method__passes=2`` also sets an option of a method that is given by its name."""
        method = params.get("method", self.method)
        if isinstance(method, str) and method in METHODS and any(name.startswith("method__") for name in params):
            params["method"] = method_of(method)
        changed: Self = super().set_params(**params)
        return changed

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fit written by ``save``, once its seal, its structure and its values have been checked.

        Raises:
            FileNotFoundError: no such file.
            ValueError: not a countveil fit of this kind, or one that was changed, before or while it was read.
            OSError: the process that checks it first does not start.
        """
        return results.read(cls, path)

    @property
    def posterior(self) -> xr.DataTree:
        """All draws; raises NotFittedError before ``fit``."""
        if not hasattr(self, "posterior_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit with a release first")
        return self.posterior_

    @property
    def weights_(self) -> np.ndarray:
        """(chain,) weights of the chains, with sum one: of each, whatever is said of all draws takes as many."""
        return weights_of(self.posterior)

    @property
    def _formula(self) -> str | None:
        """The parameter ``prevalence``; None for models without it."""
        return getattr(self, "prevalence", None)

    @property
    def _n_upper(self) -> tuple[int, ...]:
        """The numbers of components of the layers above the first, from the bottom up."""
        return ()

    @property
    def parts(self) -> Parts:
        """Tables of topics, communities or components, and their names."""
        return Parts(self)

    @property
    def tables(self) -> Tables:
        """Every table that the fit has, by name."""
        return Tables(self)

    @property
    def _reader(self) -> FitReader:
        """The fit as the rest of the library reads it."""
        return FitReader(self)

    def _fitted(self) -> tuple[xr.DataTree, Factorization, Layout]:
        """The posterior, and what its variables are."""
        tree = self.posterior
        return tree, self.model_, self._layout(self.model_.spec)

    def _observed(self, X: Any) -> Observations:
        """Data in memory as the model sees them: cells that are not part of them, such as self-loops, are masked.

        Raises:
            TypeError: data without a noise level (a bare array, and no ``alpha``).
            ValueError: data that the model refuses.
        """
        found = self._observe(X)
        return found.unpacked() if isinstance(found, ReleaseFiles) else found

    def _makers(self) -> dict[str, Callable[[], pd.DataFrame]]:
        """What makes each of ``tables`` that is about what was found."""
        return makers_of_parts(self)

    def _least_size(self) -> int:
        """The least number of components to choose."""
        return 1

    def _modelled_cells(self) -> np.ndarray | None:
        """A mask of the cells that the model does not leave out, over the data's axes; None for all."""
        return None

    @property
    def _in_pairs(self) -> bool:
        """Whether (i, j) and (j, i) are one count, which the model has above the diagonal."""
        return False

    def _sizes_by_chain(self) -> np.ndarray | float:
        """(C, S, K) the counts that an entry of one stands for; 1 where the rows' factor is in expected counts."""
        return 1.0

    def _read_labels(self, data: Any, covariates: Any, time: Any) -> None:
        """Keep what priors need to know of the data's labels, and nothing of earlier data; raises ValueError."""
        own: dict[str, Any] = vars(self)
        own.update(covariates_=None, dates_=None)
        if self._formula is not None:
            own["covariates_"] = covariates_in_order(self._formula, data, covariates)
        if time is not None:
            own["dates_"] = read_dates(time, data.labels[0], data.shape[0])

    def _restored(self, tree: xr.DataTree, model: Factorization) -> Factorization:
        """The model with what its priors take from the data that a file holds; raises ValueError."""
        return restore_dates(self, tree, restore_covariates(self, tree, model))

    def _repr_html_inner(self) -> str:
        """A table of facts once there is a fit; scikit-learn's own picture of the model before."""
        return fit_card(self) if hasattr(self, "posterior_") else str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def _settle_seed(self, saving: Checkpoint | None = None) -> None:
        found = seed_of(saving.path) if saving is not None and saving.path.exists() else secrets.randbits(63)
        self.seed_ = found if self.seed is None else int(self.seed)

    def _given(self, X: Any, *, covariates: Any = None, time: Any = None) -> Given:
        """Data in the matrix form of their model."""
        data = self._observe(X)
        self._read_labels(data, covariates, time)
        if isinstance(data, ReleaseFiles):
            spec, first = self._spec(2), next(data.parts())[1]
            sizes = axis_sizes(spec, data.shape, self._ranks(spec))
            model = self._model(spec, sizes, self._mean_rate(first))
            return Given(data, first, (data.row_labels, data.column_labels), model, check_mechanism(first))
        spec, labels = self._spec(len(data.mode_shape)), data.labels
        sizes = axis_sizes(spec, data.mode_shape, self._ranks(spec))
        model = self._model(spec, sizes, 1.0)
        check_axes(self._layout(spec), model, data)
        mechanism = check_mechanism(data)
        data = data.matricized(*model.matrix_axes)
        model = self._model(spec, sizes, self._mean_rate(data))
        return Given(data, data, labels, model, mechanism)

    def _mean_rate(self, data: Observations) -> float:
        """The mean rate before offsets, found in threads: the engine of the fit opens later."""
        with ThreadEngine(self._n_threads(data)) as engine:
            return mean_rate_without_offsets(data, engine)

    def _n_threads(self, data: Any) -> int:
        return threads_worth(data) if self.threads is None else self.threads

    def _adopt_fit(self, found: Fitted, given: Given, rows_seen: int, total_rows: int) -> None:
        """Take over what a method found. Only public methods call it, so that warnings point at the user's code."""
        data, first, labels, self.model_, mechanism = given
        self.interrupted_, self.fit_seconds_ = found.interrupted, found.seconds
        facts = self._facts()
        if found.means is not None:
            theta, phi = self.model_.matrices(found.means)
            rows = theta[: first.shape[0]]
            parameters = tuple(values[0, 0] for values in found.draws.parameters)  # the same in all draws
            if first.noise.counts_positive:
                share = signal_share(first, rows, phi, self.model_.likelihood, parameters)
                facts |= kept_share(share)
        layout = self._layout(self.model_.spec)
        tree = posteriors.data_tree(found, data, self.model_, layout, labels, facts)
        if found.state is not None:
            store(tree, self.model_, Stream(found.state, first.prior_scale_v, rows_seen, total_rows))
        method = self._method
        stacked = isinstance(method, Sampler) and method.weights == "stacked"
        if stacked and tree["posterior"].sizes["chain"] > 1:
            assert isinstance(data, Observations)
            weigh(tree, self.model_, layout, data, self.seed_)
        self._adopt(tree)
        diagnosed = cache(partial(results.diagnosed, self))  # a second of a large fit, which two questions share
        if not isinstance(data, ReleaseFiles):
            tree.attrs |= kept_data(data) | kept_totals(totals_of(self, data))  # by adopted draws
            mechanism = check_against_fit(self, data, mechanism, diagnosed)
        tree.attrs |= kept_mechanism(mechanism)
        if found.interrupted:
            warnings.warn("fit was interrupted; it has only what was computed until then", stacklevel=3)
        self._warn_if_unsound(mechanism, diagnosed)

    def _settings(self, saving: Checkpoint | None, given: Given, start: Any = None) -> Settings:
        rounds, draws = rounds_of(self.chains), self.draws
        if draws is None:
            draws = SAMPLED if self._method.samples else APPROXIMATED
        return Settings(
            Schedule(draws, self.tune, rounds[-1], self._thin(), rounds),
            seed=self.seed_,
            threads=self._n_threads(given.data),
            progress=self.progress,
            saving=saving,
            start=start_of(
                self.start if start is None else start, given.model, self._layout(given.model.spec), given.labels
            ),
        )

    @property
    def _method(self) -> Method:
        """The method, also where its name stands for it; raises ValueError for a name that there is not."""
        return method_of(self.method)

    def _thin(self) -> int:
        """Sweeps of a chain for each draw that is kept."""
        method = self._method
        return method.thin if isinstance(method, Sampler) else 1

    def _start_as_named(self, given: Given) -> Any:
        """What stands for the start of fits to these data in a fingerprint; raises ValueError as ``start_of``."""
        return named_start(start_of(self.start, given.model, self._layout(given.model.spec), given.labels))

    def _adopt(self, tree: xr.DataTree) -> None:
        """Take over a posterior, from a fit or from a file."""
        if self.covariates_ is not None:
            keep_covariates(self, tree)
        if self.dates_ is not None:
            keep_dates(self, tree)
        self.posterior_ = tree
        self._matched: dict[Any, list[Matched]] = {}
        keep_choice(self, self.model_)
        self.n_features_in_ = int(self.model_.columns.shape[0])
        sampled = self.tune + self._thin() * tree["posterior"].sizes["draw"]
        found = tree["optimisation"].sizes["iteration"] if "optimisation" in tree.children else sampled
        self.n_iter_ = int(found)
        self.__dict__.pop("feature_names_in_", None)
        axes = self.model_.spec.output
        names = tree["posterior"][self._layout(self.model_.spec).dims[axes[-1]]].to_numpy()
        if len(axes) == 2 and names.dtype.kind in "OUT":
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _facts(self) -> dict[str, Any]:
        return ({CHOSEN: said_of(self.selection_)} if hasattr(self, "selection_") else {}) | {
            "library": f"countveil {__version__}",
            "estimator": type(self).__name__,
            "parameters": json.dumps(self._portable_parameters(), default=np.generic.item),
            "method": self._method.name,
            "seed": self.seed_ if self.seed_ < 2**63 else str(self.seed_),
            "interrupted": int(self.interrupted_),
            "seconds": self.fit_seconds_,
            "model": json.dumps(model_facts(self.model_)),
        }

    def _portable_parameters(self) -> dict[str, Any]:
        """Parameters that a file can hold."""
        parameters = self.get_params(deep=False)
        parameters["method"] = in_file(self.method)
        parameters["engine"] = None  # where a fit was computed is no part of it
        if not isinstance(self.start, str):
            parameters["start"] = "auto"  # factors are not kept
        return parameters

    def __sklearn_clone__(self) -> Self:
        """A copy that is not fitted; another fit among its parameters stays as it is."""
        parameters = {
            name: value if name in ("start", "known_topics") else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**parameters)

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, alone or together; raises ValueError."""
        check_rules(self)
        if not isinstance(self.start, str):
            check_another(self)
        if self._formula is not None:
            check_formula(self)
        method = self._method
        check_likelihood(method, self._likelihood())
        check_computing(method, self.engine)
        check_learned_shapes(method, self.prior_shape == LEARNED, "prior_shape")
        if method.batches and not self._rows_are_new_data:
            raise ValueError(
                f"method {method.name!r} needs rows that come in batches, got a {type(self).__name__}: "
                'use method="gibbs"'
            )
        if getattr(self, "self_loops", False) and not method.self_loops:
            able = sorted(name for name, other in METHODS.items() if other.self_loops)
            raise ValueError(
                f"self_loops requires one of {able}, got method {method.name!r}: rates with the "
                "square of an entry have no gamma conditional"
            )

    def _warn_if_unsound(self, mechanism: MechanismCheck | None, diagnosed: Callable[[], Diagnostics]) -> None:
        missed = misses_counts(self, diagnosed) or bool(mechanism and mechanism.wrong)
        sizes = self.posterior["posterior"].sizes
        if not missed and (sizes["chain"] < 2 or sizes["draw"] < MIN_DRAWS_TO_JUDGE):
            return
        found = results.with_doubts(self, diagnosed())
        if missed or found.state == State.UNSAFE:
            category = FitWarning if missed else ConvergenceWarning
            warnings.warn(results.doubted_if_naive(self, found).verdict, category, stacklevel=4)


def saving_to(path: str | os.PathLike[str] | None, minutes: float, resume: bool, method: Method) -> Checkpoint | None:
    """Where and how often a sampler's chains are saved, if at all; raises ValueError and FileExistsError."""
    check_positive("checkpoint_minutes", minutes)
    if path is not None and not method.samples:
        samplers = sorted(name for name, each in METHODS.items() if each.samples)
        raise ValueError(f"checkpoint requires one of {samplers}, got method {method.name!r}")
    if not path:
        return None
    saving = Checkpoint(Path(path), 60.0 * minutes, resume)
    saving.check_free()
    return saving


def check_axes(layout: Layout, model: Factorization, data: Observations) -> None:
    """Refuse axes called like the arrays that this fit will have beside its factors; raises ValueError."""
    taken = {*model.likelihood.parameter_axes, data.noise.level, posteriors.EXPOSURE, posteriors.OBJECTIVE}
    found = sorted(taken.intersection(layout.dims.values()))
    if found:
        raise ValueError(
            f"modes (dims) must differ from the names of the posterior's own arrays, got {found}: choose other names"
        )


def check_computing(method: Method, engine: Any, client: Any = None, levels: bool = False) -> None:
    """Refuse what is not an engine, and Dask with levels or for a method that would send every batch to its workers."""
    dask = check_engine(engine, client)
    if dask and levels:
        raise ValueError(
            "levels must be False with Dask, whose workers do not return what levels are drawn from, got True: "
            + ('use engine="threads"' if client is None else "leave out client")
        )
    if dask and method.batches:
        raise ValueError(
            f"method {method.name!r} requires engine None or 'threads', since every batch would have to be sent, got "
            + (f"engine {engine!r}" if client is None else "a client")
        )


def model_called(name: str) -> type[FactorizationEstimator] | None:
    """The model class of this name, the library's or a user's; None if no imported module has one."""
    waiting: list[type[FactorizationEstimator]] = [FactorizationEstimator]
    for kind in waiting:
        if kind.__name__ == name and kind is not FactorizationEstimator:
            return kind
        waiting += kind.__subclasses__()
    return None


def load(path: str | os.PathLike[str]) -> FactorizationEstimator:
    """A fit written by ``save``, whichever model it is of.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a fit of countveil, or one that was changed.
    """
    kind = fit_files.check(path)
    model = model_called(kind)
    if model is None:
        raise ValueError(f"{path} is not a fit saved by countveil: no model is called {kind!r:.40}")
    return model.load(path)


def check_whole(model: FactorizationEstimator) -> None:
    """Interrupt again if the model's fit was interrupted: what it holds must not be compared with finished fits.

    Raises:
        KeyboardInterrupt: the model's fit was interrupted.
    """
    if model.interrupted_:
        raise KeyboardInterrupt
