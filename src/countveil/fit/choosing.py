"""How many components, and how counts spread: "auto", which short fits choose by reports that they do not see."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from countveil.common.parameters import AUTO
from countveil.data.release_files import ReleaseFiles
from countveil.laws.counts import POISSON, Likelihood, NegativeBinomial
from countveil.models.factorization import Factorization
from countveil.selection import Comparison
from countveil.selection.compare import compare_quickly, with_scores

IN_WORDS = {"global": "one dispersion", "column": "dispersion by column", "row": "dispersion by row"}
CHOSEN = "chosen"  # what a file calls what was chosen, and what came next, in words
CANDIDATES = 5, 10, 20, 50, 100
FEWER = 1, 2, 3  # besides, of data that do not allow ``MANY``
MANY = 50
TOGETHER = 20  # candidates up to here are compared at once, larger ones one by one until the last is clearly worse
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
    if isinstance(value, list | tuple):  # of layers, of which the first is the model's own
        return int(value[0])
    if value not in (AUTO, None):
        return int(value)
    chosen = getattr(model, f"{name}_", None)
    if chosen is None:
        raise ValueError(f"{name} must be a number, got {value!r}: only fit chooses one")
    return int(chosen)


def leaves_likelihood(model: Any) -> bool:
    """Whether the likelihood is to be chosen with the number of components."""
    return is_auto(model) and model.likelihood is None and model.dispersion is None


def chosen_likelihood(model: Any) -> Likelihood:
    """The likelihood that was chosen; by the parameters where none was, or where they are others by now."""
    chosen = vars(model).get("likelihood_", {}) if leaves_likelihood(model) else {}
    found: Likelihood = model._likelihood_of(
        chosen.get("likelihood", model.likelihood), chosen.get("dispersion", model.dispersion)
    )
    return found


def own_choice(model: Any) -> dict[str, Any]:
    """The parameters that make another fit of the same size, and of the same likelihood where that was chosen."""
    if model._sized_by is None:
        return {}
    name = model._sized_by[0]
    value = getattr(model, name)
    return {name: size_of(model) if value in (AUTO, None) else value, **vars(model).get("likelihood_", {})}


def keep_choice(model: Any, found: Factorization) -> None:
    """Remember the number of components of a model that was fitted or read, and its likelihood if it was chosen."""
    if model._sized_by is None:
        return
    name, axis = model._sized_by
    setattr(model, f"{name}_", int((found.rows.sizes | found.columns.sizes)[axis]))
    own = found.likelihood
    if leaves_likelihood(model) and own.name in (POISSON.name, NegativeBinomial.name):
        model.likelihood_ = {"likelihood": own.name, "dispersion": own.settings.get("dispersion")}


def choice_in_words(model: Any) -> str:
    """What was chosen, and what came next; empty where nothing was, or data allow a single number of components."""
    return str(model.posterior.attrs.get(CHOSEN, ""))


@contextmanager
def choosing(model: Any, X: Any) -> Iterator[None]:
    """Choose the number of components where it is "auto"; what fails inside leaves everything as it was."""
    before = dict(vars(model))
    own = [] if model._sized_by is None else [f"{model._sized_by[0]}_"]
    for name in ["selection_", "likelihood_", *own]:
        vars(model).pop(name, None)
    try:
        if is_auto(model):
            choose(model, X)
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def choose(model: Any, X: Any) -> None:
    """Set the number of components, then the likelihood, that predict held-out reports best; keep the comparison.

    Fits with many components take the most time, so they are left out where fewer are clearly better already.

    Raises:
        ValueError: data that stay on disk; data that every candidate refuses.
    """
    name = model._sized_by[0]
    if isinstance(X, ReleaseFiles):
        raise ValueError(f"{name} must be a number for data on disk, got {AUTO!r}")
    observed = model._observed(X)
    numbers = sorted({max(n, model._least_size()) for n in candidates(observed.mode_shape)})
    if len(numbers) == 1 or math.prod(observed.mode_shape) - observed.n_masked < FOLDS:
        setattr(model, f"{name}_", numbers[0])
        return
    seed = np.random.SeedSequence(model.seed_, spawn_key=(CHOICE_STREAM,)).generate_state(1, np.uint64)

    def compared(options: dict[str, dict[str, Any]]) -> Comparison:
        models = {label: clone(model).set_params(**each) for label, each in options.items()}
        return compare_quickly(
            observed, models, (FOLDS, FOLDS_SCORED), int(seed[0] >> 1), model._n_threads(observed), model.progress
        )

    with said_if_interrupted(name):
        tried = {f"{name}={n}": {name: n} for n in numbers}
        few = [label for label, own in tried.items() if own[name] <= TOGETHER] or list(tried)[:1]
        found = with_scores(compared({label: tried[label] for label in few}))
        for label in [each for each in tried if each not in few]:
            if found.names[-1] not in found.level:  # more components predict worse already
                break
            found = found.beside(compared({label: tried[label]}))
        first = found.best
        spreads = {f"{first}, {label}": tried[first] | own for label, own in other_likelihoods(model).items()}
        if spreads:  # of the best number alone, by the same folds and seeds
            usual = f"{first}, {IN_WORDS[str(model._likelihood().settings['dispersion'])]}"
            tried |= spreads | {usual: tried[first]}
            found = replace(found, names=tuple(usual if each == first else each for each in found.names))
            found = found.beside(compared(spreads))
        found = replace(found, differs=tuple(tried[each] for each in found.names))
        best = tried[found.best]
    setattr(model, f"{name}_", best[name])
    model.likelihood_ = {key: best[key] for key in ("likelihood", "dispersion") if key in best}
    model.selection_ = found


def other_likelihoods(model: Any) -> dict[str, dict[str, str]]:
    """What else to try where neither likelihood nor dispersion is given, by name.

    A dispersion by row is left out where new rows may come (``transform``), which would have none.
    """
    usual = model._likelihood()
    if not leaves_likelihood(model) or not isinstance(usual, NegativeBinomial):
        return {}
    found: dict[str, dict[str, str]] = {"Poisson": {"likelihood": POISSON.name}}
    if usual.dispersion == "column":
        others = ["global"] if model._rows_are_new_data else ["global", "row"]
        found |= {IN_WORDS[each]: {"dispersion": each} for each in others}
    return found


def said_of(found: Comparison) -> str:
    """What was chosen, and what came next."""
    table = found.table.sort_values("difference", ascending=False, kind="stable")
    said = f"{found.best} was chosen by held-out reports"
    if len(table) < 2 or not np.isfinite(table["difference"].iloc[1]):
        return f"{said}."
    second = table.iloc[1]
    return f"{said}; {second['model']} came next, {-second['difference']:.2g} lower per 1,000 cells."


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
