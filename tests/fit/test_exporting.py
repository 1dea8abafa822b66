"""All tables of a fit, in memory and as files."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit.documents import Documents
from countveil.privacy._text import cell

QUICK = {"chains": 2, "draws": 8, "tune": 8, "seed": 1, "threads": 1, "progress": False}
OF_TOPICS = [
    "topics", "topics_by_word", "totals", "documents", "topic_correlations", "diagnostics", "chains", "fit",
]  # fmt: skip


@pytest.fixture(scope="module")
def fit():
    reports, words = np.random.default_rng(1).poisson(3.0, (7, 5)), ["tax", "=1+1", "b", "c", "d"]
    data = cv.PrivatizedCounts(reports, 0.3, column_labels=words)
    return cv.TopicModel(3, likelihood="poisson", **QUICK).fit(data).parts.relabel({0: "trade"})


def test_tables_are_those_of_the_methods(fit):
    tables = fit.tables
    assert list(tables) == OF_TOPICS
    assert all(name in tables for name in OF_TOPICS)
    assert "magic" not in tables
    pd.testing.assert_frame_equal(tables["topics_by_word"], fit.topics(5))
    pd.testing.assert_frame_equal(tables["topics"], fit.parts.support().rename(columns={"component": "topic"}))
    pd.testing.assert_frame_equal(tables["documents"], fit.documents.shares())
    pd.testing.assert_frame_equal(tables["topic_correlations"], fit.documents.correlations())
    assert tables["totals"].iloc[0].to_dict() == fit.totals().facts
    said = tables["fit"].set_index("fact")["value"]
    assert said["verdict"] == fit.diagnostics().verdict
    assert said["seed"] == "1"
    assert "no intervals" not in said
    assert "quantity" in tables["diagnostics"]
    pd.testing.assert_frame_equal(tables["chains"], fit.diagnostics().chains)


def test_files_hold_the_tables_and_nothing_is_replaced_unasked(fit, tmp_path):
    folder = tmp_path / "new" / "tables"
    paths = fit.tables.to_csv(folder)
    assert [path.name for path in paths] == [f"{name}.csv" for name in OF_TOPICS]
    assert sorted(folder.iterdir()) == sorted(paths)
    for name, table in fit.tables.items():
        read = pd.read_csv(folder / f"{name}.csv", keep_default_na=name != "topics")
        assert read.columns.tolist() == table.columns.tolist()
        assert len(read) == len(table)
        for column in table.columns:
            if table[column].dtype.kind == "f":
                np.testing.assert_allclose(pd.to_numeric(read[column]), table[column])
    assert cell("=1+1") in pd.read_csv(folder / "topics_by_word.csv")["word"].tolist()
    (folder / "topics.csv").unlink()
    with pytest.raises(FileExistsError, match=r"tables holds topics_by_word\.csv already; choose another folder"):
        fit.tables.to_csv(folder)
    assert not (folder / "topics.csv").exists()
    fit.tables.to_csv(folder, force=True)
    assert (folder / "topics.csv").exists()
    with pytest.raises(NotADirectoryError, match="must be a directory for the tables"):
        fit.tables.to_csv(folder / "topics.csv")


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_other_models_and_methods_have_their_own_tables(tmp_path):
    square = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, (6, 6)), 0.3)
    blocks = cv.BlockModel(2, likelihood="poisson", **QUICK).fit(square).tables
    assert list(blocks)[:2] == ["communities", "communities_by_actor"]
    assert blocks["communities_by_actor"].columns[0] == "community"
    point = cv.TopicModel(2, method=cv.EM(max_iter=3), seed=1, threads=1, progress=False).fit(square)
    tables = point.tables
    assert list(tables["totals"]) == ["reported", "error", "fitted", "lower", "upper"]
    assert "lower" not in tables["documents"]
    assert tables["fit"]["fact"].tolist()[-1] == "no intervals"
    assert len(tables["diagnostics"]) == 1
    tensor = cv.TensorModel(2, likelihood="poisson", **QUICK)
    found = tensor.fit(cv.PrivatizedCounts(np.ones((3, 2, 2), dtype=int), 0.3)).tables
    assert list(found)[:4] == ["components", *(f"components_by_mode{i}" for i in range(3))]


def test_one_table_is_that_of_all(fit):
    for name, table in fit.tables.items():
        pd.testing.assert_frame_equal(fit.tables[name], table)
    assert len(fit.tables) == len(list(fit.tables))
    with pytest.raises(KeyError, match=r"table must be one of \['topics', .*, 'fit'\], got 'topic'"):
        fit.tables["topic"]


def test_one_table_is_made_without_the_others(fit, monkeypatch):
    monkeypatch.setattr(Documents, "shares", lambda *_: pytest.fail("documents were not asked for"))
    assert len(fit.tables["topics"]) == 3
