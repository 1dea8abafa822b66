"""``fit.effects``: what covariates and dates do to topics, from the joint posterior.

Every draw has topics, shapes, sizes and coefficients that belong together, given noisy reports alone: intervals hold
the uncertainty of noise, topics and sampling at once. A topic's numbers come from the chains that have it.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.data.covariates import Covariates
from countveil.data.labels import is_default
from countveil.fit.component_tables import tails
from countveil.fit.naming import merged_kept, summed, with_names
from countveil.fit.parameters import check_interval
from countveil.fit.reading import as_calibrated
from countveil.fit.rows import factor_with_covariates
from countveil.inference.matching import places
from countveil.inference.posterior import evenly
from countveil.models.priors.dated_rows import OVER_TIME
from countveil.models.priors.regression import entries, expected_shares

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

MOST_DRAWS = 1000  # of all chains together, evenly spread, that expected shares are computed for
MOST_ROWS = 200  # different ones, evenly spread over all documents, that they are averaged over
MOST_LEVELS = 10  # of a covariate of text that ``contrasts`` compares
ENTRIES_AT_ONCE = 2000  # draws of rows that arrays are made for: they fit into fast memory


class Drawn(NamedTuple):
    """One chain's draws of the rows' prior."""

    shapes: np.ndarray  # (S, K) where all covariates have their mean
    rates: np.ndarray  # (S, K) likewise, of entries that are in expected counts
    coefficients: np.ndarray  # (S, P, K) of means, for centred and scaled columns
    of_shapes: np.ndarray  # (S, P, K) of shapes


class Effects:
    """What covariates, or dates, do to the topics of a fit.

    Tables speak of topics and documents. In a tensor these are its components and the entries of its first mode, a
    document's words are an entry's counts, and the first column of every table is ``component``. In a network they are
    its communities and its actors, a document's words are the messages that an actor sends or receives, and the first
    column is ``community``.
    """

    def __init__(self, fit: Any) -> None:
        self.fit, self.reader = fit, fit._reader

    def table(self, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The coefficients of the formula's terms: of the log of a document's expected words from a topic.

        Columns: topic, support, term, estimate (the posterior mean), lower, upper. One more of a term's column
        multiplies the expected words of the topic by exp(estimate). Topics are those of ``parts.prevalences``, each
        from the chains that have it; support is as in ``topics``. Merged topics have no coefficients, and are left out.
        Where intervals are not calibrated: as in ``parts.members``.

        Raises:
            ValueError: a fit without covariates, or an interval out of range.
        """
        covariates = self._known_covariates()
        scale = covariates.scale[:, None]
        drawn = [each.coefficients / scale for each in self._drawn_by_chain()]
        table = table_of(self.fit, drawn, list(covariates.terms), "term", interval, adds_up=False)
        return as_calibrated(table, self.reader.why_no_intervals, uncalibrated)

    def contrast(
        self, a: Mapping[str, Any], b: Mapping[str, Any], interval: float = 0.9, *, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """How much larger a topic's expected share of a document is with covariates ``a`` than with ``b``.

        Columns: topic, support, estimate, lower, upper. All other covariates stay as they are in the documents of the
        fit, over which both shares are averaged. The rest is as in ``table``.

        Raises:
            TypeError: ``a`` or ``b`` is no dict.
            ValueError: as ``table``; a name that is no covariate, or a value that the fit has not seen.
        """
        covariates = self._known_covariates()
        for name, values in (("a", a), ("b", b)):
            if not isinstance(values, Mapping):
                raise TypeError(f"{name} must map covariates to values, got {type(values).__name__}")
        one, other = (self._shares_at(covariates, values) for values in (a, b))
        table = self._table(lambda drawn: one(drawn) - other(drawn), [""], "contrast", interval)
        return as_calibrated(table.drop(columns="contrast"), self.reader.why_no_intervals, uncalibrated)

    def contrasts(self, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The contrasts that covariates suggest: of every level with the first, of the upper quartile with the lower.

        Columns: topic, support, covariate, value, other, estimate, lower, upper; each row is that of ``contrast`` with
        the covariate's value and with its other value. Of numbers whose quartiles are the same it is the largest with
        the smallest; numbers that the formula takes for levels, ``C(year)``, are compared as these. Text with more than
        ten levels is left out. The rest is as in ``contrast``.

        Raises:
            ValueError: as ``table``.
        """
        covariates = self._known_covariates()
        asked = [
            (name, *pair)
            for name, column in covariates.frame.items()
            for pair in pairs_of(column, as_levels=takes_as_levels(covariates.formula, str(name)))
        ]
        at = {(name, value): self._shares_at(covariates, {name: value}) for name, *pair in asked for value in pair}

        def differences(drawn: Drawn) -> np.ndarray:
            shares = {each: of_value(drawn) for each, of_value in at.items()}
            return np.concatenate(
                [shares[name, one] - shares[name, other] for name, one, other in asked]
                or [np.empty((len(drawn.shapes), 0, drawn.shapes.shape[1]))],
                axis=1,
            )

        table = self._table(differences, list(range(len(asked))), "covariate", interval)
        place = table.columns.get_loc("covariate")
        numbers = table["covariate"].astype(int)
        for i, name in enumerate(("covariate", "value", "other")):
            values = [asked[number][i] for number in numbers]
            if i:
                table.insert(place + i, name, pd.Series(values, dtype=object))
            else:
                table[name] = values
        return as_calibrated(table, self.reader.why_no_intervals, uncalibrated)

    def prevalence(
        self, frame: pd.DataFrame | None = None, interval: float = 0.9, *, uncalibrated: bool = False
    ) -> pd.DataFrame:
        """Each topic's expected share of a document, for every row of a frame of covariates.

        Columns: topic, support, row, estimate, lower, upper. A row is called by the frame's label, or by its values
        where the frame has only a default numbering: by the value itself in a frame of one column, else as in "party =
        D, year = 2004". Covariates that the frame does not have stay as they are in the documents of the fit, over
        which shares are averaged; without a frame there is one row, ``all``, which is the average over all documents.
        The rest is as in ``table``.

        Raises:
            TypeError: something other than a DataFrame.
            ValueError: as ``contrast``; a frame without rows.
        """
        covariates = self._known_covariates()
        if not isinstance(frame, pd.DataFrame | None):
            raise TypeError(f"frame must be a DataFrame of covariates, got {type(frame).__name__}")
        if frame is not None and not len(frame):
            raise ValueError(
                "frame must have at least one row, got 0 rows: frame=None gives the average over all documents"
            )
        frame = pd.DataFrame(index=["all"]) if frame is None else frame
        each = [self._shares_at(covariates, dict(row)) for _, row in frame.iterrows()]

        def shares(drawn: Drawn) -> np.ndarray:
            return np.concatenate([of_row(drawn) for of_row in each], axis=1)

        table = self._table(shares, called_by_values(frame), "row", interval)
        return as_calibrated(table, self.reader.why_no_intervals, uncalibrated)

    def over_time(self, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Each topic's expected share of a document, in every step of time (mathematics, equation 17.11).

        Columns: topic, support, time, estimate (the posterior mean), lower, upper. Steps without documents are there,
        too. It is the share in the words of a document that could have been written then, not the mean of those that
        were. Topics are those of ``parts.prevalences``, each from the chains that have it; support is as in ``topics``.
        Where intervals are not calibrated: as in ``parts.members``.

        Raises:
            ValueError: a fit without dates, or an interval out of range.
        """
        if self.fit.dates_ is None:
            raise ValueError(
                "effects.over_time needs a fit with dates of the rows, got a fit without dates: "
                "TopicModel(...).fit(X, time=dates)"
            )
        row = self.fit.model_.factors[self.fit.model_.row_factor].name
        draws = self.fit.posterior["posterior"][f"{row}{OVER_TIME}"].to_numpy()
        shares = draws / draws.sum(axis=3, keepdims=True, dtype=np.float64)
        kept = places(self.fit.weights_, [draws.shape[1]] * draws.shape[0])
        drawn = [shares[c, own] for c, own in enumerate(kept)]
        table = table_of(self.fit, drawn, list(self.fit.dates_.names), "time", interval)
        return as_calibrated(table, self.reader.why_no_intervals, uncalibrated)

    def _known_covariates(self) -> Covariates:
        _ = self.fit.posterior  # raises NotFittedError before there is one
        if self.fit.covariates_ is None:
            raise ValueError(
                "effects need a fit with prevalence and covariates, got a fit without them: "
                'TopicModel(..., prevalence="~ party").fit(X, covariates=table)'
            )
        return self.fit.covariates_

    def _shares_at(self, covariates: Covariates, values: Mapping[str, Any]) -> Callable[[Drawn], np.ndarray]:
        """What gives (S, 1, K) expected shares, averaged over the documents with some covariates changed."""
        design = covariates.rows(covariates.changed(values))
        rows, times = np.unique(design, axis=0, return_counts=True)
        rows, weight = evenly_weighted(rows, times)
        at_once = max(1, ENTRIES_AT_ONCE // len(rows))

        def shares(drawn: Drawn) -> np.ndarray:
            hypers = np.concatenate([drawn.shapes[:, None], drawn.rates[:, None], *drawn[2:]], axis=1)
            found = np.empty((len(hypers), 1, hypers.shape[2]))
            for first in range(0, len(hypers), at_once):
                log_shape, log_mean = entries(hypers[first : first + at_once], rows)
                each = expected_shares(np.exp(log_shape), np.exp(log_shape - log_mean))
                found[first : first + at_once, 0] = weight @ each
            return found

        return shares

    def _table(
        self, function: Callable[[Drawn], np.ndarray], names: list[Any], column: str, probability: float
    ) -> pd.DataFrame:
        """Means and intervals of a function of draws (S, names, K), of every topic in the chains that have it."""
        check_interval(probability)
        return table_of(self.fit, [function(each) for each in self._drawn_by_chain()], names, column, probability)

    def _drawn_by_chain(self) -> list[Drawn]:
        """Every chain's draws, as many of each as its weight says, at most ``MOST_DRAWS`` in all."""
        draws = self.fit.posterior["posterior"]
        sizes, row = draws.sizes, self.fit.model_.factors[factor_with_covariates(self.fit.model_)].name
        every = evenly(sizes["draw"], max(1, MOST_DRAWS // sizes["chain"]))
        kept = places(self.fit.weights_, [len(every)] * sizes["chain"])
        ends = "_shape", "_rate", "_effect", "_shape_effect"
        shapes, rates, *coefficients = (draws[f"{row}{end}"].to_numpy() for end in ends)
        arrays = shapes, rates / self.fit._sizes_by_chain(), *coefficients
        return [Drawn(*(each[c][every[own]] for each in arrays)) for c, own in enumerate(kept)]


def called_by_values(frame: pd.DataFrame) -> list[Any]:
    """The labels of a frame's rows, or their values where they have only a default numbering."""
    if not is_default(frame.index):
        return list(frame.index)
    if frame.shape[1] == 1:
        return frame.iloc[:, 0].tolist()
    return [
        ", ".join(f"{name} = {value}" for name, value in zip(frame.columns, row, strict=True))
        for row in frame.itertuples(index=False, name=None)
    ]


def takes_as_levels(formula: str, name: str) -> bool:
    """Whether a formula makes levels of a covariate, whatever it is made of."""
    return re.search(rf"\bC\(\s*{re.escape(name)}\s*[,)]", formula) is not None


def pairs_of(column: pd.Series, *, as_levels: bool = False) -> list[tuple[Any, Any]]:
    """(value, other) of the contrasts that a covariate suggests; of numbers at their quartiles, or as levels."""
    if column.dtype == np.float64 and not as_levels:
        low, high = column.quantile([0.25, 0.75], interpolation="nearest").tolist()
        return [(high, low) if low < high else (float(column.max()), float(column.min()))]
    first, *others = sorted(column.unique()) if column.dtype == np.float64 else column.cat.categories
    return [(level, first) for level in others] if len(others) < MOST_LEVELS else []


def evenly_weighted(rows: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most ``MOST_ROWS`` of some rows, with weights that sum to one.

    Of more rows those are taken that are evenly spread over all documents, of which each row is of ``times`` ones.
    """
    if len(rows) <= MOST_ROWS:
        return rows, times / times.sum()
    points = (np.arange(MOST_ROWS) + 0.5) * times.sum() / MOST_ROWS
    kept, number = np.unique(np.searchsorted(np.cumsum(times), points, side="right"), return_counts=True)
    return rows[kept], number / MOST_ROWS


def table_of(
    fit: "FactorizationEstimator",
    drawn: list[np.ndarray],
    names: list[Any],
    column: str,
    probability: float,
    *,
    adds_up: bool = True,
) -> pd.DataFrame:
    """Means and intervals of draws (S, names, K) of each chain, of every topic in the chains that have it.

    Of topics that count as one the draws are added up, or are left out where that means nothing. Topics of chains whose
    weight is too small for a draw are left out, too.

    Raises:
        ValueError: a probability out of range.
    """
    check_interval(probability)
    alone, rows, group = len(drawn) < 2, [], fit._reader.group_along(None)
    merged = {numbers[0] for numbers in merged_kept(fit.posterior, group)}
    drawn = [summed(*each) for each in zip(drawn, fit._reader.merged_places(group), strict=True)]
    for number, found in fit._reader.numbered(group):
        if (number in merged and not adds_up) or not any(len(drawn[c]) for c in found.chains):
            continue
        own = np.concatenate([drawn[c][:, :, k] for c, k in zip(found.chains, found.components, strict=True)])
        lower, upper = np.quantile(own, tails(probability), axis=0)
        support = np.nan if alone else found.support
        rows += [(number, support, name, own[:, i].mean(), lower[i], upper[i]) for i, name in enumerate(names)]
    one = next(iter(fit._reader.kinds)).one
    table = pd.DataFrame(rows, columns=[one, "support", column, "estimate", "lower", "upper"])
    return with_names(table, fit._reader.names_of(), {one: "name"})
