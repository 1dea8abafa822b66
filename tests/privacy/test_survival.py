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


@pytest.mark.parametrize(
    "rate", [Fraction(1, 10**18), Fraction(1, 10**40), Fraction(10**9), Fraction(10**400)]
)
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
