"""The law of discrete Gaussian noise against sums over its definition."""

import math

import numpy as np
import pytest

from countveil.privacy.mechanisms import DiscreteGaussian
from countveil.study.audit import statistics as ours
from countveil.study.audit.gaussian_law import GaussianLaw


def law(sigma):
    return GaussianLaw(DiscreteGaussian(sigma))


def terms(sigma):
    widest = int(20 * sigma) + 3
    tau = np.arange(-widest, widest + 1)
    masses = np.exp(-0.5 * (tau / sigma) ** 2)
    return tau, masses / masses.sum()


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0, 300.0])
def test_it_is_that_of_the_definition(sigma):
    tau, masses = terms(sigma)
    size = np.abs(tau)
    for k in (0, 1, 2, int(2 * sigma)):
        assert law(sigma).tail(k) == pytest.approx(masses[size > k].sum(), rel=1e-9, abs=1e-30)
    assert law(sigma).tail(10**9) == 0
    assert law(sigma).false_positive_rate == pytest.approx(masses[tau > 0].sum())
    assert law(sigma).mean_magnitude == pytest.approx(size @ masses)
    assert law(sigma).magnitude_variance == pytest.approx(size**2 @ masses - (size @ masses) ** 2)
    for k in (0, 1, 5):
        assert law(sigma).residue(k, 8) == pytest.approx(masses[tau % 8 == k].sum())
    more = (law(sigma * 1.0001).mean_magnitude - law(sigma).mean_magnitude) / math.log(1.0001)
    assert law(sigma).magnitude_information == pytest.approx(
        more**2 / law(sigma).magnitude_variance, rel=1e-2
    )


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0, 300.0])
def test_histograms_tell_it_from_others(sigma):
    tau, masses = terms(sigma)
    rng, size = np.random.default_rng(4), 200_000

    def p_values(draws):
        seen = ours.histogram([draws], law(sigma), size)
        assert seen.chances(law(sigma)).sum() == pytest.approx(1)
        return ours.chi_square(seen, law(sigma)), ours.magnitude(seen, law(sigma))

    assert min(p_values(rng.choice(tau, size, p=masses))) > 1e-4
    zero_twice = masses * np.where(tau == 0, 2, 1)
    wrong = [masses ** (1 / 1.05**2), zero_twice, np.exp(-np.abs(tau) / sigma)]  # sigma, zeros, the family
    for other in wrong[: 3 if sigma < 100 else 1]:
        assert min(p_values(rng.choice(tau, size, p=other / other.sum()))) < ours.CRITICAL


def test_too_much_noise_is_not_audited():
    with pytest.raises(ValueError, match="sigma must be at most 100000 to be audited, got 1e"):
        law(10**6)
