"""Annotated matrices, files and releases: their names and noise levels reach observations and posteriors."""

import gzip
import types

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

import countveil as cv
from countveil.data.observations import ExactCounts, NaiveCounts, PrivatizedCounts
from countveil.data.reports import observations_of
from countveil.data.simulation import simulate_release
from countveil.privacy import PrivacyLevel, Release, privatize
from tests.data.same import assert_same

COUNTS = np.array([[0, 2, 1], [4, 0, 3]])
CELLS, GENES = ["AAAC-1", "AAAG-1"], ["TP53", "ACTB", "MYC"]
BRIEF = {"draws": 2, "tune": 1, "chains": 1, "seed": 1, "progress": False}


def annotated(**changes):
    """What of AnnData is relied on."""
    parts = {
        "X": sp.csr_matrix(COUNTS.astype(np.float32)),
        "obs_names": pd.Index(CELLS),
        "var_names": pd.Index(GENES),
        "layers": {"counts": COUNTS + 1},
        "isbacked": False,
    }
    return types.SimpleNamespace(**parts | changes)


def coordinates(fit):
    draws = fit.posterior["posterior"]
    return draws["doc"].to_numpy().tolist(), draws["word"].to_numpy().tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda data: ExactCounts(data),
        lambda data: PrivatizedCounts(data, 0.5),
        lambda data: NaiveCounts(data),
        lambda data: ExactCounts.from_anndata(data),
        lambda data: PrivatizedCounts.from_anndata(data, 0.5),
        lambda data: NaiveCounts.from_anndata(data),
    ],
)
def test_annotated_data_keep_their_names(make):
    found = make(annotated())
    np.testing.assert_array_equal(found.reports, COUNTS[COUNTS > 0])
    fit = cv.TopicModel(1, **BRIEF).fit(found)
    assert coordinates(fit) == (CELLS, GENES)
    assert fit.feature_names_in_.tolist() == GENES


def test_an_estimator_with_a_level_takes_annotated_data():
    assert coordinates(cv.TopicModel(1, alpha=0.5, **BRIEF).fit(annotated())) == (CELLS, GENES)


def test_layers_backed_files_and_names_of_ones_own():
    found = ExactCounts.from_anndata(annotated(), layer="counts")
    np.testing.assert_array_equal(found.reports, (COUNTS + 1).ravel())
    backed = annotated(isbacked=True, X="on disk", to_memory=annotated)
    np.testing.assert_array_equal(ExactCounts(backed).reports, COUNTS[COUNTS > 0])
    assert ExactCounts(annotated(), row_labels=["a", "b"]).row_labels == ["a", "b"]
    assert ExactCounts.from_anndata(annotated(), row_labels=["a", "b"]).row_labels == ["a", "b"]


def test_annotated_data_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"layer must be one of \['counts'\], got 'raw'"):
        ExactCounts.from_anndata(annotated(), layer="raw")
    with pytest.raises(ValueError, match="must have an X, got None"):
        ExactCounts(annotated(X=None))
    with pytest.raises(ValueError, match="counts must be whole numbers"):
        ExactCounts(annotated(X=np.log1p(COUNTS)))
    with pytest.raises(TypeError, match="must be an AnnData object, got ndarray"):
        PrivatizedCounts.from_anndata(COUNTS, 0.5)


def bag(path, text="2\n3\n4\n1 2 2\n1 3 1\n2 1 4\n2 3 3\n"):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("kind", ["mtx", "npy", "npz", "txt", "txt.gz"])
def test_a_vocabulary_travels_from_file_to_posterior(tmp_path, kind):
    path = tmp_path / f"docword.{kind}"
    {
        "mtx": lambda: scipy.io.mmwrite(path, sp.coo_array(COUNTS)),
        "npy": lambda: np.save(path, COUNTS),
        "npz": lambda: sp.save_npz(path, sp.csr_array(COUNTS)),
        "txt": lambda: bag(path),
        "txt.gz": lambda: bag(path),
    }[kind]()
    (tmp_path / "vocab.txt").write_text("\n".join(GENES))
    table = cv.read_counts(path, vocabulary=tmp_path / "vocab.txt")
    data = ExactCounts(table)
    np.testing.assert_array_equal(data.reports, COUNTS[COUNTS > 0])
    assert coordinates(cv.TopicModel(1, **BRIEF).fit(data)) == ([0, 1], GENES)


def test_labels_of_a_csv_travel_to_the_posterior(tmp_path):
    (tmp_path / "counts.csv").write_text("cell,TP53,ACTB,MYC\nAAAC-1,0,2,1\nAAAG-1,4,0,3\n")
    data = PrivatizedCounts(cv.read_counts(tmp_path / "counts.csv"), 0.5)
    assert coordinates(cv.TopicModel(1, **BRIEF).fit(data)) == (CELLS, GENES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2\n3\n5\n1 2 2\n1 3 1\n2 1 4\n2 3 3\n", "the 5 entries that it announces, got 4"),
        ("2\n3\n1\n1 4 77\n", "along axis 1 must be from 0 to 2, got 3 in entry 0"),
        ("2\n3\n1\n0 1 77\n", "along axis 0 must be from 0 to 1, got -1 in entry 0"),
        ("2\n3\n2\n1 1 77\n1 1 77\n", "each cell once"),
        ("2\n3\n1\n1 1 77.5\n", "a UCI bag of words"),
        ("2\n3\n1\n1 1 77 77\n", "a UCI bag of words"),
        ("2\n3\n1\n1 1\n", "a UCI bag of words"),
        ("words\nof\nmine\n", "a UCI bag of words"),
        ("", "a UCI bag of words"),
    ],
)
def test_bags_of_words_that_do_not_fit_are_refused_without_a_count(tmp_path, text, message):
    path = bag(tmp_path / "docword.txt", text)
    with pytest.raises(ValueError, match=message) as caught:
        cv.read_counts(path)
    assert "77" not in str(caught.value).replace(str(path), "")


def test_a_vocabulary_of_another_length_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("one\ntwo\n")
    with pytest.raises(ValueError, match=r"must name the 3 columns of .* got 2 words"):
        cv.read_counts(bag(tmp_path / "docword.txt"), vocabulary=tmp_path / "vocab.txt")


def test_the_catalogue_names_every_way_in():
    assert {"count_table", "graph_counts", "privatize_graph", "read_counts"} <= set(cv.__all__)


def test_a_release_takes_a_mask_and_offsets():
    release = cv.privatize(np.ones((3, 2), dtype=int), cv.PrivacyLevel(1, 1))
    mask = np.array([[True, False], [False, False], [False, False]])
    found = cv.PrivatizedCounts.from_release(release, mask=mask, row_offset=[1.0, 2.0, 4.0], column_offset=[5.0, 10.0])
    assert found.n_masked == 1
    np.testing.assert_allclose(found.prior_scale_d, [1.0, 0.5, 0.25])
    np.testing.assert_allclose(found.prior_scale_v, [0.2, 0.1])


@pytest.mark.parametrize("truncate", [False, True])
def test_a_release_brings_its_noise_level_and_its_labels(truncate):
    counts = np.random.default_rng(1).poisson(1.0, (3, 4))
    levels = [PrivacyLevel(1, 1), PrivacyLevel(1, 2), PrivacyLevel(3, 1)]
    labels = {"row_labels": list("abc"), "column_labels": list("wxyz")}
    release = simulate_release(counts, levels, np.random.default_rng(2), truncate, **labels)
    found = observations_of(release)
    np.testing.assert_array_equal(found.level_d, np.exp([-1.0, -0.5, -3.0]))
    assert_same(found, PrivatizedCounts(release.reports, release.alpha))
    assert found.row_labels == list("abc")
    assert found.column_labels == list("wxyz")
    naive = NaiveCounts(release)
    assert_same(naive, NaiveCounts(release.reports))
    assert naive.column_labels == list("wxyz")
    assert NaiveCounts(release, row_labels=list("def")).row_labels == list("def")


def test_a_sparse_and_a_signed_release_see_the_same():
    counts = np.random.default_rng(3).poisson(1.0, (3, 4))
    signed = simulate_release(counts, PrivacyLevel(1, 1), np.random.default_rng(4), truncate=False)
    positive = sp.csr_array(np.maximum(signed.reports, 0))
    sparse = Release(positive, PrivacyLevel(1, 1), truncated=True)
    assert_same(observations_of(signed), observations_of(sparse))
    assert observations_of(privatize(sp.csr_array(counts), PrivacyLevel(1, 1))).shape == (3, 4)
