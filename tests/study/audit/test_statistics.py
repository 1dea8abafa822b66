import math

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel
from countveil.privacy.mechanisms import DiscreteGaussian, Skellam
from countveil.study.audit import statistics as ours
from countveil.study.audit.statistics import GaussianLaw
from tests.privacy.test_noise import seeded


def at(rate):
    """The law of noise at a rate."""
    return PrivacyLevel(rate, 1).mechanism


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
    assert law(sigma).magnitude_information == pytest.approx(more**2 / law(sigma).magnitude_variance, rel=1e-2)


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


def gaussian(sigma, size, seed):
    values = np.arange(-20, 21)
    weights = np.exp(-0.5 * (values / sigma) ** 2)
    return np.random.default_rng(seed).choice(values, size, p=weights / weights.sum())


def test_bounds_on_epsilon_are_valid_and_near():
    """Two laws whose epsilon is known: the bound is below it, and not far."""
    first = {"x": seeded(1.0, 200_000, 1)}
    for shift in (1, 2):
        second = {"x": seeded(1.0, 200_000, 2) + shift}
        bound = ours.epsilon_bound(first, second, float(shift))
        assert 0.9 * shift < bound.lower < shift
        assert shift < bound.detectable < 1.2 * shift
    assert ours.epsilon_bound(first, {"x": seeded(1.0, 200_000, 3)}, 0.1).lower == 0
    apart = ours.epsilon_bound({"x": np.zeros(1000, int)}, {"x": np.ones(1000, int)}, 1.0)
    assert 3 < apart.lower < 10


@pytest.mark.parametrize("shift", [1, 2])
def test_bounds_on_rho_are_valid_and_near(shift):
    """What an event tells of a shift of Gaussian noise is 2/pi of its rho for small ones, and nearly that here."""
    first, second = {"x": gaussian(2, 200_000, 1)}, {"x": gaussian(2, 200_000, 2) + shift}
    rho = shift**2 / 8
    for one, other in ((first, second), (second, first)):
        bound = ours.rho_bound(one, other, rho)
        assert 0.4 * rho < bound.lower < rho
        assert rho < bound.detectable < 1.5 * rho
    assert ours.rho_bound(first, {"x": gaussian(2, 200_000, 3)}, 0.1).lower < 1e-3


def test_what_gaussian_noise_never_shows_is_seen():
    """Two inputs that a report tells apart for sure once in a hundred times: no small rho allows it."""
    apart = ours.rho_bound({"x": np.arange(10**5) % 100}, {"x": np.arange(10**5) % 99}, 0.01)
    assert apart.lower > 0.03


def test_divergences_are_those_of_their_definition():
    for order in (1.5, 4.0):
        wanted = math.log(0.3**order * 0.1 ** (1 - order) + 0.7**order * 0.9 ** (1 - order)) / (order - 1)
        assert ours._divergence(0.3, 0.1, order) == pytest.approx(wanted)
    wanted = 0.3 * math.log(3) + 0.7 * math.log(7 / 9)
    assert ours._divergence(0.3, 0.1, 1.0) == pytest.approx(wanted)
    assert ours._divergence(0.3, 0.1, 1.0 + 1e-7) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize(("q", "claimed"), [(0.3, 0.1), (0.5, 5e-5), (0.01, 0.5)])
def test_a_detectable_rho_is_detected_nearly_always(q, claimed):
    rng, size = np.random.default_rng(6), 100_000
    wrong = ours._detectable_rho(q, size, claimed)
    p = min(np.linspace(q, 1, 10**5)[:-1], key=lambda p: abs(ours._divergence(p, q, 1.0) - wrong))
    found = 0
    for _ in range(60):
        one, other = ({"x": (rng.random(2 * size) < chance).astype(int)} for chance in (p, q))
        found += ours.rho_bound(one, other, claimed).lower > claimed
    assert found >= 55
    assert wrong > claimed
