"""What the benchmark of intervals plants and prints, without a fit."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parents[2] / "benchmarks" / "intervals.py"
SPEC = importlib.util.spec_from_file_location("intervals", SOURCE)
intervals = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(intervals)


def test_cell_keys_are_right_on_average():
    table = np.array([[float(p) for p in row] for row in intervals.cell_keys(12).probabilities])
    assert table.sum(axis=1) == pytest.approx(1.0)
    assert table @ np.arange(table.shape[1]) == pytest.approx(np.arange(13.0))


@pytest.mark.parametrize("name", ["table", "suppression of zeros too", "two-sided geometric"])
def test_every_mechanism_plants_reports_that_its_counts_allow(name, monkeypatch):
    monkeypatch.setattr(intervals, "DOCUMENTS", 20)
    data, counts, unknown, *_ = intervals.planted(1, 1.0, 200.0, intervals.MECHANISMS[name])
    assert data.shape == counts.shape == unknown.shape
    assert unknown.any()


def test_standard_errors_are_those_of_data_sets():
    shares = [np.array([1, 1, 0, 1]), np.array([1, 0, 0, 1])]
    assert intervals.of_all(shares) == "0.625 (se 0.125) of 8"
    assert intervals.of_all(shares[:1]) == "0.750 of 4"
