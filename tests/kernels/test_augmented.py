"""The augmented sweep against brute force: the split of a report by enumeration, the sums exactly."""

import numpy as np
import pytest
from numba import njit
from scipy import stats

from countveil.data.observations import PrivatizedCounts
from countveil.kernels import augmented as kernels
from tests import reference
from tests.joint import FALSE_ALARM, draw_reports, exposures_of
from tests.plain import PLAIN, repeated, takes_many_draws

DRAWS = repeated(100_000)
MOST = 150
CASES = [  # report, rate, rate_1, rate_2: no noise on one side or the other, small, large
    (0, 0.3, 0.1, 0.2),
    (0, 1e-12, 0.5, 0.7),
    (3, 2.0, 1.0, 0.5),
    (-2, 2.0, 1.0, 3.0),
    (-5, 0.2, 4.0, 6.0),
    (4, 3.0, 0.0, 2.0),
    (4, 3.0, 2.0, 0.0),
    (25, 20.0, 5.0, 9.0),
    (-15, 9.0, 12.0, 30.0),
]


@njit
def draw_splits(r, rate, rate_1, rate_2, rng, draws):
    for i in range(draws.shape[0]):
        draws[i] = kernels.split_report(r, rate, rate_1, rate_2, rng)


def splits(r, rate, rate_1, rate_2, seed=3):
    draws = np.empty((DRAWS, 3), dtype=np.int64)
    draw_splits(r, rate, rate_1, rate_2, np.random.default_rng([seed, abs(r)]), draws)
    return draws


def enumerate_split(r, rate, rate_1, rate_2):
    """P(y, g_1 | y + g_1 - g_2 = r) on a grid, by three Poisson masses."""
    y, g = np.meshgrid(np.arange(MOST), np.arange(MOST), indexing="ij")
    mass = stats.poisson.pmf(y, rate) * stats.poisson.pmf(g, rate_1) * stats.poisson.pmf(y + g - r, rate_2)
    return mass / mass.sum()


def split_p_values(draws, mass):
    """Of the law of y, of g_1, and of their sum."""
    sums = np.bincount(np.add.outer(np.arange(MOST), np.arange(MOST)).ravel(), mass.ravel())
    found = ((draws[:, 0], mass.sum(axis=1)), (draws[:, 1], mass.sum(axis=0)), (draws[:, 0] + draws[:, 1], sums))
    return [reference.chi_square_p_value(values, 0, law) for values, law in found]


@pytest.mark.parametrize("case", CASES)
def test_a_report_splits_as_three_poisson_counts_do(case):
    draws = splits(*case)
    assert (draws @ [1, 1, -1] == case[0]).all()
    assert draws.min() >= 0
    assert min(split_p_values(draws, enumerate_split(*case))) > FALSE_ALARM / (3 * len(CASES))


@takes_many_draws
@pytest.mark.parametrize("case", [(3, 2.0, 1.0, 0.5), (-2, 2.0, 1.0, 3.0), (25, 20.0, 5.0, 9.0)])
@pytest.mark.parametrize("wrong", ["rates swapped", "rate off"])
def test_a_wrong_split_is_caught(case, wrong):
    r, rate, rate_1, rate_2 = case
    other = (r, rate, rate_2, rate_1) if wrong == "rates swapped" else (r, 1.1 * rate, rate_1, rate_2)
    assert min(split_p_values(splits(*other), enumerate_split(*case))) < FALSE_ALARM / (3 * len(CASES))


@njit
def draw_binomials(trials, chance, rng, draws):
    for i in range(draws.size):
        draws[i] = kernels.sample_binomial(trials, chance, rng)


@pytest.mark.parametrize("trials", [0, 1, 5, kernels.TRIALS_ONE_BY_ONE, kernels.TRIALS_ONE_BY_ONE + 1, 500])
@pytest.mark.parametrize("chance", [0.0, 1e-3, 0.4, 1.0])
def test_binomial(trials, chance):
    draws = np.empty(DRAWS, dtype=np.int64)
    draw_binomials(trials, chance, np.random.default_rng([4, trials]), draws)
    law = stats.binom.pmf(np.arange(trials + 1), trials, chance)
    assert reference.chi_square_p_value(draws, 0, law) > FALSE_ALARM / 24
    if trials > 1 and chance == 0.4 and not PLAIN:
        other = stats.binom.pmf(np.arange(trials + 1), trials, 0.41)
        assert reference.chi_square_p_value(draws, 0, other) < FALSE_ALARM / 24


@pytest.mark.long
@pytest.mark.parametrize("count", [0, 1, 40])
def test_noise_rate(count):
    rng = np.random.default_rng(5)
    draws = np.array([kernels.sample_noise_rate(count, 0.7, rng) for _ in range(repeated(20_000))])
    assert stats.kstest(draws, stats.gamma(1 + count, scale=0.7).cdf).pvalue > FALSE_ALARM
    printed = stats.gamma(1 + count, scale=1.0 - 0.7).cdf  # the rate alpha/(1 - alpha) + 1 that was printed
    assert stats.kstest(draws, printed).pvalue < FALSE_ALARM


SIZE = (6, 5)


def scene(kind, seed=1):
    """Reports of every sort, factors, noise rates, and dense versions of what the observations hold."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.gamma(1.0, 1.0, (SIZE[0], 3)), rng.gamma(1.0, 0.7, (SIZE[1], 3))
    per_row = np.array([0.5, 0.3, 0.0, 0.8, 0.6, 0.1])
    cells = rng.uniform(0.0, 0.9, SIZE)
    cells[0, 0] = 0.0
    given = {"row": per_row, "cell": cells}[kind]
    alpha = np.broadcast_to(given if kind == "cell" else given[:, None], SIZE)
    reports, mask = draw_reports(theta @ phi.T, alpha, rng), rng.random(SIZE) < 0.2
    noise = rng.gamma(1.0, 2.0, (*SIZE, 2))
    return theta, phi, noise, alpha, reports, mask, PrivatizedCounts(reports, given, mask)


def sweep(observations, theta, phi, noise, rng):
    """(new noise, counts by row, counts by column)."""
    new_noise, sums = np.full_like(noise, np.nan), (np.zeros_like(theta), np.zeros_like(phi))
    rows = slice(0, SIZE[0])
    kernels.allocate_rows(observations.block(rows), theta, phi, noise, new_noise, *sums, rng)
    return new_noise, *sums


@pytest.mark.parametrize("kind", ["row", "cell"])
def test_exposures_are_one_but_for_masked_cells(kind):
    _, _, _, _, _, mask, observations = scene(kind)
    assert mask.any()
    np.testing.assert_array_equal(exposures_of(observations.fully_exposed()), ~mask)


@pytest.mark.parametrize("kind", ["row", "cell"])
def test_counts_and_noise_rates_have_their_conditional_means(kind):
    theta, phi, noise, alpha, reports, mask, observations = scene(kind)
    rng, sweeps = np.random.default_rng(2), repeated(8000)
    drawn = [sweep(observations, theta, phi, noise, rng) for _ in range(sweeps)]
    rates, by_row, by_column = (np.array(part) for part in zip(*drawn, strict=True))

    mu, count_dv, noise_dv2 = theta @ phi.T, np.zeros(SIZE), noise.copy()
    for d, v in np.argwhere(~mask):
        r = max(reports[d, v], 0)
        if alpha[d, v] == 0.0:
            count_dv[d, v] = r
            continue
        mass = enumerate_split(r, mu[d, v], *noise[d, v])
        count_dv[d, v] = np.arange(MOST) @ mass.sum(axis=1)
        above = np.arange(MOST) @ mass.sum(axis=0)
        noise_dv2[d, v] = alpha[d, v] * (1.0 + np.array([above, count_dv[d, v] + above - r]))
    share_dvk = theta[:, None, :] * phi[None] / mu[..., None]
    split_dvk = count_dv[..., None] * share_dvk
    np.testing.assert_array_equal(
        rates[0][mask | (alpha == 0.0)], noise[mask | (alpha == 0.0)]
    )  # nothing to draw: kept
    np.testing.assert_array_equal(by_row.sum(axis=1), by_column.sum(axis=1))
    pairs = ((by_column, split_dvk.sum(axis=0)), (by_row, split_dvk.sum(axis=1)), (rates, noise_dv2))
    for values, exact in pairs:
        error = values.std(axis=0, ddof=1) / np.sqrt(sweeps)
        z = np.where(error > 1e-12, (values.mean(axis=0) - exact) / np.maximum(error, 1e-12), 0.0)
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)
        np.testing.assert_allclose(values.mean(axis=0)[error <= 1e-12], exact[error <= 1e-12], rtol=1e-12)
