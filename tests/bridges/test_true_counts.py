import doctest
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import logsumexp

import countveil as cv
import countveil.bridges.true_counts
from countveil.distributions import Skellam, TwoSidedGeometric
from countveil.laws.noise.two_sided_geometric import poisson as laws
from tests import reference
from tests.bursts import PS, SHAPES, masses, rate_of

REPORTS = np.array([[-2, 0, 3, 7], [1, 40, -(10**7), 300]])
RATES = np.array([[0.5, 1e-300, 2.0, 1e4], [9.0, 33.0, 1e7, 250.0]])
ALPHA_OF_ROW = np.array([[0.3], [0.95]])


def entries(alpha):
    return zip(REPORTS.ravel(), RATES.ravel(), np.broadcast_to(alpha, REPORTS.shape).ravel(), strict=True)


@pytest.mark.parametrize("alpha", [0.5, ALPHA_OF_ROW, np.full((2, 4), 0.9)], ids=["number", "row", "entry"])
def test_every_entry_follows_the_scalar_laws(alpha):
    expected = [reference.expected_count(int(r), m, a) for r, m, a in entries(alpha)]
    scores = [reference.report_logpmf(int(r), m, a) for r, m, a in entries(alpha)]
    got = cv.expected_true_counts(REPORTS, RATES, alpha)
    assert got.shape == REPORTS.shape
    assert got.dtype == np.float64
    assert max(map(reference.relative_error, got.ravel(), expected)) < 1e-12
    got = cv.log_likelihood(REPORTS, RATES, alpha)
    assert got.shape == REPORTS.shape
    assert max(map(reference.relative_error, got.ravel(), scores)) < 1e-12


@pytest.mark.parametrize("alpha", [0.5, ALPHA_OF_ROW])
def test_draws_follow_the_law_of_each_entry(alpha):
    rng = np.random.default_rng(3)
    reports = np.broadcast_to(REPORTS, (20_000, 2, 4))
    draws = cv.sample_true_counts(reports, RATES, alpha, rng)
    assert draws.shape == reports.shape
    assert draws.dtype == np.int64
    p_values = []
    for column, (r, m, a) in zip(draws.reshape(-1, 8).T, entries(alpha), strict=True):
        law = reference.count_law(int(r), m, a)
        p_values.append(reference.chi_square_p_value(column, law.first, law.probabilities))
    assert min(p_values) > 1e-4
    law = reference.count_law(3, 2.0, 0.35)  # the negative control: another noise level
    column = cv.sample_true_counts(np.full(20_000, 3), 2.0, 0.3, rng)
    assert reference.chi_square_p_value(column, law.first, law.probabilities) < 1e-4


def test_truncated_reports_score_as_not_positive():
    truncated = cv.log_likelihood(np.maximum(REPORTS, 0), RATES, ALPHA_OF_ROW, truncated=True)
    censored = -(1 - ALPHA_OF_ROW) * RATES - np.log1p(ALPHA_OF_ROW)
    signed = cv.log_likelihood(REPORTS, RATES, ALPHA_OF_ROW)
    np.testing.assert_allclose(truncated, np.where(REPORTS > 0, signed, censored), rtol=1e-14)
    assert (truncated == cv.log_likelihood(REPORTS, RATES, ALPHA_OF_ROW, truncated=True)).all()
    total = np.exp(cv.log_likelihood(np.arange(-200, 1), 2.0, 0.7)).sum()
    assert cv.log_likelihood(0, 2.0, 0.7, truncated=True) == pytest.approx(math.log(total), rel=1e-13)
    assert cv.log_likelihood(0, 2.0, 0.0, truncated=True) == -2.0


def test_gradient_of_the_log_likelihood():
    rates, h = np.array([0.5, 2.0, 9.0]), 1e-5
    slope = cv.log_likelihood(4, rates + h, 0.6) - cv.log_likelihood(4, rates - h, 0.6)
    np.testing.assert_allclose(slope / (2 * h), cv.expected_true_counts(4, rates, 0.6) / rates - 1, rtol=1e-6)


def test_sparse_reports_are_their_dense_form():
    dense = np.array([[0, 3, 0], [0, 0, 12]])
    for matrix in (sparse.csr_array(dense), sparse.coo_matrix(dense)):
        assert (cv.expected_true_counts(matrix, 1.5, 0.5) == cv.expected_true_counts(dense, 1.5, 0.5)).all()
        scores = cv.log_likelihood(matrix, 1.5, 0.5, truncated=True)
        assert (scores == cv.log_likelihood(dense, 1.5, 0.5, truncated=True)).all()
        draws = [cv.sample_true_counts(x, 1.5, 0.5, np.random.default_rng(1)) for x in (matrix, dense)]
        assert (draws[0] == draws[1]).all()


def test_scalars_in_scalars_out():
    assert isinstance(cv.expected_true_counts(3, 1.0, 0.5), float)
    assert isinstance(cv.log_likelihood(3, 1.0, 0.5), float)
    assert isinstance(cv.sample_true_counts(3, 1.0, 0.5, np.random.default_rng(1)), np.int64)
    assert cv.expected_true_counts(3, 1.0, 0.5) == laws.expected_count(3, 1.0, 0.5)


def test_whole_numbers_of_any_type_and_no_numbers_at_all():
    for reports in ([3, 0], (3.0, 0.0), np.array([3, 0], np.uint8), np.ma.masked_array([3, 0]), [True, False]):
        values = cv.expected_true_counts(reports, 1.0, 0.5)
        assert values[1] == 0.5
    assert cv.sample_true_counts(np.zeros((0, 4)), 1.0, 0.5, np.random.default_rng(1)).shape == (0, 4)
    assert cv.log_likelihood([], 1.0, 0.5).shape == (0,)


def test_a_number_and_an_array_are_taken_by_the_same_compiled_loop():
    """Compiling it takes seconds; numbers and arrays of one size once gave it other types of arrays."""
    for rate, alpha in itertools.product((2.0, [2.0, 3.0]), (0.5, [0.5, 0.6])):
        cv.sample_true_counts([1, 4], rate, alpha, np.random.default_rng(1))
    assert len(countveil.bridges.true_counts._sample_each.signatures) == 1


def test_the_same_generator_gives_the_same_draws():
    draws = [cv.sample_true_counts(REPORTS, RATES, 0.5, np.random.default_rng(4)) for _ in range(2)]
    assert (draws[0] == draws[1]).all()


def test_exact_reports_are_the_counts():
    reports, rng = np.array([0, 4, 7]), np.random.default_rng(1)
    assert (cv.sample_true_counts(reports, 2.0, 0.0, rng) == reports).all()
    assert (cv.expected_true_counts(reports, 2.0, 0.0) == reports).all()
    mixed = cv.sample_true_counts([[5, 5], [5, -5]], 2.0, [[0.0], [0.5]], rng)
    assert (mixed[0] == 5).all()


def test_one_line_makes_a_gibbs_sampler_private():
    rng = np.random.default_rng(5)
    true_rate, alpha, n = 3.0, 0.6, 2_000
    reports = rng.poisson(true_rate, n) + rng.geometric(1 - alpha, n) - rng.geometric(1 - alpha, n)
    rate, rates = 1.0, []
    for _ in range(400):
        counts = cv.sample_true_counts(reports, rate, alpha, rng)
        rate = rng.gamma(1.0 + counts.sum(), 1.0 / (1.0 + n))
        rates.append(rate)
    grid = np.linspace(2.5, 3.5, 401)
    log_posterior = np.array([cv.log_likelihood(reports, m, alpha).sum() - m for m in grid])
    weights = np.exp(log_posterior - log_posterior.max())
    mean = weights @ grid / weights.sum()
    sd = math.sqrt(weights @ (grid - mean) ** 2 / weights.sum())
    assert np.mean(rates[50:]) == pytest.approx(mean, abs=0.5 * sd)
    assert np.std(rates[50:]) == pytest.approx(sd, rel=0.3)


SKELLAM_CASES = [(3, 2.0, 1.0, 0.5), (-2, 2.0, 1.0, 3.0), (0, 0.4, 2.0, 2.0), (4, 3.0, 0.0, 2.0), (4, 3.0, 2.0, 0.0)]
SKELLAM_CASES += [(-15, 9.0, 12.0, 30.0), (60, 40.0, 25.0, 12.0)]


def count_under_skellam_noise(r, rate, rate1, rate2, most=200):
    """P(y | r) for y = 0, 1, ..., by adding up over the noise added; what is taken away follows."""
    y, added = np.meshgrid(np.arange(most), np.arange(most), indexing="ij")
    mass = stats.poisson.pmf(y, rate) * stats.poisson.pmf(added, rate1) * stats.poisson.pmf(y + added - r, rate2)
    return mass.sum(axis=1) / mass.sum()


def test_counts_under_skellam_noise_follow_their_law():
    r, rate, rate1, rate2 = np.array(SKELLAM_CASES).T
    reports = np.broadcast_to(r, (50_000, r.size))
    draws = cv.sample_true_counts(reports, rate, noise=Skellam(rate1, rate2), rng=np.random.default_rng(3))
    assert draws.dtype == np.int64
    laws_of = [count_under_skellam_noise(int(case[0]), *case[1:]) for case in SKELLAM_CASES]
    p_values = [reference.chi_square_p_value(x, 0, law) for x, law in zip(draws.T, laws_of, strict=True)]
    assert min(p_values) > 1e-4
    truncated = np.maximum(reports, 0)  # the negative controls: truncated reports, and the noise's rates swapped
    wrong = cv.sample_true_counts(truncated, rate, noise=Skellam(rate1, rate2), rng=np.random.default_rng(3))
    assert reference.chi_square_p_value(wrong[:, 1], 0, laws_of[1]) < 1e-4
    wrong = cv.sample_true_counts(reports, rate, noise=Skellam(rate2, rate1), rng=np.random.default_rng(3))
    assert reference.chi_square_p_value(wrong[:, 6], 0, laws_of[6]) < 1e-4


def test_skellam_noise_of_rate_zero_is_none():
    reports, rng = np.array([0, 4, 10**6]), np.random.default_rng(1)
    assert (cv.sample_true_counts(reports, 2.0, noise=Skellam(0.0, 0.0), rng=rng) == reports).all()
    assert isinstance(cv.sample_true_counts(3, 1.0, noise=Skellam(1.0, 1.0), rng=rng), np.int64)
    assert (cv.sample_true_counts(reports, 2.0, noise=Skellam(5.0, 0.0), rng=rng) <= reports).all()
    assert (cv.sample_true_counts(reports, 2.0, noise=Skellam(0.0, 5.0), rng=rng) >= reports).all()


def test_counts_drawn_under_skellam_noise_mix_back_to_the_poisson_law():
    rng, n, rate = np.random.default_rng(8), 100_000, 3.0
    noise = Skellam(np.linspace(0.5, 2.0, n), np.linspace(4.0, 0.1, n))
    draws = cv.sample_true_counts(rng.poisson(rate, n) + noise.rvs(None, rng), rate, noise=noise, rng=rng)
    assert reference.chi_square_p_value(draws, 0, stats.poisson.pmf(np.arange(60), rate)) > 1e-4


def test_noise_is_given_once():
    rng, noise = np.random.default_rng(1), Skellam(1.0, 1.0)
    with pytest.raises(ValueError, match=r"give either alpha, noise or mechanism, got alpha and noise$"):
        cv.sample_true_counts(1, 1.0, 0.5, rng, noise=noise)
    with pytest.raises(ValueError, match=r"give either alpha, noise or mechanism, got neither$"):
        cv.sample_true_counts(1, 1.0, rng=rng)
    with pytest.raises(TypeError, match=r"noise must be a countveil.distributions.Skellam, got float$"):
        cv.sample_true_counts(1, 1.0, noise=0.5, rng=rng)
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got NoneType$"):
        cv.sample_true_counts(1, 1.0, noise=noise)
    with pytest.raises(ValueError, match=r"non-negative where the noise's rate2 is 0, got -4 at index \(1,\)$"):
        cv.sample_true_counts([3, -4], 1.0, noise=Skellam(1.0, 0.0), rng=rng)
    with pytest.raises(ValueError, match=r"together, got reports \(3,\), rate \(\), rate1 \(2,\), rate2 \(\)$"):
        cv.sample_true_counts([1, 2, 3], 1.0, noise=Skellam([1.0, 2.0], 1.0), rng=rng)


@pytest.mark.parametrize(
    ("reports", "rate", "alpha", "message"),
    [
        (1, 0.0, 0.5, "rate must be positive, got 0.0$"),
        (1, [[1.0, -0.3]], 0.5, r"rate must be positive, got -0.3 at index \(0, 1\)$"),
        (1, np.nan, 0.5, "rate must be positive, got nan$"),
        (1, [1.0, np.inf], 0.5, r"rate must be finite, got inf at index \(1,\)$"),
        (1, 1.0, 1.0, r"alpha must be in \[0, 1\), got 1.0$"),
        (1, 1.0, [-0.1, 0.2], r"alpha must be in \[0, 1\), got -0.1 at index \(0,\)$"),
        ([1.0, 2.5], 1.0, 0.5, r"reports must be whole numbers, got 2.5 at index \(1,\)$"),
        ([1.0, np.nan], 1.0, 0.5, r"reports must be whole numbers, got nan at index \(1,\)$"),
        (1e300, 1.0, 0.5, r"reports must be below 2\^63 in size, got 1e\+300$"),
        (np.uint64(2**63), 1.0, 0.5, r"reports must be below 2\^63 in size, got 9223372036854775808$"),
        ([[3, 2], [1, -4]], 1.0, 0.0, r"reports must be non-negative where alpha is 0, got -4 at index \(1, 1\)$"),
        (-4, 1.0, [0.5, 0.0], r"reports must be non-negative where alpha is 0, got -4 at index \(1,\)$"),
        (np.ones((2, 3)), np.ones(2), 0.5, r"together, got reports \(2, 3\), rate \(2,\), alpha \(\)$"),
        (np.ma.masked_array([1, 2], [0, 1]), 1.0, 0.5, "reports must not hold masked entries"),
    ],
)
def test_bad_input(reports, rate, alpha, message):
    calls = [cv.expected_true_counts, cv.log_likelihood]
    calls.append(lambda *arguments: cv.sample_true_counts(*arguments, np.random.default_rng(1)))
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(reports, rate, alpha)


def test_wrong_types():
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got int$"):
        cv.sample_true_counts(1, 1.0, 0.5, 7)
    with pytest.raises(TypeError, match="reports must be whole numbers, got str"):
        cv.expected_true_counts("three", 1.0, 0.5)
    with pytest.raises(TypeError, match="rate must be real numbers, got complex"):
        cv.expected_true_counts(1, 1j, 0.5)


def test_examples_run():
    results = doctest.testmod(countveil.bridges.true_counts)
    assert results.attempted > 0
    assert results.failed == 0


ROWS, COLUMNS = ["a", "b"], list("wxyz")
LABELLED = {
    "rate": ("rate", pd.DataFrame(RATES, ROWS, COLUMNS), "row"),
    "rate of columns": ("rate", pd.Series(RATES[0], COLUMNS), "column"),
    "alpha": ("alpha", pd.DataFrame(np.full((2, 4), 0.5), ROWS, COLUMNS), "row"),
    "alpha of columns": ("alpha", pd.Series(0.5, COLUMNS), "column"),
}
CALLS = {
    "expected": cv.expected_true_counts,
    "scores": cv.log_likelihood,
    "drawn": lambda *given: cv.sample_true_counts(*given, np.random.default_rng(1)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("name", "value", "axis"), LABELLED.values(), ids=LABELLED)
def test_labels_of_rates_and_levels_are_those_of_the_reports(call, name, value, axis):
    reports, given = pd.DataFrame(REPORTS, ROWS, COLUMNS), {"rate": RATES, "alpha": 0.5}
    expected = call(REPORTS, *(given | {name: value.to_numpy()}).values())
    np.testing.assert_array_equal(call(reports, *(given | {name: value}).values()), expected)
    np.testing.assert_array_equal(call(REPORTS, *(given | {name: value[::-1]}).values()).shape, (2, 4))
    with pytest.raises(ValueError, match=f"{name} must have the {axis} labels of reports in their order"):
        call(reports, *(given | {name: value[::-1]}).values())


def test_labels_of_vectors_are_those_of_the_reports():
    reports, rate = pd.Series([3, 0], ROWS), pd.Series([1.0, 2.0], ROWS)
    expected = cv.expected_true_counts([3, 0], [1.0, 2.0], 0.5)
    np.testing.assert_array_equal(cv.expected_true_counts(reports, rate, 0.5), expected)
    with pytest.raises(ValueError, match="rate must have the row labels of reports in their order, got 'b' for 'a'"):
        cv.expected_true_counts(reports, rate[::-1], 0.5)
    with pytest.raises(ValueError, match="rate must have the row labels of reports in their order, got 'b' for 'a'"):
        cv.sample_true_counts(reports, rate[::-1], rng=np.random.default_rng(1), noise=Skellam(1.0, 1.0))


BURSTY = {"likelihood": "negative-binomial"}
BURSTY_REPORTS = np.array([-20, -1, 0, 1, 3, 17, 400])


@pytest.mark.long
@pytest.mark.parametrize(("p", "s"), [case for case in itertools.product(PS, SHAPES) if case[1] < 1e5])
def test_bursty_counts_are_sums_over_all_counts(p, s):
    counts, logs, bursts = masses(s, p)
    rate, alphas = rate_of(s, p), np.array([1e-6, 0.4, 0.9])
    got = [
        cv.log_likelihood(BURSTY_REPORTS, rate, alphas[:, None], dispersion=p, **BURSTY),
        cv.expected_true_counts(BURSTY_REPORTS, rate, alphas[:, None], dispersion=p, **BURSTY),
        cv.expected_bursts(BURSTY_REPORTS, rate, alphas[:, None], p),
    ]
    for (a, alpha), (i, r) in itertools.product(enumerate(alphas), enumerate(BURSTY_REPORTS)):
        both = logs + TwoSidedGeometric(alpha).logpmf(r - counts)
        total = logsumexp(both)
        law = np.exp(both - total)
        expected = total, law @ counts, law @ bursts
        assert [found[a, i] for found in got] == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_bursty_gradients_are_those_of_the_log_likelihood():
    rate, p, h = np.array([0.1, 2.0, 30.0])[:, None], np.array([0.05, 0.6, 0.97]), 1e-5
    for r, truncated in itertools.product((0, 1, 4, 60), (False, True)):
        bursts = cv.expected_bursts(r, rate, 0.6, p)
        counts = cv.expected_true_counts(r, rate, 0.6, dispersion=p, **BURSTY)

        def score(rate, p, r=r, truncated=truncated):
            return cv.log_likelihood(r, rate, 0.6, truncated, dispersion=p, **BURSTY)

        slope = (score(rate * (1 + h), p) - score(rate * (1 - h), p)) / (2 * h * rate)
        np.testing.assert_allclose(bursts / rate - 1.0, slope, rtol=1e-5, atol=1e-7)
        slope = (score(rate, p + h * (1 - p)) - score(rate, p - h * (1 - p))) / (2 * h * (1 - p))
        np.testing.assert_allclose(counts / p + bursts / ((1 - p) * np.log1p(-p)), slope, rtol=1e-5, atol=1e-6)


def test_truncated_bursty_reports_score_as_not_positive():
    total = np.exp(cv.log_likelihood(np.arange(-300, 1), 2.0, 0.7, dispersion=0.6, **BURSTY)).sum()
    truncated = cv.log_likelihood([0, 0, 4], 2.0, 0.7, True, dispersion=0.6, **BURSTY)
    np.testing.assert_allclose(truncated[:2], math.log(total), rtol=1e-12)
    assert truncated[2] == cv.log_likelihood(4, 2.0, 0.7, dispersion=0.6, **BURSTY)
    assert cv.log_likelihood(0, 2.0, 0.0, dispersion=0.6, **BURSTY) == pytest.approx(-2.0)
    assert cv.log_likelihood(0, 2.0, 0.7, dispersion=1e-10, **BURSTY) == pytest.approx(cv.log_likelihood(0, 2.0, 0.7))


@pytest.mark.parametrize(
    ("r", "rate", "p", "alpha"),
    [(-4, 3.0, 0.8, 0.6), (0, 0.05, 0.9, 0.9), (2, 1.0, 0.5, 0.3), (30, 0.02, 0.9, 0.7), (60, 40.0, 0.4, 0.9)],
)
def test_draws_of_bursty_counts_and_their_bursts(r, rate, p, alpha):
    rng, s = np.random.default_rng(4), rate / -math.log1p(-p)
    draws = cv.sample_true_counts(np.full(40_000, r), rate, alpha, rng, dispersion=p, **BURSTY)
    counts, logs, _ = masses(s, p)
    both = logs + TwoSidedGeometric(alpha).logpmf(r - counts)
    law = np.exp(both - logsumexp(both))
    assert draws.dtype == np.int64
    assert reference.chi_square_p_value(draws, 0, law) > 1e-4
    wrong = cv.sample_true_counts(np.full(400_000, r), rate, alpha, rng, dispersion=0.8 * p, **BURSTY)
    assert reference.chi_square_p_value(wrong, 0, law) < 1e-4
    bursts = cv.sample_bursts(draws, rate, p, rng)
    assert bursts.dtype == np.int64
    expected = cv.expected_bursts(r, rate, alpha, p)
    assert bursts.mean() == pytest.approx(expected, abs=4.0 * bursts.std() / 200.0 + 1e-12)
    assert ((bursts > 0) == (draws > 0)).all()


def test_bursts_of_private_counts_mix_back_to_the_poisson_law():
    rng, n, rate, p = np.random.default_rng(8), 100_000, 3.0, 0.7
    counts = rng.negative_binomial(rate / -math.log1p(-p), 1.0 - p, n)
    reports = counts + TwoSidedGeometric(0.6).rvs(n, rng)
    drawn = cv.sample_true_counts(reports, rate, 0.6, rng, dispersion=p, **BURSTY)
    bursts = cv.sample_bursts(drawn, rate, p, rng)
    assert reference.chi_square_p_value(bursts, 0, stats.poisson.pmf(np.arange(60), rate)) > 1e-4
    plain = cv.sample_true_counts(reports, rate, 0.6, rng)  # the negative control
    wrong = cv.sample_bursts(plain, rate, p, rng)
    assert reference.chi_square_p_value(wrong, 0, stats.poisson.pmf(np.arange(60), rate)) < 1e-4


def test_dispersions_broadcast_and_have_the_labels_of_the_reports():
    rng = np.random.default_rng(1)
    reports, p = pd.DataFrame(REPORTS[:, :3], ROWS, COLUMNS[:3]), pd.Series([0.2, 0.5, 0.9], COLUMNS[:3])
    calls = [
        lambda p: cv.expected_true_counts(reports, 1.0, 0.5, dispersion=p, **BURSTY),
        lambda p: cv.log_likelihood(reports, 1.0, 0.5, dispersion=p, **BURSTY),
        lambda p: cv.expected_bursts(reports, 1.0, 0.5, p),
        lambda p: cv.sample_true_counts(reports, 1.0, 0.5, rng, dispersion=p, **BURSTY),
        lambda p: cv.sample_bursts(reports.clip(lower=0), 1.0, p, rng),
    ]
    for call in calls:
        assert call(p).shape == (2, 3)
        with pytest.raises(ValueError, match="dispersion must have the column labels of reports in their order"):
            call(p[::-1])
    each = [cv.log_likelihood(REPORTS[:, i], 1.0, 0.5, dispersion=p.iloc[i], **BURSTY) for i in range(3)]
    np.testing.assert_array_equal(calls[1](p), np.transpose(each))
    assert isinstance(cv.sample_bursts(3, 1.0, 0.5, rng), np.int64)


def test_likelihoods_and_dispersions_that_are_refused():
    rng = np.random.default_rng(1)
    for call in (cv.expected_true_counts, cv.log_likelihood, cv.sample_true_counts):
        with pytest.raises(ValueError, match=r"likelihood must be one of .*, got 'gaussian'$"):
            call(1, 1.0, 0.5, likelihood="gaussian")
        with pytest.raises(ValueError, match=r"dispersion requires likelihood 'negative-binomial', got dispersion=0.5"):
            call(1, 1.0, 0.5, dispersion=0.5)
        with pytest.raises(ValueError, match=r"'negative-binomial', got dispersion=None with 'negative-binomial'$"):
            call(1, 1.0, 0.5, **BURSTY)
        with pytest.raises(ValueError, match=r"dispersion must be in \(0, 1\), got 1.0$"):
            call(1, 1.0, 0.5, dispersion=1.0, **BURSTY)
    with pytest.raises(ValueError, match=r"likelihood must be 'poisson' with noise, got 'negative-binomial'"):
        cv.sample_true_counts(1, 1.0, noise=Skellam(1.0, 1.0), rng=rng, dispersion=0.5, **BURSTY)
    with pytest.raises(ValueError, match=r"counts must be non-negative, got -2 at index \(1,\)$"):
        cv.sample_bursts([1, -2], 1.0, 0.5, rng)
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got NoneType$"):
        cv.sample_bursts(1, 1.0, 0.5)
    with pytest.raises(ValueError, match=r"reports must be non-negative where alpha is 0, got -2 at index \(1,\)$"):
        cv.expected_bursts([1, -2], 1.0, 0.0, 0.5)
