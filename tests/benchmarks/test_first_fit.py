"""What the benchmark of first fits takes, plants and sums up, with a stand-in for a fit."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr

import countveil as cv

SOURCE = Path(__file__).parents[2] / "benchmarks" / "first_fit.py"
SPEC = importlib.util.spec_from_file_location("first_fit", SOURCE)
first_fit = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(first_fit)


def test_the_largest_rows_and_columns_keep_their_order():
    counts = sp.csr_array([[0, 1, 0], [5, 0, 2], [0, 3, 9]])
    assert first_fit.largest(counts, 2, 2).tolist() == [[5, 2], [0, 9]]


def test_self_loops_of_networks_are_not_seen():
    counts = np.full((30, 30), 4)
    _, reports, seen = first_fit.release(counts, cv.BlockModel, 1.0, np.random.default_rng(1))
    assert (seen == ~np.eye(30, dtype=bool)).all()
    assert (reports - counts).var() == pytest.approx(1.84, rel=0.3)  # 2 alpha / (1 - alpha)^2
    assert first_fit.release(counts, cv.TopicModel, 1.0, np.random.default_rng(1))[2].all()


def test_sums_outside_their_printed_intervals_are_counted_on_their_side():
    table = {"doc": (0, 9), "word": (3, 3)}  # rows sum to 5, 9 without the unseen cell, and columns to 3, 11
    fit = SimpleNamespace(
        _reader=SimpleNamespace(axes={"doc": 0, "word": 1}),
        counts_table=lambda data, by, interval: pd.DataFrame({"lower": table[by], "upper": [9, 10]}),
    )
    counts, seen = np.array([[3, 2], [8, 9]]), np.array([[True, True], [False, True]])
    assert list(first_fit.missed_sums(fit, None, counts, seen)) == [0.0, 0.0, 0.0, 0.5]
    assert list(first_fit.missed_sums(fit, None, counts + 1, seen)) == [0.0, 0.0, 0.0, 0.5]
    assert list(first_fit.missed_sums(fit, None, counts - 1, seen)) == [0.5, 0.0, 0.5, 0.0]


@pytest.mark.parametrize("mean", [6.0, 4.0])
def test_the_sum_of_all_counts_has_a_place_among_drawn_ones(mean):
    rng = np.random.default_rng(2)
    fit = SimpleNamespace(predict_counts=lambda n, rng, X: xr.DataArray(rng.poisson(6.0, (n, 400, 5))))
    counts = rng.poisson(mean, (400, 5))
    place = first_fit.place_of_total(fit, None, counts, np.ones((400, 5), bool), rng)
    assert (place < 0.01) == (mean < 6.0)


@pytest.mark.parametrize(
    ("verdict", "misfit", "reason"),
    [
        ("averages over 12 chains are not steady", "", "nested"),
        ("The sum of the true counts falls short", "The fit does not explain the sums of its reports", "total sums"),
        ("The topics cannot be found: more than half", "", "undetermined"),
    ],
)
def test_reasons_are_those_of_the_verdict(verdict, misfit, reason):
    mechanism = SimpleNamespace(found=(), misfits=(misfit,))
    found = SimpleNamespace(state="not safe yet", verdict=verdict, mechanism=mechanism)
    assert first_fit.reason_of(found) == reason
    assert first_fit.reason_of(SimpleNamespace(state="safe to report")) == ""


def test_a_summary_has_shares_inside_intervals():
    row = dict.fromkeys(first_fit.COLUMNS, 0.0) | {"data": "a", "setting": "default", "level": 1.0}
    row |= {"state": "safe to report", "rows_above": 0.2, "columns_below": 0.05, "total_place": 0.97}
    changed = {"state": "not safe yet", "total_place": 0.5, "total_held": 1}
    found = first_fit.summary(pd.DataFrame([row, row | changed])).iloc[0]
    assert found["fits"] == 2
    assert found["safe"] == found["total"] == found["drawn_total"] == 0.5
    assert found["rows"] == pytest.approx(0.8)
    assert found["columns"] == pytest.approx(0.95)
