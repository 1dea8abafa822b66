import math

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel
from countveil.privacy.mechanisms import DiscreteGaussian, Skellam
from countveil.study.audit import statistics as ours
from countveil.study.audit.statistics import GaussianLaw


def at(rate):
    """The law of noise at a rate."""
    return PrivacyLevel(rate, 1).mechanism


def seeded(rate, size, seed=1):
    rng = np.random.default_rng(seed)
    return rng.geometric(-math.expm1(-rate), size) - rng.geometric(-math.expm1(-rate), size)


@pytest.mark.long
def test_p_values_are_not_too_small_under_the_law():
    """Kolmogorov-Smirnov on 300 seeded histograms, at 1 in 10^4; that of the magnitude is uniform."""
    from scipy import stats

    found = {ours.chi_square: [], ours.magnitude: [], ours.last_bits: []}
    for seed in range(300):
        seen = ours.histogram([seeded(0.05, 20_000, seed)], at(0.05), 20_000)
        for statistic, values in found.items():
            values.append(statistic(seen, at(0.05)))
    for values in found.values():
        assert stats.kstest(values, "uniform", alternative="greater").pvalue > 1e-4
    assert stats.kstest(found[ours.magnitude], "uniform").pvalue > 1e-4


def test_a_detectable_strength_is_detected_nearly_always():
    rate, size = 1.0, 100_000
    wrong = rate - math.log(1 + ours.detectable_strength(at(rate), size))
    hits = 0
    for seed in range(60):
        draws = seeded(wrong, size, seed)
        hits += ours.magnitude(ours.histogram([draws], at(rate), size), at(rate)) < ours.CRITICAL
    assert hits >= 55


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 0.05, 1.0, 3.0])
def test_chances_are_those_of_the_law(rate):
    seen = ours.histogram([seeded(rate, 100_000)], at(rate), 100_000)
    chances, step = seen.chances(at(rate)), ours.bin_width(at(rate))
    assert chances.sum() == pytest.approx(1)
    assert seen.cells.sum() == seen.residues.sum() == 100_000
    assert (step % 2, len(chances)) == (1, len(seen.cells))
    around = np.arange(step) - step // 2
    for place in (0, 1, (len(chances) - 3) // 2):
        alone = math.tanh(rate / 2) * np.exp(-rate * np.abs(place * step + around)).sum()
        assert chances[len(chances) // 2 + place] == pytest.approx(alone, rel=1e-6)
    assert ours.chi_square(seen, at(rate)) > 1e-4
    assert ours.last_bits(seen, at(rate)) > 1e-4
    assert ours.magnitude(seen, at(rate)) > 1e-4


@pytest.mark.parametrize("rate", [1e-6, 0.1, 1.0])
def test_rounded_noise_is_seen_at_any_strength(rate):
    seen = ours.histogram([seeded(rate, 100_000) // 2 * 2], at(rate), 100_000)
    assert ours.last_bits(seen, at(rate)) < ours.CRITICAL


def test_rare_noise_is_tested_exactly():
    seen = ours.histogram([np.zeros(1000, dtype=np.int64)], at(20), 1000)
    assert ours.magnitude(seen, at(20.0)) > 0.9
    seen = ours.histogram([np.array([0] * 995 + [1] * 5)], at(20), 1000)
    assert ours.magnitude(seen, at(20.0)) < ours.CRITICAL
    assert ours.chi_square(seen, at(20.0)) < ours.CRITICAL


def test_values_cut_at_zero_are_tested_as_such():
    draws = np.maximum(seeded(1.0, 100_000), 0)
    seen = ours.histogram([draws], at(1), draws.size)
    assert ours.chi_square(seen, at(1.0), positive=True) > 1e-4
    assert ours.chi_square(seen, at(1.0)) < ours.CRITICAL


def test_repeated_windows():
    draws = seeded(0.01, 10_000)
    assert ours.repeated_windows(draws) == 0
    again = draws.copy()
    again[5000:5033] = -draws[10:43]
    assert ours.repeated_windows(again) == 2


def test_other_mechanisms_have_no_law_here():
    with pytest.raises(TypeError, match="one that the owner's side draws, got 'Skellam'"):
        ours.law_of(Skellam(1, 1))


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
