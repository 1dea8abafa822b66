"""The law of a report given its rate: noise times likelihood, resolved once for a pass over the data.

A law has the likelihood's current parameters, and all exposures of a pass are those of its law.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from countveil.kernels.entries import Entries
from countveil.kernels.exposed_law import UNWANTED, ExposedLaw
from countveil.kernels.general import GeneralLaw
from countveil.kernels.report_kernels import ReportKernels
from countveil.kernels.tiles import entry_excesses, fill_weights
from countveil.kernels.windows import WindowLaw
from countveil.laws.counts.poisson import PoissonCounts
from countveil.laws.counts.protocol import Likelihood, Parameters
from countveil.laws.noise.protocol import Noise
from countveil.laws.noise.two_sided_geometric.negative_binomial import TwoSidedGeometricNegativeBinomial
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricPoisson

CLOSED: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("two-sided geometric", "poisson"): TwoSidedGeometricPoisson,
    ("two-sided geometric", "negative-binomial"): TwoSidedGeometricNegativeBinomial,
}
"""The pairs with closed forms, and their laws given a likelihood's ``counts``.

Of others, those with ``ReportKernels`` have a ``WindowLaw``, and the rest a ``GeneralLaw``.
"""


def law_of(
    noise: Noise,
    likelihood: Likelihood,
    parameters: Parameters = (),
    exposure: np.ndarray | None = None,
    drawn: np.ndarray = UNWANTED,
) -> tuple[Any, ...]:
    """The law of reports, as compiled loops take it; ``parameters`` are the likelihood's own.

    With exposures by cell (D, V) it is of reports given the rates for one unit of exposure, and passes that draw counts
    write their parts into ``drawn`` (D, V), unless it is empty.
    """
    if exposure is not None:
        plain: Any = law_of(noise, likelihood, parameters)
        return ExposedLaw(plain, plain.likelihood, exposure, parts_dv=drawn)
    general = general_law(noise, likelihood, parameters)
    if isinstance(noise.kernel, ReportKernels):
        return WindowLaw(*general)
    closed = CLOSED.get((noise.mechanism, likelihood.name))
    law: tuple[Any, ...] = general if closed is None else closed(general.likelihood)
    return law


def general_law(noise: Noise, likelihood: Likelihood, parameters: Parameters = ()) -> GeneralLaw:
    """The same law as a noise and a likelihood side by side, also where there are closed forms."""
    counts: Any = likelihood.counts
    if parameters:
        given = getattr(likelihood, "counts_given", lambda own: counts._replace(parameters=own))
        counts = given(parameters)
    return GeneralLaw(noise.kernel, counts)


def in_block(law: Any, entries: Entries, first_row: int) -> tuple[Any, Entries]:
    """The law with rows counted from ``first_row``, and the entries with the exposures that it gives to other cells."""
    law = counted_from(law, first_row)
    return law, exposed(entries, law)


def counted_from(law: Any, first_row: int) -> Any:
    """The law with rows counted from ``first_row``.

    A likelihood whose parameters vary by row counts rows: its named tuple has a field ``first_row``. So do exposures.
    """
    if isinstance(law, ExposedLaw):
        plain = counted_from(law.plain, first_row)
        return law._replace(plain=plain, likelihood=plain.likelihood, first_row=first_row)
    if first_row and hasattr(law.likelihood, "first_row"):
        law = law._replace(likelihood=law.likelihood._replace(first_row=first_row))
    return law


def exposed(entries: Entries, law: Any) -> Entries:
    """The entries, with the exposures that this law gives to the cells between them.

    Entries come with those for Poisson counts (see ``Observations``), and are then returned as they are.
    """
    if isinstance(law, ExposedLaw):
        return entries
    if getattr(law.likelihood, "by_column", 0):
        levels, place = np.unique(entries.level_d, return_inverse=True)
        weights = np.empty((levels.size, len(law.likelihood.parameters[0])))
        fill_weights(law, levels, weights)
        return entries._replace(exposure_d=np.zeros(entries.n_rows), weight_lv=weights, place_d=place)
    if entries.level_e.size or isinstance(law.likelihood, PoissonCounts):
        return entries
    n_rows, exposure_d = entries.n_rows, np.empty(entries.n_rows)
    unseen = entries._replace(  # one report that is not positive in every row, with its level as one of its own
        indptr=np.arange(n_rows + 1),
        columns=np.zeros(n_rows, dtype=np.int32),
        reports=np.zeros(n_rows, dtype=np.int16),
        level_e=entries.level_d,
        exposure_d=np.zeros(n_rows),
    )
    entry_excesses(law, unseen, exposure_d)
    return entries._replace(exposure_d=exposure_d)


def positive_beyond_noise(
    noise: Noise, likelihood: Likelihood, rate: Any, level: Any, parameters: Parameters = ()
) -> Any:
    """P(report > 0 | rate) - P(report > 0 | rate 0) = (1 - e^(-exposure rate)) P(report <= 0 | rate 0).

    ``parameters`` are those of the cells.
    """
    exposure = likelihood.exposure(noise.ratio(level), parameters)
    return -np.expm1(-exposure * rate) * (1.0 - noise.positive_by_noise(level))
