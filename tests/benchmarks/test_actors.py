"""The measurement of effects in networks runs, at a tiny size."""

import importlib.util
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "benchmarks" / "actors.py"


def test_it_prints_coverage(monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("actors", SOURCE)
    actors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(actors)
    monkeypatch.setattr(actors, "ACTORS", 12)
    monkeypatch.setattr(actors, "SWEEPS", (6, 6))
    actors.coverage(2, 2)
    assert capsys.readouterr().out.count("of 4 intervals of 95% hold the truth") == 2
