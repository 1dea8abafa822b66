"""Words that do not decide are settled by further bits, and bulk draws look up what single ones do."""

import math
import os
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.privacy.scripted import Script

from countveil.privacy import _survival, inversion
from countveil.privacy.inversion import Table

pytestmark = pytest.mark.long

CRITICAL = 1e-7


def around(floors: list[int], slack: int = 0) -> tuple[list[int], list[int]]:
    """Bounds of the probabilities with these floors, wider than they need be by ``slack`` on both sides."""
    return [floor - slack for floor in floors], [floor + 1 + slack for floor in floors]


def test_random_words_have_63_bits():
    content = bytes(range(248, 256)) + b"\xff" * 8
    want = [int.from_bytes(content[i : i + 8], sys.byteorder) % 2**63 for i in (0, 8)]
    assert inversion.random_words(2, lambda size: content).tolist() == want
    assert [inversion.random_word(lambda size, i=i: content[i : i + size]) for i in (0, 8)] == want


@pytest.mark.parametrize("slack", [0, 3])
def test_a_coarse_table_with_settled_ties_is_still_exact(monkeypatch, slack):
    """With 3-bit words almost every draw ties, so that the law rests on settling; unsettled, it is wrong."""
    monkeypatch.setattr(inversion, "_BITS", 3)
    rate, size = Fraction(1, 2), 20_000
    coarse = Table(lambda bits: around(_survival.geometric(rate, 60, bits), slack))

    def draw() -> int:
        return coarse.look_up(os.urandom(1)[0] & 7, os.urandom)

    def p_value(draws: np.ndarray) -> float:
        cells = np.arange(16)
        expected = size * -math.expm1(-0.5) * np.exp(-0.5 * cells)
        observed = np.bincount(np.minimum(draws, 16), minlength=17)
        expected = np.append(expected, size * math.exp(-8))
        return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), 16))

    assert p_value(np.array([draw() for _ in range(size)])) > CRITICAL
    monkeypatch.setattr(Table, "settle", lambda self, word, entropy: self.size - sum(t <= word for t in self.ascending))
    assert p_value(np.array([draw() for _ in range(size)])) < CRITICAL


def test_the_guide_agrees_with_the_search_at_the_edges_of_its_cells():
    cell = 1 << (63 - inversion._GUIDE_BITS)
    edges = {k * cell + d for k in (1, 2, 9, 2**15 - 1) for d in (-1, 0, 1)}
    thresholds = sorted(edges | {0, 2**63 - 1}, reverse=True)
    words = sorted({t + d for t in thresholds for d in (-2, -1, 0, 1, 2) if 0 <= t + d < 2**63})
    for half in (0, 2**64 - 1):
        table = Table(lambda bits: around([(t << bits - 63) + (1 << bits - 63 >> 1) for t in thresholds]))
        want = [table.look_up(word, Script(half)) for word in words]
        got = table.look_up_array(np.array(words), Script(*[half] * len(thresholds)))
        assert got.tolist() == want
        assert len(set(want)) == len(thresholds)
