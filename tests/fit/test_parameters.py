"""What every model takes: in its constructor, its parameters, its docstring and the check of its values."""

import inspect
from dataclasses import fields

import pytest

import countveil as cv
from countveil.common.parameters import declaration, described_options
from countveil.fit.parameters import Options

MODELS = [cv.TopicModel, cv.TensorModel, cv.BlockModel, cv.DynamicModel, cv.PoissonFactorization]


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_every_option_that_is_declared(model):
    signature, parameters = inspect.signature(model).parameters, model().get_params()
    shared = {field.name: field for field in fields(Options)}
    assert set(described_options(model)) >= set(shared)
    for name, field in shared.items():
        option = declaration(field.type)
        assert signature[name].default is field.default
        assert signature[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name] is field.default
        assert f"\n    {name} (" in model.__doc__
        assert option.says.endswith(".")
