"""The benchmark of noise levels that reports contradict, at a small size."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parents[2] / "benchmarks" / "levels.py"


@pytest.fixture
def levels(monkeypatch):
    spec = importlib.util.spec_from_file_location("levels", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LEVELS", (1.0,))
    monkeypatch.setattr(module, "MEANS", (0.05,))
    return module


def test_wrong_levels_are_doubted_and_right_ones_are_not(levels, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["levels.py", "5"])
    levels.main()
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows[0][2:] == ["signed", "0.0%", "100.0%", "100.0%"]
    assert rows[1][2:4] == ["truncated", "0.0%"]
    assert rows[1][5] == "0.0%"


def test_shares_are_of_the_releases(levels, monkeypatch):
    answers = iter([1, None, 1, 1, None, None, 1, None])
    monkeypatch.setattr(levels, "contradiction_of", lambda data: next(answers))
    np.testing.assert_array_equal(levels.doubted(1.0, 0.05, 1.0, 4), [0.75, 0.25])
