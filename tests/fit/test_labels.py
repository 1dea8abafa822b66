"""Labels travel from every kind of input to the coordinates of the posterior, and through a file of the fit."""

import anndata
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

import countveil as cv

pytestmark = pytest.mark.long

COUNTS = np.array([[3, 0, 1], [0, 5, 2], [4, 1, 0]])
ROWS, COLUMNS = ["ann", "bob", "cy"], ["aid", "talk", "war"]
BOTH = {"row_labels": ROWS, "column_labels": COLUMNS}
LEVEL = cv.PrivacyLevel(1, 1)
BRIEF = {"likelihood": "poisson", "draws": 2, "tune": 1, "chains": 1, "seed": 1, "progress": False}
NUMBERS = [0, 1, 2]


def frame():
    return pd.DataFrame(COUNTS, index=ROWS, columns=COLUMNS)


def from_file(path, kind):
    """Counts with a vocabulary beside them; these formats name no rows."""
    if kind == "mtx":
        scipy.io.mmwrite(path / "counts.mtx", sp.coo_array(COUNTS))
    elif kind == "txt":
        cells = [f"{d + 1} {v + 1} {COUNTS[d, v]}" for d, v in zip(*np.nonzero(COUNTS), strict=True)]
        (path / "counts.txt").write_text("\n".join(["3", "3", str(len(cells)), *cells]) + "\n")
    else:
        frame().to_csv(path / "counts.csv")
        return cv.read_counts(path / "counts.csv")
    (path / "vocab.txt").write_text("\n".join(COLUMNS) + "\n")
    return cv.read_counts(path / f"counts.{kind}", vocabulary=path / "vocab.txt")


def annotated():
    return anndata.AnnData(X=COUNTS.astype(np.float32), obs=pd.DataFrame(index=ROWS), var=pd.DataFrame(index=COLUMNS))


def saved(release, path):
    release.save(path / "release.npz")
    return cv.Release.load(path / "release.npz")


LONG = pd.DataFrame(
    [(ROWS[d], COLUMNS[v], int(COUNTS[d, v])) for d, v in zip(*np.nonzero(COUNTS), strict=True)],
    columns=["sender", "action", "n"],
)
INPUTS = {
    "array": (lambda _: cv.PrivatizedCounts(COUNTS, 0.5, **BOTH), ROWS),
    "scipy.sparse": (lambda _: cv.PrivatizedCounts(sp.csr_array(COUNTS), 0.5, **BOTH), ROWS),
    "scipy.sparse, true": (lambda _: cv.ExactCounts(sp.coo_matrix(COUNTS), **BOTH), ROWS),
    "scipy.sparse, naive": (lambda _: cv.NaiveCounts(sp.csc_array(COUNTS), **BOTH), ROWS),
    "DataFrame": (lambda _: cv.PrivatizedCounts(frame(), 0.5), ROWS),
    "DataFrame, true": (lambda _: cv.ExactCounts(frame()), ROWS),
    "DataFrame and alpha": (lambda _: frame(), ROWS),
    "long table": (lambda _: cv.PrivatizedCounts.from_frame(LONG, ["sender", "action"], "n", 0.5), ROWS),
    "coordinates": (
        lambda _: cv.PrivatizedCounts.from_coordinates(
            np.nonzero(COUNTS), COUNTS[np.nonzero(COUNTS)], 0.5, labels=[ROWS, COLUMNS]
        ),
        ROWS,
    ),
    "AnnData": (lambda _: cv.PrivatizedCounts(annotated(), 0.5), ROWS),
    "AnnData, true": (lambda _: cv.ExactCounts.from_anndata(annotated()), ROWS),
    "AnnData and alpha": (lambda _: annotated(), ROWS),
    "AnnData, released": (lambda _: cv.privatize(annotated().to_df(), LEVEL), ROWS),
    "csv": (lambda path: cv.PrivatizedCounts(from_file(path, "csv"), 0.5), ROWS),
    "MatrixMarket": (lambda path: cv.PrivatizedCounts(from_file(path, "mtx"), 0.5), NUMBERS),
    "MatrixMarket, true": (lambda path: cv.ExactCounts(from_file(path, "mtx")), NUMBERS),
    "UCI bag of words": (lambda path: cv.PrivatizedCounts(from_file(path, "txt"), 0.5), NUMBERS),
    "UCI bag of words, true": (lambda path: cv.ExactCounts(from_file(path, "txt")), NUMBERS),
    "release": (lambda _: cv.privatize(frame(), LEVEL), ROWS),
    "sparse release": (lambda _: cv.privatize(sp.csr_array(COUNTS), LEVEL, **BOTH), ROWS),
    "saved release": (lambda path: saved(cv.privatize(frame(), LEVEL), path), ROWS),
    "naive release": (lambda _: cv.NaiveCounts(cv.privatize(frame(), LEVEL)), ROWS),
    "release of counts in a file": (lambda path: cv.privatize(from_file(path, "csv").values, LEVEL, **BOTH), ROWS),
}


def coordinates(fit, dims):
    draws = fit.posterior["posterior"]
    return tuple(draws[dim].to_numpy().tolist() for dim in dims)


@pytest.mark.parametrize(("make", "rows"), INPUTS.values(), ids=INPUTS)
def test_labels_reach_the_posterior(make, rows, tmp_path):
    data = make(tmp_path)
    topics = cv.TopicModel(2, alpha=0.5, **BRIEF).fit(data)
    assert coordinates(topics, ("doc", "word")) == (rows, COLUMNS)
    assert set(topics.top_words(3)["word"]) == set(COLUMNS)
    assert topics.rate().coords["word"].to_numpy().tolist() == COLUMNS


@pytest.mark.parametrize("name", ["DataFrame", "DataFrame and alpha", "AnnData and alpha", "MatrixMarket", "release"])
def test_labels_reach_the_posterior_of_every_model_and_its_file(name, tmp_path):
    make, rows = INPUTS[name]
    data = make(tmp_path)
    tensor = cv.TensorModel(2, modes=["sender", "action"], alpha=0.5, **BRIEF).fit(data)
    assert coordinates(tensor, ("sender", "action")) == (rows, COLUMNS)
    anything = cv.PoissonFactorization("dk,vk->dv", {"k": 2}, dims={"v": "gene"}, alpha=0.5, **BRIEF).fit(data)
    assert coordinates(anything, ("d", "gene")) == (rows, COLUMNS)
    cv.TopicModel(2, alpha=0.5, **BRIEF).fit(data).save(tmp_path / "fit.nc")
    assert coordinates(cv.TopicModel.load(tmp_path / "fit.nc"), ("doc", "word")) == (rows, COLUMNS)


def network(kind):
    graph = getattr(nx, kind)()
    graph.add_nodes_from(ROWS)
    graph.add_edge("bob", "ann", weight=3)
    graph.add_edge("ann", "cy")
    return graph


NETWORKS = {
    "graph and alpha": lambda graph: graph,
    "true": cv.ExactCounts.from_graph,
    "reports": lambda graph: cv.PrivatizedCounts.from_graph(graph, 0.5),
    "naive": cv.NaiveCounts.from_graph,
    "release": lambda graph: cv.privatize_graph(graph, LEVEL),
    "saved release": None,
    "table": lambda graph: cv.PrivatizedCounts(cv.graph_counts(graph), 0.5),
}


@pytest.mark.parametrize("kind", ["Graph", "DiGraph"])
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_names_of_nodes_reach_the_posterior(make, kind, tmp_path):
    make = make or (lambda graph: saved(cv.privatize_graph(graph, LEVEL), tmp_path))
    fit = cv.BlockModel(2, directed=kind == "DiGraph", alpha=0.5, **BRIEF).fit(make(network(kind)))
    assert coordinates(fit, ("actor", "sender", "receiver")) == (ROWS, ROWS, ROWS)
    assert set(fit.top_actors(3)["actor"]) == set(ROWS)


def test_names_of_nodes_come_back_from_a_file(tmp_path):
    cv.BlockModel(2, alpha=0.5, **BRIEF).fit(network("DiGraph")).save(tmp_path / "fit.nc")
    assert coordinates(cv.BlockModel.load(tmp_path / "fit.nc"), ("actor", "sender", "receiver")) == (ROWS, ROWS, ROWS)


def test_labels_of_many_axes_reach_the_posterior():
    known = {"sender": ROWS, "action": COLUMNS, "year": [1990, 1991]}
    events = pd.DataFrame({"sender": ["ann", "cy"], "action": ["war", "aid"], "year": [1991, 1990]})
    released = cv.privatize(cv.count_table(events, list(known), known), LEVEL)
    for data in (
        cv.ExactCounts.from_frame(events, list(known), categories=known),
        cv.PrivatizedCounts.from_release(released).folded(),
    ):
        fit = cv.TensorModel(2, modes=list(known), **BRIEF).fit(data)
        assert coordinates(fit, known) == (ROWS, COLUMNS, ["1990", "1991"])
        assert set(fit.top_entries("action", 3)["action"]) == set(COLUMNS)


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_labels_of_releases_on_disk_reach_the_posterior(tmp_path):
    for name, part in (("one", slice(0, 2)), ("two", slice(2, 3))):
        cv.privatize(frame()[part], LEVEL).save(tmp_path / f"{name}.npz")
    files = cv.ReleaseFiles([tmp_path / "one.npz", tmp_path / "two.npz"])
    fit = cv.TopicModel(2, method="svi", **BRIEF).fit(files)
    assert coordinates(fit, ("doc", "word")) == (ROWS, COLUMNS)


@pytest.mark.parametrize("self_loops", [False, True])
def test_a_network_that_names_its_rows_alone_is_left_as_it_was(self_loops):
    data = cv.PrivatizedCounts(COUNTS, 0.5, row_labels=ROWS)
    fit = cv.BlockModel(2, self_loops=self_loops, **BRIEF).fit(data)
    assert list(fit.posterior["posterior"]["receiver"].to_numpy()) == ROWS
    assert data.row_labels == ROWS
    assert data.column_labels is None
