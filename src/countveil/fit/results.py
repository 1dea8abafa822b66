"""The results of every fit: its posterior, rates, diagnostics, scores, predictions, and its file."""

import json
import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr

from countveil.common import fit_files
from countveil.common.files import make_room, replacing
from countveil.fit.choosing import ChoosesSize
from countveil.fit.counts_table import HasCountsTable
from countveil.fit.merging import check_merged_kept
from countveil.fit.naming import check_names_kept
from countveil.fit.parts import HasSupport
from countveil.fit.rows import HasCovariates, HasDates
from countveil.fit.totals import SETTLED, doubt_of, totals_together
from countveil.inference import compact, tuning
from countveil.inference import posterior as posteriors
from countveil.inference.diagnostics import (
    Diagnostics,
    State,
    Totals,
    diagnose,
    diagnose_optimiser,
    undetermined_in_words,
    unshared_in_words,
)
from countveil.inference.file_checks import check_model, check_tree
from countveil.inference.kept import mechanism_kept, share_kept, totals_kept
from countveil.inference.matching import GROUP, unweighted
from countveil.inference.methods import METHODS, from_file, method_of
from countveil.inference.predict import Laws, log_predictive, pointwise_log_likelihood
from countveil.models.factorization import Factorization, check_digests, model_of
from countveil.models.layout import latent_groups
from countveil.models.spec import Spec, axis_sizes

FILE_OVERHEAD = 1 << 20  # bytes of a file besides arrays, at most: names, labels and indices


class Results(HasCovariates, HasDates, ChoosesSize, HasSupport, HasCountsTable):
    """A fit's results, for the estimator that sets ``posterior_`` and ``model_``."""

    method: Any
    seed_: int
    fit_seconds_: float
    interrupted_: bool
    merges: ClassVar[bool] = False  # whether components can be counted as one

    def _adopt(self, tree: xr.DataTree) -> None:
        """Take over a posterior, from a fit or from a file."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, alone or together; raises ValueError."""
        raise NotImplementedError

    def _spec(self, n_modes: int) -> Spec:
        """The einsum of data with this many axes."""
        raise NotImplementedError

    def _ranks(self, spec: Spec) -> dict[str, int]:
        """The size of every latent axis."""
        raise NotImplementedError

    def _model(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> Factorization:
        """The model over axes of these sizes."""
        raise NotImplementedError

    def _take_rows(self, X: Any, covariates: Any, time: Any) -> None:
        """Hold what ``fit`` was given about the rows until the data are read; raises ValueError."""
        self._take_covariates(self._stated(X, covariates))
        self._take_dates(time)

    def rate(self) -> xr.DataArray:
        """The expected true count of each cell in data like these: a posterior mean."""
        return posteriors.mean_rate(*self._fitted())

    def diagnostics(self) -> Diagnostics:
        """Whether to trust the fit, in words, with the numbers behind it.

        For a sampler R-hat, nested R-hat and effective sample sizes of the log-likelihood and of rates, and how many
        components the data do not determine; for an optimiser whether it converged, and whether it explains the
        positive reports and their sum. For both whether the reports are consistent with the mechanism that is stated
        for them, contradict it, or cannot say, and whether the fit's total is that of the reports.
        """
        return self._with_doubts(self._diagnosed())

    def _with_doubts(self, found: Diagnostics) -> Diagnostics:
        """The diagnostics, with what the mechanism check and the totals say against the fit."""
        mechanism, totals = mechanism_kept(self.posterior), self.totals()
        wrong = [] if mechanism is None else list(mechanism.found)
        doubt = "" if totals is None else doubt_of(totals, self)
        if doubt and found.state in SETTLED and not wrong:
            wrong, doubt = [doubt], ""
        wrong += [] if mechanism is None else mechanism.misfits
        said = "" if mechanism is None or mechanism.found else str(mechanism)
        return found._replace(mechanism=mechanism).doubted(wrong, [doubt, said, self._choice_in_words()])

    def totals(self) -> Totals | None:
        """The sum of all true counts that were seen, as the fit expects it and as the reports have it without a model.

        None where the data were not in memory, and in files of earlier versions.
        """
        return totals_kept(self.posterior)

    @staticmethod
    def _totals_together(fits: Sequence["Results"], weights: np.ndarray, X: Any) -> Totals:
        """The totals of the cells that are seen in X by several fits of the same cells, each with its weight (F,)."""
        return totals_together(fits, weights, [fit.data_matrix(fit.own_data("X", X)) for fit in fits])

    def _diagnosed(self) -> Diagnostics:
        """How the method went, and what components are determined."""
        tree = self.posterior
        if "optimisation" in tree.children:
            found, totals = tree["optimisation"], self.totals()
            return diagnose_optimiser(
                METHODS[tree.attrs["method"]].starved,
                bool(found.attrs["converged"]),
                found.sizes["iteration"],
                share_kept(tree),
                None if totals is None else totals.share,
            )
        unshared = self.unshared()
        sampled = diagnose(posteriors.label_free(*self._fitted()), self.weights_, not unshared)
        lost = {part: found for part, found in self.undetermined().items() if found[0]}
        state = State.UNSAFE if any(n == total for n, total in lost.values()) else sampled.state
        doubts = [unshared_in_words(part.one, part.many) for part in unshared]
        doubts += [
            undetermined_in_words(part.one, part.many, *found)
            for part, found in lost.items()
            if part not in unshared
        ]
        told = tuning.chains_of(tree, self.weights_), tuning.starts_of(tree), tuning.moves_of(tree)
        return Diagnostics(sampled.table, " ".join([sampled.verdict, *doubts]), state, *told)

    def log_predictive(self, X: Any, cells: Any = None) -> xr.DataArray:
        """Log predictive density of max(report, 0) in each cell of X, averaged over draws, (cell,).

        X holds the reports of the fit's own rows; cells is a boolean mask of those to score (all that are seen in X
        by default): for a held-out comparison pass the mask of the cells that were hidden from the fit. A pair of an
        undirected network is one cell, whichever side of the diagonal is chosen.

        Raises:
            ValueError: X, or a table of cells, not of the fit's shape or with other labels; a cell that is masked in X.
        """
        weighted = GROUP in self.posterior.children
        return log_predictive(self.log_likelihood(X, cells), self.weights_ if weighted else None)

    def log_likelihood(self, X: Any, cells: Any = None) -> xr.DataArray:
        """log P(max(report, 0)) in each cell under every draw, (chain, draw, cell): for LOO, as ArviZ takes it.

        Arguments and errors as for ``log_predictive``.
        """
        draws, dims = self.posterior["posterior"], tuple(self.axes)
        observations = self.data_matrix(self.own_data("X", X))
        wanted = self._mask_of(cells)
        if wanted is None:
            every = np.arange(observations.shape[0] * observations.shape[1])
            rows, columns = every // observations.shape[1], every % observations.shape[1]
            seen = observations.cells(rows, columns)[0] >= 0
            rows, columns = rows[seen], columns[seen]
        else:
            rows, columns = np.nonzero(wanted)
        scores = pointwise_log_likelihood(
            self._draws_of_chains(),
            observations,
            self.model_.likelihood,
            rows,
            columns,
        )
        places = self.places_of(rows, columns)
        coordinates: dict[str, Any] = {name: draws[name].to_numpy() for name in ("chain", "draw")}
        for a, dim in enumerate(dims):
            coordinates[dim] = ("cell", draws[dim].to_numpy()[places[:, a]])
        values = scores.reshape(draws.sizes["chain"], draws.sizes["draw"], -1)
        return xr.DataArray(values, dims=("chain", "draw", "cell"), coords=coordinates, name="log_likelihood")

    def _draws_of_chains(self) -> Laws:
        """``matrix_draws`` beside ``parameter_draws``, where every chain has its own draws whatever its weight."""
        tree, model, layout = self._fitted()
        tree = unweighted(tree)
        factors = (model.matrices(each) for each in posteriors.factor_draws(tree, model, layout))
        return zip(factors, posteriors.parameter_draws(tree, model), strict=False)

    def save(self, path: str | os.PathLike[str], *, exact: bool = False) -> None:
        """Write the fit to one netCDF file that ArviZ and xarray read; atomically, and never a true count.

        If draws of factors take more than 8 MB and chains have 100 draws or more, they are rounded in the file, each
        by at most 1/32 of the standard deviation of its entry, and packed to about a quarter. ``exact`` keeps them bit
        for bit, unpacked.

        Raises:
            OSError: the file cannot be written, as on a full disk; what was there before stays.
        """
        needed = self.posterior.nbytes + FILE_OVERHEAD
        with replacing(path) as temporary:
            make_room(temporary, needed, path)
            compact.write(self.posterior, temporary, exact)
            fit_files.seal(temporary)

    def _check_file(self, tree: xr.DataTree) -> None:
        """Refuse a model other than the parameters', and arrays that are not those of the model."""
        spec = self.model_.spec
        wanted = self._spec(len(spec.output))
        if spec != wanted:
            raise ValueError(f"must be of the model {wanted.text}, got {spec.text!r:.40}")
        own, stated = method_of(self.method).name, tree.attrs["method"]
        if own != stated:
            raise ValueError(f"must state one method, got {own!r:.40} and {stated!r:.40}")
        sizes = self.model_.rows.sizes | self.model_.columns.sizes
        asked = axis_sizes(spec, [sizes[axis] for axis in spec.output], self._ranks(spec))
        check_model(self.model_, self._model(spec, asked, 1.0))
        check_tree(tree, self.model_, self._layout(spec))
        n_chains = tree["posterior"].sizes["chain"]
        groups = set(latent_groups(self.model_).values())
        most = {group: n_chains * self._n_components(group) for group in groups}
        check_names_kept(tree, most)
        check_merged_kept(tree, most if self.merges else {})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fit written by ``save``, once its seal, its structure and its values have been checked.

        Raises:
            FileNotFoundError: no such file.
            ValueError: not a countveil fit of this kind, or one that was changed, before or while it was read.
            OSError: the process that checks it first does not start.
        """
        with fit_files.opened(path) as (kind, file):
            if kind != cls.__name__:
                raise ValueError(f"{path} holds a fit of {kind}, not of {cls.__name__}")
            with (
                fit_files.faults(path),
                xr.open_datatree(file, engine="h5netcdf", phony_dims="sort") as opened,
            ):
                tree = opened.load()
        with fit_files.faults(path):
            return cls._from_tree(compact.unpacked(tree))

    def _restored(self, tree: xr.DataTree, model: Factorization) -> Factorization:
        """The model with what its priors take from the data that a file holds; raises ValueError."""
        return self._restore_dates(tree, self._restore_covariates(tree, model))

    @classmethod
    def _from_tree(cls, tree: xr.DataTree) -> Self:
        """The fit that a file holds; raises ValueError for facts that make no sense, alone or together."""
        facts = tree.attrs
        parameters = json.loads(facts["parameters"])
        parameters["method"] = from_file(parameters.get("method"))
        fit = cls(**parameters)
        fit.seed_, fit.fit_seconds_ = int(facts["seed"]), float(facts["seconds"])
        fit.interrupted_ = bool(facts["interrupted"])
        fit._check_parameters()
        engine = getattr(fit, "engine", None)
        if engine is not None:
            raise ValueError(f"must not say where to compute, got engine {engine!r:.40}")
        model = json.loads(facts["model"])
        fit.model_ = fit._restored(tree, model_of(model))
        check_digests(model, fit.model_)
        fit._keep_size(fit.model_)
        fit._check_file(tree)
        fit._adopt(tree)
        return fit
