"""Covariates of the rows: a formula, the columns of a table that it names, and the design matrix of both.

Formulas are those of ``formulaic``, which evaluates calls inside them as Python. A formula may come from a file: only
plain arithmetic and the functions in ``FUNCTIONS`` are let through.
"""

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.common.extras import install
from countveil.data.labels import is_default, texts_of
from countveil.privacy import Release
from countveil.privacy.names import identity, spelt_alike

FUNCTIONS = ("C", "I", "bs", "cs", "cr", "cc", "poly", "log", "log2", "log10", "exp", "center", "scale")
"""What a formula may call."""
LONGEST = 500  # characters of a formula
BASES = ("bs", "cs", "cr", "cc", "poly")
MOST_COLUMNS = 50  # that a call of a basis may ask for, as its number of columns or its degree
MOST_TERMS = 200  # columns of a design
LIMITS = ("lower_bound", "upper_bound")  # of a basis: arguments that are numbers of the covariate's own scale
LEAST_SPREAD = 1e-10  # of a term, relative to its largest value: below it differs by rounding alone
TINY = 1e-300  # keeps divisors positive
NUMBERS = "integer", "floating", "mixed-integer-float", "boolean"  # what objects may be
_NODES = (
    ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Call, ast.keyword, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub,
    ast.Mult, ast.Div, ast.USub, ast.List, ast.Tuple,
)  # fmt: skip


class Covariates(NamedTuple):
    """Covariates of the rows of some data, with a design matrix that is centred and scaled."""

    formula: str
    frame: pd.DataFrame  # (D, columns that the formula names), float64 or categories of text, in the rows' order
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
            own[name] = like(name, plain_column(name, frame), self.frame[name])
        raw = columns_of(self.spec, pd.DataFrame(own, index=frame.index))[list(self.terms)]
        check_finite(raw, frame.index)
        return np.asarray((raw.to_numpy(float) - self.centre) / self.scale)

    def changed(self, values: Mapping[str, Any]) -> pd.DataFrame:
        """The own rows with some covariates set to one value each; raises ValueError for other names."""
        for name in values:
            if name not in self.frame.columns:
                raise ValueError(f"covariates must be among {list(self.frame.columns)}, got {name!r}")
        return self.frame.assign(**{name: [value] * len(self.frame) for name, value in values.items()})


def stated_covariates(release: Release) -> pd.DataFrame | None:
    """The covariates that participants stated, labelled as the rows of their release; None without any."""
    stated = release.extras.covariates
    if stated is None:
        return None
    columns = zip(*stated.of_row, strict=True)
    found = {
        each.name: pd.Categorical(column, each.values) if each.values else np.array(column, dtype=np.float64)
        for each, column in zip(stated.covariates, columns, strict=True)
    }
    return pd.DataFrame(found, index=None if release.row_labels is None else pd.Index(release.row_labels))


def read_covariates(formula: str, frame: Any, labels: list[str] | None, n_rows: int) -> Covariates:
    """The covariates that a formula names, in the order of the data's rows.

    A frame with labels of its own is put into the order of the rows' labels; one with pandas' default numbering, or
    beside data without labels, goes by position, except where the data's labels are these numbers.

    Raises:
        TypeError: not a DataFrame.
        ValueError: a formula that is not allowed, a column or a row that is not there, missing values (by name), or a
            term that does not vary.
        ModuleNotFoundError: formulaic is not installed.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"covariates must be a DataFrame, got {type(frame).__name__}")
    names = names_in(formula)
    if "Intercept" in names:
        raise ValueError(f"formula must not name 'Intercept', because every formula has one, got {formula!r}")
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(f"covariates must have a column for every name in {formula!r}, got no {missing[0]!r}")
    frame = in_order_of_rows(frame, labels, n_rows)
    own = pd.DataFrame({name: plain_column(name, frame) for name in names}).reset_index(drop=True)
    check_width(formula, own)
    spec, raw = first_design(formula, own)
    check_finite(raw, frame.index)
    centre, scale, largest = raw.mean().to_numpy(), raw.std(ddof=0).to_numpy(), raw.abs().max().to_numpy()
    for term, spread in zip(raw.columns, scale / np.maximum(largest, TINY), strict=True):
        if not spread > LEAST_SPREAD:
            raise ValueError(f"every term must vary between rows, got {term!r}, which is the same in all: leave it out")
    return Covariates(formula, own, tuple(map(str, raw.columns)), centre, scale, spec)


def check_levels(found: Covariates) -> None:
    """Refuse a covariate of which formulas make no term, since it has a single level; raises ValueError."""
    for name, column in found.frame.items():
        used = any(re.search(rf"\b{re.escape(str(name))}\b", term) for term in found.terms)
        if column.nunique() < 2 and (column.dtype != np.float64 or not used):
            value = column.iloc[0]
            said = repr(value) if isinstance(value, str) else f"{value:g}"
            raise ValueError(f"covariate {name!r} must vary between rows, got {said} in all of them")


def in_order_of_rows(
    frame: pd.DataFrame, labels: list[str] | None, n_rows: int, name: str = "covariates"
) -> pd.DataFrame:
    """A frame in the order of the data's rows; raises ValueError, which calls it by its ``name``."""
    numbered = labels is not None and set(labels) == set(texts_of(frame.index))
    if labels is None or (is_default(frame.index) and not numbered):
        if len(frame) != n_rows:
            raise ValueError(f"{name} must have a row for each of {n_rows} rows of the data, got {len(frame)}")
        return frame
    places: dict[str, int] = {}
    for i, text in enumerate(texts_of(frame.index)):
        if places.setdefault(text, i) != i:
            raise ValueError(f"{name} must have every label once, got {text!r} twice")
    absent = next((label for label in labels if label not in places), None)
    if absent is not None:
        raise ValueError(f"{name} must have a row for every row of the data, got none for {absent!r}")
    return frame.iloc[[places[label] for label in labels]]


def plain_column(name: str, frame: pd.DataFrame) -> pd.Series:
    """A covariate as float64, or as categories of text; raises ValueError."""
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
    if column.dtype.kind in "cMm":
        raise ValueError(
            f"covariate {name!r} must contain numbers or text, got {column.dtype}: convert dates to years or days"
        )
    if column.dtype == object and pd.api.types.infer_dtype(column) in NUMBERS:
        column = column.astype(np.float64)
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"covariate {name!r} must have finite values, got {values[~np.isfinite(values)][0]}")
        return pd.Series(values, index=frame.index)
    return in_levels(column)


def in_levels(column: pd.Series) -> pd.Series:
    """A covariate of text, with its levels in the order of its categories, or in alphabetical order if it has none."""
    texts = column.astype(object).map(str)
    seen = set(texts)
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = list(dict.fromkeys(text for text in map(str, column.cat.categories) if text in seen))
    else:
        known = sorted(seen)
    return pd.Series(pd.Categorical(texts, known), index=column.index)


def check_finite(raw: pd.DataFrame, labels: pd.Index) -> None:
    """Refuse terms without a number in some row, such as log(year) of a year of zero; raises ValueError."""
    if len(raw) != len(labels):
        raise ValueError(f"every term must have a number in each of {len(labels)} rows, got {len(raw)}")
    bad = ~np.isfinite(raw.to_numpy(float))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        where = texts_of(labels)[row]
        raise ValueError(
            f"term {raw.columns[column]!r} must be finite in every row, got {raw.iloc[row, column]} in row {where}"
        )


def like(name: str, found: pd.Series, own: pd.Series) -> pd.Series:
    """A plain column of other rows, with the levels of the own ones in their order.

    Raises:
        ValueError: text for numbers, numbers for text, or a level that the own rows do not have.
    """
    if (found.dtype == np.float64) != (own.dtype == np.float64):
        wanted = "numbers" if own.dtype == np.float64 else "text"
        raise ValueError(f"covariate {name!r} must be {wanted}, got {found.iloc[0]!r}")
    if own.dtype == np.float64:
        return found
    levels = list(own.cat.categories)
    other = next((value for value in found if value not in levels), None)
    if other is not None:
        raise ValueError(f"covariate {name!r} must be one of {levels}, got {other!r}")
    return found.cat.set_categories(levels)


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
    if any(sign in formula for sign in ("**", "^", "|", "[", "@", "{", "`", "\\", "%")):
        raise ValueError(f"prevalence must have only names, calls and the signs + - * : /, got {formula!r}")
    if formula.partition("~")[0].strip() and "~" in formula:
        raise ValueError(f"prevalence must have nothing before its '~', got {formula!r}")
    package = formulaic()
    check_terms(formula)
    try:
        parsed = package.Formula(formula)
        factors = [factor.expr for term in parsed for factor in term.factors]
        trees = [ast.parse(each, mode="eval") for each in factors]
    except Exception as error:  # what the parser raises has no common class
        raise ValueError(f"prevalence must be a formula such as '~ party + year', got {formula!r}: {error}") from error
    names: dict[str, None] = {}
    for tree in trees:
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if not isinstance(node, _NODES):
                raise ValueError(
                    "prevalence must have only names, numbers, the signs + - * : / and calls such as log(year), got "
                    f"{ast.unparse(tree)!r}"
                )
            if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
                raise ValueError(f"prevalence may call {', '.join(FUNCTIONS)}, got {ast.unparse(node.func)!r}")
            if isinstance(node, ast.Name) and id(node) not in called:
                names[node.id] = None
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                check_size(node)
            if isinstance(node, ast.BinOp | ast.UnaryOp):
                check_arithmetic(node)
    if not names:
        raise ValueError(f"prevalence must name a covariate, such as '~ party', got {formula!r}")
    return list(names)


def check_terms(formula: str) -> None:
    """Refuse a formula of more than ``MOST_TERMS`` terms before its products are multiplied out; raises ValueError."""
    try:
        right = formula.partition("~")[2] if "~" in formula else formula
        tree = ast.parse(right.replace(":", "@").strip(), mode="eval")
        n_terms = terms_of(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"prevalence must be a formula such as '~ party + year', got {formula!r}: {error}") from error
    if n_terms > MOST_TERMS:
        raise ValueError(f"prevalence must have at most {MOST_TERMS} terms, got {n_terms} in {formula!r}")


def terms_of(node: ast.expr) -> int:
    """How many terms a part of a formula has at most, where ":" is written as "@"; it binds more closely than "*"."""
    if isinstance(node, ast.UnaryOp):
        return terms_of(node.operand)
    if not isinstance(node, ast.BinOp):
        return 1
    left, right = terms_of(node.left), terms_of(node.right)
    both = left * right if isinstance(node.op, ast.Mult | ast.MatMult) else 0
    return both if isinstance(node.op, ast.MatMult) else left + right + both


def check_arithmetic(node: ast.AST) -> None:
    """Refuse text and tuples in arithmetic, which repeats them as often as it says; raises ValueError."""
    for each in ast.walk(node):
        text = isinstance(each, ast.Constant) and not isinstance(each.value, int | float)
        if text or isinstance(each, ast.Tuple | ast.List):
            raise ValueError(
                f"prevalence must have only numbers and covariates in arithmetic, got {ast.unparse(node)!r}"
            )


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """What a basis is called with, beside its covariate and numbers of that covariate's scale."""
    return [*call.args[1:], *(each.value for each in call.keywords if each.arg not in LIMITS)]


def check_size(call: ast.Call) -> None:
    """Refuse a basis of more columns than anybody needs, which would fill the memory; raises ValueError."""
    if not (isinstance(call.func, ast.Name) and call.func.id in BASES):
        return
    for value in arguments_of(call):
        size = getattr(value, "value", None)
        if size is None or (isinstance(size, float | int) and size > MOST_COLUMNS):
            raise ValueError(
                f"prevalence may ask {call.func.id} for at most {MOST_COLUMNS} columns, got {ast.unparse(value)}"
            )


def check_width(formula: str, frame: pd.DataFrame) -> None:
    """Refuse a design of more than ``MOST_TERMS`` columns, before any is made; raises ValueError."""
    asked = {}
    for term in formulaic().Formula(formula):
        factors = [ast.parse(factor.expr, mode="eval").body for factor in term.factors]
        asked[str(term)] = np.prod([width_of(factor, frame) for factor in factors], dtype=float)
    if sum(asked.values()) > MOST_TERMS:
        most = max(asked, key=lambda term: asked[term])
        raise ValueError(
            f"prevalence must ask for at most {MOST_TERMS} columns, got {sum(asked.values()):.0f}, of which "
            f"{asked[most]:.0f} of {most}"
        )


def width_of(factor: ast.expr, frame: pd.DataFrame) -> int:
    """How many columns a factor of a term has, at most: levels of text and of C(), the size of a basis, else one."""
    name = ""
    if isinstance(factor, ast.Call) and isinstance(factor.func, ast.Name):
        name = factor.func.id
    if isinstance(factor, ast.Call) and name in BASES:
        asked = [getattr(each, "value", 1) for each in arguments_of(factor)]
        return max(1, sum(value if isinstance(value, int) else 1 for value in asked))
    inside = [node.id for node in ast.walk(factor) if isinstance(node, ast.Name) and node.id in frame]
    levels = [frame[each].nunique() for each in inside if name == "C" or hasattr(frame[each], "cat")]
    return max(levels, default=1)


def first_design(formula: str, frame: pd.DataFrame) -> tuple[Any, pd.DataFrame]:
    """(formulaic's specification, the design without its intercept); raises ValueError."""
    package = formulaic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matrix = package.model_matrix(formula, frame, context={}, na_action="ignore")
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
            warnings.simplefilter("error", formulaic().errors.DataMismatchWarning)
            found = pd.DataFrame(spec.get_model_matrix(frame, context={}))
    except Exception as error:
        raise ValueError(f"covariates must be in the range of those of the fit: {error}") from error
    return found


def covariates_of_people(release: Release, people: Sequence[str]) -> tuple[pd.DataFrame | None, dict[str, int]]:
    """A row for each person, of what they stated alike in all their waves; and what they did not, of how many people.

    None where the release has no covariates.
    """
    stated = stated_covariates(release)
    if stated is None:
        return None, {}
    stated.index = pd.Index(spelt_alike(map(str, stated.index)))
    each = stated.groupby(level=0, sort=False)
    varying = (each.nunique() > 1).sum()
    differing = {str(name): int(number) for name, number in varying.items() if number}
    first = stated[~stated.index.duplicated()].loc[list(people)]
    return first.drop(columns=list(differing)), differing


def covariates_of_rows(releases: Sequence[Release], rows: Sequence[str] | None, n_rows: int) -> pd.DataFrame | None:
    """A row for each of the joined ones, with every covariate of any release; missing where none states it.

    Rows go by their labels, or by position where ``rows`` is None. None where no release has covariates.

    Raises:
        ValueError: a covariate that is a number in one release and one of some values in another, or that two releases
            state otherwise of the same row; it is named.
    """
    index = pd.RangeIndex(n_rows) if rows is None else pd.Index(list(rows))
    spelt = {identity(name): name for name in rows or ()}
    columns: dict[str, pd.Series] = {}
    for release in releases:
        stated = stated_covariates(release)
        if stated is None:
            continue
        if rows is not None:
            stated.index = pd.Index([spelt[identity(str(name))] for name in stated.index])
        for name in stated.columns:
            here = stated[name].reindex(index)
            columns[name] = agreed(name, columns[name], here) if name in columns else here
    return pd.DataFrame(columns, index=index) if columns else None


def agreed(name: Any, one: pd.Series, other: pd.Series) -> pd.Series:
    """What either release states of each row; raises ValueError where they differ."""
    kinds = [isinstance(each.dtype, pd.CategoricalDtype) for each in (one, other)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"releases must have one kind of covariate {name!r}, got numbers in some and values in others")
    texts = [each.astype(object) for each in (one, other)]
    known = [each.notna().to_numpy() for each in (one, other)]
    differ = known[0] & known[1] & (texts[0].to_numpy() != texts[1].to_numpy())
    if differ.any():
        place = int(np.flatnonzero(differ)[0])
        first, second = (each.iloc[place] for each in texts)
        raise ValueError(
            f"releases must agree on covariate {name!r} of a row, got {first!r} and {second!r} of {one.index[place]!r}"
        )
    joint = texts[0].where(known[0], texts[1])
    if not kinds[0]:
        return joint.astype(np.float64)
    values = dict.fromkeys([*one.cat.categories, *other.cat.categories])
    return pd.Series(pd.Categorical(joint, list(values)), index=one.index)
