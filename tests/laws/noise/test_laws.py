"""P(report | count) of every mechanism against its terms written out, and simulated reports."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from countveil.data.mechanism_checks import grid_of
from countveil.laws.noise.additive import AdditiveLaw, DiscreteGaussianLaw
from countveil.laws.noise.laws import LAWS, law_of
from countveil.privacy.mechanisms import MECHANISMS
from tests import reference
from tests.laws.noise.laws import CASES
from tests.privacy.toy import Divided

every = pytest.mark.parametrize("name", CASES)


def counts_of(law, *counts):
    """Those that occur under a law."""
    return [count for count in counts if count <= getattr(law, "last", count)]


def test_every_mechanism_has_a_law():
    assert LAWS.keys() == MECHANISMS.keys() == {mechanism.name for mechanism, _, _ in CASES.values()}
    with pytest.raises(ValueError, match=r"mechanism must be one of .*, got 'division'"):
        law_of(Divided(3))


@every
def test_kernels_are_their_terms_and_end_with_their_support(name):
    mechanism, kernel, reports = CASES[name]
    law, y = law_of(mechanism), np.concatenate([np.arange(300), [9_000, 9_999, 10_000, 10_001]])
    for r in reports:
        wanted, same = kernel(r, y), np.full(y.shape, float(r))
        np.testing.assert_allclose(law.log_kernel(same, y), wanted, rtol=1e-10, atol=1e-12)
        least, most = law.support(same)
        assert not ((wanted > -np.inf) & ((y < least) | (y > most))).any()
        top = law.peak(same[:1])
        assert law.log_kernel(same[:1], top)[0] >= wanted.max() - 1e-12
    assert not any(broken.any() for _, broken in law.broken(np.array([r for r in reports if not math.isnan(r)])))


@every
def test_reports_of_a_count_have_probabilities_that_sum_to_one(name):
    mechanism, _, _ = CASES[name]
    law, real = law_of(mechanism), getattr(mechanism, "real", False)
    for count in counts_of(law, 0, 1, 7, 20):

        def chance(r, count=count):
            with np.errstate(divide="ignore"):
                return np.exp(law.log_kernel(np.atleast_1d(np.asarray(r, float)), np.full(np.size(r), count)))

        absent = float(chance(math.nan)[0]) if getattr(mechanism, "absent", False) else 0.0
        if real:
            least = float(getattr(mechanism, "above", -400.0))
            ends = sorted({least, *(x for x in (count - 60.0, float(count), count + 60.0) if x > least), 400.0})
            pieces = [integrate.quad(lambda r: chance(r)[0], a, b)[0] for a, b in pairwise(ends)]
            assert absent + sum(pieces) == pytest.approx(1, abs=1e-7)
        else:
            kept = np.array(
                [r for r in np.arange(-400.0, 401.0) if not any(b.any() for _, b in law.broken(np.array([r])))]
            )
            assert absent + chance(kept).sum() == pytest.approx(1, abs=1e-9)


@every
def test_simulated_reports_follow_the_law(name):
    mechanism, _, _ = CASES[name]
    law, rng = law_of(mechanism), np.random.default_rng(2)
    for count in counts_of(law, 0, 7, 20):
        draws = law.draw(np.full(20_000, count), rng)
        absent = np.isnan(draws)
        if getattr(mechanism, "absent", False):
            chance = math.exp(law.log_kernel(np.array([math.nan]), np.array([count]))[0])
            assert abs(absent.mean() - chance) < 4.5 * math.sqrt(chance * (1 - chance) / 20_000) + 1e-12
        shown = draws[~absent]
        if shown.size < 1_000:
            continue
        at = np.arange(math.floor(shown.min()) - 60, math.ceil(shown.max()) + 60)
        if getattr(mechanism, "real", False):  # by the middles of narrow bins
            grid = np.arange(at[0], at[-1], 1 / 16) + 1 / 32
            fine = np.exp(law.log_kernel(grid, np.full(grid.size, count)))
            fine[grid <= float(getattr(mechanism, "above", -math.inf))] = 0
            masses, shown = np.add.reduceat(fine, np.arange(0, grid.size, 16)), np.floor(shown)
        else:
            possible = [not any(b.any() for _, b in law.broken(np.array([float(r)]))) for r in at]
            masses = np.zeros(at.size)
            masses[possible] = np.exp(law.log_kernel(at[possible].astype(float), np.full(sum(possible), count)))
        if masses.max() < 0.999 * masses.sum():
            assert reference.chi_square_p_value(shown.astype(int), at[0], masses / masses.sum()) > 1e-5
            if not getattr(mechanism, "real", False):  # the negative control: reports that are one step off
                moved = np.roll(masses, grid_of(mechanism)[0]) / masses.sum()
                assert reference.chi_square_p_value(shown.astype(int), at[0], moved) < 1e-5


@every
def test_added_noise_has_the_moments_that_its_law_states(name):
    law = law_of(CASES[name][0])
    if not isinstance(law, AdditiveLaw):
        return
    step = 1.0 / 64 if law.real else 1.0
    tau = np.arange(-400.0, 400.0 + step, step)
    mass = np.exp(law.log_mass(tau)) * step
    mean, *central = mass @ tau, *(mass @ (tau - law.mean) ** power for power in (2, 4))
    assert mean == pytest.approx(law.mean, abs=1e-6)
    assert central[0] <= law.spread**2 * (1 + 1e-3)
    assert central[1] <= (3 + law.excess_kurtosis) * law.spread**4 * (1 + 1e-3)
    if central[0] > 1:  # narrow noise of whole numbers may have a smaller spread than is stated
        assert central[0] == pytest.approx(law.spread**2, rel=1e-3)
        assert central[1] == pytest.approx((3 + law.excess_kurtosis) * law.spread**4, rel=1e-3)


@pytest.mark.parametrize("sigma", [0.05, 0.4, 0.5, 0.7, 2.0, 6.0])
def test_narrow_discrete_gaussian_noise_has_no_more_kurtosis_than_is_stated(sigma):
    law, tau = DiscreteGaussianLaw(sigma), np.arange(-400.0, 401.0)
    needed = np.exp(law.log_mass(tau)) @ (tau / sigma) ** 4 - 3.0
    assert law.excess_kurtosis == pytest.approx(max(needed, 0.0), abs=1e-9)


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 7.0, 60.0])
def test_tails_of_the_discrete_gaussian_are_sums_of_its_terms(sigma):
    law, reach = DiscreteGaussianLaw(sigma), math.ceil(60 * sigma) + 8
    k = np.arange(-reach, reach + 1, dtype=float)
    sums = np.logaddexp.accumulate(law.log_mass(k))
    chosen = slice(math.ceil(30 * sigma) + 4, None)
    np.testing.assert_allclose(law.log_cdf(k[chosen]), np.minimum(sums[chosen], 0), rtol=1e-11, atol=1e-12)


def test_tails_of_wide_noise_are_almost_normal():
    law, k = DiscreteGaussianLaw(5_000.0), np.array([0.0, 1.0, 4_000.0, 59_000.0])
    np.testing.assert_allclose(law._almost_normal(k), law._near[k.astype(int)], rtol=1e-11)
    np.testing.assert_array_equal(law.log_cdf(-k[1:]), law._almost_normal(k[1:]))
    np.testing.assert_allclose(law._series(k[3:]), law._almost_normal(k[3:]), rtol=1e-11)


@every
def test_smaller_reports_have_the_sum_of_their_probabilities(name):
    mechanism, kernel, _ = CASES[name]
    law, real = law_of(mechanism), getattr(mechanism, "real", False)
    absent = getattr(mechanism, "absent", False)
    for count in counts_of(law, 0, 1, 7, 20):
        same = np.array([count])
        none = math.exp(kernel(math.nan, same)[0]) if absent else 0.0
        start = float(getattr(mechanism, "above", -400.0)) if absent or real else -400.0
        start = max(start, -400.0)
        for r in (-3.0, 0.0, 6.0, 12.0, 35.0, 50.0):
            if real:
                ends = [start, *(x for x in (count - 30.0, float(count), count + 30.0) if start < x < r), r]
                below = sum(
                    integrate.quad(lambda x, same=same: math.exp(kernel(x, same)[0]), a, b)[0]
                    for a, b in pairwise(ends)
                ) if r > start else 0.0  # fmt: skip
            else:
                whole = np.arange(-400.0, r)
                impossible = [broken for _, broken in law.broken(whole)]
                possible = whole[~np.any(impossible, axis=0)] if impossible else whole
                below = sum(math.exp(kernel(k, same)[0]) for k in possible)
            if any(broken.any() for _, broken in law.broken(np.array([r]))):
                continue
            assert law.less(np.array([r]), same)[0] == pytest.approx(none + below, abs=1e-7)
        if absent:
            assert law.less(np.array([math.nan]), same)[0] == 0.0
