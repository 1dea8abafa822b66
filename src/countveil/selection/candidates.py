"""The models of a comparison: their names, from what differs where none are given, and the data as each sees them."""

import inspect
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from countveil.data.observations import Observations
from countveil.data.release_files import ReleaseFiles
from countveil.data.reports import observations_of
from countveil.inference.algorithm import Method
from countveil.inference.checkpoint import printed
from countveil.inference.draws import rounds_of
from countveil.inference.run import Sampler
from countveil.models.factorization import model_facts
from countveil.privacy import Release

NOT_THE_MODEL = ("seed", "threads", "engine", "progress")
"""Parameters that say nothing about a model: the comparison has a seed and threads of its own."""

Model = Any
"""A model of the library (``fit.base.FactorizationEstimator``), known by its methods alone: models choose their
number of components by comparisons, and a comparison cannot know what uses it."""
METHODS = "fit", "_observed", "set_params", "_reader"
"""What every model has."""


class Candidate(NamedTuple):
    """A model to compare, not fitted, and the data as it sees them."""

    name: str
    model: Model
    differs: dict[str, Any]  # the parameters in which the models differ
    observed: Observations
    size: int  # entries of all factors: about how long a fit takes
    facts: str  # everything that decides its fits and their scores
    n_chains: int  # that the model asks for itself
    covariates: Any = None  # of the rows, where the model has a formula of some


def candidates_of(data: Any, models: Any, short: Mapping[str, int | None], covariates: Any = None) -> list[Candidate]:
    """The models by name, with what ``short`` says in place of their own parameters, for these data.

    ``covariates`` are for those that have a ``prevalence``; without any, the data's own are.

    Raises:
        TypeError: something other than models of the library; data that the models do not take.
        ValueError: no models, two of one name, two alike, parameters that make no sense, data that a model refuses, or
            that models see differently; covariates that no model has a formula for, or that one needs and lacks.
    """
    named = named_models(models)
    formulas = {name: getattr(model, "prevalence", None) for name, model in named.items()}
    if covariates is not None and not any(formulas.values()):
        raise ValueError("covariates require prevalence, a formula that one of the models has, got none")
    differing = differences(named)
    if isinstance(data, Release):
        data = observations_of(data)
    elif isinstance(data, ReleaseFiles):
        data = data.unpacked()
    for model in named.values():
        if hasattr(model, "in_time") and isinstance(data, Observations):
            data = model.in_time(data)[0]  # for all models, which are compared cell by cell
    found = [
        candidate(name, model, differing[name], data, short, covariates if formulas[name] else None)
        for name, model in named.items()
    ]
    check_same_data(found)
    return found


def candidate(
    name: str, given: Model, differs: dict[str, Any], data: Any, short: Mapping[str, int | None], covariates: Any
) -> Candidate:
    """A model with its short settings, checked against the data."""
    model = clone(given).set_params(
        **{key: value for key, value in short.items() if key != "thin" and value is not None}
    )
    try:
        given._check_parameters()
        method = model._method
        if isinstance(method, Sampler) and short.get("thin") is not None:
            model.set_params(method=method.set_params(thin=short["thin"]))
        model._check_parameters()
        observed = model._observed(data)
        matrix = model._given(observed, covariates=covariates)
        start = model._start_as_named(matrix)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"models must be for these data, but {name!r} is not: {error}") from error
    n_chains = rounds_of(given.chains)[-1]
    settings = settings_of(model) | {
        "class": type(model).__name__,
        "model": model_facts(matrix.model),
        "start": start,
        "n_chains": n_chains,
    }
    size = sum(int(np.prod(factor.shape)) for factor in matrix.model.factors)
    return Candidate(
        name, model, differs, observed, size,
        as_text(settings), n_chains, covariates,
    )  # fmt: skip


def check_same_data(found: Sequence[Candidate]) -> None:
    """Refuse models of which one sees other reports, or another noise, than the first; raises ValueError."""
    first = found[0]
    for other in found[1:]:
        one, two = first.observed, other.observed
        same = one.mode_shape == two.mode_shape and one.noise.mechanism == two.noise.mechanism
        if not same or not np.array_equal(one.cell_level, two.cell_level):
            raise ValueError(
                f"models must see the same reports under the same noise, got {first.name!r} with {one!r} and "
                f"{other.name!r} with {two!r}"
            )


def named_models(models: Any) -> dict[str, Model]:
    """Models by name; raises TypeError or ValueError as ``candidates_of``."""
    if isinstance(models, Mapping):
        named = dict(models)
        for name in named:
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f"models must have names that are text, got {name!r}")
        check_models(list(named.values()))
        return named
    if is_model(models) or not isinstance(models, Sequence):
        raise TypeError(f"models must be a list of models or a dict of them by name, got {type(models).__name__}")
    check_models(models)
    settings = differences({str(i): model for i, model in enumerate(models)})
    if len(models) > 1 and not settings["0"]:
        raise ValueError(f"models must differ from each other, got {len(models)} that are alike")
    found: dict[str, Model] = {}
    for own, model in zip(settings.values(), models, strict=True):
        name = ", ".join(f"{key}={in_words(value)}" for key, value in own.items()) or type(model).__name__
        if name in found:
            raise ValueError(f"models must have names that differ, got {name!r} twice: pass a dict of models by name")
        found[name] = model
    return found


def check_models(models: Sequence[Any]) -> None:
    """Refuse an empty list, and what is not a model of the library; raises TypeError or ValueError."""
    if not models:
        raise ValueError("models must hold at least one model, got none")
    for model in models:
        if not is_model(model):
            raise TypeError(f"models must be models of countveil, such as TopicModel, got {type(model).__name__}")


def is_model(thing: Any) -> bool:
    """Whether something is a model of the library, and not a class of models."""
    return not isinstance(thing, type) and all(hasattr(thing, name) for name in METHODS)


def settings_of(model: Model) -> dict[str, Any]:
    """A model's class and parameters, in the order of its constructor; the likelihood is the one that it comes to.

    A method with its defaults is its name.
    """
    found: dict[str, Any] = {"model": type(model).__name__}
    found |= {key: getattr(model, key) for key in inspect.signature(type(model)).parameters}
    with suppress(KeyError, ValueError):  # said when its parameters are checked
        found["likelihood"] = model._likelihood().name
        found["method"] = named(model._method)
    return {key: value for key, value in found.items() if key not in NOT_THE_MODEL}


def named(method: Method) -> str | Method:
    """The name of a method that has its defaults; else the method."""
    return method.name if method == type(method)() else method


def differences(models: Mapping[str, Model]) -> dict[str, dict[str, Any]]:
    """Of every model the parameters in which some differ; one without a parameter counts as having its default."""
    settings = {name: settings_of(model) for name, model in models.items()}
    defaults: dict[str, Any] = {}
    for model in models.values():
        defaults |= {key: each.default for key, each in inspect.signature(type(model)).parameters.items()}
    differing = [
        key
        for key in dict.fromkeys(key for own in settings.values() for key in own)
        if len({as_text(own.get(key, defaults.get(key))) for own in settings.values()}) > 1
    ]
    return {name: {key: own[key] for key in differing if key in own} for name, own in settings.items()}


def as_text(value: Any) -> str:
    """A parameter's value as text that tells values apart."""
    return json.dumps(value, sort_keys=True, default=printed)


def in_words(value: Any) -> str:
    """A parameter's value in a name."""
    if isinstance(value, Mapping) and all(isinstance(each, int | float | str) for each in value.values()):
        return " ".join(f"{key}:{each}" for key, each in value.items())
    if isinstance(value, list | tuple) and all(isinstance(each, int | np.integer) for each in value):
        return f"[{', '.join(map(str, value))}]"
    plain = value is None or isinstance(value, str | int | float | np.number | Method)
    return str(value) if plain else type(value).__name__
