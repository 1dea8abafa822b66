"""``countveil relabel``: how files of names are read is tested in tests/fit/test_naming.py."""

import json

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit import load
from countveil.fit.naming import leading
from tests.commands import fails, run


@pytest.fixture
def fit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = pd.DataFrame(np.random.default_rng(1).poisson(2.0, (8, 5)), columns=list("abcde"))
    found = cv.TopicModel(2, draws=8, tune=8, chains=1, seed=1, threads=1).fit(
        cv.privatize(counts, cv.PrivacyLevel(1, 1))
    )
    found.save("fit.nc")
    return found


def test_names_of_a_file_are_kept_in_the_file_of_the_fit(fit, tmp_path):
    leaders = leading(fit, "word")
    names = {"topic": {"1": {"leading": leaders[1], "name": "trade"}}}
    (tmp_path / "names.json").write_text(json.dumps(names))
    said = run("relabel", "fit.nc", "names.json").stdout
    assert "topic 1: trade" in said
    found = load("fit.nc")
    assert found._reader.names_of() == {1: "trade"}
    pd.testing.assert_frame_equal(found.topics().drop(columns="name"), fit.topics())
    names["topic"]["1"] |= {"leading": "x, y, z", "name": "war"}
    (tmp_path / "other.json").write_text(json.dumps(names))
    assert "names must be from this fit, got topic '1' led by 'x, y, z'" in fails("relabel", "fit.nc", "other.json")
    assert load("fit.nc")._reader.names_of() == {1: "trade"}
