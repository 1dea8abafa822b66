"""The usual methods that the benchmark of hidden deaths compares fits with."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def exposure(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    return import_module("exposure")


def test_expected_counts_meet_exact_totals(exposure):
    counts, people = exposure.simulated(1)
    values = np.where(counts < exposure.HIDDEN, np.nan, counts)
    found = exposure.expected(values, exposure.fitted_to_totals(values, people, counts))
    assert found.sum(axis=0) == pytest.approx(counts.sum(axis=0), abs=1e-3)
    assert found.sum(axis=1) == pytest.approx(counts.sum(axis=1), abs=0.5)


def test_scores_are_those_of_the_laws(exposure):
    law = np.tile([0.04, 0.06, 0.4, 0.5, 0, 0, 0, 0, 0, 0], (4000, 1))
    true = np.random.default_rng(2).choice(10, 4000, p=law[0])
    error, score, inside = exposure.scores(law, true)
    assert error == pytest.approx(np.abs(true - 2).mean())
    assert score == pytest.approx((law[0, :4] * np.log(law[0, :4])).sum(), abs=0.05)
    assert inside == pytest.approx(0.9, abs=4 * 0.3 / 4000**0.5)
