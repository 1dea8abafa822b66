"""What a fit is compared with: noise alone, and the naive fit, which takes the same noisy reports for true counts."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from countveil.data.observations import NaiveCounts, Observations
from countveil.fit.base import FactorizationEstimator, check_whole
from countveil.fit.choosing import own_choice
from countveil.fit.predictive_checks import rows_compared
from countveil.inference.diagnostics import FitWarning
from countveil.inference.matching import overlap
from countveil.laws.counts.laws import positive_beyond_noise
from countveil.laws.counts.protocol import in_counts, parameters_of_rows, rates_at
from countveil.models.layout import Part
from countveil.privacy import Release
from countveil.report.loading import in_shape_of
from countveil.report.sections import Card, cards, percent

CELLS_AT_ONCE = 2_000_000  # kept dense; of larger data a selection of rows is compared, to save memory
DRAWS_FOR_MEANS = 50  # of a selection of rows: more lower the Monte Carlo error and take longer


class NoiseAlone(NamedTuple):
    """Totals of the reports: as seen, by noise alone, and by the fit."""

    rows: int  # that were counted; of very large data an even selection
    cells: int
    masked: int
    share_seen: float  # of positive reports
    share_by_noise: float  # if every true count were zero
    share_by_fit: float
    sum_seen: float  # of the positive reports
    sum_by_noise: float
    sum_of_rates: float  # expected true counts of the cells that were seen


def noise_alone(fit: FactorizationEstimator, data: Observations) -> NoiseAlone:
    """How much of a release noise alone explains; data in the matrix form of the model."""
    rows = rows_compared(data, CELLS_AT_ONCE)
    reports, visible, level = dense(data.take(rows))
    expected, by_noise = mean_of_rows(fit, rows), data.noise.positive_by_noise(level)
    positive = by_noise + mean_beyond_noise(fit, data, rows, level, expected)
    excess = data.noise.mean_at_zero(level)
    return NoiseAlone(
        len(rows),
        int(visible.sum()),
        int((~visible).sum()),
        float((reports[visible] > 0).mean()),
        float(by_noise[visible].mean()),
        float(positive[visible].mean()),
        float(reports[visible].sum()),
        float(excess[visible].sum()),
        float(expected[visible].sum()),
    )


def dense(data: Observations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(reports, visible, noise level), each (D, V): max(report, 0), zero where masked."""
    reports = np.zeros(data.shape, dtype=np.int64)
    reports[data.row_numbers, data.columns] = data.reports
    visible = reports >= 0
    return np.maximum(reports, 0), visible, np.broadcast_to(data.cell_level, data.shape)


def mean_of_rows(fit: FactorizationEstimator, rows: np.ndarray) -> np.ndarray:
    """(rows, V) posterior mean of their expected counts; for a selection of rows over some 50 draws, evenly spread."""
    n_rows, n_columns = fit._reader.matrix_shape
    if len(rows) == n_rows:
        return fit._reader.as_matrix(fit.rate())
    total, n = np.zeros((len(rows), n_columns)), 0
    for (theta, phi), parameters in fit._reader.even_draws(DRAWS_FOR_MEANS):
        theta, phi = in_counts(fit.model_.likelihood, theta, phi, parameters)
        total += rates_at(theta[rows], phi, exposure_of_rows(fit, rows))
        n += 1
    return total / n


def exposure_of_rows(fit: FactorizationEstimator, rows: np.ndarray) -> np.ndarray | None:
    """(rows, V) the exposures of their cells, if there are any by cell."""
    exposure = fit._reader.exposure_matrix
    return None if exposure is None else exposure[rows]


def mean_beyond_noise(
    fit: FactorizationEstimator, data: Observations, rows: np.ndarray, level: np.ndarray, expected: np.ndarray
) -> np.ndarray:
    """(rows, V) P(report > 0) - P(tau > 0): at the expected counts, or with parameters averaged over some 50 draws."""
    likelihood = fit.model_.likelihood
    if not likelihood.parameter_axes:
        rate = expected / likelihood.mean(1.0)
        return np.asarray(positive_beyond_noise(data.noise, likelihood, rate, level))
    total, n = np.zeros(expected.shape), 0
    for (theta, phi), parameters in fit._reader.even_draws(DRAWS_FOR_MEANS):
        own = parameters_of_rows(likelihood, parameters, rows)
        rates = rates_at(theta[rows], phi, exposure_of_rows(fit, rows))
        total += positive_beyond_noise(data.noise, likelihood, rates, level, own)
        n += 1
    return total / n


# How a fit differs from the naive one, which takes the same noisy reports for true counts.

NEXT_TO_NOTHING = 0.1  # expected counts below it are called so
ENTRIES_PER_AXIS = 3  # of a tensor's components, so that a row of the table stays readable
SAME = 0.8  # an overlap from which two components are called much the same


class Pair(NamedTuple):
    """A component beside the naive one nearest to it; ``overlap`` is the probability that the two share."""

    title: str
    overlap: str
    members: str
    naive_members: str


class Pairs(NamedTuple):
    """All components of a kind, each with the nearest naive one."""

    part: Part
    pairs: list[Pair]
    alike: int  # how many pairs are much the same


class Comparison(NamedTuple):
    """What two fits of one release expect, and their components side by side."""

    total: float  # expected true counts of the cells that were seen
    naive_total: float
    empty: float  # share of those cells that are expected to hold next to nothing
    naive_empty: float
    parts: list[Pairs]


def naive_fit(fit: FactorizationEstimator, release: Release) -> FactorizationEstimator:
    """The same model, method and seed fitted to a release's reports as if they were true; takes as long as the fit.

    Raises:
        ValueError: a fit of true counts, or a naive one; a release of another shape.
        KeyboardInterrupt: the naive fit was interrupted: what it found until then is no comparison.
    """
    kind = str(fit.posterior.attrs["observations"])
    if kind != "private":
        raise ValueError(f"the naive comparison needs a fit of private counts, got {kind} counts")
    other: FactorizationEstimator = clone(fit).set_params(seed=fit.seed_, progress=False, **own_choice(fit))
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, FitWarning):
            warnings.simplefilter("ignore", category)
        data = in_shape_of(fit, NaiveCounts(release), fit_labels(fit))
        check_whole(other.fit(fit._reader.exposed("release", fit._observed(data))))
    return other


def fit_labels(fit: FactorizationEstimator) -> list[list[str] | None]:
    """The names that a fit has for the entries of each axis of its data, None where it has numbers."""
    return [each.tolist() if each.dtype.kind in "OUT" else None for each in fit._reader.axes.values()]


def compare(fit: FactorizationEstimator, other: FactorizationEstimator, data: Observations, n: int) -> Comparison:
    """A fit and the naive one, with n members of each component; data is in the matrix form of the model."""
    rows = rows_compared(data, CELLS_AT_ONCE)
    visible = dense(data.take(rows))[1]
    ours, theirs = (mean_of_rows(each, rows)[visible] for each in (fit, other))
    return Comparison(
        float(ours.sum()),
        float(theirs.sum()),
        float((ours < NEXT_TO_NOTHING).mean()),
        float((theirs < NEXT_TO_NOTHING).mean()),
        [pairs_of(part, fit, other, n) for part in fit._reader.kinds],
    )


def pairs_of(part: Part, fit: FactorizationEstimator, other: FactorizationEstimator, n: int) -> Pairs:
    """Every component of a kind with its nearest naive one, matched one to one, without those that count as one."""
    both = [(fit._reader.member_means(axis), other._reader.member_means(axis)) for axis in part.axes]
    shared = np.mean([overlap(mine, naive) for mine, naive in both], axis=0)
    _, match = linear_sum_assignment(shared, maximize=True)
    merged = {number for numbers in fit.parts.merged() for number in numbers}
    mine, naive = ({card.number: card for card in cards(each, part, n)} for each in (fit, other))
    found = [
        Pair(mine[k].title, percent(shared[k, match[k]]), strongest(mine[k]), strongest(naive[match[k]]))
        for k in range(len(shared))
        if k not in merged
    ]
    return Pairs(part, found, int((shared[np.arange(len(match)), match] >= SAME).sum()))


def strongest(card: Card) -> str:
    """The members of a component in one line; the first few along each axis of a tensor."""
    lists = [[bar.label for bar in listing.bars] for listing in card.listings]
    return "; ".join(", ".join(names if len(lists) == 1 else names[:ENTRIES_PER_AXIS]) for names in lists)
