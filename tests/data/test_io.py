import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import countveil as cv
from countveil.data.io import read_counts, read_vocabulary

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
        ("a,b\n1,secret\n", "got something that is not a number in row 1, column 'b'"),
        ("a,b\n1,1e300\n", "above 2\\*\\*53"),
        (f"a,b\n1,{2**63}\n", "above 2\\*\\*63"),
        (",\n", "got 1 rows"),
        ("x\nname\n", "at least one column of counts"),
        ("a,b\n1,2\n,3\n", "got 1 numbers in 2 rows; if they are labels"),
        ("a,b\n1,2\nNA,3\n", "row labels or counts in its first column"),
        ("name;a;b\nsecret;1;2\n", "separate its cells by commas, got semicolons; save it again"),
        ("a;b\n1,0;2,0\n", "by commas, got semicolons"),
        ("name\ta\nsecret\t1\n", "by commas, got tabs"),
        ("x,,b\nsecret,1,2\n", "must name every column of counts in its header row"),
    ],
)
def test_csv_faults_name_the_place_and_no_value(csv_file, text, message):
    path = csv_file(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_counts(path)
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)


ROWS = range(1, 13)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("number,a\n" + "".join(f"{i},{i % 3}\n" for i in ROWS), {}, "the first column increases"),
        ("a,number\n" + "".join(f"{i % 3},{i}.0\n" for i in ROWS), {}, "column 1 holds consecutive numbers"),
        (
            ",doc_id,a\n" + "".join(f"x,{i * i % 13},{i}{i}\n" for i in ROWS[:4]),
            {},
            "column 'doc_id' has another",
        ),
        (
            "".join(f"{i % 3},{i}\n" for i in ROWS),
            {"header": False},
            "column 1 holds.*, once the file has a header row",
        ),
    ],
)
def test_a_column_of_a_csv_that_looks_like_an_index_is_warned_of(csv_file, text, options, message):
    path = csv_file(text)
    rule = f"if it names the rows of the counts in {re.escape(str(path))}, name it with --row-labels"
    with pytest.warns(UserWarning, match=rule) as caught:
        read_counts(path, **options)
    assert re.search(message, str(caught[0].message))


def test_a_saved_index_in_a_csv_is_refused_except_as_row_labels(csv_file):
    path = csv_file(",Unnamed: 0,a\n0,0,2\n1,1,0\n")
    message = (
        f"counts in {path} must not have their index among them, got a column called 'Unnamed: 0': name it"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        read_counts(path)
    path = csv_file("a,index\n2,7\n0,5\n1,3\n")
    with pytest.raises(ValueError, match="got a column called 'index'"):
        read_counts(path)
    assert read_counts(path, row_labels="index").row_labels == ["7", "5", "3"]


@pytest.mark.parametrize(
    "text",
    [
        "70007,70009\n1,2\n",
        "word,70009\n1,2\n",
        "someone,70007,70009\nother,1,2\n",
        ",70007\n,1\n",
        " 70007 ,7.0e4\n1,2\n",
        '"70,007","70 007"\n1,2\n',
        "-70007,a\n1,2\n",
    ],
)
def test_a_header_that_may_be_a_record_is_refused_and_not_shown(csv_file, text):
    path = csv_file(text)
    with pytest.raises(ValueError, match="must have names, not numbers, in its header row") as caught:
        read_counts(path)
    assert str(path) in str(caught.value)
    assert "--no-header" in str(caught.value)
    said = str(caught.value).replace(str(path), "")
    assert not re.search("7000|7.0|70,|70 |someone|word", said)


def test_words_that_python_takes_for_numbers_are_names(csv_file):
    assert read_counts(csv_file("nan,inf,infinity\n1,2,3\n")).column_labels == ["nan", "inf", "infinity"]


def test_csv_without_a_header(csv_file):
    table = read_counts(csv_file("5,6\n7,8\n"), header=False)
    assert (table.values.tolist(), table.row_labels, table.column_labels) == ([[5, 6], [7, 8]], None, None)
    table = read_counts(csv_file("x,6\ny,8\n"), header=False)
    assert (table.values.tolist(), table.row_labels, table.column_labels) == ([[6], [8]], ["x", "y"], None)
    with pytest.raises(ValueError, match="got something that is not a number in row 1, column 2"):
        read_counts(csv_file("5,secret\n7,8\n"), header=False)
    with pytest.raises(ValueError, match="a row of counts or more, got 0 rows"):
        read_counts(csv_file(""), header=False)
    with pytest.raises(ValueError, match="row labels must be named by a header cell"):
        read_counts(csv_file("5,6\n"), header=False, row_labels="a")


def test_csv_with_a_named_column_of_row_labels(csv_file):
    path = csv_file("a,id,b\n1,17,2\n3,18,4\n")
    table = read_counts(path, row_labels="id")
    assert table.values.tolist() == [[1, 2], [3, 4]]
    assert table.row_labels == ["17", "18"]
    assert table.column_labels == ["a", "b"]
    with pytest.raises(ValueError, match="must have one column 'ID', got 0"):
        read_counts(path, row_labels="ID")
    with pytest.raises(ValueError, match="must have one column 'x', got 2"):
        read_counts(csv_file("x,x\n1,2\n"), row_labels="x")


def test_only_a_csv_has_a_header(tmp_path):
    np.save(tmp_path / "counts.npy", COUNTS)
    for told in ({"header": False}, {"row_labels": "id"}):
        with pytest.raises(ValueError, match=r"header and row labels must be given for a \.csv only"):
            read_counts(tmp_path / "counts.npy", **told)


def test_text_in_another_encoding(csv_file):
    with pytest.raises(ValueError, match="must be UTF-8 text, got other bytes at 0"):
        read_counts(csv_file("é,b\n1,2\n", encoding="latin-1"))


@pytest.mark.parametrize("name", ["counts.npz", "counts.npy", "counts.mtx"])
def test_a_file_of_another_kind(csv_file, name):
    with pytest.raises(ValueError, match=f"{name} must hold a"):
        read_counts(csv_file("a,b\n1,2\n", name))


def test_pickles_are_refused(tmp_path):
    np.save(tmp_path / "counts.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="must hold numbers and text, got objects"):
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
    with pytest.raises(
        ValueError,
        match=r"must end in one of .npz, .npy, .mtx, .txt, .*, .h5ad, .csv, got '.xlsx'",
    ):
        read_counts(tmp_path / "counts.xlsx")
    with pytest.raises(FileNotFoundError, match="no vocabulary at"):
        read_vocabulary(tmp_path / "words.txt")


def test_vocabulary(csv_file):
    assert read_vocabulary(csv_file("one\n two \r\ndrei\n", "words.txt")) == ["one", "two", "drei"]
    with pytest.raises(ValueError, match="got an empty file"):
        read_vocabulary(csv_file("", "words.txt"))
    with pytest.raises(ValueError, match="got an empty line 2"):
        read_vocabulary(csv_file("one\n\ntwo\n", "words.txt"))
