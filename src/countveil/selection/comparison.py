"""The result of a comparison: a table of scores, paired differences with standard errors, and a verdict in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from countveil.inference.folds import stacking_weights
from countveil.plotting import differences
from countveil.privacy._text import card

LEVEL = 2.0  # standard errors: models within them of the best are tied with it
CELLS = 1000  # scores are given per this many


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Models compared by how probable they find reports that they did not see.

    Attributes:
        table: a row for each model, in the order given. score: the mean log predictive probability of held-out
            reports (natural logarithm), per 1,000 cells; higher is better. difference: its score less that of the best
            model, with its standard_error; seconds of all its fits; and the parameters in which the models differ.
        best: the name of the model with the highest score.
        weights: the models' stacking weights, by name.
        level: the names of the models within two standard errors of the best, which is among them.
        verdict: this in words, with fits that failed.
        scores: (models, cells) log predictive probability of every held-out report; NaN where the model's fit failed.
        rows, columns, folds: (cells,) where these cells are in the data, and the fold that held them out.
        failures: {model: what went wrong}.
        seed: of the folds and of the fits.
    """

    names: tuple[str, ...]
    scores: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    folds: np.ndarray
    seconds: np.ndarray
    differs: tuple[Mapping[str, Any], ...]
    seed: int
    failures: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Scores, differences and their standard errors, one row for each model."""
        score = CELLS * self.scores.mean(axis=1)
        columns: dict[str, Any] = {"model": list(self.names), "score": score}
        gaps = self.scores - self.scores[self.names.index(self.best)]
        columns["difference"] = CELLS * gaps.mean(axis=1)
        columns["standard_error"] = [CELLS * standard_error(gap, self.rows, self.columns) for gap in gaps]
        columns["seconds"] = self.seconds
        for name in dict.fromkeys(name for own in self.differs for name in own):
            values = [own.get(name) for own in self.differs]
            columns["class" if name == "model" else name] = pd.Series(values, dtype=object).infer_objects()
        return pd.DataFrame(columns)

    @property
    def best(self) -> str:
        """The model with the highest score."""
        return self.names[int(np.nanargmax(self.scores.mean(axis=1)))]

    @property
    def level(self) -> tuple[str, ...]:
        """The models within two standard errors of the best."""
        table = self.table
        near = table["difference"] + LEVEL * table["standard_error"] >= 0.0
        return tuple(table["model"][near])

    @cached_property
    def verdict(self) -> str:
        """Which models are best, tied and worse, and which fits failed."""
        if len(self.names) == 1:
            return f"There is only one model, {self.best}: compare it with others."
        said = [f"{self.best} predicts held-out reports best."]
        others = [name for name in self.level if name != self.best]
        if others:
            said.append(f"{listed(others)} {'is' if len(others) == 1 else 'are'} tied with it.")
        for name, difference, error in self.table[["model", "difference", "standard_error"]].itertuples(index=False):
            if name in self.failures:
                said.append(f"{name} was not scored: {self.failures[name]}.")
            elif name not in self.level:
                by = (
                    f"{-difference / error:.1f} standard errors"
                    if error > 0.0
                    else f"{-difference:.3g} per 1,000 cells"
                )
                said.append(f"{name} is worse by {by}.")
        return " ".join(said)

    @cached_property
    def weights(self) -> pd.Series:
        """The models' stacking weights, by name, with sum one: how much of each predicts best together.

        Of predictions by fits that saw other folds (mathematics, section 15). A model whose fit failed has none.
        """
        scored = np.isfinite(self.scores).all(axis=1)
        weights = np.zeros(len(self.names))
        weights[scored] = stacking_weights(self.scores[scored].T)
        return pd.Series(weights, index=list(self.names), name="weight")

    def beside(self, other: "Comparison") -> "Comparison":
        """The models of both, of the same cells of the same folds."""
        return replace(
            self,
            names=self.names + other.names,
            scores=np.concatenate([self.scores, other.scores]),
            seconds=np.concatenate([self.seconds, other.seconds]),
            differs=self.differs + other.differs,
            failures={**self.failures, **other.failures},
        )

    def plot(self, *, ax: Any = None) -> Any:
        """Differences from the best model, with bars of two standard errors; returns the axes.

        Raises:
            ModuleNotFoundError: matplotlib is missing (extra ``plots``).
        """
        return differences(self.table, ax=ax)

    def __repr__(self) -> str:
        return f"{self.table.round(3).to_string(index=False)}\n{self.verdict}"

    def _repr_html_(self) -> str:
        table = self.table
        rows = [
            (name, f"{score:.2f} per 1,000 cells, {gap:+.2f} ± {LEVEL * error:.2f} from the best")
            for name, score, gap, error in table[["model", "score", "difference", "standard_error"]].itertuples(
                index=False
            )
        ]
        return card("Held-out reports, log predictive probability", rows, self.verdict)


def standard_error(differences: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> float:
    """The standard error of the mean of cells' differences, where cells of a row or of a column depend on each other.

    Two-way clustering (Cameron, Gelbach and Miller 2011): the variance by rows plus that by columns less that by cells;
    never less than any of the three.
    """
    by_row, by_column, by_cell = (
        clustered_variance(differences, groups) for groups in (rows, columns, np.arange(differences.size))
    )
    return float(np.sqrt(max(by_row + by_column - by_cell, by_row, by_column, by_cell)))


def clustered_variance(differences: np.ndarray, groups: np.ndarray) -> float:
    """The variance of the mean of cells' differences, where cells of a group depend on each other.

    G / (G - 1) sum_g (sum of (difference - mean) in g)^2 / n^2 for G groups and n cells.
    """
    _, place = np.unique(groups, return_inverse=True)
    sums = np.bincount(place, differences - differences.mean())
    return float(sums.size / max(sums.size - 1, 1) * (sums**2).sum() / differences.size**2)


def listed(names: list[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
