"""Discrete Gaussian noise follows its law, in bulk, in pure Python and by the published algorithms.

As with two-sided geometric noise, statistical tests of the operating system's entropy may raise a false alarm, with
probability CRITICAL each. Controls read seeded bytes, so that they cannot fail by chance.
"""

import itertools
import math
import os
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.privacy.scripted import Script

from countveil.privacy import _survival, gaussian_noise
from countveil.privacy.gaussian_noise import GaussianSampler, bernoulli_exp, discrete_laplace, sample, uniform

CRITICAL = 1e-7
VARIANCES = [Fraction(9, 100), Fraction(1), Fraction(25), Fraction(2500)]
DRAWS = 10**6


def law(variance: float, zeros: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Every value that may occur and its probability; ``zeros``: how often zero is counted."""
    widest = int(13 * math.sqrt(variance)) + 3
    values = np.arange(-widest, widest + 1)
    masses = np.exp(-(values**2) / (2 * variance)) * np.where(values == 0, zeros, 1)
    return values, masses / masses.sum()


def p_value(draws: np.ndarray, variance: float) -> float:
    """Of the chi-square test of draws against the law, in cells of at least 20 expected draws."""
    values, probabilities = law(variance)
    inside = values[probabilities * len(draws) >= 20]
    first, last = inside[0], inside[-1]
    observed = np.bincount(np.clip(draws, first - 1, last + 1) - first + 1, minlength=last - first + 3)
    tail = probabilities[values > last].sum()
    expected = np.concatenate([[tail], probabilities[(values >= first) & (values <= last)], [tail]])
    expected *= len(draws)
    observed, expected = observed[expected > 0], expected[expected > 0]
    if min(expected) < 5:  # both ends together
        observed = np.append(observed[1:-1], observed[0] + observed[-1])
        expected = np.append(expected[1:-1], expected[0] + expected[-1])
    return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1))


@pytest.mark.parametrize("variance", VARIANCES)
def test_bulk_draws_follow_the_law(variance):
    draws = gaussian_noise.draw_narrow(variance, DRAWS).astype(np.int64)
    assert p_value(draws, float(variance)) > CRITICAL


@pytest.mark.parametrize("variance", VARIANCES)
def test_pure_python_draws_follow_the_law(variance):
    drawn = gaussian_noise.draw(variance, 100_000)
    assert all(type(value) is int for value in drawn[:100])
    assert p_value(np.array(drawn), float(variance)) > CRITICAL


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(2, 7), Fraction(33, 10)])
def test_the_published_sampler_follows_the_law(variance):
    draws = np.array([sample(variance, os.urandom) for _ in range(6000)])
    assert p_value(draws, float(variance)) > CRITICAL


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_statistic_rejects_wrong_laws(variance):
    rng, variance = np.random.default_rng(1), float(variance)
    values, probabilities = law(variance)
    assert p_value(rng.choice(values, DRAWS, p=probabilities), variance) > CRITICAL
    for wrong in (1.02, 0.98):  # sigma rounded, by 2%
        assert p_value(draws_of(rng, variance * wrong**2), variance) < CRITICAL
    assert p_value(rng.choice(values, DRAWS, p=law(variance, zeros=2)[1]), variance) < CRITICAL
    geometric = np.exp(-np.abs(values) / max(math.sqrt(variance / 2), 0.2))
    assert p_value(rng.choice(values, DRAWS, p=geometric / geometric.sum()), variance) < CRITICAL
    normal = np.rint(rng.normal(0, math.sqrt(variance), DRAWS)).astype(int)
    assert variance > 1 or p_value(normal, variance) < CRITICAL


def draws_of(rng: np.random.Generator, variance: float) -> np.ndarray:
    values, probabilities = law(variance)
    return rng.choice(values, DRAWS, p=probabilities)


@pytest.mark.long
def test_planted_faults_of_the_samplers_show(monkeypatch):
    """Each breaks one line of what is really drawn from."""
    entropy = np.random.default_rng(2).bytes
    variance = Fraction(1)
    assert p_value(GaussianSampler(variance).draw_array(DRAWS, entropy), 1.0) > CRITICAL
    with monkeypatch.context() as patch:  # zero counted twice
        right = _survival.gaussian_magnitude

        def twice(variance, count, bits):
            once = right(variance, count, bits)
            zero = 1 - once[0][0] / 2**bits
            return tuple([int(x / (1 + zero)) for x in part] for part in once)

        patch.setattr(_survival, "gaussian_magnitude", twice)
        assert p_value(GaussianSampler(variance).draw_array(DRAWS, entropy), 1.0) < CRITICAL
    with monkeypatch.context() as patch:  # a tail that is geometric
        patch.setattr(GaussianSampler, "beyond", lambda self, entropy: geometric(2 / variance, entropy))
        assert p_value(GaussianSampler(variance, 2).draw_array(30_000, entropy), 1.0) < CRITICAL
    assert p_value(np.array([rounded(Fraction(1, 3), entropy) for _ in range(20_000)]), 1 / 3) < CRITICAL


def geometric(rate: Fraction, entropy) -> int:
    count = 0
    while bernoulli_exp(rate, entropy):
        count += 1
    return count


def rounded(variance: Fraction, entropy) -> int:
    """The published sampler with sigma = 0.577 rounded to one digit."""
    return sample(Fraction(round(float(variance) ** 0.5, 1)).limit_denominator(10) ** 2, entropy)


@pytest.mark.parametrize("size", [0, 1, 2, 65535, 65536, 65537])
def test_every_size_is_filled(size):
    assert len(gaussian_noise.draw(Fraction(10**4), size)) == size
    drawn = gaussian_noise.draw_narrow(Fraction(10**4), size)
    assert drawn.shape == (size,)
    assert size < 65535 or (drawn[-300:] != 0).sum() > 200


def test_two_calls_share_no_noise():
    first, second = (gaussian_noise.draw_narrow(Fraction(10**6), 1000) for _ in range(2))
    assert (first == second).mean() < 0.1


# --- bits that do not decide ---


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(2, 7)])
def test_a_tie_is_settled_by_further_bits(variance, sign):
    """Words just below and just above a survival probability, known to 63 + 64 n bits."""
    sampler = GaussianSampler(variance)
    for k, pieces in itertools.product((1, 2), (1, 2, 3)):
        lows, highs = _survival.gaussian_magnitude(variance, sampler.head.size, 63 + 64 * pieces)
        for end, found in ((lows[k - 1] - 1, k), (highs[k - 1], k - 1)):
            words = [end >> 64 * (pieces - i) & 2**64 - 1 for i in range(pieces + 1)]
            words[0] |= sign << 63
            for method in (sampler.draw, sampler.draw_array):
                script = Script(*words)
                assert int(method(1, script)[0]) == (-found if sign else found)
                assert not script.words


def test_the_first_16_bits_say_what_the_whole_word_says():
    for variance in (Fraction(9, 100), Fraction(25)):
        sampler = GaussianSampler(variance)
        words = np.random.default_rng(4).integers(0, 2**64, 20_000, dtype=np.uint64)
        edges = np.array([c << 48 | low for c in range(1 << 10) for low in (0, 2**48 - 1)], dtype=np.uint64)
        for word in map(int, np.concatenate([words[:3000], edges])):
            if word & (2**63 - 1) > 2**30:  # what lies beyond the table asks for further words
                assert sampler.draw(1, Script(word, 5)) == sampler.draw_array(1, Script(word, 5)).tolist()


@pytest.mark.long
@pytest.mark.parametrize("entries", [1, 2, 7])
def test_draws_beyond_a_small_table_follow_the_law(entries):
    sampler = GaussianSampler(Fraction(25), entries)
    assert sampler.head.size == entries
    assert p_value(sampler.draw_array(5_000, os.urandom), 25.0) > CRITICAL
    assert p_value(np.array(sampler.draw(5_000, os.urandom)), 25.0) > CRITICAL


def test_a_word_of_zeros_goes_beyond_the_table():
    """At a probability of 2^-63, too small for any sample to show."""
    sampler, rng = GaussianSampler(Fraction(4)), np.random.default_rng(5)
    queue = [bytes(8)] * 5  # a tie at every precision, five times

    def entropy(size: int) -> bytes:
        return queue.pop() if size == 8 and queue else rng.bytes(size)

    assert sampler.draw(1, entropy)[0] >= sampler.head.size


# --- the pieces of the published sampler ---


@pytest.mark.parametrize("below", [1, 2, 3, 7, 256, 257, 1000])
def test_uniform_numbers_are_uniform(below):
    drawn = [uniform(below, os.urandom) for _ in range(30 * below)]
    assert below == 1 or stats.chisquare(np.bincount(drawn, minlength=below)).pvalue > CRITICAL


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 9), Fraction(1), Fraction(7, 3), Fraction(10**40)])
def test_chances_of_an_exponential(rate):
    drawn = sum(bernoulli_exp(rate, os.urandom) for _ in range(20_000))
    assert stats.binomtest(drawn, 20_000, math.exp(-rate)).pvalue > CRITICAL


@pytest.mark.parametrize("scale", [1, 2, 6])
def test_discrete_laplace_noise(scale):
    draws = np.array([discrete_laplace(scale, os.urandom) for _ in range(10_000)])
    cells = np.arange(-4 * scale, 4 * scale + 1)
    expected = math.tanh(0.5 / scale) * np.exp(-np.abs(cells) / scale) * len(draws)
    observed = np.array([(draws == cell).sum() for cell in cells])
    rest = len(draws) - np.array([observed.sum(), expected.sum()])
    assert stats.chisquare([*observed, rest[0]], [*expected, rest[1]]).pvalue > CRITICAL


# --- which variances ---


def test_beyond_the_tables_noise_is_drawn_by_the_published_sampler():
    variance = gaussian_noise.TABLED + Fraction(1, 3)
    for draws in (
        gaussian_noise.draw_narrow(variance, 500).astype(np.int64),
        np.array(gaussian_noise.draw(variance, 500)),
    ):
        assert stats.kstest(draws / float(variance) ** 0.5, stats.norm.cdf).pvalue > CRITICAL
    widest = np.array(gaussian_noise.draw(gaussian_noise.MAX_VARIANCE, 500)) / 2.0**40
    assert stats.kstest(widest, stats.norm.cdf).pvalue > CRITICAL


def test_noise_is_drawn_in_few_bytes():
    kinds = [gaussian_noise.draw_narrow(variance, 1000).dtype for variance in (Fraction(1), Fraction(2500))]
    assert kinds == [np.int8, np.int16]


def test_tiny_variances_are_no_noise_almost_surely():
    assert set(gaussian_noise.draw(Fraction(1, 10**200), 1000)) == {0}
    assert not gaussian_noise.draw_narrow(Fraction(1, 10**200), 1000).any()


@pytest.mark.parametrize("variance", [1.0, True, "1"])
def test_a_variance_that_is_not_exact_is_refused(variance):
    with pytest.raises(TypeError, match="variance must be a Fraction"):
        gaussian_noise.draw(variance, 1)


@pytest.mark.parametrize(("variance", "size"), [(0, 1), (-1, 1), (2**80 + 1, 1), (1, -1)])
def test_numbers_out_of_range_are_refused(variance, size):
    with pytest.raises(ValueError, match="must"):
        gaussian_noise.draw_narrow(Fraction(variance), size)


def test_an_overflow_is_refused(monkeypatch):
    monkeypatch.setattr(gaussian_noise, "discrete_laplace", lambda scale, entropy: 2**62)
    monkeypatch.setattr(gaussian_noise, "bernoulli_exp", lambda rate, entropy: True)
    with pytest.raises(OverflowError, match="below 2\\*\\*62"):
        gaussian_noise.draw(gaussian_noise.MAX_VARIANCE, 1)


def test_opendp_draws_the_same_law():
    dp = pytest.importorskip(
        "opendp.prelude", reason="OpenDP is not built for this platform: its law is compared with ours"
    )
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    for sigma in (1.0, 5.0):
        theirs = np.array(dp.m.make_gaussian(*space, scale=sigma)([0] * 20_000))
        assert p_value(theirs, sigma**2) > CRITICAL
