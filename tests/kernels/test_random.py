"""Random numbers for compiled loops have their laws, and bulk uniforms are reproducible."""

import numpy as np
import pytest
from scipy import special, stats

from countveil.kernels import random as kernels
from tests.joint import FALSE_ALARM

CASES = [
    ("binomial", (7, 0.3)),
    ("binomial", (500, 0.4)),
    ("standard_gamma", (0.4,)),
    ("standard_gamma", (3.0,)),
    ("standard_exponential", ()),
    ("standard_normal", ()),
]


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_draws_are_those_of_numpy(name, arguments):
    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    drawn = [getattr(kernels, name)(*arguments, ours) for _ in range(200)]
    assert drawn == [getattr(theirs, name)(*arguments) for _ in range(200)]
    assert len(set(drawn)) > 3


DRAWS = 20_000


def draws_of(shape, rate):
    rng = np.random.default_rng(3)
    return np.array([kernels.sample_gamma(shape, rate, rng) for _ in range(DRAWS)])


@pytest.mark.long
@pytest.mark.parametrize(("shape", "rate"), [(0.3, 2.0), (1.0, 0.5), (40.0, 7.0)])
def test_draws_are_gamma(shape, rate):
    draws = draws_of(shape, rate)
    assert stats.kstest(draws, stats.gamma(shape, scale=1.0 / rate).cdf).pvalue > FALSE_ALARM / 3
    assert stats.kstest(draws, stats.gamma(shape, scale=1.1 / rate).cdf).pvalue < FALSE_ALARM / 3


def test_draws_never_vanish():
    draws = draws_of(1e-4, 1.0)
    assert draws.min() == kernels.SMALLEST
    assert kernels.SMALLEST**2 > 0.0


def test_digamma_is_scipys():
    x = np.concatenate([np.geomspace(1e-6, 1e8, 200), np.linspace(0.5, 12.0, 50)])
    found = np.array([kernels.digamma(value) for value in x])
    np.testing.assert_allclose(found, special.digamma(x), rtol=1e-12, atol=1e-13)


def test_trigamma_is_scipys():
    x = np.concatenate([np.geomspace(1e-6, 1e8, 200), np.linspace(0.5, 12.0, 50)])
    found = np.array([kernels.trigamma(value) for value in x])
    np.testing.assert_allclose(found, special.polygamma(1, x), rtol=1e-12, atol=0.0)


BITS = 2**64


def rotated(word, by):
    return (word << by | word >> 64 - by) % BITS


def words_of(state, n):
    """xoshiro256++, as published."""
    s0, s1, s2, s3 = state
    for _ in range(n):
        yield (rotated((s0 + s3) % BITS, 23) + s0) % BITS
        shifted = (s1 << 17) % BITS
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3 = rotated(s3, 45)


def test_the_slow_twin_has_the_published_words():
    first = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    assert list(words_of((1, 2, 3, 4), 5)) == first


def test_uniforms_are_the_upper_bits_of_the_words():
    state = (2**63 + 5, 123456789, 2**64 - 1, 987654321)
    source, found = np.array(state, dtype=np.uint64), np.full(300, -1.0)
    kernels.fill_uniforms(source, 100, found)
    kernels.fill_uniforms(source, 150, found[100:])
    expected = [(word >> 11) / 2**53 for word in words_of(state, 250)]
    assert found[:250].tolist() == expected
    assert (found[250:] == -1.0).all()


def test_the_mixture_of_bits_is_splitmix():
    state = (1234567 + int(kernels.STEP)) % BITS
    assert int(kernels.mixed(np.uint64(state))) == 6457827717110365317


def test_sources_of_one_stream_are_alike_and_of_others_are_not():
    one, again = (kernels.new_source(np.random.Generator(np.random.Philox(1))) for _ in range(2))
    rng = np.random.Generator(np.random.Philox(2))
    others = [kernels.new_source(rng) for _ in range(50)]
    np.testing.assert_array_equal(one, again)
    assert np.unique(np.concatenate([one, *others])).size == 4 * 51


def test_uniforms_of_many_sources_are_uniform():
    rng, found = np.random.Generator(np.random.Philox(3)), np.empty((2000, 8))
    for row in found:
        kernels.fill_uniforms(kernels.new_source(rng), 8, row)
    for column in found.T:
        assert stats.kstest(column, "uniform").pvalue > FALSE_ALARM / 8
    z = np.corrcoef(found.T)[np.triu_indices(8, 1)] * np.sqrt(2000)
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)
