"""What the benchmark of dispersions takes and leaves out, with a stand-in for a fit."""

import functools
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.inference.diagnostics import State

SOURCE = Path(__file__).parents[2] / "benchmarks" / "dispersion.py"
SPEC = importlib.util.spec_from_file_location("dispersion", SOURCE)
dispersion = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(dispersion)


def test_every_mechanism_has_its_cases_and_exact_counts_are_one():
    cases = dispersion.cases()
    assert len(cases) == 12 * len(dispersion.MECHANISMS) + 4
    *_, observe = cases[dispersion.EXACT]
    assert observe(np.array([[1, 2]]), None).kind == cv.ExactCounts([[1, 2]]).kind == "exact"


def test_a_run_that_was_stopped_goes_on_where_its_file_ends(tmp_path, monkeypatch, capsys):
    path, asked = tmp_path / "lines.csv", []

    def measured(n_processes, left):
        assert n_processes == 2
        for name, seed in left:
            asked.append((name, seed))
            yield [name, seed, 0.9, 0.8, 0.5, 0.5, 1.0, 1.0 + seed, 2.0, "safe to report"]
            assert pd.read_csv(path).iloc[-1]["seed"] == seed

    monkeypatch.setattr(dispersion, "measured", measured)
    for tables in ("1", "2"):
        monkeypatch.setattr(sys, "argv", ["-", str(path), "exact", "--tables", tables, "--processes", "2"])
        dispersion.main()
    assert asked == [("exact", 0), ("exact", 1)]
    assert capsys.readouterr().out.splitlines()[-1].split() == [
        "exact",
        "0.9",
        "0.8",
        "0.5",
        "0.5",
        "1.0",
        "1.5",
        "2.0",
    ]


@pytest.mark.parametrize("case", [dispersion.EXACT, "p 0.7 by column, mean 5, scale 1"])
def test_a_line_has_what_its_columns_say(case, monkeypatch):
    monkeypatch.setattr(dispersion, "fitted", functools.partial(dispersion.fitted, chains=2, tune=15, draws=15))
    line = dict(zip(dispersion.COLUMNS, dispersion.measure(case, 3), strict=True))
    assert (line["case"], line["seed"], line["state"]) == (case, 3, State.UNSAFE)
    assert 0.0 < line["p"] < 1.0
    assert min(line["r_hat"], line["nested"]) > 0.9
    if case != dispersion.EXACT:
        assert 0.5 < min(line["covered"], line["covered_from_truth"]) < 1.0
        assert line["p"] == pytest.approx(line["p_from_truth"], abs=0.2)
