import numpy as np
import pytest

import countveil as cv
from countveil.data.edge_lists import counts_of_edges, import_edges, read_edges, reports_of
from countveil.data.importing import check_again
from countveil.data.reports import observations_of
from countveil.data.tables.text import Format

m = cv.mechanisms
EDGES = "Source,Target,Weight,Type\nA,B,4,Directed\nB,C,2,Directed\nC,A,3,Directed\n"
GRAPH = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="edge" attr.name="weight" attr.type="string" />
  <graph edgedefault="directed">
    <node id="A" /><node id="B" /><node id="C" /><node id="D" />
    <edge source="A" target="B"><data key="d0">10</data></edge>
    <edge source="C" target="A"><data key="d0">7</data></edge>
  </graph>
</graphml>
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="edges.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def dense(edges):
    return counts_of_edges(edges).values.toarray().tolist()


@pytest.mark.parametrize(
    "header",
    ["Source,Target,Weight", "from,to,count", "sender,receiver,n", "weight,SENDER,Recipient", "ego,alter,value"],
)
def test_columns_are_known_by_their_usual_names(file, header):
    lines = ["A,B,4", "B,C,2"] if not header.startswith("weight") else ["4,A,B", "2,B,C"]
    edges = read_edges(file("\n".join([header, *lines])), directed=True)
    assert edges.actors == ["A", "B", "C"]
    assert dense(edges) == [[0, 4, 0], [0, 0, 2], [0, 0, 0]]


def test_columns_are_stated_where_their_names_do_not_show_them(file):
    path = file("a,b,k,day\nx,y,2,1\ny,x,5,1\n")
    with pytest.raises(ValueError, match=r"must have one column of senders.*--edge-columns SENDER,RECEIVER,WEIGHT"):
        read_edges(path, directed=True)
    assert dense(read_edges(path, ["a", "b", "k"], directed=True)) == [[0, 2], [5, 0]]
    assert dense(read_edges(path, ["a", "b"], directed=True)) == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="must have one column 'c'"):
        read_edges(path, ["a", "c"], directed=True)
    with pytest.raises(ValueError, match="two or three names, got 1"):
        read_edges(path, ["a"], directed=True)


def test_a_third_column_that_is_not_recognised_is_no_count_of_one(file):
    with pytest.raises(ValueError, match="one column of weights"):
        read_edges(file("from,to,strength\nx,y,2\n"), directed=True)
    assert dense(read_edges(file("from,to\nx,y\nx,y\n"), directed=True)) == [[0, 2], [0, 0]]


def test_the_kind_of_network_is_found_or_stated(file):
    path = file(EDGES)
    assert read_edges(path).directed is True
    with pytest.raises(ValueError, match="must be undirected, as stated, got directed edges"):
        read_edges(path, directed=False)
    undirected = file(EDGES.replace("Directed", "Undirected"))
    assert dense(read_edges(undirected)) == [[0, 4, 3], [0, 0, 2], [0, 0, 0]]
    with pytest.raises(ValueError, match="directed and undirected"):
        read_edges(file(EDGES + "A,C,1,Undirected\n"))
    with pytest.raises(ValueError, match="state --directed or --undirected"):
        read_edges(file("from,to,count\nx,y,2\n"))


def test_actors_without_an_edge_are_named(file):
    edges = read_edges(file(EDGES), actors=["C", "B", "A", "D"])
    assert counts_of_edges(edges).row_labels == ["C", "B", "A", "D"]
    assert dense(edges) == [[0, 0, 3, 0], [2, 0, 0, 0], [0, 4, 0, 0], [0, 0, 0, 0]]
    with pytest.raises(ValueError, match=r"actors \(--vocabulary\) must include everybody in .*got a list without 'C'"):
        read_edges(file(EDGES), actors=["A", "B"])
    with pytest.raises(ValueError, match="got a duplicate"):
        read_edges(file(EDGES), actors=["A", "B", "C", "A"])


def test_an_undirected_list_with_every_pair_twice_is_refused(file):
    both = "from,to,count\nx,y,2\ny,x,2\n"
    with pytest.raises(ValueError, match="list each undirected pair once"):
        counts_of_edges(read_edges(file(both), directed=False))
    assert dense(read_edges(file(both), directed=True)) == [[0, 2], [2, 0]]
    contacts = read_edges(file("from,to\nx,y\ny,x\nx,y\n"), directed=False)
    assert dense(contacts) == [[0, 3], [0, 0]]


@pytest.mark.parametrize("weight", ["2.5", "many", "-2", "nan"])
def test_weights_of_an_owner_are_refused_without_being_shown(file, weight):
    path = file(f"from,to,count\nx,y,{weight}\n")
    with pytest.raises(ValueError, match=r"whole numbers|non-negative|finite") as caught:
        counts_of_edges(read_edges(path, directed=True))
    assert weight not in str(caught.value).replace(str(path), "")


def test_a_graph_with_weights_in_text(file):
    edges = read_edges(file(GRAPH, "s.graphml"))
    assert edges.directed
    assert edges.actors == ["A", "B", "C", "D"]
    assert dense(edges) == [[0, 10, 0, 0], [0] * 4, [7, 0, 0, 0], [0] * 4]
    with pytest.warns(UserWarning, match="no edge has the attribute 'weight'"):
        counts_of_edges(read_edges(file(GRAPH.replace('"weight"', '"kilos"'), "s.graphml")))
    for broken in ("<graphml>", GRAPH.replace("utf-8", "ut-f-8")):
        with pytest.raises(ValueError, match="must hold a graph"):
            read_edges(file(broken, "s.graphml"))
    with pytest.raises(ValueError, match=r"must be left out with a graph, .* got \['a', 'b'\] for"):
        read_edges(file(GRAPH, "s.graphml"), ["a", "b"])


def test_reports_of_pairs_make_a_release_of_a_network(file):
    edges = read_edges(file(EDGES))
    release = import_edges(edges, m.Suppression(2), "Others")
    assert release.directed is True
    nan = np.nan
    np.testing.assert_array_equal(release.reports, [[nan, 4, nan], [nan, nan, 2], [3, nan, nan]])
    check_again(release)
    assert observations_of(release).provenance.directed is True
    with pytest.raises(ValueError, match="got 3 cells without one"):
        import_edges(edges, m.TwoSidedGeometric(0.3), "Others")
    noisy = import_edges(edges, m.TwoSidedGeometric(0.3), "Others", background=0)
    assert np.asarray(noisy.reports).tolist() == [[0, 4, 0], [0, 0, 2], [3, 0, 0]]


@pytest.mark.parametrize("mechanism", [m.Thresholded(m.Gaussian(1), 1), m.Suppression(2, shows_zero=False)])
def test_an_undirected_pair_has_one_report(file, mechanism):
    path = file("from,to,count\nB,A,4\nA,C,hidden\n")
    release = import_edges(read_edges(path, directed=False), mechanism, "Others", absent=["hidden"])
    assert release.directed is False
    nan = np.nan
    np.testing.assert_array_equal(release.reports, [[nan, 4, nan], [0, nan, nan], [0, 0, nan]])
    check_again(release)
    assert observations_of(release).n_masked == 3
    with pytest.raises(ValueError, match="each pair of actors once"):
        import_edges(read_edges(file("from,to,count\nB,A,4\nA,B,3\n"), directed=False), mechanism, "Others")
    with pytest.raises(ValueError, match="got 'hidden' in row 2, column 'count'"):
        import_edges(read_edges(file("from,to,count\nB,A,4\nA,C,hidden\n"), directed=False), mechanism, "Others")


def test_reports_need_a_column_of_reports(file):
    with pytest.raises(ValueError, match="must have a column of reports"):
        import_edges(read_edges(file("from,to\nB,A\n"), directed=True), m.Suppression(2), "Others")
    bare = GRAPH.replace('<data key="d0">7</data>', "")
    with pytest.raises(ValueError, match="for every edge, got none for the edge from 'C' to 'A'"):
        import_edges(read_edges(file(bare, "s.graphml")), m.Suppression(2), "Others")


def test_reports_are_in_the_format_of_the_file(file):
    path = file("made by us\nSource;Target;Weight\na;b;1.005\nb;c;2.003\na;c;7\n")
    for stated, values in [
        (Format(";", thousands=".", skip=1), [1005, 2003, 7]),
        (Format(decimal="."), [1.005, 2.003, 7]),
    ]:
        found = read_edges(path, None, False, None, stated)
        np.testing.assert_allclose(reports_of(found, ()), values)
    with pytest.raises(ValueError, match=r"'1\.005' may be thousands or decimals"):
        reports_of(read_edges(path, None, False), ())
