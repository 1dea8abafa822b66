"""Covariates and dates of a model's rows: taken by ``fit``, kept in files, and part of the prior of the rows."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from countveil.data.covariates import LONGEST, Covariates, check_levels, read_covariates
from countveil.data.dates import MOST_STEPS, Dates
from countveil.data.reports import in_rows_of
from countveil.fit.choosing import is_auto
from countveil.inference.methods import check_need
from countveil.models.factorization import Factorization
from countveil.models.priors import (
    LEARNED,
    USUAL_SHAPE,
    DatedRowsPrior,
    DirichletPrior,
    LayeredRowsPrior,
    Prior,
    RegressionPrior,
)
from countveil.models.priors.dated_rows import STEPS

GROUP, FACT = "covariates", "covariates"  # of the tree, and of its attributes


class Formula:
    """A formula; what is in it is checked when it meets its covariates."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if not (isinstance(value, str) and 0 < len(value) <= LONGEST):
            raise ValueError(f"{name} must be a formula such as '~ party + year', or None, got {value!r:.60}")


def check_covariates_given(model: Any) -> None:
    """Refuse covariates for a model without a formula; raises ValueError."""
    if model._formula is None:
        raise ValueError("covariates require prevalence, a formula of TopicModel, TensorModel or BlockModel, got none")


def check_dates_given(model: Any) -> None:
    """Refuse dates that a model cannot take, before its data are read; raises ValueError."""
    if not model._takes_dates:
        raise ValueError(f"time requires a TopicModel, whose rows may have dates, got {type(model).__name__}")
    check_need(model._method, "dates", "time")
    if model._n_upper:
        raise ValueError(
            f"n_topics must be one number with time, got {model.n_topics}: use n_topics={model.n_topics[0]}"
        )
    check_size_and_rate(model, "time")
    if model._formula is not None:
        raise ValueError(f"prevalence must be None with time, got {model._formula!r}")
    check_no_seeds(model, "time")


def check_no_seeds(model: Any, option: str) -> None:
    """Refuse seeded words with a prior under which topics are Dirichlet distributions; raises ValueError."""
    if model.seeds is not None:
        raise ValueError(f"seeds must be None with {option}, got {len(model.seeds)}")


def check_formula(model: Any) -> None:
    """Refuse a formula beside parameters that it does not go with; raises ValueError."""
    check_need(model._method, "covariates", "prevalence")
    check_size_and_rate(model, "prevalence")


def check_size_and_rate(model: Any, option: str) -> None:
    """Refuse parameters that do not go with a prior of the rows by covariates or dates; raises ValueError."""
    if is_auto(model):
        raise ValueError(f"{model._sized_by[0]} must be a number with {option}, got 'auto'")
    if model.prior_rate is not None:
        raise ValueError(f"prior_rate must be None with {option}, got {model.prior_rate}")


def covariates_in_order(formula: str, data: Any, covariates: Any) -> Covariates:
    """The covariates of a formula in the order of the rows, by default those of the data; raises ValueError."""
    covariates = in_rows_of(data, formula) if covariates is None else covariates
    if covariates is None:
        raise ValueError(f"covariates must be given with prevalence {formula!r}, got none")
    found = read_covariates(formula, covariates, data.labels[0], data.shape[0])
    check_levels(found)
    return found


def with_covariates(model: Any, priors: dict[str, Any], rows: str) -> dict[str, Prior]:
    """Priors by name, where that of the rows' factor depends on the covariates."""
    usual = priors[rows]
    shape = None if usual.learns_shape else float(usual.shape)
    return {**priors, rows: RegressionPrior(usual.size, shape, model.covariates_.design)}


def keep_covariates(model: Any, tree: xr.DataTree) -> None:
    """Put the covariates into a fit's tree, and name the terms of its coefficients."""
    if GROUP in tree.children:  # of a file
        return
    frame, terms = model.covariates_.frame, list(model.covariates_.terms)
    layout = model._layout(model.model_.spec)
    dim = layout.dims[model.model_.spec.output[0]]
    dim = layout.aliases.get(dim, dim)
    labels = tree["posterior"][dim].to_numpy()
    columns = {f"column{i}": (dim, plain(frame[name])) for i, name in enumerate(frame.columns)}
    tree[GROUP] = xr.Dataset(columns, coords={dim: labels})
    levels = [list(each.cat.categories) if hasattr(each, "cat") else None for _, each in frame.items()]
    sums = checksums(model.covariates_.design)
    tree.attrs[FACT] = json.dumps({"names": list(frame.columns), "levels": levels, "checksums": sums.tolist()})
    named = tree["posterior"].dataset.assign_coords(term=np.array(terms, dtype=object))
    tree["posterior"] = xr.DataTree(named)


def restore_covariates(model: Any, tree: xr.DataTree, found: Factorization) -> Factorization:
    """The model with its design, from what a file holds; raises ValueError."""
    formula = model._formula
    if (formula is None) != (GROUP not in tree.children):
        raise ValueError(
            f"must hold covariates if and only if its parameters have a prevalence, got prevalence {formula!r:.60} and "
            f"{'covariates' if formula is None else 'no covariates'}"
        )
    if formula is None:
        return found
    facts, group = json.loads(tree.attrs[FACT]), tree[GROUP]
    names, frame = facts["names"], pd.DataFrame(index=range(found.rows.shape[0]))
    for i, (name, levels) in enumerate(zip(names, facts["levels"], strict=True)):
        column = group[f"column{i}"].to_numpy()
        frame[name] = column if levels is None else pd.Categorical(column, levels)
    model.covariates_ = read_covariates(formula, frame, None, found.rows.shape[0])
    if list(model.covariates_.frame.columns) != names:
        raise ValueError(f"must hold the covariates of its formula, got {names!r:.80}")
    row = factor_with_covariates(found)
    prior: Any = None if row is None else found.factors[row].prior
    if row is None or prior.design.shape[1] != len(model.covariates_.terms):
        raise ValueError(
            f"must have a prior with a coefficient for each of {len(model.covariates_.terms)} terms of its formula, "
            f"got {'no such prior' if row is None else prior.design.shape[1]}"
        )
    design = model.covariates_.design
    found_sums, sums = checksums(design), facts["checksums"]
    if not np.allclose(found_sums, sums, rtol=1e-6, atol=1e-6 * len(design)):
        raise ValueError(
            f"must hold the covariates that its model was fitted with, of checksums {sums!s:.60}, "
            f"got {found_sums!s:.60}"
        )
    factors = list(found.factors)
    factors[row] = factors[row]._replace(prior=replace(prior, design=design))
    return found._replace(factors=tuple(factors))


def factor_with_covariates(model: Factorization) -> int | None:
    """The number of the free factor whose rows have covariates, or None."""
    return next((f for f in model.free if model.factors[f].prior.needs == "covariates"), None)


def plain(column: pd.Series) -> np.ndarray:
    """Numbers, or texts."""
    return column.to_numpy(object if hasattr(column, "cat") else float)


def checksums(design: np.ndarray) -> np.ndarray:
    """(P,) sums of the columns with weights that differ by row: the same after a file, up to rounding."""
    return np.asarray(np.cos(np.arange(len(design))) @ design)


DATES = "dates"  # of the tree


def with_dates(model: Any, priors: dict[str, Any], rows: str, row_size: float) -> dict[str, Prior]:
    """Priors by name, where that of the rows' factor is a chain over dates; ``row_size`` is the mean rate of a row."""
    own = DatedRowsPrior(USUAL_SHAPE, row_size, model.dates_.step, len(model.dates_.names))
    return of_distributions(model, priors) | {rows: own}


def with_layers(model: Any, priors: dict[str, Any], rows: str, row_size: float) -> dict[str, Prior]:
    """Priors by name, where the rows' factor has layers above it; ``row_size`` is the mean rate of a row."""
    own = LayeredRowsPrior(USUAL_SHAPE, row_size, model._n_upper)
    return of_distributions(model, priors) | {rows: own}


def of_distributions(model: Any, priors: dict[str, Any]) -> dict[str, Prior]:
    """Priors by name of factors whose components sum to one, with the concentration that ``prior_shape`` says."""
    known = model.prior_shape is not None and model.prior_shape != LEARNED
    return dict.fromkeys(priors, DirichletPrior(float(model.prior_shape) if known else None))


def keep_dates(model: Any, tree: xr.DataTree) -> None:
    """Put the dates into a fit's tree, and name the steps of its chain."""
    if DATES in tree.children:  # of a file
        return
    dim = next(iter(model._layout(model.model_.spec).dims_of(model.model_.spec.output)))
    labels = tree["posterior"][dim].to_numpy()
    tree[DATES] = xr.Dataset({"step": (dim, model.dates_.step)}, coords={dim: labels})
    named = tree["posterior"].dataset.assign_coords({STEPS: labels_of(model.dates_)})
    tree["posterior"] = xr.DataTree(named)


def restore_dates(model: Any, tree: xr.DataTree, found: Factorization) -> Factorization:
    """The model with the dates of its rows, from what a file holds; raises ValueError."""
    model.dates_, row = None, found.row_factor
    prior: Any = None if row is None else found.factors[row].prior
    dated = isinstance(prior, DatedRowsPrior)
    if dated != (DATES in tree.children):
        raise ValueError(
            "must hold dates of rows if and only if its prior has a chain over them, got "
            f"{'dates without such a chain' if DATES in tree.children else 'such a chain without dates'}"
        )
    if row is None or not dated:
        return found
    if not model._takes_dates:
        raise ValueError(f"must not have dates of rows in a fit of {type(model).__name__}")
    names, step = tree["posterior"][STEPS].to_numpy(), tree[DATES]["step"].to_numpy()
    n_rows, n_steps = found.rows.shape[0], prior.n_steps
    if not (isinstance(n_steps, int) and 2 <= n_steps <= MOST_STEPS and names.shape == (n_steps,)):
        raise ValueError(f"must name each of 2 to {MOST_STEPS} steps of time, got {names.size}")
    if names.dtype.kind not in "iuOUT" or step.dtype.kind not in "iu":
        raise ValueError(f"must number the steps of rows, got {step.dtype}")
    if step.shape != (n_rows,) or not ((step >= 0) & (step < n_steps)).all():
        got = f"from {step.min(initial=0)} to {step.max(initial=0)} for {step.size}"
        raise ValueError(f"must hold a step from 0 to {n_steps - 1} for each of {n_rows} rows, got steps {got}")
    whole = names.dtype.kind in "iu"
    model.dates_ = Dates(tuple(int(each) if whole else str(each) for each in names), step.astype(np.int64))
    factors = list(found.factors)
    factors[row] = factors[row]._replace(prior=replace(prior, step=model.dates_.step))
    return found._replace(factors=tuple(factors))


def labels_of(dates: Dates) -> np.ndarray:
    """(T,) names of steps as a coordinate."""
    whole = all(isinstance(name, int) for name in dates.names)
    return np.array(dates.names, dtype=np.int64 if whole else object)
