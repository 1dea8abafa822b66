"""The benchmark of a billion counts, at a small size."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import countveil as cv

SOURCE = Path(__file__).parents[2] / "benchmarks" / "billion.py"
spec = importlib.util.spec_from_file_location("billion", SOURCE)
billion = importlib.util.module_from_spec(spec)
spec.loader.exec_module(billion)

CASE = billion.Case(rows=500, columns=300, topics=4, tokens=60.0, rows_per_file=128, sweeps=4, threads=2)


def test_counts_are_made_up_as_said():
    made = list(billion.true_counts(CASE))
    parts = [counts.toarray() for counts, _ in made]
    for part, (_, tokens) in zip(parts, made, strict=True):
        np.testing.assert_array_equal(part.sum(axis=1), tokens.sum(axis=1))
    assert [len(part) for part in parts] == [128, 128, 128, 116]
    counts = np.concatenate(parts)
    total = counts.sum(axis=1)  # negative binomial: mean 60, variance 60 + 60^2 / 4
    assert abs(total.mean() - 60) < 5 * np.sqrt((60 + 900) / 500)
    words = counts.sum(axis=0) / counts.sum()
    assert words[:30].sum() > words[-30:].sum()
    again = np.concatenate([part.toarray() for part, _ in billion.true_counts(CASE)])
    np.testing.assert_array_equal(counts, again)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_every_stage_runs(tmp_path):
    written = billion.privatize(CASE, tmp_path / "parts")
    assert written["files"] == 4
    assert 0 < written["of which making the counts up"] < written["seconds"]
    files = cv.ReleaseFiles(tmp_path / "parts")
    assert files.shape == (500, 300)
    assert not files.provenance.simulated
    sampled, learned = billion.sweeps(CASE, tmp_path / "parts"), billion.svi(CASE, tmp_path / "parts")
    true = billion.from_truth(CASE, tmp_path / "parts")
    assert len(sampled["seconds of each sweep (of processors)"].split(", ")) == 4
    assert sampled["positive reports"] == files.unpacked().reports.size
    assert true["topic error of the start"] < 1e-9
    for found in (sampled, true):
        assert true["topic error of the mean topics"] <= found["topic error of the mean topics"] < 1.0
        assert 0.0 < found["spread of the topics"] < 1.0
    assert 0.0 <= learned["topic error"] < 1.0
    assert learned["signal share"] > 0.0
    assert billion.memory()["GB at the peak, all"] > 0.0
