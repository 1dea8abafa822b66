"""``countveil forecast``: a table of the steps to come."""

import shutil

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from tests.commands import fails, run

QUICK = {"draws": 8, "tune": 8, "chains": 2, "seed": 1, "threads": 1, "progress": False}
MONTHS = [str(month) for month in pd.period_range("2001-11", periods=12, freq="M")]


def data_of_release(counts):
    table = pd.DataFrame(counts, index=MONTHS, columns=["a", "b", "=c"])
    return cv.simulate_release(table, cv.PrivacyLevel(1, 2), np.random.default_rng(3))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with fits of months."""
    folder = tmp_path_factory.mktemp("made")
    counts = np.random.default_rng(1).poisson(4.0, (12, 3))
    data = cv.PrivatizedCounts(pd.DataFrame(counts, index=MONTHS, columns=["a", "b", "=c"]), 0.3)
    cv.DynamicModel(2, **QUICK).fit(data).save(folder / "fit.nc")
    data_of_release(counts).save(folder / "months.npz")
    cv.DynamicModel(2, **QUICK).fit(data_of_release(counts)).save(folder / "months.nc")
    cv.DynamicModel(2, **QUICK).fit(cv.NaiveCounts(counts)).save(folder / "naive.nc")
    cv.TensorModel(2, **QUICK).fit(data).save(folder / "tensor.nc")
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A working directory with these."""
    copy = shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(copy)
    return copy


def test_the_table_is_that_of_the_fit(here):
    said = run("forecast", "fit.nc", "-o", "next.csv", "--steps", "2").stdout
    assert "Wrote next.csv: 6 cells in 2 time steps." in said
    one = run("forecast", "fit.nc", "-o", "f.csv")
    assert "Wrote f.csv: 3 cells in 1 time step." in one.stdout
    assert "warning: these forecasts are not safe to report." in one.stderr
    found = pd.read_csv("next.csv")
    assert list(found["time"]) == ["2002-11"] * 3 + ["2002-12"] * 3
    assert found["item"][2] != "=c"  # a spreadsheet would run it
    expected = cv.DynamicModel.load("fit.nc").forecast(2).table()
    columns = ["mean", "median", "lower", "upper"]
    np.testing.assert_allclose(found[columns], expected[columns])
    run("forecast", "fit.nc", "-o", "next.csv", "--steps", "2", "--seed", "3", "--draws", "5", "--force")
    assert not np.allclose(pd.read_csv("next.csv")["mean"], expected["mean"])


def test_a_naive_fit_has_no_intervals(here):
    said = run("forecast", "naive.nc", "-o", "next.csv").stdout
    assert "No intervals: those of a naive fit do not hold the truth." in " ".join(said.split())
    assert list(pd.read_csv("next.csv").columns) == ["time", "item", "mean", "median"]


def test_what_cannot_be_forecast_is_refused_in_a_line(here):
    assert "tensor.nc must hold a fit of DynamicModel, got one of TensorModel" in fails(
        "forecast", "tensor.nc", "-o", "n.csv"
    )
    assert "output must end in .csv" in fails("forecast", "fit.nc", "-o", "next.txt")
    assert "interval must be" in fails("forecast", "fit.nc", "-o", "next.csv", "--interval", "2")
    (here / "next.csv").write_text("precious")
    assert "--force" in fails("forecast", "fit.nc", "-o", "next.csv")
    assert "nothing.nc" in fails("forecast", "nothing.nc", "-o", "n.csv")


def test_a_check_says_which_forecast_to_use(here):
    asked = ["forecast", "months.nc", "-o", "next.csv", "--check", "2"]
    assert "check must be from 2 to 9" in fails(*asked[:-1], "10", "--release", "months.npz")
    assert not (here / "next.csv").exists()
    said = " ".join(run(*asked, "--release", "months.npz").stdout.split())
    assert "mean of the last three" in said
    assert "Use the " in said or "No clear difference between the model and the " in said
    assert "--check 12 --release months.npz" in fails(*asked, "--force")
