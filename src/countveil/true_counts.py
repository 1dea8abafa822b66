"""Bring your own model: the three calls through which any sampler or model meets the noise.

Given the current rates of a Poisson model, one of these turns the reports into true counts (a draw, or their
expectation) or scores them. Everything else in that model stays as it is for counts without noise.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from countveil.data.beside import in_order_of
from countveil.distributions._checks import (
    FloatArray,
    check_alpha,
    check_generator,
    check_positive,
    check_together,
    check_whole,
    refuse,
)
from countveil.distributions.skellam import Skellam
from countveil.kernels import augmented
from countveil.kernels.compiled import elementwise, kernel
from countveil.noise.two_sided_geometric import poisson

Reports: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix


@kernel
def _sample_each(reports: Any, rate: Any, alpha: Any, rng: np.random.Generator, counts: Any) -> None:
    for i in range(counts.size):
        counts[i] = poisson.sample_count(reports[i], rate[i], alpha[i], rng)


@kernel
def _split_each(
    reports: Any, rate: Any, rate1: Any, rate2: Any, rng: np.random.Generator, counts: Any
) -> None:
    for i in range(counts.size):
        counts[i] = augmented.split_report(reports[i], rate[i], rate1[i], rate2[i], rng)[0]


@elementwise
def _expected_count(r: Any, rate: Any, alpha: Any) -> Any:
    return poisson.expected_count(r, rate, alpha)


@elementwise
def _report_logpmf(r: Any, rate: Any, alpha: Any) -> Any:
    return poisson.report_logpmf(r, rate, alpha)


@elementwise
def _truncated_logpmf(r: Any, rate: Any, alpha: Any) -> Any:
    return poisson.report_logpmf(r, rate, alpha) if r > 0 else poisson.censored_logpmf(rate, alpha)


def sample_true_counts(
    reports: Reports,
    rate: ArrayLike,
    alpha: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    *,
    noise: Skellam | None = None,
) -> NDArray[np.int64]:
    """Draw every true count from its conditional law given its report and the model's Poisson rate.

    P(y | r, rate) proportional to rate^y / y! * alpha^|r - y|,   y = 0, 1, 2, ...

    reports (whole numbers), rate (positive) and alpha (in [0, 1)) broadcast by NumPy's rules: alpha is a
    number, one per row as a column of shape (D, 1), or one per entry. A sparse matrix of reports is made
    dense. A Series or DataFrame is taken as an array, and must have the labels of the reports in their order.
    Reports that are zero or negative all have the same law, Poisson(alpha * rate), so truncated reports serve
    as well as signed ones. Draws are made in row-major order; a scalar comes back where all three are scalars.

    With noise=Skellam(rate1, rate2) in place of alpha, reports are counts plus a Poisson(rate1) less a
    Poisson(rate2), and with m ~ Bessel(|r|, 2 sqrt((rate1 + rate) rate2))

    y | r, rate, m ~ Binomial(m + max(r, 0), rate / (rate + rate1))

    Its rates broadcast too. Here the size of a negative report does matter: do not truncate.

    A missing report has no noise to undo: its count's law is the model's own Poisson(rate). Draw it there, or
    leave the entry out; arrays with masked entries are refused.

    Raises ValueError: rate not positive and finite, alpha outside [0, 1), reports not whole, masked, or
    negative where alpha or the noise's rate2 is 0, shapes that do not broadcast, not one of alpha and noise.
    TypeError: rng not a numpy.random.Generator, noise not a Skellam law. Source: Schein et al. (2019), section
    4, with the auxiliary variables summed out where alpha is given.

    One line makes a Gibbs sampler private. Here for one gamma-distributed rate shared by all entries, where
    the line marked is all that the sampler for exact counts lacks:

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> reports = np.array([3, -1, 4, 0, 2, 7])
    >>> rate = 1.0
    >>> for _ in range(10):
    ...     counts = sample_true_counts(reports, rate, 0.5, rng)  # this one
    ...     rate = rng.gamma(1.0 + counts.sum(), 1.0 / (1.0 + counts.size))
    >>> counts.shape, bool(counts.min() >= 0)
    ((6,), True)
    """
    if (alpha is None) == (noise is None):
        raise ValueError(f"give either alpha or noise, got {'neither' if noise is None else 'both'}")
    each: Any
    arrays: tuple[NDArray[Any], ...]
    if noise is None:
        each, arrays = _sample_each, _check(reports, rate, alpha)
    else:
        each, arrays = _split_each, _check_skellam(reports, rate, noise)
    generator = check_generator(rng)
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    counts = np.empty(shape, dtype=np.int64)
    each(*(np.broadcast_to(array, shape).ravel() for array in arrays), generator, counts.reshape(-1))
    return counts[()]


def expected_true_counts(reports: Reports, rate: ArrayLike, alpha: ArrayLike) -> FloatArray:
    """The expectation of every true count given its report and the model's Poisson rate: E[y | r, rate].

    With the weights w(y) = rate^y / y! * alpha^|r - y|, the sum of y w(y) over the sum of w(y). It is r where
    alpha is 0, and alpha * rate where r is zero or negative. Divided by the rate, less one, it is the
    gradient of ``log_likelihood`` in the rate. Shapes, masked entries and errors as in
    ``sample_true_counts``.

    >>> expected_true_counts([-2, 0, 3], 1.0, 0.5).round(4).tolist()
    [0.5, 0.5, 1.6506]
    """
    arrays = _check(reports, rate, alpha)
    with np.errstate(all="ignore"):
        return _expected_count(*arrays)


def log_likelihood(
    reports: Reports, rate: ArrayLike, alpha: ArrayLike, truncated: bool = False
) -> FloatArray:
    """Score every report under the model's Poisson rate, the true count summed out: log P(r | rate).

    P(r | rate) = (1 - alpha) / (1 + alpha) * sum_y rate^y e^(-rate) / y! * alpha^|r - y|

    With truncated=True a report that is not positive says only r <= 0, and scores log P(r <= 0 | rate) = -(1
    - alpha) rate - log(1 + alpha). It differs from the signed score by a constant in the rate, so both give
    the same gradient, E[y | r, rate] / rate - 1, and the same posterior. Shapes, masked entries and errors as
    in ``sample_true_counts``.

    >>> log_likelihood([-2, 0, 3], 1.0, 0.5).round(4).tolist()
    [-2.9849, -1.5986, -2.3035]
    """
    arrays = _check(reports, rate, alpha)
    with np.errstate(all="ignore"):
        return (_truncated_logpmf if truncated else _report_logpmf)(*arrays)


def _check(
    reports: Reports, rate: ArrayLike, alpha: ArrayLike | None
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    r, rates = _check_reports(reports), check_positive("rate", in_order_of("rate", rate, reports))
    levels = check_alpha(in_order_of("alpha", alpha, reports))
    check_together(reports=r, rate=rates, alpha=levels)
    _refuse_negative(r, levels == 0.0, "alpha is 0")
    return r, rates, levels


def _check_skellam(reports: Reports, rate: ArrayLike, noise: Skellam) -> tuple[NDArray[Any], ...]:
    if not isinstance(noise, Skellam):
        raise TypeError(f"noise must be a countveil.distributions.Skellam, got {type(noise).__name__}")
    r, rates = _check_reports(reports), check_positive("rate", in_order_of("rate", rate, reports))
    rate1, rate2 = np.asarray(noise.rate1), np.asarray(noise.rate2)
    check_together(reports=r, rate=rates, rate1=rate1, rate2=rate2)
    _refuse_negative(r, rate2 == 0.0, "the noise's rate2 is 0")
    return r, rates, rate1, rate2


def _check_reports(reports: Reports) -> NDArray[np.int64]:
    if np.ma.is_masked(reports):
        raise ValueError("reports must not hold masked entries: leave them out, or draw them from the model")
    given: Any = reports
    return check_whole("reports", given.toarray() if sparse.issparse(given) else given)


def _refuse_negative(r: NDArray[np.int64], where: NDArray[np.bool_], condition: str) -> None:
    broken = np.logical_and(r < 0, where)
    refuse(f"reports must be non-negative where {condition}", broken, np.broadcast_to(r, broken.shape))
