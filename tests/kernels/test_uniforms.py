"""The uniforms against whole-number arithmetic and the published first words of both generators."""

import numpy as np
from scipy import stats

from countveil.kernels import uniforms as kernels
from tests.joint import FALSE_ALARM

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
