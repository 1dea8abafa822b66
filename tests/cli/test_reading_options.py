import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import countveil as cv
from countveil.data.reports import observations_of
from tests.commands import COUNTS, WORDS, fails, run

LEVEL = ("--epsilon", "1", "--precision", "2", "--force")
OTHERS = ("--alpha", "0.3", "--source", "Others", "--force")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scipy.io.mmwrite("dtm.mtx", sp.coo_array(COUNTS))
    scipy.io.mmwrite("tdm.mtx", sp.coo_array(COUNTS.T))
    (tmp_path / "words.txt").write_text("\n".join(WORDS))
    return tmp_path


@pytest.mark.parametrize("command", [("privatize", *LEVEL), ("import", *OTHERS)])
def test_words_in_rows_are_seen_by_the_vocabulary(here, command):
    name, *options = command
    asked = (name, "tdm.mtx", "-o", "r.npz", *options)
    assert "pass transpose=True (--transpose)" in fails(*asked, "--vocabulary", "words.txt")
    assert "read as 8 records (documents) with 20 columns (terms)" in run(*asked).stdout
    said = run(*asked, "--vocabulary", "words.txt", "--transpose").stdout
    assert "records (documents)" not in said
    release = cv.Release.load("r.npz")
    assert release.shape == (20, 8)
    assert release.column_labels == tuple(WORDS)
    assert "read as 21 records" in run(name, "dtm.mtx", "-o", "r.npz", *options, "--n-rows", "21").stdout
    assert cv.Release.load("r.npz").shape[0] == 21


def test_tf_idf_is_refused(here):
    scipy.io.mmwrite("tfidf.mtx", sp.coo_array(COUNTS / 3))
    assert "whole numbers" in fails("privatize", "tfidf.mtx", "-o", "r.npz", *LEVEL)
    assert "whole numbers" in fails("import", "tfidf.mtx", "-o", "r.npz", *OTHERS)


def test_an_import_of_a_sparse_file_is_what_the_file_holds(here):
    run("import", "dtm.mtx", "-o", "r.npz", *OTHERS)
    reports = cv.Release.load("r.npz").reports
    np.testing.assert_array_equal(reports.toarray(), COUNTS)
    assert observations_of(cv.Release.load("r.npz")).shape == COUNTS.shape


def test_options_of_a_matrix_are_refused_beside_a_table(here):
    (here / "t.csv").write_text("row,column,n\na,x,1\n")
    assert "t.csv must be a matrix, such as .mtx, to be read with --transpose" in fails(
        "import", "t.csv", "-o", "r.npz", *OTHERS, "--transpose"
    )
    assert "--long must come without --vocabulary" in fails(
        "import", "t.csv", "-o", "r.npz", *OTHERS, "--long", "row,column", "--value", "n", "--vocabulary", "words.txt"
    )


EDGES = "Source,Target,Weight,Type\nA,B,4,Directed\nB,C,2,Directed\nC,A,3,Directed\n"
PRIVATIZED = ("-o", "r.npz", "--epsilon", "1", "--precision", "2", "--force")
OTHERS_OF_NETWORKS = ("-o", "r.npz", "--mechanism", "suppression", "--below", "2", "--source", "Others", "--force")


@pytest.fixture
def with_networks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "actors.txt").write_text("A\nB\nC\nD\n")
    return tmp_path


def test_an_owner_privatizes_an_edge_list(with_networks):
    found = run("privatize", "edges.csv", "--network", *PRIVATIZED)
    assert "of a directed network" in found.stdout
    assert "name all actors by --vocabulary" in found.stderr
    found = run("privatize", "edges.csv", "--network", "--vocabulary", "actors.txt", *PRIVATIZED)
    assert "warning" not in found.stderr.replace("hides", "")
    release = cv.Release.load("r.npz")
    assert release.directed is True
    assert release.row_labels == release.column_labels == tuple("ABCD")
    assert "--network must come without --transpose" in fails(
        "privatize", "edges.csv", "--network", "--transpose", *PRIVATIZED
    )
    assert "--edge-columns must come with --network" in fails(
        "privatize", "edges.csv", "--edge-columns", "a,b", *PRIVATIZED
    )
    assert "a network must be in one file" in fails(
        "privatize", "edges.csv", "--network", "--rows-per-file", "1", *PRIVATIZED
    )


def test_an_analyst_imports_an_edge_list(with_networks):
    run("import", "edges.csv", "--network", *OTHERS_OF_NETWORKS)
    release = cv.Release.load("r.npz")
    assert release.directed is True
    assert np.nansum(release.reports) == 9
    (with_networks / "edges.csv").write_text("a,b,k\nx,y,2\nz,x,few\n")
    asked = ("import", "edges.csv", "--network", "--edge-columns", "a, b, k", "--undirected", *OTHERS_OF_NETWORKS)
    run(*asked, "--absent", "few")
    assert cv.Release.load("r.npz").directed is False
    assert "got 'few' in row 2" in fails(*asked)
    assert "--network must come without --long" in fails(*asked, "--long", "a,b", "--value", "k")
    assert "--background must be a number with --network" in fails(*asked, "--background", "missing")
    assert "--directed and --undirected must come with --network" in fails(
        "import", "edges.csv", "--directed", *OTHERS_OF_NETWORKS
    )
