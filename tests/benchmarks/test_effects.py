"""The measurement of effects runs, at a tiny size."""

import importlib.util
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "benchmarks" / "effects.py"


def test_it_prints_coverage_and_times(monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("effects", SOURCE)
    effects = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(effects)
    monkeypatch.setattr(effects, "D", 24)
    monkeypatch.setattr(effects, "V", 12)
    monkeypatch.setattr(effects, "SWEEPS", (6, 6))
    effects.coverage(4, 2)
    effects.sweeps(3, (12, 8))
    said = capsys.readouterr().out
    assert said.count("of 4 intervals of 95% hold the truth") == 4
    assert said.count("of 8 intervals of 95% hold the truth") == 2
    assert "without covariates" in said
