"""``countveil export``: every table of a fit as a .csv."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from tests.commands import fails, run

pytestmark = pytest.mark.long


def test_every_table_is_written_and_nothing_is_replaced_unasked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(3.0, (7, 5)), 0.3)
    options = {"chains": 2, "draws": 8, "tune": 4, "seed": 1, "threads": 1, "progress": False}
    fit = cv.TopicModel(2, **options).fit(data)
    fit.save("f.nc")
    said = run("export", "f.nc", "tables").stdout
    for name, table in fit.tables.items():
        assert f"Wrote tables/{name}.csv." in said
        assert len(pd.read_csv(tmp_path / "tables" / f"{name}.csv")) == len(table)
    assert "choose another folder, or force=True (--force) to replace" in fails("export", "f.nc", "tables")
    run("export", "f.nc", "tables", "--force")
    assert "must be a directory for the tables" in fails("export", "f.nc", "f.nc")
