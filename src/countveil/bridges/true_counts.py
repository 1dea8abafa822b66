"""Bring your own model: the calls through which any sampler or model meets the noise.

Given the current rates of a model of counts, one of these turns the reports into true counts (a draw, or their
expectation) or scores them. Everything else in that model stays as it is for counts without noise. Counts are Poisson,
or negative binomial: then they come in bursts, the rate is that of bursts, and a model may need these too.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from countveil.bridges import protected_counts
from countveil.common.arrays import (
    FloatArray,
    check_alpha,
    check_dispersion,
    check_generator,
    check_positive,
    check_together,
    check_whole,
    refuse,
)
from countveil.data.labels import in_order_of
from countveil.distributions import Skellam
from countveil.kernels import augmented
from countveil.kernels.compiled import elementwise, kernel
from countveil.kernels.negative_binomial import draw_bursts
from countveil.laws.noise.two_sided_geometric import bursty_reports, poisson
from countveil.privacy._text import listed
from countveil.privacy.mechanisms import Mechanism

Reports: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix

POISSON, BURSTY = LIKELIHOODS = ("poisson", "negative-binomial")


@kernel
def _sample_each(reports: Any, rate: Any, alpha: Any, rng: np.random.Generator, counts: Any) -> None:
    for i in range(counts.size):
        counts[i] = poisson.sample_count(reports[i], rate[i], alpha[i], rng)


@kernel
def _sample_each_bursty(reports: Any, rate: Any, alpha: Any, p: Any, rng: np.random.Generator, counts: Any) -> None:
    for i in range(counts.size):
        counts[i] = bursty_reports.sample_count(reports[i], rate[i], p[i], alpha[i], rng)


@kernel
def _bursts_of_each(counts: Any, rate: Any, p: Any, rng: np.random.Generator, bursts: Any) -> None:
    for i in range(bursts.size):
        bursts[i] = draw_bursts(counts[i], bursty_reports.shape_of(rate[i], p[i]), rng)


@kernel
def _split_each(reports: Any, rate: Any, rate1: Any, rate2: Any, rng: np.random.Generator, counts: Any) -> None:
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


@elementwise
def _expected_bursty_count(r: Any, rate: Any, alpha: Any, p: Any) -> Any:
    return bursty_reports.expected_parts(r, rate, p, alpha)[0]


@elementwise
def _expected_bursts(r: Any, rate: Any, alpha: Any, p: Any) -> Any:
    return bursty_reports.expected_parts(r, rate, p, alpha)[1]


@elementwise
def _bursty_logpmf(r: Any, rate: Any, alpha: Any, p: Any) -> Any:
    return bursty_reports.report_logpmf(r, rate, p, alpha)


@elementwise
def _truncated_bursty_logpmf(r: Any, rate: Any, alpha: Any, p: Any) -> Any:
    if r > 0:
        return bursty_reports.report_logpmf(r, rate, p, alpha)
    return bursty_reports.censored_logpmf(rate, p, alpha)


def sample_true_counts(
    reports: Reports,
    rate: ArrayLike,
    alpha: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    *,
    noise: Skellam | None = None,
    mechanism: Mechanism | None = None,
    likelihood: str = POISSON,
    dispersion: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Draw every true count from its conditional law given its report and the model's rate.

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

    With likelihood="negative-binomial" counts come in bursts. The rate is that of bursts, and dispersion, in (0, 1), is
    the parameter p of their sizes (``countveil.distributions.PrivatizedNegativeBinomial`` says how other parameters
    become these). It broadcasts too. Given the counts, ``sample_bursts`` draws the bursts, which are Poisson with this
    rate. Not with ``noise``.

    With mechanism, one of ``countveil.mechanisms``, in place of alpha, P(y | r) is proportional to P(y | rate)
    P(r | y) of that mechanism. Reports may be real numbers if its noise is, and NaN or None is a count without a
    report where it has these (``Suppression``, ``Thresholded``). ``TwoSidedGeometric(alpha)`` draws as alpha does.

    A missing report has no noise to undo: its count's law is the model's own. Draw it there, or leave the entry
    out; arrays with masked entries are refused.

    Raises ValueError: rate not positive and finite, alpha outside [0, 1), reports not whole, masked, or negative where
    alpha or the noise's rate2 is 0, reports that the mechanism cannot have made, shapes that do not broadcast, not one
    of alpha, noise and mechanism, an unknown likelihood, a dispersion outside (0, 1) or without its likelihood.
    TypeError: rng not a numpy.random.Generator, noise not a Skellam law, mechanism none of the mechanisms. Source:
    Schein et al. (2019), section 4, with the auxiliary variables summed out where alpha is given.

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
    check_once(alpha=alpha, noise=noise, mechanism=mechanism)
    if mechanism is not None and (alpha := protected_counts.alpha_of(mechanism)) is None:
        check_likelihood(likelihood, dispersion)
        return protected_counts.sample(reports, rate, mechanism, dispersion, check_generator(rng))
    each: Any
    arrays: tuple[NDArray[Any], ...]
    if noise is not None:
        if likelihood != POISSON or dispersion is not None:
            raise ValueError(f"likelihood must be {POISSON!r} with noise, got {likelihood!r}, {dispersion=}")
        each, arrays = _split_each, _check_skellam(reports, rate, noise)
    else:
        arrays = _check(reports, rate, alpha, likelihood, dispersion)
        each = _sample_each if likelihood == POISSON else _sample_each_bursty
    return _draw(each, arrays, check_generator(rng))


def sample_bursts(
    counts: Reports, rate: ArrayLike, dispersion: ArrayLike, rng: np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Draw the number of bursts in which every true count came, given the rate of bursts.

    P(l | y) is that of the sum over i = 0, ..., y - 1 of Bernoulli(s / (s + i)),   s = rate / -log(1 - dispersion)

    counts are those that ``sample_true_counts`` draws with likelihood="negative-binomial". The bursts of all cells are
    Poisson with these rates, masked cells included, so a sampler for Poisson counts goes on as if they were the data;
    given counts, bursts and rates it draws the dispersion. Shapes, labels, masked entries and errors as in
    ``sample_true_counts``; counts are not negative.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> kind = {"likelihood": "negative-binomial", "dispersion": 0.5}
    >>> reports, rate = np.array([3, -1, 4, 0, 2, 7]), 1.0
    >>> for _ in range(10):
    ...     counts = sample_true_counts(reports, rate, 0.5, rng, **kind)
    ...     bursts = sample_bursts(counts, rate, 0.5, rng)
    ...     rate = rng.gamma(1.0 + bursts.sum(), 1.0 / (1.0 + bursts.size))
    >>> bool((bursts <= counts).all()), bool((bursts[counts > 0] > 0).all())
    (True, True)
    """
    n, rates = _check_reports(counts, "counts"), check_positive("rate", in_order_of("rate", rate, counts))
    p = check_dispersion(in_order_of("dispersion", dispersion, counts))
    check_together(counts=n, rate=rates, dispersion=p)
    refuse("counts must be non-negative", n < 0, n)
    return _draw(_bursts_of_each, (n, rates, p), check_generator(rng))


def expected_true_counts(
    reports: Reports,
    rate: ArrayLike,
    alpha: ArrayLike | None = None,
    *,
    mechanism: Mechanism | None = None,
    likelihood: str = POISSON,
    dispersion: ArrayLike | None = None,
) -> FloatArray:
    """The expectation of every true count given its report and the model's rate: E[y | r, rate].

    With the weights w(y) = rate^y / y! * alpha^|r - y|, the sum of y w(y) over the sum of w(y). It is r where
    alpha is 0, and alpha * rate where r is zero or negative. Divided by the rate, less one, it is the
    gradient of ``log_likelihood`` in the rate. Shapes, labels, masked entries, likelihoods and errors as in
    ``sample_true_counts``; with likelihood="negative-binomial" the gradient needs ``expected_bursts``. With
    mechanism in place of alpha, the same for that mechanism, the gradient included.

    >>> expected_true_counts([-2, 0, 3], 1.0, 0.5).round(4).tolist()
    [0.5, 0.5, 1.6506]
    >>> expected_true_counts([-2, 0, 3], 1.0, 0.5, likelihood="negative-binomial", dispersion=0.5).round(4).tolist()
    [0.4809, 0.4809, 2.0577]
    """
    check_once(alpha=alpha, mechanism=mechanism)
    if mechanism is not None and (alpha := protected_counts.alpha_of(mechanism)) is None:
        check_likelihood(likelihood, dispersion)
        return protected_counts.expected(reports, rate, mechanism, dispersion).counts
    arrays = _check(reports, rate, alpha, likelihood, dispersion)
    with np.errstate(all="ignore"):
        return (_expected_count if likelihood == POISSON else _expected_bursty_count)(*arrays)


def expected_bursts(
    reports: Reports,
    rate: ArrayLike,
    alpha: ArrayLike | None = None,
    dispersion: ArrayLike | None = None,
    *,
    mechanism: Mechanism | None = None,
) -> FloatArray:
    """The expectation of every number of bursts given the report of the count that came in them: E[l | r, rate].

    With it and p the dispersion, the gradients of ``log_likelihood`` with likelihood="negative-binomial" are

    d log P(r) / d rate = E[l | r] / rate - 1,   d log P(r) / d p = E[y | r] / p + E[l | r] / ((1 - p) log(1 - p))

    With alpha 0 the reports are the counts; with mechanism in place of alpha, the same for that mechanism. Shapes,
    labels, masked entries and errors as in ``sample_true_counts``.

    >>> expected_bursts([-2, 0, 3], 1.0, 0.5, 0.5).round(4).tolist()
    [0.415, 0.415, 1.4547]
    """
    check_once(alpha=alpha, mechanism=mechanism)
    if mechanism is not None and (alpha := protected_counts.alpha_of(mechanism)) is None:
        check_likelihood(BURSTY, dispersion)
        return protected_counts.expected(reports, rate, mechanism, dispersion).parts
    arrays = _check(reports, rate, alpha, BURSTY, dispersion)
    with np.errstate(all="ignore"):
        return _expected_bursts(*arrays)


def log_likelihood(
    reports: Reports,
    rate: ArrayLike,
    alpha: ArrayLike | None = None,
    truncated: bool = False,
    *,
    mechanism: Mechanism | None = None,
    likelihood: str = POISSON,
    dispersion: ArrayLike | None = None,
) -> FloatArray:
    """Score every report under the model's rate, the true count summed out: log P(r | rate).

    P(r | rate) = (1 - alpha) / (1 + alpha) * sum_y rate^y e^(-rate) / y! * alpha^|r - y|

    With truncated=True a report that is not positive says only r <= 0, and scores log P(r <= 0 | rate) = -(1
    - alpha) rate - log(1 + alpha). It differs from the signed score by a constant in the rate, so both give
    the same gradient, E[y | r, rate] / rate - 1, and the same posterior. The same holds of the score with
    likelihood="negative-binomial", also in the dispersion. Shapes, labels, masked entries, likelihoods and errors as in
    ``sample_true_counts``. With mechanism in place of alpha, log P(r | rate) of that mechanism, a density where its
    reports are real numbers; ``truncated`` is for two-sided geometric noise alone.

    >>> log_likelihood([-2, 0, 3], 1.0, 0.5).round(4).tolist()
    [-2.9849, -1.5986, -2.3035]
    >>> log_likelihood([-2, 0, 3], 1.0, 0.5, likelihood="negative-binomial", dispersion=0.5).round(4).tolist()
    [-3.0699, -1.6836, -2.2326]
    """
    check_once(alpha=alpha, mechanism=mechanism)
    if mechanism is not None and (alpha := protected_counts.alpha_of(mechanism)) is None:
        check_likelihood(likelihood, dispersion)
        if truncated:
            raise ValueError(
                f"truncated must be False under {mechanism.name}, got True: only two-sided geometric reports may be"
            )
        return protected_counts.expected(reports, rate, mechanism, dispersion).log_probability
    arrays = _check(reports, rate, alpha, likelihood, dispersion)
    with np.errstate(all="ignore"):
        if likelihood == POISSON:
            return (_truncated_logpmf if truncated else _report_logpmf)(*arrays)
        return (_truncated_bursty_logpmf if truncated else _bursty_logpmf)(*arrays)


def _draw(each: Any, arrays: tuple[NDArray[Any], ...], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draws by a compiled loop over all entries, in the shape that the arrays broadcast to.

    Entries are copied: views of what was passed cannot be written to, and the loop would be compiled again for them.
    """
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    draws = np.empty(shape, dtype=np.int64)
    each(*(np.broadcast_to(array, shape).flatten() for array in arrays), rng, draws.reshape(-1))
    return draws[()]


def check_once(**given: Any) -> None:
    """Raises ValueError unless what was done to the counts is given in one way."""
    ways = [name for name, value in given.items() if value is not None]
    if len(ways) != 1:
        raise ValueError(f"give either {listed(list(given), 'or')}, got {' and '.join(ways) or 'neither'}")


def check_likelihood(likelihood: str, dispersion: ArrayLike | None) -> None:
    """Raises ValueError for an unknown likelihood, or a dispersion that does not go with it."""
    if likelihood not in LIKELIHOODS:
        raise ValueError(f"likelihood must be one of {list(LIKELIHOODS)}, got {likelihood!r:.60}")
    if (dispersion is None) != (likelihood == POISSON):
        raise ValueError(f"dispersion requires likelihood {BURSTY!r}, got {dispersion=} with {likelihood!r}")


def _check(
    reports: Reports, rate: ArrayLike, alpha: ArrayLike | None, likelihood: str, dispersion: ArrayLike | None
) -> tuple[NDArray[Any], ...]:
    """(reports, rates, levels), and the dispersions of bursty counts."""
    check_likelihood(likelihood, dispersion)
    r, rates = _check_reports(reports), check_positive("rate", in_order_of("rate", rate, reports))
    levels = check_alpha(in_order_of("alpha", alpha, reports))
    checked = {"reports": r, "rate": rates, "alpha": levels}
    if likelihood == BURSTY:
        checked["dispersion"] = check_dispersion(in_order_of("dispersion", dispersion, reports))
    check_together(**checked)
    _refuse_negative(r, levels == 0.0, "alpha is 0")
    return tuple(checked.values())


def _check_skellam(reports: Reports, rate: ArrayLike, noise: Skellam) -> tuple[NDArray[Any], ...]:
    if not isinstance(noise, Skellam):
        raise TypeError(f"noise must be a countveil.distributions.Skellam, got {type(noise).__name__}")
    r, rates = _check_reports(reports), check_positive("rate", in_order_of("rate", rate, reports))
    rate1, rate2 = np.asarray(noise.rate1), np.asarray(noise.rate2)
    check_together(reports=r, rate=rates, rate1=rate1, rate2=rate2)
    _refuse_negative(r, rate2 == 0.0, "the noise's rate2 is 0")
    return r, rates, rate1, rate2


def _check_reports(reports: Reports, name: str = "reports") -> NDArray[np.int64]:
    if np.ma.is_masked(reports):
        raise ValueError(f"{name} must not hold masked entries: leave them out, or draw them from the model")
    given: Any = reports
    return check_whole(name, given.toarray() if sparse.issparse(given) else given)


def _refuse_negative(r: NDArray[np.int64], where: NDArray[np.bool_], condition: str) -> None:
    broken = np.logical_and(r < 0, where)
    refuse(f"reports must be non-negative where {condition}", broken, np.broadcast_to(r, broken.shape))
