"""The measurement of effects runs, at a tiny size."""

import importlib.util
import json
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "benchmarks" / "effects.py"


@pytest.mark.long
def test_it_prints_coverage_and_times_and_goes_on_where_it_was(monkeypatch, capsys, tmp_path):
    spec = importlib.util.spec_from_file_location("effects", SOURCE)
    effects = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(effects)
    monkeypatch.setattr(effects, "D", 24)
    monkeypatch.setattr(effects, "V", 12)
    monkeypatch.setattr(effects, "SWEEPS", (6, 6))
    kept = tmp_path / "kept.jsonl"
    effects.coverage(2, 2, kept)
    first = kept.read_text().splitlines()
    assert [(each["seed"], each["way"]) for each in map(json.loads, first)] == [
        (0, effects.OURS),
        (0, effects.NAIVE),
        (1, effects.OURS),
        (1, effects.NAIVE),
    ]
    capsys.readouterr()
    effects.coverage(10, 2, kept)
    assert kept.read_text().splitlines()[:4] == first
    assert len(kept.read_text().splitlines()) == 14
    effects.sweeps(3, (12, 8))
    said = capsys.readouterr().out
    assert said.count("of 10 intervals of 95% hold the truth") == 2  # of either kind of studies
    assert said.count("of 20 intervals of 95% hold the truth") == 1
    assert said.count("of 4 intervals of 95% hold the truth") == 2  # by the naive way
    assert said.count("of 8 intervals of 95% hold the truth") == 1
    assert "without covariates" in said


def test_what_an_interval_says_is_held_against_the_truth():
    spec = importlib.util.spec_from_file_location("effects", SOURCE)
    effects = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(effects)
    found = effects.Found([0.1, -0.1], [0.0, -0.3], [0.392, 0.092], [0.4, 0.0])
    assert found.inside().tolist() == [0.0, 1.0]
    assert found.errors().tolist() == [-0.30000000000000004, -0.1]
    assert found.spreads().round(6).tolist() == [0.1, 0.1]
    said = effects.in_words([found, found])
    assert said.startswith("50.0% of 4 intervals of 95% hold the truth (standard error 0.0)")
    assert said.endswith("error 0.2236, by the intervals 0.1000")
