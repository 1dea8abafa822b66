"""The negative binomial distribution and its bursts, against high precision and sums of Bernoulli variables."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from countveil.kernels import negative_binomial as kernels
from countveil.kernels.compiled import kernel
from countveil.kernels.entries import BATCH
from countveil.kernels.random import new_source
from tests import reference
from tests.joint import FALSE_ALARM
from tests.plain import PLAIN, repeated

SHAPES = (1e-150, 1e-12, 0.01, 0.7, 1.0, 12.0, 50.0, 99.0, 101.0, 1e5, 1e12)
COUNTS = (0, 1, 2, 15, 16, 17, 100, 5000, 10**6)
BURSTS = [(1, 0.5), (3, 0.5), (64, 0.1), (65, 0.1), (300, 0.02), (5000, 0.3), (5000, 4.0), (100_000, 0.01), (90, 1e4)]
BLOCKS = [
    (2, 0.5),
    (3, 20.0),
    (40, 5.0),
    (300, 2.0),
    (300, 60.0),
    (2000, 1e5),
    (kernels.MANY + 1, 3000.0),
    (10_001, 3e3),
]
DRAWS = repeated(40_000)


@kernel
def many(n, s, draws, rng):
    found = np.empty(draws, dtype=np.int64)
    for i in range(draws):
        found[i] = kernels.draw_bursts(n, s, rng)
    return found


@kernel
def many_in_blocks(n, s, draws, rng):
    found = np.empty(draws, dtype=np.int64)
    for i in range(draws):
        found[i] = 1 + kernels.draw_bursts_in_blocks(n, s, rng)
    return found


def bursts_law(n, s, terms=400):
    """P(0), P(1), ... of the sum over i < n of Bernoulli(s / (s + i)), one variable after another."""
    law = np.zeros(min(n, terms) + 1)
    law[0] = 1.0
    for i in range(n):
        chance = s / (s + i)
        law[1:] = law[1:] * (1.0 - chance) + law[:-1] * chance
        law[0] *= 1.0 - chance
    return law


@pytest.mark.parametrize("s", SHAPES)
def test_the_log_mass_is_exact(s):
    with mp.workdps(60):
        for n in COUNTS:
            exact = mpmath.loggamma(mpf(s) + n) - mpmath.loggamma(mpf(s)) - mpmath.loggamma(n + 1)
            assert abs(kernels.log_rising(s, n) - exact) <= 1e-13 * max(1, abs(exact))
            for p in (1e-6, 0.5, 0.999):
                terms = exact, s * mpmath.log1p(-mpf(p)), n * mpmath.log(mpf(p))
                error = abs(kernels.negative_binomial_logpmf(n, s, p) - sum(terms))
                assert error <= 1e-13 * max(1, *map(abs, terms))
                if n > kernels.FEW and s > kernels.FEW:  # nothing large cancels
                    assert error <= 1e-13 * max(1, abs(sum(terms)))


@pytest.mark.parametrize("s", SHAPES)
def test_expected_bursts_are_exact(s):
    with mp.workdps(180):
        for n in COUNTS[1:]:
            exact = mpf(s) * (mpmath.digamma(mpf(s) + n) - mpmath.digamma(mpf(s)))
            assert reference.relative_error(kernels.expected_bursts(n, s), exact) < 1e-12
    assert kernels.expected_bursts(0, s) == 0.0


@pytest.mark.parametrize(("n", "s"), BURSTS)
def test_bursts_have_the_law_of_occupied_tables(n, s):
    found = many(n, s, DRAWS, np.random.default_rng(7))
    assert found.min() >= 1
    law = bursts_law(n, s)
    assert reference.chi_square_p_value(found, 0, law) > FALSE_ALARM / len(BURSTS)
    if n > 60 and not PLAIN:
        wrong = bursts_law(n, 1.1 * s if s < 1e3 else 0.5 * s)
        assert reference.chi_square_p_value(found, 0, wrong) < FALSE_ALARM


def test_many_bursts_have_the_right_mean_and_variance():
    n, s = 200_000, 12.0
    chances = s / (s + np.arange(n))
    found, variance = many(n, s, DRAWS, np.random.default_rng(8)), (chances * (1.0 - chances)).sum()
    assert abs(found.mean() - chances.sum()) < 4.0 * math.sqrt(variance / DRAWS)
    assert abs(found.var() / variance - 1.0) < 4.0 * math.sqrt(2.0 / DRAWS)


@pytest.mark.parametrize(("n", "s"), BLOCKS)
def test_bursts_in_blocks_have_the_law_of_occupied_tables(n, s):
    draw = many if n > kernels.MANY else many_in_blocks
    found = draw(n, s, DRAWS, np.random.default_rng(17))
    law = bursts_law(n, s, n)
    assert reference.chi_square_p_value(found, 0, law) > FALSE_ALARM / len(BLOCKS)
    if n > 3:
        assert reference.chi_square_p_value(found, 0, bursts_law(n, 1.05 * s, n)) < FALSE_ALARM


@pytest.mark.parametrize(("n", "s"), [(10**9, 1e3), (10**9, 1e8), (10**9, 1e12), (2**53, 1e12)])
def test_the_bursts_of_a_giant_count_are_drawn_without_a_loop_over_it(n, s):
    """A loop over the units of the last one would run for a year."""
    draws = 20
    with mp.workdps(60):
        mean = mpf(s) * (mpmath.digamma(mpf(s) + n) - mpmath.digamma(mpf(s)))
        variance = mean - mpf(s) ** 2 * (mpmath.psi(1, mpf(s)) - mpmath.psi(1, mpf(s) + n))
    found = many(n, s, draws, np.random.default_rng(18))
    assert abs(found.mean() - mean) < 4.5 * mpmath.sqrt(variance / draws)
    assert 0.2 < found.var() / variance < 2.5


def test_counts_of_ordinary_size_have_the_bursts_that_their_seed_always_gave():
    assert many(500, 40.0, 6, np.random.default_rng(19)).tolist() == [104, 96, 110, 120, 101, 98]
    assert many(5000, 5.0, 6, np.random.default_rng(19)).tolist() == [33, 43, 27, 30, 44, 30]


@pytest.mark.parametrize("s", [1e-150, 1e-12, 1e18, 1e200])
def test_bursts_at_the_ends(s):
    """A shape of nothing makes one burst of any count, a large one makes a burst of every unit."""
    assert (many(10**6, s, 3, np.random.default_rng(9)) == (1 if s < 1.0 else 10**6)).all()
    assert (many(0, s, 3, np.random.default_rng(9)) == 0).all()


def test_where_the_next_burst_begins_is_exact():
    """The greatest j with P(none before j) > uniform, found by going through all of them."""
    k, n, s = 70, 3000, 0.6
    chance = np.cumprod(np.concatenate([[1.0], np.arange(k, n) / (s + np.arange(k, n))]))  # none from k to j - 1
    for uniform in np.linspace(0.003, 0.9999, 400):
        expected = n if chance[-1] > uniform else k + np.flatnonzero(chance > uniform)[-1]
        assert kernels.next_burst(k, n, s, uniform) == expected


CELLS = [(0, 0.5), (1, 3.0), (2, 0.5), (3, 1e-150), (5, 4.0), (15, 0.1), (16, 2.0), (17, 2.0), (300, 0.02)]


def bursts_of_cells(cells, repeats, seed=10):
    """(repeats, n) bursts of cells drawn together."""
    rng = np.random.default_rng(seed)
    source, n, shape = new_source(rng), len(cells), np.empty(BATCH)
    count, found = np.empty(BATCH, dtype=np.int64), np.empty((repeats, BATCH), dtype=np.int64)
    count[:n], shape[:n] = zip(*cells, strict=True)
    fill(n, count, shape, found, source, rng)
    return found[:, :n]


@kernel
def fill(n, count, shape, found, source, rng):
    for i in range(len(found)):
        kernels.draw_bursts_of_all(n, count, shape, found[i], source, rng)


def test_bursts_of_a_batch_have_their_laws():
    found = bursts_of_cells(CELLS, DRAWS)
    for (n, s), own in zip(CELLS, found.T, strict=True):
        assert reference.chi_square_p_value(own, 0, bursts_law(n, s)) > FALSE_ALARM / len(CELLS)
    for n, s in [(5, 4.0), (15, 0.1), (16, 2.0)] if not PLAIN else []:
        own = found[:, CELLS.index((n, s))]
        assert reference.chi_square_p_value(own, 0, bursts_law(n, 1.1 * s)) < FALSE_ALARM


def test_a_full_batch_of_bursts_draws_each_by_itself():
    assert (bursts_of_cells([(kernels.SEVERAL, 1e18)] * BATCH, 2) == kernels.SEVERAL).all()
    found = bursts_of_cells([(kernels.SEVERAL, 2.0)] * BATCH, 2000)
    between = np.corrcoef(found.T)[~np.eye(BATCH, dtype=bool)]
    assert np.abs(between).max() < 6.0 / math.sqrt(2000)


@pytest.mark.long
@pytest.mark.parametrize("p", [0.3, 0.9, 0.999])
def test_sizes_of_bursts_are_logarithmic(p):
    rng, n = np.random.default_rng(8), 20_000
    sizes = np.array([kernels.logarithmic_size(p, rng.random(), rng) for _ in range(n)])
    seen = np.bincount(np.minimum(sizes, 4), minlength=5)[1:]
    wanted = n * np.append(stats.logser.pmf([1, 2, 3], p), stats.logser.sf(3, p))
    assert stats.chisquare(seen, wanted).pvalue > FALSE_ALARM
    assert stats.chisquare(seen, np.roll(wanted, 1)).pvalue < 1e-9  # the negative control
    assert abs(sizes.mean() - stats.logser.mean(p)) < 4.5 * stats.logser.std(p) / np.sqrt(n)


def test_bursts_of_next_to_no_dispersion_have_size_one():
    rng = np.random.default_rng(8)
    assert all(kernels.logarithmic_size(1e-12, uniform, rng) == 1 for uniform in rng.random(1000))
