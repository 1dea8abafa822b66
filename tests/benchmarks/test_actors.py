"""The measurement of effects in networks runs, at a tiny size."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

SOURCE = Path(__file__).parents[2] / "benchmarks" / "actors.py"


def test_it_prints_coverage_and_goes_on_where_it_was(monkeypatch, capsys, tmp_path):
    spec = importlib.util.spec_from_file_location("actors", SOURCE)
    actors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(actors)
    monkeypatch.setattr(actors, "ACTORS", 12)
    monkeypatch.setattr(actors, "SWEEPS", (6, 6))
    monkeypatch.setattr(actors, "FOUND", 0.0)
    kept = tmp_path / "kept.jsonl"
    actors.coverage(2, 2, kept)
    first = kept.read_text()
    actors.coverage(3, 2, kept)
    assert kept.read_text().startswith(first)
    assert len(kept.read_text().splitlines()) == 5  # the naive way has a quarter of the studies
    said = capsys.readouterr().out
    assert said.count("of 4 intervals of 95% hold the truth") == 6
    assert said.count("of 6 intervals of 95% hold the truth") == 2
    assert said.count("all communities found") == 4
