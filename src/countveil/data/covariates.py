"""Covariates of the rows: a formula, the columns of a table that it names, and the design matrix of both.

Formulas are those of ``formulaic``, which evaluates calls inside them as Python. A formula may come from a file: only
plain arithmetic and the functions in ``FUNCTIONS`` are let through.
"""

import ast
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.data.frames import is_default, texts_of
from countveil.extras import install

FUNCTIONS = ("C", "I", "bs", "cs", "cr", "cc", "poly", "log", "log2", "log10", "exp", "center", "scale")
"""What a formula may call."""
LONGEST = 500  # characters of a formula
_NODES = (
    ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Call, ast.keyword, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub,
    ast.Mult, ast.Div, ast.USub, ast.List, ast.Tuple,
)  # fmt: skip


class Covariates(NamedTuple):
    """Covariates of the rows of some data, with a design matrix that is centred and scaled."""

    formula: str
    frame: pd.DataFrame  # (D, columns that the formula names), numbers or text, in the rows' order
    terms: tuple[str, ...]  # of the P columns of the design
    centre: np.ndarray  # (P,)
    scale: np.ndarray  # (P,)
    spec: Any  # formulaic's own

    @property
    def design(self) -> np.ndarray:
        """(D, P) columns of mean zero and standard deviation one."""
        return self.rows(self.frame)

    def rows(self, frame: pd.DataFrame) -> np.ndarray:
        """(n, P) the design of other rows, with the centre and the scale of the own ones.

        Raises:
            ValueError: a covariate is missing, of another type, or has a level that the own rows do not have.
        """
        own = {}
        for name in self.frame.columns:
            own[name] = plain_column(name, frame)
            check_levels(name, own[name], self.frame[name])
        raw = columns_of(self.spec, pd.DataFrame(own, index=frame.index))[list(self.terms)]
        return np.asarray((raw.to_numpy(float) - self.centre) / self.scale)

    def changed(self, values: Mapping[str, Any]) -> pd.DataFrame:
        """The own rows with some covariates set to one value each; raises ValueError for other names."""
        for name in values:
            if name not in self.frame.columns:
                raise ValueError(f"covariates must be among {list(self.frame.columns)}, got {name!r}")
        return self.frame.assign(**{name: [value] * len(self.frame) for name, value in values.items()})


def read_covariates(formula: str, frame: Any, labels: list[str] | None, n_rows: int) -> Covariates:
    """The covariates that a formula names, in the order of the data's rows.

    A frame with labels of its own is put into the order of the rows' labels; one with pandas' default numbering, or
    beside data without labels, goes by position.

    Raises:
        TypeError: not a DataFrame.
        ValueError: a formula that is not allowed, a column or a row that is not there, missing values (by name), or a
            term that does not vary.
        ModuleNotFoundError: formulaic is not installed.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"covariates must be a DataFrame, got {type(frame).__name__}")
    names = names_in(formula)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"covariates must have a column for every name in {formula!r}, got no {missing[0]!r}"
        )
    frame = in_order_of_rows(frame, labels, n_rows)
    own = pd.DataFrame({name: plain_column(name, frame).to_numpy() for name in names})
    spec, raw = first_design(formula, own)
    centre, scale = raw.mean().to_numpy(), raw.std(ddof=0).to_numpy()
    for term, spread in zip(raw.columns, scale, strict=True):
        if not spread > 0.0:
            raise ValueError(f"every term must vary between rows, got {term!r}, which does not")
    return Covariates(formula, own, tuple(map(str, raw.columns)), centre, scale, spec)


def in_order_of_rows(frame: pd.DataFrame, labels: list[str] | None, n_rows: int) -> pd.DataFrame:
    """A frame in the order of the data's rows; raises ValueError."""
    if labels is None or is_default(frame.index):
        if len(frame) != n_rows:
            raise ValueError(
                f"covariates must have a row for each of {n_rows} rows of the data, got {len(frame)}"
            )
        return frame
    places: dict[str, int] = {}
    for i, text in enumerate(texts_of(frame.index)):
        if places.setdefault(text, i) != i:
            raise ValueError(f"covariates must have every label once, got {text!r} twice")
    absent = next((label for label in labels if label not in places), None)
    if absent is not None:
        raise ValueError(f"covariates must have a row for every row of the data, got none for {absent!r}")
    return frame.iloc[[places[label] for label in labels]]


def plain_column(name: str, frame: pd.DataFrame) -> pd.Series:
    """A covariate as float64, or as text; raises ValueError."""
    if name not in frame.columns:
        raise ValueError(f"covariates must have the column {name!r}, got none")
    column = frame[name]
    if not isinstance(column, pd.Series):
        raise ValueError(f"covariates must have one column {name!r}, got {column.shape[1]}")
    if column.isna().any():
        where = texts_of(frame.index)[int(np.flatnonzero(column.isna())[0])]
        raise ValueError(
            f"covariate {name!r} must have no missing values, got {int(column.isna().sum())}, the first in row {where}"
        )
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError(
                f"covariate {name!r} must have finite values, got {values[~np.isfinite(values)][0]}"
            )
        return pd.Series(values, index=frame.index)
    return pd.Series([str(value) for value in column], index=frame.index, dtype=object)


def check_levels(name: str, found: pd.Series, own: pd.Series) -> None:
    """Refuse text for numbers, and levels that the fit has not seen; raises ValueError."""
    if (found.dtype == object) != (own.dtype == object):
        wanted = "text" if own.dtype == object else "numbers"
        raise ValueError(f"covariate {name!r} must be {wanted}, got {found.iloc[0]!r}")
    if own.dtype == object:
        known = sorted(set(own))
        other = next((value for value in found if value not in known), None)
        if other is not None:
            raise ValueError(f"covariate {name!r} must be one of {known}, got {other!r}")


def formulaic() -> Any:
    """The package; raises ModuleNotFoundError, which says how to install it."""
    try:
        import formulaic as found
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"prevalence needs formulaic: {install('covariates')}") from error
    return found


def names_in(formula: str) -> list[str]:
    """The columns that a formula names, in order; refuses what it may not have.

    Raises:
        ValueError: too long, with a left side, with powers, or with code other than arithmetic and ``FUNCTIONS``.
    """
    if not isinstance(formula, str) or len(formula) > LONGEST:
        raise ValueError(f"prevalence must be a formula of at most {LONGEST} characters, got {formula!r:.60}")
    if any(sign in formula for sign in ("**", "^", "|", "[", "@", "{", "`", "\\")):
        raise ValueError(f"prevalence must be of names, calls and the signs + - * : /, got {formula!r}")
    package = formulaic()
    try:
        parsed = package.Formula(formula)
        factors = [factor.expr for term in parsed for factor in term.factors]
        trees = [ast.parse(each, mode="eval") for each in factors]
    except Exception as error:  # what the parser raises has no common class
        raise ValueError(
            f"prevalence must be a formula such as '~ party + year', got {formula!r}: {error}"
        ) from error
    names: dict[str, None] = {}
    for tree in trees:
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if not isinstance(node, _NODES):
                raise ValueError(f"prevalence must be of names and simple calls, got {ast.unparse(tree)!r}")
            if isinstance(node, ast.Call) and not (
                isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
            ):
                raise ValueError(
                    f"prevalence may call {', '.join(FUNCTIONS)}, got {ast.unparse(node.func)!r}"
                )
            if isinstance(node, ast.Name) and id(node) not in called:
                names[node.id] = None
    if not names:
        raise ValueError(f"prevalence must name a covariate, got {formula!r}")
    return list(names)


def first_design(formula: str, frame: pd.DataFrame) -> tuple[Any, pd.DataFrame]:
    """(formulaic's specification, the design without its intercept); raises ValueError."""
    package = formulaic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matrix = package.model_matrix(formula, frame, context={})
    except Exception as error:
        raise ValueError(f"prevalence must fit the covariates, got {formula!r}: {error}") from error
    if "Intercept" not in matrix.columns:
        raise ValueError(f"prevalence must keep its intercept, got {formula!r}")
    return matrix.model_spec, pd.DataFrame(matrix).drop(columns="Intercept").astype(float)


def columns_of(spec: Any, frame: pd.DataFrame) -> pd.DataFrame:
    """The design of other rows; raises ValueError, as for a number outside of a spline's range."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = pd.DataFrame(spec.get_model_matrix(frame, context={}))
    except Exception as error:
        raise ValueError(f"covariates must be in the range of those of the fit: {error}") from error
    return found
