"""A parameter that is declared once reaches everything that asks for it."""

import inspect
import re
from dataclasses import KW_ONLY
from typing import Annotated

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from countveil.common.parameters import (
    Flag,
    OneOf,
    Option,
    Positive,
    Whole,
    WholeOrAuto,
    check_rules,
    declared,
    described_options,
)


@declared
class Shared:
    """What several models take."""

    _: KW_ONLY
    draws: Annotated[int, Option(Whole(1), "draws that are kept.")] = 50
    axis: Annotated[str | None, Option(None, "what ``fit`` checks together with the data.")] = None


@declared
class More(Shared):
    """An option more than every model has."""

    _: KW_ONLY
    dispersion: Annotated[str, Option(OneOf(("column", "row")), "what the variance goes with.")] = "column"


@declared
class Toy(More, BaseEstimator):
    """A model of nothing.

    Args:
        size: how large it is.
    """

    size: Annotated[int, Whole(2)] = 3
    _: KW_ONLY
    loud: Annotated[bool, Flag()] = False


class Child(Toy):
    """Takes what its parent takes."""


@declared
class Plain(BaseEstimator):
    """Has no options in common with others."""

    depth: Annotated[float, Positive()] = 1.0


@pytest.mark.parametrize("kind", [Toy, Child])
def test_one_line_is_enough_for_a_new_option(kind):
    model = kind(5, dispersion="row", draws=7)
    assert (model.size, model.loud, model.dispersion, model.draws, model.axis) == (5, False, "row", 7, None)
    found = inspect.signature(kind).parameters
    assert found["dispersion"] == inspect.Parameter(
        "dispersion", inspect.Parameter.KEYWORD_ONLY, default="column", annotation=str
    )
    assert list(found) == ["size", "draws", "axis", "dispersion", "loud"]
    assert found["size"].annotation is int
    assert found["size"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert model.get_params()["dispersion"] == "row"
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(dispersion="all") is model
    with pytest.raises(ValueError, match=re.escape("dispersion must be one of ['column', 'row'], got 'all'")):
        check_rules(model)
    assert "dispersion='row'" in repr(kind(dispersion="row"))
    assert kind() != kind()
    assert len({kind(), kind()}) == 2


def test_options_are_in_the_docstring_that_help_shows():
    assert Toy.__doc__.startswith("A model of nothing.\n\nArgs:\n    size: how large it is.\n\nOptions:\n")
    assert "    draws (int, default 50): draws that are kept.\n" in Toy.__doc__
    assert "    dispersion (str, default 'column'): what the variance goes with." in Toy.__doc__
    assert "loud" not in Toy.__doc__
    assert max(map(len, Toy.__doc__.splitlines())) <= 110
    assert Plain.__doc__ == "Has no options in common with others."
    assert list(described_options(Toy)) == ["draws", "axis", "dispersion"]
    assert described_options(Plain) == {}


def test_types_are_described_without_their_modules():
    @declared
    class Typed:
        """One."""

        given: Annotated[np.ndarray | int | None, Option(None, "it.")] = None

    assert described_options(Typed) == {"given": "(ndarray | int | None, default None): it."}


def test_unknown_parameters_are_refused_as_python_does():
    for name in ("dispersal", "options", "self", "_"):
        with pytest.raises(TypeError, match=name):
            Toy(**{name: 1})
    said = r"Toy.__init__\(\) got an unexpected keyword argument 'dispersal'"
    with pytest.raises(TypeError, match=said):
        Toy(dispersal=1)
    with pytest.raises(TypeError, match="positional"):
        Toy(1, 2)


@pytest.mark.parametrize(
    ("rule", "good", "bad", "message"),
    [
        (Whole(2), [2, np.int64(5)], [1, 2.0, None, True, "3"], "must be a whole number of at least 2"),
        (WholeOrAuto(), [1, "auto"], [0, 1.5, None], "must be a whole number of at least 1"),
        (Positive(), [0.5, np.float32(2)], [0, -1.0, np.inf, None, True, "1"], "must be a positive number"),
        (OneOf(("a", None)), ["a", None], ["b", 1], "must be one of ['a', None]"),
        (Flag(), [True, np.bool_(False)], [0, None, "yes"], "must be True or False"),
    ],
)
def test_rules(rule, good, bad, message):
    for value in good:
        rule.check("x", value)
    for value in bad:
        with pytest.raises(ValueError, match=f"^x {re.escape(message)}, got {re.escape(repr(value))}$"):
            rule.check("x", value)


def test_rules_of_a_model_s_own_parameters_are_checked_too():
    for model, said in (
        (Toy(1), "size must be"),
        (Toy(loud=1), "loud must be"),
        (Child(draws=0), "draws must be"),
        (Plain(0.0), "depth must be"),
    ):
        with pytest.raises(ValueError, match=said):
            check_rules(model)
    assert inspect.signature(Plain).parameters["depth"].annotation is float
    check_rules(Plain())
    check_rules(Toy())


def test_a_default_needs_no_rule():
    @declared
    class Optional:
        """May have a depth."""

        depth: Annotated[int | None, Whole(1)] = None

    check_rules(Optional())
    check_rules(Optional(2))
    with pytest.raises(ValueError, match="depth must be a whole number of at least 1, got 0"):
        check_rules(Optional(0))
