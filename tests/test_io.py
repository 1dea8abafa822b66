import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import countveil as cv
from countveil.io import read_counts, read_vocabulary

COUNTS = np.array([[0, 2, 1], [4, 0, 3]])


@pytest.fixture
def csv_file(tmp_path):
    def write(text, name="counts.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_npy(tmp_path):
    np.save(tmp_path / "counts.npy", COUNTS)
    table = read_counts(tmp_path / "counts.npy")
    assert np.array_equal(table.values, COUNTS)
    assert table.row_labels is None
    assert table.column_labels is None


def test_sparse_npz(tmp_path):
    sp.save_npz(tmp_path / "counts.npz", sp.csr_array(COUNTS))
    table = read_counts(str(tmp_path / "counts.npz"))
    assert sp.issparse(table.values)
    assert np.array_equal(table.values.toarray(), COUNTS)


@pytest.mark.parametrize("container", [np.asarray, sp.coo_array])
def test_matrix_market(tmp_path, container):
    scipy.io.mmwrite(tmp_path / "counts.mtx", container(COUNTS))
    values = read_counts(tmp_path / "counts.mtx").values
    assert np.array_equal(values.toarray() if sp.issparse(values) else values, COUNTS)


@pytest.mark.parametrize(
    "text",
    [
        ",a,b,c\nx,0,2,1\ny,4,0,3\n",
        "name,a,b,c\r\nx,0,2,1\r\ny,4,0,3\r\n",
        '﻿"", a ,b,c\n\nx,0,2.0,1\ny ,4,0,3e0',
    ],
)
def test_csv_with_row_labels(csv_file, text):
    table = read_counts(csv_file(text))
    assert np.array_equal(table.values, COUNTS)
    assert table.values.dtype == np.int64
    assert table.row_labels == ["x", "y"]
    assert table.column_labels == ["a", "b", "c"]


def test_csv_without_row_labels(csv_file):
    table = read_counts(csv_file("a,b,c\n0,2,1\n4,0,3\n"))
    assert np.array_equal(table.values, COUNTS)
    assert table.row_labels is None
    assert table.column_labels == ["a", "b", "c"]


def test_numbers_under_an_empty_header_cell_are_row_labels(csv_file):
    table = read_counts(csv_file(",a\n17,0\n18,1\n"))
    assert table.row_labels == ["17", "18"]
    assert table.values.tolist() == [[0], [1]]


def test_csv_keeps_large_counts_exact(csv_file):
    assert read_counts(csv_file(f"a\n{2**62 - 1}\n")).values[0, 0] == 2**62 - 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "header row and a row of counts or more, got 0 rows"),
        ("a,b\n", "header row and a row of counts or more, got 1 rows"),
        ("a,b\n1,2\n3\n", "2 cells in every row, got 1 in row 2"),
        ("a,b\n1,\n", "got an empty cell in row 1, column 'b'"),
        ("a,b\n1,1.5\n", "got a value that is not whole in row 1, column 'b'"),
        ("a,b\n1,nan\n", "got a value that is not whole"),
        ("a,b\n1,secret\n", "got something that is no number in row 1, column 'b'"),
        ("a,b\n1,1e300\n", "above 2\\*\\*53"),
        (f"a,b\n1,{2**63}\n", "above 2\\*\\*63"),
        (",\n", "got 1 rows"),
        ("x\nname\n", "at least one column of counts"),
    ],
)
def test_csv_faults_name_the_place_and_no_value(csv_file, text, message):
    path = csv_file(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_counts(path)
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_text_in_another_encoding(csv_file):
    with pytest.raises(ValueError, match="must be UTF-8 text, got other bytes at 0"):
        read_counts(csv_file("é,b\n1,2\n", encoding="latin-1"))


@pytest.mark.parametrize("name", ["counts.npz", "counts.npy", "counts.mtx"])
def test_a_file_of_another_kind(csv_file, name):
    with pytest.raises(ValueError, match=f"{name} must hold a"):
        read_counts(csv_file("a,b\n1,2\n", name))


def test_pickles_are_refused(tmp_path):
    np.save(tmp_path / "counts.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_counts(tmp_path / "counts.npy")


def test_a_release_is_not_counts(tmp_path):
    release = cv.privatize(COUNTS, cv.PrivacyLevel(1, 1))
    release.save(tmp_path / "release.npz")
    with pytest.raises(ValueError, match="got a release, which is privatized already"):
        read_counts(tmp_path / "release.npz")


def test_an_archive_of_arrays_is_not_a_matrix(tmp_path):
    np.savez(tmp_path / "counts.npz", counts=COUNTS)
    with pytest.raises(ValueError, match=r"written by scipy.sparse.save_npz"):
        read_counts(tmp_path / "counts.npz")


def test_other_dimensions(tmp_path):
    np.save(tmp_path / "counts.npy", np.arange(3))
    with pytest.raises(ValueError, match="must hold a matrix \\(2 dimensions\\), got 1"):
        read_counts(tmp_path / "counts.npy")


def test_missing_files_and_unknown_kinds(tmp_path):
    with pytest.raises(FileNotFoundError, match="no counts at"):
        read_counts(tmp_path / "counts.csv")
    with pytest.raises(ValueError, match=r"must end in one of .npz, .npy, .mtx, .csv, got '.xlsx'"):
        read_counts(tmp_path / "counts.xlsx")
    with pytest.raises(FileNotFoundError, match="no vocabulary at"):
        read_vocabulary(tmp_path / "words.txt")


def test_vocabulary(csv_file):
    assert read_vocabulary(csv_file("one\n two \r\ndrei\n", "words.txt")) == ["one", "two", "drei"]
    with pytest.raises(ValueError, match="got an empty file"):
        read_vocabulary(csv_file("", "words.txt"))
    with pytest.raises(ValueError, match="got an empty line 2"):
        read_vocabulary(csv_file("one\n\ntwo\n", "words.txt"))
