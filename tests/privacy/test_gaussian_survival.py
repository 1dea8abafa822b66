"""The bounds hold the mathematical probabilities, as mpmath computes them with 150 digits more than needed."""

from fractions import Fraction

import mpmath
import pytest

from countveil.privacy import _gaussian_survival

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
    lows, highs = _gaussian_survival.magnitude(variance, count, bits)
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
    lows, highs = _gaussian_survival.magnitude(variance, count, bits)
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs, reverse=True)


def test_they_hold_no_other_law(monkeypatch):
    variance = Fraction(25)
    assert within(variance, 49, 63)
    assert not within(variance, 49, 63, zeros=2)  # zero counted twice
    assert not within(variance, 49, 63, zeros=0)
    lows, _ = _gaussian_survival.magnitude(variance, 49, 63)
    rounded = (
        Fraction(float(Fraction(25, 1) ** Fraction(1, 2)) * (1 + 2**-50)) ** 2
    )  # sigma off by its last bits
    assert not any(
        low <= survival(rounded, k, 63) <= low + 2 for k, low in enumerate(lows, 1) if k in (1, 2, 10)
    )
    whole = _gaussian_survival._sums
    monkeypatch.setattr(_gaussian_survival, "_sums", lambda terms, rest: whole(terms[:20], 0) + [0] * 29)
    assert not within(variance, 49, 63)  # a tail that ends


def test_many_entries_stay_close():
    lows, highs = _gaussian_survival.magnitude(Fraction(3400**2), 32_260, 63)
    assert max(high - low for low, high in zip(lows, highs, strict=True)) <= 2
    assert lows[-1] == 0
    assert highs[-1] == 1


def test_what_lies_beyond_the_last_term_is_bounded_by_a_geometric_sum(monkeypatch):
    for high, ratio in ((1, 3), (900, 1023), (7, 512)):
        assert Fraction(high) / (1 - Fraction(ratio, 1024)) <= _gaussian_survival._rest(high, ratio, 10)
    lows, highs = _gaussian_survival._tails(Fraction(25), 3, 100)
    right = _gaussian_survival._rest
    monkeypatch.setattr(_gaussian_survival, "_rest", lambda *given: right(*given) + 10**6)
    assert _gaussian_survival._tails(Fraction(25), 3, 100) == (lows, [high + 10**6 for high in highs])
