import networkx as nx
import numpy as np
import pytest

import countveil as cv
from countveil.data.networks import above_diagonal, graph_counts, links_among, privatize_graph
from countveil.data.observations import ExactCounts, NaiveCounts, PrivatizedCounts
from countveil.privacy import PrivacyLevel

NAMES = ["ann", "bob", "cy", "dee"]
LEVEL = PrivacyLevel(1, 1)
BRIEF = {"draws": 2, "tune": 1, "chains": 1, "seed": 1, "progress": False}


def network(kind=nx.Graph):
    graph = kind()
    graph.add_nodes_from(NAMES)
    graph.add_edge("bob", "ann", weight=3)
    graph.add_edge("ann", "cy")
    graph.add_edge("cy", "cy", weight=2)
    graph.add_edge("cy", "bob", weight=5)
    return graph


UNDIRECTED = np.array([[0, 3, 1, 0], [0, 0, 5, 0], [0, 0, 2, 0], [0, 0, 0, 0]])
DIRECTED = np.array([[0, 0, 1, 0], [3, 0, 0, 0], [0, 5, 2, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(("kind", "wanted"), [(nx.Graph, UNDIRECTED), (nx.DiGraph, DIRECTED)])
def test_a_graph_becomes_counts_with_names(kind, wanted):
    table = graph_counts(network(kind))
    np.testing.assert_array_equal(table.to_numpy(), wanted)
    assert table.index.tolist() == table.columns.tolist() == NAMES
    order = ["dee", "cy", "bob", "ann"]
    turned = graph_counts(network(kind), nodes=order)
    symmetric = table.to_numpy() + (table.to_numpy().T if kind is nx.Graph else 0)
    again = turned.to_numpy() + (turned.to_numpy().T if kind is nx.Graph else 0)
    np.testing.assert_array_equal(again, symmetric[::-1, ::-1])
    assert turned.index.tolist() == order
    assert (graph_counts(network(kind), weight=None).to_numpy() == (wanted > 0)).all()


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_parallel_edges_add_up(kind):
    graph = network(kind)
    graph.add_edge("bob", "ann", weight=4)
    found = graph_counts(graph)
    assert found.loc["ann", "bob"] + found.loc["bob", "ann"] == 7
    with pytest.raises(ValueError, match="one report for each pair of actors, got parallel edges"):
        PrivatizedCounts.from_graph(graph, 0.5)


def test_an_undirected_graph_is_released_above_the_diagonal():
    release = privatize_graph(network(), LEVEL)
    assert not np.tril(release.reports, -1).any()
    assert release.labels == (tuple(NAMES), tuple(NAMES))
    assert not release.simulated
    assert not release.truncated
    fit = cv.BlockModel(2, directed=False, **BRIEF).fit(release)
    assert fit.posterior["posterior"]["actor"].to_numpy().tolist() == NAMES
    assert fit.rate().coords["receiver"].to_numpy().tolist() == NAMES


def test_every_pair_gets_noise():
    graph = nx.empty_graph(60)
    level = PrivacyLevel("0.1", 1)  # a report is zero with probability 0.05
    upper = privatize_graph(graph, level).reports[np.triu_indices(60)]
    assert (upper != 0).mean() > 0.8  # 1830 cells: 29 standard deviations below 0.95
    whole = privatize_graph(nx.DiGraph(graph), level, truncate=True)
    below = whole.reports[np.tril_indices(60, -1)]
    assert 0.3 < (below > 0).mean() < 0.65
    assert whole.truncated


def test_names_that_are_numbers_are_kept():
    release = privatize_graph(nx.path_graph(["10", "11", "12"]), LEVEL, weight=None)
    assert release.row_labels == ("10", "11", "12")


def test_simulated_noise_is_cut_below_the_diagonal_as_well():
    release = cv.simulate_release(graph_counts(network()), LEVEL, np.random.default_rng(4))
    with pytest.raises(ValueError, match=r"above_diagonal"):
        cv.BlockModel(2, directed=False, **BRIEF).fit(release)
    found = above_diagonal(release)
    np.testing.assert_array_equal(found.reports, np.triu(release.reports))
    assert found.simulated
    cv.BlockModel(2, directed=False, **BRIEF).fit(found)
    with pytest.raises(ValueError, match=r"must be an undirected network, got a directed network"):
        above_diagonal(privatize_graph(network(nx.DiGraph), LEVEL))
    with pytest.raises(ValueError, match=r"release must be square, .* got \(2, 3\)"):
        above_diagonal(cv.privatize(np.zeros((2, 3), dtype=int), LEVEL))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_sparse_release_is_cut_alike(sparse):
    from scipy.sparse import csr_array

    counts = np.random.default_rng(0).poisson(1.0, (6, 6))
    given = csr_array(counts) if sparse else counts
    release = cv.simulate_release(given, LEVEL, np.random.default_rng(1), truncate=True)
    found = above_diagonal(release).reports
    dense = found.toarray() if sparse else found
    original = release.reports.toarray() if sparse else release.reports
    np.testing.assert_array_equal(dense, np.triu(original))


def test_observations_of_a_graph():
    exact = ExactCounts.from_graph(network())
    assert exact.row_labels == exact.column_labels == NAMES
    assert exact.n_masked == 6
    rows, columns = np.triu_indices(4)
    np.testing.assert_array_equal(exact.cells(rows, columns)[0], UNDIRECTED[rows, columns])
    directed = ExactCounts.from_graph(network(nx.DiGraph))
    assert directed.n_masked == 0
    assert NaiveCounts.from_graph(network(nx.DiGraph)).kind == "naive"
    reports = network(nx.DiGraph)
    reports.add_edge("dee", "ann", weight=-2)
    private = PrivatizedCounts.from_graph(reports, 0.5)
    assert private.level_d.tolist() == [0.5] * 4
    np.testing.assert_array_equal(private.reports, DIRECTED[DIRECTED > 0])


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_a_block_model_takes_a_graph_at_its_own_noise_level(kind):
    directed, graph = kind is nx.DiGraph, network(kind)
    fit = cv.BlockModel(2, directed=directed, alpha=0.0, **BRIEF).fit(graph)
    wanted = cv.BlockModel(2, directed=directed, **BRIEF).fit(ExactCounts.from_graph(graph))
    np.testing.assert_array_equal(fit.memberships_, wanted.memberships_)
    assert fit.posterior["posterior"]["actor"].to_numpy().tolist() == NAMES
    assert fit.posterior.attrs["observations"] == "exact"
    noisy = cv.BlockModel(2, directed=directed, alpha=0.5, **BRIEF).fit(graph)
    assert noisy.posterior.attrs["observations"] == "private"


def test_a_block_model_refuses_a_graph_of_the_other_kind_or_without_a_level():
    with pytest.raises(ValueError, match="directed=True needs a directed graph, got an undirected one"):
        cv.BlockModel(2, alpha=0.0, **BRIEF).fit(network())
    with pytest.raises(ValueError, match="directed=False needs an undirected graph, got a directed one"):
        cv.BlockModel(2, directed=False, alpha=0.0, **BRIEF).fit(network(nx.DiGraph))
    with pytest.raises(TypeError, match=r"ExactCounts.from_graph\(graph\) for true counts"):
        cv.BlockModel(2, directed=False, **BRIEF).fit(network())


def weighted(value):
    graph = network()
    graph.add_edge("ann", "dee", weight=value)
    return graph


@pytest.mark.parametrize(
    ("graph", "nodes", "message"),
    [
        (network(), NAMES[:3], "each of the graph's 4 nodes once, got 3 names"),
        (network(), [*NAMES[:3], "ann"], "each of the graph's 4 nodes once"),
        (nx.Graph(), None, "at least one node"),
        (nx.path_graph([1, "1"]), None, "as text, got (a duplicate|'1' twice)"),
        (weighted(-7), None, "got a negative weight"),
        (weighted(7.5), None, "counts must be whole numbers"),
        (weighted(float("nan")), None, "counts must be whole numbers"),
        (weighted("seven"), None, "must hold whole numbers"),
    ],
)
def test_graphs_that_do_not_fit_are_refused_without_a_count(graph, nodes, message):
    with pytest.raises(ValueError, match=message) as caught:
        privatize_graph(graph, LEVEL, nodes=nodes)
    assert "7" not in str(caught.value)


def test_what_is_no_graph_is_refused():
    with pytest.raises(TypeError, match="graph must be a networkx graph, got ndarray"):
        graph_counts(UNDIRECTED)


def test_links_among_are_those_from_senders_to_receivers():
    names = ["a", "b", "c", "d"]
    np.testing.assert_array_equal(np.argwhere(links_among(names, ["b", "d"], ["a"])), [[1, 0], [3, 0]])
    np.testing.assert_array_equal(links_among(4, [1, 3], [0]), links_among(names, ["b", "d"], ["a"]))
    both = links_among(names, ["b", "d"], ["a"], directed=False)
    np.testing.assert_array_equal(both, both.T)
    assert both.sum() == 4
    assert links_among(names, ["a", "c"]).sum() == 4
    with pytest.raises(ValueError, match="receivers must be among the 4 actors, got 'e'"):
        links_among(names, ["a"], ["e"])
    with pytest.raises(ValueError, match="actors must differ from each other"):
        links_among(["a", "a"], ["a"])


def test_weights_in_text_are_numbers_and_missing_ones_are_warned_of():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", weight="10")
    graph.add_edge("b", "a", weight=" 2 ")
    assert graph_counts(graph).to_numpy().tolist() == [[0, 10], [2, 0]]
    graph.add_edge("a", "a")
    assert graph_counts(graph).to_numpy().tolist() == [[1, 10], [2, 0]]
    with pytest.warns(UserWarning, match="no edge has the attribute 'kilos'"):
        assert graph_counts(graph, weight="kilos").to_numpy().tolist() == [[1, 1], [1, 0]]
    graph.add_edge("b", "b", weight="2.5")
    with pytest.raises(ValueError, match=r"must hold whole numbers, got str \(not shown"):
        graph_counts(graph)


def test_graphs_of_reports_have_one_for_each_pair_under_any_mechanism():
    graph = nx.Graph([("a", "b", {"weight": 6}), ("b", "c", {"weight": 3})])
    stated, values = cv.mechanisms.RandomRounding(3), np.array([[0, 6, 0], [0, 0, 3], [0, 0, 0]])
    found, wanted = (cv.Reports.from_graph(graph, stated), cv.Reports(values, stated, np.tri(3, k=-1, dtype=bool)))
    np.testing.assert_array_equal(found.reports, wanted.reports)
    assert (found.row_labels, found.provenance.directed) == (["a", "b", "c"], False)
    twice = nx.MultiGraph([("a", "b"), ("b", "a")])
    for kind, level in ((NaiveCounts, ()), (PrivatizedCounts, (0.5,))):
        with pytest.raises(ValueError, match="parallel edges"):
            kind.from_graph(twice, *level, weight=None)
    assert ExactCounts.from_graph(twice, weight=None).reports.max() == 2
