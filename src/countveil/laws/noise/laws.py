"""The law of a report for each mechanism that a specification can state: a line in a table."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from countveil.laws.noise.additive import (
    AdditiveLaw,
    DiscreteGaussianLaw,
    GaussianLaw,
    GeometricLaw,
    LaplaceLaw,
    SkellamLaw,
    ThresholdedLaw,
)
from countveil.laws.noise.coarse import CoarseLaw, ComposedLaw, HidingLaw, RandomRoundingLaw, RoundingLaw, TopCodingLaw
from countveil.laws.noise.report_law import MOST, Counts, Floats, ReportLaw
from countveil.laws.noise.table import ResponseLaw, TableLaw
from countveil.privacy.mechanisms import Mechanism


def _thresholded(spec: Any) -> ThresholdedLaw:
    noise = law_of(spec.mechanism)
    assert isinstance(noise, AdditiveLaw)  # the specification takes no other
    return ThresholdedLaw(noise, float(spec.above))


def _composed(spec: Any) -> ComposedLaw:
    steps = [law_of(step) for step in spec.steps]
    assert all(isinstance(step, CoarseLaw) for step in steps)  # the specification takes no others
    return ComposedLaw(cast(list[CoarseLaw], steps))


def _suppressed(spec: Any) -> HidingLaw:
    if spec.below is None:
        raise ValueError(
            f"mechanism must have a bound here, got {spec.in_words}: state below (--below). Only Reports and imports "
            "find it in the reports"
        )
    return HidingLaw(int(spec.shows_zero), spec.below - 1)


LAWS: dict[str, Callable[[Any], ReportLaw]] = {
    "two-sided geometric": lambda spec: GeometricLaw(float(spec.alpha)),
    "discrete Gaussian": lambda spec: DiscreteGaussianLaw(float(spec.sigma)),
    "Gaussian": lambda spec: GaussianLaw(float(spec.sigma)),
    "Laplace": lambda spec: LaplaceLaw(float(spec.scale)),
    "Skellam": lambda spec: SkellamLaw(float(spec.l1), float(spec.l2)),
    "random rounding": lambda spec: RandomRoundingLaw(spec.base),
    "rounding": lambda spec: RoundingLaw(spec.base, spec.to),
    "suppression": _suppressed,
    "interval": lambda spec: HidingLaw(spec.lower, MOST if spec.upper is None else spec.upper, shows=True),
    "top-coding": lambda spec: TopCodingLaw(spec.above),
    "composed": _composed,
    "thresholded noise": _thresholded,
    "randomised response": lambda spec: ResponseLaw(float(spec.probability)),
    "table": lambda spec: TableLaw(np.array(spec.probabilities, dtype=np.float64)),
}
"""By the mechanism's name."""


def law_of(mechanism: Mechanism) -> ReportLaw:
    """The law of a report under a mechanism.

    Raises:
        ValueError: a mechanism without one.
    """
    if mechanism.name not in LAWS:
        raise ValueError(f"mechanism must be one of {sorted(LAWS)}, got {mechanism.name!r:.60}")
    return LAWS[mechanism.name](mechanism)


# How probable a report and smaller ones are, where the law of its count is known: for PIT values.
#
# A count without a report comes before all numbers. So P(report < r) is a distribution function for every
# mechanism.
def report_chances(
    mechanisms: Sequence[Mechanism], number: Counts, reports: Floats, laws: Floats
) -> tuple[Floats, Floats]:
    """(P(report < the one given), P(report = it)), (m,) each, for counts with laws (m, Y); NaN where there is none.

    ``number`` (m,) is that of each cell's mechanism. A report that is a real number is met with probability 0. Where a
    mechanism has no report for some counts, as beyond the last row of a table, all is given that there is one.
    """
    below, at = np.zeros(reports.shape), np.zeros(reports.shape)
    for place in np.unique(number):
        chosen, mechanism = number == place, mechanisms[place]
        law, weights = law_of(mechanism), laws[chosen]
        y = np.arange(laws.shape[1])
        most = getattr(law, "last", None)
        weights = weights[:, : len(y) if most is None else most + 1]
        each, counts = np.broadcast_arrays(reports[chosen][:, None], y[None, : weights.shape[1]])
        total = weights.sum(axis=1)
        below[chosen] = (weights * law.less(each, counts)).sum(axis=1) / total
        exactly = (weights * np.exp(law.log_kernel(each, counts))).sum(axis=1) / total
        real = getattr(mechanism, "real", False)
        at[chosen] = np.where(real & ~np.isnan(reports[chosen]), 0.0, exactly)
    return np.clip(below, 0.0, 1.0), np.clip(at, 0.0, 1.0)
