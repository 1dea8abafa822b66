"""The benchmark of layers: the same cells are masked in all fits, and scores are of these cells alone."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from countveil.laws.counts import POISSON

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def depth(monkeypatch):
    """The program, which imports its neighbour."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    spec = importlib.util.spec_from_file_location("depth", FOLDER / "depth.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_tenth_of_the_cells_is_masked_by_the_draw(depth):
    counts = np.full((60, 50), 3)
    (one, mask), (other, again) = (depth.masked(counts, 1.0, 4) for _ in range(2))
    np.testing.assert_array_equal(mask, again)
    np.testing.assert_array_equal(one.reports, other.reports)
    assert mask.mean() == pytest.approx(0.1, abs=0.02)
    assert one.n_masked == mask.sum()
    assert (depth.masked(counts, 1.0, 5)[1] != mask).any()


def test_scores_are_of_masked_cells(depth):
    rng = np.random.default_rng(1)
    counts, mask = rng.poisson(2.0, (5, 4)), rng.random((5, 4)) < 0.5
    draws = [((rng.gamma(2.0, size=(5, 2)), rng.gamma(2.0, size=(4, 2))), ()) for _ in range(3)]
    fit = SimpleNamespace(
        _reader=SimpleNamespace(even_draws=lambda most: iter(draws)), model_=SimpleNamespace(likelihood=POISSON)
    )
    chances = np.mean([stats.poisson.pmf(counts, theta @ phi.T) for (theta, phi), _ in draws], axis=0)
    wanted = np.where(mask, np.log(chances), 0.0).sum(axis=1)
    np.testing.assert_allclose(depth.scores(fit, counts, mask), wanted)
