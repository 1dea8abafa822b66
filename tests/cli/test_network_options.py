import numpy as np
import pytest

import countveil as cv
from tests.commands import fails, run

EDGES = "Source,Target,Weight,Type\nA,B,4,Directed\nB,C,2,Directed\nC,A,3,Directed\n"
LEVEL = ("-o", "r.npz", "--epsilon", "1", "--precision", "2", "--force")
OTHERS = ("-o", "r.npz", "--mechanism", "suppression", "--below", "2", "--source", "Others", "--force")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "actors.txt").write_text("A\nB\nC\nD\n")
    return tmp_path


def test_an_owner_privatizes_an_edge_list(here):
    found = run("privatize", "edges.csv", "--network", *LEVEL)
    assert "of a directed network" in found.stdout
    assert "name all actors by --vocabulary" in found.stderr
    found = run("privatize", "edges.csv", "--network", "--vocabulary", "actors.txt", *LEVEL)
    assert "warning" not in found.stderr.replace("hides", "")
    release = cv.Release.load("r.npz")
    assert release.directed is True
    assert release.row_labels == release.column_labels == tuple("ABCD")
    assert "--network must come without --transpose" in fails(
        "privatize", "edges.csv", "--network", "--transpose", *LEVEL
    )
    assert "--edge-columns must come with --network" in fails(
        "privatize", "edges.csv", "--edge-columns", "a,b", *LEVEL
    )
    assert "a network must be in one file" in fails(
        "privatize", "edges.csv", "--network", "--rows-per-file", "1", *LEVEL
    )


def test_an_analyst_imports_an_edge_list(here):
    run("import", "edges.csv", "--network", *OTHERS)
    release = cv.Release.load("r.npz")
    assert release.directed is True
    assert np.nansum(release.reports) == 9
    (here / "edges.csv").write_text("a,b,k\nx,y,2\nz,x,few\n")
    asked = ("import", "edges.csv", "--network", "--edge-columns", "a, b, k", "--undirected", *OTHERS)
    run(*asked, "--absent", "few")
    assert cv.Release.load("r.npz").directed is False
    assert "got 'few' in row 2" in fails(*asked)
    assert "--network must come without --long" in fails(*asked, "--long", "a,b", "--value", "k")
    assert "--background must be a number with --network" in fails(*asked, "--background", "missing")
    assert "--directed and --undirected must come with --network" in fails(
        "import", "edges.csv", "--directed", *OTHERS
    )
