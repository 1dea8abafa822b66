"""The benchmark of learned shapes, at a small size."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import countveil as cv

pytestmark = pytest.mark.long

SOURCE = Path(__file__).parents[2] / "benchmarks" / "shapes.py"


@pytest.fixture
def shapes(monkeypatch):
    monkeypatch.syspath_prepend(str(SOURCE.parent))
    spec = importlib.util.spec_from_file_location("shapes", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(
        module, "SAMPLING", {"chains": 2, "tune": 3, "draws": 4, "threads": 1, "progress": False}
    )
    return module


def test_a_row_for_either_prior(shapes, capsys):
    counts = np.random.default_rng(1).poisson(1.0, (12, 9))
    corpus = shapes.likelihoods.Corpus(counts, None, cv.TopicModel, 2)
    shapes.compare("small", corpus, 2, 1.0, 2)
    fixed, learned = (line.split(" | ") for line in capsys.readouterr().out.splitlines())
    assert (fixed[2], learned[2]) == ("shape .1", "learned")
    assert "sd" in learned[3]
    assert learned[-1].count(",") == 1


def test_coverage_of_planted_topics(shapes, monkeypatch):
    for name, value in {"LONG": {}, "ROWS": 20, "WORDS": 15, "TOPICS": 2, "TOP": 3}.items():
        monkeypatch.setattr(shapes, name, value)
    topics, data = shapes.planted(1)
    assert topics.shape == (2, 15)
    assert data.shape == (20, 15)
    inside, above, share = shapes.coverage(1, ("learned", 0.1))
    assert 0.0 <= inside <= 1.0 - above
    assert share > 0.0
