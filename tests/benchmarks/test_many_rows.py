"""The benchmark of many rows, at a small size."""

import importlib.util
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).parents[2] / "benchmarks" / "many_rows.py"


def test_it_finds_the_topics_of_a_few_rows(monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("many_rows", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, value in {"COLUMNS": 30, "TOPICS": 3, "AT_ONCE": 170}.items():
        monkeypatch.setattr(module, name, value)
    counts, topics = module.simulated(400, np.random.default_rng(1))
    assert counts.shape == (400, 30)
    assert abs(counts.sum() / 400 - 50) < 2
    assert topics.shape == (3, 30)
    module.main(400, 5)
    said = capsys.readouterr().out
    assert "400 x 30 counts" in said
    assert "keep='summary'" in said
    assert float(said.split("true topics ")[1].split(";")[0]) < 0.15
