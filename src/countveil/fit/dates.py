"""Dates of a model's rows: taken by ``fit``, kept in the posterior and in files, and part of the rows' prior."""

from typing import Any, ClassVar

import numpy as np
import xarray as xr

from countveil.data.dates import MOST_STEPS, Dates, read_dates
from countveil.data.observations import Observations
from countveil.inference.methods import METHODS, check_dates
from countveil.inference.posterior import STEPS
from countveil.models.factorization import Factorization
from countveil.models.priors import LEARNED, USUAL_SHAPE, DatedRowsPrior, DirichletPrior, Prior

GROUP = "dates"  # of the tree


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
        check_dates(METHODS[self.method], "time")
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
        if self.dates_ is None or GROUP in tree.children:
            return
        dim = next(iter(self._layout(self.model_.spec).dims_of(self.model_.spec.output)))
        labels = tree["posterior"][dim].to_numpy()
        tree[GROUP] = xr.Dataset({"step": (dim, self.dates_.step)}, coords={dim: labels})
        named = tree["posterior"].dataset.assign_coords({STEPS: labels_of(self.dates_)})
        tree["posterior"] = xr.DataTree(named)

    def _restore_dates(self: Any, tree: xr.DataTree, model: Factorization) -> Factorization:
        """The model with the dates of its rows, from what a file holds; raises ValueError."""
        self.dates_, row = None, model.row_factor
        prior: Any = None if row is None else model.factors[row].prior
        if isinstance(prior, DatedRowsPrior) != (GROUP in tree.children):
            raise ValueError("must hold dates of rows if its prior has a chain over them, and only then")
        if row is None or not isinstance(prior, DatedRowsPrior):
            return model
        if not self.takes_dates:
            raise ValueError(f"must hold no dates of rows, being a fit of {type(self).__name__}")
        names, step = tree["posterior"][STEPS].to_numpy(), tree[GROUP]["step"].to_numpy()
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
