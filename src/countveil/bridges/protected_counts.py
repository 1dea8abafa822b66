"""Counts under any mechanism: their reports read and checked, their laws given reports and rates, and simulations."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from countveil.common.arrays import (
    FloatArray,
    check_dispersion,
    check_generator,
    check_positive,
    check_together,
    check_whole,
    refuse,
)
from countveil.data.labels import in_order_of
from countveil.data.numbering import require_mechanism
from countveil.kernels.compiled import kernel
from countveil.kernels.random import SMALLEST
from countveil.kernels.report_kernels import ReportKernels
from countveil.kernels.windows import draw_cell, moments_of_cell
from countveil.laws.counts.negative_binomial import NegativeBinomialCell
from countveil.laws.counts.poisson import PoissonCounts
from countveil.laws.noise.any_mechanism import kernels_of, said_by
from countveil.laws.noise.laws import law_of
from countveil.laws.noise.reading import read_reports
from countveil.privacy.mechanisms import Elsewhere, Mechanism, TwoSidedGeometric

POISSON = PoissonCounts()
LARGEST_P = 1.0 - 2.0**-52


class Given(NamedTuple):
    """What reports say of their counts; ``parts`` are bursts, or the counts where these are Poisson."""

    log_probability: FloatArray
    counts: FloatArray
    parts: FloatArray


class Cells(NamedTuple):
    """Reports by their codes, with the rates of their counts, (n,) each; p is empty where counts are Poisson."""

    code: NDArray[np.int64]
    rate: FloatArray
    p: FloatArray


def simulate_reports(counts: Any, mechanism: Mechanism, rng: np.random.Generator) -> NDArray[Any]:
    """Reports of these counts under a mechanism, seeded: for research alone, they protect nobody.

    P(report | count) is that of the mechanism; reports are floats, NaN where the mechanism leaves a count without one,
    and whole numbers of 64 bits where it does neither. The shape is that of the counts.

    Raises ValueError: counts not whole or negative, or beyond the rows of a table. TypeError: mechanism not one of
    ``countveil.mechanisms``, rng not a numpy.random.Generator.

    >>> import numpy as np
    >>> import countveil as cv
    >>> rng = np.random.default_rng(1)
    >>> simulate_reports([0, 3, 12], cv.mechanisms.Suppression(10), rng).tolist()
    [0.0, nan, 12.0]
    """
    require_mechanism(mechanism)
    y = check_whole("counts", counts.toarray() if sparse.issparse(counts) else counts)
    refuse("counts must be non-negative", y < 0, y)
    reports = np.asarray(law_of(mechanism).draw(y, check_generator(rng)))
    kept = isinstance(mechanism, Elsewhere) and (mechanism.real or mechanism.absent)
    return (reports if kept else reports.astype(np.int64))[()]


def sample(
    reports: Any, rate: ArrayLike, mechanism: Mechanism, dispersion: ArrayLike | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """One draw of every true count given its report; errors as in ``countveil.sample_true_counts``."""
    kernels, cells, shape = read_cells(reports, rate, mechanism, dispersion)
    found = np.empty(cells.code.size, dtype=np.int64)
    draw_each(kernels, *cells, rng, found)
    return found.reshape(shape)[()]


def expected(reports: Any, rate: ArrayLike, mechanism: Mechanism, dispersion: ArrayLike | None) -> Given:
    """Scores and expectations of true counts and bursts given their reports; errors likewise."""
    kernels, cells, shape = read_cells(reports, rate, mechanism, dispersion)
    found = np.empty((3, cells.code.size))
    expect_each(kernels, *cells, found)
    return Given(*(values.reshape(shape)[()] for values in found))


class Scores:
    """Scores of reports with their derivatives, for languages of models: reports are read once.

    Attributes:
        shape: of the reports.
    """

    def __init__(self, kernels: ReportKernels, code: NDArray[np.int64]) -> None:
        self.kernels, self.code, self.shape = kernels, code, code.shape

    def __call__(self, mean: FloatArray, concentration: FloatArray | None = None) -> tuple[FloatArray, ...]:
        """(log P(report), its derivative in the mean), and that in the concentration of counts that have one.

        Counts are Poisson, or negative binomial with variance mean + mean^2 / concentration (mathematics, 13.1). All is
        of the shape to which the arguments and the reports broadcast, NaN where an argument is not allowed.
        """
        if concentration is None:
            allowed, p, bursts = (mean >= 0.0) & (mean < np.inf), np.empty(0), mean
        else:
            allowed = (mean >= 0.0) & (mean < np.inf) & (concentration > 0.0) & (concentration < np.inf)
            mean, s = np.where(allowed, mean, 1.0), np.where(allowed, concentration, 1.0)
            p = np.clip(mean / (mean + s), SMALLEST, LARGEST_P)
            bursts = -s * np.log1p(-p)
        mean = np.maximum(np.where(allowed, mean, 1.0), SMALLEST)
        shape = np.broadcast_shapes(self.shape, mean.shape)
        arrays = (np.broadcast_to(a, shape).flatten() for a in (self.code, np.where(allowed, bursts, 1.0)))
        found = np.empty((3, int(np.prod(shape))))
        expect_each(self.kernels, *arrays, np.broadcast_to(p, shape).flatten() if p.size else p, found)
        score, counts, parts = (np.where(allowed, values.reshape(shape), np.nan) for values in found)
        if concentration is None:
            return score, counts / mean - 1.0
        share = (counts + s) / (mean + s)
        return score, counts / mean - share, parts / s + np.log1p(-p) + 1.0 - share


def scores_of(reports: Any, mechanism: Mechanism) -> Scores:
    """The scores of these reports; errors as in ``countveil.log_likelihood``."""
    return Scores(*told(reports, mechanism))


def told(reports: Any, mechanism: Mechanism) -> tuple[ReportKernels, NDArray[np.int64]]:
    """What different reports say of their counts, and which of them each report is; errors likewise."""
    require_mechanism(mechanism)
    r = read_reports(reports, mechanism)
    different, code = np.unique(r, return_inverse=True)
    return kernels_of(said_by(mechanism, different), np.arange(different.size)[:, None]), code.reshape(r.shape) + 1


def read_cells(
    reports: Any, rate: ArrayLike, mechanism: Mechanism, dispersion: ArrayLike | None
) -> tuple[ReportKernels, Cells, tuple[int, ...]]:
    """What the reports say, the entries in row-major order, and the shape that all arguments broadcast to."""
    kernels, code = told(reports, mechanism)
    given: dict[str, NDArray[Any]] = {
        "reports": code,
        "rate": check_positive("rate", in_order_of("rate", rate, reports)),
    }
    if dispersion is not None:
        given["dispersion"] = check_dispersion(in_order_of("dispersion", dispersion, reports))
    shape = check_together(**given)
    code, rates, *p = (np.broadcast_to(a, shape).flatten() for a in given.values())
    return kernels, Cells(code, rates, p[0] if p else np.empty(0)), shape


@kernel
def draw_each(kernels: Any, code: Any, rate: Any, p: Any, rng: Any, count: Any) -> None:
    """A draw of every count, in place."""
    for i in range(code.size):
        if p.size:
            likelihood = NegativeBinomialCell(p[i], -np.log1p(-p[i]))
            count[i] = draw_cell(kernels, likelihood, code[i], rate[i], rng)
        else:
            count[i] = draw_cell(kernels, POISSON, code[i], rate[i], rng)


@kernel
def expect_each(kernels: Any, code: Any, rate: Any, p: Any, found: Any) -> None:
    """(log P(report), E[count], E[parts]) of every count, in place."""
    for i in range(code.size):
        at = max(rate[i], SMALLEST)
        if p.size:
            likelihood = NegativeBinomialCell(p[i], -np.log1p(-p[i]))
            score, counts, parts = moments_of_cell(kernels, likelihood, code[i], at, True)
        else:
            score, counts, parts = moments_of_cell(kernels, POISSON, code[i], at, True)
        found[0, i], found[1, i], found[2, i] = score, counts, parts


def alpha_of(mechanism: Mechanism | None) -> float | None:
    """alpha of two-sided geometric noise, whose laws are in closed form; None for any other mechanism."""
    if mechanism is None:
        return None
    require_mechanism(mechanism)
    return mechanism.alpha if isinstance(mechanism, TwoSidedGeometric) else None
