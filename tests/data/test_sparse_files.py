import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from countveil.data.io import read_counts

COUNTS = np.array([[1, 0, 0, 0, 2, 0, 0, 1], [0, 1, 0, 0, 1, 0, 0, 0]])
FILES = {
    "ap.dat": "3 0:1 4:2 7:1\n2 1:1 4:1\n",
    "unsorted.ldac": "3 7:1 0:1 4:2\n2 4:1 1:1\n\n",
    "a.svmlight": "1 1:1 5:2 8:1\n0 2:1 5:1\n",
    "b.libsvm": "+1 0:1 4:2 7:1 # a comment\n-1 1:1 4:1\n",
    "triplets.txt": "2 8 5\n1 1 1\n1 5 2\n1 8 1\n2 2 1\n2 5 1\n",
    "cluto.txt": "2 8 5\n1 1 5 2 8 1\n2 1 5 1\n",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "vocab.txt").write_text("".join(f"w{v}\n" for v in range(8)))
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_the_same_counts_from_every_format(here, name):
    found = read_counts(name, vocabulary="vocab.txt")
    np.testing.assert_array_equal(found.values.toarray(), COUNTS)
    assert found.column_labels == [f"w{v}" for v in range(8)]


@pytest.mark.parametrize("name", ["ap.dat", "b.libsvm"])
def test_a_width_that_the_file_does_not_state(here, name):
    (here / "vocab.txt").write_text("".join(f"w{v}\n" for v in range(10)))
    wide = read_counts(name, vocabulary="vocab.txt").values.toarray()
    np.testing.assert_array_equal(wide, np.pad(COUNTS, ((0, 0), (0, 2))))
    with pytest.warns(UserWarning, match="8 were read, up to the last one with a count"):
        assert read_counts(name).values.shape == (2, 8)
    (here / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(ValueError, match="must name the 8 columns"):
        read_counts(name, vocabulary="vocab.txt")


def test_the_first_number_of_svmlight_is_shown_or_stated(here):
    (here / "a.svmlight").write_text("1 1:1 5:2\n0 2:1 5:1\n")
    with pytest.raises(ValueError, match=r"from 0 or from 1, and nothing in it shows which.*--numbered-from"):
        read_counts("a.svmlight", vocabulary="vocab.txt")
    first = read_counts("a.svmlight", vocabulary="vocab.txt", numbered_from=1).values.toarray()
    zeroth = read_counts("a.svmlight", vocabulary="vocab.txt", numbered_from=0).values.toarray()
    np.testing.assert_array_equal(first[:, :5], [[1, 0, 0, 0, 2], [0, 1, 0, 0, 1]])
    np.testing.assert_array_equal(zeroth[:, 1:], first[:, :-1])
    with pytest.raises(ValueError, match=r"must be 0 for b.libsvm"):
        read_counts("b.libsvm", vocabulary="vocab.txt", numbered_from=1)
    with pytest.raises(ValueError, match="for an SVMlight file only"):
        read_counts("ap.dat", numbered_from=0)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("ap.dat", "2 0:1 4:2 7:1\n", "line 1 declares another number of entries"),
        ("ap.dat", "2 0:1 0:2\n", "must"),
        ("ap.dat", "1 -1:1\n", "must"),
        ("ap.dat", "1 0:x\n", "must hold LDA-C"),
        ("ap.dat", "1 999999999999:1\n", "declare"),
        ("a.svmlight", "1 5:1 2:1\n", "must hold SVMlight"),
        ("a.svmlight", "1 999999999:1\n", "declare"),
        ("cluto.txt", "2 8 5\n1 1 5 2 8 1\n", "must hold 5 lines of three numbers, or 2 lines of pairs"),
        ("cluto.txt", "2 8 4\n1 1 5 2 8 1\n2 1 5 1\n", "the 4 entries"),
        ("cluto.txt", "1 8 1\n9 1\n", "from 0 to 7"),
    ],
)
def test_other_files_are_refused(here, name, text, rule):
    (here / name).write_text(text)
    with pytest.raises(ValueError, match=rule):
        read_counts(name, vocabulary="vocab.txt")


def test_an_empty_document_has_a_line_of_its_own(here):
    (here / "ap.dat").write_text("3 0:1 4:2 7:1\n0\n2 1:1 4:1\n")
    assert read_counts("ap.dat", vocabulary="vocab.txt").values.sum(axis=1).tolist() == [4, 0, 2]


def test_words_in_rows_are_refused_until_stated(here):
    scipy.io.mmwrite("tdm.mtx", sp.coo_array(COUNTS.T))
    scipy.io.mmwrite("dtm.mtx", sp.coo_array(COUNTS))
    with pytest.raises(ValueError, match=r"has words in rows; pass transpose=True \(--transpose\)"):
        read_counts("tdm.mtx", vocabulary="vocab.txt")
    with pytest.raises(ValueError, match=r"leave out transpose=True \(--transpose\)"):
        read_counts("dtm.mtx", vocabulary="vocab.txt", transpose=True)
    for name, turned in (("tdm.mtx", True), ("dtm.mtx", False)):
        found = read_counts(name, vocabulary="vocab.txt", transpose=turned)
        np.testing.assert_array_equal(found.values.toarray(), COUNTS)


@pytest.mark.parametrize("container", [sp.coo_array, np.asarray])
def test_empty_rows_at_the_end_are_stated(here, container):
    scipy.io.mmwrite("short.mtx", container(COUNTS))
    found = read_counts("short.mtx", n_rows=4).values
    np.testing.assert_array_equal(
        found.toarray() if sp.issparse(found) else found, np.pad(COUNTS, ((0, 2), (0, 0)))
    )
    with pytest.raises(ValueError, match=r"at least the 2 rows of short.mtx, got 1"):
        read_counts("short.mtx", n_rows=1)


def test_rows_with_labels_are_all_there(here):
    (here / "c.csv").write_text(",a,b\nx,1,2\n")
    assert read_counts("c.csv", n_rows=1).row_labels == ["x"]
    with pytest.raises(ValueError, match=r"must be 1, as c.csv has labels for so many rows"):
        read_counts("c.csv", n_rows=2)


def test_annotated_data_has_its_names(here):
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(np.log1p(COUNTS.astype(float)), layers={"counts": sp.csr_matrix(COUNTS)})
    data.obs_names, data.var_names = ["c0", "c1"], [f"g{v}" for v in range(8)]
    data.write_h5ad("a.h5ad")
    found = read_counts("a.h5ad", layer="counts")
    np.testing.assert_array_equal(found.values.toarray(), COUNTS)
    assert found.row_labels == ["c0", "c1"]
    assert found.column_labels[7] == "g7"
    np.testing.assert_allclose(read_counts("a.h5ad").values, np.log1p(COUNTS))
    with pytest.raises(ValueError, match=r"layer must be one of \['counts'\], got 'raw'"):
        read_counts("a.h5ad", layer="raw")
    with pytest.raises(ValueError, match=r"for an .h5ad only"):
        read_counts("ap.dat", layer="counts")
    (here / "a.h5ad").write_bytes(b"\x89HDF\r\n\x1a\nx")
    with pytest.raises(ValueError, match=r"a.h5ad must hold an AnnData object"):
        read_counts("a.h5ad")
