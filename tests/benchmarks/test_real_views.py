"""Real page views: how the file is read, which cell has which mechanism, and what is printed, without a fit."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SOURCE = Path(__file__).parents[2] / "benchmarks" / "real_views.py"
SPEC = importlib.util.spec_from_file_location("real_views", SOURCE)
real = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(real)

DAYS = pd.date_range("2023-01-30", periods=14)  # a week before the change and a week since


@pytest.fixture
def file(tmp_path):
    rows = [
        (country, f"{language}.wikipedia", 1, title, day, 500 if title == "Fever" else 700)
        for country, language, title in (("US", "en", "Fever"), ("NA", "af", "Koors"))
        for day in DAYS.delete(3)
    ]
    rows.append(("FR", "fr.wikipedia", 1, "Rare", DAYS[0], 451))
    names = ["iso2", "project", "page_id", "page_title", "date", "pageviews"]
    path = tmp_path / "views.csv"
    pd.DataFrame(rows, columns=names).to_csv(path, index=False)
    return str(path)


def test_series_of_one_side_are_left_out_and_days_without_rows_are_missing(file):
    views, missing = real.read(file, "2023-01-30", 2, 1)
    assert list(views.index) == ["NA af: Koors", "US en: Fever"]  # NA is a country, no missing value
    assert views.shape == (2, 14)
    assert missing.nonzero()[0].tolist() == [3]
    assert views.isna().to_numpy()[:, missing].all()


def test_mechanisms_go_by_day_and_country(file):
    views, _ = real.read(file, "2023-01-30", 2, 1)
    hidden = np.zeros(views.shape, dtype=bool)
    hidden[0, [0, -1]] = True
    elsewhere, states = real.mechanisms(views, 18.2, hidden)
    assert set(states) == {real.OLD}  # until September
    assert set(elsewhere[:7]) == {real.OLD}  # a value below 450 was not there before the change
    assert {(each.above, float(each.mechanism.sigma)) for each in elsewhere[7:-1]} == {(89, 18.2)}
    assert elsewhere[-1].above == 449


def test_what_is_printed(file, capsys, tmp_path):
    views, missing = real.read(file, "2023-01-30", 2, 1)
    views.iloc[0, [0, -1]] = np.nan
    hidden = np.zeros(views.shape, dtype=bool)
    hidden[1, 7:] = True
    tables = np.random.default_rng(1).poisson(600.0, (20, *views.shape))
    by_sigma = {10.0: tables, 18.2: tables}
    real.by_country(views, missing, by_sigma, 1)
    real.of_absent(views, missing, tables)
    real.found_again(views, hidden, tables, tables)
    printed = capsys.readouterr().out
    assert "| US | 1 | 500 | 500 | 10.0 | " in printed  # the missing day does not count as one
    assert "| 450 | 19 | 1 | " in printed  # of cells, absent
    assert "| 90 | 7 | 1 | " in printed  # the United States had the old mechanism still
    assert "| all | 0 | 0 | 0 | 0 (0 to 0) | 0 (0 to 0) |" in printed
    real.draw_figure(views, missing, by_sigma, str(tmp_path / "figure.png"))
    assert (tmp_path / "figure.png").stat().st_size > 1000
