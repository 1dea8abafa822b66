"""The noise follows the mathematical law.

It cannot be seeded, so each statistical test may raise a false alarm, with probability CRITICAL; with about
sixty of them the whole file does so in fewer than one of 10^5 runs. Every statistic is shown to reject a
wrong law; those controls are seeded, so that they cannot fail by chance.
"""

import itertools
import math
import os
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from tests.privacy.scripted import Script

from countveil.privacy import _survival, inversion, noise
from countveil.privacy.noise import Sampler

CRITICAL = 1e-7
RATES = [Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(5)]


def draws_at(rate: Fraction) -> int:
    """How many draws show a law that is 2% off: most where nearly all are zero."""
    return 10**7 if rate > 1 else 2 * 10**6


def pmf(values: np.ndarray, rate: float) -> np.ndarray:
    return math.tanh(rate / 2) * np.exp(-rate * np.abs(values))


def chi_square(draws: np.ndarray, rate: float) -> float:
    """p-value of the signed draws against the law, in cells of at least 50 expected draws."""
    widest = max(int(-math.log(50 / (len(draws) * math.tanh(rate / 2))) / rate), 1)
    cells = np.arange(-widest, widest + 1)
    observed = np.bincount(np.clip(draws, -widest - 1, widest + 1) + widest + 1, minlength=2 * widest + 3)
    tail = math.exp(-rate * (widest + 1)) / (1 + math.exp(-rate))
    expected = len(draws) * np.concatenate([[tail], pmf(cells, rate), [tail]])
    return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1))


def tails(draws: np.ndarray, rate: float) -> float:
    """Smallest p-value of the numbers of draws beyond where 1000, 100 and 10 are expected, on each side."""
    worst = 1.0
    for expected in (1000, 100, 10):
        point = max(math.ceil(-math.log(expected / len(draws) * (1 + math.exp(-rate))) / rate), 1)
        chance = math.exp(-rate * point) / (1 + math.exp(-rate))
        for side in (draws, -draws):
            worst = min(worst, stats.binomtest(int((side >= point).sum()), len(draws), chance).pvalue)
    return worst


def dependence(draws: np.ndarray) -> float:
    """Smallest p-value of sign against magnitude, and of draws against later ones (capped at 4 sigma)."""
    moved = draws[draws != 0]
    cap = int(np.quantile(np.abs(moved), 0.99)) + 1
    table = np.stack([np.bincount(np.minimum(np.abs(side), cap)) for side in (moved[moved > 0], moved[moved < 0])])
    table = table[:, table.sum(axis=0) > 50]
    worst = stats.chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0
    bound = 4 * draws.std()
    for values in (np.clip(draws, -bound, bound), np.minimum(np.abs(draws), bound)):
        centred = values - values.mean()
        for lag in (1, 2, 65536):
            score = np.mean(centred[:-lag] * centred[lag:]) / centred.var() * math.sqrt(len(draws) - lag)
            worst = min(worst, 2 * stats.norm.sf(abs(score)))
    return float(worst)


def seeded(rate: float, size: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.geometric(-math.expm1(-rate), size) - rng.geometric(-math.expm1(-rate), size)


@pytest.mark.parametrize("rate", RATES)
def test_bulk_draws_follow_the_law(rate):
    draws = noise.draw_narrow(rate, draws_at(rate)).astype(np.int64)
    assert chi_square(draws, float(rate)) > CRITICAL
    assert tails(draws, float(rate)) > CRITICAL / 6
    assert dependence(draws) > CRITICAL / 7


@pytest.mark.parametrize("rate", RATES)
def test_pure_python_draws_follow_the_law(rate):
    drawn = noise.draw(rate, 300_000)
    assert all(type(value) is int for value in drawn[:100])
    draws = np.array(drawn)
    assert chi_square(draws, float(rate)) > CRITICAL
    assert tails(draws, float(rate)) > CRITICAL / 6
    assert dependence(draws) > CRITICAL / 7


@pytest.mark.long
@pytest.mark.parametrize("rate", RATES)
def test_the_statistics_reject_wrong_laws(rate):
    rate, size = float(rate), draws_at(rate)
    right = seeded(rate, size)
    assert chi_square(right, rate) > CRITICAL
    assert tails(right, rate) > CRITICAL / 6
    assert dependence(right) > CRITICAL / 7
    for wrong in (1.02, 0.98):
        other = min(math.exp(-rate) * wrong, 0.9999)
        assert chi_square(seeded(-math.log(other), size), rate) < CRITICAL
    assert chi_square(np.abs(right), rate) < CRITICAL
    assert chi_square(np.where(right == 0, right, right - np.sign(right)), rate) < CRITICAL
    assert tails(np.clip(right, -20 / rate, 20 / rate).astype(int) * 2, rate) < CRITICAL / 6
    assert dependence(np.where(right % 2 == 0, right, np.abs(right))) < CRITICAL / 7
    assert dependence(np.repeat(right[: size // 2], 2)) < CRITICAL / 7


@pytest.mark.parametrize("size", [0, 1, 2, 65535, 65536, 65537, 200_001])
def test_every_size_is_filled(size):
    assert len(noise.draw(Fraction(1, 1000), size)) == size
    drawn = noise.draw_narrow(Fraction(1, 1000), size)
    assert drawn.shape == (size,)
    assert size < 65535 or (drawn[-300:] != 0).sum() > 200


def test_two_calls_share_no_noise():
    first, second = noise.draw_narrow(Fraction(1, 1000), 1000), noise.draw_narrow(Fraction(1, 1000), 1000)
    assert (first == second).mean() < 0.1


# --- ties ---


def faces(sampler: Sampler, *words: int) -> list[int]:
    """What each face makes of the same words; all of them must be used, or in bulk all but one that was clear."""
    results = []
    for method in (sampler.draw, sampler.draw_array):
        script = Script(*words)
        results.append(int(method(1, script)[0]))
        assert not script.words or (method == sampler.draw_array and script.words == list(words[:1]))
    assert results[0] == results[1]
    return results


class Beginnings:
    """The first 16 bits of given words when asked for those, then the words whose rest was asked for."""

    def __init__(self, words: np.ndarray, clear: np.ndarray) -> None:
        self.pieces = [(words >> np.uint64(48)).astype(np.uint16).tobytes(), words[~clear].tobytes()]

    def __call__(self, size: int) -> bytes:
        assert len(self.pieces[0]) == size
        return self.pieces.pop(0)


def awkward_words(rate: Fraction) -> np.ndarray:
    """64-bit words with either sign: at random, at the edges of what 16 bits say, and beside thresholds."""
    rng = np.random.default_rng(5)
    edges = np.array([c << 48 | low for c in range(1 << 15) for low in (0, 2**48 - 1)], dtype=np.uint64)
    thresholds = np.array(Sampler(rate).head.ascending, dtype=np.uint64)
    beside = np.concatenate([thresholds[thresholds > 0] - np.uint64(1), thresholds + np.uint64(1)])
    plain = np.concatenate([rng.integers(0, 2**63, 20_000, dtype=np.uint64), edges, beside])
    plain = plain[~np.isin(plain, thresholds)]  # a tie asks for further bits
    return np.concatenate([plain, plain | np.uint64(1 << 63)])


@pytest.mark.parametrize("rate", [*RATES, Fraction(1, 3), Fraction(1, 400)])
def test_the_first_16_bits_say_what_the_whole_word_says(rate):
    sampler, words = Sampler(rate), awkward_words(rate)
    ascending = np.array(sampler.head.ascending, dtype=np.int64)
    low, start = ((words & np.uint64(bits)).astype(np.int64) for bits in (2**63 - 1, (2**15 - 1) << 48))
    magnitude = count_above(ascending, low)
    inside = count_above(ascending, start - 1) - count_above(ascending, start + (2**48 - 1))
    clear = (inside == 0) & (magnitude < ascending.size)
    wanted = np.where(words >> np.uint64(63), -magnitude, magnitude)
    keep = magnitude < ascending.size  # what lies beyond the table asks for further words
    found = []
    for part in np.array_split(np.flatnonzero(keep), 20):
        entropy = Beginnings(words[part], clear[part])
        found += sampler.draw_array(part.size, entropy).tolist()
        assert len(entropy.pieces) == (1 if clear[part].all() else 0)
    assert found == wanted[keep].tolist()
    assert 0.5 < np.mean(clear) < 1.0


def count_above(ascending: np.ndarray, low: np.ndarray) -> np.ndarray:
    """How many thresholds lie above each number."""
    return ascending.size - np.searchsorted(ascending, low, side="right")


@pytest.mark.parametrize(
    ("rate", "kind"), [(Fraction(1), np.int8), (Fraction(1, 10), np.int16), (noise.MIN_RATE, np.int64)]
)
def test_bulk_draws_are_in_the_narrowest_type(rate, kind):
    assert noise.draw_narrow(rate, 200_000).dtype == kind


@pytest.mark.parametrize("drawn", [127, -127, 128, -128, 129])
def test_the_first_draw_beyond_the_narrow_type_widens_it(drawn, monkeypatch):
    sampler = Sampler(Fraction(1))
    monkeypatch.setattr(sampler, "_draw_rest", lambda first, entropy: np.full(first.size, drawn))
    found = sampler.draw_array(10, lambda size: bytes(size))  # zeros: the rest of the word is needed
    assert found.tolist() == [drawn] * 10
    assert found.dtype == (np.int8 if abs(drawn) < 128 else np.int64)


@pytest.mark.parametrize("place", [0, 70_000, 149_999])
def test_a_draw_that_is_too_wide_for_the_narrow_type_widens_it(place):
    """One word of zeros among 150,000: beyond the table, and four times beyond the next."""
    sampler = Sampler(Fraction(1))
    first = np.full(150_000, 0x7FFF, dtype=np.uint16)
    first[place] = 0x8000
    pieces = [first[start : start + inversion._CHUNK] for start in range(0, first.size, inversion._CHUNK)]
    rest = [0] * 10 + [2**63 - 1]  # every zero ties with a threshold below 2**-63, and a second one settles it

    def entropy(size: int) -> bytes:
        return rest.pop(0).to_bytes(8, sys.byteorder) if size == 8 else pieces.pop(0).tobytes()

    drawn = sampler.draw_array(first.size, entropy)
    assert drawn.dtype == np.int64
    assert drawn[place] == -(sampler.head.size + 4 * sampler.tail[1].size) < -128
    assert np.count_nonzero(drawn) == 1
    assert not rest


def piece(survival: int, index: int, pieces: int) -> int:
    """The index-th 64-bit piece after the first 63 bits of a probability known to 63 + 64 * pieces bits."""
    return survival >> 64 * (pieces - 1 - index) & (2**64 - 1)


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("rate", [*RATES, Fraction(1, 3)])
def test_a_word_beside_a_threshold_needs_no_more_bits(rate, sign):
    sampler = Sampler(rate)
    for k in (1, 2, 5):
        threshold = _survival.magnitude(rate, k, 63)[-1]
        assert faces(sampler, sign << 63 | threshold - 1)[0] == (-k if sign else k)
        assert faces(sampler, sign << 63 | threshold + 1)[0] == (1 - k if sign else k - 1)


@pytest.mark.long
@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("rate", [*RATES, Fraction(1, 3)])
def test_a_tie_is_settled_by_further_bits(rate, sign):
    sampler = Sampler(rate)
    for k, pieces in itertools.product((1, 2, 5), (1, 2, 3)):
        survival = _survival.magnitude(rate, k, 63 + 64 * pieces)[-1]
        word = sign << 63 | survival >> 64 * pieces
        equal = [piece(survival, i, pieces) for i in range(pieces - 1)]
        last = piece(survival, pieces - 1, pieces)
        assert 0 < last < 2**64 - 1
        below = faces(sampler, word, *equal, last - 1)[0]
        above = faces(sampler, word, *equal, last + 1)[0]
        assert (below, above) == ((-k, 1 - k) if sign else (k, k - 1))


def test_ties_far_below_the_first_word_are_settled_too():
    rate, pieces = Fraction(1000), 23
    survival = _survival.magnitude(rate, 1, 63 + 64 * pieces)[-1]
    words = [0, *(piece(survival, i, pieces) for i in range(pieces))]
    assert words[:22] == [0] * 22
    assert faces(Sampler(rate), *words[:-1], words[-1] - 1)[0] == 1
    assert faces(Sampler(rate), *words[:-1], words[-1] + 1)[0] == 0


# --- beyond the table ---


def test_what_lies_beyond_every_table_goes_on():
    """Words of zeros reach the ends of the tables, at a probability too small for any sample to show."""
    for rate in (Fraction(1, 10), Fraction(1), Fraction(5)):
        sampler = Sampler(rate)
        end = sampler.tail[1].size
        first = sampler.head.size
        assert faces(sampler, 0, 0, 2**63 - 1)[0] == first
        assert faces(sampler, 0, 0, 0, 0, 2**63 - 1)[0] == first + end
        assert faces(sampler, 1 << 63, 0, 0, 0, 0, 0, 2**63 - 1)[0] == -first - 2 * end


@pytest.mark.long
@pytest.mark.parametrize(("entries", "base"), [(2, 2), (3, 2), (5, 7)])
@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1), Fraction(5)])
def test_draws_beyond_a_small_table_follow_the_law(rate, entries, base):
    sampler = Sampler(rate, entries, base)
    assert sampler.head.size <= entries
    bulk = sampler.draw_array(10**6, os.urandom)
    assert min(chi_square(bulk, float(rate)), 6 * tails(bulk, float(rate))) > CRITICAL
    pure = np.array(sampler.draw(20_000, os.urandom))
    assert chi_square(pure, float(rate)) > CRITICAL
    if rate < 1:
        assert len(sampler.tail[0]) >= 3


@pytest.mark.long
@pytest.mark.parametrize("rate", [Fraction(1, 10**6), Fraction(1, 10**9), noise.MIN_RATE])
def test_tiny_rates_follow_the_law(rate):
    """Divided by its scale the noise is a Laplace variable, up to rounding far below what can be seen."""
    for draws in (noise.draw_narrow(rate, 10**6).astype(np.int64), np.array(noise.draw(rate, 20_000))):
        assert stats.kstest(draws * float(rate), stats.laplace.cdf).pvalue > CRITICAL
        for low in (2, 4096):  # the low digits are uniform
            observed = np.bincount(draws % low, minlength=low)
            assert stats.chisquare(observed).pvalue > CRITICAL or len(draws) < 50 * low


def survivals(table: inversion.Table, bits: int) -> list[Fraction]:
    return [Fraction(1), *(Fraction(value, 2**bits) for value in table._bounds(bits)[0]), Fraction(0)]


def test_digits_make_a_geometric_variable():
    """Enumerates the digits at their exact probabilities: the law of G from the tables really used."""
    rate, entries, base, bits = Fraction(1, 7), 4, 3, 400
    digits, last = Sampler(rate, entries, base).tail
    assert len(digits) >= 3
    law = {0: Fraction(1)}
    weight = 1
    for table in digits:
        steps = [a - b for a, b in itertools.pairwise(survivals(table, bits))]
        assert len(steps) == base
        law = {g + weight * j: p * q for g, p in law.items() for j, q in enumerate(steps)}
        weight *= base
    open_steps = [a - b for a, b in itertools.pairwise(survivals(last, bits))]
    whole = {}
    for rounds in range(4):
        again = open_steps[last.size] ** rounds
        for (g, p), j in itertools.product(law.items(), range(last.size)):
            whole[g + weight * (rounds * last.size + j)] = p * again * open_steps[j]
    with mpmath.workprec(500):
        alpha = mpmath.exp(-mpmath.mpf(1) / 7)
        assert sorted(whole) == list(range(4 * last.size * weight))
        for g, p in whole.items():
            exact = (1 - alpha) * alpha**g
            assert abs(mpmath.mpf(p.numerator) / p.denominator - exact) < mpmath.mpf(2) ** -380


def test_tables_stay_small():
    for rate in (noise.MIN_RATE, Fraction(1, 10**9), Fraction(1, 182), Fraction(1, 100), Fraction(10**6)):
        sampler = Sampler(rate)
        digits, last = sampler.tail
        assert max(table.size for table in (sampler.head, last, *digits)) <= 8192
        assert len(digits) <= 3


# --- the promise ---


def implemented_pmf(rate: Fraction, bits: int = 319) -> dict[int, Fraction]:
    """The law from the thresholds that the draws are compared with, refined to more bits."""
    steps = [a - b for a, b in itertools.pairwise(survivals(Sampler(rate).head, bits))][:-1]
    return {k * s: p / (2 if k else 1) for k, p in enumerate(steps) for s in (1, -1)}


def worst_ratio(law, x: tuple[int, ...], y: tuple[int, ...], outputs: range):
    """The largest P(report | x) / P(report | y) over all reports with entries in ``outputs``."""
    return max(
        math.prod((law(r - a) for r, a in zip(report, x, strict=True)), start=mpmath.mpf(1))
        / math.prod((law(r - b) for r, b in zip(report, y, strict=True)), start=mpmath.mpf(1))
        for report in itertools.product(outputs, repeat=len(x))
    )


@pytest.mark.long
@pytest.mark.parametrize("source", ["formula", "thresholds"])
@pytest.mark.parametrize(("epsilon", "precision"), [(1, 2), (Fraction(3, 2), 3), (4, 1)])
def test_the_bound_is_attained_and_not_exceeded(epsilon, precision, source):
    rate = Fraction(epsilon) / precision
    with mpmath.workprec(300):
        alpha = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
        bound = mpmath.exp(mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator)
        if source == "formula":
            law = {k: (1 - alpha) / (1 + alpha) * alpha ** abs(k) for k in range(-20, 21)}.__getitem__
        else:
            exact = implemented_pmf(rate)
            law = {k: mpmath.mpf(exact[k].numerator) / exact[k].denominator for k in range(-8, 9)}.__getitem__
        slack = mpmath.mpf(2) ** -150
        for x, y in itertools.product(itertools.product(range(4), repeat=2), repeat=2):
            distance = sum(abs(a - b) for a, b in zip(x, y, strict=True))
            ratio = worst_ratio(law, x, y, range(-3, 6))
            assert abs(ratio / alpha**-distance - 1) < slack
            if distance <= precision:
                assert ratio < bound * (1 + slack)
            else:
                assert ratio > bound * (1 + slack)
            if distance == precision:
                assert ratio > bound * (1 - slack)


# --- the referee ---


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1), Fraction(2)])
def test_opendp_draws_the_same_law(rate):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    size = 100_000
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = np.array(dp.m.make_laplace(*space, scale=float(1 / rate))([0] * size))

    def p_value(ours: np.ndarray) -> float:
        edge = int(4 / rate) + 1
        table = np.stack([np.bincount(np.clip(x, -edge, edge) + edge, minlength=2 * edge + 1) for x in (ours, theirs)])
        return stats.chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue

    assert chi_square(theirs, float(rate)) > CRITICAL
    assert p_value(noise.draw_narrow(rate, size).astype(np.int64)) > CRITICAL
    assert p_value(np.array(noise.draw(rate, size))) > CRITICAL
    assert p_value(seeded(float(rate) * 1.1, size)) < CRITICAL


# --- what is refused ---


@pytest.mark.parametrize("face", [noise.draw, noise.draw_narrow])
def test_bad_arguments(face):
    for bad in (0.5, "1", True, None):
        with pytest.raises(TypeError, match=r"^rate must be a Fraction, got "):
            face(bad, 1)
    for bad in (Fraction(0), Fraction(-1), noise.MIN_RATE / 2):
        with pytest.raises(ValueError, match=r"^rate must be at least 2\*\*-40, got "):
            face(bad, 1)
    with pytest.raises(ValueError, match=r"^size must not be negative, got -1$"):
        face(Fraction(1), -1)
    with pytest.raises(TypeError):
        face(Fraction(1), 1, seed=1)


def test_noise_that_would_not_fit_is_refused_and_never_wraps(monkeypatch):
    assert noise.MAX_NOISE == 2**62
    monkeypatch.setattr(noise, "MAX_NOISE", 2**30)
    for face in (noise.draw, noise.draw_narrow):
        with pytest.raises(OverflowError, match=r"^noise must stay below 2\*\*62, got a larger draw$"):
            face(noise.MIN_RATE, 10)


def test_huge_rates_leave_counts_alone():
    assert noise.draw(Fraction(1000), 1000) == [0] * 1000
    assert not noise.draw_narrow(Fraction(10**30), 1000).any()
