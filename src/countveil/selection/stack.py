"""stack: several fits as one, each with the weight by which together they predict best what none of them saw."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from countveil.common.parameters import check_integer
from countveil.data.observations import Observations
from countveil.data.release_files import ReleaseFiles
from countveil.data.reports import observations_of
from countveil.inference.diagnostics import Totals
from countveil.inference.folds import Cells, is_mirrored, stacking_weights
from countveil.inference.predict import log_predictive_of_cells
from countveil.selection.candidates import Model, is_model

CELLS = 1000  # scores are given per this many


@dataclass(frozen=True, repr=False, eq=False)
class Stack:
    """Fits that are weighted by how well together they predict reports that none of them saw.

    Attributes:
        fits: the fits, in the order given; names: of each.
        weights_: (fits,) their weights, with sum one.
        scores: (cells, fits) log predictive probability of every held-out report.
    """

    fits: tuple[Model, ...]
    names: tuple[str, ...]
    weights_: np.ndarray
    scores: np.ndarray

    @property
    def table(self) -> pd.DataFrame:
        """A row for each fit: its weight, and its mean score per 1,000 held-out cells."""
        score = CELLS * self.scores.mean(axis=0)
        return pd.DataFrame({"fit": list(self.names), "weight": self.weights_, "score": score})

    def rate(self) -> xr.DataArray:
        """The expected true count of each cell in data like these: the weighted mean of the fits' posterior means."""
        first = self.fits[0].rate()
        total = np.zeros(first.shape)
        for fit, weight in zip(self.fits, self.weights_, strict=True):
            total += weight * fit.rate().to_numpy()
        return first.copy(data=total)

    def predict_counts(self, n: int, rng: np.random.Generator, X: Any = None) -> xr.DataArray:
        """n simulated tables of true counts, (table, and the data's axes), each by a fit drawn by its weight.

        With X, the reports of the fits' own cells, as in a fit's ``predict_counts``.

        Raises:
            TypeError, ValueError: as a fit's ``predict_counts``.
        """
        return self._drawn("predict_counts", n, rng, X)

    def predict_reports(self, n: int, rng: np.random.Generator, X: Any = None) -> xr.DataArray:
        """n simulated releases like the one fitted, each by a fit drawn by its weight; see a fit's ``predict_reports``.

        Raises:
            TypeError, ValueError: as a fit's ``predict_reports``.
        """
        return self._drawn("predict_reports", n, rng, X)

    def _drawn(self, what: str, n: int, rng: np.random.Generator, X: Any) -> xr.DataArray:
        """n arrays that fits draw by the method ``what``, each by a fit drawn by its weight, along the first axis."""
        check_integer("n", n, 1)
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
        chosen = rng.choice(len(self.fits), size=n, p=self.weights_)
        drawn = []
        for number in np.unique(chosen):
            places = np.flatnonzero(chosen == number)
            drawn.append((places, getattr(self.fits[number], what)(places.size, rng, X)))
        first = drawn[0][1]
        values = np.empty((n, *first.shape[1:]), dtype=np.result_type(*(each.dtype for _, each in drawn)))
        for places, each in drawn:
            values[places] = each.to_numpy()
        return xr.DataArray(values, dims=first.dims, coords=first.coords, name=first.name)

    def totals(self, X: Any) -> Totals:
        """The sum of the true counts of all cells that are seen in X, as all fits together expect it and as X has it.

        X holds the reports of the fits' own cells. The interval comes from the reports alone if they give an unbiased
        estimate; otherwise from the fits, if all of them have calibrated intervals.

        Raises:
            TypeError, ValueError: as a fit's ``log_predictive``; fits that leave out other cells.
        """
        self._check_same_models()
        together: Totals = self.fits[0]._totals_together(self.fits, self.weights_, X)
        return together

    def count_intervals(self, X: Any = None, interval: float = 0.9, *, uncalibrated: bool = False) -> xr.Dataset:
        """The mean and the median of every cell's true count, and an interval, by all fits together.

        As a fit's ``count_intervals``, of the weighted mean of the fits' laws, and without an interval where a fit has
        no calibrated ones. It takes as long as those of all fits, and longer the further these are apart.

        Raises:
            TypeError, ValueError: as a fit's ``count_intervals``; fits that leave out other cells.
        """
        self._check_same_models()
        together: xr.Dataset = self.fits[0]._count_intervals_together(
            self.fits, self.weights_, X, interval, uncalibrated
        )
        return together

    def _log_probabilities(self, counts: Any, cells: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """(log of the posterior average of P(count), count) in each cell, by all fits together, as a fit has them.

        ``evaluation.predictive_log_score`` is made of these. Raises ValueError as a fit's.
        """
        each, (true, *_) = zip(*(fit._log_probabilities(counts, cells) for fit in self.fits), strict=True)
        self._check_same_cells(each)
        with np.errstate(divide="ignore"):
            return np.logaddexp.reduce(np.stack(each) + np.log(self.weights_)[:, None], axis=0), true

    def _count_probabilities(self, counts: Any, X: Any = None, cells: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """(P(count < the true one), P(count = it)) in each cell, by all fits together; raises as a fit's."""
        return self._averaged([fit._count_probabilities(counts, X, cells) for fit in self.fits])

    def _report_probabilities(self, X: Any, cells: Any = None, report: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """(P(report < the one in X), P(report = it)) in each cell, by all fits together; raises as a fit's."""
        return self._averaged([fit._report_probabilities(X, cells, report) for fit in self.fits])

    def _averaged(self, pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        self._check_same_cells([below for below, _ in pairs])
        below, at = np.tensordot(self.weights_, np.array(pairs), axes=1)
        return below, at

    def log_predictive(self, X: Any, cells: Any = None) -> xr.DataArray:
        """Log predictive density of max(report, 0) in each cell of X, (cell,), by all fits together.

        Raises:
            ValueError: as a fit's ``log_predictive``; fits that do not see the same cells.
        """
        each = [fit.log_predictive(X, cells) for fit in self.fits]
        self._check_same_cells(each)
        with np.errstate(divide="ignore"):
            weighted = np.stack([values.to_numpy() for values in each]) + np.log(self.weights_)[:, None]
        return each[0].copy(data=np.logaddexp.reduce(weighted, axis=0))

    def _check_same_models(self) -> None:
        """Refuse fits whose models leave out other cells, such as self-loops; raises ValueError."""
        first = self.fits[0]._modelled_cells()
        for name, fit in zip(self.names, self.fits, strict=True):
            if not np.array_equal(first, fit._modelled_cells()):
                raise ValueError(
                    f"fits must leave out the same cells, got {self.names[0]} and {name}, whose models leave out "
                    "different cells: give all of them the same self_loops and directed"
                )

    def _check_same_cells(self, each: Sequence[Any]) -> None:
        """Refuse values of other cells for some fit; raises ValueError."""
        sizes = {name: values.size for name, values in zip(self.names, each, strict=True)}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"cells must select cells that every fit covers, got numbers of cells {sizes}")

    def supported(self, axis: str, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Components that chains of the fits found alike, with their support: the weight of the chains that have them.

        The fits may have different numbers of components. Columns, and errors, as in a fit's ``parts.supported``.

        Raises:
            ValueError: a fit in which nothing can be listed along the axis, or that lists its components along others.
        """
        for name, fit in zip(self.names, self.fits, strict=True):
            if axis not in fit._reader.member_axes:
                raise ValueError(f"axis must be one along which all fits list components, got {axis!r} for {name}")
        kinds = {
            name: next((part.axes for part in fit._reader.kinds if axis in part.axes), ())
            for name, fit in zip(self.names, self.fits, strict=True)
        }
        if len(set(kinds.values())) > 1:
            raise ValueError(f"fits must list their components along the same axes, got {kinds}")
        together = self.fits[0]._supported_together
        return pd.DataFrame(together(self.fits, self.weights_, axis, n, interval, uncalibrated))

    def topics(self, n: int = 8, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Topics of all fits with their support, as in ``TopicModel.topics``; raises ValueError if fits have none."""
        found = self.supported("word", n, interval, uncalibrated=uncalibrated)
        return found.rename(columns={"component": "topic", "member": "word"})

    top_words = topics

    def __repr__(self) -> str:
        return f"Stack of {len(self.fits)} fits\n{self.table.round(3).to_string(index=False)}"


def stack(fits: Any, held_out: Any) -> Stack:
    """Weight fits so that together they predict reports best that none of them saw (mathematics, section 15).

    Fits may differ in anything, such as their numbers of components, likelihoods and methods, if they are of the same
    cells. ``hold_out`` splits data into what to fit them to and what to weight them by. A fit that has seen the
    held-out reports gets too much weight, and nobody can tell from the fit.

    Args:
        fits: a list of fits, or a dict of them by name.
        held_out: reports of the fits' own cells, with all cells masked that any fit has seen.

    Raises:
        TypeError: something other than fits of the library; held-out data without a noise level.
        ValueError: fewer than two fits; fits of other cells, or with other labels; held-out data of another shape or
            with other labels than a fit's, under another noise for some fit, or masked in all cells; a report that a
            fit finds impossible.
        NotFittedError: a model that is not fitted.
    """
    named = named_fits(fits)
    shapes = {name: tuple(len(names) for names in fit._reader.axes.values()) for name, fit in named.items()}
    first_name, first_shape = next(iter(shapes.items()))
    for name, shape in shapes.items():
        if shape != first_shape:
            raise ValueError(
                f"fits must cover the same cells, got {first_shape} for {first_name} and {shape} for {name}"
            )
    check_same_labels(named)
    observed = [fit._reader.own_data("held_out", held_out) for fit in named.values()]
    check_same_noise(dict(zip(named, observed, strict=True)))
    cells = seen_cells(observed[0])
    for other in observed[1:]:
        seen = other.cells(cells.rows, cells.columns)[0] >= 0
        cells = type(cells)(cells.rows[seen], cells.columns[seen])
    if not cells.size:
        raise ValueError("held_out must have cells that are not masked, got none")
    places = np.stack([cells.rows, *np.unravel_index(cells.columns, observed[0].mode_shape[1:])], axis=1)
    scores = [
        log_predictive_of_cells(
            fit._reader.draws(),
            fit._reader.data_matrix(data),
            fit.model_.likelihood,
            *fit._reader.matrix_places(places),
        )
        for fit, data in zip(named.values(), observed, strict=True)
    ]
    for name, score in zip(named, scores, strict=True):
        if not np.isfinite(score).all():
            raise ValueError(
                f"held_out must be possible under every fit, got a report of probability 0 under {name}: leave that "
                "fit out"
            )
    found = np.stack(scores, axis=1)
    return Stack(tuple(named.values()), tuple(named), stacking_weights(found), found)


def check_same_labels(named: Mapping[str, Model]) -> None:
    """Refuse fits whose axes have other labels than the first's, where both have any; raises ValueError."""
    first_name, first = next(iter(named.items()))
    axes = first._reader.axes
    for name, fit in named.items():
        for axis, one, other in zip(axes, axes.values(), fit._reader.axes.values(), strict=True):
            labelled = all(isinstance(names[0], str) for names in (one, other) if len(names))
            if labelled and list(one) != list(other):
                place = next(n for n, (a, b) in enumerate(zip_longest(one, other)) if a != b)
                labels = [repr(names[place]) if place < len(names) else "none" for names in (one, other)]
                raise ValueError(
                    f"fits must cover the same cells, got label {labels[0]:.60} of {first_name} and {labels[1]:.60} of "
                    f"{name} in entry {place} of {axis!r}"
                )


def check_same_noise(observed: Mapping[str, Observations]) -> None:
    """Refuse held-out reports that fits would read under different noise; raises ValueError."""
    first_name, first = next(iter(observed.items()))
    for name, other in observed.items():
        same = first.noise.mechanism == other.noise.mechanism
        one, another = (np.broadcast_to(each.cell_level, each.shape) for each in (first, other))
        if not same or not np.array_equal(one, another):
            raise ValueError(
                f"held_out must have the same noise for every fit, got different noise for {first_name} and {name}"
            )


def named_fits(fits: Any) -> dict[str, Model]:
    """Fits by name, or by "fit 1", "fit 2", ...; raises TypeError or ValueError as ``stack``."""
    if isinstance(fits, Mapping):
        named = dict(fits)
    elif isinstance(fits, Sequence) and not isinstance(fits, str):
        named = {f"fit {i}": fit for i, fit in enumerate(fits, start=1)}
    else:
        raise TypeError(f"fits must be a list of fits or a dict of them by name, got {type(fits).__name__}")
    for fit in named.values():
        if not is_model(fit):
            raise TypeError(f"fits must be fitted models of countveil, got {type(fit).__name__}")
    if len(named) < 2:
        raise ValueError(f"fits must be at least two, got {len(named)}")
    return named


MAX_CELLS = 50_000_000  # of the data: the part that is held out names every cell that is not in it


def hold_out(data: Any, share: float = 0.1, seed: int | None = None) -> tuple[Observations, Observations]:
    """(training, held_out): the data without a random share of the cells that were seen, and these cells alone.

    Cells of one part are masked in the other. Both cells of a pair go together in undirected networks, and in matrices
    that report the same on both sides of the diagonal.

    Args:
        data: a ``Release``, ``PrivatizedCounts``, or what else ``fit`` takes with a noise level of its own.
        share: of the cells, between 0 and 1.
        seed: whole number of at most 40 digits; None takes one from the operating system.

    Raises:
        TypeError: data without a noise level.
        ValueError: a share that is not between 0 and 1, or that leaves a part without cells; too large data.
    """
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0.0 < share < 1.0:
        raise ValueError(f"share must be a number between 0 and 1, got {share!r}")
    if seed is not None:
        check_integer("seed", seed, 0, 10**40 - 1)
    observed = data.unpacked() if isinstance(data, ReleaseFiles) else observations_of(data)
    n_rows, n_columns = observed.shape
    if n_rows * n_columns > MAX_CELLS:
        raise ValueError(f"data must have at most {MAX_CELLS:,} cells, got {n_rows:,} x {n_columns:,}")
    seen = seen_cells(observed)
    pairs = observed.provenance.directed is False or is_mirrored(observed)
    if pairs:
        seen = Cells(*(part[seen.rows <= seen.columns] for part in seen))
    rng = np.random.default_rng(secrets.randbits(63) if seed is None else int(seed))
    n_held = round(share * seen.size)
    if not 0 < n_held < seen.size:
        raise ValueError(f"share must leave cells in both parts, got {share} of {seen.size} cells")
    held = np.zeros(seen.size, dtype=bool)
    held[rng.permutation(seen.size)[:n_held]] = True
    parts = [Cells(seen.rows[chosen], seen.columns[chosen]) for chosen in (held, ~held)]
    hidden, kept = (part.both_directions() if pairs else part for part in parts)
    return observed.hide(*hidden), observed.hide(*kept)


def seen_cells(observed: Observations) -> Cells:
    """The cells that are not masked, row after row."""
    every = np.arange(observed.shape[0] * observed.shape[1])
    rows, columns = np.divmod(every, observed.shape[1])
    seen = observed.cells(rows, columns)[0] >= 0
    return Cells(rows[seen], columns[seen])
