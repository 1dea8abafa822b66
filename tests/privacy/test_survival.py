import math
from fractions import Fraction

import mpmath
import pytest

from countveil.privacy import _survival

RATES = [Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(5)]


def reference(law: str, rate: Fraction, k: int, base: int, bits: int) -> int:
    x = mpmath.mpf(rate.numerator) / rate.denominator
    alpha = mpmath.exp(-x)
    survival = {
        "magnitude": lambda: 2 * alpha**k / (1 + alpha),
        "geometric": lambda: alpha**k,
        "digit": lambda: (alpha**k - alpha**base) / (1 - alpha**base),
    }[law]()
    return int(mpmath.floor(survival * mpmath.mpf(2) ** bits))


@pytest.mark.parametrize("bits", [63, 127])
@pytest.mark.parametrize("rate", [*RATES, Fraction(0.1), Fraction(1, 3), Fraction(1, 10**9), Fraction(1000)])
def test_thresholds_are_exact(rate, bits):
    with mpmath.workprec(300 + bits):
        for count, law in ((300, "magnitude"), (300, "geometric")):
            assert getattr(_survival, law)(rate, count, bits) == [
                reference(law, rate, k, 0, bits) for k in range(1, count + 1)
            ]
        for base in (2, 3, 256):
            want = [reference("digit", rate, k, base, bits) for k in range(1, base)]
            assert _survival.digit(rate, base, bits) == want


def test_floating_point_thresholds_would_not_pass():
    rounded = [int(2 * math.exp(-k) / (1 + math.exp(-1)) * 2.0**63) for k in range(1, 44)]
    assert rounded != _survival.magnitude(Fraction(1), 43, 63)


@pytest.mark.parametrize("rate", [Fraction(1, 10**18), Fraction(1, 10**40), Fraction(10**9), Fraction(10**400)])
def test_thresholds_are_exact_at_the_extremes(rate):
    with mpmath.workprec(2000):
        for bits in (63, 191):
            if rate > 1:
                assert _survival.magnitude(rate, 3, bits) == _survival.geometric(rate, 3, bits) == [0, 0, 0]
            else:
                want = [reference("magnitude", rate, k, 0, bits) for k in (1, 2, 3)]
                assert _survival.magnitude(rate, 3, bits) == want
                want = [reference("digit", rate, k, 16, bits) for k in range(1, 16)]
                assert _survival.digit(rate, 16, bits) == want


VARIANCES = [Fraction(1, 10**6), Fraction(9, 100), Fraction(1), Fraction(25), Fraction(2500), Fraction(2, 7)]


def survival(variance: Fraction, k: int, bits: int, zeros: int = 1) -> mpmath.mpf:
    """2^bits P(|tau| >= k), by the sums of its definition; ``zeros``: how often zero is counted."""
    with mpmath.workprec(bits + 500):
        scale = mpmath.mpf(variance.denominator) / (2 * variance.numerator)
        last = int(mpmath.sqrt((bits + 500) / scale)) + k + 2
        masses = [mpmath.exp(-j * j * scale) for j in range(last)]
        return 2 * sum(masses[k:]) / (zeros + 2 * sum(masses[1:])) * mpmath.mpf(2) ** bits


def within(variance: Fraction, count: int, bits: int, zeros: int = 1) -> bool:
    """Whether every bound holds the probability, and is close to it."""
    lows, highs = _survival.gaussian_magnitude(variance, count, bits)
    assert len(lows) == len(highs) == count
    return all(
        low <= survival(variance, k, bits, zeros) <= high <= low + 2
        for k, (low, high) in enumerate(zip(lows, highs, strict=True), 1)
        if k in (1, 2, 3, count // 2, count)
    )


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("bits", [3, 63, 127, 400])
def test_the_bounds_hold_the_probabilities(variance, bits):
    count = int(9 * float(variance) ** 0.5) + 4
    assert within(variance, count, bits)
    lows, highs = _survival.gaussian_magnitude(variance, count, bits)
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs, reverse=True)


def test_they_hold_no_other_law(monkeypatch):
    variance = Fraction(25)
    assert within(variance, 49, 63)
    assert not within(variance, 49, 63, zeros=2)  # zero counted twice
    assert not within(variance, 49, 63, zeros=0)
    lows, _ = _survival.gaussian_magnitude(variance, 49, 63)
    rounded = Fraction(float(Fraction(25, 1) ** Fraction(1, 2)) * (1 + 2**-50)) ** 2  # sigma off by its last bits
    assert not any(low <= survival(rounded, k, 63) <= low + 2 for k, low in enumerate(lows, 1) if k in (1, 2, 10))
    whole = _survival._sums
    monkeypatch.setattr(_survival, "_sums", lambda terms, rest: whole(terms[:20], 0) + [0] * 29)
    assert not within(variance, 49, 63)  # a tail that ends


def test_many_entries_stay_close():
    lows, highs = _survival.gaussian_magnitude(Fraction(3400**2), 32_260, 63)
    assert max(high - low for low, high in zip(lows, highs, strict=True)) <= 2
    assert lows[-1] == 0
    assert highs[-1] == 1


def test_what_lies_beyond_the_last_term_is_bounded_by_a_geometric_sum(monkeypatch):
    for high, ratio in ((1, 3), (900, 1023), (7, 512)):
        assert Fraction(high) / (1 - Fraction(ratio, 1024)) <= _survival._rest(high, ratio, 10)
    lows, highs = _survival._tails(Fraction(25), 3, 100)
    right = _survival._rest
    monkeypatch.setattr(_survival, "_rest", lambda *given: right(*given) + 10**6)
    assert _survival._tails(Fraction(25), 3, 100) == (lows, [high + 10**6 for high in highs])
