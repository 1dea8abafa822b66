"""How a fit differs from the naive one, which takes the same noisy reports for true counts."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from countveil.data.observations import NaiveCounts, Observations
from countveil.estimators import BlockModel, TensorModel, TopicModel
from countveil.estimators.base import FactorizationEstimator, check_whole
from countveil.inference.diagnostics import FitWarning
from countveil.privacy import Release
from countveil.report.check import dense, mean_of_rows, selected
from countveil.report.loading import in_shape_of
from countveil.report.sections import Card, cards, percent

NEXT_TO_NOTHING = 0.1
ENTRIES = 3
SAME = 0.8  # an overlap from which two components are called much the same


class Pair(NamedTuple):
    """A component and the naive one nearest to it; ``overlap`` is the share of the two that is the same."""

    title: str
    overlap: str
    members: str
    naive_members: str


class Comparison(NamedTuple):
    """What two fits of one release expect, and their components side by side."""

    total: float  # expected true counts of the cells that were seen
    naive_total: float
    empty: float  # share of those cells that are expected to hold next to nothing
    naive_empty: float
    pairs: list[Pair]
    alike: int  # how many pairs are much the same


def naive_fit(fit: FactorizationEstimator, release: Release) -> FactorizationEstimator:
    """The same model, method and seed fitted to the reports of a release as if they were true; as long as the fit took.

    Raises:
        ValueError: a fit of true counts, or a naive one; a release of another shape.
        KeyboardInterrupt: the naive fit was interrupted: what it found until then is no comparison.
    """
    kind = str(fit.posterior.attrs["observations"])
    if kind != "private":
        raise ValueError(
            f"fit must be of private counts to be compared with the naive one, got {kind} counts"
        )
    other: FactorizationEstimator = clone(fit).set_params(seed=fit.seed_, progress=False)
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, FitWarning):
            warnings.simplefilter("ignore", category)
        check_whole(other.fit(in_shape_of(fit, NaiveCounts(release), fit_labels(fit))))
    return other


def fit_labels(fit: FactorizationEstimator) -> list[list[str] | None]:
    """The names that a fit has for the entries of each axis of its data, None where it has numbers."""
    tree, model, layout = fit._fitted()
    names = [tree["posterior"][dim].to_numpy() for dim in layout.dims_of(model.spec.output)]
    return [each.tolist() if each.dtype.kind in "OUT" else None for each in names]


def compare(
    fit: FactorizationEstimator, other: FactorizationEstimator, data: Observations, n: int
) -> Comparison:
    """A fit and the naive one, with n members of each component; data is in the matrix form of the model."""
    rows = selected(data)
    visible = dense(data.take(rows))[1]
    ours, theirs = (mean_of_rows(each, rows)[visible] for each in (fit, other))
    return Comparison(
        float(ours.sum()),
        float(theirs.sum()),
        float((ours < NEXT_TO_NOTHING).mean()),
        float((theirs < NEXT_TO_NOTHING).mean()),
        *pairs_of(fit, other, n),
    )


def pairs_of(fit: FactorizationEstimator, other: FactorizationEstimator, n: int) -> tuple[list[Pair], int]:
    """Every component with its nearest naive one, matched one to one, and how many are much the same."""
    first, second = distributions(fit), distributions(other)
    if not first:
        return [], 0
    overlap = np.mean([overlaps(p, q) for p, q in zip(first, second, strict=True)], axis=0)
    _, match = linear_sum_assignment(overlap, maximize=True)
    mine, naive = ({card.number: card for card in cards(each, n)} for each in (fit, other))
    found = [
        Pair(mine[k].title, percent(overlap[k, match[k]]), strongest(mine[k]), strongest(naive[match[k]]))
        for k in mine
    ]
    return found, int((overlap[np.arange(len(match)), match] >= SAME).sum())


def strongest(card: Card) -> str:
    """The members of a component in a row; of each axis of a tensor the first few."""
    lists = [[bar.label for bar in listing.bars] for listing in card.listings]
    return "; ".join(", ".join(names if len(lists) == 1 else names[:ENTRIES]) for names in lists)


def distributions(fit: FactorizationEstimator) -> list[np.ndarray]:
    """(K, n) posterior mean of each component over the entries of each axis; none for a model not known by name."""
    if isinstance(fit, TopicModel):
        found = [fit.components_]
    elif isinstance(fit, BlockModel):
        found = [fit.memberships_.T]
    elif isinstance(fit, TensorModel):
        draws = fit.posterior["posterior"]
        names = [factor.name for factor in fit.model_.factors]
        found = [draws[name].mean(("chain", "draw")).transpose("component", ...).to_numpy() for name in names]
    else:
        return []
    return [each / np.maximum(each.sum(axis=1, keepdims=True), 1e-300) for each in found]


def overlaps(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(K, K) what each two distributions share: one less their total variation distance."""
    return np.array([np.minimum(p, second).sum(axis=1) for p in first])
