"""Covariates and dates of a model's rows: taken by ``fit``, kept in files, and part of the prior of the rows."""

import json
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from countveil.data.covariates import LONGEST, Covariates, check_levels, in_rows_of, read_covariates
from countveil.data.dates import MOST_STEPS, Dates, read_dates
from countveil.data.observations import Observations
from countveil.inference.methods import check_covariates, check_dates
from countveil.inference.posterior import STEPS
from countveil.models.factorization import Factorization
from countveil.models.priors import (
    LEARNED,
    USUAL_SHAPE,
    DatedRowsPrior,
    DirichletPrior,
    LearnedShapePrior,
    Prior,
    RegressionPrior,
)

GROUP, FACT = "covariates", "covariates"  # of the tree, and of its attributes


class Formula:
    """None, or a formula; what is in it is checked when it meets its covariates."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if value is not None and not (isinstance(value, str) and 0 < len(value) <= LONGEST):
            raise ValueError(f"{name} must be a formula such as '~ party + year', or None, got {value!r:.60}")


class HasCovariates:
    """Adds covariates of the rows to an estimator whose parameter ``prevalence`` is their formula."""

    covariates_: Covariates | None = None
    _waiting: pd.DataFrame | None = None

    @property
    def _formula(self) -> str | None:
        """The parameter ``prevalence``; None for models without it."""
        return getattr(self, "prevalence", None)

    def _stated(self, X: Any, covariates: Any) -> Any:
        """What ``fit`` was given, or the covariates that a release carries where a formula has none."""
        if covariates is not None or self._formula is None:
            return covariates
        return in_rows_of(X, self._formula)

    def _take_covariates(self: Any, covariates: Any) -> None:
        """Hold what ``fit`` was given until the data are read; raises ValueError."""
        formula = self._formula
        if formula is None:
            if covariates is not None:
                raise ValueError(
                    "covariates go with prevalence, a formula of TopicModel, TensorModel or BlockModel, got none"
                )
            self.covariates_ = None
            return
        if covariates is None:
            raise ValueError(f"covariates must be given with prevalence {formula!r}, got none")
        check_covariates(self._method, "prevalence")
        if self._is_auto:
            raise ValueError(f"{self.sized_by[0]} must be a number with prevalence, got 'auto'")
        if self.prior_rate is not None:
            raise ValueError(f"prior_rate must be None with prevalence, got {self.prior_rate}")
        self._waiting = covariates

    def _aligned(self: Any, X: Any) -> Any:
        """Data as inference takes them, once covariates that wait are in the order of their rows."""
        if self._waiting is None:
            return X
        data = self._observe(X)
        assert isinstance(data, Observations)
        self.covariates_ = read_covariates(self._formula, self._waiting, data.labels[0], data.shape[0])
        check_levels(self.covariates_)
        self._waiting = None
        return data

    def _with_covariates(self, priors: dict[str, Any], rows: str) -> dict[str, Prior]:
        """Priors by name, where that of the rows' factor depends on the covariates."""
        if self.covariates_ is None:
            return priors
        usual = priors[rows]
        if isinstance(usual, LearnedShapePrior):
            assert usual.mean is not None
            mean, shape = usual.mean, None
        else:
            mean, shape = float(usual.shape / usual.rate), float(usual.shape)
        return {**priors, rows: RegressionPrior(mean, shape, self.covariates_.design)}

    def _keep_covariates(self: Any, tree: xr.DataTree) -> None:
        """Put the covariates into a fit's tree, and name the terms of its coefficients."""
        if self.covariates_ is None or GROUP in tree.children:
            return
        frame, terms = self.covariates_.frame, list(self.covariates_.terms)
        layout = self._layout(self.model_.spec)
        dim = layout.dims[self.model_.spec.output[0]]
        dim = layout.aliases.get(dim, dim)
        labels = tree["posterior"][dim].to_numpy()
        columns = {f"column{i}": (dim, plain(frame[name])) for i, name in enumerate(frame.columns)}
        tree[GROUP] = xr.Dataset(columns, coords={dim: labels})
        levels = [list(each.cat.categories) if hasattr(each, "cat") else None for _, each in frame.items()]
        sums = checksums(self.covariates_.design)
        tree.attrs[FACT] = json.dumps(
            {"names": list(frame.columns), "levels": levels, "checksums": sums.tolist()}
        )
        named = tree["posterior"].dataset.assign_coords(term=np.array(terms, dtype=object))
        tree["posterior"] = xr.DataTree(named)

    def _restore_covariates(self: Any, tree: xr.DataTree, model: Factorization) -> Factorization:
        """The model with its design, from what a file holds; raises ValueError."""
        formula = self._formula
        if (formula is None) != (GROUP not in tree.children):
            raise ValueError("must hold covariates if its parameters have a prevalence, and only then")
        if formula is None:
            return model
        facts, group = json.loads(tree.attrs[FACT]), tree[GROUP]
        names, frame = facts["names"], pd.DataFrame(index=range(model.rows.shape[0]))
        for i, (name, levels) in enumerate(zip(names, facts["levels"], strict=True)):
            column = group[f"column{i}"].to_numpy()
            frame[name] = column if levels is None else pd.Categorical(column, levels)
        self.covariates_ = read_covariates(formula, frame, None, model.rows.shape[0])
        if list(self.covariates_.frame.columns) != names:
            raise ValueError(f"must hold the covariates of its formula, got {names!r:.80}")
        row = factor_with_covariates(model)
        prior: Any = None if row is None else model.factors[row].prior
        if row is None or prior.design.shape[1] != len(self.covariates_.terms):
            raise ValueError("must have a prior with a coefficient for every term of its formula")
        design = self.covariates_.design
        if not np.allclose(checksums(design), facts["checksums"], rtol=1e-6, atol=1e-6 * len(design)):
            raise ValueError("must hold the covariates that its model was fitted with, got others")
        prior = prior._replace(design=design)
        factors = list(model.factors)
        factors[row] = factors[row]._replace(prior=prior)
        return model._replace(factors=tuple(factors))


def factor_with_covariates(model: Factorization) -> int | None:
    """The number of the free factor whose rows have covariates, or None."""
    return next((f for f in model.free if isinstance(model.factors[f].prior, RegressionPrior)), None)


def plain(column: pd.Series) -> np.ndarray:
    """Numbers, or texts."""
    return column.to_numpy(object if hasattr(column, "cat") else float)


def checksums(design: np.ndarray) -> np.ndarray:
    """(P,) sums of the columns with weights that differ by row: the same after a file, up to rounding."""
    return np.asarray(np.cos(np.arange(len(design))) @ design)


DATES = "dates"  # of the tree


class HasDates:
    """Adds dates of the rows to an estimator that ``takes_dates``; to others, their refusal."""

    takes_dates: ClassVar[bool] = False
    dates_: Dates | None = None
    _undated: Any = None  # what fit was given, until the data are read

    def _take_dates(self: Any, time: Any) -> None:
        """Hold what ``fit`` was given until the data are read; raises ValueError."""
        self.dates_, self._undated = None, time
        if time is None:
            return
        if not self.takes_dates:
            raise ValueError(
                f"time goes with TopicModel, whose rows may have dates, got {type(self).__name__}"
            )
        check_dates(self._method, "time")
        if self._is_auto:
            raise ValueError(f"{self.sized_by[0]} must be a number with time, got 'auto'")
        if self.prior_rate is not None:
            raise ValueError(f"prior_rate must be None with time, got {self.prior_rate}")
        if self._formula is not None:
            raise ValueError(f"prevalence must be None with time, got {self._formula!r}")
        if self.seeds is not None:
            raise ValueError(f"seeds must be None with time, got {len(self.seeds)}")

    def _dated(self: Any, X: Any) -> Any:
        """Data as inference takes them, once dates that wait are in the order of their rows."""
        if self._undated is None:
            return X
        data = self._observe(X)
        assert isinstance(data, Observations)
        self.dates_ = read_dates(self._undated, data.labels[0], data.shape[0])
        self._undated = None
        return data

    def _with_dates(self: Any, priors: dict[str, Any], rows: str, row_size: float) -> dict[str, Prior]:
        """Priors by name, where that of the rows' factor is a chain over dates, and others sum to one.

        ``row_size`` is the mean rate of a row.
        """
        if self.dates_ is None:
            return priors
        known = self.prior_shape is not None and self.prior_shape != LEARNED
        others: Prior = DirichletPrior(float(self.prior_shape) if known else None)
        own = DatedRowsPrior(USUAL_SHAPE, row_size, self.dates_.step, len(self.dates_.names))
        return {name: own if name == rows else others for name in priors}

    def _keep_dates(self: Any, tree: xr.DataTree) -> None:
        """Put the dates into a fit's tree, and name the steps of its chain."""
        if self.dates_ is None or DATES in tree.children:
            return
        dim = next(iter(self._layout(self.model_.spec).dims_of(self.model_.spec.output)))
        labels = tree["posterior"][dim].to_numpy()
        tree[DATES] = xr.Dataset({"step": (dim, self.dates_.step)}, coords={dim: labels})
        named = tree["posterior"].dataset.assign_coords({STEPS: labels_of(self.dates_)})
        tree["posterior"] = xr.DataTree(named)

    def _restore_dates(self: Any, tree: xr.DataTree, model: Factorization) -> Factorization:
        """The model with the dates of its rows, from what a file holds; raises ValueError."""
        self.dates_, row = None, model.row_factor
        prior: Any = None if row is None else model.factors[row].prior
        if isinstance(prior, DatedRowsPrior) != (DATES in tree.children):
            raise ValueError("must hold dates of rows if its prior has a chain over them, and only then")
        if row is None or not isinstance(prior, DatedRowsPrior):
            return model
        if not self.takes_dates:
            raise ValueError(f"must hold no dates of rows, being a fit of {type(self).__name__}")
        names, step = tree["posterior"][STEPS].to_numpy(), tree[DATES]["step"].to_numpy()
        n_rows, n_steps = model.rows.shape[0], prior.n_steps
        if not (isinstance(n_steps, int) and 2 <= n_steps <= MOST_STEPS and names.shape == (n_steps,)):
            raise ValueError(f"must name each of 2 to {MOST_STEPS} steps of time, got {names.size}")
        if names.dtype.kind not in "iuOUT" or step.dtype.kind not in "iu":
            raise ValueError(f"must number the steps of rows, got {step.dtype}")
        if step.shape != (n_rows,) or not ((step >= 0) & (step < n_steps)).all():
            raise ValueError(
                f"must hold a step from 0 to {n_steps - 1} for each of {n_rows} rows, got others"
            )
        whole = names.dtype.kind in "iu"
        self.dates_ = Dates(tuple(int(each) if whole else str(each) for each in names), step.astype(np.int64))
        factors = list(model.factors)
        factors[row] = factors[row]._replace(prior=prior._replace(step=self.dates_.step))
        return model._replace(factors=tuple(factors))


def labels_of(dates: Dates) -> np.ndarray:
    """(T,) names of steps as a coordinate."""
    whole = all(isinstance(name, int) for name in dates.names)
    return np.array(dates.names, dtype=np.int64 if whole else object)
