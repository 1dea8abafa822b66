"""How many components: a number, or "auto", which short fits choose by reports that they do not see."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone

from countveil.common.parameters import AUTO
from countveil.data.release_files import ReleaseFiles
from countveil.models.factorization import Factorization
from countveil.selection.compare import compare_quickly

CHOSEN = "chosen"  # what a file says of a fit whose number of components was
CANDIDATES = 5, 10, 20, 50, 100
FEWER = 1, 2, 3  # besides, of data that do not allow ``MANY``
MANY = 50
FOLDS, FOLDS_SCORED = 5, 2
CHOICE_STREAM = 2**31 + 1  # a spawn key that no chain has


def is_auto(model: Any) -> bool:
    """Whether the number of components is to be chosen."""
    return model._sized_by is not None and getattr(model, model._sized_by[0]) == AUTO


def size_of(model: Any) -> int:
    """The number of components, chosen before where it is "auto"; raises ValueError if it was not."""
    assert model._sized_by is not None
    name = model._sized_by[0]
    value = getattr(model, name)
    if value != AUTO:
        return int(value)
    chosen = getattr(model, f"{name}_", None)
    if chosen is None:
        raise ValueError(f"{name} must be a number except in fit, which chooses one, got {AUTO!r}")
    return int(chosen)


def own_size(model: Any) -> dict[str, int]:
    """The parameter with the number of components of a fit, to fit another one of the same size."""
    return {} if model._sized_by is None else {model._sized_by[0]: size_of(model)}


def keep_size(model: Any, found: Factorization) -> None:
    """Remember the number of components of a model that was fitted or read."""
    if model._sized_by is not None:
        name, axis = model._sized_by
        setattr(model, f"{name}_", int((found.rows.sizes | found.columns.sizes)[axis]))


def choice_in_words(model: Any) -> str:
    """That the number of components was chosen; empty where it was given, or data allow a single one."""
    if CHOSEN not in model.posterior.attrs:
        return ""
    name = model._sized_by[0]
    chosen = f"{name}={getattr(model, f'{name}_')}"
    return f"{chosen} was chosen by held-out reports."


@contextmanager
def choosing(model: Any, X: Any) -> Iterator[None]:
    """Choose the number of components where it is "auto"; what fails inside leaves everything as it was."""
    before = dict(vars(model))
    for name in ["selection_"] + ([] if model._sized_by is None else [f"{model._sized_by[0]}_"]):
        vars(model).pop(name, None)
    try:
        if is_auto(model):
            choose_size(model, X)
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def choose_size(model: Any, X: Any) -> None:
    """Set the number of components to that which predicts held-out reports best, and keep the comparison.

    Raises:
        ValueError: data that stay on disk; data that every candidate refuses.
    """
    name = model._sized_by[0]
    if isinstance(X, ReleaseFiles):
        raise ValueError(f"{name} must be a number for data on disk, got {AUTO!r}")
    observed = model._observed(X)
    numbers = sorted({max(n, model._least_size()) for n in candidates(observed.mode_shape)})
    chosen = numbers[0]
    if len(numbers) > 1 and math.prod(observed.mode_shape) - observed.n_masked >= FOLDS:
        models = [clone(model).set_params(**{name: n}) for n in numbers]
        seed = np.random.SeedSequence(model.seed_, spawn_key=(CHOICE_STREAM,)).generate_state(1, np.uint64)
        with said_if_interrupted(name):
            model.selection_ = compare_quickly(
                observed,
                models,
                (FOLDS, FOLDS_SCORED),
                int(seed[0] >> 1),
                model._n_threads(observed),
                model.progress,
            )
        chosen = numbers[model.selection_.names.index(model.selection_.best)]
    setattr(model, f"{name}_", chosen)


@contextmanager
def said_if_interrupted(name: str) -> Iterator[None]:
    """Lets Ctrl-C say that the fit had not begun, and what to do instead."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted while {name} was chosen, before the fit began: nothing is kept; give a number, or compare "
            "numbers with a checkpoint"
        ) from None


def candidates(shape: tuple[int, ...]) -> list[int]:
    """Numbers of components to choose from, for data of this shape: no model has more entries than there are cells."""
    most = max(math.prod(shape) // sum(shape), 1)
    few = () if most >= MANY else FEWER
    return [n for n in (*few, *CANDIDATES) if n <= most]
