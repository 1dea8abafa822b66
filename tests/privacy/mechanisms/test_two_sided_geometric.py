import copy
import json
import math
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.toy import Divided

import countveil as cv
from countveil.privacy import PrivacyLevel, _survival, mechanisms, promise
from countveil.privacy.mechanisms import MECHANISMS, Mechanism, TwoSidedGeometric, from_json

ALPHAS = [0.0, 1e-9, 0.1, math.exp(-1), 0.7, 0.95, 0.999]
LEVELS = [(1, 1), ("0.1", 3), ("1/7", 1), (40, 1), (1, 10**6)]
positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**9)


def keeping(epsilon, precision=1):
    return TwoSidedGeometric.keeping(Fraction(epsilon), precision)


def brute(alpha):
    """P(tau = k) for |k| up to where nothing is left, term by term."""
    k = np.arange(-40_000, 40_001)
    return k, (1 - alpha) / (1 + alpha) * alpha ** np.abs(k)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_law_is_that_of_sums_over_its_terms(alpha):
    law, (k, chances) = TwoSidedGeometric(alpha), brute(alpha)
    near = {"rel": 1e-9, "abs": 1e-300}
    size = np.abs(k)
    mean = (chances * size).sum()
    assert chances.sum() == pytest.approx(1)
    assert [law.pmf(j) for j in range(-50, 51)] == pytest.approx(chances[39_950:40_051], **near)
    assert law.variance == pytest.approx((chances * k.astype(float) ** 2).sum(), **near)
    assert law.standard_deviation == pytest.approx(math.sqrt((chances * k.astype(float) ** 2).sum()), **near)
    assert law.mean_magnitude == pytest.approx(mean, **near)
    assert law.magnitude_variance == pytest.approx((chances * (size - mean) ** 2).sum(), rel=1e-7)
    assert law.false_positive_rate == pytest.approx(chances[k > 0].sum(), **near)
    for j in (0, 1, 2, 7, 100):
        assert law.tail(j) == pytest.approx(chances[size > j].sum(), **near)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("modulus", [1, 2, 7, 256])
def test_residues_are_sums_over_the_law(alpha, modulus):
    law, (k, chances) = TwoSidedGeometric(alpha), brute(alpha)
    wanted = np.bincount(k % modulus, weights=chances, minlength=modulus)
    assert [law.residue(j, modulus) for j in range(modulus)] == pytest.approx(wanted, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("probability", [0.01, 0.5, 0.95, 1 - 1e-9])
def test_within_is_the_smallest_size_that_holds_enough(alpha, probability):
    law = TwoSidedGeometric(alpha)
    k = law.within(probability)
    assert law.tail(k) <= (1 - probability) * (1 + 1e-6)
    assert k == 0 or law.tail(k - 1) > 1 - probability


def test_within_agrees_with_exact_survival_probabilities():
    for rate in (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(30), Fraction(1, 777)):
        k, scale = keeping(rate).within(0.95), 2**200
        beyond = _survival.magnitude(rate, k + 1, 200)
        assert beyond[k] <= scale // 20
        assert k == 0 or beyond[k - 1] > scale // 20


@pytest.mark.parametrize("rate", [Fraction(1, 2**40), Fraction(1, 10**6), Fraction(1, 3), Fraction(30)])
def test_nothing_is_lost_where_alpha_is_near_its_ends(rate):
    law = keeping(rate)
    with mpmath.workdps(60):
        exact = mpmath.mpf(rate.numerator) / rate.denominator
        alpha = mpmath.exp(-exact)
        wanted = {
            "variance": 2 * alpha / (1 - alpha) ** 2,
            "standard_deviation": mpmath.sqrt(2 * alpha) / (1 - alpha),
            "mean_magnitude": 2 * alpha / (1 - alpha**2),
            "magnitude_variance": 2 * alpha / (1 - alpha) ** 2 - (2 * alpha / (1 - alpha**2)) ** 2,
            "false_positive_rate": alpha / (1 + alpha),
        }
        for name, value in wanted.items():
            assert abs(getattr(law, name) / value - 1) < 1e-13, name
        for k in (0, 5, round(1 / rate)):
            assert abs(law.pmf(k) / ((1 - alpha) / (1 + alpha) * alpha**k) - 1) < 1e-13
            assert abs(law.tail(k) / (2 * alpha ** (k + 1) / (1 + alpha)) - 1) < 1e-13


@pytest.mark.parametrize("epsilon", [10**400, 10**5, Fraction(1, 10**400)])
def test_a_promise_beyond_all_floats_still_has_a_law(epsilon):
    law = keeping(epsilon)
    assert law.alpha == (0.0 if epsilon > 1 else 1.0)
    assert law.rate == (math.inf if epsilon == 10**400 else max(float(epsilon), math.ulp(0.0)))
    assert law.standard_deviation == (0.0 if epsilon > 1 else math.inf)
    assert isinstance(law.describe(), str)
    assert from_json(law.to_json()) == law


@pytest.mark.parametrize(("method", "argument"), [("tail", (-1,)), ("residue", (3, 3)), ("residue", (-1, 3))])
def test_places_outside_of_the_law_are_refused(method, argument):
    with pytest.raises(ValueError, match=r"^k must "):
        getattr(TwoSidedGeometric(0.5), method)(*argument)


@pytest.mark.parametrize("bad", [0.0, 1.0, -1.0, math.nan])
def test_a_share_must_be_one(bad):
    with pytest.raises(ValueError, match=r"^probability must lie between 0 and 1, got "):
        TwoSidedGeometric(0.5).within(bad)


def test_a_level_names_its_mechanism_and_the_mechanism_its_level():
    level = PrivacyLevel("0.1", 3)
    law = level.mechanism
    assert (law.epsilon, law.precision) == (Fraction(1, 10), Fraction(3))
    assert law.alpha == level.alpha == math.exp(-1 / 30)
    assert law.rate == float(level.rate)
    assert law == TwoSidedGeometric.keeping("0.1", 3)
    assert PrivacyLevel.kept_by(law) == level
    assert PrivacyLevel.kept_by(TwoSidedGeometric(law.alpha)) is None
    assert TwoSidedGeometric(law.alpha) != law
    assert TwoSidedGeometric(law.alpha).rate == pytest.approx(1 / 30, rel=1e-14)
    assert keeping(1, 10) != keeping(2, 20)  # the same noise, another promise


@given(epsilon=positive, precision=positive)
def test_what_is_kept_is_exact(epsilon, precision):
    law = TwoSidedGeometric.keeping(epsilon, precision)
    assert (law.epsilon, law.precision) == (epsilon, precision)
    stated = json.loads(json.dumps(law.to_json()))
    assert stated == law.to_json()
    again = from_json(stated)
    assert again == law
    assert hash(again) == hash(law)
    assert PrivacyLevel.kept_by(again) == PrivacyLevel(epsilon, precision)


@given(alpha=st.floats(0, 1, exclude_max=True))
def test_an_analysts_alpha_is_kept_to_the_last_bit(alpha):
    stated = json.loads(json.dumps(TwoSidedGeometric(alpha).to_json()))
    assert from_json(stated) == TwoSidedGeometric(alpha)
    assert from_json(stated).to_json() == stated


def test_files_state_a_mechanism_so():
    assert keeping("1/10", 3).to_json() == {
        "name": "two-sided geometric",
        "version": 1,
        "parameters": {"epsilon": "1/10", "precision": "3"},
    }
    assert TwoSidedGeometric(0.75).parameters() == {"alpha": "3/4"}
    assert TwoSidedGeometric(0).parameters() == {"alpha": "0"}
    assert all(kind.name == name for name, kind in MECHANISMS.items())


def stating(**changes):
    return {"name": "two-sided geometric", "version": 1, "parameters": {"alpha": "1/2"}} | changes


def of(**parameters):
    return stating(parameters=parameters)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (None, "must have a name, a version and parameters, got 'NoneType'"),
        ({"name": "two-sided geometric"}, "must have a name, a version and parameters, got ['name']"),
        (stating(seed=1), "must have a name, a version and parameters"),
        (stating(name="laplace"), "'thresholded noise', 'table', got 'laplace'"),
        (stating(name="x\n\x1b[2J" + "é" * 99), "got 'x\\n\\x1b[2J"),
        (stating(name=["two-sided geometric"]), "must be one of 'two-sided geometric'"),
        (stating(version=2), "'two-sided geometric' must have version 1, got 2"),
        (stating(version=True), "'two-sided geometric' must have version 1, got True"),
        (stating(version="1"), "'two-sided geometric' must have version 1, got '1'"),
        (stating(parameters=[0.5]), "'two-sided geometric' must have named parameters, got 'list'"),
        (of(), "parameters must be epsilon and precision, or alpha, got []"),
        (of(**{"9" * 1000: "x"}), "parameters must be epsilon and precision, or alpha, got ['9999"),
        (of(sigma="1"), "parameters must be epsilon and precision, or alpha, got ['sigma']"),
        (of(epsilon="1"), "parameters must be epsilon and precision, or alpha, got ['epsilon']"),
        (of(epsilon="1", precision="1", alpha="1/2"), "parameters must be epsilon and precision, or alpha"),
        (of(epsilon="0", precision="1"), "epsilon must be positive, got 0"),
        (of(epsilon="-1", precision="1"), "epsilon must be a reduced fraction in text, such as 1 or 1/10, got '-1'"),
        (of(epsilon="2/4", precision="1"), "epsilon must be a reduced fraction in text"),
        (of(epsilon="1/0", precision="1"), "epsilon must be a reduced fraction in text"),
        (of(epsilon="1e9", precision="1"), "epsilon must be a reduced fraction in text"),
        (of(epsilon="1", precision=1), "precision must be a reduced fraction in text, such as 1 or 1/10, got 1"),
        (of(epsilon="1" * 1299, precision="1"), "epsilon must be a fraction of numbers below 2**4096"),
        (of(alpha=0.5), "alpha must be a reduced fraction in text, such as 1 or 1/10, got 0.5"),
        (of(alpha="1"), "alpha must be a 64-bit float below 1, exactly, got 1"),
        (of(alpha="1" + "0" * 1000), "alpha must be a 64-bit float below 1"),
        (of(alpha="1/3"), "alpha must be a 64-bit float below 1, exactly, got 1/3"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_refused_in_one_line(value, rule):
    with pytest.raises(ValueError, match=r"^mechanism ") as caught:
        from_json(value)
    assert rule in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@dataclass(frozen=True)
class Above(Divided):
    """A mechanism of a mechanism that does not look at the spelling of what it reads."""

    inner: Mechanism

    name = "above"

    def parameters(self):
        return {"divisor": int(self.divisor), "inner": self.inner.to_json()}

    @classmethod
    def of_parameters(cls, parameters):
        return cls(Fraction(parameters["divisor"]), from_json(parameters["inner"]))


def test_mechanisms_may_hold_mechanisms_in_one_spelling(monkeypatch):
    monkeypatch.setitem(MECHANISMS, Above.name, Above)
    stated = Above(Fraction(1), keeping(1, 10)).to_json()
    assert from_json(json.loads(json.dumps(stated))) == Above(Fraction(1), keeping(1, 10))
    for divisor in ("1", "01", True, 1.0):
        other = stated | {"parameters": stated["parameters"] | {"divisor": divisor}}
        with pytest.raises(
            ValueError, match=f"^mechanism 'above' must have divisor in its one spelling, 1, got {divisor!r}$"
        ):
            from_json(other)


@pytest.mark.parametrize("bad", [-0.1, 1, 1.5, math.nan, math.inf])
def test_alpha_must_lie_below_one(bad):
    with pytest.raises(ValueError, match=rf"^alpha must be at least 0 and below 1, got {bad}$"):
        TwoSidedGeometric(bad)


@pytest.mark.parametrize("bad", [True, None, "0.5", 1j, [0.5]])
def test_alpha_must_be_a_number(bad):
    with pytest.raises(TypeError, match=r"^alpha must be a number, got "):
        TwoSidedGeometric(bad)


def test_a_promise_that_does_not_fit_alpha_is_refused():
    assert TwoSidedGeometric(math.exp(-0.5), 1, 2) == keeping(1, 2)
    assert type(TwoSidedGeometric(math.exp(-0.5), 1, 2).epsilon) is Fraction
    with pytest.raises(ValueError, match=r"^alpha must be exp\(-epsilon/precision\), 0\.60653.*, got 0\.5$"):
        TwoSidedGeometric(0.5, 1, 2)
    with pytest.raises(TypeError, match=r"^precision must be a number"):
        TwoSidedGeometric(math.exp(-1), 1)
    with pytest.raises(ValueError, match=r"^precision must be positive, got 0$"):
        TwoSidedGeometric.keeping(1, 0)


def test_mechanisms_are_values():
    law = keeping("1/10", 3)
    assert {law: 1}[keeping("1/10", 3)] == 1
    assert pickle.loads(pickle.dumps(law)) == copy.deepcopy(law) == law
    assert TwoSidedGeometric(np.float32(0.5)) == TwoSidedGeometric(0.5)
    assert type(TwoSidedGeometric(np.float64(0.5)).alpha) is float
    for name in ("alpha", "epsilon", "precision", "rate", "name", "version", "anything"):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(law, name, 1)
    assert repr(law) == "TwoSidedGeometric.keeping(epsilon=0.1, precision=3)"
    assert repr(TwoSidedGeometric(0.25)) == "TwoSidedGeometric(0.25)"
    with pytest.raises(TypeError, match="abstract"):
        Mechanism()


def test_the_words_are_those_of_the_promise():
    text = keeping(1, 10).describe()
    assert text.startswith(
        "epsilon is 1 at N = 10, so alpha is 0.9048 and the noise has standard deviation 14.1. Protected: "
    )
    assert PrivacyLevel(1, 10).describe() in text
    assert promise.describe(Fraction(1), Fraction(10)) in text
    assert text.endswith(" A true zero is reported as positive with probability 47.50%.")


def test_without_a_promise_the_words_are_those_of_the_rate():
    text = TwoSidedGeometric(0.5).describe()
    assert text.startswith("alpha is 0.5 and the noise has standard deviation 2. No conclusion drawn from ")
    assert "e^(0.694 d) times" in text
    assert "epsilon" not in text
    assert TwoSidedGeometric(0).describe() == "alpha is 0: there is no noise, and nothing is protected."


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_what_the_words_say_of_the_rate_is_true(alpha):
    law = TwoSidedGeometric(alpha)
    for distance in (1, 2, 10):
        ratios = [law.pmf(r) / law.pmf(r - distance) for r in range(-40, 60)]
        assert max(ratios) == pytest.approx(math.exp(law.rate * distance))


def test_only_a_promise_at_which_noise_is_drawn_can_be_released():
    keeping(Fraction(1, 2**40)).check_released()
    with pytest.raises(ValueError, match=r"^mechanism must have a rate of at least 2\*\*-40, got 4\.5"):
        keeping(Fraction(1, 2**41)).check_released()
    with pytest.raises(ValueError, match=r"^mechanism must state its epsilon and precision, got only alpha$"):
        TwoSidedGeometric(0.5).check_released()


def test_the_public_name_needs_no_numpy():
    assert cv.mechanisms is mechanisms
    code = (
        "import sys, countveil as cv; law = cv.mechanisms.TwoSidedGeometric(0.5); law.describe();"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'scipy', 'pandas')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
