"""How many components: a number, or "auto", which short fits choose by reports that they do not see."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from countveil.common.parameters import AUTO
from countveil.data.release_files import ReleaseFiles
from countveil.models.factorization import Factorization
from countveil.selection import Comparison
from countveil.selection.compare import compare_quickly

CHOSEN = "chosen"  # what a file says of a fit whose number of components was
CANDIDATES = 5, 10, 20, 50, 100
FEWER = 1, 2, 3  # besides, of data that do not allow ``MANY``
MANY = 50
FOLDS, FOLDS_SCORED = 5, 2
CHOICE_STREAM = 2**31 + 1  # a spawn key that no chain has


class ChoosesSize:
    """Adds "auto" to the parameter of a model that says how many components it has.

    Attributes:
        sized_by: that parameter, and the latent axis of its size; None where a model has no such parameter.
    """

    sized_by: ClassVar[tuple[str, str] | None] = None
    selection_: Comparison

    @property
    def _is_auto(self) -> bool:
        return self.sized_by is not None and getattr(self, self.sized_by[0]) == AUTO

    def _size(self) -> int:
        """The number of components, chosen before where it is "auto"; raises ValueError if it was not."""
        assert self.sized_by is not None
        name = self.sized_by[0]
        value = getattr(self, name)
        if value != AUTO:
            return int(value)
        chosen = getattr(self, f"{name}_", None)
        if chosen is None:
            raise ValueError(f"{name} must be a number except in fit, which chooses one, got {AUTO!r}")
        return int(chosen)

    def _least_size(self) -> int:
        """The least number of components to choose."""
        return 1

    def own_size(self) -> dict[str, int]:
        """The parameter with the number of components of a fit, to fit another one of the same size."""
        return {} if self.sized_by is None else {self.sized_by[0]: self._size()}

    def _keep_size(self, model: Factorization) -> None:
        """Remember the number of components of a model that was fitted or read."""
        if self.sized_by is not None:
            name, axis = self.sized_by
            setattr(self, f"{name}_", int((model.rows.sizes | model.columns.sizes)[axis]))

    def _choice_in_words(self: Any) -> str:
        """That the number of components was chosen; empty where it was given, or data allow a single one."""
        if CHOSEN not in self.posterior.attrs:
            return ""
        name = self.sized_by[0]
        chosen = f"{name}={getattr(self, f'{name}_')}"
        return f"{chosen} was chosen by held-out reports."

    @contextmanager
    def _choosing(self, X: Any) -> Iterator[None]:
        """Choose the number of components where it is "auto"; what fails inside leaves everything as it was."""
        before = dict(vars(self))
        for name in ["selection_"] + ([] if self.sized_by is None else [f"{self.sized_by[0]}_"]):
            vars(self).pop(name, None)
        try:
            if self._is_auto:
                self._choose_size(X)
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _choose_size(self: Any, X: Any) -> None:
        """Set the number of components to that which predicts held-out reports best, and keep the comparison.

        Raises:
            ValueError: data that stay on disk; data that every candidate refuses.
        """
        name = self.sized_by[0]
        if isinstance(X, ReleaseFiles):
            raise ValueError(f"{name} must be a number for data on disk, got {AUTO!r}")
        observed = self.observe(X)
        numbers = sorted({max(n, self._least_size()) for n in candidates(observed.mode_shape)})
        chosen = numbers[0]
        if len(numbers) > 1 and math.prod(observed.mode_shape) - observed.n_masked >= FOLDS:
            models = [clone(self).set_params(**{name: n}) for n in numbers]
            seed = np.random.SeedSequence(self.seed_, spawn_key=(CHOICE_STREAM,)).generate_state(1, np.uint64)
            with said_if_interrupted(name):
                self.selection_ = compare_quickly(
                    observed,
                    models,
                    (FOLDS, FOLDS_SCORED),
                    int(seed[0] >> 1),
                    self._n_threads(observed),
                    self.progress,
                )
            chosen = numbers[self.selection_.names.index(self.selection_.best)]
        setattr(self, f"{name}_", chosen)


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
