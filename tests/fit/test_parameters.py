"""A parameter that is declared once reaches everything that asks for it."""

import inspect
import re
from typing import Annotated, Unpack

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import countveil as cv
from countveil.fit.options import Options, RowOptions, StreamOptions
from countveil.fit.parameters import Flag, OneOf, Option, Positive, TakesOptions, Whole, option_types


class More(Options, total=False):
    """An option more than every model has."""

    dispersion: Annotated[str, Option("column", OneOf(("column", "row")), "what the variance goes with.")]


class Toy(TakesOptions, BaseEstimator):
    """A model of nothing."""

    def __init__(
        self,
        size: Annotated[int, Whole(2)] = 3,
        *,
        loud: Annotated[bool, Flag()] = False,
        **options: Unpack[More],
    ) -> None:
        self._remember(locals())


class Child(Toy):
    """Takes what its parent takes."""


class Plain(TakesOptions, BaseEstimator):
    """Has no options in common with others."""

    def __init__(self, depth: Annotated[float, Positive()] = 1.0) -> None:
        self._remember(locals())


@pytest.mark.parametrize("kind", [Toy, Child])
def test_one_line_is_enough_for_a_new_option(kind):
    model = kind(5, dispersion="row", draws=7)
    assert (model.size, model.loud, model.dispersion, model.draws, model.tune) == (5, False, "row", 7, 200)
    found = inspect.signature(kind).parameters
    assert found["dispersion"] == inspect.Parameter(
        "dispersion", inspect.Parameter.KEYWORD_ONLY, default="column", annotation=str
    )
    assert list(found)[:3] == ["size", "loud", "method"]
    assert found["size"].annotation is int
    assert model.get_params()["dispersion"] == "row"
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(dispersion="all") is model
    with pytest.raises(ValueError, match=re.escape("dispersion must be one of ['column', 'row'], got 'all'")):
        model._check_rules()
    assert "dispersion='row'" in repr(kind(dispersion="row"))


def test_options_are_in_the_docstring_that_help_shows():
    assert Toy.__doc__.startswith("A model of nothing.\n\nOptions:\n    method (str, default 'gibbs'): ")
    assert "    dispersion (str, default 'column'): what the variance goes with." in Toy.__doc__
    assert max(map(len, Toy.__doc__.splitlines())) <= 110
    assert Plain.__doc__ == "Has no options in common with others."


def test_unknown_options_are_refused_as_python_does():
    for name in ("dispersal", "options", "self"):
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
        (Whole(0, or_none=True), [None, 0], [-1, 0.5], "must be a whole number of at least 0"),
        (Positive(), [0.5, np.float32(2)], [0, -1.0, np.inf, None, True, "1"], "must be a positive number"),
        (Positive(or_none=True), [None, 1], [0.0], "must be a positive number"),
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
        (Plain(0.0), "depth must be"),
    ):
        with pytest.raises(ValueError, match=said):
            model._check_rules()
    assert inspect.signature(Plain).parameters["depth"].annotation is float
    Plain()._check_rules()


@pytest.mark.parametrize(
    ("model", "table"),
    [
        (cv.TopicModel, StreamOptions),
        (cv.TensorModel, RowOptions),
        (cv.BlockModel, Options),
        (cv.PoissonFactorization, Options),
    ],
)
def test_every_model_has_every_option_it_declares(model, table):
    declared = table.__annotations__ | RowOptions.__annotations__ if table is StreamOptions else {}
    declared = {**Options.__annotations__, **declared, **table.__annotations__}
    assert set(option_types(model.__init__)) == set(declared)
    signature, parameters = inspect.signature(model).parameters, model().get_params()
    for name in declared:
        (option,) = declared[name].__metadata__
        assert signature[name].default is option.default
        assert signature[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name] is option.default
        assert f"\n    {name} (" in model.__doc__
        assert option.says
        assert option.says.endswith(".")
        if option.rule is not None:
            option.rule.check(name, option.default)
