"""Parameters of models: what is declared about each, and constructors with the declared signature.

A model takes options as ``**options: Unpack[Options]`` (``countveil.fit.options``) besides parameters of its
own. Its signature then lists them one by one, for people, for editors and for scikit-learn, whose ``get_params``,
``set_params`` and ``clone`` read it. A parameter of a model's own says what it may be in its annotation:
``n_topics: Annotated[int, Whole(1)] = 10``.
"""

import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Protocol,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import check_array

from countveil.data.matrices import LARGEST as LARGEST
from countveil.data.matrices import check_integer as check_integer
from countveil.data.matrices import unwrap

AUTO = "auto"
KEYWORD = inspect.Parameter.KEYWORD_ONLY


class Rule(Protocol):
    """What a parameter may be."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else with a ValueError that says the parameter, the rule and the value."""


class Whole(NamedTuple):
    """A whole number from ``least`` to ``most``; or None, where that is allowed."""

    least: int
    or_none: bool = False
    most: int = LARGEST

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if not (self.or_none and value is None):
            check_integer(name, value, self.least, self.most)


class WholeOrAuto(NamedTuple):
    """A whole number from ``least`` on, or "auto"."""

    least: int = 1

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if isinstance(value, str):
            if value != AUTO:
                raise ValueError(f"{name} must be a whole number or {AUTO!r}, got {value!r}")
            return
        check_integer(name, value, self.least)


class Positive(NamedTuple):
    """A positive finite number; or None, where that is allowed."""

    or_none: bool = False

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if not (self.or_none and value is None):
            check_positive(name, value)


class PositiveOr(NamedTuple):
    """A positive finite number, or one of a few other values."""

    values: tuple[Any, ...]

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if value is not None and not isinstance(value, str):
            check_positive(name, value)
        elif value not in self.values:
            raise ValueError(f"{name} must be a positive number or one of {list(self.values)}, got {value!r}")


class Level(NamedTuple):
    """A number, which the data check together with the reports; or None."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        check_level(name, value)


class OneOf(NamedTuple):
    """One of a few values."""

    values: tuple[Any, ...]

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        check_choice(name, value, self.values)


class Flag(NamedTuple):
    """True or False."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        check_flag(name, value)


class Option(NamedTuple):
    """What is declared about an option besides its type."""

    default: Any
    rule: Rule | None  # None where ``fit`` checks it together with other parameters or the data
    says: str


class TakesOptions:
    """Gives a model's constructor the signature that it declares, and remembers and checks what is passed."""

    _options: ClassVar[Mapping[str, Option]] = MappingProxyType({})
    _rules: ClassVar[Mapping[str, Rule]] = MappingProxyType({})

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" not in cls.__dict__:
            return
        constructor: Any = cls.__init__
        types = option_types(constructor)
        cls._options = {name: declared(hint) for name, hint in types.items()}
        cls._rules = rules_of(constructor) | {
            name: option.rule for name, option in cls._options.items() if option.rule is not None
        }
        constructor.__signature__ = signature_of(constructor, types)
        if cls.__doc__ and types:
            cls.__doc__ = f"{inspect.cleandoc(cls.__doc__)}\n\n{section_of(described_options(cls))}"

    def _remember(self, given: Mapping[str, Any]) -> None:
        """Set every parameter as it was given; ``given`` is what ``locals()`` returns in the constructor.

        Raises:
            TypeError: an option that the model does not take.
        """
        options = given.get("options", {})
        for name in options:
            if name not in self._options:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}"
                )
        for name in inspect.signature(type(self)).parameters:
            if name in self._options:
                setattr(self, name, options.get(name, self._options[name].default))
            else:
                setattr(self, name, given[name])

    def _check_rules(self) -> None:
        """Refuse parameters that break their rules; raises ValueError."""
        for name, rule in self._rules.items():
            rule.check(name, getattr(self, name))


def option_types(constructor: Callable[..., Any]) -> dict[str, Any]:
    """The annotated type of each option that a constructor takes as ``**options: Unpack[...]``."""
    hint = get_type_hints(constructor, include_extras=True).get("options")
    return get_type_hints(get_args(hint)[0], include_extras=True) if get_origin(hint) is Unpack else {}


def rules_of(constructor: Callable[..., Any]) -> dict[str, Rule]:
    """The rules in a constructor's own annotations."""
    hints = get_type_hints(constructor, include_extras=True).items()
    return {name: get_args(hint)[1] for name, hint in hints if get_origin(hint) is Annotated}


def signature_of(constructor: Callable[..., Any], types: Mapping[str, Any]) -> inspect.Signature:
    """A constructor's signature with its options one by one, annotated by their types alone."""
    found = inspect.signature(constructor)
    own = [
        p.replace(annotation=plain_type(p.annotation))
        for p in found.parameters.values()
        if p.name != "options"
    ]
    options = [
        inspect.Parameter(name, KEYWORD, default=declared(hint).default, annotation=plain_type(hint))
        for name, hint in types.items()
    ]
    return found.replace(parameters=[*own, *options])


def declared(hint: Any) -> Option:
    """What is declared about an option besides its type."""
    option = get_args(hint)[1]
    assert isinstance(option, Option)
    return option


def plain_type(hint: Any) -> Any:
    """A type without what an annotation adds to it."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def described_options(model: type[TakesOptions]) -> dict[str, str]:
    """Type, default and meaning of each option that a model takes."""
    constructor: Any = model.__init__
    types = {name: (plain_type(hint), declared(hint)) for name, hint in option_types(constructor).items()}
    return {
        name: f"({inspect.formatannotation(kind)}, default {option.default!r}): {option.says}"
        for name, (kind, option) in types.items()
    }


def section_of(described: Mapping[str, str]) -> str:
    """Options as a section of a docstring."""
    lines = ["Options:"]
    for name, text in described.items():
        lines += textwrap.wrap(f"{name} {text}", 110, initial_indent="    ", subsequent_indent="        ")
    return "\n".join(lines)


FORMATS = ("csr", "csc", "coo")  # sparse ones in which scikit-learn can find values that are not finite


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a positive finite number."""
    if isinstance(value, int) and value > sys.float_info.max:  # it may have more digits than Python prints
        raise ValueError(
            f"{name} must be a positive number of at most {sys.float_info.max}, got a larger one"
        )
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < np.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_interval(interval: float) -> None:
    """Refuse what is not a probability strictly between 0 and 1."""
    number = isinstance(interval, int | float | np.number) and not isinstance(interval, bool)
    if not number or not 0.0 < interval < 1.0:
        raise ValueError(f"interval must be between 0 and 1, got {interval!r:.60}")


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse what is not one of the allowed values."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")


def check_labels_of_fit(
    rule: str, axes: Mapping[str, np.ndarray], labels: Sequence[Sequence[str] | None]
) -> None:
    """Refuse labels that differ from the fit's along an axis, or are in another order; axes without labels pass.

    Raises:
        ValueError: the rule, and the first label that differs.
    """
    for (dim, known), names in zip(axes.items(), labels, strict=True):
        if names is None or known.dtype.kind not in "OUT":
            continue
        for i, (fitted, given) in enumerate(zip(known.tolist(), names, strict=True)):
            if fitted != given:
                raise ValueError(f"{rule}, got {given!r} for {fitted!r} at {dim} {i}")


def check_level(name: str, value: Any) -> None:
    """Refuse what is neither a number nor None."""
    if value is None or (isinstance(value, int | float | np.number) and not isinstance(value, bool)):
        return
    raise ValueError(
        f"{name} must be a number in [0, 1) or None, got {type(value).__name__}: levels of rows, columns or cells go "
        "with the data, PrivatizedCounts(X, alpha)"
    )


def check_plain(X: Any, estimator: Any) -> dict[str, Any]:
    """Reports in a plain array, and the mask and labels they came with, by the rules of scikit-learn.

    Raises:
        TypeError, ValueError: as ``sklearn.utils.check_array``.
    """
    reports, mask, rows, columns = unwrap(X, None, None, None)
    if isinstance(X, pd.DataFrame) and X.isna().to_numpy().any():
        raise ValueError(
            "X must have no missing values, got NaN: mask cells without a report, "
            "PrivatizedCounts(X, alpha, mask=X.isna())"
        )
    if not (sp.issparse(reports) and reports.ndim != 2):
        reports = check_array(
            reports,
            accept_sparse=FORMATS,
            allow_nd=True,
            ensure_non_negative=estimator.__sklearn_tags__().input_tags.positive_only,
            estimator=estimator,
            input_name="X",
        )
    return {"reports": reports, "mask": mask, "row_labels": rows, "column_labels": columns}
